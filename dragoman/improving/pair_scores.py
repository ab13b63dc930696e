"""What judges a pair of texts, by the model that is named: a translator says how likely it finds
the translation, an encoder how near both texts lie to each other. Knows pairs and models; no files
of text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from dragoman.folder.description import load_description
from dragoman.improving.forced_scores import ForcedScorer
from dragoman.tasks.encode import TextEncoder


class PairScorer(Protocol):
    """A model that judges pairs."""

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return a number for each pair, the higher the better."""
        ...


class CosineScorer:
    """An encoder, as `train --task embed` makes one."""

    def __init__(self, folder: Path, device: str) -> None:
        self._encoder = TextEncoder.load(folder, device)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The cosine between the texts of each pair: 1 where they mean the same."""
        sources = self._encoder.embed([source for source, _ in pairs])
        targets = self._encoder.embed([target for _, target in pairs])
        cosines: list[float] = (sources * targets).sum(1).tolist()
        return cosines


def pair_scorer(folder: Path, device: str) -> PairScorer:
    """Return what judges pairs by the model of a folder."""
    description, _ = load_description(folder)
    if description.model.decoder_layers:
        return ForcedScorer(folder, device)
    return CosineScorer(folder, device)
