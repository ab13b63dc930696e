"""What a checkpoint does differently in a way that weights can express, each as a function from
their tensors to ours. Where tensors and config.json do not fit together, the caller turns the
exception into a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from dragoman.model.model_config import ModelConfig

Json = Mapping[str, Any]
_LARGEST_TABLE = 2**23  # numbers; no weight bears witness to its length
Fold = Callable[[Tensor | None, ModelConfig, Json], Tensor]


def frequencies(_: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
    """Return the frequencies of rotary positions, stretched as the folder says."""
    rope = {"rope_theta": theirs.get("rope_theta", 10000.0)}
    rope |= theirs.get("rope_scaling") or {}
    rope |= theirs.get("rope_parameters") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    even = torch.arange(0, config.size, 2, dtype=torch.float32)
    exponents = even / config.size
    plain = float(rope["rope_theta"]) ** -exponents
    if kind == "default":
        return plain
    if kind == "linear":
        return plain / rope["factor"]
    if kind != "llama3":
        raise ValueError(
            f"rotary positions of the kind '{kind}' are not read; dragoman knows default, linear "
            "and llama3"
        )
    # Turns in the text that it was trained on.
    turns = rope["original_max_position_embeddings"] * plain / (2 * math.pi)
    low = rope["low_freq_factor"]
    high = rope["high_freq_factor"]
    share = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return plain * (share + (1 - share) / rope["factor"])


def _sines(rates: Callable[[int], Tensor], first: int) -> Fold:
    """All sines stand before all cosines, unlike in §3.5, and positions count from `first`."""

    def table(_: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
        if config.max_length * config.d_model > _LARGEST_TABLE:
            raise ValueError(
                f"{config.max_length:,} positions are more than a table of sines is made for"
            )
        last = config.max_length + first
        positions = torch.arange(first, last, dtype=torch.float64)
        half = config.d_model // 2
        angles = positions[:, None] * rates(half)
        both = torch.cat((angles.sin(), angles.cos()), dim=1)
        return both.float()

    return table


def _marian_rates(half: int) -> Tensor:
    every = torch.arange(half, dtype=torch.float64)
    return 10000.0 ** -(every / half)


def _m2m_rates(half: int) -> Tensor:
    """The last rate is 1 / 10,000 itself."""
    every = torch.arange(half, dtype=torch.float64)
    exponents = every * -math.log(10000) / (half - 1)
    return torch.exp(exponents)


def _shrunk(tensor: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
    """T5 divides by sqrt(d_model) before an output layer that is its embedding."""
    assert tensor is not None
    shrinks = theirs.get("scale_decoder_outputs", theirs.get("tie_word_embeddings", True))
    return tensor.float() * config.d_model**-0.5 if shrinks else tensor


def _typed(first: int) -> Fold:
    """BERT adds a row for the kind of text to each position; we only have the first kind. The table
    of positions, which count from `first`, comes with that of the kinds behind it."""

    def fold(tensor: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
        assert tensor is not None
        kinds = first + config.max_length
        if len(tensor) != kinds + theirs.get("type_vocab_size", 2):
            return tensor  # whose shape is then reported as wrong
        positions = tensor[first:kinds].float()
        first_kind = tensor[kinds].float()
        return positions + first_kind

    return fold


def _second_kind(tensor: Tensor, _: ModelConfig) -> Tensor:
    """How BERT's row for the second of two texts differs from the first kind's, which is part of
    the positions."""
    first, second = tensor.float()
    return second - first


def _given(work: Callable[[Tensor, ModelConfig], Tensor]) -> Fold:
    """A fold of a tensor that is always there."""

    def fold(tensor: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
        assert tensor is not None
        return work(tensor, config)

    return fold


def _flat(tensor: Tensor, _: ModelConfig) -> Tensor:
    return tensor.flatten()


def _without_two(tensor: Tensor, _: ModelConfig) -> Tensor:
    """Two rows are never used."""
    return tensor[2:]


def _rows(tensor: Tensor, _: ModelConfig) -> Tensor:
    """A convolution that takes each square once is a product."""
    return tensor.flatten(1)


def _only(tensor: Tensor, _: ModelConfig) -> Tensor:
    return tensor[0]


def _behind_zeros(tensor: Tensor, _: ModelConfig) -> Tensor:
    """Whisper's keys have no bias."""
    return torch.cat((torch.zeros_like(tensor), tensor))


def _turned(tensor: Tensor, _: ModelConfig) -> Tensor:
    """GPT-2's matrices lie the other way round."""
    return tensor.T if tensor.dim() == 2 else tensor


def _first_third(tensor: Tensor, config: ModelConfig) -> Tensor:
    return _turned(tensor, config).chunk(3)[0]


def _other_thirds(tensor: Tensor, config: ModelConfig) -> Tensor:
    _, *others = _turned(tensor, config).chunk(3)
    return torch.cat(others)


def _first_heads(tensor: Tensor, config: ModelConfig) -> Tensor:
    """Falcon's queries stand before its keys and values."""
    return tensor[: config.n_heads * config.size]


def _behind_heads(tensor: Tensor, config: ModelConfig) -> Tensor:
    return tensor[config.n_heads * config.size :]


def _by_heads(tensor: Tensor, config: ModelConfig) -> Tensor:
    """XLNet's matrices lie the other way round, heads apart; several are joined."""
    parts = tensor.split(config.d_model)
    return torch.cat([part.flatten(1).T for part in parts])


def _no_bias(_: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
    """Qwen2 has biases on queries, keys and values alone."""
    return torch.zeros(config.d_model)


def _no_inner_bias(_: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
    return torch.zeros(config.d_ff)


def _unscaled(tensor: Tensor, config: ModelConfig) -> Tensor:
    """T5 does not divide by sqrt(d_k)."""
    return tensor.float() * math.sqrt(config.size)


FOLDS: dict[str, Fold] = {
    "flat": _given(_flat),
    "skip2": _given(_without_two),
    "rows": _given(_rows),
    "only": _given(_only),
    "behind_zeros": _given(_behind_zeros),
    "second_kind": _given(_second_kind),
    "typed": _typed(0),
    "typed_from_2": _typed(2),
    "turned": _given(_turned),
    "first_third": _given(_first_third),
    "other_thirds": _given(_other_thirds),
    "first_heads": _given(_first_heads),
    "behind_heads": _given(_behind_heads),
    "by_heads": _given(_by_heads),
    "no_bias": _no_bias,
    "no_inner_bias": _no_inner_bias,
    "unscaled": _given(_unscaled),
    "shrunk": _shrunk,
    "sines": _sines(_marian_rates, 0),
    "sines_from_2": _sines(_m2m_rates, 2),
    "frequencies": frequencies,
}
