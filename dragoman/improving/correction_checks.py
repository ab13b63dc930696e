"""Which corrections a model may learn from. Knows sentences, users and how likely a model finds
them; reads no files.

Whoever can send corrections can send a thousand wrong ones. What is empty, a copy, garbled, in the
wrong language or of an unlikely length is refused, and so is what the model itself finds no
translation at all. A user most of whose corrections are refused is refused altogether, and of every
other user a limited number counts, so that nobody outweighs the rest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.data.data_options import DataOptions
from dragoman.data.faults import Faults, raw_faults
from dragoman.data.swapped import Sides
from dragoman.improving.learn_options import Given
from dragoman.text.normalise import normalise

Pair = tuple[str, str]
UNLIKELY = "no translation, to the model's mind"
DISTRUSTED = "by a user most of whose corrections were refused"
TOO_MANY = "above the number that counts of one user"
REPEATED = "another correction of the same sentence counts"
LANGUAGE = "in the wrong language"
_REASONS = {
    "empty": "empty",
    "long": "too long",
    "markup": "HTML on one side",
    "swapped": LANGUAGE,
    "ratio": "of an unlikely length",
    "copy": "a copy of the source",
    "script": "in the wrong script",
    "garbled": "garbled",
}
_LONGEST = 2_000  # characters
_DISTRUST = 0.4  # of a user's corrections
_FEWEST_JUDGED = 5  # corrections that say something about a user
# The share of a correction's tokens to which the model gives a probability below RARE. With the
# bundled model it is below 0.36 for 95 of 100 corrections by people, and above 0.41 for as many
# translations of another sentence.
RARE = 1e-3
_MOST_RARE = 0.4


@dataclass(frozen=True)
class Checked:
    """What may be learnt, and why the rest may not."""

    usable: list[Given]
    refused: dict[str, int]  # how many, by the reason

    def in_words(self) -> str:
        """Such as "12 copies of the source, 3 empty"."""
        return ", ".join(f"{count:,} {reason}" for reason, count in self.refused.items())


class Checks:
    """Refuses corrections one after another; counts what it refused."""

    def __init__(self, sample: Sequence[Pair]) -> None:
        """`sample` is text that can be trusted, by which languages and lengths are known."""
        self._faults = Faults(DataOptions(), sample, ())
        self._sides = Sides(sample)

    def reason(self, one: Given) -> str:
        """Why a correction is refused by itself; empty if it is not."""
        source = normalise(one.source)
        target = normalise(one.target)
        kinds = [*raw_faults(one.source, one.target), *self._faults(source, target, b"")]
        for kind in kinds:
            if kind in _REASONS:
                return _REASONS[kind]
        if max(len(source), len(target)) > _LONGEST:
            return _REASONS["long"]
        return LANGUAGE if self._sides.is_foreign(source, target) else ""


def plain_reason(one: Given) -> str:
    """Why a correction is refused that needs nothing to compare with; empty if it is not."""
    source = normalise(one.source)
    target = normalise(one.target)
    if not source or not target:
        return _REASONS["empty"]
    if max(len(source), len(target)) > _LONGEST:
        return _REASONS["long"]
    return _REASONS["copy"] if source.casefold() == target.casefold() else ""


def is_unlikely(rare: float) -> bool:
    """Whether a correction is no translation, by the share of its tokens that are rare."""
    return rare > _MOST_RARE


def settled(given: Sequence[Given], reasons: Sequence[str], per_user: int, most: int) -> Checked:
    """What counts in the end, the newest last: without users who cannot be trusted, within the
    limits, and one correction for each source."""
    distrusted = _distrusted(given, reasons)
    counts = Counter(reason for reason in reasons if reason)
    left: list[Given] = []
    for one, reason in zip(given, reasons, strict=True):
        if reason:
            continue
        if one.user in distrusted:
            counts[DISTRUSTED] += 1
        else:
            left.append(one)
    within = _newest(left, per_user)
    counts[TOO_MANY] += len(left) - len(within)
    agreed = _agreed(within)
    counts[REPEATED] += len(within) - len(agreed)
    return Checked(agreed[-most:], {reason: count for reason, count in counts.items() if count})


def _distrusted(given: Sequence[Given], reasons: Sequence[str]) -> set[str]:
    """The users, all but the operator, most of whose corrections are wrong in themselves."""
    refused: Counter[str] = Counter()
    all_of: Counter[str] = Counter()
    for one, reason in zip(given, reasons, strict=True):
        all_of[one.user] += 1
        refused[one.user] += bool(reason)
    return {
        user
        for user, count in all_of.items()
        if user and count >= _FEWEST_JUDGED and refused[user] > _DISTRUST * count
    }


def _newest(given: Sequence[Given], per_user: int) -> list[Given]:
    """Of each user but the operator, the newest; in the order in which they came."""
    seen: Counter[str] = Counter()
    kept: list[Given] = []
    for one in reversed(given):
        seen[one.user] += 1
        if not one.user or seen[one.user] <= per_user:
            kept.append(one)
    return kept[::-1]


def _agreed(given: Sequence[Given]) -> list[Given]:
    """For each source the correction that most users made, or of several such the newest."""
    by_source: dict[str, list[Given]] = defaultdict(list)
    for one in given:
        by_source[normalise(one.source)].append(one)
    chosen = []
    for same in by_source.values():
        votes = Counter(normalise(one.target) for one in same)
        chosen.append(max(reversed(same), key=lambda one: votes[normalise(one.target)]))
    return chosen
