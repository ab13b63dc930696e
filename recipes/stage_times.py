"""How long each stage of a recipe may take, what it is noted to have taken, and how its result is
kept. Knows clocks and folders; knows no models and no text.
"""

from __future__ import annotations

import json
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save

from dragoman.folder import layout

LOG = "stages.jsonl"
_OF_A_MODEL = (
    layout.CONFIG,
    layout.TOKENIZER,
    layout.OPTIONS,
    layout.REPORT,
    layout.METRICS,
)


@dataclass(frozen=True)
class Clock:
    """The end of the time, and the minutes that the plan has for each stage, in their order."""

    minutes: Mapping[str, float]
    end: float  # as time.monotonic() has it

    @classmethod
    def of(cls, minutes: Mapping[str, float], given: float) -> Clock:
        """A clock that starts now and has the given minutes, or those of the plan if that is 0."""
        whole = given or sum(minutes.values())
        return cls(minutes, time.monotonic() + 60 * whole)

    def seconds(self, stage: str, done: Sequence[str]) -> float:
        """The seconds for a stage that begins now: its share of the time that is left, among the
        stages that are not done. What one stage took too much is so taken from all that follow."""
        names = list(self.minutes)
        following = names[names.index(stage) :]
        waiting = sum(self.minutes[name] for name in following if name not in done)
        left = max(0.0, self.end - time.monotonic())
        return left * self.minutes[stage] / waiting if waiting else left


class Log:
    """Lines of JSON, one for each thing that was done."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG
        self._began = time.monotonic()

    def note(self, stage: str, **facts: Any) -> None:
        at = round(time.monotonic() - self._began, 1)
        line = json.dumps({"stage": stage, "at": at, **facts})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)


def pace(folder: Path) -> dict[str, Any]:
    """Steps and the mean speed of a training, as far as its metrics tell."""
    path = folder / layout.METRICS
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    speeds = [row["tokens_per_second"] for row in rows if "tokens_per_second" in row]
    valid = [row for row in rows if "valid_loss" in row]
    facts: dict[str, Any] = {"steps": rows[-1]["step"] if rows else 0}
    if speeds:
        facts["tokens_per_second"] = round(sum(speeds) / len(speeds))
    if valid:
        facts |= {name: valid[-1][name] for name in ("valid_loss", "bleu") if name in valid[-1]}
    return facts


def keep_weights(folder: Path, out: Path, megabytes: float) -> None:
    """Write a model, its weights in bfloat16, as NAME.tar.00, NAME.tar.01 and so on, none larger
    than so many megabytes. `cat NAME.tar.* | tar -x` makes a folder of it again."""
    weights = load_file(folder / layout.WEIGHTS)
    content = save({name: one.to(torch.bfloat16) for name, one in weights.items()})
    archive = tar_of(
        [folder / name for name in _OF_A_MODEL], folder.name, {layout.WEIGHTS: content}
    )
    write_pieces(archive, out, f"{folder.name}.tar", megabytes)


def keep_int8(folder: Path, out: Path, megabytes: float) -> None:
    """The same with weights in 8-bit integers alone, as NAME.int8.tar.00 and so on."""
    archive = tar_of([folder / name for name in (*_OF_A_MODEL, layout.INT8)], folder.name)
    write_pieces(archive, out, f"{folder.name}.int8.tar", megabytes)


def tar_of(files: Sequence[Path], name: str = "", more: Mapping[str, bytes] | None = None) -> bytes:
    """The files that there are, and more, as an archive in which they lie in a folder `name`."""
    archive = BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for file in files:
            if file.exists():
                tar.add(file, str(Path(name, file.name)))
        for file_name, content in (more or {}).items():
            entry = tarfile.TarInfo(str(Path(name, file_name)))
            entry.size = len(content)
            tar.addfile(entry, BytesIO(content))
    return archive.getvalue()


def write_pieces(content: bytes, out: Path, name: str, megabytes: float) -> None:
    """Write bytes as numbered files; the first one last, so that all are there if it is."""
    out.mkdir(parents=True, exist_ok=True)
    size = int(megabytes * 1e6)
    count = -(-len(content) // size)
    for old in out.glob(f"{name}.*"):
        old.unlink()
    for number in reversed(range(count)):
        piece = content[number * size : (number + 1) * size]
        unfinished = out / f".{name}.part"
        unfinished.write_bytes(piece)
        unfinished.replace(out / f"{name}.{number:02}")
