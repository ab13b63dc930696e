"""Catalogues of gettext (.po, .pot): messages without a translation, and fuzzy ones, are
translated; others, obsolete ones and comments stay.

Knows the lines of a catalogue, its header and its plurals; what is in a message is known to
messages.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from dragoman.documents.access_keys import translate_label
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.messages import MessageStyle, translate_message
from dragoman.documents.plural_forms import plural_rule
from dragoman.documents.text_bytes import Edit, edited, read_text
from dragoman.text.languages import same_language
from dragoman.text.markup_transfer import Ask

_LINE = re.compile(r"([^\r\n]*+)(\r\n|\r|\n|\Z)")
_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[\d{1,2}\])?)[ \t]*(\".*\")[ \t]*")
_STRING = re.compile(r'[ \t]*"((?:[^"\\]|\\.)*+)"[ \t]*')
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = {ord(value): f"\\{key}" for key, value in _LETTERS.items()} | {92: "\\\\", 34: '\\"'}
_CHARSET = re.compile(rb"charset=([A-Za-z0-9_.:-]{1,40})")
_NUMBER_OF_FORMS = re.compile(r"nplurals\s*=\s*(\d{1,2})\s*;")
_WIDTH = 77  # of a line of a string, its quotes not counted
# Formats whose placeholders may get a number, and those of which some may not.
_NUMBERED = re.compile(r"\b(?:c|objc|php|java-printf|sh|gcc-internal|qt|kde|boost)-format\b")


@dataclass
class _Field:
    """A keyword and its string, where they stand."""

    start: int
    end: int  # of the last line, without its line end
    parts: list[str] = field(default_factory=list)  # the string of each line

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def lines(self) -> int:
        return len(self.parts)


@dataclass
class _Entry:
    """A message with its fields, flags and previous texts."""

    fields: dict[str, _Field] = field(default_factory=dict)
    flags: list[tuple[int, int, str]] = field(default_factory=list)  # lines that begin with #,
    previous: list[tuple[int, int]] = field(default_factory=list)  # lines that begin with #|

    @property
    def is_fuzzy(self) -> bool:
        return any("fuzzy" in _flags(line) for _, _, line in self.flags)

    @property
    def source(self) -> str:
        return self.fields["msgid"].text


def rewrite_gettext(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the messages of a catalogue; it is written in UTF-8."""
    charset = _CHARSET.search(data[:100_000])
    encoding = charset[1].decode() if charset else "utf-8"
    file = read_text(data, "utf-8" if encoding.upper() == "CHARSET" else encoding)
    catalogue = _Catalogue(file.text, ask, settings)
    edits = catalogue.edits()
    if not catalogue.has_entries:
        raise ValueError("it has no msgid with a msgstr")
    return file.mark + edited(file.text, edits).encode("utf-8", "replace")


