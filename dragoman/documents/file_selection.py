"""Which files a user means by names, folders and patterns, and where their translations go. Knows
paths; nothing of what is in a file."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import FORMATS, kind_of, written_name
from dragoman.documents.file_translation import Place, beside
from dragoman.errors import InputError, OptionError

_WILDCARDS = frozenset("*?[")
# Most files of these kinds hold settings or data rather than texts. In a folder they are taken if
# their names, or those of the folders around them, say that they are texts of an interface.
_RARELY_TEXT = frozenset((".json", ".yaml", ".yml", ".xml", ".properties"))
_TEXTS = frozenset(
    (
        *("i18n", "l10n", "intl", "lang", "langs", "language", "languages", "locale", "locales"),
        *("localization", "localisation", "message", "messages", "string", "strings"),
        *("translation", "translations", "values"),
    )
)
_WORDS = re.compile(r"[^\W_]+")
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

    def passed_over(self, settings: DocumentSettings) -> list[Path]:
        """Return the files in the folders that have the ending of a document, but do not look like
        texts."""
        paths: list[Path] = []
        for folder in self.names:
            if folder.is_dir():
                own = self._documents_in(folder, settings)
                paths += [path for path, inner in own if not _holds_texts(inner, settings)]
        return paths

    def _found(self, settings: DocumentSettings) -> Iterator[Found]:
        for name in self.names:
            if name.is_dir():
                yield from self._found_in(name, settings)
            elif not name.exists() and is_pattern(name):
                yield from _matches(name)
            else:
                yield name, Path(name.name)

    def _found_in(self, folder: Path, settings: DocumentSettings) -> list[Found]:
        """Return the documents in a folder that look like texts."""
        documents = list(self._documents_in(folder, settings))
        found = [one for one in documents if _holds_texts(one[1], settings)]
        if found:
            return found
        if documents:
            raise InputError(
                f"{folder} contains only {_listed(documents)}, which may be settings or data; "
                "name the files to translate"
            )
        raise InputError(
            f"{folder} contains no document that can be translated; "
            f"these end in {', '.join(FORMATS)}"
        )

    def _documents_in(self, folder: Path, settings: DocumentSettings) -> Iterator[Found]:
        """Yield what can be translated in a folder, at any depth: not what is hidden, nor what an
        earlier run has written."""
        mark = f".{settings.target_language or 'translated'}"
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            is_hidden = any(part.startswith(".") for part in inner.parts)
            is_result = path.stem.endswith(mark) or (self.out and self.out in path.parents)
            if kind_of(path.name) not in FORMATS or is_hidden or is_result or not path.is_file():
                continue
            yield path, inner


def _holds_texts(inner: Path, settings: DocumentSettings) -> bool:
    """Whether a file in a folder looks like texts, by its path there: `locales/app.json`,
    `messages_en.properties` and `en.yaml` do, `package.json` does not."""
    if kind_of(inner.name) not in _RARELY_TEXT:
        return True
    words = set(_WORDS.findall(str(inner.with_suffix("")).lower()))
    language = settings.source_language.lower()
    return bool(words & _TEXTS) or (bool(language) and language in words)


def _listed(found: Sequence[Found]) -> str:
    names = [str(inner) for _, inner in found[:3]]
    more = f" and {len(found) - 3:,} others" if len(found) > 3 else ""
    return ", ".join(names) + more


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
