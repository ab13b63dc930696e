"""The content of an XML element that is a text with codes in it, to its translation: each code
comes back exactly once, around the words it was around.

Knows elements by what their names mean; which names a format has, it says itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dragoman.documents.marked_text import translate_marked
from dragoman.documents.placeholders import (
    MARKER,
    Placeholder,
    mark_placeholders,
    marker,
    told_apart,
    with_number,
)
from dragoman.documents.xml_tokens import (
    Token,
    escape,
    is_whole,
    tokens,
    unescape,
    with_line_ends,
)
from dragoman.text.markup_transfer import Ask

_MOST_CODES = 250
_VARIABLE = "{x}"  # as the translator reads it
_SHOWN = ("equiv-text", "equiv", "disp")
_LINE = re.compile(r"\s*\n\s*")


@dataclass(frozen=True)
class CodeSyntax:
    """Which elements of a format are codes, and how its texts are written."""

    paired: frozenset[str]  # elements around words, such as g; others hold no text
    # Elements that open something, and the name of what closes it.
    opening: dict[str, str] = field(default_factory=dict)
    references: tuple[str, ...] = ("id",)  # attributes by which the two find each other
    decode: Callable[[str], str] = unescape
    write: Callable[[str], str] = escape
    keeps_lines: bool = False  # whether a line break is one that a reader sees
    number: str = ""  # what the translator reads for the count of a plural


def translate_content(content: str, syntax: CodeSyntax, ask: Ask) -> str:
    """Translate the content of an element; as it was where its codes cannot be kept."""
    found: list[Placeholder] = []
    marked = "".join(_marked(content, syntax, found))
    is_strange = len(MARKER.findall(marked)) != len(found)
    if is_strange or len(found) > _MOST_CODES:
        return content
    if not syntax.keeps_lines:
        marked = _LINE.sub(" ", marked)
    if syntax.number:
        found = with_number(found, syntax.number)
    found = told_apart(found)
    unchanged = translate_marked(marked, found, lambda text: (text, ()), syntax.write)
    translation = translate_marked(marked, found, ask, syntax.write)
    if translation == unchanged or not is_whole(translation):
        return content
    return with_line_ends(translation, content)


def _marked(content: str, syntax: CodeSyntax, found: list[Placeholder]) -> Iterator[str]:
    """Yield the texts of a content and a marker for each code and placeholder."""
    end = 0
    for token, placeholder in _find_codes(content, syntax):
        yield _marked_text(content[end : token.start], syntax, found)
        end = token.end
        if placeholder is None:
            yield mark_placeholders(token.raw[len("<![CDATA[") : -len("]]>")], found)
        else:
            found.append(placeholder)
            yield marker(len(found) - 1)
    yield _marked_text(content[end:], syntax, found)


def _marked_text(raw: str, syntax: CodeSyntax, found: list[Placeholder]) -> str:
    before = len(found)
    marked = mark_placeholders(syntax.decode(raw), found)
    for index in range(before, len(found)):
        own = found[index]
        found[index] = Placeholder(syntax.write(own.raw), own.text, own.format)
    return marked


def _find_codes(content: str, syntax: CodeSyntax) -> Iterator[tuple[Token, Placeholder | None]]:
    """Yield the codes of a content; one that holds no text to translate is one, and CDATA none."""
    held: Token | None = None
    depth = 0
    for token in tokens(content):
        if held is None:
            is_kept = token.kind == "open" and _bare(token.name) not in syntax.paired
            if is_kept:
                held = token
                depth = 1
            elif token.kind == "cdata":
                yield token, None
            else:
                yield token, _code(token, token, syntax)
            continue
        depth += (token.kind == "open") - (token.kind == "close")
        if depth == 0:
            raw = content[held.start : token.end]
            whole = Token("empty", held.start, token.end, raw, held.name)
            yield whole, _code(whole, held, syntax)
            held = None


def _code(token: Token, tag: Token, syntax: CodeSyntax) -> Placeholder:
    """Return a code; `tag` has its attributes."""
    name = _bare(token.name)
    if token.kind in ("open", "close"):
        return Placeholder(token.raw, kind=token.kind, name=name)
    closers = {closer: opener for opener, closer in syntax.opening.items()}
    if name not in syntax.opening and name not in closers:
        return Placeholder(token.raw, _VARIABLE if _is_variable(token, tag) else "")
    attributes = tag.attributes()
    references = [attributes[key] for key in syntax.references if key in attributes]
    pair = f"{closers.get(name, name)} {references[:1]}"
    kind = "open" if name in syntax.opening else "close"
    return Placeholder(token.raw, kind=kind, name=pair)


def _is_variable(token: Token, tag: Token) -> bool:
    """Whether a code stands for words that are put in later, as far as it says."""
    if token.name == "xliff:g":
        return True
    attributes = tag.attributes()
    shown = [attributes[key] for key in _SHOWN if key in attributes]
    inner = token.raw[len(tag.raw) :] if len(token.raw) > len(tag.raw) else ""
    found: list[Placeholder] = []
    mark_placeholders(" ".join((*shown, inner.rpartition("</")[0])), found)
    return any(not one.raw.startswith("&") for one in found)


def _bare(name: str) -> str:
    """Return a name without its prefix."""
    return name.rpartition(":")[2]
