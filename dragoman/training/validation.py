"""How good a model is on examples that were held out: their loss, and BLEU and chrF of greedy
translations, perplexity or accuracy, by task."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F

from dragoman.data.batch_plan import plan_once
from dragoman.data.batches import Examples, Pairs
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError
from dragoman.folder import layout
from dragoman.folder.description import Description
from dragoman.model.transformer import Transformer
from dragoman.runtimes.torch_runtime import TokenFacts, TorchRuntime
from dragoman.tasks.evaluate import Scores, Scoring, score, tokenize_for
from dragoman.tasks.translate import Translator
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.loss import ModelLoss

BATCH_TOKENS = 4096
SAMPLES = 3  # translations that are shown at each validation
_ERRORS = ("wer", "cer")  # scores of which the smallest is the best


@dataclass(frozen=True)
class Sample:
    """One held-out sentence, how it should be translated and how it is."""

    source: str
    reference: str
    output: str


@dataclass(frozen=True)
class Quality:
    """The result of a validation; the best checkpoint has the largest `value`."""

    value: float
    # valid_loss, and bleu and chrf, or f1, or wer and cer, or perplexity, or accuracy
    metrics: dict[str, float] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True)
class Scored:
    """Scores of outputs in words, and some of the outputs."""

    heading: str
    lines: tuple[str, ...]
    samples: tuple[Sample, ...]
    meaning: str = ""
    bleu: float | None = None


# valid_loss and the scores of a task, and some translations where it has such.
Measured = tuple[dict[str, float], tuple[Sample, ...]]


class ValidSet:
    """Held-out examples of any task: blocks of text, masked text, labelled texts or images."""

    def __init__(self, examples: Examples) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def sentences(self) -> int:
        """How many sentences are translated for scores."""
        return 0

    def quality(
        self,
        model: Transformer,
        device: torch.device,
        select: str,
        autocast: Callable[[], AbstractContextManager[object]],
    ) -> Quality:
        """Measures in eval mode, without compiled code, whose shapes are those of training."""
        was_training = model.training
        model.eval()
        with torch.inference_mode(), torch.compiler.set_stance("force_eager"), autocast():
            metrics, samples = self.measure(model, device)
        model.train(was_training)
        # Of equally many right answers, those that were given with more certainty are better.
        loss_share = {"loss": 1.0, "accuracy": 1e-6, "wer": 1e-6, "cer": 1e-6}.get(select, 0.0)
        score = metrics.get(select, 0.0)
        if select in _ERRORS:
            score = -score
        value = score - loss_share * metrics["valid_loss"]
        return Quality(value, metrics, samples)

    def measure(self, model: Transformer, device: torch.device) -> Measured:
        """The loss; and the perplexity of a decoder, or the share of right answers."""
        if not model.config.decoder_layers:
            return self._accuracy(model, device), ()
        loss = self.loss(model, device)
        return {"valid_loss": loss, "perplexity": math.exp(min(loss, 700.0))}, ()

    def loss(self, model: Transformer, device: torch.device) -> float:
        """The plain cross-entropy of a token."""
        module = ModelLoss(model, smoothing=0.0)
        total = 0.0
        tokens = 0
        for rows in plan_once(self.examples, BATCH_TOKENS):
            batch = self.examples.batch(rows).to(device)
            _, plain = module(batch)
            total += plain.item()
            tokens += len(batch.labels)
        return total / tokens

    def scores(self, model: Transformer, device: torch.device) -> Scored | None:
        """BLEU and chrF by beam search; None where no sentences are translated."""
        return None

    def _accuracy(self, model: Transformer, device: torch.device) -> dict[str, float]:
        module = ModelLoss(model, smoothing=0.0)
        total = 0.0
        right = 0
        count = 0
        for rows in plan_once(self.examples, BATCH_TOKENS):
            batch = self.examples.batch(rows).to(device)
            logits = module.logits(batch).float()
            total += F.cross_entropy(logits, batch.labels, reduction="sum").item()
            right += int((logits.argmax(1) == batch.labels).sum())
            count += len(batch.labels)
        return {"valid_loss": total / count, "accuracy": right / count}


class ValidPairs(ValidSet):
    """Held-out pairs of translation: as tokens for the loss, and the first as text for scores."""

    def __init__(
        self,
        folder: Path,
        dtype: str,
        tokenizer: Tokenizer,
        description: Description,
        sentences: int,
    ) -> None:
        super().__init__(Pairs(folder, dtype, description.frame.start))
        self.tokenizer = tokenizer
        self.description = description
        texts = read_texts(folder / layout.TEXT, sentences)
        self.sources = [source for source, _ in texts]
        self.references = [reference for _, reference in texts]

    @property
    def sentences(self) -> int:
        """How many sentences are translated for scores."""
        return len(self.sources)

    def measure(self, model: Transformer, device: torch.device) -> Measured:
        """The loss, and the scores of greedy translations."""
        metrics = {"valid_loss": self.loss(model, device)}
        if not self.sources:
            return metrics, ()
        outputs = self._translate(model, device, SearchOptions(beam=1))
        scores = self._score(outputs, bootstrap=0)
        metrics["bleu"] = scores.bleu.value
        metrics["chrf"] = scores.chrf.value
        return metrics, self.shown(outputs)

    def scores(self, model: Transformer, device: torch.device) -> Scored | None:
        """BLEU and chrF by beam search, with intervals; None where no sentences are translated."""
        if not self.sources:
            return None
        options = SearchOptions()
        outputs = self._translate(model, device, options)
        scores = self._score(outputs, bootstrap=1000)
        return Scored(
            heading=f"On {self.sentences:,} valid sentences, beam {options.beam}:",
            lines=tuple(scores.lines()),
            samples=self.shown(outputs),
            meaning=scores.in_words(),
            bleu=scores.bleu.value,
        )

    def _translate(
        self, model: Transformer, device: torch.device, options: SearchOptions
    ) -> list[str]:
        facts = TokenFacts(self.description.frame, self.tokenizer.joins())
        runtime = TorchRuntime(model, device, facts)
        translator = Translator(runtime, self.tokenizer, self.description)
        translations = translator.translate(self.sources, options, split=False)
        return [translation.text for translation in translations]

    def _score(self, outputs: list[str], bootstrap: int) -> Scores:
        tokenize = tokenize_for(self.description.target_language)
        return score(outputs, self.references, Scoring(tokenize, bootstrap=bootstrap))

    def shown(self, outputs: list[str]) -> tuple[Sample, ...]:
        """Return the same few sentences each time, spread over the set."""
        rows = spread(len(outputs))
        return tuple(Sample(self.sources[row], self.references[row], outputs[row]) for row in rows)


def spread(total: int) -> list[int]:
    """Which of so many outputs are shown."""
    count = min(SAMPLES, total)
    return [(2 * number + 1) * total // (2 * count) for number in range(count)]


def read_texts(file: Path, most: int) -> list[tuple[str, str]]:
    """The first pairs of a file, source and reference."""
    texts = []
    with open(file, "rb") as lines:
        for number, line in enumerate(islice(lines, most), 1):
            try:
                source, reference = line.decode("utf-8").rstrip("\n").split("\t")[:2]
            except ValueError:
                raise ModelFolderError(
                    f"{file} is damaged: line {number:,} is not a pair of texts"
                ) from None
            texts.append((source, reference))
    return texts
