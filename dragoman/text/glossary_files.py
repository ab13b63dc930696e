"""Glossary files to terms: TSV, CSV and TBX, bounded. Knows the formats; what a term is good for
is known to glossary.py.

The languages of a TSV or CSV file are those in its name, if it ends in a pair such as
`terms.en-de.tsv`; else its terms are for every model.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from dragoman.errors import InputError
from dragoman.text.glossary import MAX_TERMS, Term, check_term
from dragoman.text.normalise import normalise

MAX_BYTES = 64 * 2**20
MAX_LINES = MAX_TERMS
_MAX_FIELDS = 100  # of a line, and terms of a concept
_IN_NAME = re.compile(r"[._-]([a-z]{2,3})[-_]([a-z]{2,3})\.[^.]*$")
_HEADERS = frozenset({"source", "target", "source term", "target term", "term", "translation"})
_CONCEPTS = frozenset({"termEntry", "conceptEntry"})
_LANGUAGES = frozenset({"langSet", "langSec"})


def read_terms(path: Path) -> Iterator[Term]:
    """Yield the terms of a file; its ending tells the format."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"the glossary {path} cannot be read: {error.strerror}; name a text file"
        ) from None
    if len(data) > MAX_BYTES:
        raise InputError(
            f"{path} has over {MAX_BYTES:,} bytes, more than a glossary may; "
            "keep the terms that matter"
        )
    if path.suffix.lower() == ".tbx":
        return _tbx_terms(path, data)
    return _row_terms(path, data)


def _row_terms(path: Path, data: bytes) -> Iterator[Term]:
    match = _IN_NAME.search(path.name.lower())
    languages = (match[1], match[2]) if match else None
    is_csv = path.suffix.lower() == ".csv"
    rows = _csv_rows(path, data) if is_csv else _tsv_rows(path, data)
    for number, row in rows:
        where = f"{path}, line {number:,}"
        if number > MAX_LINES:
            raise InputError(
                f"{path} has over {MAX_LINES:,} lines, more than a glossary may; "
                "keep the terms that matter"
            )
        if len(row) < 2 or len(row) > _MAX_FIELDS:
            separator = "comma" if is_csv else "tab"
            raise InputError(
                f"{where}: no {separator}; write the source term, a {separator} and the target term"
            )
        source, target, *others = row
        more = [form for form in others if form.strip()]
        term = Term(source, (target, *more), languages)
        yield _checked(term, where)


def _tsv_rows(path: Path, data: bytes) -> Iterator[tuple[int, list[str]]]:
    for number, line in _lines(path, data):
        if line.strip() and not line.startswith("#"):
            yield number, line.split("\t")


def _csv_rows(path: Path, data: bytes) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file, parted by semicolons if the first line has more of them."""
    lines = [line for _, line in _lines(path, data)]
    first = lines[0] if lines else ""
    delimiter = ";" if first.count(";") > first.count(",") else ","
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for row in reader:
            is_empty = not any(cell.strip() for cell in row)
            if is_empty or row[0].startswith("#"):
                continue
            titles = [cell.strip().casefold() for cell in row[:2]]
            is_header = reader.line_num == 1 and _HEADERS.issuperset(titles)
            if not is_header:
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num:,}: {error}; correct the line") from None


def _lines(path: Path, data: bytes) -> Iterator[tuple[int, str]]:
    text = data.removeprefix(b"\xef\xbb\xbf")
    for number, raw in enumerate(text.splitlines(keepends=True), 1):
        try:
            yield number, raw.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(
                f"{path}, line {number:,}: not UTF-8; save the glossary as UTF-8"
            ) from None


def _tbx_terms(path: Path, data: bytes) -> Iterator[Term]:
    """Terms for each ordered pair of languages of each concept."""
    reader = _TbxReader(path)
    count = 0
    for line, concept in reader.concepts(data):
        for source, target in itertools.permutations(concept, 2):
            for term in concept[source]:
                count += 1
                if count > MAX_TERMS:
                    raise InputError(
                        f"{path} has over {MAX_TERMS:,} terms, more than a glossary may; "
                        "keep the languages that matter"
                    )
                forms = tuple(concept[target])
                found = Term(term, forms, (source, target))
                yield _checked(found, f"{path}, line {line:,}")


class _TbxReader:
    """TermBase eXchange, version 2 (termEntry, langSet) and 3 (conceptEntry, langSec), by the bare
    expat parser. An entity that the file declares is refused, so nothing unfolds or is fetched."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._refuse
        self._concept: dict[str, list[str]] = {}
        self._language = ""
        self._word: list[str] | None = None  # not None inside <term>
        self._line = 0
        self._found: list[tuple[int, dict[str, list[str]]]] = []

    def concepts(self, data: bytes) -> list[tuple[int, dict[str, list[str]]]]:
        """Return for each concept its line and its terms by language."""
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise InputError(
                f"{self._path}, line {error.lineno:,}: not TBX ({reason}); export it again"
            ) from None
        if not self._found:
            raise InputError(
                f"{self._path} has no concept with terms in two languages; name a TBX file "
                "with termEntry or conceptEntry elements"
            )
        return self._found

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rsplit(":", 1)[-1]
        if name in _CONCEPTS:
            self._concept = {}
            self._line = self._parser.CurrentLineNumber
        elif name in _LANGUAGES:
            self._language = attributes.get("xml:lang", "").lower()
        elif name == "term":
            self._word = []

    def _end(self, tag: str) -> None:
        name = tag.rsplit(":", 1)[-1]
        if name == "term" and self._word is not None:
            text = normalise("".join(self._word))
            terms = self._concept.setdefault(self._language, [])
            if text and self._language and len(terms) < _MAX_FIELDS:
                terms.append(text)
            self._word = None
        elif name in _CONCEPTS:
            languages = [language for language, terms in self._concept.items() if terms]
            if len(languages) > 1:
                self._found.append((self._line, self._concept))

    def _characters(self, text: str) -> None:
        if self._word is not None:
            self._word.append(text)

    def _refuse(self, *_: object) -> None:
        raise InputError(
            f"{self._path}, line {self._parser.CurrentLineNumber:,}: declares an entity, which a "
            "glossary must not; remove the declaration"
        )


def _checked(term: Term, where: str) -> Term:
    source = normalise(term.source)
    forms = [normalise(form) for form in term.forms]
    try:
        check_term(source, forms)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return term
