"""Text in capitals: what it is, and how it is written without them and with them again. Knows
strings; no tokeniser and no model.

Models read little text in capitals, and their vocabularies spell it letter by letter. Such a
sentence is translated as if it had none, and the translation is put in capitals.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_NAME = re.compile(r"(<x\d+>)")  # of what is copied; see copying.py
_WORD = re.compile(r"[^\W\d_]{2,}")
_ALONE = re.compile(r"\bi\b(?!\.)")  # the English pronoun, but not i.e.
_ENOUGH = 3  # words in capitals; two may be names
_LONG = 4  # letters of each word where there are only two


def is_in_capitals(text: str) -> bool:
    """Whether a text has several words and all of them in capitals, and so no name or code."""
    bare = _NAME.sub(" ", text).replace("ß", "SS")
    if bare != bare.upper() or bare == bare.lower():
        return False
    words = _WORD.findall(bare)
    if len(words) >= _ENOUGH:
        return True
    return len(words) == _ENOUGH - 1 and min(map(len, words)) >= _LONG


def without_capitals(text: str, language: str) -> str:
    """Return a text in capitals as a sentence: only its first letter is one.

    In English, so is the pronoun I.
    """
    lowered = _changed(text, str.lower)
    if language == "en":
        lowered = _ALONE.sub("I", lowered)
    for place, letter in enumerate(lowered):
        if letter.isalpha() and not _inside_name(lowered, place):
            return lowered[:place] + letter.upper() + lowered[place + 1 :]
    return lowered


def in_capitals(text: str) -> str:
    """Return a text in capitals, but for the names of what is copied."""
    return _changed(text, str.upper)


def _changed(text: str, change: Callable[[str], str]) -> str:
    parts = _NAME.split(text)
    return "".join(part if _NAME.fullmatch(part) else change(part) for part in parts)


def _inside_name(text: str, place: int) -> bool:
    return any(found.start() < place < found.end() for found in _NAME.finditer(text))
