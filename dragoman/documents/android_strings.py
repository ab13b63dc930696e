"""Texts of Android apps (strings.xml): strings, arrays and plurals, with Android's escapes.

Plurals get the quantities that the target language has. Knows the elements of a resource file; how
tags keep their words is known to inline_codes.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.inline_codes import CodeSyntax, translate_content
from dragoman.documents.messages import MessageStyle, translate_message
from dragoman.documents.plural_forms import CATEGORIES, plural_rule
from dragoman.documents.text_bytes import Edit, edited
from dragoman.documents.xml_tokens import (
    Token,
    escape,
    margin_of,
    read_xml,
    tokens,
    unescape,
    with_attribute,
)
from dragoman.text.markup_transfer import Ask

_TAGS = "a annotation b big font i s small span strike strong sub sup tt u"
_PAIRED = frozenset(_TAGS.split())
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t"}
_SPACE = re.compile(r"\s+")
_REFERENCE = re.compile(r"\s*[@?](?:[\w.]+:)?(?:\w+/)?[\w.]+\s*")
_CDATA = re.compile(r"(\s*<!\[CDATA\[)(.*?)(\]\]>\s*)", re.DOTALL)
_QUOTED = re.compile(r'(\s*")(.*)("\s*)', re.DOTALL)
_ITEMS = ("string-array", "array")


@dataclass
class _Plural:
    """The items of a plural: their tags, by quantity, where they stand."""

    items: dict[str, tuple[Token, Token]] = field(default_factory=dict)


def rewrite_android(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the texts of an app."""
    file = read_xml(data)
    text = file.text
    root = next((token for token in tokens(text) if token.kind in ("open", "empty")), None)
    if root is None or root.name != "resources":
        raise ValueError("it is no file of Android's resources: it has no element called resources")
    app = _App(text, ask, settings)
    edits: list[Edit] = []
    for found in _texts(text):
        if isinstance(found, _Plural):
            edits += app.plural(found)
        else:
            edits += app.text(*found)
    return file.encoded(edited(text, edits), "xmlcharrefreplace")


def _texts(text: str) -> Iterator[tuple[Token, Token] | _Plural]:
    """Yield the first and last tag of each text, and the plurals."""
    path: list[Token] = []
    plural = _Plural()
    for token in tokens(text):
        if token.kind == "open":
            path.append(token)
        elif token.kind == "close" and path:
            first = path.pop()
            names = [tag.name for tag in path]
            if any(_is_kept(tag) for tag in (*path, first)):
                continue
            if (first.name == "string" and len(path) == 1) or (
                first.name == "item" and len(path) == 2 and names[-1] in _ITEMS
            ):
                yield first, token
            elif first.name == "item" and len(path) == 2 and names[-1] == "plurals":
                plural.items[first.attributes().get("quantity", "")] = (first, token)
            elif first.name == "plurals" and len(path) == 1:
                yield plural
                plural = _Plural()


def _is_kept(tag: Token) -> bool:
    return tag.attributes().get("translatable") == "false"


@dataclass(frozen=True)
class _App:
    """A resource file and whom to ask."""

    source: str
    ask: Ask
    settings: DocumentSettings

    def text(self, first: Token, last: Token) -> list[Edit]:
        """Translate what stands between two tags."""
        content = self.source[first.end : last.start]
        return [(first.end, last.start, self._translated(content, ""))]

    def plural(self, plural: _Plural) -> list[Edit]:
        """Translate a plural: the first item's place takes all quantities that are needed."""
        if "other" not in plural.items:
            return [edit for pair in plural.items.values() for edit in self.text(*pair)]
        if not self.settings.target_language:
            return [edit for pair in plural.items.values() for edit in self.text(*pair)]
        numbers = plural_rule(self.settings.target_language).categories
        places = sorted(plural.items.values(), key=lambda pair: pair[0].start)
        rows = []
        for name in CATEGORIES:
            if name in numbers:
                first, last = plural.items.get(name, plural.items["other"])
                content = self.source[first.end : last.start]
                tag = with_attribute(first.raw, "quantity", name)
                rows.append(f"{tag}{self._translated(content, numbers[name])}{last.raw}")
        # The last rows take the place of the last item, the others one each.
        edits = []
        for number, (first, last) in enumerate(places):
            is_last = number == len(places) - 1
            own = rows[number:] if is_last else rows[number : number + 1]
            edits.append((first.start, last.end, margin_of(self.source, first.start).join(own)))
        return edits

    def _translated(self, content: str, number: str) -> str:
        if _REFERENCE.fullmatch(content):
            return content
        cdata = _CDATA.fullmatch(content)
        if cdata:
            return cdata[1] + self._of_cdata(cdata[2], number) + cdata[3]
        quoted = _QUOTED.fullmatch(content)
        if quoted and '"' not in quoted[2].replace('\\"', ""):
            syntax = CodeSyntax(
                _PAIRED, decode=_decoded_quoted, write=_written_quoted, number=number
            )
            inner = translate_content(quoted[2], replace(syntax, keeps_lines=True), self.ask)
            return quoted[1] + inner + quoted[3]
        syntax = CodeSyntax(_PAIRED, decode=_decoded, write=_written, number=number)
        return translate_content(content, replace(syntax, keeps_lines=True), self.ask)

    def _of_cdata(self, inner: str, number: str) -> str:
        style = MessageStyle(self.settings.target_language, number=number)
        text = _unescaped(inner)
        translation = translate_message(text, self.ask, style)
        if translation == text:
            return inner
        return _escaped(translation, "'\"").replace("]]>", "]] >")


def _decoded(raw: str) -> str:
    """Return what a reader sees: white space is folded, then escapes are read."""
    return _unescaped(_SPACE.sub(" ", unescape(raw)))


def _decoded_quoted(raw: str) -> str:
    """Return what a reader sees of a text in quotes, in which white space stays."""
    return _unescaped(unescape(raw))


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return _LETTERS.get(code, code)

    return _ESCAPE.sub(character, text)


def _written(text: str) -> str:
    return escape(_escaped(text, "'\""))


def _written_quoted(text: str) -> str:
    return escape(_escaped(text, '"'))


def _escaped(text: str, quotes: str) -> str:
    out = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    for quote in quotes:
        out = out.replace(quote, f"\\{quote}")
    return f"\\{out}" if out[:1] in ("@", "?") else out
