"""What a job on tables is cut into, and what of it is done.

A part is a stretch of one file, and follows from the files alone, not from who works on it. It
becomes one file of the output, which is written aside and renamed: a part is done if that file is
there. The manifest says which parts there are and what they are made with, so that a job that was
killed goes on, and another one is not mixed in. Knows files; nothing of models.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from dragoman.errors import InputError, OptionError
from dragoman.tables.line_rows import json_lines, plain_lines, separated
from dragoman.tables.parquet_rows import ParquetRows
from dragoman.tables.row_batch import Kind, Piece
from dragoman.tables.table_places import OutFolder, state_of

PART_ROWS = 10_000
# Readers of Parquet pass over what begins with an underscore, and so can be given the folder.
MANIFEST = "_manifest.json"
_MOST_PARTS = 1000  # of a file; a longer file has larger parts
_MOST_BYTES = 2**26  # of a manifest
_VERSION = 1
_KINDS: dict[str, Kind] = {
    ".parquet": ParquetRows(),
    ".jsonl": json_lines(".jsonl"),
    ".ndjson": json_lines(".ndjson"),
    ".csv": separated(".csv", ","),
    ".tsv": separated(".tsv", "\t"),
    ".txt": plain_lines(".jsonl"),
}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
# What is written in place of a compression that needs a package to write.
_WRITTEN = {".zst": ""}


@dataclass(frozen=True)
class Part:
    """A stretch of a file, and the name of what becomes of it."""

    file: str
    piece: Piece
    out: str


@dataclass(frozen=True)
class Plan:
    """All parts of a job, and everything that decides what they become."""

    facts: Mapping[str, Any]
    parts: Sequence[Part]

    @property
    def rows(self) -> int:
        """The rows of all parts."""
        return sum(part.piece.rows for part in self.parts)


def is_table(file: str) -> bool:
    """Whether a file is of a kind that can hold nothing but rows."""
    return _ending(file) in (".parquet", ".jsonl", ".ndjson")


def kind_of(file: str) -> Kind:
    """The kind of a table, by the ending of its name."""
    kind = _KINDS.get(_ending(file))
    if kind is None:
        raise InputError(
            f"{file} is not a table that can be read; give files that end in {', '.join(_KINDS)}"
        )
    return kind


def plan(files: Sequence[str], out: OutFolder, facts: Mapping[str, Any], rows: int) -> Plan:
    """Cut files into parts, or read how an earlier run of the same job has cut them.

    `facts` say what else decides the output, as JSON has it. Another job in the folder is an error,
    and so is a folder with files in it that no job has written.
    """
    states = [[file, *state_of(file)] for file in files]
    facts = {"version": _VERSION, "files": states, "rows": rows, **facts}
    names = out.names()
    if MANIFEST in names:
        return _continued(out, facts)
    if names:
        raise OptionError(f"--out is {out.place}, which is not empty; name a new folder")
    made = Plan(facts, _parts(files, rows))
    manifest = {"facts": facts, "parts": [asdict(part) for part in made.parts]}
    content = json.dumps(manifest).encode()
    if len(content) > _MOST_BYTES:
        raise OptionError(
            f"{len(files):,} files have {len(made.parts):,} parts, which are too many for one job; "
            "split the files between several jobs, each with an --out of its own"
        )
    out.write(MANIFEST, content)
    return _continued(out, facts)  # behind an address, another job may have written at once


def remaining(job: Plan, out: OutFolder) -> list[Part]:
    """The parts that the output lacks."""
    done = out.names()
    return [part for part in job.parts if part.out not in done]


def _continued(out: OutFolder, facts: Mapping[str, Any]) -> Plan:
    try:
        manifest = json.loads(out.read(MANIFEST, _MOST_BYTES))
        parts = [
            Part(part["file"], Piece(**part["piece"]), part["out"]) for part in manifest["parts"]
        ]
        before = manifest["facts"]
    except (ValueError, LookupError, TypeError):
        raise InputError(
            f"{out.place}/{MANIFEST} is damaged; name a new folder for the output"
        ) from None
    now = json.loads(json.dumps(facts))
    if before != now:
        raise OptionError(_difference(out, before, now))
    return Plan(facts, parts)


def _difference(out: OutFolder, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Why a job is not the one that the folder holds."""
    names = [name for name in now if before.get(name) != now[name]]
    changed = _changed(before.get("files", []), now["files"])
    if names == ["files"] and changed:
        return (
            f"{changed} has changed since the job in {out.place} began; name a new folder, or "
            "restore the file"
        )
    return (
        f"{out.place} holds the output of another job ({', '.join(names)} differ); "
        "name a new folder, or give the same command to continue that job"
    )


def _changed(before: Sequence[Sequence[Any]], now: Sequence[Sequence[Any]]) -> str:
    """A file that has another state, where all have the same names."""
    if [state[0] for state in before] != [state[0] for state in now]:
        return ""
    return next((new[0] for old, new in zip(before, now, strict=True) if old != new), "")


def _parts(files: Sequence[str], rows: int) -> list[Part]:
    stems = [_stem(file) for file in files]
    are_apart = max(Counter(stems).values(), default=1) == 1
    parts = []
    for number, (file, stem) in enumerate(zip(files, stems, strict=True)):
        kind = kind_of(file)
        name = stem if are_apart else f"{number:04d}-{stem}"
        ending = kind.ending + _compression_written(file)
        for index, piece in enumerate(_pieces(kind, file, rows)):
            parts.append(Part(file, piece, f"{name}.{index:05d}{ending}"))
    return parts


def _pieces(kind: Kind, file: str, rows: int) -> list[Piece]:
    """Cut a file once more if it is so long that it would have too many parts."""
    pieces = kind.pieces(file, rows)
    if len(pieces) <= _MOST_PARTS:
        return pieces
    total = sum(piece.rows for piece in pieces)
    return kind.pieces(file, -(-total // _MOST_PARTS))


def _compression_written(file: str) -> str:
    suffix = PurePath(file).suffix.lower()
    return _WRITTEN.get(suffix, suffix) if suffix in _COMPRESSED else ""


def _bare(file: str) -> PurePath:
    path = PurePath(file)
    return path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path


def _ending(file: str) -> str:
    return _bare(file).suffix.lower()


def _stem(file: str) -> str:
    return _bare(file).stem