class _Catalogue:
    """A catalogue and whom to ask."""

    def __init__(self, text: str, ask: Ask, settings: DocumentSettings) -> None:
        self._text = text
        self._ask = ask
        self._settings = settings
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        self._numbers: Sequence[str] = plural_rule(settings.target_language).numbers
        self.has_entries = False

    def edits(self) -> list[Edit]:
        """Return what is to be written where."""
        edits: list[Edit] = []
        for entry in _entries(self._text):
            names = entry.fields.keys()
            if "msgid" not in names or not any(name.startswith("msgstr") for name in names):
                continue
            self.has_entries = True
            if not entry.source and "msgctxt" not in names:
                edits += self._header(entry)
            else:
                edits += self._translated(entry)
        return edits

    def _header(self, entry: _Entry) -> list[Edit]:
        """Set the language, the plurals and the encoding."""
        own = entry.fields.get("msgstr")
        if own is None:
            return []
        lines = own.text.split("\n")
        values = dict(line.split(":", 1) for line in lines if ":" in line)
        language = self._settings.target_language
        known = values.get("Language", "").strip()
        forms = values.get("Plural-Forms", "")
        count = _NUMBER_OF_FORMS.search(forms)
        new = own.text
        if language:
            is_same = bool(known) and same_language(known, language)
            if not is_same:
                new = _with_value(new, "Language", language)
            if count and is_same and "EXPRESSION" not in forms:
                self._numbers = self._of_count(int(count[1]))
            else:
                new = _with_value(new, "Plural-Forms", plural_rule(language).header)
        elif count:
            self._numbers = self._of_count(int(count[1]))
        new = re.sub(r"charset=[\w.:-]+", "charset=UTF-8", new)
        if new == own.text:
            return []
        edits = [(own.start, own.end, self._written("msgstr", new, own.lines > 1))]
        return self._without_fuzzy(entry) + edits

    def _of_count(self, count: int) -> Sequence[str]:
        """Return a number for each plural form, if the catalogue's own rule has so many."""
        numbers = plural_rule(self._settings.target_language).numbers
        if len(numbers) == count:
            return numbers
        return [""] * count

    def _translated(self, entry: _Entry) -> list[Edit]:
        targets = [field for name, field in entry.fields.items() if name.startswith("msgstr")]
        if any(target.text for target in targets) and not entry.is_fuzzy:
            return []
        flags = " ".join(line for _, _, line in entry.flags)
        may_number = bool(_NUMBERED.search(flags)) or "-format" not in flags
        style = MessageStyle(self._settings.target_language, may_number)
        is_long = entry.fields["msgid"].lines > 1
        if "msgid_plural" in entry.fields:
            text = self._plural(entry, style)
        else:
            translation = self._message(entry.source, style)
            text = self._written("msgstr", translation, is_long)
        start = min(target.start for target in targets)
        end = max(target.end for target in targets)
        return [*self._without_fuzzy(entry), (start, end, text)]

    def _plural(self, entry: _Entry, style: MessageStyle) -> str:
        plural = entry.fields["msgid_plural"]
        rows = []
        for place, number in enumerate(self._numbers):
            is_singular = number == "1" or (not number and place == 0)
            text = entry.source if is_singular else plural.text
            translation = self._message(text, replace(style, number=number))
            rows.append(self._written(f"msgstr[{place}]", translation, plural.lines > 1))
        return self._line_end.join(rows)

    def _message(self, text: str, style: MessageStyle) -> str:
        return translate_label(text, lambda label: translate_message(label, self._ask, style))

    def _without_fuzzy(self, entry: _Entry) -> list[Edit]:
        """Take the mark of a fuzzy entry away, with the texts it was made from."""
        if not entry.is_fuzzy:
            return []
        edits: list[Edit] = [(start, end, "") for start, end in entry.previous]
        for start, end, line in entry.flags:
            left = [flag for flag in _flags(line) if flag != "fuzzy"]
            kept = "#, " + ", ".join(left) + self._line_end if left else ""
            edits.append((start, end, kept))
        return sorted(edits)

    def _written(self, keyword: str, text: str, is_long: bool) -> str:
        """Return a keyword with its string: in lines, if the source has lines."""
        inner = text.find("\n")
        if not is_long and (len(text) <= _WIDTH or inner in (-1, len(text) - 1)):
            return f'{keyword} "{text.translate(_WRITTEN)}"'
        lines = [f'{keyword} ""']
        for line in text.splitlines(keepends=True) if "\n" in text else [text]:
            lines += [f'"{part.translate(_WRITTEN)}"' for part in _folded(line)]
        return self._line_end.join(lines)


def _entries(text: str) -> Iterator[_Entry]:
    entry = _Entry()
    current: _Field | None = None
    for match in _LINE.finditer(text):
        line = match[1]
        start, end = match.span(1)
        keyword = _KEYWORD.fullmatch(line)
        has_target = any(name.startswith("msgstr") for name in entry.fields)
        begins = keyword and keyword[1] in ("msgid", "msgctxt")
        if has_target and (begins or line.startswith("#") or not line.strip()):
            yield entry
            entry = _Entry()
            current = None
        if keyword:
            current = _Field(start, end, [_unescaped(keyword[2])])
            entry.fields[keyword[1]] = current
        elif line.startswith("#,"):
            entry.flags.append((start, match.end(), line))
        elif line.startswith("#|"):
            entry.previous.append((start, match.end()))
        elif line.startswith("#") or not line.strip():
            continue
        elif current and _STRING.fullmatch(line):
            current.parts.append(_unescaped(line))
            current.end = end
        else:
            raise ValueError(f"a line is neither a message nor a comment: {line.strip()[:40]}")
    yield entry


def _flags(line: str) -> list[str]:
    return [flag.strip() for flag in line[2:].split(",") if flag.strip()]


def _unescaped(string: str) -> str:
    match = _STRING.fullmatch(string)
    if match is None:
        raise ValueError(f"a string does not end: {string.strip()[:40]}")
    return _ESCAPE.sub(_character, match[1])


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "01234567":
        return chr(int(code, 8))
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return _LETTERS.get(code, code)


def _with_value(header: str, name: str, value: str) -> str:
    """Return a header with a line set, in its old place or behind the others."""
    line = f"{name}: {value}"
    pattern = re.compile(rf"^{name}:.*$", re.MULTILINE)
    if pattern.search(header):
        return pattern.sub(lambda _: line, header, count=1)
    separator = "" if not header or header.endswith("\n") else "\n"
    return f"{header}{separator}{line}\n"


def _folded(line: str) -> Iterator[str]:
    """Yield the parts of a line that is too long, each with the space behind its last word."""
    part = ""
    for word in re.findall(r"\S+\s*|\s+", line):
        if part and len(part) + len(word.rstrip()) > _WIDTH:
            yield part
            part = ""
        part += word
    yield part
