"""Signs that a translation may be wrong, from the two strings alone. Knows no model, no language
and no probabilities.

Cautious on purpose: a sign is worth a second look only if right translations seldom show it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter

from dragoman.text.broken_characters import is_garbled
from dragoman.text.protected import protected, without_protected
from dragoman.text.scripts import IDEOGRAPHS
from dragoman.text.words import ATOM

# The signs, in the order in which they are named.
FLAGS = ("repetition", "omission", "copied", "numbers", "protected", "garbled")
# Those that say that a translation is useless as a whole.
SERIOUS = frozenset({"repetition", "omission", "copied", "garbled"})
_NUMBER = re.compile(r"\d{4,}|\d{1,3}([.,'’٫٬ \u00a0\u202f])\d{3}(?:\1\d{3})*(?!\d)|\d+")
_STUTTER = re.compile(r"([^\W\d_]{1,8}?)\1{4}")
_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
_LONGEST_DOUBLED = 30  # words
_LETTERS_DOUBLED = 10
_COPIED_RUN = 4  # words that stand side by side in both texts
_CLAUSE = re.compile(r"[,;:，；：、،]|[.!?。！？](?=\s|$)")
_SHORTEST_WITH_CLAUSES = 40  # characters
_SPELT = 12  # numbers up to this one are often written as words on one side
_LONG_NUMBER = 3  # digits; shorter ones may stand twice in one language and once in the other
_COMPARED_NUMBERS = 10_000  # pairs of numbers; more take too long to compare


def flags(
    source: str,
    target: str,
    ratio: tuple[float, float] | None = None,
) -> tuple[str, ...]:
    """Return the names of what looks wrong, in the order of `FLAGS`.

    `ratio` is the mean and the standard deviation of log(target characters / source characters)
    over good translations.
    """
    source_protected = protected(source)
    target_protected = protected(target)
    omits = _omits(source.strip(), target.strip(), ratio)
    garbled = is_garbled(source, target)
    source = without_protected(source)
    target = without_protected(target)
    source_words = _words(source)
    target_words = _words(target)
    repeats = _repeats(source_words, target_words)
    stutters = _stutters(target_words) and not _stutters(source_words)
    signs = {
        "repetition": repeats or stutters,
        "omission": omits,
        "copied": _copies(source_words, target_words),
        "numbers": _changes(_numbers(source), _numbers(target)),
        "protected": Counter(source_protected) != Counter(target_protected),
        "garbled": garbled,
    }
    return tuple(name for name in FLAGS if signs[name])


def repeats(source: str, target: str) -> bool:
    """Whether the target says something over and over that the source does not, as `flags` has it
    under the name of repetition."""
    source_words = _words(without_protected(source))
    target_words = _words(without_protected(target))
    if _repeats(source_words, target_words):
        return True
    return _stutters(target_words) and not _stutters(source_words)


def _words(text: str) -> list[str]:
    return [atom for atom in ATOM.findall(text) if atom[0].isalnum()]


def _repeats(source: list[str], target: list[str]) -> bool:
    """Whether the target repeats a phrase that the source does not repeat as often.

    A phrase is repeated if up to eight words (or characters, in scripts without spaces) stand
    three times in a row, if it makes up half of the text, or if it is long and stands twice in a
    row.
    """
    target = [word.casefold() for word in target]
    source = [word.casefold() for word in source]
    if _is_doubled(target) and not _is_doubled(source):
        return True
    most = max(Counter(target).values(), default=0)
    if most < 3:
        return False
    for size in range(1, 9):
        usual = max(2, _run(source, size))
        if _run(target, size, 1) > usual:
            return True
    if most <= 3:
        return False
    sizes = range(1, 5)
    return any(_dominates(target, size) and not _dominates(source, size) for size in sizes)


def _run(
    words: list[str],
    size: int,
    discount: int = 0,
) -> int:
    """Return how many times in a row a phrase of `size` words stands.

    Phrases without letters do not count; a single character counts `discount` times less.
    """
    best = 0
    streak = 0
    pairs = zip(words, words[size:], strict=False)
    for index, (word, later) in enumerate(pairs):
        streak = streak + 1 if word == later else 0
        if streak <= best:
            continue
        phrase = words[index : index + size]
        if any(part[0].isalpha() for part in phrase):
            is_character = size == len(word) == 1
            best = streak - discount * is_character
    return best // size + 1


def _is_doubled(words: list[str]) -> bool:
    """Whether three or more words of ten letters in all are said again at once."""
    longest = min(_LONGEST_DOUBLED, len(words) // 2)
    for size in range(3, longest + 1):
        streak = 0
        pairs = zip(words, words[size:], strict=False)
        for end, (word, later) in enumerate(pairs, 1):
            streak = streak + 1 if word == later else 0
            if streak < size:
                continue
            phrase = words[end - size : end]
            letters = sum(map(len, phrase))
            if letters >= _LETTERS_DOUBLED and len({*phrase}) > 1:
                return True
    return False


def _dominates(words: list[str], size: int) -> bool:
    """Whether some phrase of `size` words stands at least four times and makes up half of all."""
    shifted = [words[start:] for start in range(size)]
    phrases = Counter(zip(*shifted, strict=False))
    most = max(phrases.values(), default=0)
    covered = most * size
    return most > 3 and 2 * covered >= len(words)


def _stutters(words: list[str]) -> bool:
    """Whether a word holds something five times in a row.

    Three times is good Twi ("ɔpepepem", a thousand million).
    """
    for word in words:
        distinct = len(set(word))
        if 2 * distinct <= len(word) and _STUTTER.search(word):
            return True
    return False


def _omits(
    source: str,
    target: str,
    ratio: tuple[float, float] | None,
) -> bool:
    """Whether the target is 2.3 deviations shorter than expected, more for short sentences; or 1.4
    and has lost a comma or the like, and so perhaps a clause."""
    if not source or not target:
        return bool(source)
    mean, deviation = ratio or (0.0, 0.35)
    source_size = len(source)
    target_size = len(target)
    if ratio is None:
        # An ideograph says as much as three letters; a learnt ratio knows this already.
        source_size += 2 * len(_IDEOGRAPH.findall(source))
        target_size += 2 * len(_IDEOGRAPH.findall(target))
    deviation_when_short = 1.5 / math.sqrt(source_size)
    spread = math.hypot(deviation, deviation_when_short)
    found = math.log(target_size / source_size)
    missing = (mean - found) / spread
    if missing > 2.3:
        return True
    has_clauses = len(source) >= _SHORTEST_WITH_CLAUSES
    if not has_clauses or missing <= 1.4:
        return False
    return _clauses(target) < _clauses(source)


def _clauses(text: str) -> int:
    return sum(1 for _ in _CLAUSE.finditer(text))


def _copies(source: list[str], target: list[str]) -> bool:
    """Whether three distinct words in five are the same, at least three of them in lower case; or
    four side by side.

    Words in lower case are not names.
    """
    same_runs = _runs(source) & _runs(target)
    if any(map(_is_prose, same_runs)):
        return True
    source_words = set(source)
    target_words = set(target)
    same = source_words & target_words
    most = max(len(source_words), len(target_words), 4)
    if len(same) < 0.6 * most:
        return False
    lower_case = [word for word in same if _is_lower_case(word)]
    return len(lower_case) > 2


def _is_lower_case(word: str) -> bool:
    """Whether this is a word in lower case, and not a part of a formula such as x or b²."""
    is_letter = len(word) == 1 and word.isascii()
    is_word = word[0].isalpha() and not is_letter and not word[-1].isdigit()
    return is_word and word == word.lower()


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    """All runs of four words."""
    shifted = [words[start:] for start in range(_COPIED_RUN)]
    return set(zip(*shifted, strict=False))


def _is_prose(run: tuple[str, ...]) -> bool:
    """Whether these words could not be a name: three of them are distinct, in lower case and of two
    letters or more."""
    long_words = {word for word in run if len(word) > 1}
    lower_case = [word for word in long_words if word.isalpha() and word.islower()]
    return len(lower_case) >= _COPIED_RUN - 1


def _changes(source: Counter[str], target: Counter[str]) -> bool:
    """Whether a number is missing or new, or a long one said again.

    Small and round numbers may have been words in the source, and small ones may become words in
    the target; but not if another number stands there instead.
    """
    missing = source.keys() - target.keys()
    new = target.keys() - source.keys()
    if any(_is_said_again(number, source, target) for number in target):
        return True
    if len(missing) * len(new) > _COMPARED_NUMBERS:
        return True
    alike = [(one, other) for one in missing for other in new if _are_alike(one, other)]
    for one, other in alike:
        missing.discard(one)
        new.discard(other)
    if missing and new:
        return True
    missing_are_small = all(map(_is_small, missing))
    new_are_round = all(_is_small(number.rstrip("0")) for number in new)
    return not (missing_are_small and new_are_round)


def _is_said_again(number: str, source: Counter[str], target: Counter[str]) -> bool:
    return len(number) >= _LONG_NUMBER and 0 < source[number] < target[number]


def _is_small(number: str) -> bool:
    return len(number) < 3 and int(number or 0) <= _SPELT


def _are_alike(one: str, other: str) -> bool:
    """Whether two numbers may mean the same: 3000000 and 3 (million), 1980 and 80."""
    short, long = sorted((one, other), key=len)
    zeros = len(long) - len(short)
    if zeros > 2 and long.rstrip("0") == short.rstrip("0"):
        return True
    if len(long) != 4 or len(short) > 2:
        return False
    century = long[:2]
    year = long[2:]
    return century in ("19", "20") and int(year) == int(short)


def _numbers(text: str) -> Counter[str]:
    """Count the numbers in any script, as digits without thousands separators or leading zeros."""
    numbers: Counter[str] = Counter()
    for match in _NUMBER.finditer(text):
        separator = match[1] or " "
        digits = match[0].replace(separator, "")
        decimals = [str(unicodedata.decimal(digit)) for digit in digits]
        number = "".join(decimals).lstrip("0")
        numbers[number or "0"] += 1
    return numbers
