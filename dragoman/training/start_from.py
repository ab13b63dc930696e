"""The weights that a model starts from when another is its origin: a student's its teacher's, or a
continued model's with more or fewer layers. Knows weights by their names; knows no folders.

With fewer layers, those are taken that lie evenly among the origin's, the first and the last of
them included; a single layer is the last, whose output the final norm expects. With more layers,
each new one is a copy of the one below it whose output projections are zero, so that at first it
passes on what it gets; the training then finds a use for it. Gong et al. (2019) stack copies too,
but whole ones, which start from a worse loss. That takes the norm first: after a sum, the norm of
a new layer would change what passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer

LAYERS = ("encoder_layers", "decoder_layers")
_STACKS = ("encoder", "decoder")
_OUTPUTS = ("out", "outer")  # the projections that end attention and feed-forward
_EMBEDDINGS = ".embeddings."


def can_change_layers(old: ModelConfig, wanted: Mapping[str, object]) -> bool:
    """Return whether a model can be continued with the `wanted` numbers of layers."""
    for name in LAYERS:
        before = getattr(old, name)
        after = wanted.get(name, before)
        if not isinstance(after, int) or (after == 0) != (before == 0):
            return False
        if after > before and not old.norm_first:
            return False
    return True


def with_layers(
    weights: Mapping[str, Tensor], old: ModelConfig, new: ModelConfig
) -> dict[str, Tensor]:
    """Return the weights of `old` for a model that has the numbers of layers of `new`."""
    arranged = {name: weight for name, weight in weights.items() if ".layers." not in name}
    for stack in _STACKS:
        layers = _by_layer(weights, f"{stack}.layers.")
        before = None
        for number, origin in enumerate(_origins_of(stack, old, new)):
            is_silent = origin == before and new.norm_first
            before = origin
            for rest, weight in layers[origin].items():
                is_output = rest.split(".")[-2] in _OUTPUTS
                value = weight.clone()
                if is_silent and is_output:
                    value.zero_()
                arranged[f"{stack}.layers.{number}.{rest}"] = value
    return arranged


def fitted(
    weights: Mapping[str, Tensor], old: ModelConfig, new: ModelConfig, drawn: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the weights of `new`: those of `old` wherever they fit, else those `drawn`."""
    arranged = _fitting(weights, old, new)
    return {
        name: arranged[name] if _has(arranged, name, own) else own.detach().cpu()
        for name, own in drawn.items()
    }


@dataclass(frozen=True)
class Inheritance:
    """How much of a model comes from its origin."""

    share: float  # of its weights
    sentence: str  # in words that follow "The student"


def inheritance(old: ModelConfig, new: ModelConfig) -> Inheritance:
    """Return what a model of `new` takes over from one of `old`; nothing is computed."""
    with torch.device("meta"):
        origin = dict(Transformer(old).named_parameters())
        drawn = dict(Transformer(new).named_parameters())
    arranged = _fitting(origin, old, new)
    fitting = [name for name, own in drawn.items() if _has(arranged, name, own)]
    taken = sum(drawn[name].numel() for name in fitting)
    total = sum(own.numel() for own in drawn.values())
    share = taken / total
    misfit = f"since {_misfit(old, new)}"
    if not fitting:
        return Inheritance(0.0, f"starts from random weights, {misfit}")
    what = "the embeddings"
    if any(".layers." in name for name in fitting):
        of_stacks = [_in_words(stack, old, new) for stack in _STACKS]
        what = " and ".join(part for part in of_stacks if part)
    rest = "" if len(fitting) == len(drawn) else f"; the rest is random, {misfit}"
    sentence = f"starts from its teacher: {what}, {share:.0%} of its weights{rest}"
    return Inheritance(share, sentence)


def origins(before: int, after: int) -> list[int]:
    """Return from which old layer each new one comes, in their order."""
    if not before:
        return []
    if after == 1:
        return [before - 1]
    if after > before:
        return [number * before // after for number in range(after)]
    return [round(number * (before - 1) / (after - 1)) for number in range(after)]


def _fitting(
    weights: Mapping[str, Tensor], old: ModelConfig, new: ModelConfig
) -> Mapping[str, Tensor]:
    """The weights that mean the same in both models, by their new names. A layer that norms
    elsewhere or has other heads would be another layer with the same numbers."""
    if _alike(old, new):
        return with_layers(weights, old, new)
    if old.d_model != new.d_model:
        return {}
    return {name: weight for name, weight in weights.items() if _EMBEDDINGS in name}


def _has(weights: Mapping[str, Tensor], name: str, like: Tensor) -> bool:
    return name in weights and weights[name].shape == like.shape


def _alike(old: ModelConfig, new: ModelConfig) -> bool:
    """Whether the models differ at most in sizes that the shapes of weights show."""
    return old == replace(
        new,
        dropout=old.dropout,
        max_length=old.max_length,
        vocab_size=old.vocab_size,
        source_vocab_size=old.source_vocab_size,
        d_ff=old.d_ff,
        decoder_d_ff=old.decoder_d_ff,
        encoder_layers=old.encoder_layers,
        decoder_layers=old.decoder_layers,
    )


def _misfit(old: ModelConfig, new: ModelConfig) -> str:
    """The first option, the width before others, in which two models differ."""
    ignored = ("dropout", "max_length", *LAYERS)
    names = ["d_model", *(name for name in vars(old) if name != "d_model")]
    for name in names:
        own = getattr(new, name)
        other = getattr(old, name)
        if name not in ignored and own != other:
            return f"its {name} is {own} and not {other}"
    return "the origin has no such layers"


def _origins_of(stack: str, old: ModelConfig, new: ModelConfig) -> list[int]:
    return origins(getattr(old, f"{stack}_layers"), getattr(new, f"{stack}_layers"))


def _in_words(stack: str, old: ModelConfig, new: ModelConfig) -> str:
    chosen = [str(number + 1) for number in _origins_of(stack, old, new)]
    if not chosen:
        return ""
    layers = "layer" if len(chosen) == 1 else "layers"
    return f"{stack} {layers} {', '.join(chosen)} of {getattr(old, f'{stack}_layers')}"


def _by_layer(weights: Mapping[str, Tensor], head: str) -> dict[int, dict[str, Tensor]]:
    layers: dict[int, dict[str, Tensor]] = {}
    for name, weight in weights.items():
        if name.startswith(head):
            number, rest = name[len(head) :].split(".", 1)
            layers.setdefault(int(number), {})[rest] = weight
    return layers
