"""Markdown: what markdown-it says is text is translated where it stands in the source.

Knows Markdown's inline marks and the lines of a source; each translation is parsed again, and
left out where it would change the form of the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import TYPE_CHECKING, Any

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.formulas import IN_MARKDOWN, as_one_word, is_prose
from dragoman.documents.front_matter import front_matter_of, translate_front_matter
from dragoman.documents.html import translate_html
from dragoman.documents.markdown_blocks import pieces
from dragoman.documents.plain import LINE_END
from dragoman.documents.segments import SpanAt, read_spans, translate_text
from dragoman.documents.tags import tag_span
from dragoman.documents.text_files import of_text
from dragoman.text.markup import rewritten
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

if TYPE_CHECKING:
    from markdown_it.token import Token

# A run of one character is only tried from where it starts (or from behind an escape), or a long
# one would be tried again from each of its characters.
_MARK_BUT_COMMENT = rf"""
    (?:(?<!`)|(?<=\\`)) (?P<ticks>`++) .{{1,999}}? (?<!`) (?P=ticks) (?!`)  # code
    |(?P<formula>{IN_MARKDOWN})
    |<(?P<tag>/?[a-zA-Z][\w-]*)(?:[\s/][^<>]*)?>
    |<[^<>\s]+>                               # a link in angle brackets
    |\\[!-/:-@\[-`{{-~]                        # an escape
    |!\[[^\[\]]*\]\([^()]*\)                  # an image
    |\[[^\[\]]*\](?:\[\])?(?![\[(])           # a link whose text is its name
    |\[                                       # the start and the end of other links
    |\]\((?:[^()]|\([^()]*\))*\)
    |\](?:\[[^\[\]]*\])?
    |\*+|(?<!\w)_+|~~                         # emphasis
    |(?:(?<!_)|(?<=\\_))_++(?!\w)
    |(?:(?<![ ])[ ]{{2,}}+|\\)\n                # a hard line break
"""
_MARK = re.compile(rf"(?P<comment><!--)|{_MARK_BUT_COMMENT}", re.DOTALL | re.VERBOSE)
# For what stands behind the last comment, where each `<!--` would be a search to the very end.
_MARK_AFTER_COMMENTS = re.compile(rf"(?P<comment>(?!))|{_MARK_BUT_COMMENT}", _MARK.flags)
# What has to be escaped in a text: only what surely means something, then all that may.
_MUST_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])|&(?=#?\w+;)")
_MAY_ESCAPE = re.compile(r"[\\`*_{}\[\]()#+\-.!<>|~&]")
# A line without anything that Markdown could take for more than text: it is a paragraph.
_PLAIN = re.compile(r"[^\W\d_](?:[^\W_]|[,;:?!.'\"’…“”„–—()%/]|[ ](?![ ]))*+")
# The title of a link or a picture, and what would end it.
_TITLE = re.compile(r"""(?P<start>\s)"(?P<text>[^"\\\n]+)"\)$""")
_NOT_IN_TITLES = re.compile(r'["\\\n()\[\]]')
_PARAGRAPH = ("paragraph_open", "inline", "paragraph_close")
_CELLS = ("td_open", "th_open")


def translate_markdown(source: str, ask: Ask, settings: DocumentSettings) -> str:
    """Translate the text of a page; code and links stay as they are."""
    front_matter = front_matter_of(source)
    page = _Page(source[len(front_matter) :], ask, settings)
    return translate_front_matter(front_matter, ask, settings) + page.translated()


