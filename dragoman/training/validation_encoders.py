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
        found: list[list[str]] = []
        gold: list[list[str]] = []
        for rows in plan_once(self.examples, BATCH_TOKENS):
            batch = self.examples.batch(rows).to(device)
            logits = module.logits(batch).float()
            total += F.cross_entropy(logits, batch.labels, reduction="sum").item()
            _, words = self.examples.lengths(rows)
            found += self._split(logits.argmax(1), words.tolist())
            gold += self._split(batch.labels, words.tolist())
        pairs = list(zip(found, gold, strict=True))
        right = sum(sum(map(str.__eq__, *pair)) for pair in pairs)
        count = sum(map(len, gold))
        metrics = {"valid_loss": total / count, "accuracy": right / count}
        if has_spans(self._names):
            metrics["f1"] = score_labels(found, gold).f1 or 0.0
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
            made = text_vectors(model.encode(batch.source, batch.lengths), batch.lengths)
            vectors.append(made.float().view(2, len(rows), -1))
            texts.append(batch.positions.view(2, -1))
            order.append(rows)
        back = torch.from_numpy(np.argsort(np.concatenate(order)))
        of_sides = torch.cat(vectors, dim=1)[:, back.to(device)]
        numbers = torch.cat(texts, dim=1)[:, back.to(device)]
        sources, targets = of_sides.cpu().numpy()
        pairs = list(zip(*numbers.tolist(), strict=True))
        there, home = found_right(sources, targets, pairs)
        accuracy = float(there.mean() + home.mean()) / 2
        return {"valid_loss": self._loss(of_sides, numbers), "accuracy": accuracy}, ()

    def _loss(self, vectors: Tensor, texts: Tensor) -> float:
        """The loss of a pair without the margin, among the held-out pairs."""
        total = 0.0
        for first in range(0, vectors.size(1), _PAIRS_AT_ONCE):
            here = slice(first, first + _PAIRS_AT_ONCE)
            losses = pair_losses(vectors[:, here], texts[:, here], self._options.temperature, 0.0)
            total += losses.sum().item()
        return total / vectors.size(1)
