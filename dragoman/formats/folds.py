"""What a checkpoint does differently in a way that weights can express, each as a function from
their tensors to ours. Where tensors and config.json do not go together, whoever calls it turns
the exception into a sentence."""

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


def _sines(rate: Callable[[int], Tensor], first: int) -> Fold:
    """All sines stand before all cosines, unlike in §3.5, and positions count from `first`."""

    def table(_: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
        if config.max_length * config.d_model > _LARGEST_TABLE:
            raise ValueError(
                f"{config.max_length:,} positions are more than a table of sines is made for"
            )
        angles = torch.arange(first, config.max_length + first, dtype=torch.float64)[
            :, None
        ] * rate(config.d_model // 2)
        return torch.cat((angles.sin(), angles.cos()), dim=1).float()

    return table


def frequencies(_: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
    """Of rotary positions, stretched as the folder says."""
    rope = {"rope_theta": theirs.get("rope_theta", 10000.0), **(theirs.get("rope_scaling") or {})}
    rope |= theirs.get("rope_parameters") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    plain = float(rope["rope_theta"]) ** -(
        torch.arange(0, config.size, 2, dtype=torch.float32) / config.size
    )
    if kind == "default":
        return plain
    if kind == "linear":
        return plain / rope["factor"]
    if kind != "llama3":
        raise ValueError(
            f"rotary positions of the kind '{kind}' are not read; dragoman knows default, linear and llama3"
        )
    turns = (
        rope["original_max_position_embeddings"] * plain / (2 * math.pi)
    )  # in the text that it was trained on
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    share = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return plain * (share + (1 - share) / rope["factor"])


def _shrunk(tensor: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
    """T5 divides by sqrt(d_model) before an output layer that is its embedding."""
    assert tensor is not None
    shrinks = theirs.get("scale_decoder_outputs", theirs.get("tie_word_embeddings", True))
    return tensor.float() * config.d_model**-0.5 if shrinks else tensor


def _turned(tensor: Tensor) -> Tensor:
    """GPT-2's matrices lie the other way round."""
    return tensor.T if tensor.dim() == 2 else tensor


def _typed(first: int) -> Fold:
    """BERT adds a row for the kind of text to each position; the first kind is all that we have.
    The table of positions, which count from `first`, comes with that of the kinds behind it."""

    def fold(tensor: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
        assert tensor is not None
        kinds = first + config.max_length
        if len(tensor) != kinds + theirs.get("type_vocab_size", 2):
            return tensor  # whose shape is then found to be wrong
        return tensor[first:kinds].float() + tensor[kinds].float()

    return fold


def _given(work: Callable[[Tensor, ModelConfig], Tensor]) -> Fold:
    def fold(tensor: Tensor | None, config: ModelConfig, theirs: Json) -> Tensor:
        assert tensor is not None
        return work(tensor, config)

    return fold


FOLDS: dict[str, Fold] = {
    "flat": _given(lambda tensor, config: tensor.flatten()),
    "skip2": _given(lambda tensor, config: tensor[2:]),  # two rows that are never used
    "rows": _given(
        lambda tensor, config: tensor.flatten(1)
    ),  # a convolution that takes each square once is a product
    "only": _given(lambda tensor, config: tensor[0]),
    "behind_zeros": _given(
        lambda tensor, config: torch.cat((torch.zeros_like(tensor), tensor))
    ),  # Whisper's keys have no bias
    "typed": _typed(0),
    "typed_from_2": _typed(2),
    "turned": _given(lambda tensor, config: _turned(tensor)),
    "first_third": _given(lambda tensor, config: _turned(tensor).chunk(3)[0]),
    "other_thirds": _given(lambda tensor, config: torch.cat(_turned(tensor).chunk(3)[1:])),
    "unscaled": _given(
        lambda tensor, config: tensor.float() * math.sqrt(config.size)
    ),  # T5 does not divide by sqrt(d_k)
    "shrunk": _shrunk,
    "sines": _sines(lambda half: 10000.0 ** -(torch.arange(half, dtype=torch.float64) / half), 0),
    "sines_from_2": _sines(
        lambda half: torch.exp(
            torch.arange(half, dtype=torch.float64) * -math.log(10000) / (half - 1)
        ),
        2,
    ),
    "frequencies": frequencies,
}
