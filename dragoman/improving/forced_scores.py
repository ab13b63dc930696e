"""How likely a model finds given translations: the mean log-probability of a target token, for
each pair. Knows tokens and batches; searches for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

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
        sources = _encoded(self._tokenizer, [source for source, _ in pairs], "source")
        targets = _encoded(self._tokenizer, [target for _, target in pairs], "target")
        scores = [_WORST] * len(pairs)
        longest = self._description.model.max_length
        order = [
            row
            for row in range(len(pairs))
            if len(sources[row]) <= longest and len(targets[row]) <= longest
        ]
        order.sort(key=lambda row: (len(sources[row]) + len(targets[row]), row))
        for rows in _batches(order, sources, targets):
            found = self._mean_scores(
                [sources[row] for row in rows], [targets[row] for row in rows]
            )
            for row, score in zip(rows, found, strict=True):
                scores[row] = score
        return scores

    @torch.inference_mode()
    def _mean_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[float]:
        batch = _batch(sources, targets, self._tokenizer.frame.start).to(self._device)
        logits = self._module.logits(batch).float()
        losses = F.cross_entropy(logits, batch.labels, reduction="none").cpu()
        of_rows = losses.split([len(target) for target in targets])
        return [-float(part.mean()) for part in of_rows]


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
