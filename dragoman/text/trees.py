"""Constituency trees: bracketed text to a flat row of symbols and back. Knows no files and no
model.

A tree is its words and its symbols: `(NP` opens a constituent, `)NP` closes it, and anything else
is the tag of the next word. Nothing here recurs, so that no depth is too deep for Python; what is
read from outside is bounded all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.errors import InputError
from dragoman.text.normalise import normalise

OPEN = "("
CLOSE = ")"
EMPTY = "-NONE-"  # the tag of what is not spoken, such as a trace
TOP = "TOP"  # the root of a tree of several parts
MAX_DEPTH = 200
MAX_WORDS = 2000
MAX_WORD = 1000  # characters
MAX_LABEL = 30  # characters, as EVALB has it
MAX_ITEMS = 50_000  # brackets, labels and words of one tree, those of empty elements too
# Roots that say nothing: without a name in the Penn Treebank, with one of these in others.
_ROOTS = ("", TOP, "ROOT", "S1", "VROOT")
_ITEM = re.compile(r"[()]|[^ \t\r\n\f\v()]+")
_FUNCTION = re.compile(r"[-=]")
_ESCAPES = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LCB-": "{",
    "-RCB-": "}",
    "-LSB-": "[",
    "-RSB-": "]",
}
_BACKSLASHED = re.compile(r"\\([/*])")


class Constituent(NamedTuple):
    """A label over the words from `start` up to but not including `end`."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Tree:
    """A constituency tree."""

    words: tuple[str, ...]
    symbols: tuple[str, ...]

    @property
    def tags(self) -> tuple[str, ...]:
        """The tag of each word."""
        return tuple(symbol for symbol in self.symbols if is_tag(symbol))

    def bracketed(self) -> str:
        """Return the tree on one line, such as (S (NP (NN Rain)) (VP (VBZ falls)))."""
        words = iter(self.words)
        parts: list[str] = []
        for symbol in self.symbols:
            if symbol.startswith(CLOSE):
                parts[-1] += CLOSE
            elif symbol.startswith(OPEN):
                parts.append(symbol)
            else:
                parts.append(f"({symbol} {escaped(next(words))})")
        return " ".join(parts)

    def constituents(self) -> list[Constituent]:
        """Return all constituents in the order in which they open."""
        found: list[Constituent] = []
        open_ones: list[int] = []
        words = 0
        for symbol in self.symbols:
            if symbol.startswith(OPEN):
                open_ones.append(len(found))
                found.append(Constituent(symbol[1:], words, words))
            elif symbol.startswith(CLOSE):
                index = open_ones.pop()
                found[index] = found[index]._replace(end=words)
            else:
                words += 1
        return found


def is_tag(symbol: str) -> bool:
    """Whether a symbol is the tag of a word."""
    return not symbol.startswith((OPEN, CLOSE))


def escaped(word: str) -> str:
    """Return a word as it stands in a bracketed tree, in which round brackets have names."""
    return plain_word(word).replace("(", "-LRB-").replace(")", "-RRB-")


def unescaped(word: str) -> str:
    """Return a word of a bracketed tree as it stands in text."""
    return plain_word(_ESCAPES.get(word) or _BACKSLASHED.sub(r"\1", word))


def plain_word(word: str) -> str:
    """Return a word without white space inside, which would make several of it."""
    return "".join(normalise(word).split()) or "_"


def fault(symbols: Sequence[str], leaves: int) -> str:
    """Return what is wrong with a row of symbols as a tree of so many words; empty if nothing
    is."""
    open_ones: list[str] = []
    before = ""
    tags = 0
    for index, symbol in enumerate(symbols):
        if index and not open_ones:
            return "goes on behind its root"
        if symbol.startswith(OPEN):
            open_ones.append(symbol[1:])
        elif not open_ones:
            return "does not begin with a bracket"
        elif not symbol.startswith(CLOSE):
            tags += 1
        elif before.startswith(OPEN):
            return f"has an empty {symbol[1:]}"
        elif open_ones.pop() != symbol[1:]:
            return f"closes a {symbol[1:]} that is not open"
        before = symbol
    if open_ones or not symbols:
        return "is not finished"
    if tags != leaves:
        return f"has {tags:,} tags for {leaves:,} words"
    return ""


def read_bracketed(text: str) -> Tree:
    """Return the one tree of a text."""
    builder = TreeBuilder()
    trees = list(builder.add(text))
    builder.finish()
    if len(trees) != 1:
        raise InputError(f"there are {len(trees):,} trees where one was expected: {text[:60]!r}")
    return trees[0]


