"""What a document's format is told besides its bytes. Knows languages and columns; no format."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

# Languages whose usual script runs from right to left, and scripts that do so in any language.
_LANGUAGES = "ar arc azb ckb dv fa he iw khw ks ps sd syr ug ur yi"
_RIGHT_TO_LEFT = frozenset(_LANGUAGES.split())
_SCRIPTS = frozenset(("adlm", "arab", "hebr", "nkoo", "rohg", "syrc", "thaa"))


@dataclass(frozen=True)
class DocumentSettings:
    """What is to be done with a document."""

    source_language: str = ""  # empty where it is not known
    target_language: str = ""
    columns: tuple[
        str, ...
    ] = ()  # of a table in text, by name or number; if empty, those with text

    @property
    def is_right_to_left(self) -> bool:
        """Whether the translation is written from right to left."""
        language, *rest = self.target_language.lower().replace("_", "-").split("-")
        return language in _RIGHT_TO_LEFT or bool(_SCRIPTS.intersection(rest))

    def as_json(self) -> dict[str, Any]:
        """Return what `from_json` reads again."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> DocumentSettings:
        """Return the settings that another process has sent."""
        return cls(**value | {"columns": tuple(value["columns"])})
