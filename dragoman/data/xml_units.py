"""What reading units of text from XML has in common, whatever the tags are called: a stream of
bytes in, text inside some tags out, with bounds. Knows no format, no files and no pairs.

Built on the bare expat parser. A declared entity is refused, so that a small file cannot unfold
into a huge one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar
from xml.parsers import expat

Unit = TypeVar("Unit")


class MalformedError(Exception):
    """A file that cannot be read as what it is called; the message says why, `line` where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class UnitReader(Generic[Unit]):
    """Gathers units in `done`. A format says what begins and ends with each tag."""

    def __init__(self, limit: int) -> None:
        """`limit` is the most characters of a text; a longer one is None."""
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.EntityDeclHandler = self._refuse
        self.limit = limit
        self.done: list[Unit] = []
        self.codes = 0  # depth inside tags of formatting codes
        self._words: list[str] | None = None  # not None inside a text
        self._length = 0
        self._understood = 0  # bytes
        self._pending = 0  # bytes read since, without understanding more

    def read(self, chunks: Iterable[bytes]) -> Iterator[Unit]:
        """Yield the units in order."""
        for chunk in chunks:
            self._feed(chunk)
            yield from self._take()
        self._feed(b"", last=True)
        yield from self._take()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """A tag begins."""
        raise NotImplementedError

    def end(self, tag: str) -> None:
        """A tag ends."""
        raise NotImplementedError

    def characters(self, text: str) -> None:
        """What stands between tags; it belongs to a text if one has begun."""
        if self._words is not None and not self.codes:
            self._length += len(text)
            if self._length <= self.limit:
                self._words.append(text)

    def begin_text(self) -> None:
        """Gather what follows."""
        self._words = []
        self._length = 0
        self.codes = 0

    def end_text(self) -> str | None:
        """Return what was gathered; None if it is over the limit."""
        assert self._words is not None
        text = "".join(self._words) if self._length <= self.limit else None
        self._words = None
        return text

    @property
    def in_text(self) -> bool:
        """Whether a text has begun."""
        return self._words is not None

    @property
    def line(self) -> int:
        """The line that the parser is at."""
        return self.parser.CurrentLineNumber

    def malformed(self, message: str) -> MalformedError:
        """Return the error of this place."""
        return MalformedError(message, self.line)

    def _feed(self, chunk: bytes, last: bool = False) -> None:
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            raise MalformedError(expat.ErrorString(error.code), error.lineno) from None
        index = self.parser.CurrentByteIndex
        self._pending = self._pending + len(chunk) if index == self._understood else 0
        self._understood = index
        largest = 4 * self.limit
        if self._pending > largest:  # expat holds what it has not understood yet
            raise self.malformed(f"holds a tag of more than {largest:,} bytes")

    def _take(self) -> list[Unit]:
        done = self.done
        self.done = []
        return done

    def _refuse(self, name: str, *_: object) -> None:
        raise self.malformed(f"declares an entity ({name}), which is refused")


def language_code(code: str) -> str:
    """Return a code in one spelling: de-at for de_AT."""
    return code.lower().replace("_", "-")