class TreeBuilder:
    """Builds trees from bracketed text that comes in pieces, each a number of whole lines.

    Function tags (the -SBJ of NP-SBJ), empty elements and what holds nothing else are left out, and
    so is a root without a name, unless it has several parts.
    """

    def __init__(self) -> None:
        self._begin()

    def add(self, text: str) -> Iterator[Tree]:
        """Yield the trees that end in this text."""
        for match in _ITEM.finditer(text):
            item = match[0]
            self._items += 1
            if self._items > MAX_ITEMS:
                raise InputError(f"a tree has more than {MAX_ITEMS:,} brackets and words")
            if item == OPEN:
                self._open()
            elif item == CLOSE:
                self._close()
                if not self._frames:
                    tree = self._tree()
                    self._begin()
                    if tree.words:
                        yield tree
            else:
                self._word(item)

    def finish(self) -> None:
        """Refuse text that ended within a tree."""
        if self._frames:
            raise InputError("the last tree is not finished: a bracket is not closed")

    @property
    def is_inside(self) -> bool:
        """Whether a tree has begun and not ended."""
        return bool(self._frames)

    def _begin(self) -> None:
        self._frames: list[_Frame] = []
        self._words: list[str] = []
        self._symbols: list[str] = []
        self._items = 0

    def _open(self) -> None:
        if self._frames:
            parent = self._frames[-1]
            if parent.word is not None:
                raise InputError(f"the word {_shown(parent.word)} has a bracket beside it")
            if not parent.is_inner:
                parent.is_inner = True
                self._symbols.append(OPEN + _plain_label(parent.label))
        if len(self._frames) == MAX_DEPTH:
            raise InputError(f"a tree is more than {MAX_DEPTH} brackets deep")
        self._frames.append(_Frame(len(self._symbols)))

    def _word(self, item: str) -> None:
        if not self._frames:
            raise InputError(f"{_shown(item)} stands outside of all brackets")
        frame = self._frames[-1]
        if frame.is_inner or frame.word is not None:
            raise InputError(f"the word {_shown(item)} does not stand in brackets of its own")
        if not frame.label:
            frame.label = _checked_label(item)
            return
        if len(item) > MAX_WORD:
            raise InputError(f"the word {_shown(item)} has more than {MAX_WORD:,} characters")
        frame.word = item

    def _close(self) -> None:
        if not self._frames:
            raise InputError("a bracket is closed that was never opened")
        frame = self._frames.pop()
        if frame.is_inner:
            if len(self._symbols) == frame.start + 1:
                self._symbols.pop()  # which opened it: there was nothing but empty elements
            else:
                self._symbols.append(CLOSE + _plain_label(frame.label))
        elif frame.word is None:
            raise InputError(f"the bracket ({frame.label}) holds no word")
        elif frame.label != EMPTY:
            if len(self._words) == MAX_WORDS:
                raise InputError(f"a tree has more than {MAX_WORDS:,} words")
            self._words.append(unescaped(frame.word))
            self._symbols.append(frame.label)

    def _tree(self) -> Tree:
        symbols = self._symbols
        while symbols and symbols[0][1:] in _ROOTS and _has_one_part(symbols):
            symbols = symbols[1:-1]
        if symbols and is_tag(symbols[0]):
            symbols = [OPEN + TOP, *symbols, CLOSE + TOP]
        if symbols and symbols[0][1:] in _ROOTS:
            symbols = [OPEN + TOP, *symbols[1:-1], CLOSE + TOP]
        return Tree(tuple(self._words), tuple(symbols))


@dataclass
class _Frame:
    """A bracket that is open."""

    start: int  # symbols before it
    label: str = ""
    word: str | None = None
    is_inner: bool = False  # whether it holds other brackets


def _has_one_part(symbols: Sequence[str]) -> bool:
    """Whether the root holds exactly one constituent, and no word of its own."""
    if is_tag(symbols[1]):
        return False
    depth = 0
    for count, symbol in enumerate(symbols[1:], 1):
        depth += symbol.startswith(OPEN) - symbol.startswith(CLOSE)
        if depth == 0:
            return count == len(symbols) - 2
    return False


def _plain_label(label: str) -> str:
    """A label without its function tags, cut where EVALB cuts it."""
    return _FUNCTION.split(label, maxsplit=1)[0] or label


def _checked_label(label: str) -> str:
    if len(label) > MAX_LABEL:
        raise InputError(f"the label {_shown(label)} has more than {MAX_LABEL} characters")
    if normalise(label) != label:
        raise InputError(f"the label {_shown(label)} has characters that are not printable")
    return label


def _shown(item: str) -> str:
    return repr(item[:40])
