"""How good an encoder is on sentences and pairs of texts that were held out: labels of words and
their spans, and how often texts find their partners."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.data.batch_plan import plan_once
from dragoman.data.word_examples import TextPairs, WordExamples
from dragoman.folder.description import Description
from dragoman.model.heads import text_vectors
from dragoman.model.transformer import Transformer
from dragoman.tasks.retrieval import found_right
from dragoman.tasks.span_scores import has_spans, score_labels
from dragoman.training.contrastive_loss import pair_losses
from dragoman.training.loss import ModelLoss
from dragoman.training.training_options import TrainingOptions
from dragoman.training.validation import BATCH_TOKENS, Measured, ValidSet

_PAIRS_AT_ONCE = 1024  # of which the loss is computed, each beside the others of its part


class ValidLabels(ValidSet):
    """Held-out sentences whose words have labels."""

    def __init__(self, examples: WordExamples, description: Description) -> None:
        super().__init__(examples)
        self._names = description.labels

    def measure(self, model: Transformer, device: torch.device) -> Measured:
        """The loss, the share of right labels and, where labels form spans, their F1."""
        module = ModelLoss(model, smoothing=0.0)
        total = 0.0
        right = 0
        found: list[list[str]] = []
        gold: list[list[str]] = []
        for rows in plan_once(self.examples, BATCH_TOKENS):
            batch = self.examples.batch(rows).to(device)
            logits = module.logits(batch).float()
            loss = F.cross_entropy(logits, batch.labels, reduction="sum")
            total += loss.item()
            likeliest = logits.argmax(1)
            right += int((likeliest == batch.labels).sum())
            _, words = self.examples.lengths(rows)
            found += self._split(likeliest, words.tolist())
            gold += self._split(batch.labels, words.tolist())
        count = sum(map(len, gold))
        metrics = {
            "valid_loss": total / count,
            "accuracy": right / count,
        }
        if has_spans(self._names):
            scores = score_labels(found, gold)
            metrics["f1"] = scores.f1 or 0.0
        return metrics, ()

    def _split(self, labels: Tensor, words: list[int]) -> list[list[str]]:
        """Labels end to end as the names of each sentence."""
        parts = labels.cpu().split(words)
        return [[self._names[number] for number in part.tolist()] for part in parts]


class ValidVectors(ValidSet):
    """Held-out pairs of texts that belong together."""

    def __init__(self, examples: TextPairs, options: TrainingOptions) -> None:
        super().__init__(examples)
        self._options = options

    def measure(self, model: Transformer, device: torch.device) -> Measured:
        """The loss, and how often the nearest text of the other side is the right one."""
        order = []
        vectors: list[Tensor] = []
        texts: list[Tensor] = []
        for rows in plan_once(self.examples, BATCH_TOKENS):
            batch = self.examples.batch(rows).to(device)
            read = model.encode(batch.source, batch.lengths)
            made = text_vectors(read, batch.lengths)
            vectors.append(made.float().view(2, len(rows), -1))
            texts.append(batch.positions.view(2, -1))
            order.append(rows)
        places = np.argsort(np.concatenate(order))
        as_before = torch.from_numpy(places).to(device)
        of_sides = torch.cat(vectors, dim=1)[:, as_before]
        numbers = torch.cat(texts, dim=1)[:, as_before]
        sources, targets = of_sides.cpu().numpy()
        pairs = list(zip(*numbers.tolist(), strict=True))
        there, back = found_right(sources, targets, pairs)
        both = there.mean() + back.mean()
        metrics = {
            "valid_loss": self._loss(of_sides, numbers),
            "accuracy": float(both) / 2,
        }
        return metrics, ()

    def _loss(self, vectors: Tensor, texts: Tensor) -> float:
        """The loss of a pair without the margin, among the held-out pairs."""
        total = 0.0
        for first in range(0, vectors.size(1), _PAIRS_AT_ONCE):
            here = slice(first, first + _PAIRS_AT_ONCE)
            losses = pair_losses(vectors[:, here], texts[:, here], self._options.temperature, 0.0)
            total += losses.sum().item()
        return total / vectors.size(1)
