"""Files of translators (XLIFF 1.2, 2.0 and 2.1): XML to units of text, as a stream. Knows no files
on disk and does not judge what it reads, but knows which units a person has reviewed.

What is nested deeper than any tool writes is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dragoman.data.xml_units import UnitReader, language_code

_CODES = {"bpt", "ept", "ph", "it", "ut", "sub"}  # inline tags that hold codes, not words
_ASIDE = {"alt-trans", "matches", "seg-source", "note", "notes", "originalData", "ignorable"}
_UNITS = {"trans-unit", "segment"}  # of version 1 and of version 2
_REVIEWED = {"final", "signed-off", "reviewed"}
_DEEPEST = 200


@dataclass(frozen=True)
class XliffUnit:
    """A sentence and its translation; a text over the limit is None."""

    line: int
    source_language: str
    target_language: str
    source: str | None
    target: str | None
    reviewed: bool  # whether a person has marked the translation as right


def xliff_units(chunks: Iterable[bytes], limit: int) -> Iterator[XliffUnit]:
    """Yield the units that have a translation, in order."""
    return _Reader(limit).read(chunks)


class _Reader(UnitReader[XliffUnit]):
    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.languages = ("", "")
        self.depth = 0
        self.begun = 0  # the line at which a unit began
        self.reviewed = False
        self.texts: dict[str, str | None] = {}
        self.side = ""  # source or target, inside one of them
        self.aside = 0  # depth inside what is not the unit's own text

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local(tag)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.malformed(f"is nested more than {_DEEPEST} deep")
        if self.depth == 1 and name != "xliff":
            raise self.malformed(f"begins with <{name}>, not with <xliff>")
        if name in _ASIDE:
            self.aside += 1
        if self.aside:
            return
        if name == "xliff":
            self.languages = (attributes.get("srcLang", ""), attributes.get("trgLang", ""))
        elif name == "file" and "source-language" in attributes:
            source = attributes["source-language"]
            self.languages = (source, attributes.get("target-language", ""))
        elif name in _UNITS:
            self._begin_unit(attributes)
        elif name in ("source", "target"):
            self._begin_side(name, attributes)
        elif name in _CODES:
            self.codes += 1

    def _begin_unit(self, attributes: dict[str, str]) -> None:
        self.begun = self.line
        self.texts = {}
        state = attributes.get("state", "")
        self.reviewed = attributes.get("approved") == "yes" or state in _REVIEWED

    def _begin_side(self, name: str, attributes: dict[str, str]) -> None:
        self.side = name
        self.begin_text()
        if name == "target" and attributes.get("state", "") in _REVIEWED:
            self.reviewed = True

    def end(self, tag: str) -> None:
        name = _local(tag)
        self.depth -= 1
        if name in _ASIDE:
            self.aside -= 1
        elif self.aside:
            return
        elif name == self.side:
            self.texts.setdefault(name, self.end_text())
            self.side = ""
        elif name in _UNITS:
            self._end_unit()
        elif name in _CODES:
            self.codes -= 1

    def _end_unit(self) -> None:
        source = self.texts.get("source", "")
        target = self.texts.get("target", "")
        if source == "" or target == "":
            return
        languages = [language_code(code) for code in self.languages]
        unit = XliffUnit(self.begun, languages[0], languages[1], source, target, self.reviewed)
        self.done.append(unit)

    def characters(self, text: str) -> None:
        if not self.aside:
            super().characters(text)


def _local(tag: str) -> str:
    """The name of a tag without the prefix of its namespace."""
    return tag.rpartition(":")[2]
