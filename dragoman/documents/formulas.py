"""Code and formulas in the midst of a text: where formulas are, as MathJax and KaTeX find them, and
what the translator reads for what stays as it is. Knows strings; no file format.
"""

from __future__ import annotations

import re

from dragoman.text.protected import protected

# Between the signs that pages use, which mean nothing else there.
IN_PAGES = r"\\\([^<>\n]{1,500}?\\\)|\\\[[^<>]{1,2000}?\\\]|\$\$[^<>$]{1,2000}\$\$"
# Between single dollars too, which are amounts of money more often than not.
IN_MARKDOWN = r"""
    \$\$[^$]{1,2000}\$\$
    |(?<![\w\\$])\$(?=[^\s$])(?:[^$\n\\]|\\[^\n]){1,300}(?<=[^\s\\])\$(?![\w$])
"""
_PROSE = re.compile(r"(?<![\\a-zA-Z{])[a-zA-Z]{3,}\s+[a-zA-Z]{2,}")
_LONGEST = 60  # characters that are read


def is_prose(raw: str) -> bool:
    """Whether what stands between two dollars reads like a text."""
    return bool(_PROSE.search(raw))


def as_one_word(text: str) -> str:
    """Return the one word that a translator reads for what stays, and carries over."""
    word = "_".join(text.split())
    if word.isalnum() or not word or protected(word) == [word]:
        return word
    inner = "_".join(re.sub(r"[{}$]", " ", text).split())
    return "{" + inner[:_LONGEST] + "}"