class _Page:
    """A page whose lines are replaced as their translations come."""

    def __init__(self, source: str, ask: Ask, settings: DocumentSettings) -> None:
        from markdown_it import MarkdownIt

        self._parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        self._references: dict[str, Any] = {}
        self._tokens = self._parser.parse(source, self._references)
        self._parts = LINE_END.split(source)  # line, end, line, ...
        self._ask = ask
        self._settings = settings
        # The index and the column at which the last text ended: cells share a line.
        self._last_index = 0
        self._last_column = 0

    def translated(self) -> str:
        before = ""
        for token in self._tokens:
            if token.type == "html_block" and not token.level:
                self._translate_html_block(token)
            elif token.type == "inline":
                self._translate_inline(token, is_cell=before in _CELLS)
            before = token.type
        return "".join(self._parts)

    def _translate_html_block(self, token: Token) -> None:
        first, end = (2 * line for line in token.map or (0, 0))
        source = "".join(self._parts[first:end])
        translation = translate_html(source, self._ask, self._settings)
        blocks = self._parser.parse(translation)
        kinds = [block.type for block in blocks]
        if kinds == ["html_block"]:
            self._replace(first, end, translation)

    def _translate_inline(self, token: Token, is_cell: bool) -> None:
        """Put the translation of a text where the text is found, if it is."""
        index = 2 * token.map[0] if token.map else 0
        lines = token.content.split("\n")
        end = index + 2 * len(lines)
        rows = self._parts[index:end:2]
        first_line = lines[0]
        first_row = rows[0]
        if is_cell:
            start = self._last_column if self._last_index == index else 0
            column = first_row.find(first_line, start)
        else:
            column = first_row.rfind(first_line)
        continued = zip(rows[1:], lines[1:], strict=False)
        if column < 0 or not all(row.rstrip().endswith(line.rstrip()) for row, line in continued):
            return
        translation = self._translate_content(token.content, is_cell)
        self._last_index = index
        self._last_column = column + len(translation)
        if translation == token.content:
            return
        if len(rows) == 1:
            joint = ""
            tail = first_row[column + len(first_line) :]
        else:
            # A line break of the translation is written as the first of the source, with what
            # stands before the text of a line, such as the > of a quotation.
            margin = len(rows[1].rstrip()) - len(lines[1].rstrip())
            joint = self._parts[index + 1] + rows[1][:margin]
            last_row = rows[-1]
            tail = last_row[len(last_row.rstrip()) :]
        text = first_row[:column] + translation.replace("\n", joint) + tail
        self._replace(index, end - 1, text)

    def _replace(self, first: int, end: int, text: str) -> None:
        """Write a text for some of the parts, whose number stays the same."""
        others = len(self._parts[first:end]) - 1
        self._parts[first:end] = [text] + [""] * others

    def _translate_content(self, content: str, is_cell: bool) -> str:
        """Translate the text of one block, of which some dialects have several in one."""
        rows = []
        for prefix, text, is_text in pieces(content):
            rows.append(prefix + (self._translate_piece(text, is_cell) if is_text else text))
        return "\n".join(rows)

    def _translate_piece(self, content: str, is_cell: bool) -> str:
        """Translate a text; as it was where the form would change."""
        spans = [self._with_read_texts(span) for span in _read_content(content)]
        for special in (_MUST_ESCAPE, _MAY_ESCAPE):
            translation = rewritten(spans, self._ask, _Escaping(special))
            if translation == content:
                return content
            ends_cell = is_cell and "|" in translation.replace("\\|", "")
            if not ends_cell and self._form(translation) == self._form(content):
                return translation
        return content

    def _with_read_texts(self, span: Span) -> Span:
        """Translate the alternative text of a picture and the titles of pictures and links."""
        raw = span.raw
        if raw.startswith("!["):
            alt_text, bracket, rest = raw[2:].partition("]")
            raw = f"![{translate_text(alt_text, self._ask)}{bracket}{rest}"
        if raw.startswith(("![", "](")):
            raw = _TITLE.sub(self._title, raw)
        return replace(span, raw=raw)

    def _title(self, match: re.Match[str]) -> str:
        text = match["text"]
        translation = translate_text(text, self._ask)
        is_safe = not _NOT_IN_TITLES.search(translation)
        return f'{match["start"]}"{translation}")' if is_safe else match[0]

    def _form(self, text: str) -> tuple[list[str], set[str]]:
        """Return the blocks of a text, and all in them that is not text."""
        if _PLAIN.fullmatch(text):
            return list(_PARAGRAPH), set()
        blocks = self._parser.parse(text, self._references)
        inner: set[str] = set()
        for block in blocks:
            for child in block.children or []:
                if child.type in ("text", "softbreak"):
                    continue
                content = False if child.type == "image" else child.content
                attributes = {key: value for key, value in child.attrs.items() if key != "title"}
                described = (child.type, attributes, content, "title" in child.attrs)
                inner.add(str(described))
        return [block.type for block in blocks], inner


class _Escaping:
    """Writes the text of a span, with a backslash before what a pattern finds."""

    def __init__(self, special: re.Pattern[str]) -> None:
        self._special = special

    def __call__(self, span: Span) -> str:
        return self._special.sub(r"\\\g<0>", span.text)


def _read_content(content: str) -> Iterator[Span]:
    return read_spans(content, _find_marks(content), unescape)


def _find_marks(content: str) -> Iterator[SpanAt]:
    pattern = _MARK
    position = 0
    while match := pattern.search(content, position):
        start, end = match.span()
        if match["formula"] and is_prose(match["formula"]):
            position = start + 1
            continue
        if match["comment"]:
            comment_end = content.find("-->", end)
            if comment_end < 0:
                pattern = _MARK_AFTER_COMMENTS
                position = start
                continue
            end = comment_end + len("-->")
            yield start, Span("void", "", content[start:end], name="<!--")
        else:
            yield start, _mark(match)
        position = end


def _mark(match: re.Match[str]) -> Span:
    raw = match[0]
    first = raw[0]
    if match["tag"]:
        return tag_span(raw, match["tag"])
    if match["formula"]:
        return Span("void", as_one_word(raw), raw, name="$")
    if first == "\\" and raw[1] != "\n":
        return Span("text", raw[1], raw)
    if raw == "[":
        return Span("open", raw=raw, name="[")
    if first == "]":
        return Span("close", raw=raw, name="[")
    if first in "*_~":
        return Span("turn", raw=raw, name=raw)
    if raw[-1] == "\n":
        return Span("void", " ", raw, name=raw[:4])
    is_named_link = first == "[" and len(raw) > 3 and raw[1] != "^"
    text = as_one_word(raw.strip("`[]")) if first == "`" or is_named_link else ""
    name = match["ticks"] or raw[:4]
    return Span("void", text, raw, name=name)


rewrite_markdown = of_text(translate_markdown)
