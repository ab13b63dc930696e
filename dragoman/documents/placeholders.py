"""Placeholders of programs in a text, such as %s and {name}: where they are, and what a translator
reads for them.

While its text is translated, each is one character that no text has, its marker. Knows strings; no
file format.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import unescape

from dragoman.text.protected import protected

_PLACEHOLDER = re.compile(
    r"""
    \{\{[^{}]{1,80}\}\}                        # {{name}} of i18next
    |[$%]?\{[^{}\s][^{}]{0,79}\}               # {name} ${name} %{name}
    |%\([^()\s]{1,80}\)[-+\#0]{0,4}[\d.]{0,6}[a-zA-Z]  # %(name)s
    |%\#@\w{1,80}@                             # %#@name@ of Apple
    |(?P<percent>%%)
    |(?<![\d%])%(?P<place>\d{1,3}\$)?(?P<format>
        [-+\#0']{0,4}(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?
        (?:hh|h|ll|l|j|z|t|q|L)?[@diouxXeEfFgGcsSpaA])
    |%L?\d{1,2}(?!\d)|%n\b                     # %1 %n of Qt
    |\$t\([^()]{1,80}\)                        # $t(key) of i18next
    |\$[A-Za-z0-9_@]{1,80}\$|\$\d{1,2}(?!\d)   # $NAME$ $1 of Chrome
    |&(?:[a-zA-Z][a-zA-Z0-9]{1,31}|\#\d{1,7}|\#x[0-9a-fA-F]{1,6});
    """,
    re.VERBOSE,
)
_COUNTED = re.compile(
    r"(?i)%(?:\d\$)?(?:l|ll|z|h)?[diu]|%n|.{1,3}(?:n|num|number|count|total)\W{1,3}[dis]?"
)
_TAG = re.compile(r"<(/?[a-zA-Z0-9][\w.:-]{0,80})(?:[\s/][^<>]{0,2000})?>")
FIRST_MARKER = 0xF0000
MOST = 0xFFF0
MARKER = re.compile("[\U000f0000-\U000ffff0]")


@dataclass(frozen=True)
class Placeholder:
    """What a program replaces, or a code: as it is written, and as the translator reads it."""

    raw: str
    text: str = ""
    format: str = ""  # of one that counts by its order, such as s of %s
    kind: str = "void"  # or a code that opens or closes something: "open", "close"
    name: str = "placeholder"  # of what it opens or closes


def mark_placeholders(text: str, found: list[Placeholder]) -> str:
    """Return a text with a marker in place of each placeholder, which are added to `found`."""

    def mark(match: re.Match[str]) -> str:
        if len(found) >= MOST:
            return match[0]
        found.append(_placeholder(match))
        return marker(len(found) - 1)

    return _PLACEHOLDER.sub(mark, text)


def marker(index: int) -> str:
    """Return the character that stands for the placeholder of this number."""
    return chr(FIRST_MARKER + index)


def has_words(text: str) -> bool:
    """Whether a text has letters outside its placeholders and tags."""
    bare = _TAG.sub(" ", _PLACEHOLDER.sub(" ", text))
    return any(map(str.isalpha, bare))


def blanked(text: str) -> str:
    """Return a text with a space for each character of its placeholders and tags."""
    for pattern in (_PLACEHOLDER, _TAG):
        text = pattern.sub(lambda match: " " * len(match[0]), text)
    return text


def _placeholder(match: re.Match[str]) -> Placeholder:
    raw = match[0]
    if match["percent"]:
        return Placeholder(raw, "%")
    if raw.startswith("&"):
        character = unescape(raw)
        return Placeholder(raw, character if len(character) == 1 else raw)
    in_order = "" if match["place"] else match["format"] or ""
    return Placeholder(raw, raw, in_order)


def with_number(found: Sequence[Placeholder], number: str) -> list[Placeholder]:
    """Let the translator read a number for the placeholder that is the count."""
    rows = list(found)
    counts = [index for index, one in enumerate(rows) if _COUNTED.fullmatch(one.raw)]
    if not counts and len(rows) == 1:
        counts = [0]
    if counts:
        first = counts[0]
        rows[first] = replace(rows[first], text=number)
    return rows


def told_apart(found: Sequence[Placeholder]) -> list[Placeholder]:
    """Give a text of its own to what a translator could mix up or would not keep."""
    counts = Counter(one.text for one in found)
    rows = []
    for place, one in enumerate(found, 1):
        is_plain = len(one.text) < 2 or one.text.replace(".", "").isdigit()
        has_letters = any(map(str.isalnum, one.text))  # by which it is told from signs around it
        is_alone = counts[one.text] == 1
        is_safe = has_letters and is_alone and protected(one.text) == [one.text]
        if not is_plain and not is_safe:
            one = replace(one, text=f"{{{place}}}")
        rows.append(one)
    return rows
