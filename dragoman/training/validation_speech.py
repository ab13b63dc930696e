"""How good a model hears recordings that were held out: their loss, and word and character error
rates of greedy transcripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, takewhile
from pathlib import Path

import torch

from dragoman.data.speech import Speech
from dragoman.decoding.search_options import SearchOptions
from dragoman.folder import layout
from dragoman.folder.description import Description
from dragoman.model.transformer import Transformer
from dragoman.runtimes.load import Loaded
from dragoman.runtimes.torch_runtime import TokenFacts, TorchRuntime
from dragoman.tasks.speech_scores import SpeechScores, score_speech
from dragoman.tasks.transcribe import Transcriber
from dragoman.tasks.whisper_rules import Steering, read_steering
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.validation import Measured, Sample, Scored, ValidSet, read_texts, spread

_GREEDY = SearchOptions(beam=1, alpha=0.0)
_BEAM = SearchOptions(beam=4, alpha=0.0)
_AT_ONCE = 8  # recordings
# Tokens of an output, beyond as many again as the longest text of its batch has: a model that knows
# nothing yet would fill all its positions.
_MORE = 16


@dataclass(frozen=True)
class Unloaded:
    """What is known of a model besides its weights."""

    folder: Path
    tokenizer: Tokenizer
    description: Description


@dataclass(frozen=True)
class _Heard:
    """Recordings that are transcribed together: of one language and task."""

    rows: list[int]
    head: list[int]
    most: int  # tokens of an output


class ValidSpeech(ValidSet):
    """Held-out recordings: all for the loss, and the first also for transcripts."""

    def __init__(self, examples: Speech, model: Unloaded, recordings: int) -> None:
        super().__init__(examples)
        self.speech = examples
        self.model = model
        path = model.folder / layout.GENERATION
        self.steering: Steering = read_steering(path, model.description.model.vocab_size)
        texts = read_texts(model.folder / layout.VALID_TEXT, recordings)
        self.names = [name for name, _ in texts]
        self.references = [text for _, text in texts]

    @property
    def sentences(self) -> int:
        """How many recordings are transcribed for scores."""
        return len(self.references)

    def measure(self, model: Transformer, device: torch.device) -> Measured:
        """The loss, and the error rates of greedy transcripts."""
        metrics = {"valid_loss": self.loss(model, device)}
        if not self.references:
            return metrics, ()
        outputs, scores = self._transcribed(model, device, _GREEDY, intervals=False)
        metrics["wer"] = scores.wer.value
        metrics["cer"] = scores.cer.value
        return metrics, self.shown(outputs)

    def scores(self, model: Transformer, device: torch.device) -> Scored | None:
        """Error rates by beam search, with intervals; None where nothing is transcribed."""
        if not self.references:
            return None
        outputs, scores = self._transcribed(model, device, _BEAM, intervals=True)
        return Scored(
            heading=f"On {self.sentences:,} valid recordings, beam {_BEAM.beam}:",
            lines=tuple(scores.in_lines()),
            samples=self.shown(outputs),
        )

    def shown(self, outputs: list[str]) -> tuple[Sample, ...]:
        """Return the same few recordings each time, spread over the set."""
        return tuple(
            Sample(self.names[row], self.references[row], outputs[row])
            for row in spread(len(outputs))
        )

    def _transcribed(
        self, model: Transformer, device: torch.device, options: SearchOptions, intervals: bool
    ) -> tuple[list[str], SpeechScores]:
        description = self.model.description
        tokenizer = self.model.tokenizer
        facts = TokenFacts(description.frame, tokenizer.joins())
        runtime = TorchRuntime(model, device, facts)
        transcriber = Transcriber(Loaded(runtime, description, tokenizer), self.steering)
        outputs = [""] * self.sentences
        for heard in self._batches():
            spectra = torch.stack([self.speech.features(row) for row in heard.rows])
            search = _limited(options, heard.most)
            texts = transcriber.write_down(spectra, heard.head, search)
            for row, text in zip(heard.rows, texts, strict=True):
                outputs[row] = text
        return outputs, score_speech(outputs, self.references, intervals)

    def _batches(self) -> Iterator[_Heard]:
        """The recordings in batches of one head and of texts of like length."""
        every = range(self.sentences)
        rows = [(self._head(row), len(self.speech.tokens(row)), row) for row in every]
        for head, alike in groupby(sorted(rows), key=lambda one: one[0]):
            together = list(alike)
            for first in range(0, len(together), _AT_ONCE):
                part = together[first : first + _AT_ONCE]
                _, longest, _ = part[-1]
                yield _Heard([row for _, _, row in part], head, 2 * longest + _MORE)

    def _head(self, row: int) -> list[int]:
        """What an output begins with: the start, and what steers."""
        said = self.speech.tokens(row).tolist()
        steers = takewhile(self.steering.tokens.__contains__, said)
        return [self.model.description.frame.start, *steers]


def _limited(options: SearchOptions, most: int) -> SearchOptions:
    return SearchOptions(options.beam, alpha=options.alpha, max_length=most)
