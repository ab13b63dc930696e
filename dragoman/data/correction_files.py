"""Files of corrections: translation memories (.tmx), reviewed files of translators (.xliff, .xlf)
and tables (.tsv, .jsonl) to pairs with their languages. Knows formats; judges nothing but that
both sides have text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.check_report import Report
from dragoman.data.corpus import Corpus, corpora, languages, read_pairs
from dragoman.data.text_lines import MAX_LINE, location, read_chunks
from dragoman.data.xliff_units import xliff_units
from dragoman.data.xml_units import MalformedError
from dragoman.errors import InputError, OptionError
from dragoman.text.languages import canonical

MOST = 1_000_000  # corrections of a file
_XLIFF = (".xliff", ".xlf", ".sdlxliff", ".mqxliff")
_NO_LANGUAGES = (
    "does not say which languages it is in; add --from and --to, such as --from en --to de"
)
KINDS = (".tmx", ".tsv", ".jsonl", *_XLIFF)


@dataclass(frozen=True)
class Corrected:
    """A sentence and its translation by a person."""

    source_language: str
    target_language: str
    source: str
    target: str


def read_corrected(
    file: Path, wanted: tuple[str, str] = ("", ""), unreviewed: bool = False
) -> list[Corrected]:
    """Return the corrections of a file.

    `wanted` are the languages: only what is in them is returned, and they are those of a table that
    does not name its own. Without them, languages are returned without their countries. Of an XLIFF
    file, only what is marked as reviewed is returned, unless `unreviewed`.
    """
    if not file.is_file():
        raise InputError(f"{file} does not exist or is not a file; name a file of corrections")
    if _kind(file) in _XLIFF:
        found = list(_bounded(file, _read_xliff(file, wanted, unreviewed)))
    elif _kind(file) in KINDS:
        found = list(_bounded(file, _read_corpus(file, wanted)))
    else:
        kinds = ", ".join(KINDS[:-1])
        raise InputError(f"{file} is not a file of corrections; these are read: {kinds}")
    if not found:
        asked = f" from {wanted[0]} to {wanted[1]}" if all(wanted) else ""
        raise InputError(f"{file} holds no translations{asked}; name another file")
    return found


def is_table_of_corrections(file: Path) -> bool:
    """Whether a file is one that `read_corrected` reads, by its name."""
    return _kind(file) in KINDS


def _kind(file: Path) -> str:
    return Corpus((str(file),)).kind


def _bounded(file: Path, found: Iterator[Corrected]) -> Iterator[Corrected]:
    for number, one in enumerate(found, 1):
        if number > MOST:
            raise InputError(f"{file} holds more than {MOST:,} translations; divide it")
        if one.source and one.target:
            yield one


def _read_corpus(file: Path, wanted: tuple[str, str]) -> Iterator[Corrected]:
    corpus = corpora([str(file)])
    source, target = wanted if all(wanted) else languages(corpus, *wanted)
    if not source or not target:
        raise OptionError(f"{file} {_NO_LANGUAGES}")
    names = (source, target) if all(wanted) else (_plain(source), _plain(target))
    for left, right in read_pairs(corpus[0], source, target, Report().add):
        if left is not None and right is not None:
            yield Corrected(*names, left.strip(), right.strip())


def _read_xliff(file: Path, wanted: tuple[str, str], unreviewed: bool) -> Iterator[Corrected]:
    others = 0
    taken = 0
    try:
        for unit in xliff_units(read_chunks(str(file), _raise), MAX_LINE):
            named = (unit.source_language or wanted[0], unit.target_language or wanted[1])
            if not all(named):
                raise OptionError(f"{file} {_NO_LANGUAGES}")
            if not _fits(named, wanted):
                continue
            if not unit.reviewed and not unreviewed:
                others += 1
            elif unit.source is not None and unit.target is not None:
                taken += 1
                names = wanted if all(wanted) else (_plain(named[0]), _plain(named[1]))
                sides = [" ".join(text.split()) for text in (unit.source, unit.target)]
                yield Corrected(*names, *sides)
    except MalformedError as error:
        place = location(str(file), error.line)
        raise InputError(f"{place}: {error}; export it again") from None
    if others and not taken:
        raise InputError(
            f"{file} has {others:,} translations, none of which is marked as reviewed; add "
            "--unreviewed to take them all the same"
        )


def _fits(found: tuple[str, str], wanted: tuple[str, str]) -> bool:
    """Whether these are the languages; en-gb is found where en is wanted."""
    pairs = zip(found, wanted, strict=True)
    return all(not asked or _plain(one) == _plain(asked) for one, asked in pairs)


def _plain(language: str) -> str:
    return canonical(language).split("-")[0].lower()


def _raise(kind: str, place: str, text: str) -> None:
    raise InputError(f"{place} cannot be read ({text or kind}); export it again")
