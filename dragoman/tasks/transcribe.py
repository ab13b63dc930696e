"""Speech in, text out: a Whisper model over windows of a sound file, each beginning where the last
whole segment ended.

The search is told what may follow what by rules (Radford et al. 2022, §4.5). Knows no file format
of sound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dragoman.decoding.rules import Rules
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Problem
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import load_description
from dragoman.folder.files import read_json
from dragoman.folder.weights import load_model
from dragoman.kernels.decoding_twins import accelerate_decoding
from dragoman.model.cache import DecoderState
from dragoman.model.sight import AttentionWeights
from dragoman.runtimes.device import pick_device
from dragoman.tasks.sound import HOP, RATE, Array, Sound, log_mel

TICK = 2 * HOP  # samples from one timestamp to the next: a position of the encoder
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Segment:
    """What was said from one moment to another, in seconds."""

    start: float
    end: float
    text: str
    tokens: Tokens  # timestamps among them


@dataclass(frozen=True)
class Steering:
    """The tokens that steer a model, as generation.json has them in the words of Hugging Face."""

    languages: dict[str, int]  # by their codes; none where the model knows English alone
    tasks: dict[str, int]  # transcribe and translate
    never: list[int]
    never_first: list[int]
    untimed: int  # the token that forbids timestamps, the last before them
    latest: int  # the first timestamp, at most


class Transcriber:
    """A model that writes down what is said.

    >>> for segment in Transcriber.load("models/whisper-tiny").transcribe("talk.wav"):
    ...     print(segment.start, segment.text)
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        self.description, self.tokenizer = load_description(folder)
        config, self.device = self.description.model, device
        fits = config.input == "sound" and config.decoder_layers > 0 and config.max_length >= 8
        if self.description.task != "speech" or not fits:  # an output starts from four tokens
            raise ModelFolderError(
                f"{folder} holds a model for {self.description.task}; transcribing needs one for speech"
            )
        self.steering = _read_steering(folder / layout.GENERATION, config.vocab_size)
        self.model = load_model(folder, config, device)
        accelerate_decoding(self.model, device)
        self.window = (
            config.source_length * TICK
        )  # samples that the model hears at once, 30 seconds

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Transcriber:
        return cls(Path(folder), pick_device(device))

    def transcribe(
        self,
        path: str | Path,
        language: str | None = None,
        translate: bool = False,
        timestamps: bool = False,
        beam: int = 5,
    ) -> Iterator[Segment]:
        """Segment by segment, as they are heard. The language is that of the first window where
        none is named; `translate` has it said in English. What is longer than a window is always
        heard with timestamps, which say where to go on."""
        sound = Sound(Path(path))
        while len(samples := sound.look(self.window + 1)):
            timestamps, here = (
                timestamps or len(samples) > self.window,
                min(len(samples), self.window),
            )
            features = self.features(samples)
            language = language or self.detect(features)
            tokens = self.listen(features, self.begin(language, translate, timestamps), beam)
            parts, moved = self.cut(tokens, here) if timestamps else ([(0, here, tokens)], here)
            for start, end, part in parts:
                words = [
                    token for token in part if token < self.description.frame.end
                ]  # the others steer
                text = self.tokenizer.decode([words])[0].strip()
                if text:
                    yield Segment(
                        (sound.position + start) / RATE, (sound.position + end) / RATE, text, part
                    )
            sound.move(moved)

    def features(self, samples: Array) -> Tensor:
        """(1, bands, frames) of a window."""
        config = self.description.model
        return log_mel(samples, config.input_size, 2 * config.source_length).to(self.device)[None]

    @torch.inference_mode()
    def detect(self, features: Tensor) -> str | None:
        """The likeliest language; None where the model knows but one."""
        start = torch.full((1, 1), self.description.frame.start, device=self.device)
        logits = self.model.step(start, self.model.start(features))[0, 0].tolist()
        return max(
            self.steering.languages,
            key=lambda code: logits[self.steering.languages[code]],
            default=None,
        )

    def begin(self, language: str | None, translate: bool, timestamps: bool) -> list[int]:
        """The tokens that every output starts from."""
        steering, task = self.steering, "translate" if translate else "transcribe"
        if language not in (steering.languages or (None, "en")) or (
            translate and task not in steering.tasks
        ):
            known = ", ".join(sorted(steering.languages)) or "en alone, and does not translate"
            raise OptionError(
                f"the language is '{language}' and the task {task}; the model knows {known}"
            )
        chosen = [
            table[name]
            for table, name in ((steering.languages, language), (steering.tasks, task))
            if name in table
        ]
        return [self.description.frame.start, *chosen, *([] if timestamps else [steering.untimed])]

    @torch.inference_mode()
    def listen(self, features: Tensor, begin: list[int], beam: int = 5) -> Tokens:
        """What the model says to one window, with timestamps unless `begin` forbids them."""
        options, end = SearchOptions(beam), self.description.frame.end
        state, room = self.model.start(features), [self.description.model.max_length - len(begin)]
        for token in begin[:-1]:
            self.model.step(torch.full((1, beam), token, device=self.device), state)
        limits = torch.tensor(room, device=self.device)
        problem = Problem(self.model.step, state, limits, begin[-1], end)
        timed = begin[-1] != self.steering.untimed
        rules = _Steered(problem, options, self.steering, timed)
        return Loop(problem, options, rules).run()[0][0].tokens

    def cut(self, tokens: Tokens, here: int) -> tuple[list[tuple[int, int, Tokens]], int]:
        """(start, end, tokens) of each segment, in samples of a window that has `here` of them,
        and how far to move on: to the end of the last whole segment, or past the window where
        nothing is left unfinished."""
        ticks = [token - self.steering.untimed - 1 for token in tokens]  # below 0 it is text
        cuts = [place for place in range(1, len(tokens)) if min(ticks[place - 1 : place + 1]) >= 0]
        moved = TICK * ticks[cuts[-1] - 1] if cuts else here
        if not cuts or ticks[-2] < 0 <= ticks[-1]:
            cuts, moved = [*cuts, len(tokens)], here
        parts = []
        for first, behind in zip([0, *cuts], cuts, strict=False):
            start, end = (
                (TICK * tick for tick in (ticks[first], ticks[behind - 1])) if behind else (0, 0)
            )
            parts.append(
                (
                    min(max(start, 0), here),
                    min(end, here) if end > start >= 0 else here,
                    tokens[first:behind],
                )
            )
        return parts, min(moved, here) or here

    @torch.inference_mode()
    def attention(
        self, path: str | Path, most: int
    ) -> tuple[list[int], Tensor, AttentionWeights, int]:
        """Of the first window: the tokens that are said to it behind those it starts from, at
        most so many; the probability of each but the first, and where the decoder looked before
        it; and at how many positions there was sound. The encoder's own attention is left out:
        it has millions of weights for each head."""
        features = self.features(samples := Sound(Path(path)).look(self.window))
        begin = self.begin(self.detect(features), False, False)
        tokens = [*begin, *self.listen(features, begin), self.description.frame.end][
            : min(most, self.description.model.max_length)
        ]
        found = self.model.token_probabilities(
            self.model.encode(features), torch.tensor([tokens], device=self.device)
        )
        return tokens, *found, -(-len(samples) // TICK)


class _Steered(Rules):
    """What Whisper may not say: some tokens; and where it keeps time, anything but a timestamp
    first, pairs of them between segments, and none that goes back."""

    def __init__(
        self,
        problem: Problem[DecoderState],
        options: SearchOptions,
        steering: Steering,
        timed: bool,
    ) -> None:
        super().__init__(problem, options)
        self._steering, self._timed = steering, timed

    def apply(self, log_probs: Tensor, length: int) -> None:
        super().apply(log_probs, length)
        log_probs[..., self._steering.never] = NEVER
        if length == 0:
            log_probs[..., self._steering.never_first] = NEVER
        if self._timed:
            self._keep_time(log_probs)

    def follow(self, tokens: Tensor, beams: Tensor) -> None:
        self.remember(tokens, beams)

    def _keep_time(self, log_probs: Tensor) -> None:
        text, times = log_probs.tensor_split(
            [self._steering.untimed + 1], dim=-1
        )  # what is set in them is set
        text[..., -1] = NEVER
        ticks = self._said - text.size(-1)  # (B, K, T), below 0 where there was text
        if not ticks.size(2):
            text.fill_(NEVER)
            times[..., self._steering.latest + 1 :] = NEVER
            return
        last = ticks[..., -1:] >= 0
        opened = last & (ticks[..., -2:-1] >= 0) if ticks.size(2) > 1 else last
        times.masked_fill_(opened, NEVER)
        text[..., : self._end].masked_fill_(last & ~opened, NEVER)
        earliest = ticks.amax(2, keepdim=True) + ~(last & ~opened)
        times.masked_fill_(torch.arange(times.size(-1), device=times.device) < earliest, NEVER)
        # Where timestamps together are likelier than any word, it is time for one.
        text.masked_fill_(times.logsumexp(-1, keepdim=True) > text.amax(-1, keepdim=True), NEVER)


def _read_steering(path: Path, vocab_size: int) -> Steering:
    values = read_json(path)
    languages, tasks = (values.get(name) or {} for name in ("lang_to_id", "task_to_id"))
    never, never_first = (
        values.get(name) or [] for name in ("suppress_tokens", "begin_suppress_tokens")
    )
    untimed, latest = (
        values.get("no_timestamps_token_id"),
        values.get("max_initial_timestamp_index") or vocab_size,
    )
    try:
        tokens = [untimed, *never, *never_first, *languages.values(), *tasks.values()]
        fine = type(latest) is int and all(
            type(token) is int and 0 <= token < vocab_size for token in tokens
        )
    except (TypeError, AttributeError):
        fine = False
    if not fine:
        raise ModelFolderError(
            f"{path} does not tell the tokens of a Whisper model; convert it again with its generation_config.json"
        )
    codes = {name.strip("<|>"): token for name, token in languages.items()}
    return Steering(codes, tasks, never, never_first, untimed, latest)  # type: ignore[arg-type]
