"""What readers made better: translations that were edited and saved, in an SQLite file that a
kill at any moment leaves whole. Knows sentences and languages; no model and no HTTP."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from itertools import chain, islice
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from dragoman.errors import FullDiskError, InputError, MissingDependencyError, OptionError
from dragoman.folder.files import output

# the least likeness of a hint: the share of the letters of both that they have in common, in order
_NEAR = 0.7
_LONGEST = 1000  # characters of a source that others are compared with
# characters that it is compared with, sources of the most similar length first; some 30
# milliseconds
_MOST = 4_000_000
_COLUMNS = "source_language, target_language, source, target, model, time"
_TABLE = f"""
CREATE TABLE IF NOT EXISTS corrections (id INTEGER PRIMARY KEY, {_COLUMNS.replace(",", " TEXT NOT NULL,")} TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS sources ON corrections (source_language, target_language, source);
"""
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(frozen=True)
class Correction:
    """How a reader would have it; `model` is the one whose translation was corrected, `when` the
    time in UTC, by ISO 8601."""

    source_language: str
    target_language: str
    source: str
    target: str
    model: str
    when: str


class Corrections:
    """The corrections of one file, for any number of threads and processes. Of the same source
    the newest counts."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._seen = 0  # the last row that the next table knows
        # (languages) -> length -> sources: what may be near is found without reading the file
        self._sources: dict[tuple[str, str], dict[int, dict[str, None]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        with self._errors():
            self._database = sqlite3.connect(
                path, timeout=30, isolation_level=None, check_same_thread=False
            )
            # With FULL the log is on the disk before `save` returns, so that even a loss of power
            # takes nothing back.
            self._database.executescript(
                f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {_TABLE}"
            )

    def save(self, correction: Correction) -> None:
        """On the disk when this returns."""
        values = [_clean(value) for value in astuple(correction)]
        if not values[2] or not values[3]:
            raise InputError(
                "a correction has a source and a target, and one of them is empty; give the text of both"
            )
        self._rows(f"INSERT INTO corrections ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", values)

    def exact(self, source_language: str, target_language: str, source: str) -> Correction | None:
        """The newest correction of this very source."""
        same = "source_language = ? AND target_language = ? AND source = ?"
        values = map(_clean, (source_language, target_language, source))
        rows = self._rows(
            f"SELECT {_COLUMNS} FROM corrections WHERE {same} ORDER BY id DESC LIMIT 1", values
        )
        return Correction(*rows[0]) if rows else None

    def near(
        self, source_language: str, target_language: str, source: str, count: int = 3
    ) -> list[tuple[float, Correction]]:
        """Corrections of similar sources with their likeness, from 0.7 to 1, the most similar
        first; not that of the same."""
        try:
            from rapidfuzz import fuzz, process
        except ImportError:
            raise MissingDependencyError(
                'finding near matches needs a package; run: pip install "dragoman[serve]"'
            ) from None
        source = _clean(source)
        if not source or len(source) > _LONGEST:
            return []
        candidates = self._candidates((source_language, target_language), source)
        found = process.extract(
            source, candidates, scorer=fuzz.ratio, score_cutoff=100 * _NEAR, limit=count
        )
        known = [
            (likeness / 100, self.exact(source_language, target_language, text))
            for text, likeness, _ in found
        ]
        return [(likeness, one) for likeness, one in known if one is not None]

    def all(self) -> Iterator[Correction]:
        """The newest correction of each source, in the order in which they came."""
        newest = "SELECT max(id) FROM corrections GROUP BY source_language, target_language, source"
        return (
            Correction(*row)
            for row in self._rows(
                f"SELECT {_COLUMNS} FROM corrections WHERE id IN ({newest}) ORDER BY id"
            )
        )

    def close(self) -> None:
        """Nothing can be asked any more."""
        with self._lock:
            self._database.close()

    def _rows(self, statement: str, values: Iterable[object] = ()) -> list[tuple[str, ...]]:
        with self._lock, self._errors():
            return self._database.execute(statement, tuple(values)).fetchall()

    def _candidates(self, languages: tuple[str, str], source: str) -> list[str]:
        """Other sources whose length lets them be near, the nearest first; no more than can be
        compared."""
        columns = "id, source_language, target_language, source"
        rows = self._rows(
            f"SELECT {columns} FROM corrections WHERE id > ? ORDER BY id", [self._seen]
        )
        with self._lock:
            for number, a, b, text in rows:
                self._sources[a, b][len(text)][text] = None
                self._seen = max(self._seen, int(number))
            by_length, reach = self._sources.get(languages, {}), _NEAR / (2 - _NEAR)
            lengths = [
                length
                for length in by_length
                if len(source) * reach <= length <= len(source) / reach
            ]
            lengths.sort(key=lambda length: abs(length - len(source)))
            texts = chain.from_iterable(by_length[length] for length in lengths)
            return [text for text in islice(texts, _MOST // len(source)) if text != source]

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise FullDiskError(
                    f"no space is left to write {self._path}; the corrections before are kept: "
                    "free some space, then try again"
                ) from None
            raise InputError(
                f"{self._path} cannot be used for corrections ({error}); name another file"
            ) from None


def export(path_of_database: Path, out: Path) -> int:
    """Writes what `train` reads, .tmx or .tsv by its ending, and says how many there were."""
    kind = out.suffix.lower()
    if kind not in (".tmx", ".tsv"):
        raise OptionError(f"the file is {out}; its name must end in .tmx or .tsv")
    if not path_of_database.is_file():
        raise InputError(
            f"{path_of_database} does not exist; name the file that `dragoman serve` keeps corrections in"
        )
    store = Corrections(path_of_database)
    found = list(store.all())
    store.close()
    pairs = sorted({(one.source_language, one.target_language) for one in found})
    if kind == ".tsv" and len(pairs) > 1:
        names = " and ".join("-".join(pair) for pair in pairs)
        raise OptionError(
            f"{path_of_database} has {names}, which a .tsv cannot tell apart; write a .tmx"
        )
    lines = (
        _tmx(found, pairs)
        if kind == ".tmx"
        else (f"{_flat(one.source)}\t{_flat(one.target)}\n" for one in found)
    )
    with output(out) as new, open(new, "w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
    return len(found)


def _tmx(found: list[Correction], pairs: list[tuple[str, str]]) -> Iterator[str]:
    sources = {source for source, _ in pairs}
    language = quoteattr(sources.pop() if len(sources) == 1 else "*all*")
    tool = 'creationtool="dragoman" creationtoolversion="1" o-tmf="dragoman" segtype="sentence" adminlang="en" datatype="text"'
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n<header {tool} srclang={language}/>\n<body>\n'
    for one in found:
        yield "<tu>"
        for name, text in ((one.source_language, one.source), (one.target_language, one.target)):
            yield f"<tuv xml:lang={quoteattr(name)}><seg>{escape(_NO_XML.sub(' ', _flat(text)))}</seg></tuv>"
        yield "</tu>\n"
    yield "</body>\n</tmx>\n"


def _flat(text: str) -> str:
    """On one line and in one column."""
    return re.sub(r"[\t\r\n]+", " ", text)


def _clean(text: str) -> str:
    """Without the white space around it and the halves of characters that no file can hold."""
    return text.strip().encode("utf-8", "replace").decode()
