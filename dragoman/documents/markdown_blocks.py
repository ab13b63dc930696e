"""Lines in a paragraph of CommonMark that other dialects of Markdown give a meaning: definitions,
notes, alerts, containers and attributes. Knows lines; how a text is translated is known to others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_KEPT = re.compile(
    r"""
    \s*(?:
        \[!\w+\][-+]?\s*              # [!NOTE] of GitHub
        |:{3,}\s*(?:\{[^{}]*\}|[\w-]*)\s*  # ::: and :::warning of Pandoc and Docusaurus
        |\{[:%{#.][^\n]*\}\s*         # {: .class} {% tag %} {{< call >}} {#id}
        |\[(?:TOC|\[_TOC_\])\]\s*
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What stands before a text that does not go on from the line above it.
_START = re.compile(
    r"\s*(?::[ \t]+|~[ \t]+|\[\^[^\[\]\s]+\]:[ \t]*|\*\[[^\[\]]+\]:[ \t]*|"
    r"(?P<title>:{3,}\s*[\w-]+[ \t]+(?=\S)))"
)


def pieces(content: str) -> Iterator[tuple[str, str, bool]]:
    """Yield what makes up the text of a paragraph: what stands before a text, the text, and whether
    it is one to translate. They are joined by line ends."""
    prefix = ""
    lines: list[str] = []
    for line in content.split("\n"):
        start = _START.match(line)
        is_kept = bool(_KEPT.fullmatch(line))
        if lines and (start or is_kept):
            yield prefix, "\n".join(lines), True
            lines = []
        if is_kept:
            yield "", line, False
        elif start:
            prefix = start[0]
            lines = [line[start.end() :]]
            if start["title"]:
                yield prefix, lines.pop(), True
        else:
            prefix = prefix if lines else ""
            lines.append(line)
    if lines:
        yield prefix, "\n".join(lines), True
