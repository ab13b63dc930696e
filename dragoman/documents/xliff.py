"""Translation files of XLIFF 1.2 and 2.0: sources are translated into the targets that are missing,
empty or marked as new; all others, and everything else, stay.

Knows the elements of both versions; how codes keep their words is known to inline_codes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.inline_codes import CodeSyntax, translate_content
from dragoman.documents.text_bytes import Edit, edited
from dragoman.documents.xml_tokens import Token, margin_of, read_xml, tokens, with_attribute
from dragoman.text.languages import same_language
from dragoman.text.markup_transfer import Ask

_CODES = CodeSyntax(
    paired=frozenset(("g", "mrk", "pc")),
    opening={"bx": "ex", "bpt": "ept", "sc": "ec", "sm": "em"},
    references=("rid", "startRef", "id"),
)
_UNITS = ("trans-unit", "segment")
_ASIDE = ("alt-trans", "seg-source", "ignorable", "notes", "note", "originalData", "bin-unit")
_UNTRANSLATED = ("new", "needs-translation", "initial")


@dataclass
class _Unit:
    """A pair of source and target, where they stand."""

    tag: Token
    keeps_lines: bool
    source: tuple[Token, Token] | None = None
    target: tuple[Token, Token] | None = None
    segments: tuple[Token, Token] | None = None  # the source once more, in marked sentences
    behind: int = 0  # where a target may be put in


@dataclass(frozen=True)
class _Scope:
    """What an element says for all that is in it."""

    name: str
    translated: bool = True
    keeps_lines: bool = False
    is_aside: bool = False


def rewrite_xliff(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Fill the targets of a file."""
    file = read_xml(data)
    text = file.text
    root = next((token for token in tokens(text) if token.kind in ("open", "empty")), None)
    if root is None or root.name.rpartition(":")[2] != "xliff":
        raise ValueError("it has no element called xliff")
    version = root.attributes().get("version", "")
    edits: list[Edit] = []
    for found in _parts(text):
        if isinstance(found, Token):
            edits += _with_language(found, version, settings)
        else:
            edits += _translated(text, found, version, ask)
    edits.sort()
    return file.encoded(edited(text, edits), "xmlcharrefreplace")


def _parts(text: str) -> Iterator[Token | _Unit]:
    """Yield the tags that name a language, and the units that are to be translated."""
    scopes = [_Scope("")]
    unit: _Unit | None = None
    opened: Token | None = None
    for token in tokens(text):
        name = token.name.rpartition(":")[2]
        scope = scopes[-1]
        if token.kind in ("open", "empty") and name in ("xliff", "file"):
            yield token
        if token.kind == "open":
            scopes.append(_inner(scope, token, name))
            if name in _UNITS and scopes[-1].translated and not scope.is_aside:
                unit = _Unit(token, scopes[-1].keeps_lines)
            elif unit and scope.name in _UNITS and name in ("source", "target", "seg-source"):
                opened = token
                unit.keeps_lines = scopes[-1].keeps_lines
        elif token.kind == "empty" and unit and name == "target" and scope.name in _UNITS:
            unit.target = (token, token)
        elif token.kind == "close":
            scopes.pop()
            if unit and opened and name == "source" and scopes[-1].name in _UNITS:
                unit.source = (opened, token)
                unit.behind = token.end
            elif unit and opened and name == "target" and scopes[-1].name in _UNITS:
                unit.target = (opened, token)
            elif unit and opened and name == "seg-source":
                unit.segments = (opened, token)
                unit.behind = token.end
            elif unit and name in _UNITS:
                yield unit
                unit = None


def _inner(outer: _Scope, token: Token, name: str) -> _Scope:
    attributes = token.attributes()
    translate = attributes.get("translate")
    space = attributes.get("xml:space")
    return _Scope(
        name,
        outer.translated if translate is None else translate != "no",
        outer.keeps_lines if space is None else space == "preserve",
        outer.is_aside or name in _ASIDE,
    )


def _with_language(tag: Token, version: str, settings: DocumentSettings) -> list[Edit]:
    """Set the language of the targets."""
    name = tag.name.rpartition(":")[2]
    is_first = version.startswith("1")
    if not settings.target_language or name != ("file" if is_first else "xliff"):
        return []
    attribute = "target-language" if is_first else "trgLang"
    known = tag.attributes().get(attribute)
    if known:
        if not same_language(known, settings.target_language):
            raise ValueError(
                f"its targets are in {known[:20]}, and the translation is to "
                f"{settings.target_language}"
            )
        return []
    return [(tag.start, tag.end, with_attribute(tag.raw, attribute, settings.target_language))]


def _translated(text: str, unit: _Unit, version: str, ask: Ask) -> list[Edit]:
    if unit.source is None or not _is_wanted(text, unit):
        return []
    first, _ = unit.source
    translation = _translation(text, unit, ask)
    is_first = version.startswith("1")
    edits: list[Edit] = []
    if not is_first:
        tag = with_attribute(unit.tag.raw, "state", "translated")
        edits.append((unit.tag.start, unit.tag.end, tag))
    prefix = first.name[: -len("source")]
    closing = f"</{prefix}target>"
    if unit.target is None:
        margin = margin_of(text, first.start)
        tag = _with_state(f"<{prefix}target>", is_first)
        edits.append((unit.behind, unit.behind, f"{margin}{tag}{translation}{closing}"))
        return edits
    start, end = unit.target
    opening = start.raw if start.kind == "open" else start.raw[:-2].rstrip() + ">"
    tag = _with_state(opening, is_first)
    edits.append((start.start, end.end, f"{tag}{translation}{closing}"))
    return edits


def _translation(text: str, unit: _Unit, ask: Ask) -> str:
    """Return the content of the target: sentence by sentence, if the unit says what they are."""
    syntax = replace(_CODES, keeps_lines=unit.keeps_lines)
    first, last = unit.segments or unit.source or (unit.tag, unit.tag)
    content = text[first.end : last.start]
    sentences = list(_sentences(content)) if unit.segments else []
    if not sentences:
        return translate_content(content, syntax, ask)
    edits = []
    for start, end in sentences:
        translation = translate_content(content[start:end], syntax, ask)
        edits.append((start, end, translation))
    return edited(content, edits)


def _sentences(content: str) -> Iterator[tuple[int, int]]:
    """Yield where the content of each outermost mrk that is a segment begins and ends."""
    opened: list[Token] = []
    segment: tuple[int, int] | None = None  # how many elements are open around it, and its start
    for token in tokens(content):
        if token.kind == "open":
            is_segment = token.attributes().get("mtype") == "seg"
            if segment is None and is_segment:
                segment = (len(opened), token.end)
            opened.append(token)
        elif token.kind == "close":
            opened.pop()
            if segment and len(opened) == segment[0]:
                yield segment[1], token.start
                segment = None


def _is_wanted(text: str, unit: _Unit) -> bool:
    """Whether a unit has no target yet, or one that says that it is no translation."""
    attributes = unit.tag.attributes()
    if attributes.get("approved") == "yes":
        return False
    if unit.target is None:
        return True
    start, end = unit.target
    content = text[start.end : end.start] if start.kind == "open" else ""
    state = start.attributes().get("state") or attributes.get("state")
    return not content.strip() or state in _UNTRANSLATED


def _with_state(tag: str, is_first: bool) -> str:
    """Say in a tag of XLIFF 1.2 that a machine has translated and nobody has looked yet."""
    if not is_first:
        return tag
    tag = with_attribute(tag, "state", "needs-review-translation")
    return with_attribute(tag, "state-qualifier", "mt-suggestion")
