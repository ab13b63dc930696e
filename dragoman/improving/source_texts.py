"""Monolingual text from one or several files, compressed or not, in numbered chunks. Knows lines;
nothing of models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.text_lines import read_lines
from dragoman.errors import InputError

_SAMPLE = 2000  # lines that the language of a text is judged by
_CHUNK_CHARACTERS = 2**23  # a chunk of long lines has fewer of them


@dataclass(frozen=True)
class TextChunk:
    """Some lines of a text. A line that cannot be read is empty."""

    number: int  # of the chunk, from 0
    lines: list[str]


@dataclass(frozen=True)
class SourceText:
    """A text file that has been read once."""

    path: Path
    lines: int
    size: int  # bytes of the file
    sample: tuple[str, ...] = ()  # its first lines


def survey(paths: Sequence[Path]) -> list[SourceText]:
    """Count the lines of each file; raises InputError for a file that holds no text."""
    return [_survey(path) for path in paths]


def chunks_of(texts: Sequence[SourceText], size: int) -> Iterator[TextChunk]:
    """All lines of all texts in chunks of `size`; always of the text of which the smallest share
    has been read, so that the part which fits into a limit of time is of all of them."""
    readers = [_chunks(text.path, size) for text in texts]
    read = [0] * len(texts)
    open_texts = set(range(len(texts)))
    number = 0
    while open_texts:
        behind = min(open_texts, key=lambda index: (read[index] / texts[index].lines, index))
        lines = next(readers[behind], None)
        if lines is None:
            open_texts.remove(behind)
            continue
        read[behind] += len(lines)
        yield TextChunk(number, lines)
        number += 1


def _survey(path: Path) -> SourceText:
    if not path.is_file():
        reason = "is not a regular file" if path.exists() else "does not exist"
        raise InputError(f"{path} {reason}; name a text file with a sentence per line")
    count = 0
    unreadable = 0
    sample: list[str] = []
    for line in read_lines(str(path), _listen):
        count += 1
        unreadable += line is None
        if line and not line.isspace() and len(sample) < _SAMPLE:
            sample.append(line)
    if 2 * unreadable > count:
        raise InputError(
            f"{path} is not UTF-8 in {unreadable:,} of {count:,} lines; convert it first, "
            "such as with iconv -f LATIN1 -t UTF-8"
        )
    if not sample:
        raise InputError(f"{path} has no text; name a file with a sentence per line")
    return SourceText(path, count, path.stat().st_size, tuple(sample))


def _chunks(path: Path, size: int) -> Iterator[list[str]]:
    lines: list[str] = []
    characters = 0
    for line in read_lines(str(path), _listen):
        lines.append(line or "")
        characters += len(lines[-1])
        if len(lines) == size or characters > _CHUNK_CHARACTERS:
            yield lines
            lines = []
            characters = 0
    if lines:
        yield lines


def _listen(kind: str, place: str, text: str) -> None:
    """Single lines that cannot be read are left out; a file that breaks off is an error."""
    if kind == "damaged":
        raise InputError(f"{place} {text}; copy it again")
