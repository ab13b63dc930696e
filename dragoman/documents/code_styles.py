"""Styles of office documents that are for code, by the names that programs give them, and styles
made from these. Knows names; where styles stand is known to the formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CODE = re.compile(
    r"""
    (?:html\ ?)?(?:(?:source|inline|program)\ ?)?(?:code|preformatted|verbatim|listing)
        (?:\ ?(?:char|block|text|inline|snippet|listing|example))?
    |source\ ?text|macro\ ?text|html\ ?(?:sample|keyboard|typewriter)|teletype
    """,
    re.IGNORECASE | re.VERBOSE,
)
_MOST = 20  # styles that are each made from the one before


def code_styles(styles: Iterable[tuple[str, str, str]]) -> frozenset[str]:
    """Return the styles that are for code, given how each is called by a document, how by people,
    and the one that it is made from."""
    rows = list(styles)
    found = {style for style, name, parent in rows if is_code_name(name) or is_code_name(parent)}
    for _ in range(_MOST):
        made = {style for style, _, parent in rows if parent in found} - found
        if not made:
            break
        found |= made
    return frozenset(found)


def is_code_name(name: str) -> bool:
    """Whether a style of this name is one for code; OpenDocument writes spaces as _20_."""
    return bool(_CODE.fullmatch(name.replace("_20_", " ").replace("_", " ")))
