"""How good a model is on the valid set: loss, and BLEU and chrF of its greedy translations, or
what other tasks are measured by."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F

from dragoman.data.batch_plan import plan_once
from dragoman.data.batches import Examples, Pairs
from dragoman.decoding.search_options import SearchOptions
from dragoman.folder import layout
from dragoman.folder.description import Description
from dragoman.model.transformer import Transformer
from dragoman.runtimes.torch_runtime import NativeRuntime
from dragoman.tasks.evaluate import Scores, Scoring, score, tokenize_for
from dragoman.tasks.translate import Translator
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.loss import TranslationLoss


@dataclass(frozen=True)
class Quality:
    """What a validation found; `value` is what the best checkpoint is chosen by, larger is better."""

    value: float
    metrics: dict[str, float] = field(
        default_factory=dict
    )  # valid_loss, and bleu and chrf, perplexity or accuracy


class ValidSet:
    """The valid pairs, as tokens for the loss and as text for the scores."""

    pairs: Examples
    static = False  # whether all of them are of one length

    def __init__(
        self,
        folder: Path,
        dtype: str,
        tokenizer: Tokenizer,
        description: Description,
        sentences: int,
    ) -> None:
        self.pairs = Pairs(folder, dtype, description.frame.start)
        self.tokenizer = tokenizer
        self.description = description
        with open(folder / layout.TEXT, encoding="utf-8", newline="\n") as file:
            lines = [line.rstrip("\n").split("\t") for line, _ in zip(file, range(sentences))]  # noqa: B905
        self.sources, self.references = [line[0] for line in lines], [line[1] for line in lines]

    def __len__(self) -> int:
        return len(self.pairs)

    def quality(
        self,
        model: Transformer,
        device: torch.device,
        select: str,
        autocast: Callable[[], AbstractContextManager[object]],
    ) -> Quality:
        """Measured in eval mode, without compiled code, whose shapes are those of training."""
        was_training = model.training
        model.eval()
        with torch.inference_mode(), torch.compiler.set_stance("force_eager"), autocast():
            metrics = self._measure(model, device)
        model.train(was_training)
        # Of equally many right answers, those that were given with more certainty are better.
        share = {"loss": 1.0, "accuracy": 1e-6}.get(select, 0.0)
        return Quality(metrics.get(select, 0.0) - share * metrics["valid_loss"], metrics)

    def _measure(self, model: Transformer, device: torch.device) -> dict[str, float]:
        metrics = {"valid_loss": self._loss(model, device)}
        if self.sources:
            scores = self.scores(model, device, quick=True)
            metrics["bleu"], metrics["chrf"] = scores.bleu.value, scores.chrf.value
        return metrics

    def _loss(self, model: Transformer, device: torch.device) -> float:
        """Plain cross-entropy a token."""
        total, tokens = 0.0, 0
        loss = TranslationLoss(model, 0.0)
        for rows in plan_once(self.pairs, 4096):
            batch = self.pairs.batch(rows).to(device)
            total, tokens = total + loss(batch)[1].item(), tokens + len(batch.labels)
        return total / tokens

    def scores(self, model: Transformer, device: torch.device, quick: bool = False) -> Scores:
        """BLEU and chrF of the translated sentences; quickly means greedily and without intervals."""
        runtime = NativeRuntime(model, device, self.tokenizer.joins(), frame=self.description.frame)
        translator = Translator(runtime, self.tokenizer, self.description)
        options, tokenize = (
            SearchOptions(beam=1) if quick else SearchOptions(),
            tokenize_for(self.description.target_language),
        )
        outputs = [
            translation.text
            for translation in translator.translate(self.sources, options, split=False)
        ]
        scoring = Scoring(tokenize, bootstrap=0 if quick else 1000)
        return score(outputs, self.references, scoring)


class HeldOut(ValidSet):
    """Examples of a task other than translation: blocks of text or of masked text, labelled
    texts or images."""

    def __init__(self, examples: Examples, static: bool) -> None:
        self.pairs, self.static, self.sources = examples, static, []

    def _measure(self, model: Transformer, device: torch.device) -> dict[str, float]:
        """Perplexity where every token is told from those before it, else how many answers are
        right."""
        if model.config.decoder_layers:
            found = self._loss(model, device)
            return {"valid_loss": found, "perplexity": math.exp(min(found, 700.0))}
        total, right, count = 0.0, 0, 0
        for rows in plan_once(self.pairs, 4096):
            batch = self.pairs.batch(rows).to(device)
            logits = F.linear(*TranslationLoss(model, 0.0).at_places(batch)).float()
            total += F.cross_entropy(logits, batch.labels, reduction="sum").item()
            right, count = (
                right + int((logits.argmax(1) == batch.labels).sum()),
                count + len(batch.labels),
            )
        return {"valid_loss": total / count, "accuracy": right / count}
