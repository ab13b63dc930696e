"""Names in place of what must be copied, for a model that has no tokens of its own for it: "Welcome
back, {name}!" is read as "Welcome back, Anna!".

Such a model has never seen what a placeholder is made of. Held to its pieces one after the other,
it forgets what it was saying, while it carries a name over and builds the sentence around it.

Knows strings; no tokeniser and no model. Where the names come out is known to tasks/standing_in.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragoman.text.protected import protected_spans

# Spelt alike in most languages of this alphabet, and rarely inflected.
NAMES = ("Anna", "Peter", "Maria", "Martin", "Eva", "Robert", "Laura", "Daniel")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class StandIns:
    """A text with names in place of what must be copied."""

    text: str
    spans: tuple[tuple[str, str], ...]  # each name, and what it stands for


def with_stand_ins(text: str) -> StandIns | None:
    """Return the text with names in it; None where there is nothing to copy, too much of it, or
    something that no name can stand for: a tag, or what is written onto a word."""
    places = list(protected_spans(text))
    words = set(_WORD.findall(text))
    free = [name for name in NAMES if name not in words]
    if not places or len(places) > len(free):
        return None
    parts: list[str] = []
    spans: list[tuple[str, str]] = []
    end = 0
    for (start, stop), name in zip(places, free, strict=False):
        span = text[start:stop]
        if not _can_be_a_name(text, start, stop):
            return None
        parts += [text[end:start], name]
        spans.append((name, span))
        end = stop
    parts.append(text[end:])
    return StandIns("".join(parts), tuple(spans))


def _can_be_a_name(text: str, start: int, stop: int) -> bool:
    span = text[start:stop]
    around = text[start - 1 : start] + text[stop : stop + 1]
    is_tag = span.startswith(("<", "&"))
    return not (is_tag or _WORD.search(around) or len(span.split()) != 1)
