"""Writing systems: which one a line is in, and which are written without spaces.

Knows strings and language codes only. The ranges are those of the Unicode blocks, to be put between
the brackets of a regular expression.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache

# Written without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, kana, Bopomofo and Han.
UNSPACED = (
    "\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31a0-\u31ff\u3400-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# The languages written in them, by their codes. Chinese is apart: sacreBLEU has a rule for it.
CHINESE = frozenset({"zh", "zho", "chi", "cmn", "yue", "wuu"})
UNSPACED_LANGUAGES = CHINESE | frozenset(
    {"ja", "jpn", "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo", "bod", "dz", "dzo"}
)
# Kana and Han, where one character says about as much as three letters.
IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
# What stands on or between the letters of a word without being one: accents, vowel signs, joiners.
COMBINING = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c2\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0711-\u074a\u07eb-\u07f3\u0900-\u0963\u0970-\u0df3\u135d-\u135f"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
)

# Chinese, Japanese kana and bopomofo are one entry: a Japanese line mixes them. A script that is
# not here is never wrong.
_RANGES = {
    "Latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1d00-\u1d7f\u1e00-\u1eff"
    "\u2c60-\u2c7f\ua722-\ua7ff\uff21-\uff3a\uff41-\uff5a",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "Armenian": "\u0530-\u058f",
    "Hebrew": "\u0590-\u05ff\ufb1d-\ufb4f",
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefe",
    "Syriac": "\u0700-\u074f",
    "Thaana": "\u0780-\u07bf",
    "NKo": "\u07c0-\u07ff",
    "Devanagari": "\u0900-\u097f\ua8e0-\ua8ff",
    "Bengali": "\u0980-\u09ff",
    "Gurmukhi": "\u0a00-\u0a7f",
    "Gujarati": "\u0a80-\u0aff",
    "Oriya": "\u0b00-\u0b7f",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Kannada": "\u0c80-\u0cff",
    "Malayalam": "\u0d00-\u0d7f",
    "Sinhala": "\u0d80-\u0dff",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Tibetan": "\u0f00-\u0fff",
    "Myanmar": "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",
    "Georgian": "\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f",
    "Hangul": "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff",
    "Ethiopic": "\u1200-\u139f\u2d80-\u2ddf\uab00-\uab2f",
    "Cherokee": "\u13a0-\u13ff\uab70-\uabbf",
    "Canadian": "\u1400-\u167f\u18b0-\u18ff",
    "Khmer": "\u1780-\u17ff",
    "Mongolian": "\u1800-\u18af",
    "Ol Chiki": "\u1c50-\u1c7f",
    "Tifinagh": "\u2d30-\u2d7f",
    "CJK": "\u3005-\u3007\u3031-\u3035\u3041-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003134f",
    "Adlam": "\U0001e900-\U0001e95f",
}
# A script with this share of a side's letters belongs there: Serbian is written in two.
_USUAL = 0.2
_FEW = 4  # fewer foreign letters than this are a name or an abbreviation


def scripts_of(lines: Iterable[str]) -> frozenset[str]:
    """Return the scripts in which these lines are written, usually one."""
    text = "".join(lines)
    letters = Counter({name: len(pattern.findall(text)) for name, pattern in _patterns().items()})
    threshold = _USUAL * letters.total()
    return frozenset(name for name, count in letters.items() if count and count >= threshold)


def outside(expected: frozenset[str]) -> Callable[[str], bool]:
    """Return a test for lines most of whose letters are in none of the expected scripts."""
    if not expected:
        return lambda line: False
    own_ranges = [_RANGES[name] for name in expected]
    own = re.compile("[" + "".join(own_ranges) + "]")
    other = re.compile("[" + ranges_outside(expected) + "]")
    latin = "Latin" in expected

    def is_outside(line: str) -> bool:
        if (latin and line.isascii()) or not other.search(line):
            return False
        foreign = len(other.findall(line))
        return foreign >= _FEW and foreign > len(own.findall(line))

    return is_outside


def ranges_outside(expected: frozenset[str]) -> str:
    """Return the ranges of all scripts but the expected ones; none if none is expected."""
    if not expected:
        return ""
    return "".join(ranges for name, ranges in _RANGES.items() if name not in expected)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """A letter of each script; compiled once, and only where scripts are asked for."""
    return {name: re.compile(f"[{ranges}]") for name, ranges in _RANGES.items()}
