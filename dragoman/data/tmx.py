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
    """A file that cannot be read as TMX; the message says why, `line` where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def units(chunks: Iterable[bytes], limit: int) -> Iterator[Unit]:
    """Yield the translation units in order.

    The language that the header calls the source comes first.
    """
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
        index = self.parser.CurrentByteIndex
        self.pending = self.pending + len(chunk) if index == self.understood else 0
        self.understood = index
        largest = 4 * self.limit
        if self.pending > largest:  # expat holds what it has not understood yet
            raise self._malformed(f"holds a tag of more than {largest:,} bytes")

    def take(self) -> list[Unit]:
        done = self.done
        self.done = []
        return done

    def _malformed(self, message: str) -> MalformedError:
        return MalformedError(message, self.parser.CurrentLineNumber)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.root:
            self.root = name
            if name != "tmx":
                raise self._malformed(f"begins with <{name}>, not with <tmx>")
        if name == "header":
            self.source = _language(attributes.get("srclang", ""))
        elif name == "tu":
            self.texts = {}
            self.line = self.parser.CurrentLineNumber
        elif name == "tuv":
            code = attributes.get("xml:lang") or attributes.get("lang", "")
            self.language = _language(code)
        elif name == "seg":
            self.words = []
            self.length = 0
            self.codes = 0
        elif name in _CODES:
            self.codes += 1

    def _end(self, name: str) -> None:
        if name == "seg" and self.words is not None:
            text = "".join(self.words) if self.length <= self.limit else None
            self.texts.setdefault(self.language, text)
            self.words = None
        elif name == "tu":
            source_first = sorted(self.texts.items(), key=lambda item: item[0] != self.source)
            self.done.append((self.line, dict(source_first)))
        elif name in _CODES:
            self.codes -= 1

    def _characters(self, text: str) -> None:
        if self.words is not None and not self.codes:
            self.length += len(text)
            if self.length <= self.limit:
                self.words.append(text)

    def _refuse(self, name: str, *_: object) -> None:
        raise self._malformed(f"declares an entity ({name}), which is refused")


def _language(code: str) -> str:
    return code.lower().replace("_", "-")
