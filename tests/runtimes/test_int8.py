"""The model in 8-bit integers: near the float model, and blind to what else is in the batch."""

from __future__ import annotations

import pytest
import torch

from dragoman.errors import ModelFolderError
from dragoman.folder import quantised
from dragoman.folder.weights import assign_weights
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8

pytestmark = pytest.mark.skipif(
    not int8.available(), reason="this CPU has no 8-bit kernels in torch"
)


def float_model(norm_first: bool = False, source_vocab_size: int = 0) -> Transformer:
    torch.manual_seed(2)
    return Transformer(
        ModelConfig(
            vocab_size=300,
            source_vocab_size=source_vocab_size,
            d_model=64,
            d_ff=128,
            n_heads=4,
            encoder_layers=2,
            decoder_layers=2,
            norm_first=norm_first,
        )
    ).eval()


@pytest.mark.parametrize(("norm_first", "source_vocab_size"), [(False, 0), (True, 0), (False, 200)])
@torch.no_grad()
def test_the_numbers_are_near_those_of_the_float_model(
    norm_first: bool, source_vocab_size: int
) -> None:
    model = float_model(norm_first, source_vocab_size)
    small = int8.build(model.config, quantised.quantise(model))
    source, target = torch.randint(4, 200, (5, 9)), torch.randint(4, 300, (5, 7))
    lengths = torch.tensor([9, 4, 9, 1, 6])
    exact, near = model(source, target, lengths), small(source, target, lengths)
    # Rounding a value to one of 255 levels errs by 0.3% of the largest at most; a few layers of it
    # stay within some percent.
    assert float((near - exact).norm() / exact.norm()) < 0.03
    state, other = model.start(source, lengths), small.start(source, lengths)
    for position in range(3):
        tokens = target[:, position : position + 2]
        exact, near = model.step(tokens, state), small.step(tokens, other)
        assert float((near - exact).norm() / exact.norm()) < 0.03


@torch.no_grad()
def test_a_sentence_does_not_notice_its_company() -> None:
    model = float_model()
    small = int8.build(model.config, quantised.quantise(model))
    source, target = torch.randint(4, 300, (6, 8)), torch.randint(4, 300, (6, 5))
    together = small(source, target)
    for row in range(6):
        torch.testing.assert_close(
            small(source[row : row + 1], target[row : row + 1])[0],
            together[row],
            rtol=1e-5,
            atol=1e-5,
        )


def test_a_matrix_product_by_hand() -> None:
    weight = torch.tensor([[1.0, -2.0], [0.0, 4.0], [3.0, 3.0]])
    scale = weight.abs().amax(1) / 127
    layer = int8.Int8Linear(
        (weight / scale[:, None]).round().to(torch.int8), scale, torch.tensor([0.5, 0.0, -1.0])
    )
    x = torch.tensor([[1.0, 1.0], [0.0, 0.0], [-3.0, 6.0]])
    expected = torch.tensor(
        [[-0.5, 4.0, 5.0], [0.5, 0.0, -1.0], [-14.5, 24.0, 8.0]]
    )  # the row of zeros gives the bias
    torch.testing.assert_close(layer(x), expected, rtol=0.01, atol=0.05)


def test_every_row_uses_the_whole_range() -> None:
    tensors = quantised.quantise(float_model())
    weight = tensors["decoder.layers.0.feedforward.inner.weight"]
    assert weight.dtype == torch.int8
    assert (weight.abs().amax(1) == 127).all()
    assert set(tensors) == set(quantised.shapes(float_model().config))


def test_float_weights_by_hand() -> None:
    tensors = {
        "a.weight": torch.tensor([[127, -2], [0, 64]], dtype=torch.int8),
        "a.bias": torch.tensor([3.0]),
    }
    found = quantised.dequantise(tensors | {"a.weight.scale": torch.tensor([0.5, 2.0])})
    assert {name: tensor.tolist() for name, tensor in found.items()} == {
        "a.weight": [[63.5, -1.0], [0.0, 128.0]],
        "a.bias": [3.0],
    }


@torch.no_grad()
def test_float_from_int8_is_the_int8_model_but_for_the_activations() -> None:
    """Nearer to it than the float model is; those very weights, made int8 again, are the same
    integers."""
    model = float_model()
    tensors = quantised.quantise(model)
    small, again = int8.build(model.config, tensors), float_model()
    assign_weights(again, quantised.dequantise(tensors))
    source, target = torch.randint(4, 300, (5, 9)), torch.randint(4, 300, (5, 7))
    exact, near, back = model(source, target), small(source, target), again(source, target)
    assert float((back - near).norm()) < float((exact - near).norm()) < 0.03 * float(exact.norm())
    for name, tensor in quantised.quantise(again).items():
        torch.testing.assert_close(tensor, tensors[name])


def test_weights_that_are_not_integers_are_refused() -> None:
    model = float_model()
    tensors = quantised.quantise(model)
    tensors["decoder.layers.0.feedforward.inner.weight"] = tensors[
        "decoder.layers.0.feedforward.inner.weight"
    ].float()
    for refuse in (
        lambda: int8.build(model.config, tensors),
        lambda: quantised.dequantise(tensors),
    ):
        with pytest.raises(
            ModelFolderError, match=r"inner.weight among the int8 weights is torch.float32"
        ):
            refuse()
