"""How likely a model finds given translations: the mean log-probability of a target token, for
each pair. Knows tokens and batches; searches for nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.data.batches import Batch
from dragoman.folder.description import load_description
from dragoman.folder.weights import load_model
from dragoman.runtimes.device import pick_device
from dragoman.text.tokenizer import Side, Tokenizer
from dragoman.training.loss import ModelLoss

_BATCH_TOKENS = 4096
_WORST = -30.0  # for what a model cannot read at all


class ForcedScorer:
    """A model that judges pairs."""

    def __init__(self, folder: Path, device: str) -> None:
        self._device = pick_device(device)
        self._description, self._tokenizer = load_description(folder)
        model = load_model(folder, self._description.model, self._device)
        self._module = ModelLoss(model.eval(), smoothing=0.0)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The mean log-probability of a target token in each pair; 0 is certainty."""
        return self._of_pairs(pairs, lambda losses: -float(losses.mean()), _WORST)

    def surprises(self, pairs: Sequence[tuple[str, str]], probability: float) -> list[float]:
        """The share of the target tokens of each pair that are less probable than this; a word that
        the model would never say surprises it once, another sentence at almost every token."""
        most = -math.log(probability)
        return self._of_pairs(pairs, lambda losses: float((losses > most).float().mean()), 1.0)

    def _of_pairs(
        self, pairs: Sequence[tuple[str, str]], of_losses: Callable[[Tensor], float], worst: float
    ) -> list[float]:
        """A number for each pair, made of the losses of its target tokens."""
        sources = _encoded(self._tokenizer, [source for source, _ in pairs], "source")
        targets = _encoded(self._tokenizer, [target for _, target in pairs], "target")
        scores = [worst] * len(pairs)
        longest = self._description.model.max_length
        order = []
        for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
            if max(len(source), len(target)) <= longest:
                order.append(row)
        order.sort(key=lambda row: len(sources[row]) + len(targets[row]))
        for rows in _batches(order, sources, targets):
            batch_sources = [sources[row] for row in rows]
            batch_targets = [targets[row] for row in rows]
            found = self._losses(batch_sources, batch_targets)
            for row, losses in zip(rows, found, strict=True):
                scores[row] = of_losses(losses)
        return scores

    @torch.inference_mode()
    def _losses(self, sources: list[list[int]], targets: list[list[int]]) -> Sequence[Tensor]:
        """The losses of the target tokens of each pair."""
        batch = _batch(sources, targets, self._tokenizer.frame.start)
        batch = batch.to(self._device)
        logits = self._module.logits(batch)
        losses = F.cross_entropy(logits.float(), batch.labels, reduction="none")
        lengths = [len(target) for target in targets]
        return losses.cpu().split(lengths)


def _encoded(tokenizer: Tokenizer, texts: list[str], side: Side) -> list[list[int]]:
    """The tokens of each text, with those that stand around them."""
    frame = tokenizer.frame
    framed = frame.source if side == "source" else frame.target
    return [framed(tokens) for tokens in tokenizer.encode(texts, side)]


def _batches(
    order: list[int], sources: list[list[int]], targets: list[list[int]]
) -> list[list[int]]:
    """Rows of like length, together no more tokens than fit."""
    batches: list[list[int]] = []
    rows: list[int] = []
    for row in order:
        width = max(len(sources[row]), len(targets[row]))
        if rows and (len(rows) + 1) * width > _BATCH_TOKENS:
            batches.append(rows)
            rows = []
        rows.append(row)
    return [*batches, rows] if rows else batches


def _batch(sources: list[list[int]], targets: list[list[int]], start: int) -> Batch:
    source = _padded(sources)
    target = _padded(targets)
    shifted = np.empty_like(target)
    shifted[:, 0] = start
    shifted[:, 1:] = target[:, :-1]
    lengths = np.array([len(row) for row in sources])
    ends = np.array([len(row) for row in targets])
    positions = np.flatnonzero(np.arange(target.shape[1]) < ends[:, None])
    return Batch(
        source=torch.from_numpy(source),
        target=torch.from_numpy(shifted),
        lengths=torch.from_numpy(lengths),
        positions=torch.from_numpy(positions),
        labels=torch.from_numpy(target.ravel()[positions]),
    )


def _padded(rows: list[list[int]]) -> np.ndarray:
    padded = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded
