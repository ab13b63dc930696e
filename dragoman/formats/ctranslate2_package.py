"""The package CTranslate2, as the exporter and the runtime both ask it: how it is imported, how a
search is asked for, and what it answers in our terms. Knows pieces and tokens; no weights, no text
and no torch."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

from dragoman.decoding.hypothesis import length_penalty
from dragoman.errors import MissingDependencyError
from dragoman.text.tokenizer import EOS, Tokenizer

# How a search is asked for whose result `ranked` reads. With a length penalty of 0 itself the
# search would end at its first hypothesis.
ASKED: Mapping[str, Any] = {
    "length_penalty": 1e-9,
    "return_scores": True,
    "return_end_token": True,
    "max_input_length": 0,
}


class Output(NamedTuple):
    """One output of a search; the greatest is the best."""

    finished: bool
    score: float  # the log-probability divided by our length penalty
    tokens: tuple[int, ...]  # without the end


def package() -> ModuleType:
    """Import CTranslate2, or say how to install it."""
    try:
        return importlib.import_module("ctranslate2")
    except ImportError:
        raise MissingDependencyError.for_extra("CTranslate2", "ctranslate2") from None


def target_ids(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the token of each target piece."""
    pieces = tokenizer.pieces(range(tokenizer.target_size), "target")
    return {piece: token for token, piece in enumerate(pieces)}


def ranked(result: Any, ids: Mapping[str, int], alpha: float, limit: int) -> list[Output]:
    """Return what a search found, best first, each output cut to `limit` tokens, its end
    counted."""
    outputs = []
    for pieces, total in zip(result.hypotheses, result.scores, strict=True):
        tokens = tuple(ids[piece] for piece in pieces[:limit])
        finished = tokens[-1:] == (EOS,)
        score = total / length_penalty(float(len(pieces)), alpha)
        outputs.append(Output(finished, score, tokens[:-1] if finished else tokens))
    return sorted(outputs, reverse=True)
