"""Whether what a Whisper model said to a window can be trusted, and what is tried where it cannot
(Radford et al. 2022, §4.5).

A search that is sure of itself may still run away and repeat one phrase to the end of the window.
Its text then compresses well, or its tokens are unlikely; such a window is drawn again at rising
temperatures. Knows tokens, text and numbers; no sound and no model.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions

# Those of the reference implementation.
_TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0)
_DRAWN = 5  # outputs at each temperature, of which the best counts
_MOST_COMPRESSED = 2.4
_LEAST_LOG_PROB = -1.0
_MOST_SILENCE = 0.6

Search = Callable[[SearchOptions], Sequence[Hypothesis]]
Read = Callable[[Sequence[int]], str]  # the text of tokens


@dataclass(frozen=True)
class Heard:
    """What the model said to a window, and how far it can be trusted."""

    tokens: tuple[int, ...]
    log_prob: float  # the mean over the tokens and the end
    compression: float  # how many times smaller zlib makes the text
    temperature: float  # that it was drawn at; 0 where it was searched for

    @property
    def is_repetitive(self) -> bool:
        """Whether the text says the same again and again."""
        return self.compression > _MOST_COMPRESSED

    @property
    def is_unsure(self) -> bool:
        """Whether the model found its own words unlikely."""
        return self.log_prob < _LEAST_LOG_PROB


def listen(search: Search, read: Read, silence: float, beam: int) -> Heard | None:
    """Return the first result that can be trusted, searched for or drawn at rising temperatures;
    the best of all where none can be. None where nobody speaks.

    `silence` is the probability that nobody does. It counts only where the model is unsure of its
    words as well.
    """
    results = []
    for options in _attempts(beam):
        best = max(search(options), key=_rank)
        heard = _heard(best, read, options)
        if heard.is_unsure and silence > _MOST_SILENCE:
            return None
        results.append(heard)
        if not heard.is_repetitive and not heard.is_unsure:
            return heard
    return _best(results)


def compression_ratio(text: str) -> float:
    """Return how many times smaller zlib makes the text; 0 of an empty one."""
    raw = text.encode("utf-8", "replace")
    return len(raw) / len(zlib.compress(raw))


def _attempts(beam: int) -> Iterator[SearchOptions]:
    yield SearchOptions(beam, alpha=0.0, nbest=beam)
    for number, temperature in enumerate(_TEMPERATURES, 1):
        yield SearchOptions(
            sample=True, temperature=temperature, nbest=_DRAWN, alpha=0.0, seed=number
        )


def _rank(one: Hypothesis) -> tuple[bool, float]:
    """Finished outputs first; then by the mean log-probability of a token."""
    return one.finished, sum(one.log_probs) / max(1, len(one.tokens))


def _heard(one: Hypothesis, read: Read, options: SearchOptions) -> Heard:
    log_prob = sum(one.log_probs) / max(1, len(one.log_probs))
    temperature = options.temperature if options.sample else 0.0
    return Heard(one.tokens, log_prob, compression_ratio(read(one.tokens)), temperature)


def _best(results: Iterable[Heard]) -> Heard:
    """The surest of those that do not repeat themselves; where all do, the least repetitive."""

    def rank(heard: Heard) -> tuple[bool, float]:
        if heard.is_repetitive:
            return False, -heard.compression
        return True, heard.log_prob

    return max(results, key=rank)
