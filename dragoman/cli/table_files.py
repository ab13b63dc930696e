"""Tables on the command line: what `dragoman translate` does with Parquet, JSON lines and, with
--column, CSV and text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.cli.terminal import ProgressLine, say
from dragoman.errors import OptionError

if TYPE_CHECKING:
    from dragoman.cli.translating import TableFlags
    from dragoman.improving.text_through_model import Progress
    from dragoman.tables.table_job import Engine, Finished
    from dragoman.tasks.bulk import Job

_ROOTED = ("file", "local")  # schemes whose paths begin at a root, not at a host or a bucket


def translate_tables(
    job: Job, flags: TableFlags, names: Sequence[Path], out: Path | None, device: str
) -> None:
    """Translate a column of tables, or continue doing so."""
    from dragoman.tables.field_path import FieldPath
    from dragoman.tables.table_job import TableJob, run_job
    from dragoman.tables.table_stages import TranslateStage

    if out is None or not names:
        raise OptionError("tables need files to read, and --out with a folder to write to")
    added = tuple(part.strip() for part in flags.add.split(",") if part.strip())
    path = FieldPath.parse(flags.column)
    stage = TranslateStage(path, job, flags.into, added, flags.markup)
    tables = TableJob([_place(name) for name in names], stage, _place(out))
    line = ProgressLine("translating rows", hidden=False)
    start = time.monotonic()
    first: Finished | None = None
    last: Finished | None = None
    try:
        for last in run_job(tables, _engine(flags, device)):
            first = first or last
            line.report(_progress(first, last, time.monotonic() - start))
    except KeyboardInterrupt:
        line.stop()
        done = last.done if last else 0
        say(f"stopped: {done:,} rows are done and in {tables.out}; continue with the same command")
        raise typer.Exit(130) from None
    finally:
        line.stop()
    if last is not None:
        say(_summary(last, tables.out))
        raise typer.Exit(1 if last.failed else 0)


def _engine(flags: TableFlags, device: str) -> Engine:
    """Who works."""
    from dragoman.tables.table_job import Engine
    from dragoman.tasks.device_shares import shares
    from dragoman.tasks.ray_workers import actor_devices, cluster_of

    if flags.workers < 0:
        raise OptionError(f"--workers is {flags.workers}; it must be 0 (automatic) or more")
    cluster = cluster_of(flags.engine, flags.address, device)
    share_out = actor_devices if cluster is not None else shares
    return Engine(share_out(device, flags.workers), cluster)


def _progress(first: Finished, last: Finished, seconds: float) -> Progress:
    from dragoman.improving.text_through_model import Progress

    new = last.done - first.done
    left = (last.rows - last.done) * seconds / new if new else 0.0
    return Progress(last.done, last.rows, last.done, seconds, left)


def _place(path: Path) -> str:
    """A path as it was given: one with a scheme has lost a slash on its way through Path."""
    scheme, colon, rest = str(path).partition(":/")
    if not colon or len(scheme) == 1:  # C:/ is a drive
        return str(path)
    return f"{scheme}:///{rest}" if scheme in _ROOTED else f"{scheme}://{rest}"


def _summary(last: Finished, out: str) -> str:
    said = f"{last.rows:,} rows are in {out}; files written by this run: {last.parts:,}"
    if not last.failed:
        return said
    return f"{said}; rows with an error, which the last new column explains: {last.failed:,}"
