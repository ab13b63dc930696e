"""Translation memories (TMX): XML to units of text, as a stream. Knows no files and no pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.data.xml_units import UnitReader, language_code

Unit = tuple[int, dict[str, str | None]]  # line, language -> text; None for a text over the limit
_CODES = {"bpt", "ept", "ph", "it", "ut"}  # inline tags that hold formatting codes, not words


def units(chunks: Iterable[bytes], limit: int) -> Iterator[Unit]:
    """Yield the translation units in order.

    The language that the header calls the source comes first.
    """
    return _Reader(limit).read(chunks)


class _Reader(UnitReader[Unit]):
    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.source = ""
        self.root = ""
        self.texts: dict[str, str | None] = {}
        self.begun = 0  # the line at which a unit began
        self.language = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self.root:
            self.root = tag
            if tag != "tmx":
                raise self.malformed(f"begins with <{tag}>, not with <tmx>")
        if tag == "header":
            self.source = language_code(attributes.get("srclang", ""))
        elif tag == "tu":
            self.texts = {}
            self.begun = self.line
        elif tag == "tuv":
            code = attributes.get("xml:lang") or attributes.get("lang", "")
            self.language = language_code(code)
        elif tag == "seg":
            self.begin_text()
        elif tag in _CODES:
            self.codes += 1

    def end(self, tag: str) -> None:
        if tag == "seg" and self.in_text:
            self.texts.setdefault(self.language, self.end_text())
        elif tag == "tu":
            source_first = sorted(self.texts.items(), key=lambda item: item[0] != self.source)
            self.done.append((self.begun, dict(source_first)))
        elif tag in _CODES:
            self.codes -= 1
