"""Speech in, text out: a Whisper model over windows of a sound file, each beginning where the last
whole segment ended. Knows no file format of sound.

The search is told what may follow what by rules (Radford et al. 2022, §4.5), in
tasks/whisper_rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import Description
from dragoman.model.sight import AttentionWeights
from dragoman.runtimes.beginning import Beginning, Guide
from dragoman.runtimes.load import Loaded, load
from dragoman.runtimes.torch_runtime import TorchRuntime
from dragoman.tasks.sound import HOP, RATE, Array, Sound, log_mel
from dragoman.tasks.whisper_rules import Steering, WhisperRules, read_steering

TICK = 2 * HOP  # samples from one timestamp to the next: a position of the encoder
_SHORTEST = 8  # positions of a decoder; an output starts from four tokens
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Segment:
    """What was said from one moment to another, in seconds."""

    start: float
    end: float
    text: str
    tokens: Tokens  # timestamps among them


@dataclass(frozen=True)
class Stretch:
    """Tokens, and the samples of a window that they were said to."""

    start: int
    end: int
    tokens: Tokens


class Transcriber:
    """A model that writes down what is said.

    >>> for segment in Transcriber.load("models/whisper-tiny").transcribe("talk.wav"):
    ...     print(segment.start, segment.text)
    """

    def __init__(self, loaded: Loaded, steering: Steering) -> None:
        self.runtime: TorchRuntime = loaded.runtime
        self.model = self.runtime.model
        self.description = loaded.description
        self.tokenizer = loaded.tokenizer
        self.steering = steering
        # Samples that the model hears at once, 30 seconds.
        self.window = loaded.description.model.source_length * TICK

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", runtime: str = "auto") -> Transcriber:
        """Load a model folder; `runtime` is auto (int8 on a CPU, twice as fast), int8 or torch,
        which is exact."""
        loaded = load(folder, device, runtime, check=_check)
        path = Path(folder) / layout.GENERATION
        return cls(loaded, read_steering(path, loaded.description.model.vocab_size))

    def transcribe(
        self,
        path: str | Path,
        language: str | None = None,
        translate: bool = False,
        timestamps: bool = False,
        beam: int = 5,
    ) -> Iterator[Segment]:
        """Yield segment after segment, as they are heard.

        The language is that of the first window where none is given; `translate` writes English.
        What is longer than a window is always heard with timestamps, which say where to go on.
        """
        sound = Sound(Path(path))
        while len(samples := sound.look(self.window + 1)):
            timestamps = timestamps or len(samples) > self.window
            here = min(len(samples), self.window)
            features = self.features(samples)
            language = language or self.detect(features)
            tokens = self.listen(features, self.begin(language, translate, timestamps), beam)
            stretches = [Stretch(0, here, tokens)]
            moved = here
            if timestamps:
                stretches, moved = self.split(tokens, here)
            for stretch in stretches:
                text = self._text(stretch.tokens)
                if text:
                    start = (sound.position + stretch.start) / RATE
                    end = (sound.position + stretch.end) / RATE
                    yield Segment(start, end, text, stretch.tokens)
            sound.move(moved)

    def features(self, samples: Array) -> Tensor:
        """Return (1, bands, frames) of a window."""
        config = self.description.model
        spectrum = log_mel(samples, config.input_size, 2 * config.source_length)
        return spectrum.to(self.runtime.device, self.runtime.dtype)[None]

    @torch.inference_mode()
    def detect(self, features: Tensor) -> str | None:
        """Return the likeliest language; None where the model knows but one."""
        start = torch.full((1, 1), self.description.frame.start, device=self.runtime.device)
        logits = self.model.step(start, self.model.start(features))[0, 0].tolist()
        languages = self.steering.languages
        return max(languages, key=lambda code: logits[languages[code]], default=None)

    def begin(self, language: str | None, translate: bool, timestamps: bool) -> list[int]:
        """Return the tokens that every output starts from."""
        steering = self.steering
        task = "translate" if translate else "transcribe"
        knows_language = language in (steering.languages or (None, "en"))
        knows_task = not translate or task in steering.tasks
        if not knows_language or not knows_task:
            known = ", ".join(sorted(steering.languages)) or "en alone, and does not translate"
            raise OptionError(
                f"the language is '{language}' and the task {task}; the model knows {known}"
            )
        tokens = [self.description.frame.start]
        if language in steering.languages:
            tokens.append(steering.languages[language])
        if task in steering.tasks:
            tokens.append(steering.tasks[task])
        return tokens if timestamps else [*tokens, steering.untimed]

    @torch.inference_mode()
    def listen(self, features: Tensor, begin: list[int], beam: int = 5) -> Tokens:
        """Return what the model says to one window, with timestamps unless `begin` forbids them."""
        most = self.description.model.max_length - len(begin)
        max_lengths = torch.tensor([most], device=self.runtime.device)
        start = Beginning(features, None, tuple(begin), max_lengths, self.description.frame.end)
        timed = begin[-1] != self.steering.untimed
        guide = Guide(rules=partial(WhisperRules, steering=self.steering, timed=timed))
        return self.runtime.loop(start, SearchOptions(beam), guide).run()[0][0].tokens

    def split(self, tokens: Tokens, here: int) -> tuple[list[Stretch], int]:
        """Split the tokens at their timestamps.

        Returns the stretches, in samples of a window that has `here` of them, and how far to move
        on: to the end of the last whole stretch, or past the window where nothing is left
        unfinished.
        """
        ticks = [token - self.steering.untimed - 1 for token in tokens]  # below 0 it is text
        ends = [i for i in range(1, len(tokens)) if ticks[i - 1] >= 0 and ticks[i] >= 0]
        moved = TICK * ticks[ends[-1] - 1] if ends else here
        if not ends or ticks[-2] < 0 <= ticks[-1]:
            ends.append(len(tokens))
            moved = here
        stretches = []
        for first, behind in zip([0, *ends], ends, strict=False):
            start = TICK * ticks[first] if behind else 0
            end = TICK * ticks[behind - 1] if behind else 0
            until = min(end, here) if end > start >= 0 else here
            stretches.append(Stretch(min(max(start, 0), here), until, tokens[first:behind]))
        return stretches, min(moved, here) or here

    @torch.inference_mode()
    def attention(
        self, path: str | Path, most: int
    ) -> tuple[list[int], Tensor, AttentionWeights, int]:
        """Return, for the first window, what the model says and where it looks.

        These are the tokens that it says behind those it starts from, at most `most`; the
        probability of each but the first, and where the decoder looked before it; and at how many
        positions there was sound. The encoder's own attention is omitted: it has millions of
        weights for each head.
        """
        samples = Sound(Path(path)).look(self.window)
        features = self.features(samples)
        begin = self.begin(self.detect(features), False, False)
        tokens = [*begin, *self.listen(features, begin), self.description.frame.end]
        tokens = tokens[: min(most, self.description.model.max_length)]
        row = torch.tensor([tokens], device=self.runtime.device)
        probabilities, weights = self.model.token_probabilities(self.model.encode(features), row)
        return tokens, probabilities, weights, -(-len(samples) // TICK)

    def _text(self, tokens: Tokens) -> str:
        """The words among the tokens; the others steer."""
        words = [token for token in tokens if token < self.description.frame.end]
        return self.tokenizer.decode([words])[0].strip()


def _check(folder: Path, description: Description) -> None:
    config = description.model
    hears = config.input == "sound" and config.decoder_layers > 0
    if description.task != "speech" or not hears or config.max_length < _SHORTEST:
        raise ModelFolderError(
            f"{folder} holds a model for {description.task}; transcribing needs one for speech"
        )
