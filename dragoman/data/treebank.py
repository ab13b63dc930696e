"""Files of bracketed trees (.mrg) to trees, one at a time. Knows files; `text.trees` says what a
tree is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dragoman.data.text_lines import location, read_lines
from dragoman.errors import InputError
from dragoman.text.trees import Tree, TreeBuilder

_HARMLESS = ("crlf", "mark", "utf16")  # what a reader of lines has dealt with


def read_trees(file: str) -> Iterator[Tree]:
    """Yield the trees of a file, which may stand on one line or on several.

    A file that is not made of trees is refused with the line where that shows.
    """
    if not Path(file).is_file():
        problem = "is not a regular file" if Path(file).exists() else "does not exist"
        raise InputError(f"{file} {problem}; name a file of bracketed trees")
    builder = TreeBuilder()
    found = False
    number = 0
    for number, line in enumerate(read_lines(file, _refuse), 1):
        try:
            for tree in builder.add(line or ""):
                found = True
                yield tree
        except InputError as error:
            raise InputError(_complaint(file, number, error)) from None
    try:
        builder.finish()
    except InputError as error:
        raise InputError(_complaint(file, number, error)) from None
    if not found:
        raise InputError(f"{file} has no trees; name a file such as (S (NP (NN Rain)) …) a line")


def read_all_trees(files: Sequence[str]) -> list[Tree]:
    """Return the trees of several files."""
    return [tree for file in files for tree in read_trees(file)]


def _complaint(file: str, number: int, error: InputError) -> str:
    return f"{location(file, number)}: {error}; it must hold trees in brackets, as .mrg files do"


def _refuse(kind: str, where: str, text: str) -> None:
    """A listener that raises at whatever cannot be read."""
    if kind not in _HARMLESS:
        raise InputError(f"{where} cannot be read as trees: {text[:100]}")
