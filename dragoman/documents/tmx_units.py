"""Translation memories (.tmx): units without a segment in the target language get one, empty ones
are filled; all that is translated, and everything else, stays.

Knows the elements of TMX 1.4; how codes keep their words is known to inline_codes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.inline_codes import CodeSyntax, translate_content
from dragoman.documents.text_bytes import Edit, edited
from dragoman.documents.xml_tokens import Token, escape, margin_of, read_xml, tokens
from dragoman.text.languages import canonical, same_language
from dragoman.text.markup_transfer import Ask

_CODES = CodeSyntax(
    paired=frozenset(("hi",)), opening={"bpt": "ept"}, references=("i",), keeps_lines=True
)


@dataclass
class _Variant:
    """The text of a unit in one language, where it stands."""

    language: str
    tag: Token
    segment: tuple[Token, Token] | None = None
    end: int = 0


@dataclass
class _Unit:
    source_language: str
    variants: list[_Variant] = field(default_factory=list)


def rewrite_tmx(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Fill the segments of the target language."""
    file = read_xml(data)
    text = file.text
    root = next((token for token in tokens(text) if token.kind in ("open", "empty")), None)
    if root is None or root.name != "tmx":
        raise ValueError("it has no element called tmx")
    if not settings.target_language:
        raise ValueError("a translation memory needs a target language")
    edits = [edit for unit in _units(text, settings) for edit in _filled(text, unit, ask, settings)]
    return file.encoded(edited(text, edits), "xmlcharrefreplace")


def _units(text: str, settings: DocumentSettings) -> Iterator[_Unit]:
    default = settings.source_language
    unit: _Unit | None = None
    opened: Token | None = None
    for token in tokens(text):
        name = token.name
        if name == "header" and token.kind in ("open", "empty") and not default:
            default = token.attributes().get("srclang", "")
        elif name == "tu" and token.kind == "open":
            own = token.attributes().get("srclang", "")
            unit = _Unit(settings.source_language or own or default)
        elif name == "tu" and unit:
            yield unit
            unit = None
        elif name == "tuv" and unit and token.kind == "open":
            attributes = token.attributes()
            language = attributes.get("xml:lang") or attributes.get("lang", "")
            unit.variants.append(_Variant(language, token))
        elif name == "tuv" and unit and unit.variants:
            unit.variants[-1].end = token.end
        elif name == "seg" and unit and unit.variants:
            if token.kind == "open":
                opened = token
            elif token.kind == "empty":
                unit.variants[-1].segment = (token, token)
            elif opened:
                unit.variants[-1].segment = (opened, token)


def _filled(text: str, unit: _Unit, ask: Ask, settings: DocumentSettings) -> list[Edit]:
    source = _of_language(unit.variants, unit.source_language)
    if source is None and unit.source_language in ("", "*all*"):
        others = [
            one
            for one in unit.variants
            if not same_language(one.language, settings.target_language)
        ]
        source = others[0] if others else None
    target = _of_language(unit.variants, settings.target_language)
    if source is None or source.segment is None or source is target:
        return []
    first, last = source.segment
    content = text[first.end : last.start]
    if not content.strip():
        return []
    if target is None:
        translation = translate_content(content, _CODES, ask)
        return [(source.end, source.end, _variant(text, source, translation, settings))]
    if target.segment is None:
        return []
    start, end = target.segment
    if start.kind == "open" and text[start.end : end.start].strip():
        return []
    translation = translate_content(content, _CODES, ask)
    return [(start.start, end.end, f"<seg>{translation}</seg>")]


def _variant(text: str, source: _Variant, translation: str, settings: DocumentSettings) -> str:
    """Return an element for the target, on a line of its own if the source has one."""
    margin = margin_of(text, source.tag.start)
    language = escape(settings.target_language)
    return f'{margin}<tuv xml:lang="{language}"><seg>{translation}</seg></tuv>'


def _of_language(variants: list[_Variant], language: str) -> _Variant | None:
    """Return the variant of a language: of the same country first, then of any."""
    exact = [one for one in variants if canonical(one.language) == canonical(language)]
    near = [one for one in variants if language and same_language(one.language, language)]
    return next(iter(exact or near), None)
