"""The paragraphs in a file of XML: found by their elements, translated with the marks in them, and
written where they were. All else stays byte for byte. Knows XML's tags; which elements hold text is
a format's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from html import unescape
from xml.parsers import expat

from dragoman.documents.segments import translate_paragraphs, translate_text, written
from dragoman.documents.tags import escapes_of
from dragoman.documents.xml_lines import (
    LINE,
    LINES,
    NEVER,
    TABS,
    divided,
    is_divided,
    translate_lines,
)
from dragoman.documents.xml_markup import Markup
from dragoman.documents.xml_runs import with_code, with_properties, with_spaces_in_runs
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

_DEEPEST = 4  # paragraphs in what stands in a paragraph, such as a text box in a table in one
_UNDEFINED_ENTITY = 11  # expat's number
_TAG = re.compile(
    r"""
    <!--.*?-->
    |<!\[CDATA\[.*?\]\]>
    |<(?P<slash>/?)(?P<name>[^\s/<>!?]++)(?:[^<>"'/]++|/(?!>)|"[^"]*+"|'[^']*+')*+(?P<void>/?)>
    |<[!?][^<>]*+>
    """,
    re.DOTALL | re.VERBOSE,
)
_PRESERVED = ' xml:space="preserve"'


def check_xml(data: bytes) -> str:
    """Return the text of a file; raise an error for XML that is broken or declares entities."""

    def check_doctype(
        name: str, system: str | None, public: str | None, has_declarations: bool
    ) -> None:
        if has_declarations:
            raise ValueError("it declares entities")

    checker = expat.ParserCreate()
    checker.StartDoctypeDeclHandler = check_doctype
    try:
        checker.Parse(data, True)
    except expat.ExpatError as error:
        # Pages name entities that only HTML knows.
        if error.code != _UNDEFINED_ENTITY:
            raise
    return data.decode("utf-8")


def rewrite_part(data: bytes, rewrite: Callable[[str], str]) -> bytes:
    """Rewrite a file of XML, which is sound before and after it."""
    source = check_xml(data)
    new = rewrite(source)
    if new == source:
        return data
    rewritten = new.encode("utf-8", "replace")
    check_xml(rewritten)
    return rewritten


def root_of(source: str) -> str:
    """Return the name of the outermost element."""
    for match in _TAG.finditer(source):
        if match["name"]:
            return match["name"]
    return ""


def rewrite_xml(source: str, markup: Markup, ask: Ask) -> str:
    """Translate the paragraphs of a file."""
    return _Rewriting(markup, ask, escapes_of(source)).rewritten(source, 0)


def rewrite_attributes(source: str, tags: str, names: str, ask: Ask) -> str:
    """Translate attributes of some elements; both are alternatives of a regular expression."""
    escapes = escapes_of(source) | {ord('"'): "&quot;"}
    attribute = re.compile(rf'(?<=\s)(?P<name>{names})="(?P<value>[^"<>]*)"')

    def translated(match: re.Match[str]) -> str:
        text = unescape(match["value"])
        translation = translate_text(text, ask)
        if translation == text:
            return match[0]
        return f'{match["name"]}="{translation.translate(escapes)}"'

    return re.sub(
        rf'<(?:{tags})\s(?:[^<>"]|"[^"<]*")*>',
        lambda tag: attribute.sub(translated, tag[0]),
        source,
    )


class _Rewriting:
    """The rewriting of one file."""

    def __init__(self, markup: Markup, ask: Ask, escapes: dict[int, str | None]) -> None:
        self._markup = markup
        self._ask = ask
        self._escapes = escapes
        space = _PRESERVED if markup.preserve else ""
        self._opening = f"<{markup.text}{space}>"
        self._closing = f"</{markup.text}>"

    def rewritten(self, source: str, depth: int) -> str:
        """Translate the paragraphs of a source, and those in them as deep as is allowed."""
        out: list[str] = []
        done = 0
        tags = list(_TAG.finditer(source))
        index = 0
        while index < len(tags):
            tag = tags[index]
            if _opens(tag) and self._markup.skips(tag[0]):
                index = _closing(tags, index)
            elif _opens(tag) and tag["name"] in self._markup.paragraphs:
                last = _closing(tags, index)
                if not self._markup.is_code(self._start(source, tags, index)):
                    spans = self._spans(source, tags[index : last + 1], depth)
                    out.append(source[done : tag.end()])
                    out.append(self._translated(spans))
                    done = tags[last].start()
                index = last
            index += 1
        out.append(source[done:])
        return "".join(out)

    def _start(self, source: str, tags: Sequence[re.Match[str]], index: int) -> str:
        """Return the tag of a paragraph, with its properties."""
        end = tags[index].end()
        following = tags[index + 1]
        if following["name"] == self._markup.paragraph_properties and _opens(following):
            end = tags[_closing(tags, index + 1)].end()
        return source[tags[index].start() : end]

    def _translated(self, spans: Iterable[Span]) -> str:
        markup = self._markup
        own = list(with_properties(self._only_texts(spans), markup))
        own = list(with_code(own, markup))
        breaks = LINES if markup.keeps_lines else TABS if markup.text else NEVER
        if is_divided(own, breaks, markup.tabs):
            return self._translated_parts(own, breaks)
        return self._translated_spans(own, self._ask)

    def _translated_spans(self, spans: Iterable[Span], ask: Ask) -> str:
        text = translate_paragraphs(
            self._markup.prepare(spans),
            lambda span: span.name not in self._markup.fixed and span.name != LINE,
            ask,
            self._written,
        )
        return with_spaces_in_runs(text, self._markup, self._opening)

    def _translated_parts(self, spans: Sequence[Span], breaks: re.Pattern[str]) -> str:
        """Translate a paragraph between its breaks; one without runs stays one without."""
        markup = self._markup
        if markup.tabs.isdisjoint(span.name for span in spans) and all(
            span.name != markup.run for span in spans
        ):
            return "".join(
                translate_lines(span.raw, breaks, self._ask, self._escapes)
                if span.kind == "text"
                else span.text or span.raw
                for span in spans
            )
        parts = divided(spans, breaks, markup.tabs)
        unchanged = self._translated_spans(parts, lambda text: (text, ()))
        translation = self._translated_spans(parts, self._ask)
        return written(spans) if translation == unchanged else translation

    def _spans(self, source: str, tags: Sequence[re.Match[str]], depth: int) -> Iterator[Span]:
        """Yield the texts and marks between the first and the last of these tags."""
        end = tags[0].end()
        index = 1
        while index < len(tags):
            tag = tags[index]
            text = source[end : tag.start()]
            if text:
                yield Span("text", unescape(text), text)
            end = tag.end()
            if index == len(tags) - 1:
                return
            if _opens(tag) and self._markup.keeps(tag["name"]):
                index = _closing(tags, index)
                end = tags[index].end()
                yield Span(
                    "kept", raw=self._inner(source[tag.start() : end], depth), name=tag["name"]
                )
            else:
                yield self._mark(tag)
            index += 1

    def _inner(self, source: str, depth: int) -> str:
        """Translate the paragraphs in what stands in a paragraph, such as a note or a text box."""
        return source if depth == _DEEPEST else self.rewritten(source, depth + 1)

    def _mark(self, tag: re.Match[str]) -> Span:
        name = tag["name"] or ""
        if tag["slash"]:
            return Span("close", raw=tag[0], name=name)
        if not _opens(tag):
            return Span("void", " " if name in self._markup.breaks else "", tag[0], name=name)
        if name and name == self._markup.text:
            return Span("open", self._opening, tag[0], name=name)
        return Span("open", raw=tag[0], name=name)

    def _only_texts(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield the spans; where texts have an element, what stands outside of it is none."""
        is_text = not self._markup.text
        for span in spans:
            if span.kind == "text" and not is_text:
                span = Span("void", raw=span.raw)
            if self._markup.text and span.kind != "text":
                is_text = span.kind == "open" and span.name == self._markup.text
            yield span

    def _written(self, span: Span) -> str:
        text = span.text.translate(self._escapes)
        if not self._markup.text:
            return text
        opened = {_name(mark.opening) for mark in span.marks}
        if self._markup.text in opened:
            return text
        text = f"{self._opening}{text}{self._closing}"
        if self._markup.run in opened:
            return text
        return f"<{self._markup.run}>{text}</{self._markup.run}>"


def _opens(tag: re.Match[str]) -> bool:
    return bool(tag["name"]) and not tag["slash"] and not tag["void"]


def _closing(tags: Sequence[re.Match[str]], index: int) -> int:
    """Return the index of the tag that closes an element."""
    name = tags[index]["name"]
    depth = 0
    for place in range(index, len(tags)):
        tag = tags[place]
        if tag["name"] == name:
            depth += _opens(tag) - bool(tag["slash"])
        if depth == 0:
            return place
    raise ValueError(f"an element {name} in it does not end")


@lru_cache(maxsize=1000)
def _name(tag: str) -> str:
    found = _TAG.match(tag)
    return found["name"] or "" if found else ""
