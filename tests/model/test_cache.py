"""Decoding with the cache equals one pass over the whole target, for beams, after a reorder and
after sentences have left."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dragoman.kernels.joint_projection import join_projections
from dragoman.model.cache import LayerCache
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer

SOURCE = torch.tensor([[4, 9, 6, 3, 0], [7, 3, 0, 0, 0], [5, 8, 2, 9, 3]])
LENGTHS = torch.tensor([4, 2, 5])


def tiny(norm_first: bool = False) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=20,
        d_model=32,
        d_ff=64,
        n_heads=4,
        encoder_layers=2,
        decoder_layers=2,
        norm_first=norm_first,
    )
    return Transformer(config).eval()


def whole(model: Transformer, sentence: int, target: list[int]) -> Tensor:
    """Log-probabilities after the last token of one sentence's target, by one pass without any
    cache."""
    source = SOURCE[sentence : sentence + 1, : int(LENGTHS[sentence])]
    return model(source, torch.tensor([target]))[0, -1].log_softmax(-1)


@pytest.mark.parametrize("norm_first", [False, True])
@torch.no_grad()
def test_steps_equal_one_pass(norm_first: bool) -> None:
    model, target = (
        tiny(norm_first),
        torch.randint(20, (3, 40), generator=torch.Generator().manual_seed(1)),
    )
    state = model.start(SOURCE, LENGTHS)
    steps = torch.cat(
        [model.step(target[:, i : i + 1], state).log_softmax(-1) for i in range(40)], dim=1
    )  # the cache grows twice on the way
    torch.testing.assert_close(
        steps, model(SOURCE, target, LENGTHS).log_softmax(-1), rtol=1e-4, atol=1e-5
    )


@torch.no_grad()
def test_beams_reordered_and_sentences_gone() -> None:
    model = tiny()
    state = model.start(SOURCE, LENGTHS)
    histories = [[[1]] * 3 for _ in range(3)]  # sentence -> beam -> tokens
    sentences = [0, 1, 2]
    generator = torch.Generator().manual_seed(3)
    first = torch.tensor([[1] * 3] * 3)
    check(model, sentences, histories, model.step(first, state))

    for round_ in range(20):  # the room grows on the way
        newest = torch.randint(20, (len(sentences), 3), generator=generator)
        histories = [
            [[*history, int(t)] for history, t in zip(beams, row, strict=True)]
            for beams, row in zip(histories, newest, strict=True)
        ]
        check(model, sentences, histories, model.step(newest, state))
        order = torch.randint(3, (len(sentences), 3), generator=generator)
        state.reorder(order)
        histories = [
            [list(beams[int(k)]) for k in row] for beams, row in zip(histories, order, strict=True)
        ]
        if round_ in (1, 3):
            stay = torch.tensor([0, 2]) if round_ == 1 else torch.tensor([1])
            state.keep(stay)
            sentences, histories = [sentences[i] for i in stay], [histories[i] for i in stay]


def check(
    model: Transformer, sentences: list[int], histories: list[list[list[int]]], logits: Tensor
) -> None:
    log_probs = logits.log_softmax(-1)
    expected = [
        torch.stack([whole(model, s, tokens) for tokens in beams])
        for s, beams in zip(sentences, histories, strict=True)
    ]
    torch.testing.assert_close(log_probs, torch.stack(expected), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(log_probs.shape[:2]))


@torch.no_grad()
def test_the_memory_is_held_once_per_sentence() -> None:
    state = tiny().start(SOURCE, LENGTHS)
    tiny().step(torch.ones(3, 5, dtype=torch.long), state)
    held = [keys_values for keys_values in state.memory if keys_values is not None]
    assert len(held) == len(state.memory)
    assert [key.shape for key, _ in held] == [(3, 4, 5, 8)] * 2


def test_a_layer_cache_returns_what_it_was_given() -> None:
    cache, given = LayerCache(), [torch.randn(2, 1, 3, 4) for _ in range(35)]
    for i, one in enumerate(given):
        keys, values = cache.append(torch.stack([one, -one]), torch.tensor([i]), i + 1)
        assert torch.equal(
            keys, torch.cat(given[: i + 1], dim=2)
        )  # position after position, the beams side by side
        assert torch.equal(values, -keys)


@torch.no_grad()
def test_joint_matrices_give_the_same() -> None:
    tokens = torch.tensor([[1, 5], [2, 6], [3, 7]])
    expected = tiny().step(tokens, tiny().start(SOURCE, LENGTHS))
    joint = tiny()
    join_projections(joint)
    torch.testing.assert_close(joint.step(tokens, joint.start(SOURCE, LENGTHS)), expected)


def test_fixed_caches_begin_with_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention sees all of them; a mask hides numbers, and not what is none."""
    state = tiny().start(SOURCE, LENGTHS)
    monkeypatch.setattr(Tensor, "new_empty", lambda like, *shape: like.new_full(shape, torch.nan))
    state.fix(6, torch.ones(2, 3, 4, 2, 8))
    for cache in state.layers:
        assert cache.both is not None
        assert not cache.both.any()
