"""What happens to every line of text before it is cut into pieces. Knows strings only.

The normalisation, whole: lone surrogates become U+FFFD; the text is brought to Unicode form NFC;
zero-width spaces, soft hyphens and control characters are removed or, where they separate (tab,
line break), become a space; U+2581, which SentencePiece keeps for the space, becomes an underscore;
runs of white space of any kind become one space, none at the ends. Nothing else changes: case,
quotes, full-width forms and fractions stay as they are.
"""

from __future__ import annotations

import re
import unicodedata

# Removed: C0/C1 controls that separate nothing, soft hyphen, zero-width space, word joiner and byte
# order mark. The zero-width joiners U+200C and U+200D stay: Persian, Indic scripts and emoji need
# them.
_REMOVED = re.compile("[\x00-\x08\x0e-\x1b\x7f\x80-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def normalise(text: str) -> str:
    """`text` as the tokeniser sees it; doing it twice changes nothing more."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    # Quick for the usual line: all that is removed or replaced, but for U+2581 and runs of spaces,
    # is unprintable to Python.
    if not text.isprintable() or "  " in text or "\u2581" in text:
        text = _SURROGATE.sub("\ufffd", text)
        text = _REMOVED.sub("", text).replace("\u2581", "_")
        text = unicodedata.normalize("NFC", " ".join(text.split()))
    return text.strip()
