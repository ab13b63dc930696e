"""The translations of all texts in some cells, and why others have none. Knows values; no files and
no models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dragoman.errors import DragomanError
from dragoman.tables.field_path import leaves
from dragoman.tables.row_batch import Unreadable, Values
from dragoman.tasks.lines import MAX_LINE
from dragoman.tasks.translation import Translation

Item = TypeVar("Item")
Made = TypeVar("Made")


class Answers:
    """The translations of all texts of a batch, each translated once."""

    def __init__(
        self,
        values: Sequence[Values],
        translate: Callable[[list[str]], list[Translation]],
    ) -> None:
        found = [leaf for row in values for leaf in leaves(row[0])]
        texts = [leaf for leaf in dict.fromkeys(filter(is_text, found)) if not fault_of(leaf)]
        made = attempted(texts, lambda some: translate(list(some)))
        self._translations: dict[str, Translation] = {}
        self._faults: dict[str, str] = {}
        for text, (translation, fault) in zip(texts, made, strict=True):
            if translation is None:
                self._faults[text] = fault
            else:
                self._translations[text] = translation

    def read(self, leaf: Any, read: Callable[[Translation], Any]) -> Any:
        """Something of the translation of a text; None where there is none."""
        translation = self._translations.get(leaf) if is_text(leaf) else None
        return None if translation is None else read(translation)

    def error(self, value: Any) -> str | None:
        """Why a value has no translation; an empty one needs none."""
        for leaf in leaves(value):
            fault = fault_of(leaf) or (self._faults.get(leaf, "") if is_text(leaf) else "")
            if fault:
                return fault
        return None


def attempted(
    items: Sequence[Item], work: Callable[[Sequence[Item]], Sequence[Made]]
) -> list[tuple[Made | None, str]]:
    """What becomes of each item, or why nothing does. A batch that fails is halved, until the items
    are alone that fail."""
    if not items:
        return []
    try:
        return [(made, "") for made in work(items)]
    except (DragomanError, RuntimeError, ValueError) as error:
        if len(items) == 1:
            return [(None, " ".join(str(error).split())[:300])]
        half = len(items) // 2
        return attempted(items[:half], work) + attempted(items[half:], work)


def is_text(value: Any) -> bool:
    """Whether a value is of the right type."""
    return isinstance(value, str)


def fault_of(leaf: Any) -> str:
    """Why nothing can be done with a value; what is missing is no fault."""
    if leaf is None:
        return ""
    if isinstance(leaf, Unreadable):
        return leaf.reason
    if not isinstance(leaf, str):
        return f"a value of type {type(leaf).__name__} is not text"
    if len(leaf) > MAX_LINE:
        return f"{len(leaf):,} characters are more than {MAX_LINE:,}"
    return ""
