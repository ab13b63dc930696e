"""Translation memories (TMX): XML to units of text, as a stream. Knows no files and no pairs.

Built on the bare expat parser. A declared entity is refused, so that a small file cannot unfold
into a huge one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.parsers import expat

Unit = tuple[int, dict[str, str | None]]  # line, language -> text; None for a text over the limit
_CODES = {"bpt", "ept", "ph", "it", "ut"}  # inline tags that hold formatting codes, not words


class MalformedError(Exception):
    """What is wrong with the file, and where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def units(chunks: Iterable[bytes], limit: int) -> Iterator[Unit]:
    """The translation units in order; the language that the header calls the source comes first."""
    reader = _Reader(limit)
    for chunk in chunks:
        reader.feed(chunk)
        yield from reader.take()
    reader.feed(b"", last=True)
    yield from reader.take()


class _Reader:
    def __init__(self, limit: int) -> None:
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._refuse
        self.limit = limit
        self.seen = self.unseen = (
            0  # bytes understood, and bytes read since without understanding more
        )
        self.done: list[Unit] = []
        self.source = ""
        self.root = ""
        self.texts: dict[str, str | None] = {}
        self.line = 0
        self.language = ""
        self.words: list[str] | None = None  # not None inside <seg>
        self.length = 0
        self.codes = 0  # depth inside tags of formatting codes

    def feed(self, chunk: bytes, last: bool = False) -> None:
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            raise MalformedError(expat.ErrorString(error.code), error.lineno) from None
        self.unseen = self.unseen + len(chunk) if self.parser.CurrentByteIndex == self.seen else 0
        self.seen = self.parser.CurrentByteIndex
        if self.unseen > 4 * self.limit:  # expat holds what it has not understood yet
            raise MalformedError(
                f"holds a tag of more than {4 * self.limit:,} bytes", self.parser.CurrentLineNumber
            )

    def take(self) -> list[Unit]:
        done, self.done = self.done, []
        return done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.root:
            self.root = name
            if name != "tmx":
                raise MalformedError(
                    f"begins with <{name}>, not with <tmx>", self.parser.CurrentLineNumber
                )
        if name == "header":
            self.source = _language(attributes.get("srclang", ""))
        elif name == "tu":
            self.texts, self.line = {}, self.parser.CurrentLineNumber
        elif name == "tuv":
            self.language = _language(attributes.get("xml:lang") or attributes.get("lang", ""))
        elif name == "seg":
            self.words, self.length, self.codes = [], 0, 0
        elif name in _CODES:
            self.codes += 1

    def _end(self, name: str) -> None:
        if name == "seg" and self.words is not None:
            self.texts.setdefault(
                self.language, "".join(self.words) if self.length <= self.limit else None
            )
            self.words = None
        elif name == "tu":
            self.done.append(
                (
                    self.line,
                    dict(sorted(self.texts.items(), key=lambda item: item[0] != self.source)),
                )
            )
        elif name in _CODES:
            self.codes -= 1

    def _characters(self, text: str) -> None:
        if self.words is not None and not self.codes:
            self.length += len(text)
            if self.length <= self.limit:
                self.words.append(text)

    def _refuse(self, name: str, *_: object) -> None:
        raise MalformedError(
            f"declares an entity ({name}), which is refused", self.parser.CurrentLineNumber
        )


def _language(code: str) -> str:
    return code.lower().replace("_", "-")
