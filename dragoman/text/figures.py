"""Amounts and times as another language writes them: 1,234.56 and 1.234,56, 5:30 pm and 17:30 Uhr.

Knows strings and language codes. What a language's own habits leave open, such as 1.234 in an
English text, is copied unchanged. Whole numbers without marks are no business of this module: they
are the same in all these languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.text.large_sums import SCALES, in_words

_NARROW = "\u202f"  # a narrow space that does not break
_SPACE = "\u00a0"
_GROUPS = {
    ".,": "en zh ja ko th he hi bn ta te ur tl sw tw ak ha yo ig zu xh",
    ",.": "de es it nl pt id tr da el hr sl ro vi is gl ca eu sr mk",
    f",{_NARROW}": "fr ru uk pl cs sk sv no nb nn fi hu bg lt lv et be",
}
_CURRENCIES = "$€£¥₹₽₺₩₴₵₦"
# Languages in which the sign of a currency follows the amount.
_SIGN_AFTER = {
    *("de", "es", "it", "fr", "da", "el", "hr", "sl", "ro", "ca", "eu", "gl", "sr"),
    *_GROUPS[f",{_NARROW}"].split(),
}
# Languages that count the hours of a day to 24 and never say am or pm.
_HOURS_TO_24 = _SIGN_AFTER | {"nl", "pt", "tr", "id", "ja", "zh", "is"}
_TIME_WORDS = {"de": " Uhr"}
# What stands before a time of day, where it means many other things too: a model that reads "at"
# and a name in place of the time cannot know that it is "um". The other way, "um" says enough.
_AT = {("en", "de"): ("at", "um")}
# Languages in which "am" is a word: in "um 5:30 am Montag" it does not mean the morning.
_AM_IS_A_WORD = {"de", "ro"}


class Figure(NamedTuple):
    """Where a figure stands in a text, and how the target language writes it."""

    start: int
    end: int
    written: str


@dataclass(frozen=True)
class Style:
    """How a language writes numbers."""

    language: str
    decimal: str  # the mark before the fraction
    group: str  # the mark between thousands

    @property
    def currency_first(self) -> bool:
        """Whether the sign of a currency stands before the amount."""
        return self.language not in _SIGN_AFTER


def style_of(language: str) -> Style | None:
    """Return how a language writes numbers, or None if that is not known here."""
    code = re.split("[-_]", language.lower())[0]
    for marks, languages in _GROUPS.items():
        if code in languages.split():
            return Style(code, decimal=marks[0], group=marks[1])
    return None


def figures(text: str, source: Style | None, target: Style | None) -> Iterator[Figure]:
    """Yield the amounts and times of a text, each as the target language writes it.

    Where a language's style is not known, a figure stays as it is.
    """
    if _MAY_BE_FIGURE.search(text) is None:
        return
    am_is_a_word = source is not None and source.language in _AM_IS_A_WORD
    pattern = _WITHOUT_AM if am_is_a_word else _FIGURE
    last = len(text.rstrip())
    for match in pattern.finditer(text):
        if match["clock"] and _ends_range(match):
            continue
        start, end, written = _figure_of(match, source, target)
        has_point = match[0].lower().endswith(".m.")
        if has_point and match.start() > 0 and end == last:
            # The point of "at 5 p.m." is also the sentence's.
            end -= 1
            written = written.removesuffix(".")
        yield Figure(start, end, written)


_AMOUNT = rf"""
    [0-9]{{1,3}}(?:[.,'{_SPACE}{_NARROW}][0-9]{{3}}){{1,6}}(?:[.,][0-9]{{1,9}})?(?![0-9])
    |[0-9]{{1,12}}[.,][0-9]{{1,9}}
"""
_GAP = f"[ {_SPACE}{_NARROW}]?"
_SIGN = f"(?-i:US|CA|AU|NZ|HK|[ACRS])?[{re.escape(_CURRENCIES)}]"
_SCALE = "|".join(map(re.escape, SCALES))
_EITHER_HALF = "[ap]"
_FIGURES = rf"""
    # a time, perhaps of half a day
    (?<![\w:.,])(?P<hour>[0-9]{{1,2}}):(?P<minute>[0-5][0-9])(?P<second>:[0-5][0-9])?
        (?:{_GAP}(?:(?P<half>{_EITHER_HALF})(?:m\b|\.m\.)|(?P<word>Uhr)\b))?(?![\w:]*\w)
    # a whole hour of half a day
    |(?<![\w:.,])(?P<clock>1[0-2]|[1-9])
        {_GAP}(?P<part>{_EITHER_HALF})(?:m\b|\.m\.)(?![\w:]*\w)
    # a date in digits
    |(?<![\w./-])[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?![\w/-])
    |(?<![\w./-])[0-9]{{1,2}}(?P<mark>[./])[0-9]{{1,2}}(?P=mark)[0-9]{{2,4}}(?![\w/-])
    # a version
    |(?<![\w.,])[0-9]{{1,3}}(?:\.[0-9]{{1,2}}){{2,4}}(?![\w.]*\w)
    # a telephone number
    |(?<!\w)\+[0-9](?:[ ()/-]?[0-9]){{6,14}}(?![\w-]*\w)
    |(?<![\w+.,/-])\(?0[0-9]{{1,5}}\)?(?:[ /-][0-9]{{2,12}}){{1,5}}(?![\w-]*\w)
    # the number of a bank account, of a card
    |(?<!\w)(?-i:[A-Z]{{2}})[0-9]{{2}}[ ]?(?-i:[A-Z0-9]{{4}})(?:[ ]?[0-9]{{4}}){{2,6}}
        (?:[ ]?[0-9]{{1,3}})?(?![\w-]*\w)
    |(?<![\w.,-])[0-9]{{4}}(?:[ -][0-9]{{4}}){{2,5}}(?![\w-]*\w)
    # a sum of millions, the sign before or after it
    |(?<![\w.,])(?P<sign>{_SIGN}){_GAP}(?P<sum>{_AMOUNT}|[0-9]{{1,12}})
        [- {_SPACE}{_NARROW}]?(?P<scale>{_SCALE})(?!\w)
    |(?<![\w.,])(?P<total>{_AMOUNT}|[0-9]{{1,12}}){_GAP}(?P<scales>{_SCALE}){_GAP}
        (?P<unit>{_SIGN})(?![\w{{])
    # an amount of money, the sign before or after it
    |(?<![\w.,])(?P<before>{_SIGN}){_GAP}(?P<money>{_AMOUNT}|[0-9]{{1,12}})(?![\w.,]*\w)
    |(?<![\w.,])(?P<price>{_AMOUNT}|[0-9]{{1,12}}){_GAP}(?P<after>{_SIGN})(?![\w{{])
    # a number with marks
    |(?<![\w.,:/+-])(?P<number>{_AMOUNT})(?![\w.,:/]*\w)
    """
_FLAGS = re.IGNORECASE | re.VERBOSE
_FIGURE = re.compile(_FIGURES, _FLAGS)
_WITHOUT_AM = re.compile(_FIGURES.replace(_EITHER_HALF, "p"), _FLAGS)

# Every figure has one of these; searching for them is far quicker.
_MAY_BE_FIGURE = re.compile(
    rf"[0-9][.,:'/{_SPACE}{_NARROW}-][0-9]|\+[0-9]|[{re.escape(_CURRENCIES)}]"
    rf"|[0-9]{_GAP}[ap]\.?m|0[0-9]\)? ?[0-9]|[0-9]{{4}} ?[0-9]{{4}}",
    re.IGNORECASE,
)
# A number that the half of a day after the next one may belong to as well, as in "5 to 6 pm".
_BEGUN_RANGE = re.compile(r"[0-9]\s?(?:[-–/]|\b(?:to|and|or|till|until)\b)\s?\Z")
_LONGEST_LINK = 10  # characters between two numbers of a range
_GROUPED = re.compile(r"[0-9]{1,3}(?:[^0-9][0-9]{3})+")


def _figure_of(match: re.Match[str], source: Style | None, target: Style | None) -> Figure:
    if match["sum"] or match["total"]:
        return _large_sum(match, source, target)
    if source is None or target is None:
        return Figure(*match.span(), match[0])
    start, end = match.span()
    written = _rewritten(match, source, target)
    said, meant = _AT.get((source.language, target.language), ("", ""))
    if said and _is_time(match) and _follows(match.string, start, said):
        start -= len(said) + 1
        at = meant.capitalize() if match.string[start].isupper() else meant
        written = f"{at} {_with_word(match, written, target)}"
    return Figure(start, end, written)


def _large_sum(match: re.Match[str], source: Style | None, target: Style | None) -> Figure:
    """A sum in words of the target language; where these are not known, its number alone."""
    group = "sum" if match["sum"] else "total"
    number = match[group]
    if source is None or target is None:
        return Figure(*match.span(group), number)
    written = _number(number, source, target) or number
    scale = match["scale"] or match["scales"]
    sign = match["sign"] or match["unit"]
    languages = (source.language, target.language)
    whole = in_words(written, scale, sign, languages, target.currency_first)
    return Figure(*match.span(), whole) if whole else Figure(*match.span(group), written)


def _rewritten(match: re.Match[str], source: Style, target: Style) -> str:
    if match["hour"]:
        return _time(match, target)
    if match["clock"]:
        return _whole_hour(match, target)
    if match["number"]:
        return _number(match["number"], source, target) or match[0]
    sign = match["before"] or match["after"]
    if sign is None:
        return match[0]
    amount = _number(match["money"] or match["price"], source, target)
    if amount is None:
        return match[0]
    return f"{sign}{amount}" if target.currency_first else f"{amount} {sign}"


def _time(match: re.Match[str], target: Style) -> str:
    """The time by a clock of 24 hours where the target language has no other."""
    hour = int(match["hour"])
    seconds = match["second"] or ""
    word = _TIME_WORDS.get(target.language, "")
    if match["word"]:
        return f"{match['hour']}:{match['minute']}{seconds}{word}"
    if not match["half"] or target.language not in _HOURS_TO_24 or not 1 <= hour <= 12:
        return match[0]
    hour = _hour_of_day(hour, match["half"])
    return f"{hour}:{match['minute']}{seconds}{word}"


def _whole_hour(match: re.Match[str], target: Style) -> str:
    """An hour without minutes by a clock of 24 hours, where the target language has no other."""
    if target.language not in _HOURS_TO_24:
        return match[0]
    hour = _hour_of_day(int(match["clock"]), match["part"])
    word = _TIME_WORDS.get(target.language)
    return f"{hour}{word}" if word else f"{hour}:00"


def _hour_of_day(hour: int, half: str) -> int:
    """The hour by a clock of 24 hours: 12 am is 0, and 12 pm is 12."""
    return hour % 12 + (12 if half.lower() == "p" else 0)


def _is_time(match: re.Match[str]) -> bool:
    return bool(match["hour"] or match["clock"])


def _follows(text: str, start: int, word: str) -> bool:
    """Whether a word and a space stand before this place."""
    first = start - len(word) - 1
    if first < 0 or text[first:start].lower() != f"{word} ":
        return False
    return first == 0 or not text[first - 1].isalnum()


def _with_word(match: re.Match[str], written: str, target: Style) -> str:
    """A time with the word that the target language puts behind it, if it has none yet."""
    is_bare = match["hour"] and not match["half"] and not match["word"]
    word = _TIME_WORDS.get(target.language, "") if is_bare else ""
    return f"{written}{word}"


def _ends_range(match: re.Match[str]) -> bool:
    """Whether a number stands before this hour that am or pm may count for too."""
    start = max(0, match.start() - _LONGEST_LINK)
    before = match.string[start : match.start()]
    return _BEGUN_RANGE.search(before) is not None


def _number(written: str, source: Style, target: Style) -> str | None:
    """The number in the target's style, or None if the source's style leaves its meaning open."""
    if written.isdigit():
        return written
    groups, mark, fraction = written.partition(source.decimal)
    digits = re.sub(r"\D", "", groups)
    marks = set(re.sub("[0-9]", "", groups))
    allowed = {source.group, _SPACE, _NARROW, "'"}
    if len(marks) > 1 or not marks <= allowed or (mark and not fraction.isdigit()):
        return None
    if marks and not _GROUPED.fullmatch(groups):
        return None
    if mark and not marks and len(fraction) == 3 and digits != "0":
        return None  # a group to most other languages
    if marks:
        digits = f"{int(digits):,}".replace(",", target.group)
    return digits + (target.decimal + fraction if mark else "")
