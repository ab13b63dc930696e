"""What a translation is, and how those of several sentences become one. Knows text and numbers;
no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Translation:
    """The translation of a line, and what is known of it."""

    text: str
    score: float = 0.0  # length-normalised log-probability; closer to 0 is better
    tokens: tuple[str, ...] = ()  # pieces of the text
    token_probabilities: tuple[float, ...] = ()  # of the tokens and of the end
    alternatives: tuple[Translation, ...] = ()  # the next best, if nbest asks for them
    alignment: tuple[tuple[int, int], ...] = ()  # (source word, target word), counted from 0
    confidence: float | None = None  # from 0 to 1; None if the model has not been calibrated
    flags: tuple[str, ...] = ()  # repetition, omission, copied, numbers, protected or garbled


@dataclass(frozen=True)
class Draft:
    """A translation of a line as training text, with what tells whether it is fit for that."""

    text: str
    source_tokens: int = 0
    target_tokens: int = 0
    finished: bool = True  # whether every part of it ended by itself
    whole: bool = True  # whether it carries over all that it had to


def join_translations(
    parts: Sequence[Translation], sources: Sequence[str], spaces: Sequence[str]
) -> Translation:
    """One translation of a text from those of its parts; `spaces` is what follows each part.

    Scores add up; the confidence is the mean over all tokens and ends of the parts that have one.
    """
    text = ""
    tokens: list[str] = []
    probabilities: list[float] = []
    flags: list[str] = []
    for part, space in zip(parts, spaces, strict=True):
        text += part.text + space
        tokens += part.tokens
        probabilities += part.token_probabilities
        flags += part.flags
    return Translation(
        text,
        sum(part.score for part in parts),
        tuple(tokens),
        tuple(probabilities),
        alignment=_joined_alignment(parts, sources),
        confidence=_mean_confidence(parts),
        flags=tuple(dict.fromkeys(flags)),
    )


def chain_translations(first: Translation, second: Translation) -> Translation:
    """Return the second translation with what is known of the first, whose text it translates.

    Words are aligned where both alignments say so. The lower confidence and all flags count.
    """
    pairs: set[tuple[int, int]] = set()
    for source, middle in first.alignment:
        pairs |= {(source, target) for other, target in second.alignment if other == middle}
    confidences = [one.confidence for one in (first, second) if one.confidence is not None]
    return replace(
        second,
        alignment=tuple(sorted(pairs)),
        confidence=min(confidences, default=None),
        flags=tuple(dict.fromkeys((*first.flags, *second.flags))),
    )


def _joined_alignment(
    parts: Sequence[Translation], sources: Sequence[str]
) -> tuple[tuple[int, int], ...]:
    """The alignments of the parts, each counted from where its words begin in the text."""
    pairs: list[tuple[int, int]] = []
    source_words = 0
    target_words = 0
    for part, source in zip(parts, sources, strict=True):
        pairs += [(a + source_words, b + target_words) for a, b in part.alignment]
        source_words += len(source.split())
        target_words += len(part.text.split())
    return tuple(pairs)


def _mean_confidence(parts: Sequence[Translation]) -> float | None:
    total = 0.0
    weights = 0
    for part in parts:
        if part.confidence is not None:
            weight = len(part.tokens) + 1
            total += part.confidence * weight
            weights += weight
    return total / weights if weights else None
