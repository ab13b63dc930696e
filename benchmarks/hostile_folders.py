"""The hostile folders of tests/hostile through the command line, each in a process of its own:
every one must end with exit 2 and one sentence, or with a model that translates, and take less than
1 GB and 10 seconds of CPU time.

    python benchmarks/hostile_folders.py
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "hostile")]

import huggingface_folders  # noqa: E402
import model_folders  # noqa: E402
from hostile_files import Case, mark_of  # noqa: E402

# What a command would import first, so that only its own work is measured again and again.
import dragoman.cli.main  # noqa: E402
import dragoman.formats.import_huggingface  # noqa: E402
import dragoman.tasks.translate  # noqa: E402

MOST_MEMORY = 1_000_000  # KB
MOST_SECONDS = 10.0  # of the CPU
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
PATIENCE = 120.0  # seconds by the clock, after which a command is taken to hang


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int  # minus the number of the signal that ended it
    errors: str
    memory: int  # KB
    seconds: float


def command(words: Sequence[str], scratch: Path) -> Outcome:
    """Run a command of dragoman, which reads a line of two words."""
    (scratch / "in").write_text("5 6\n", encoding="utf-8")
    process = os.fork()
    if not process:
        for number, name, mode in ((0, "in", os.O_RDONLY), (1, "out", _WRITE), (2, "err", _WRITE)):
            os.dup2(os.open(scratch / name, mode, 0o600), number)
        _run(words)
    killer = threading.Timer(PATIENCE, os.kill, (process, signal.SIGKILL))
    killer.start()
    _, status, usage = os.wait4(process, 0)
    killer.cancel()
    errors = (scratch / "err").read_text(encoding="utf-8", errors="replace")
    seconds = usage.ru_utime + usage.ru_stime
    return Outcome(os.waitstatus_to_exitcode(status), errors, usage.ru_maxrss, seconds)


def _run(words: Sequence[str]) -> NoReturn:
    """Run a command in this process, which ends with it and cleans up nothing."""
    code = 1
    sys.argv = ["dragoman", *words]
    try:
        dragoman.cli.main.main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def problem(case: Case, outcome: Outcome) -> str:
    """Return what is wrong with how a command ended; empty if nothing is."""
    lines = outcome.errors.strip().splitlines()
    if outcome.code not in (0, 2) or (outcome.code == 0) != case.loads:
        return f"exit {outcome.code}: {outcome.errors.strip()[-300:]}"
    if outcome.code == 2 and (len(lines) != 1 or not lines[0].startswith("error: ")):
        return f"{len(lines)} lines: {outcome.errors.strip()[:300]}"
    if outcome.memory > MOST_MEMORY or outcome.seconds > MOST_SECONDS:
        return f"{outcome.memory / 1000:.0f} MB, {outcome.seconds:.1f} s"
    return ""


def run(kind: str, good: Path, cases: dict[str, Case], scratch: Path) -> int:
    """Try all folders of a kind; return with how many something is wrong."""
    outcomes = []
    wrong = 0
    for number, (name, case) in enumerate(cases.items()):
        folder = Path(shutil.copytree(good, scratch / f"{kind}-{number}"))
        case.change(folder)
        if kind == "model":
            words = ["translate", "-m", str(folder), "--device", "cpu", "--max-length", "4"]
        else:
            words = ["convert", f"hf:{folder}", str(scratch / f"out-{number}")]
        outcome = command([*words, *case.options], scratch)
        outcomes.append(outcome)
        complaint = problem(case, outcome) or ("it was run" if mark_of(folder).exists() else "")
        if complaint:
            wrong += 1
            print(f"{kind} folder, {name}: {complaint}")
    refused = sum(outcome.code == 2 for outcome in outcomes)
    memory = max(outcome.memory for outcome in outcomes) / 1000
    seconds = max(outcome.seconds for outcome in outcomes)
    print(
        f"{len(cases)} {kind} folders: {refused} refused, {len(cases) - refused - wrong} loaded, "
        f"{wrong} wrong; at most {memory:.0f} MB and {seconds:.1f} s of CPU time",
        flush=True,
    )
    return wrong


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        model = model_folders.good(scratch / "model")
        other = huggingface_folders.good(scratch / "huggingface")
        wrong = run("model", model, model_folders.CASES, scratch)
        wrong += run("Hugging Face", other, huggingface_folders.CASES, scratch)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
