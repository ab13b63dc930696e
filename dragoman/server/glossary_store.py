"""The glossaries that clients have stored, in memory or in a file. Knows terms, languages and whose
they are; no HTTP.

Each client sees its own glossaries alone. Their number and their size are bounded.
"""

from __future__ import annotations

import csv
import io
import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dragoman.errors import InputError
from dragoman.folder.files import read_bounded, space_for, write_file
from dragoman.server.corrections import StoreError
from dragoman.text.glossary import Glossary, Term, check_term
from dragoman.text.languages import canonical

_OF_CLIENT = 100  # glossaries
_GLOSSARIES = 1_000
_TERMS = 10_000  # of a dictionary
_CHARACTERS = 20_000_000  # of all terms
_MAX_FILE = 2**28  # bytes; a character may take several
_NOT_FOUND = "Glossary not found"


class NoGlossaryError(InputError):
    """There is no such glossary, or it is another client's."""


@dataclass(frozen=True)
class StoredGlossary:
    """A glossary: for each pair of languages, such as `en-de`, its terms."""

    id: str
    client: str
    name: str
    created: str  # in UTC, as ISO 8601
    dictionaries: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def terms(self, source: str, target: str) -> Mapping[str, str]:
        """Return the terms of a pair of languages."""
        found = self.dictionaries.get(pair_name(source, target))
        if found is None:
            raise NoGlossaryError(
                f"the glossary has no dictionary from '{source}' to '{target}'; "
                f"it has {', '.join(self.dictionaries)}"
            )
        return found

    @property
    def characters(self) -> int:
        """The characters of all its terms."""
        total = 0
        for terms in self.dictionaries.values():
            total += sum(len(source) + len(target) for source, target in terms.items())
        return total


class GlossaryStore:
    """The glossaries of one service, in a file where one is named. With `shared`, other processes
    change the file as well: it is read again when it has changed, and changed under a lock."""

    def __init__(self, path: Path | None = None, shared: bool = False) -> None:
        self._path = path
        self._shared = shared
        self._lock = threading.Lock()
        self._glossaries: dict[str, StoredGlossary] = {}
        self._version: tuple[int, int] | None = None
        self._read_again()

    def create(
        self, client: str, name: str, dictionaries: Mapping[str, Mapping[str, str]]
    ) -> StoredGlossary:
        """Store a glossary of a client."""
        created = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        made = StoredGlossary(secrets.token_hex(16), client, name, created, dictionaries)
        with self._changing():
            if len(self._glossaries) >= _GLOSSARIES or len(self._own(client)) >= _OF_CLIENT:
                raise InputError(
                    f"a client may have {_OF_CLIENT} glossaries and a server {_GLOSSARIES:,}; "
                    "delete some"
                )
            self._put(made)
        return made

    def all_of(self, client: str) -> list[StoredGlossary]:
        """Return the glossaries of a client."""
        self._refresh()
        return self._own(client)

    def get(self, client: str, number: str) -> StoredGlossary:
        """Return a glossary of a client."""
        self._refresh()
        found = self._glossaries.get(number)
        if found is None or found.client != client:
            raise NoGlossaryError(_NOT_FOUND)
        return found

    def change(
        self, glossary: StoredGlossary, alter: Callable[[StoredGlossary], StoredGlossary]
    ) -> StoredGlossary:
        """Store what `alter` makes of a glossary as it is now: another request may have changed or
        deleted it since it was read."""
        with self._changing():
            current = self._glossaries.get(glossary.id)
            if current is None:
                raise NoGlossaryError(_NOT_FOUND)
            changed = alter(current)
            self._put(changed)
        return changed

    def delete(self, glossary: StoredGlossary) -> None:
        """Forget a glossary."""
        with self._changing():
            left = dict(self._glossaries)
            left.pop(glossary.id, None)
            self._keep(left)

    def _refresh(self) -> None:
        """Read what another process has written since."""
        if self._shared and self._path is not None and _version(self._path) != self._version:
            with self._lock:
                self._read_again()

    def _read_again(self) -> None:
        if self._path is None or not self._path.exists():
            return
        version = _version(self._path)
        self._glossaries = _read(self._path)
        self._version = version  # taken before: a file that changed meanwhile is read again

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """While one process changes the file, the others wait, and begin with what it wrote."""
        if not self._shared or self._path is None:
            with self._lock:
                yield
            return
        import fcntl  # where processes can share a port, there are such locks

        # A file beside it: the file itself is replaced, and a lock would stay with the old one.
        beside = self._path.with_name(f"{self._path.name}.lock")
        with self._lock, open(beside, "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._read_again()
            yield
            self._version = _version(self._path)

    def _own(self, client: str) -> list[StoredGlossary]:
        return [one for one in self._glossaries.values() if one.client == client]

    def _put(self, glossary: StoredGlossary) -> None:
        changed = self._glossaries | {glossary.id: glossary}
        if sum(one.characters for one in changed.values()) > _CHARACTERS:
            raise InputError("this server has no room for more terms; delete some glossaries")
        self._keep(changed)

    def _keep(self, glossaries: dict[str, StoredGlossary]) -> None:
        """Use what is stored once it is in the file; a full disk leaves both as they were."""
        if self._path is not None:
            rows = [asdict(one) for one in glossaries.values()]
            text = json.dumps({"glossaries": rows}, ensure_ascii=False)
            self._write(self._path, text.encode())
        self._glossaries = glossaries

    def _write(self, path: Path, content: bytes) -> None:
        try:
            with space_for(path, "free some space"):
                write_file(path, content)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be written ({error}); the glossary is not stored"
            ) from None


