"""The translations of all texts in some cells, and why others have none. Knows values; no files and
no models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dragoman.errors import DragomanError
from dragoman.tables.field_path import leaves
from dragoman.tables.row_batch import Values
from dragoman.tasks.lines import MAX_LINE
from dragoman.tasks.translation import Translation


class Answers:
    """The translations of all texts of a batch, each translated once."""

    def __init__(
        self,
        values: Sequence[Values],
        translate: Callable[[list[str]], list[Translation]],
    ) -> None:
        found = [leaf for row in values for leaf in leaves(row[0])]
        texts = [leaf for leaf in dict.fromkeys(filter(is_text, found)) if not _fault(leaf)]
        self._translations: dict[str, Translation] = {}
        self._faults: dict[str, str] = {}
        self._translate(texts, translate)

    def read(self, leaf: Any, read: Callable[[Translation], Any]) -> Any:
        """Something of the translation of a text; None where there is none."""
        translation = self._translations.get(leaf) if is_text(leaf) else None
        return None if translation is None else read(translation)

    def error(self, value: Any) -> str | None:
        """Why a value has no translation; an empty one needs none."""
        for leaf in leaves(value):
            fault = _fault(leaf) or (self._faults.get(leaf, "") if is_text(leaf) else "")
            if fault:
                return fault
        return None

    def _translate(
        self, texts: list[str], translate: Callable[[list[str]], list[Translation]]
    ) -> None:
        """Where a batch fails, each text is tried alone."""
        try:
            translations = translate(texts) if texts else []
        except (DragomanError, RuntimeError, ValueError) as error:
            if len(texts) == 1:
                self._faults[texts[0]] = " ".join(str(error).split())[:300]
                return
            for text in texts:
                self._translate([text], translate)
            return
        self._translations.update(zip(texts, translations, strict=True))


def is_text(value: Any) -> bool:
    """Whether a value can be translated at all."""
    return isinstance(value, str)


def _fault(leaf: Any) -> str:
    """Why a value cannot be translated at all."""
    if leaf is None:
        return ""
    if not isinstance(leaf, str):
        return f"a {type(leaf).__name__} is not text"
    if len(leaf) > MAX_LINE:
        return f"{len(leaf):,} characters are more than {MAX_LINE:,}"
    return ""
