"""From which word of a paragraph each word of its translation comes, by the alignment and, where
that gives one word to several, by what stands beside them. Knows words and alignments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from dragoman.text.word_parts import SourceWords, core_of

_NEAR = 2  # words that may lie between a word and the one that took its place in the alignment


def links_of(
    alignment: Sequence[tuple[int, int]],
    source_count: int,
    target_count: int,
) -> dict[int, list[int]]:
    """Return the source words of each target word that is aligned."""
    links: dict[int, list[int]] = {}
    for source, target in alignment:
        if source < source_count and target < target_count:
            links.setdefault(target, []).append(source)
    return links


def origins_of(
    source: SourceWords,
    target: list[str],
    links: dict[int, list[int]],
) -> list[int]:
    """Return for each target word the source word that it comes from.

    A word without a link belongs to the origin of the word before it.
    """
    links = _without_copied(source, target, links)
    first = next(iter(links.values()), [])
    shares = Counter(chain.from_iterable(links.values()))
    origins: list[int] = []
    for number, word in enumerate(target):
        diagonal = number * len(source.words) // len(target)
        if number in links:
            candidates = links[number]
        elif word in source.kept:
            candidates = [source.kept[word]]
        elif links:
            candidates = origins[-1:] or first
        else:
            candidates = [diagonal]
        rank = _Rank(word, diagonal, source, shares)
        origins.append(min(candidates, key=rank))
    return _settled(origins, len(source.words))


def _without_copied(
    source: SourceWords,
    target: list[str],
    links: dict[int, list[int]],
) -> dict[int, list[int]]:
    """Return the links without those of other words to a source word that stands in the target as
    it is: a copy is aligned with its original alone."""
    copies: dict[int, set[int]] = {}
    for number, candidates in links.items():
        for candidate in candidates:
            if _is_copy(target[number], candidate, source):
                copies.setdefault(candidate, set()).add(number)
    left: dict[int, list[int]] = {}
    for number, candidates in links.items():
        own = [one for one in candidates if number in copies.get(one, {number})]
        if own:
            left[number] = own
    return left


def _is_copy(word: str, number: int, source: SourceWords) -> bool:
    """Whether a target word is a source word as it stands, or has in it what is kept of that."""
    if word == source.words[number]:
        return True
    core = core_of(source.parts[number])
    has_text = core.span.kind == "text" or not core.text
    return not has_text and core.text in word


def _settled(origins: list[int], source_count: int) -> list[int]:
    """Return the origins, some of the words that share one given to a source word that has none.

    It stands beside the origin of the word before or after, as an article does that the alignment
    gave to its noun. Of words in a row only the first one moves.
    """
    settled = list(origins)
    counts = Counter(origins)
    for number, origin in enumerate(origins):
        goes_on = number > 0 and settled[number - 1] == origin
        if goes_on or counts[origin] < 2:
            continue
        beside = []
        if number:
            beside.append(settled[number - 1] + 1)
        if number + 1 < len(settled):
            beside.append(settled[number + 1] - 1)
        near = [place for place in beside if abs(place - origin) <= _NEAR]
        free = [place for place in near if 0 <= place < source_count and not counts[place]]
        if free:
            settled[number] = free[0]
            counts[origin] -= 1
            counts[free[0]] += 1
    return settled


@dataclass(frozen=True)
class _Rank:
    """The order of the source words that a target word may come from: rather an equal one, then one
    that is translated, then one with few other words, then a near one."""

    word: str
    diagonal: int
    source: SourceWords
    shares: Counter[int]

    def __call__(self, number: int) -> tuple[bool, bool, int, int]:
        candidate = self.source.words[number]
        is_other = candidate != self.word
        is_kept = candidate in self.source.kept
        distance = abs(number - self.diagonal)
        return is_other, is_kept, self.shares[number], distance


def gap_before(origins: Sequence[int], number: int) -> int:
    """Return the gap for what stood before source word `number`: the fewest words change sides.

    It never decreases as `number` grows, so spans without words keep their order.
    """
    steps = (1 if origin >= number else -1 for origin in origins)
    costs = list(accumulate(steps, initial=0))
    return costs.index(min(costs))