def _version(path: Path) -> tuple[int, int] | None:
    """Return what changes when the file is replaced."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def pair_name(source: str, target: str) -> str:
    """Return the name of a pair, without regional variants, as DeepL's glossaries have it."""
    languages = (canonical(code).split("-")[0] for code in (source, target))
    return "-".join(languages)


def read_entries(entries: str, entries_format: str) -> dict[str, str]:
    """Return the terms of lines that have a source term and a target term."""
    delimiter = "," if entries_format == "csv" else "\t"
    is_quoted = entries_format == "csv"
    terms: dict[str, str] = {}
    try:
        rows = csv.reader(
            io.StringIO(entries),
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
            strict=True,
        )
        for number, row in enumerate(rows, 1):
            if not any(cell.strip() for cell in row):
                continue
            source, target = _columns(row, number)
            terms[source] = target
    except csv.Error as error:
        raise InputError(f"the entries are not {entries_format} ({error})") from None
    if not terms or len(terms) > _TERMS:
        raise InputError(f"a dictionary has {len(terms):,} terms; give from 1 to {_TERMS:,}")
    return terms


def write_entries(terms: Mapping[str, str]) -> str:
    """Return terms as lines with a tab."""
    return "\n".join(f"{source}\t{target}" for source, target in terms.items())


def terms_of(glossaries: Sequence[StoredGlossary], source: str, target: str) -> Mapping[str, str]:
    """Return the terms of several glossaries for a pair of languages; the first that has a term
    decides. Some of them may be for other pairs, but not all."""
    pair = pair_name(source, target)
    known = [one for one in glossaries if pair in one.dictionaries]
    terms: dict[str, str] = {}
    for glossary in reversed(known or glossaries):
        terms |= glossary.terms(source, target)
    return terms


def as_glossary(terms: Mapping[str, str]) -> Glossary:
    """Return terms as a translation takes them."""
    return Glossary([Term(source, (target,)) for source, target in terms.items()])


def _columns(row: list[str], number: int) -> tuple[str, str]:
    """Return the two terms of a line; what a csv file may have after them are the languages."""
    if len(row) not in (2, 4):
        raise InputError(f"entry {number} has {len(row)} columns; give a source and a target term")
    source = row[0].strip()
    target = row[1].strip()
    check_term(source, [target])
    return source, target


def _read(path: Path) -> dict[str, StoredGlossary]:
    try:
        rows: Any = json.loads(read_bounded(path, _MAX_FILE))["glossaries"]
        return {row["id"]: StoredGlossary(**row) for row in rows}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{path} is not a file of glossaries that `dragoman serve` wrote; name another"
        ) from None
