"""Which files a user means by names, folders and patterns, and where their translations go. Knows
paths; nothing of what is in a file."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import FORMATS, kind_of, written_name
from dragoman.documents.file_translation import Place, beside
from dragoman.errors import InputError, OptionError

_WILDCARDS = frozenset("*?[")
Found = tuple[Path, Path]  # a file, and its path in the folder that was named


@dataclass(frozen=True)
class Wanted:
    """What to translate, and where to."""

    names: Sequence[Path]  # files, folders and patterns
    out: Path | None = None  # a file, or a folder; by default beside each file
    overwrite: bool = False
    resume: bool = False  # skip what is translated already
    bilingual: Path | None = None  # a file for the pairs
    columns: tuple[str, ...] = ()

    def places(self, settings: DocumentSettings) -> list[Place]:
        """Return the files that are meant, each with the place of its translation."""
        found = list(self._found(settings))
        is_folder = len(found) > 1 or any(name.is_dir() for name in self.names)
        places = []
        for source, inner in found:
            if self.out is None:
                out = beside(source, settings)
            elif is_folder or self.out.is_dir():
                out = self.out / written_name(str(inner))
            else:
                out = self.out
                _check_ending(source, out)
            places.append(Place(source, out, self.overwrite))
        _check_distinct(places)
        return places

    def _found(self, settings: DocumentSettings) -> Iterator[Found]:
        for name in self.names:
            if name.is_dir():
                yield from self._found_in(name, settings)
            elif not name.exists() and is_pattern(name):
                yield from _matches(name)
            else:
                yield name, Path(name.name)

    def _found_in(self, folder: Path, settings: DocumentSettings) -> Iterator[Found]:
        """Yield the documents in a folder, at any depth: not those that are hidden, nor those that
        an earlier run has written."""
        mark = f".{settings.target_language or 'translated'}"
        count = 0
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            is_hidden = any(part.startswith(".") for part in inner.parts)
            is_result = path.stem.endswith(mark) or (self.out and self.out in path.parents)
            if kind_of(path.name) not in FORMATS or is_hidden or is_result or not path.is_file():
                continue
            count += 1
            yield path, inner
        if not count:
            raise InputError(
                f"{folder} holds no document that can be translated; "
                f"these end in {', '.join(FORMATS)}"
            )


def is_pattern(name: Path) -> bool:
    """Whether a name has wildcards, as one that no shell has replaced."""
    return bool(_WILDCARDS.intersection(str(name)))


def _matches(pattern: Path) -> Iterator[Found]:
    paths = [Path(match) for match in sorted(glob.glob(str(pattern), recursive=True))]
    files = [path for path in paths if path.is_file()]
    if not files:
        raise InputError(f"no file matches '{pattern}'; check the pattern")
    for path in files:
        yield path, Path(path.name)


def _check_ending(source: Path, out: Path) -> None:
    expected = kind_of(written_name(str(source)))
    if kind_of(str(source)) in FORMATS and kind_of(str(out)) != expected:
        raise OptionError(
            f"--out is {out}, but the translation of {source} is written as {expected}; "
            f"name a file that ends in {expected}, or an existing folder"
        )


def _check_distinct(places: Iterable[Place]) -> None:
    sources: dict[Path, Path] = {}
    for place in places:
        first = sources.setdefault(place.out, place.source)
        if first != place.source:
            raise OptionError(
                f"{first} and {place.source} would both become {place.out}; "
                "translate them one by one, each with its own --out"
            )
