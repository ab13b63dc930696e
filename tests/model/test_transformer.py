"""The whole model: what may see what, how many parameters there are, and which matrices are one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dragoman.model.embeddings import Embeddings
from dragoman.model.families import SHAPES
from dragoman.model.inputs import ImageInput
from dragoman.model.layer import Layer
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer


def tiny(**fields: Any) -> Transformer:
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "vocab_size": 50,
        "d_model": 32,
        "d_ff": 64,
        "n_heads": 4,
        "encoder_layers": 2,
        "decoder_layers": 2,
    }
    return Transformer(ModelConfig(**(shape | fields))).eval()


def tokens(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(50, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_future_target_token_cannot_change_an_earlier_output(norm_first: bool) -> None:
    model, source, target = tiny(norm_first=norm_first), tokens(3, 7), tokens(3, 9, seed=2)
    before = model(source, target)
    for place in range(9):
        changed = target.clone()
        changed[:, place] = (changed[:, place] + 1) % 50
        after = model(source, changed)
        torch.testing.assert_close(after[:, :place], before[:, :place], rtol=0, atol=0)
        assert (after[:, place] - before[:, place]).abs().amax() > 1e-3


@pytest.mark.parametrize("norm_first", [False, True])
def test_padding_changes_nothing(norm_first: bool) -> None:
    model, lengths = tiny(norm_first=norm_first), [7, 3, 1]
    source, target = tokens(3, 7), tokens(3, 6, seed=2)
    alone = [model(source[i : i + 1, :n], target[i : i + 1])[0] for i, n in enumerate(lengths)]
    for garbage in (0, 17):
        padded = torch.cat((source, torch.full((3, 4), garbage)), dim=1)
        for i, n in enumerate(lengths):
            padded[i, n:] = garbage
        together = model(padded, target, torch.tensor(lengths))
        torch.testing.assert_close(together, torch.stack(alone), rtol=1e-5, atol=1e-5)


def test_padding_of_the_target_changes_nothing_before_it() -> None:
    model, source, target = tiny(), tokens(2, 7), tokens(2, 6, seed=2)
    longer = torch.cat((target, tokens(2, 5, seed=3)), dim=1)
    torch.testing.assert_close(
        model(source, longer)[:, :6], model(source, target), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    ("name", "layers", "total"), [("base", 44.14, 63.08), ("big", 176.36, 214.25)]
)
def test_parameters_are_those_of_the_paper(name: str, layers: float, total: float) -> None:
    with torch.device("meta"):
        model = Transformer(ModelConfig(vocab_size=37_000, **SHAPES[name]))
    parts = [*model.encoder.layers.parameters(), *model.decoder.layers.parameters()]
    assert round(sum(p.numel() for p in parts) / 1e6, 2) == layers
    assert round(sum(p.numel() for p in model.parameters()) / 1e6, 2) == total


def source_embeddings(model: Transformer) -> Embeddings:
    """Those of an encoder that reads tokens."""
    embeddings = model.encoder.embeddings
    assert isinstance(embeddings, Embeddings)
    return embeddings


def test_one_matrix_is_source_target_and_output() -> None:
    model = tiny()
    source = source_embeddings(model)
    assert source.tokens.weight is model.decoder.embeddings.tokens.weight is model.output_weight
    features = torch.randn(2, 3, 32)
    torch.testing.assert_close(model.logits(features), features @ model.output_weight.T)


def test_sides_with_vocabularies_of_their_own() -> None:
    model = tiny(source_vocab_size=70)
    assert source_embeddings(model).tokens.weight.shape == (70, 32)
    assert model.output_weight is model.decoder.embeddings.tokens.weight
    assert model.output_weight.shape == (50, 32)
    assert model(torch.tensor([[69, 3]]), torch.tensor([[1, 2, 3]])).shape == (1, 3, 50)


def test_embeddings_are_scaled_then_moved_by_their_position() -> None:
    model, ids = tiny(), tokens(2, 5)
    embeddings = source_embeddings(model)
    assert embeddings.positions is not None
    expected = embeddings.tokens.weight[ids] * 32**0.5 + embeddings.positions.table[:5]
    torch.testing.assert_close(embeddings(ids), expected)


@pytest.mark.parametrize("norm_first", [False, True])
def test_weights_asked_for_afterwards_belong_to_the_fast_pass(norm_first: bool) -> None:
    model, source, target, lengths = (
        tiny(norm_first=norm_first),
        tokens(2, 7),
        tokens(2, 5, seed=2),
        torch.tensor([7, 4]),
    )
    weights = model.attention_weights(source, target, lengths)
    assert [w.shape for w in weights.encoder] == [(2, 4, 7, 7)] * 2
    assert [w.shape for w in weights.decoder] == [(2, 4, 5, 5)] * 2
    assert [w.shape for w in weights.cross] == [(2, 4, 5, 7)] * 2
    for layer in (*weights.encoder, *weights.decoder, *weights.cross):
        torch.testing.assert_close(layer.sum(-1), torch.ones(layer.shape[:-1]))
    for layer in (*weights.encoder, *weights.cross):
        assert layer[1, :, :, 4:].count_nonzero() == 0

    mask = (torch.arange(7) < lengths[:, None])[:, None, None]
    memory = model.encoder(source, mask, [])
    explicit = model.decoder(target, memory, mask, ([], []))
    torch.testing.assert_close(
        explicit, model.features(source, target, lengths), rtol=1e-5, atol=1e-5
    )


def test_only_training_drops() -> None:
    model, source, target = tiny(dropout=0.5), tokens(2, 7), tokens(2, 5, seed=2)
    torch.testing.assert_close(model(source, target), model(source, target), rtol=0, atol=0)
    model.train()
    assert (model(source, target) - model(source, target)).abs().amax() > 1e-3


def test_a_seed_gives_the_same_model_and_the_same_drops() -> None:
    def run() -> torch.Tensor:
        torch.manual_seed(5)
        model = Transformer(
            ModelConfig(
                vocab_size=50, d_model=32, d_ff=64, n_heads=4, encoder_layers=1, decoder_layers=1
            )
        )
        return model(tokens(2, 7), tokens(2, 5, seed=2))

    assert torch.equal(run(), run())


def test_initial_matrices_have_glorots_bounds() -> None:
    model = tiny(d_model=128, n_heads=4)
    layer = model.encoder.layers[0]
    assert isinstance(layer, Layer)
    attention = layer.attention
    # W^K and W^V are each d_model by d_model though they lie in one matrix.
    bound = (6 / (128 + 128)) ** 0.5
    for matrix in (
        attention.query.weight,
        *attention.key_value.weight.chunk(2),
        attention.out.weight,
    ):
        assert 0.95 * bound < matrix.abs().amax().item() <= bound
    assert attention.key_value.bias.abs().sum() == 0
    assert model.output_weight.std().item() == pytest.approx(128**-0.5, rel=0.05)


def test_a_decoder_alone_needs_no_source() -> None:
    model, target = tiny(encoder_layers=0), tokens(2, 5)
    assert not hasattr(model, "encoder")
    expected = model(None, target)
    state = model.start(None)
    steps = [model.step(target[:, i : i + 1], state) for i in range(5)]
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, rtol=1e-5, atol=1e-5)
    assert [one.shape for one in model.attention_weights(None, target).decoder] == [
        (2, 4, 5, 5)
    ] * 2


def test_an_encoder_alone_sees_both_ways_and_past_no_padding() -> None:
    model, source = (
        tiny(decoder_layers=0, output_transform=True, classes=3, pooler=True),
        tokens(2, 6),
    )
    assert not hasattr(model, "decoder")
    logits, classes = (
        model(source, lengths=torch.tensor([6, 4])),
        model.classify(source, torch.tensor([6, 4])),
    )
    torch.testing.assert_close(logits[1, :4], model(source[1:, :4])[0])
    torch.testing.assert_close(classes[1], model.classify(source[1:, :4])[0])
    changed = source.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 50
    assert (model(changed)[:, 0] != model(source)[:, 0]).any(dim=-1).all()


def test_an_image_is_read_square_by_square() -> None:
    model = tiny(
        vocab_size=0, decoder_layers=0, input="image", input_size=6, patch_size=2, classes=3
    )
    images = torch.arange(2 * 3 * 6 * 6, dtype=torch.float).view(2, 3, 6, 6)
    inputs = model.encoder.embeddings
    assert isinstance(inputs, ImageInput)
    inputs.positions.table.data.zero_()
    seen = inputs(images)
    torch.testing.assert_close(seen[:, 0], inputs.first.expand(2, -1))
    square = images[1, :, 2:4, 4:6].reshape(-1)  # the second row's last of three
    torch.testing.assert_close(seen[1, 1 + 5], inputs.project(square))
    assert model.classify(images).shape == (2, 3)
