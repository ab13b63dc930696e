"""Access keys in the labels of programs: the letter behind a sign, as in _File, E&xit and Save ~as.
The label is translated without the sign, which then goes before the same letter if there is one.

Knows strings; which catalogues have such labels is said by their formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dragoman.documents.placeholders import blanked

_LONGEST = 80
_SIGN = re.compile(
    r"""
    (?<![\w&_~])[_~](?=[^\W\d_])            # _File
    |(?<![\w&])&(?=[^\W\d_])(?!\w{1,30};)   # &File, and no entity
    |(?<=^[A-Z])[_&](?=[a-z])               # E_xit
    |(?<=[a-z])&(?=[a-z])(?!\w{1,30};)      # Pre&view
    |(?<=[\s(][A-Z])[_&](?=[a-z])
    |(?<=^[A-Z][a-z])_(?=[a-z])             # Re_do
    """,
    re.VERBOSE,
)


def translate_label(text: str, translate: Callable[[str], str]) -> str:
    """Translate a text, whose access key, if it has one, is not read."""
    found = list(_SIGN.finditer(text)) if len(text) <= _LONGEST and "\n" not in text else []
    is_label = len(found) == 1 and text.count(found[0][0]) == 1
    if not is_label:
        return translate(text)
    place = found[0].end()
    bare = text[: place - 1] + text[place:]
    translation = translate(bare)
    if translation == bare:
        return text
    return _with_key(translation, found[0][0], text[place])


def _with_key(text: str, sign: str, key: str) -> str:
    """Put the sign before the key, rather at the start of a word; else before the first letter."""
    letters = blanked(text)
    for pattern in (rf"(?<!\w){re.escape(key)}", re.escape(key), r"[^\W\d_]"):
        found = re.search(pattern, letters, re.IGNORECASE)
        if found:
            return text[: found.start()] + sign + text[found.start() :]
    return text
