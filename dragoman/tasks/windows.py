"""A text that is longer than a model can read, in parts that overlap. Knows strings and a function
that says what fits; no tokens and no model."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.errors import InputError

_OVERLAP = 4  # a fourth of a window stands in the next one too
_SHRINK = 0.9


def windows(text: str, fits: Callable[[str], bool], characters: int) -> list[str]:
    """Return the parts of a text in their order, cut between words where there are any.

    `characters` is how many usually fit. Each part has the last fourth of the one before it, so
    that what stands at a cut is read whole once. A text without words gives one empty part.
    """
    text = " ".join(text.split())
    if fits(text):
        return [text]
    if not fits(""):
        raise InputError("the question is longer than the model can read; shorten it")
    parts: list[str] = []
    start = 0
    while True:
        end = _end(text, start, fits, max(1, characters))
        parts.append(text[start:end].strip())
        if end == len(text):
            return parts
        start = _next_start(text, start, end)


def _end(text: str, start: int, fits: Callable[[str], bool], characters: int) -> int:
    """Where the window that begins at `start` ends."""
    end = min(len(text), start + characters)
    while not fits(text[start:end]):
        if end - start <= 1:
            raise InputError("the model reads too few tokens for a part of this text")
        end = start + max(1, int((end - start) * _SHRINK))
    if end == len(text):
        return end
    space = text.rfind(" ", start + (end - start) // 2, end + 1)
    return end if space < 0 else space


def _next_start(text: str, start: int, end: int) -> int:
    """Where the next window begins: before the end of the last, and after its beginning."""
    earliest = end - (end - start) // _OVERLAP
    space = text.find(" ", earliest, end)
    begin = earliest if space < 0 else space + 1
    return max(begin, start + 1)
