"""A training of an improvement: the options of its run, begun or continued, and ended in time.
Knows the trainer by `run.start` and `run.resume`; has no loop of its own."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.config import merge
from dragoman.errors import DragomanError
from dragoman.folder import layout
from dragoman.folder.training_state import latest_state
from dragoman.improving.improve_budget import VALIDATIONS
from dragoman.improving.improve_workshop import Workshop
from dragoman.training import run
from dragoman.training.progress import read_progress

VALID_SENTENCES = 300  # translated at each validation
TRAINED = "model"
_AGAIN = 0.5  # seconds
# All text has been checked once, when it was gathered; text of both directions would look swapped.
AS_IT_IS = {
    "held_out": 0,
    "max_ratio": 0.0,
    "drop_copies": False,
    "drop_wrong_script": False,
    "drop_garbled": False,
    "drop_markup": False,
    "drop_swapped": False,
    "drop_shifted": False,
}


class StoppedError(DragomanError):
    """A signal has ended a training, which is saved; `name` is the signal's."""

    def __init__(self, name: str) -> None:
        super().__init__(f"stopped by {name}; run the same command again to continue")
        self.name = name


@dataclass(frozen=True)
class Lesson:
    """What a training learns, and from which model it starts."""

    text: Sequence[tuple[Path, float]]  # files of pairs and their weights
    steps: int
    start: Path | None = None
    turned: bool = False  # the opposite direction
    learning_rate: float = 1e-3
    seed: int = 1
    validations: int = VALIDATIONS
    tables: Mapping[str, Any] = field(default_factory=dict)  # unless the user chose otherwise
    forced: Mapping[str, Any] = field(default_factory=dict)  # whatever the user chose


def train(shop: Workshop, name: str, lesson: Lesson, seconds: float = 0.0) -> Path:
    """Train, or continue training, in the folder of a step; returns the model folder.

    After so many `seconds` a training that is slower than it was measured to be ends with what it
    has. Without such a limit nothing in it depends on the clock.
    """
    folder = shop.place(name) / TRAINED
    with _alarm(seconds) as rung:
        reason = _begin(shop, name, lesson)
    if reason.startswith("SIG"):
        if not rung:
            raise StoppedError(reason)
        _end_here(shop, name, folder)
    return folder


def options_of(shop: Workshop, lesson: Lesson) -> dict[str, Any]:
    """The tables of a run: what suits a lesson, then what the user chose, then what follows from
    the plan."""
    steps = lesson.steps
    suited = {
        "schedule": "cosine",
        "learning_rate": lesson.learning_rate,
        "warmup": max(1, min(4000, steps // 10)),
        "clip": 1.0,
        "average": 3,
        "select": "bleu",
        "valid_sentences": VALID_SENTENCES,
    }
    chosen = {"training": suited}
    source, target = shop.languages[::-1] if lesson.turned else shop.languages
    valid = shop.turned_valid_file if lesson.turned else shop.valid_file
    fixed = {
        "data": {
            **AS_IT_IS,
            "train": [str(path) for path, _ in lesson.text],
            "weights": [weight for _, weight in lesson.text],
            "valid": [str(valid)],
            "source_language": source,
            "target_language": target,
        },
        "training": {
            "steps": steps,
            "minutes": 0.0,
            "patience": 0,
            "save_every": max(1, -(-steps // lesson.validations)),
            "device": shop.inputs.device,
            "seed": lesson.seed,
        },
    }
    return merge(chosen, lesson.tables, shop.inputs.tables, lesson.forced, fixed)


def _begin(shop: Workshop, name: str, lesson: Lesson) -> str:
    """Why the run ended."""
    folder = shop.place(name) / TRAINED
    settings = shop.journal.settings(name, {})
    if (folder / layout.GIVEN).exists():
        changes = {"training": {"steps": settings["steps"]}} if settings.get("cut") else {}
        return run.resume(folder, changes, unheard)
    return run.start(folder, options_of(shop, lesson), unheard, lesson.start)


def unheard(sentence: str) -> None:
    """What a run says of its text, and what to do with its model, is for those who train alone; how
    far it is, it shows all the same."""


def _end_here(shop: Workshop, name: str, folder: Path) -> None:
    """Let a run whose time is over end with the steps that it has taken."""
    state = latest_state(folder)
    done = max(1, read_progress(state).step) if state else 1
    settings = shop.journal.settings(name, {})
    shop.journal.change(name, {**settings, "steps": done, "cut": True})
    reason = run.resume(folder, {"training": {"steps": done}}, unheard)
    if reason.startswith("SIG"):
        raise StoppedError(reason)


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[list[bool]]:
    """After so many seconds the run in this thread is told to stop, as by a signal; the list that
    is yielded is then no longer empty. 0 sets no limit.

    It is told again and again: while the text is prepared, nobody listens yet.
    """
    rung: list[bool] = []
    over = threading.Event()

    def watch() -> None:
        if over.wait(seconds):
            return
        rung.append(True)
        while not over.is_set():
            _thread.interrupt_main(signal.SIGTERM)  # which does nothing where nobody listens
            over.wait(_AGAIN)

    watcher = threading.Thread(target=watch, daemon=True)
    if seconds > 0 and threading.current_thread() is threading.main_thread():
        watcher.start()
    try:
        yield rung
    finally:
        over.set()
