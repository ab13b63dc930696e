"""ICU messages: `{n, plural, one {# file} other {# files}}`, `select` and `selectordinal`.

Reads a message, has each of its branches translated as a whole sentence, and writes it with the
plural categories of the target language. Knows the syntax; no translator and no file format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dragoman.documents.plural_forms import CATEGORIES, plural_rule

MAX_DEPTH = 12
MAX_BRANCHES = 64  # of one message, all combinations counted

_START = re.compile(r"\{\s{0,9}[\w.-]{1,80}\s{0,9},\s{0,9}(?:plural|select|selectordinal)\s{0,9},")
_ARGUMENT = re.compile(r"\{\s*+([\w.-]{1,80})\s*+(?:,\s*+(plural|selectordinal|select)\s*+,)?+")
_OFFSET = re.compile(r"\s*+offset:\s*+\d{1,9}")
_SELECTOR = re.compile(r"\s*+(=\d{1,9}|[\w-]{1,80})\s*+\{")
_SPACE = re.compile(r"\s*+")
_PLAIN = re.compile(r"[^{}'#]++")


class IcuError(ValueError):
    """A text that is no ICU message."""


@dataclass(frozen=True)
class Argument:
    """What is put in: as it is written, and the name of the number that a # stands for."""

    raw: str
    counts: str = ""


@dataclass(frozen=True)
class Choice:
    """A plural or a select with its branches."""

    name: str
    kind: str
    offset: str
    branches: tuple[tuple[str, Message], ...]


Part = str | Argument | Choice
Message = tuple[Part, ...]
# Translates a branch, given as (what is written, what is read); what is text is read as "".
TranslateLeaf = Callable[[Sequence[tuple[str, str]]], str]


def may_be_icu(text: str) -> bool:
    """Whether a text has what looks like a plural or a select."""
    return "{" in text and _START.search(text) is not None


def read_icu(text: str) -> Message:
    """Parse a message, or raise an IcuError."""
    reader = _Reader(text)
    message = reader.message("", 0)
    if reader.position < len(text):
        raise IcuError("a brace is closed that was not opened")
    return message


def write_icu(message: Message, translate_leaf: TranslateLeaf, language: str) -> str:
    """Return a message with its branches translated."""
    can_hoist = _count(message) <= MAX_BRANCHES
    return _Writer(translate_leaf, language, can_hoist).written(message, "", {})


class _Reader:
    """A place in a message."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._choices = 0
        self.position = 0

    def message(self, counts: str, depth: int) -> Message:
        """Read up to a brace that closes or the end; # stands for the number `counts`."""
        if depth > MAX_DEPTH:
            raise IcuError("it is nested too deeply")
        parts: list[Part] = []
        text = self._text
        while self.position < len(text) and text[self.position] != "}":
            sign = text[self.position]
            if sign == "{":
                parts.append(self._argument(counts, depth))
            elif sign == "#" and counts:
                parts.append(Argument("#", counts))
                self.position += 1
            else:
                parts.append(self._literal(sign, bool(counts)))
        return tuple(parts)

    def _literal(self, sign: str, in_plural: bool) -> str | Argument:
        """Read a stretch of text, or what quotes hide from being read as an argument."""
        text = self._text
        start = self.position
        if sign != "'":
            plain = _PLAIN.match(text, start)
            self.position = plain.end() if plain else start + 1
            return text[start : self.position]
        following = text[start + 1 : start + 2]
        if following == "'":
            self.position += 2
            return "'"
        if following not in ("{", "}") and not (following == "#" and in_plural):
            self.position += 1
            return "'"
        end = text.find("'", start + 1)
        while text[end : end + 2] == "''":
            end = text.find("'", end + 2)
        if end < 0:
            raise IcuError("a quotation does not end")
        self.position = end + 1
        return Argument(text[start : end + 1])

    def _argument(self, counts: str, depth: int) -> Argument | Choice:
        text = self._text
        start = self.position
        match = _ARGUMENT.match(text, start)
        if match is None:
            raise IcuError("a brace has no name")
        if match[2]:
            self.position = match.end()
            return self._choice(match[1], match[2], counts, depth)
        end = text.find("}", start)
        if end < 0 or "{" in text[start + 1 : end]:
            raise IcuError("an argument does not end")
        self.position = end + 1
        return Argument(text[start : end + 1])

    def _choice(self, name: str, kind: str, counts: str, depth: int) -> Choice:
        text = self._text
        self._choices += 1
        if self._choices > MAX_BRANCHES:
            raise IcuError("it has too many choices")
        offset = _OFFSET.match(text, self.position) if kind != "select" else None
        if offset:
            self.position = offset.end()
        inner = counts if kind == "select" else name
        branches = []
        while match := _SELECTOR.match(text, self.position):
            self.position = match.end()
            branches.append((match[1], self.message(inner, depth + 1)))
            self._close()
        self._close()
        if "other" not in dict(branches):
            raise IcuError("a choice has no branch called other")
        return Choice(name, kind, offset[0].strip() if offset else "", tuple(branches))

    def _close(self) -> None:
        space = _SPACE.match(self._text, self.position)
        end = space.end() if space else self.position
        if self._text[end : end + 1] != "}":
            raise IcuError("a brace is not closed")
        self.position = end + 1


