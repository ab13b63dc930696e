"""Whether a string among the values of a data file is a name, an address or a code rather than text
that people read. Knows strings only."""

from __future__ import annotations

import re

from dragoman.documents.icu_messages import may_be_icu
from dragoman.documents.placeholders import has_words
from dragoman.text.protected import without_protected

_HUMP = re.compile(r"[a-z\d][A-Z]")
_SIGNS = re.compile(
    r"\w[_/\\:=@#|~^*+<>]\w|\w\.\w|^[#.@/\\$_][\w.-]|\w[_/]$|\d\w*[a-zA-Z]|[a-zA-Z]\w*\d"
)
_CODE = re.compile(r"[a-z]{2,3}[-_](?:[A-Z][a-z]{3}|[A-Z]{2})(?:[-_][A-Z]{2})?")
_LONGEST_WORD = 200


def looks_like_code(text: str) -> bool:
    """Whether a text has no words, or is one word that no language would write so."""
    if may_be_icu(text):  # whose branches are text
        return False
    if not has_words(text) or not any(map(str.isalpha, without_protected(text))):
        return True
    word = text.strip()
    if len(word.split()) != 1 or not word.isascii():
        return False
    if len(word) > _LONGEST_WORD:  # which the patterns would read again and again
        return True
    return any(pattern.search(word) for pattern in (_HUMP, _SIGNS)) or bool(_CODE.fullmatch(word))
