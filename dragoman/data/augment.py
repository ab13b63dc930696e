"""Training pairs as people also write them: capitals, typos, no full stop, names to be copied.

Knows pairs of strings; no tokeniser, no files and no batches. What becomes of a pair follows from
the generator that is given.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated

from dragoman.errors import OptionError
from dragoman.text.copying import NAMES, TAUGHT, Concealer

Pair = tuple[str, str]
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Placeholders, addresses and file names keep their case.
_CODE = re.compile(r"[%{}<>@_/\\$&#=`]|\d\w*[^\W\d_]|[^\W\d_]\.[^\W\d_]")
_WORD = re.compile(r"\w+(?:[-'’.]\w+)*")
_AROUND_ALL = 0.2  # of the pairs with copy tokens, how many stand between two of them
_STOPS = (".", "!", "?", ":")
_SIGNS = ["😀", "😂", "😊", "😍", "👍", "🙏", "🎉", "🔥", "❤️", "🤔", "😢", "✅", "⚠️", "→", "★", "•"]


@dataclass(frozen=True)
class AugmentOptions:
    """Which share of the training pairs is changed in each epoch, and how."""

    upper: Annotated[float, "both sides in UPPER CASE"] = 0.05
    title: Annotated[float, "the source in Title Case"] = 0.05
    lower: Annotated[float, "the source in lower case"] = 0.04
    typos: Annotated[float, "slips of the pen in the source, in one word of six or so"] = 0.06
    stop: Annotated[float, "neither side with its final full stop"] = 0.1
    signs: Annotated[float, "emoji and other signs at an end of both sides"] = 0.02
    copies: Annotated[
        float,
        "names, numbers and addresses replaced by copy tokens, which carry over what must stay",
    ] = 0.15
    whole: Annotated[float, "a single name or code, to be copied as it is"] = 0.01

    def __post_init__(self) -> None:
        shares = dict(self.shares())
        for name, share in shares.items():
            if not 0.0 <= share <= 1.0:
                raise OptionError(f"augment.{name} is {share}; a share lies between 0 and 1")
        total = sum(shares.values())
        if total > 1.0:
            raise OptionError(
                f"the shares of augment sum to {total:.2f}; they must leave some pairs as they are"
            )

    def shares(self) -> list[tuple[str, float]]:
        """Return each kind of change with its share."""
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


class Augmenter:
    """Changes pairs of two languages; `copies` is how many copy tokens the vocabulary has."""

    def __init__(self, source_language: str, target_language: str, copies: int) -> None:
        self._concealer = Concealer(source_language, target_language)
        self._copies = min(copies, TAUGHT)
        self._kinds: dict[str, Callable[[str, str, random.Random], Pair]] = {
            "upper": _upper,
            "title": _title,
            "lower": _lower,
            "typos": _typos,
            "stop": _unstopped,
            "signs": self._with_signs,
            "copies": self._with_copies,
            "whole": self._whole,
        }

    def change(self, kind: str, pair: Pair, draw: random.Random) -> Pair:
        """Return the pair changed in one way; the same pair where that is not possible."""
        return self._kinds[kind](*pair, draw)

    def _with_signs(self, source: str, target: str, draw: random.Random) -> Pair:
        """The pair with a sign, or a copy token in its place, at the same end of both sides."""
        sign = NAMES[0] if self._copies else draw.choice(_SIGNS)
        if self._copies and NAMES[0] in source + target:
            return source, target
        if draw.random() < 0.8:
            return f"{source} {sign}", f"{target} {sign}"
        return f"{sign} {source}", f"{sign} {target}"

    def _with_copies(self, source: str, target: str, draw: random.Random) -> Pair:
        """The pair with some of what both sides have in common replaced by copy tokens.

        The tokens are numbered as they come in the source. Some stand around a word rather than
        in its place, as tags do, or around all of the pair: were it always a word that both sides
        have, a model would learn to leave as it is whatever stands between tags.
        """
        has_tokens = any(name in source or name in target for name in NAMES)
        if has_tokens or not self._copies:
            return source, target
        if self._copies > 1 and draw.random() < _AROUND_ALL:
            return _wrapped(source, target, draw)
        common = self._common(source, target)
        if not common:
            return source, target
        most = min(len(common), self._copies)
        # The greater of two draws: few pairs have several, and those are hard.
        count = max(draw.randint(1, most), draw.randint(1, most))
        chosen = sorted(draw.sample(common, count))
        has_room = count <= self._copies // 2
        around = has_room and draw.random() < 0.25
        parts: list[str] = []
        end = 0
        for number, (start, stop, written) in enumerate(chosen):
            before = source[end:start]
            if around:
                opening = NAMES[2 * number]
                closing = NAMES[2 * number + 1]
                parts += [before, opening, source[start:stop], closing]
                replaced = f"{opening}{written}{closing}"
            else:
                replaced = NAMES[number]
                parts += [before, replaced]
            target = target.replace(written, replaced, 1)
            end = stop
        rest = source[end:]
        return "".join(parts) + rest, target

    def _whole(self, source: str, target: str, draw: random.Random) -> Pair:
        """One name or code of the pair alone, on both sides."""
        common = self._common(source, target)
        if not common:
            return source, target
        start, stop, written = draw.choice(common)
        return source[start:stop], written

    def _common(self, source: str, target: str) -> list[tuple[int, int, str]]:
        """Where the source has something that the target has as well, and how it is written
        there: spans that must stay, numbers, and words with a capital, each once on both sides."""
        must_stay = list(self._concealer.spans(source))
        taken = [(begin, end) for begin, end, _ in must_stay]
        spans = must_stay + _names(source, taken)
        if not spans:
            return []
        source_words = Counter(_WORD.findall(source))
        target_words = Counter(_WORD.findall(target))
        common = []
        for begin, end, written in spans:
            if target.count(written) != 1:
                continue
            if target_words[written] != 1 and _WORD.fullmatch(written):
                continue  # it is part of a word
            in_source = source[begin:end]
            if source_words[in_source] <= 1:
                common.append((begin, end, written))
        return common


def _wrapped(source: str, target: str, draw: random.Random) -> Pair:
    """The pair between two copy tokens, with or without the mark that ends both sides."""
    opening, closing = NAMES[:2]
    stop = source[-1:]
    if stop not in _STOPS or stop != target[-1:] or draw.random() < 0.5:
        return f"{opening}{source}{closing}", f"{opening}{target}{closing}"
    return (
        f"{opening}{source[:-1]}{closing}{stop}",
        f"{opening}{target[:-1]}{closing}{stop}",
    )


def _names(text: str, taken: list[tuple[int, int]]) -> list[tuple[int, int, str]]:
    """Where the text has names and codes, outside of what is taken, and how they are written."""
    names = []
    for match in _WORD.finditer(text):
        word = match[0]
        begin, end = match.span()
        if not _is_name(word):
            continue
        if all(end <= first or begin >= last for first, last in taken):
            names.append((begin, end, word))
    return names


def _is_name(word: str) -> bool:
    """Whether a word has a capital, or a digit at an end, as names and codes do."""
    if len(word) == 1:
        return False
    has_digit = word[0].isdigit() or word[-1].isdigit()
    has_capital = word != word.lower()
    return has_digit or has_capital


def _upper(source: str, target: str, draw: random.Random) -> Pair:
    return recased(source, str.upper), recased(target, str.upper)


def _title(source: str, target: str, draw: random.Random) -> Pair:
    return recased(source, capitalised), target


def _lower(source: str, target: str, draw: random.Random) -> Pair:
    return recased(source, str.lower), target


def recased(text: str, change: Callable[[str], str]) -> str:
    """Return the text with its words changed, but for placeholders, addresses and file names."""
    words = []
    for word in text.split(" "):
        is_code = _CODE.search(word)
        words.append(word if is_code else change(word))
    return " ".join(words)


def _typos(source: str, target: str, draw: random.Random) -> Pair:
    return with_typos(source, draw), target


def _unstopped(source: str, target: str, draw: random.Random) -> Pair:
    return without_stop(source, target)


def capitalised(word: str) -> str:
    """Return a word with a capital, its other letters as they are."""
    return word[:1].upper() + word[1:]


def without_stop(source: str, target: str) -> Pair:
    """Return the pair without its final full stops, where both sides have one."""
    both_stop = source.endswith(".") and target.endswith(".")
    shorter = min(len(source), len(target))
    if not both_stop or source.endswith("..") or shorter < 2:
        return source, target
    return source[:-1], target[:-1]


def with_typos(text: str, draw: random.Random, count: int | None = None) -> str:
    """Return the text with a slip in `count` of its longer words, or in one word of six or so: two
    letters swapped, or one left out, doubled or replaced."""
    words = text.split(" ")
    long_words = [index for index, word in enumerate(words) if len(word) > 3 and word.isalpha()]
    if count is None:
        count = 1 + len(words) // draw.randint(5, 12)
    count = min(count, len(long_words))
    for index in draw.sample(long_words, count):
        words[index] = _with_typo(words[index], draw)
    return " ".join(words)


def _with_typo(word: str, draw: random.Random) -> str:
    at = draw.randrange(len(word) - 1)
    letter = word[at]
    following = word[at + 1]
    slips = (
        following + letter,
        following,
        letter,
        letter * 2 + following,
        letter + draw.choice(_LETTERS),
    )
    before = word[:at]
    after = word[at + 2 :]
    return before + draw.choice(slips) + after
