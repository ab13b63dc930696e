"""Signs that a translation may be wrong, from the two strings alone. Knows no model, no language
and no probabilities.

Cautious on purpose: a sign is worth a second look only if right translations seldom show it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter

from dragoman.text.words import ATOM

# What a translation must carry over as it stands.
_PROTECTED = re.compile(
    r"""(?:(?:https?|ftp)://|\bwww\.)[!#-;=?-~À-ɏ]*[\w/#=&~%-]      # URL, without the full stop or bracket after it
    |(?<![\w.%+-])[\w.%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+             # e-mail address
    |\{\{\s?[^{}\s]{1,80}\s?\}\} | \$?\{[^{}\s]{0,80}\}             # {{x}} {name} ${x}
    |%\(\w{1,80}\)[a-z] | (?<![\d%])%(?:\d+\$)?[-+0#]*\d*(?:\.\d+)?[sdifuxcegr@](?![a-z])   # %(name)s %s %1$s %.2f
    |</?[a-z][^<>]{0,200}> | &(?:[a-z]\w{1,31}|\#\d{1,7}|\#x[0-9a-f]{1,6});                 # <b> &amp;
    |\[\[[^\[\]\s]{1,80}\]\] | __[a-z0-9]+(?:_[a-z0-9]+)*__         # [[1]] __X__""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
_MAY_BE_PROTECTED = re.compile(
    r"[@{]|%[^\s)]|</?\w|&[\w#]|__|\[\[|://|www\.", re.IGNORECASE
)  # far quicker than the whole
_NUMBER = re.compile(r"\d{4,}|\d{1,3}([.,'’٫٬ \u00a0\u202f])\d{3}(?:\1\d{3})*(?!\d)|\d+")
_STUTTER = re.compile(r"([^\W\d_]{1,8}?)\1{4}")
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
_SPELT = 12  # numbers up to this one are often words on one side


def flags(source: str, target: str, ratio: tuple[float, float] | None = None) -> tuple[str, ...]:
    """Names of what looks wrong, among repetition, omission, copied, numbers, protected and
    garbled, in this order.

    `ratio` is the mean and the standard deviation of log(target characters / source characters)
    over good translations.
    """
    kept, kept_target = protected(source), protected(target)
    omitted = _omits(source.strip(), target.strip(), ratio)
    source, target = _without(kept, source), _without(kept_target, target)
    words, target_words = _words(source), _words(target)
    signs = {
        "repetition": _repeats(words, target_words)
        or (_stutters(target_words) and not _stutters(words)),
        "omission": omitted,
        "copied": _copies(words, target_words),
        "numbers": _changes(_numbers(source), _numbers(target)),
        "protected": Counter(kept) != Counter(kept_target),
        "garbled": target.count("\ufffd") > source.count("\ufffd"),  # bytes that spell no character
    }
    return tuple(name for name, found in signs.items() if found)


def protected(text: str) -> list[str]:
    """URLs, e-mail addresses, placeholders, tags and entities, in order of appearance, each as
    it stands."""
    return _PROTECTED.findall(text) if _MAY_BE_PROTECTED.search(text) else []


def _without(kept: list[str], text: str) -> str:
    return _PROTECTED.sub(" ", text) if kept else text


def _words(text: str) -> list[str]:
    return [atom for atom in ATOM.findall(text) if atom[0].isalnum()]


def _repeats(source: list[str], target: list[str]) -> bool:
    """Up to eight words (or characters, in scripts without spaces) three times in a row, or half
    of the target being one phrase; in either case more often than in the source."""
    target = [word.casefold() for word in target]
    most = max(Counter(target).values(), default=0)
    if most < 3:
        return False
    source = [word.casefold() for word in source]
    if any(_run(target, size, 1) > max(2, _run(source, size)) for size in range(1, 9)):
        return True
    return most > 3 and any(
        _reigns(target, size) and not _reigns(source, size) for size in range(1, 5)
    )


def _run(words: list[str], size: int, discount: int = 0) -> int:
    """How many times in a row some `size` words stand, letters among them; a single character
    `discount` times less."""
    best = streak = 0
    for place, (word, later) in enumerate(zip(words, words[size:], strict=False)):
        streak = streak + 1 if word == later else 0
        if streak > best and any(part[0].isalpha() for part in words[place : place + size]):
            best = streak - discount * (size == len(word) == 1)
    return best // size + 1


def _reigns(words: list[str], size: int) -> bool:
    """Whether some `size` words stand four times or more and make up half of all."""
    phrases = Counter(zip(*(words[start:] for start in range(size)), strict=False))
    most = max(phrases.values(), default=0)
    return most > 3 and 2 * most * size >= len(words)


def _stutters(words: list[str]) -> bool:
    """Whether a word holds something five times in a row; three times is good Twi ("ɔpepepem", a
    thousand million)."""
    return any(2 * len(set(word)) <= len(word) and _STUTTER.search(word) for word in words)


def _omits(source: str, target: str, ratio: tuple[float, float] | None) -> bool:
    """Whether the target is 2.5 deviations shorter than the mean has it; short sentences get
    more room."""
    if not source or not target:
        return bool(source)
    mean, deviation = ratio or (0.0, 0.35)
    # A Chinese or Japanese character says as much as three letters; a ratio that was learnt knows
    # this already.
    sizes = [
        len(text) + (0 if ratio else 2 * len(_WIDE.findall(text))) for text in (source, target)
    ]
    return math.log(sizes[1] / sizes[0]) < mean - 2.5 * math.hypot(
        deviation, 1.5 / math.sqrt(sizes[0])
    )


def _copies(source: list[str], target: list[str]) -> bool:
    """Whether three distinct words in five are the same, three of them written small, so that
    they are no names."""
    ours, theirs = set(source), set(target)
    same = ours & theirs
    enough = len(same) >= 0.6 * max(len(ours), len(theirs), 4)
    return enough and sum(word[0].isalpha() and word == word.lower() for word in same) > 2


def _changes(source: set[str], target: set[str]) -> bool:
    """Whether a number is missing or new. Small and round ones may have been words in the
    source, small ones may become words in the target; but not if another number stands there
    instead."""
    missing, new = source - target, target - source
    if len(missing) * len(new) > 10_000:  # too many to compare each with each
        return True
    pairs = [(one, other) for one in missing for other in new if _alike(one, other)]
    missing, new = missing - {one for one, _ in pairs}, new - {other for _, other in pairs}
    return bool(missing and new) or not (
        all(map(_is_small, missing)) and all(_is_small(n.rstrip("0")) for n in new)
    )


def _is_small(number: str) -> bool:
    return len(number) < 3 and int(number or 0) <= _SPELT


def _alike(one: str, other: str) -> bool:
    """3000000 and 3 (million), 1980 and 80."""
    short, long = sorted((one, other), key=len)
    zeros = len(long) - len(short) > 2 and long.rstrip("0") == short.rstrip("0")
    return zeros or (
        len(long) == 4
        and len(short) < 3
        and long[:2] in ("19", "20")
        and int(long[2:]) == int(short)
    )


def _numbers(text: str) -> set[str]:
    """The groups of digits, in any script, without thousands marks and leading zeros."""
    found = (match[0].replace(match[1] or " ", "") for match in _NUMBER.finditer(text))
    return {
        "".join(str(unicodedata.decimal(digit)) for digit in group).lstrip("0") or "0"
        for group in found
    }
