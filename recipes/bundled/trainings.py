"""Trainings of the recipe: the folder of a run with its prepared text, and several runs side by
side on one GPU. Knows folders, options and time; does not choose the text."""

from __future__ import annotations

import json
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bundled.kept_results import keep_model
from bundled.packed_readings import Reading, read
from bundled.stage_processes import started, wait_for
from bundled.stage_text import Corpus, valid_text
from bundled.workshop import Direction, Workshop
from packed_text import LONGEST
from stage_times import pace

from dragoman.config import to_toml
from dragoman.data.token_files import TokenPairs, TokenWriter
from dragoman.folder import layout
from dragoman.folder.description import Description, save_description
from dragoman.tasks.shared_gpu import side_by_side
from dragoman.training import continued, run
from dragoman.training.presets import resolve

VALID = 300  # pairs
SHORTEST_LIMIT = 64  # tokens; so long a sentence can be translated at least
START_AND_END = 25.0  # seconds of a training in which it does not train
ENDS = ("steps", "minutes", "patience")  # of a training that is over; a signal is none

Task = Callable[[], None]


@dataclass(frozen=True)
class Model:
    """A model to be trained."""

    folder: Path
    options: str  # the name of its table in the plan
    corpora: Sequence[Corpus]
    direction: Direction
    start: Path | None = None  # the model whose weights it begins with


def train(
    shop: Workshop, models: Sequence[Model], seconds: float, meanwhile: Sequence[Task] = ()
) -> None:
    """Train models side by side, each in a process of its own that starts as soon as its text is
    ready, and do other tasks meanwhile."""
    end = time.monotonic() + seconds
    waiting = [one for one in models if not is_trained(one.folder)]
    tasks = threading.Thread(target=_do_all, args=(shop, meanwhile), daemon=True)
    processes = []
    with side_by_side([shop.device] * len(waiting)):
        for model in waiting:
            begin(shop, model)
            left = max(1.0, end - time.monotonic() - START_AND_END)
            processes.append(started(shop, "train", model.folder.name, left))
        tasks.start()
        wait_for(processes)
    tasks.join()
    for model in waiting:
        shop.log.note("trained", model=model.folder.name, **pace(model.folder))
        keep_model(shop, model.folder)


def train_here(folder: Path, seconds: float) -> None:
    """Train in this process."""
    changes = {"training": {"minutes": seconds / 60}}
    reason = run.resume(folder, changes, _say)
    if reason in ENDS:
        _mark(folder).write_text(f"{reason}\n", encoding="utf-8")


def is_trained(folder: Path) -> bool:
    """Whether a training has come to its end, or the model was put there trained."""
    was_put_there = not (folder / layout.GIVEN).exists()
    if was_put_there:
        return (folder / layout.WEIGHTS).exists()
    return _mark(folder).exists()


def begin(shop: Workshop, model: Model) -> None:
    """Make the folder of a run that can be resumed; the file that marks it as one comes last."""
    folder = model.folder
    if (folder / layout.GIVEN).exists():
        return
    given = dict(shop.plan[model.options])
    options, _ = resolve(given, pairs=1_000_000, on_gpu=True)
    data = folder / layout.DATA
    shutil.rmtree(data, ignore_errors=True)  # which an earlier call of ours left unfinished
    longest = _write_data(shop, model, data, options.data.augment)
    shape = replace(
        options.model,
        vocab_size=shop.tokenizer.target_size,
        source_vocab_size=0,
    )
    description = Description(shape, *model.direction.languages, longest)
    save_description(folder, description, shop.tokenizer)
    (folder / layout.OPTIONS).write_text(to_toml(options), encoding="utf-8")
    if model.start:
        given["continued"] = str(model.start)
        continued.keep_start(folder, model.start)
    part = (folder / layout.GIVEN).with_suffix(".part")
    part.write_text(json.dumps(given), encoding="utf-8")
    part.replace(folder / layout.GIVEN)


def _write_data(shop: Workshop, model: Model, data: Path, with_text: bool) -> int:
    """Write the prepared text of a run, as `dragoman train` does; return its longest sentence."""
    data.mkdir(parents=True)
    rows = []
    counts = {}
    with TokenWriter(data / layout.TRAIN, with_text) as out:
        for corpus in model.corpora:
            count = 0
            for pairs in _pairs(shop, corpus.readings, with_text):
                count += out.add(pairs, ~pairs.longer_than(LONGEST))
            rows.append({"files": [corpus.name], "weight": corpus.weight, "pairs": count})
            counts[corpus.name] = count
    shop.log.note("text", model=model.folder.name, pairs=out.pairs, of=counts)
    held_out = _write_valid(shop, model, data)
    longest = max(SHORTEST_LIMIT, out.longest, held_out.longest)
    manifest = {
        "version": 1,
        "dtype": "uint16",
        "longest": longest,
        "train": rows,
        "valid": held_out.pairs,
    }
    (data / layout.REPORT).write_text("", encoding="utf-8")
    (data / layout.MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return longest


def _write_valid(shop: Workshop, model: Model, data: Path) -> TokenWriter:
    """Write the first pairs of the validation text."""
    readings = [valid_text(shop, model.direction)]
    with TokenWriter(data / layout.VALID, keep_text=True) as out:
        for pairs in _pairs(shop, readings, with_text=True):
            chosen = ~pairs.longer_than(LONGEST)
            chosen[VALID:] = False
            out.add(pairs, chosen)
    return out


def _pairs(shop: Workshop, readings: Sequence[Reading], with_text: bool) -> Iterable[TokenPairs]:
    work = partial(read, with_text=with_text)
    return shop.pool.imap(work, readings)


def _do_all(shop: Workshop, tasks: Sequence[Task]) -> None:
    for task in tasks:
        try:
            task()
        except Exception:
            shop.log.note("meanwhile", failed=traceback.format_exc(limit=3))


def _mark(folder: Path) -> Path:
    """The file that is there when a training of ours has come to its end."""
    return folder.with_name(f"{folder.name}.trained")


def _say(sentence: str) -> None:
    with suppress(OSError):  # where it goes to may be gone
        print(sentence, flush=True)
