"""Makes small models of both directions on one GPU, by way of a teacher of each, from the models
that were there before.

    python recipes/bundled_models.py packed models --plan recipes/bundled-models.toml --minutes 27

packed/ is what recipes/packed_text.py wrote. The stages, each with its minutes in the plan:

    back      the models of before translate the text of one language alone
    teachers  each begins as the model of before with more layers, which at first change nothing,
              and learns from people's text and what was translated back
    own       they translate sources for their students
    students  each begins with its teacher's encoder and learns from the teacher's translations,
              from back-translations and from such text of people as is short and clean
    finish    8-bit integers
    scores    BLEU of teachers and students on the validation sets

So every run goes on where the last one ended. Without models of before, teachers begin with random
weights and people's text alone; the students are then the models of before for another run.

A stage that is done is not done again, so the same command goes on after a kill. The minutes that
are left are shared out anew before each stage. One that fails leaves the following ones to work
with what there is: without translations of a teacher, students learn from people's text alone.
Parts of packed/ that come later are waited for.

--keep FOLDER has the models that each stage made written there, with weights in bfloat16, in pieces
of --pieces megabytes. Teachers unpacked into models/ spare another run their training.

The stages are in recipes/bundled/stages.py. What each of them gave where it was tried, and why the
minutes are shared out so: docs/lab/results.md.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
import sys
import threading
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import packed_text
from bundled.machine_text import Writing, write_here
from bundled.packed_readings import begin_reading
from bundled.stage_processes import end_with
from bundled.stages import STAGES, make_all
from bundled.trainings import train_here
from bundled.workshop import Keeping, Made, Workshop, direction_named
from stage_times import Clock, Log

from dragoman.config import load_toml
from dragoman.folder import layout
from dragoman.tasks.device_shares import cores
from dragoman.text.tokenizer import Tokenizer

LOCK = "parts.lock"
MOST_READERS = 15
ENDED = 143  # what a process returns that a signal ended


def main() -> None:
    parser = arguments()
    given = parser.parse_args()
    plan = load_toml(given.plan)
    unknown = sorted(set(plan["minutes"]) - set(STAGES))
    if unknown:
        names = ", ".join(unknown)
        parser.error(f"{given.plan} has minutes for {names}; the stages are {', '.join(STAGES)}")
    given.models.mkdir(parents=True, exist_ok=True)
    with (given.models / LOCK).open("a") as lock:
        if given.only:
            parent = os.getppid()
            threading.Thread(target=end_with, args=(parent,), daemon=True).start()
            fcntl.flock(lock, fcntl.LOCK_SH)
            do_part(given, plan)
            return
        # The parts of a call that was killed are still ending.
        fcntl.flock(lock, fcntl.LOCK_EX)
    do_all(given, plan)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("packed", type=Path)
    add("models", type=Path)
    add("--plan", type=Path, required=True)
    add("--minutes", type=float, default=0.0, help="of all stages; default: those of the plan")
    add("--keep", type=Path, help="folder for the models of each stage")
    add("--pieces", type=float, default=15.0, help="megabytes of a file there")
    # A part of a stage, in a process of its own: what it does, its model or direction, its seconds.
    add("--only", nargs=3, help=argparse.SUPPRESS)
    return parser


def do_part(given: argparse.Namespace, plan: Mapping[str, Any]) -> None:
    """Train one model, or write the text of one direction."""
    what, name, seconds = given.only
    if what == "train":
        train_here(given.models / name, float(seconds))
        return
    writing = Writing(Made(given.models), what, direction_named(name))
    write_here(writing, plan, float(seconds))


def do_all(given: argparse.Namespace, plan: Mapping[str, Any]) -> None:
    """Make all stages, with a pool of processes that read."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED))
    tokenizer = Made(given.models).tokenizer
    if not tokenizer.exists():
        shutil.copyfile(given.packed / "part-1" / layout.TOKENIZER, tokenizer)
    packed_text.begin_tokenising(str(tokenizer))
    readers = max(1, min(MOST_READERS, cores() - 1))
    with get_context("spawn").Pool(readers, begin_reading, (str(tokenizer),)) as pool:
        make_all(workshop(given, plan, pool))


def workshop(given: argparse.Namespace, plan: Mapping[str, Any], pool: Pool) -> Workshop:
    made = Made(given.models)
    return Workshop(
        packed=given.packed,
        made=made,
        plan_file=given.plan,
        plan=plan,
        keeping=Keeping(given.keep, given.pieces) if given.keep else None,
        pool=pool,
        log=Log(given.models),
        clock=Clock.of(plan["minutes"], given.minutes),
        tokenizer=Tokenizer(made.tokenizer.read_bytes()),
    )


if __name__ == "__main__":
    main()