@dataclass(frozen=True)
class _Writer:
    """Writes the translation of a message."""

    translate_leaf: TranslateLeaf
    language: str
    can_hoist: bool

    def written(self, message: Message, counts: str, numbers: Mapping[str, str]) -> str:
        """Write a message inside a plural of `counts`; the translator reads `numbers`."""
        first = next((place for place, part in enumerate(message) if isinstance(part, Choice)), -1)
        if first < 0:
            return self._leaf(message, counts, numbers)
        before = message[:first]
        after = message[first + 1 :]
        choice = message[first]
        assert isinstance(choice, Choice)
        if self.can_hoist and _has_letters((*before, *after)):
            # Whole sentences: what stands around the choice goes into its branches.
            branches = [(name, (*before, *inner, *after)) for name, inner in choice.branches]
            return self._choice(replace(choice, branches=tuple(branches)), counts, numbers)
        head = self._leaf(before, counts, numbers)
        tail = self.written(after, counts, numbers)
        return head + self._choice(choice, counts, numbers) + tail

    def _choice(self, choice: Choice, counts: str, numbers: Mapping[str, str]) -> str:
        is_plural = choice.kind != "select"
        branches = self._wanted(choice) if choice.kind == "plural" else choice.branches
        samples = plural_rule(self.language).categories
        out = [f"{{{choice.name}, {choice.kind},"]
        if choice.offset:
            out.append(f" {choice.offset}")
        for name, message in branches:
            own = counts
            read = dict(numbers)
            if is_plural:
                own = choice.name
                sample = name[1:] if name.startswith("=") else samples.get(name, "")
                is_known = not choice.offset and choice.kind == "plural"
                read[own] = sample if is_known else ""
            out.append(f" {name} {{{self.written(message, own, read)}}}")
        out.append("}")
        return "".join(out)

    def _wanted(self, choice: Choice) -> tuple[tuple[str, Message], ...]:
        """Return the branches that the target language needs, each from the nearest there is."""
        given = dict(choice.branches)
        wanted = [(name, message) for name, message in choice.branches if name.startswith("=")]
        categories = plural_rule(self.language).categories if self.language else given
        needed = [name for name in CATEGORIES if name in categories]
        return (*wanted, *((name, given.get(name, given["other"])) for name in needed))

    def _leaf(self, message: Message, counts: str, numbers: Mapping[str, str]) -> str:
        rows: list[tuple[str, str]] = []
        for part in message:
            if isinstance(part, Argument):
                rows.append(_read(part, counts, numbers))
            elif isinstance(part, str):
                rows += _literals(part, counts)
        return self.translate_leaf(rows)


def _read(argument: Argument, counts: str, numbers: Mapping[str, str]) -> tuple[str, str]:
    """Return how an argument is written inside the plural `counts`, and what is read for it."""
    if not argument.counts:
        return argument.raw, argument.raw
    raw = "#" if argument.counts == counts else f"{{{argument.counts}, number}}"
    return raw, numbers.get(argument.counts) or "#"


def _literals(text: str, counts: str) -> list[tuple[str, str]]:
    """Return a text, with each # quoted that must not be read as the number."""
    if not counts or "#" not in text:
        return [(text, "")]
    pieces = [piece for piece in re.split("(#)", text) if piece]
    return [("'#'", "#") if piece == "#" else (piece, "") for piece in pieces]


def _has_letters(parts: Sequence[Part]) -> bool:
    return any(any(map(str.isalpha, part)) for part in parts if isinstance(part, str))


def _count(message: Message) -> int:
    """Return how many sentences a message has, all combinations of branches counted."""
    count = 1
    for part in message:
        if isinstance(part, Choice):
            count *= sum(_count(inner) for _, inner in part.branches)
    return count
