"""A job on tables from its plan to its last part, by processes of this machine or by Ray. Knows
parts and stages; what a stage does is its own business."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from dragoman.errors import InputError
from dragoman.tables.table_parts import MANIFEST, PART_ROWS, Part, kind_of, plan, remaining
from dragoman.tables.table_places import OutFolder, found
from dragoman.tables.table_stages import Stage, Work
from dragoman.tasks.ray_workers import Cluster, by_actors
from dragoman.tasks.workers import by_processes

_MOST_FAULTS = 100  # parts that cannot be written; then all others are like them


@dataclass(frozen=True)
class Engine:
    """Who works: processes of this machine, or a cluster of Ray."""

    devices: Sequence[str]  # the device of each worker
    cluster: Cluster | None = None  # default: processes of this machine


@dataclass(frozen=True)
class Finished:
    """How far a job is, or what it came to."""

    rows: int
    done: int  # rows that are written, those of earlier runs included
    failed: int = 0  # rows of this run that have an error
    parts: int = 0  # written by this run


@dataclass(frozen=True)
class TableJob:
    """Which files go through which stage, and where the result goes."""

    files: Sequence[str]
    stage: Stage
    out: str
    part_rows: int = PART_ROWS


@dataclass(frozen=True)
class PartDone:
    """What a worker reports."""

    rows: int
    failed: int
    fault: str = ""  # why the part could not be written


def run_job(job: TableJob, engine: Engine) -> Iterator[Finished]:
    """Do what the output lacks; yields how far the job is after each part, and at least once.

    Stopped at any moment, it continues when it is called again; the files of the output are the
    same, byte for byte, whatever happened and however many workers there are. A part that cannot be
    read does not keep the others from being done: its error is raised at the end.
    """
    files = found(job.files)
    out = OutFolder(job.out)
    with out.claimed():
        planned = plan(files, out, job.stage.facts(), job.part_rows)
        missing = remaining(planned, out)
        done = planned.rows - sum(part.piece.rows for part in missing)
        progress = Finished(planned.rows, done)
        yield progress
        faults: list[str] = []
        for result in _worked(job, engine, missing):
            if result.fault:
                faults.append(result.fault)
                if len(faults) == _MOST_FAULTS:
                    break
                continue
            progress = Finished(
                planned.rows,
                progress.done + result.rows,
                progress.failed + result.failed,
                progress.parts + 1,
            )
            yield progress
        if faults:
            others = f" (and {len(faults) - 1:,} other parts)" if len(faults) > 1 else ""
            raise InputError(faults[0] + others)
        out.remove_unfinished([MANIFEST, *(part.out for part in planned.parts)])


def _worked(job: TableJob, engine: Engine, parts: Sequence[Part]) -> Iterator[PartDone]:
    devices = list(engine.devices)[: len(parts)]
    if not devices:
        return iter(())
    make_work = partial(part_work, job.stage, job.out)
    if engine.cluster is not None:
        return by_actors(make_work, devices, iter(parts), engine.cluster, in_order=False)
    if len(devices) == 1:
        return map(make_work(devices[0]), parts)
    return by_processes(make_work, devices, iter(parts))


def part_work(stage: Stage, out: str, device: str) -> Callable[[Part], PartDone]:
    """What a worker does with a part: read, work, write aside, rename."""
    work = stage.load(device)
    folder = OutFolder(out)

    def do(part: Part) -> PartDone:
        try:
            failed = _write_part(part, stage, work, folder)
        except InputError as error:
            return PartDone(0, 0, str(error))
        return PartDone(part.piece.rows, failed)

    return do


def _write_part(part: Part, stage: Stage, work: Work, folder: OutFolder) -> int:
    """Write a part, and return how many of its rows have an error."""
    kind = kind_of(part.file)
    rows = 0
    failed = 0
    with folder.writing(part.out) as file, kind.writer(file, part.file, part.piece) as writer:
        for batch in kind.batches(part.file, part.piece, stage.paths):
            columns = work(batch.values)
            writer.write(batch, columns)
            rows += len(batch.values)
            errors = [column for column in columns if column.name.endswith("_error")]
            failed += sum(value is not None for one in errors for value in one.values)
        if rows != part.piece.rows:
            raise InputError(
                f"{part.file} has changed since the job began: {part.out} needs "
                f"{part.piece.rows:,} rows of it and found {rows:,}; restore the file, or name a "
                "new folder"
            )
    return failed
