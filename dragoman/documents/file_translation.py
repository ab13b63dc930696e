"""A document file in, its translation beside it: reads, asks a translator, writes. Knows files and
translators; what is in a document is known to its format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Unpack

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import (
    check_kind,
    check_size,
    texts_of,
    with_answers,
    written_name,
)
from dragoman.errors import InputError, OptionError
from dragoman.folder.files import aside, check_place
from dragoman.tasks.request import RequestFields, TranslateRequest, make_request
from dragoman.tasks.translation import Translation
from dragoman.text.markup_transfer import Answer

Report = Callable[[int, int], None]  # texts that are translated, and all of them


class Streaming(Protocol):
    """What translates texts one after another: a `Translator`."""

    def stream(self, lines: Iterable[str], request: TranslateRequest) -> Iterator[Translation]:
        """Yield the translations of texts in their order."""


@dataclass(frozen=True)
class TranslatedFile:
    """A file that has been translated, and each of its texts with its translation."""

    source: Path
    out: Path
    pairs: Sequence[tuple[str, Translation]] = field(repr=False)

    @property
    def flagged(self) -> list[tuple[str, Translation]]:
        """The texts whose translations someone should look at."""
        return [pair for pair in self.pairs if pair[1].flags]

    @property
    def flag_counts(self) -> dict[str, int]:
        """How many translations have each flag, the most frequent flag first."""
        counts = Counter(flag for _, translation in self.pairs for flag in translation.flags)
        return dict(counts.most_common())


@dataclass(frozen=True)
class Place:
    """A file, where its translation goes, and whether that may replace a file."""

    source: Path
    out: Path
    overwrite: bool = False

    def check(self) -> None:
        """Raise an error where the file cannot be a document or its translation cannot go there."""
        _check_source(self.source)
        if self.out.is_dir():
            raise OptionError(f"{self.out} is a folder; name a file for the translation")
        if self.out.exists() and self.out.samefile(self.source):
            raise OptionError(f"{self.out} is the file to translate itself; name another --out")
        if self.out.exists() and not self.overwrite:
            raise OptionError(
                f"{self.out} exists already; add --overwrite to replace it, or --resume to skip it"
            )
        check_place(self.out)


def beside(source: Path, settings: DocumentSettings) -> Path:
    """Return where a translation goes by default: report.docx becomes report.de.docx, and so does
    report.en.docx if it is translated from English."""
    language = settings.target_language or "translated"
    stem = source.stem
    if settings.source_language:
        stem = stem.removesuffix(f".{settings.source_language}") or stem
    named = source.with_name(f"{stem}.{language}{source.suffix}")
    return Path(written_name(str(named)))


def translate_place(
    place: Place,
    load: Callable[[], Streaming],
    request: TranslateRequest,
    settings: DocumentSettings,
    report: Report = lambda done, total: None,
) -> TranslatedFile:
    """Translate a file and write its translation, which appears only when it is whole.

    `load` returns the translator; it is called when the file has been read without a fault.
    """
    place.check()
    name = str(place.source)
    data = place.source.read_bytes()
    texts = texts_of(name, data, settings)
    asked = replace(request, align=True)
    translator = load()
    pairs: list[tuple[str, Translation]] = []
    for text, translation in zip(texts, translator.stream(texts, asked), strict=True):
        pairs.append((text, translation))
        report(len(pairs), len(texts))
    answers: dict[str, Answer] = {}
    for text, translation in pairs:
        answers[text] = (translation.text, translation.alignment)
    content = with_answers(name, data, answers, settings)
    with aside(place.out, replace=place.overwrite) as new:
        new.write_bytes(content)
    return TranslatedFile(place.source, place.out, pairs)


def translate_file(
    path: str | Path,
    to: str | None = None,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    model: str | Path | None = None,
    from_: str | None = None,
    columns: Sequence[str] = (),
    **fields: Unpack[RequestFields],
) -> TranslatedFile:
    """Translate a document and write the translation beside it, or to `out`.

    The model is the bundled one for the languages `from_` and `to`, or that of the folder `model`.
    The other keywords are the fields of a `TranslateRequest`, such as `glossary` or `careful`.
    An existing file is only replaced with `overwrite`. `columns` chooses those of a table in text.

    >>> done = translate_file("report.docx", to="de")
    >>> done.out, len(done.flagged)
    """
    from dragoman.folder.description import load_description
    from dragoman.folder.shipped import choose
    from dragoman.tasks.translate import Translator

    source = Path(path)
    _check_source(source)
    folder = choose(None if model is None else Path(model), from_, to)
    about, _ = load_description(folder)
    settings = DocumentSettings(about.source_language, about.target_language, tuple(columns))
    place = Place(source, Path(out) if out else beside(source, settings), overwrite)
    return translate_place(
        place, lambda: Translator.load(folder), make_request(None, fields), settings
    )


def _check_source(path: Path) -> None:
    """Raise an error for what is no file, or too large to be read at all."""
    if not path.exists():
        raise InputError(f"there is no file {path}; check its name")
    if not path.is_file():
        raise InputError(f"{path} is not a regular file; name a document")
    check_kind(str(path))
    check_size(str(path), path.stat().st_size)
