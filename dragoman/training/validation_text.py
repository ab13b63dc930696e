"""How good a model for text to text is on pairs that were held out: their loss, and exact match,
token F1 and ROUGE-L of greedy outputs."""

from __future__ import annotations

from dataclasses import replace

import torch

from dragoman.decoding.search_options import SearchOptions
from dragoman.model.transformer import Transformer
from dragoman.runtimes.torch_runtime import TokenFacts, TorchRuntime
from dragoman.tasks.text_scores import score_texts
from dragoman.tasks.text_to_text import OPTIONS, TextToText
from dragoman.training.validation import Measured, Scored, ValidPairs

_GREEDY = replace(OPTIONS, beam=1)


class ValidText(ValidPairs):
    """Held-out pairs: as tokens for the loss, and the first as text for scores."""

    def measure(self, model: Transformer, device: torch.device) -> Measured:
        """The loss, and the scores of greedy outputs."""
        metrics = {"valid_loss": self.loss(model, device)}
        if not self.sources:
            return metrics, ()
        outputs = self._written(model, device, _GREEDY)
        scores = score_texts(outputs, self.references, intervals=False)
        metrics["exact"] = scores.exact.value
        metrics["f1"] = scores.f1.value
        metrics["rouge"] = scores.rouge_l.value
        return metrics, self.shown(outputs)

    def scores(self, model: Transformer, device: torch.device) -> Scored | None:
        """All scores by beam search, with intervals; None where no outputs are made."""
        if not self.sources:
            return None
        outputs = self._written(model, device, OPTIONS)
        return Scored(
            heading=f"On {self.sentences:,} valid lines, beam {OPTIONS.beam}:",
            lines=tuple(score_texts(outputs, self.references).in_lines()),
            samples=self.shown(outputs),
        )

    def _written(
        self, model: Transformer, device: torch.device, options: SearchOptions
    ) -> list[str]:
        facts = TokenFacts(self.description.frame, self.tokenizer.joins())
        runtime = TorchRuntime(model, device, facts)
        writer = TextToText(runtime, self.tokenizer, self.description)
        return [one.text for one in writer.write(self.sources, options)]
