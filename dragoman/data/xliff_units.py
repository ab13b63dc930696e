"""Files of translators (XLIFF 1.2, 2.0 and 2.1): XML to units of text, as a stream. Knows no files
on disk and does not judge what it reads, but knows which units a person has reviewed.

Built on the bare expat parser. A declared entity is refused, so that a small file cannot unfold
into a huge one, and so is what is nested deeper than any tool writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.parsers import expat

from dragoman.data.tmx import MalformedError

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
    reader = _Reader(limit)
    for chunk in chunks:
        reader.feed(chunk)
        yield from reader.take()
    reader.feed(b"", last=True)
    yield from reader.take()


class _Reader:
    def __init__(self, limit: int) -> None:
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._refuse
        self.limit = limit
        self.understood = 0  # bytes
        self.pending = 0  # bytes read since, without understanding more
        self.done: list[XliffUnit] = []
        self.languages = ("", "")
        self.depth = 0
        self.line = 0
        self.reviewed = False
        self.texts: dict[str, str | None] = {}
        self.side = ""  # source or target, inside one of them
        self.words: list[str] = []
        self.length = 0
        self.codes = 0  # depth inside tags of formatting codes
        self.aside = 0  # depth inside what is not the unit's own text

    def feed(self, chunk: bytes, last: bool = False) -> None:
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            raise MalformedError(expat.ErrorString(error.code), error.lineno) from None
        index = self.parser.CurrentByteIndex
        self.pending = self.pending + len(chunk) if index == self.understood else 0
        self.understood = index
        largest = 4 * self.limit
        if self.pending > largest:  # expat holds what it has not understood yet
            raise self._malformed(f"holds a tag of more than {largest:,} bytes")

    def take(self) -> list[XliffUnit]:
        done = self.done
        self.done = []
        return done

    def _malformed(self, message: str) -> MalformedError:
        return MalformedError(message, self.parser.CurrentLineNumber)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local(tag)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._malformed(f"is nested more than {_DEEPEST} deep")
        if self.depth == 1 and name != "xliff":
            raise self._malformed(f"begins with <{name}>, not with <xliff>")
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
        self.line = self.parser.CurrentLineNumber
        self.texts = {}
        state = attributes.get("state", "")
        self.reviewed = attributes.get("approved") == "yes" or state in _REVIEWED

    def _begin_side(self, name: str, attributes: dict[str, str]) -> None:
        self.side = name
        self.words = []
        self.length = 0
        self.codes = 0
        if name == "target" and attributes.get("state", "") in _REVIEWED:
            self.reviewed = True

    def _end(self, tag: str) -> None:
        name = _local(tag)
        self.depth -= 1
        if name in _ASIDE:
            self.aside -= 1
        elif self.aside:
            return
        elif name == self.side:
            text = "".join(self.words) if self.length <= self.limit else None
            self.texts.setdefault(name, text)
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
        languages = [_language(code) for code in self.languages]
        unit = XliffUnit(self.line, languages[0], languages[1], source, target, self.reviewed)
        self.done.append(unit)

    def _characters(self, text: str) -> None:
        if self.side and not self.codes and not self.aside:
            self.length += len(text)
            if self.length <= self.limit:
                self.words.append(text)

    def _refuse(self, name: str, *_: object) -> None:
        raise self._malformed(f"declares an entity ({name}), which is refused")


def _local(tag: str) -> str:
    """The name of a tag without the prefix of its namespace."""
    return tag.rpartition(":")[2]


def _language(code: str) -> str:
    return code.lower().replace("_", "-")
