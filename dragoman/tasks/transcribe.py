"""Speech in, text out: a Whisper model over windows of a sound file, each beginning where the last
whole segment ended. Knows no file format of sound.

The search is told what may follow what by rules (Radford et al. 2022, §4.5), in
tasks/whisper_rules.py; what it finds is doubted in tasks/whisper_fallback.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from dragoman.data.sound import RATE, Array, Sound, log_mel, quietest
from dragoman.data.speech import TICK
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError
from dragoman.folder import layout
from dragoman.folder.description import Description
from dragoman.model.cache import DecoderState
from dragoman.model.sight import AttentionWeights
from dragoman.runtimes.beginning import Beginning, Guide
from dragoman.runtimes.load import Loaded, load
from dragoman.runtimes.torch_runtime import TorchRuntime
from dragoman.tasks import whisper_fallback
from dragoman.tasks.token_probabilities import token_probabilities
from dragoman.tasks.whisper_fallback import Heard
from dragoman.tasks.whisper_rules import Steering, WhisperRules, read_steering

TICKS_PER_SECOND = RATE // TICK
_SHORTEST = 8  # positions of a decoder; an output starts from four tokens
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Segment:
    """What was said from one moment to another, in seconds."""

    start: float
    end: float
    text: str
    tokens: Tokens  # timestamps among them
    log_prob: float = 0.0  # the mean over the tokens of the window that it was heard in
    temperature: float = 0.0  # at which that window was drawn; 0 where the search could be trusted


@dataclass(frozen=True)
class Window:
    """A window that the encoder has read, once for all that is asked of it."""

    features: Tensor  # (1, bands, frames)
    memory: Tensor  # (1, S, D)
    read: DecoderState
    first: list[float]  # the probability of each token after the start


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
        config = loaded.description.model
        steering = read_steering(path, config.vocab_size)
        return cls(loaded, steering)

    def __repr__(self) -> str:
        """Say what the model is and which runtime computes."""
        return f"<Transcriber: {self.description.summary()}, runtime {self.runtime.name}>"

    def transcribe(
        self,
        sound: str | Path | Sound,
        language: str | None = None,
        translate: bool = False,
        timestamps: bool = False,
        beam: int = 5,
    ) -> Iterator[Segment]:
        """Yield segment after segment, as they are heard.

        The language is that of the first window in which somebody speaks, where none is given;
        `translate` writes English. What is longer than a window is always heard with timestamps,
        which say where to go on. A window in which nobody speaks is skipped; one whose text
        repeats itself or is unlikely is drawn again at rising temperatures. A model without
        timestamps hears windows that end where it is quiet.
        """
        if not isinstance(sound, Sound):
            sound = Sound(Path(sound))
        keeps_time = self.steering.untimed is not None
        while len(samples := sound.look(self.window + 1)):
            is_longer = len(samples) > self.window
            timestamps = keeps_time and (timestamps or is_longer)
            here = min(len(samples), self.window)
            if is_longer and not keeps_time:
                here = quietest(samples, self.window // 2, self.window)
            features = self.features(samples[:here])
            window = self.read(features)
            spoken = language or self.detect(window)
            begin = self.begin(spoken, translate, timestamps)
            heard = self.listen(window, begin, beam)
            if heard is None:
                sound.move(here)
                continue
            language = spoken
            stretches = [Stretch(0, here, heard.tokens)]
            moved = here
            if timestamps:
                stretches, moved = self.split(heard.tokens, here)
            yield from self._segments(stretches, heard, sound.position)
            sound.move(moved)

    def features(self, samples: Array) -> Tensor:
        """Return (1, bands, frames) of a window."""
        config = self.description.model
        spectrum = log_mel(samples, config.input_size, 2 * config.source_length)
        spectrum = spectrum.to(self.runtime.device, self.runtime.dtype)
        return spectrum[None]

    @torch.inference_mode()
    def read(self, features: Tensor) -> Window:
        """Let the encoder read a window, and ask what follows the start."""
        memory = self.model.encode(features)
        state = self.model.decoder.start(memory, None)
        start = torch.full((1, 1), self.description.frame.start, device=self.runtime.device)
        logits = self.model.step(start, state.anew())
        first = logits[0, 0].float().softmax(-1)
        return Window(
            features=features,
            memory=memory,
            read=state,
            first=first.tolist(),
        )

    def detect(self, window: Window) -> str | None:
        """Return the likeliest language; None where the model knows but one."""
        languages = self.steering.languages
        return max(languages, key=lambda code: window.first[languages[code]], default=None)

    def begin(self, language: str | None, translate: bool, timestamps: bool) -> list[int]:
        """Return the tokens that every output starts from."""
        own = self.description.source_language or "en"
        self.steering.check(language, translate, own)
        return [self.description.frame.start, *self.steering.head(language, translate, timestamps)]

    def listen(self, window: Window, begin: list[int], beam: int = 5) -> Heard | None:
        """Return what the model says to one window, with timestamps unless `begin` forbids them;
        None where nobody speaks."""
        search = partial(self._search, window, begin)
        token = self.steering.silence
        silence = 0.0 if token is None else window.first[token]
        return whisper_fallback.listen(search, self._text, silence, beam)

    def _segments(self, stretches: list[Stretch], heard: Heard, position: int) -> Iterator[Segment]:
        """The stretches that have words, in seconds of the whole sound."""
        for stretch in stretches:
            text = self._text(stretch.tokens)
            if text:
                yield Segment(
                    start=(position + stretch.start) / RATE,
                    end=(position + stretch.end) / RATE,
                    text=text,
                    tokens=stretch.tokens,
                    log_prob=heard.log_prob,
                    temperature=heard.temperature,
                )

    def split(self, tokens: Tokens, here: int) -> tuple[list[Stretch], int]:
        """Split the tokens at their timestamps.

        Returns the stretches, in samples of a window that has `here` of them, and how far to move
        on: to the end of the last whole stretch, or past the window where nothing is left
        unfinished.
        """
        assert self.steering.untimed is not None
        first_tick = self.steering.untimed + 1
        ticks = [token - first_tick for token in tokens]  # below 0 it is text
        ends = [i for i in range(1, len(tokens)) if ticks[i - 1] >= 0 and ticks[i] >= 0]
        moved = here
        if ends:
            last_tick = ticks[ends[-1] - 1]
            moved = TICK * last_tick
        if not ends or ticks[-2] < 0 <= ticks[-1]:
            ends.append(len(tokens))
            moved = here
        stretches = []
        for first, behind in zip([0, *ends], ends, strict=False):
            start = 0
            end = 0
            if behind:
                start = TICK * ticks[first]
                end = TICK * ticks[behind - 1]
            until = min(end, here) if end > start >= 0 else here
            stretch = Stretch(
                start=min(max(start, 0), here),
                end=until,
                tokens=tokens[first:behind],
            )
            stretches.append(stretch)
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
        sound = Sound(Path(path))
        samples = sound.look(self.window)
        features = self.features(samples)
        window = self.read(features)
        language = self.detect(window)
        begin = self.begin(language, False, False)
        heard = self.listen(window, begin)
        said = () if heard is None else heard.tokens
        tokens = [*begin, *said, self.description.frame.end]
        most = min(most, self.description.model.max_length)
        tokens = tokens[:most]
        row = torch.tensor([tokens], device=self.runtime.device)
        probabilities, weights = token_probabilities(self.model, window.memory, row)
        n_heard = -(-len(samples) // TICK)
        return tokens, probabilities, weights, n_heard

    @torch.inference_mode()
    def write_down(self, features: Tensor, begin: list[int], options: SearchOptions) -> list[str]:
        """Return what is said in each window (B, bands, frames), as the search finds it: nothing is
        doubted or drawn again."""
        features = features.to(self.runtime.device, self.runtime.dtype)
        found = self._searched(features, begin, options)
        return [self._text(row[0].tokens) for row in found]

    @torch.inference_mode()
    def _search(self, window: Window, begin: list[int], options: SearchOptions) -> list[Hypothesis]:
        (found,) = self._searched(window.features, begin, options, window.read)
        return found

    def _searched(
        self,
        features: Tensor,
        begin: list[int],
        options: SearchOptions,
        read: DecoderState | None = None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each window (B, bands, frames), which `read` has read if it is given;
        of at most `options.max_length` tokens, where that is set."""
        most = self.description.model.max_length - len(begin)
        most = min(most, options.max_length or most)
        start = Beginning(
            source=features,
            lengths=None,
            head=tuple(begin),
            max_lengths=torch.full((len(features),), most, device=self.runtime.device),
            end=self.description.frame.end,
            read=read,
        )
        untimed = self.steering.untimed
        timed = untimed is not None and begin[-1] != untimed
        rules = partial(WhisperRules, steering=self.steering, timed=timed)
        guide = Guide(rules=rules, eager=True)
        return self.runtime.loop(start, options, guide).run()

    def _text(self, tokens: Sequence[int]) -> str:
        """The words among the tokens; the others steer, and have in Whisper's vocabulary the
        numbers behind the end."""
        words = list(tokens)
        if self.steering.untimed is not None:
            words = [token for token in tokens if token < self.description.frame.end]
        (text,) = self.tokenizer.decode([words])
        return text.strip()


def _check(folder: Path, description: Description) -> None:
    config = description.model
    hears = config.input == "sound" and config.decoder_layers > 0
    if description.task != "speech" or not hears or config.max_length < _SHORTEST:
        raise ModelFolderError(
            f"{folder} holds a model for {description.task}; transcribing needs one for speech"
        )
