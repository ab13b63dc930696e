"""What the tests of training share: a corpus of digits in words, options of a model that trains in
seconds, and commands run as processes of their own that can be killed.

Processes come from a fork server that has imported torch already, so that each starts in a moment.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]

RECIPE = """
preset = "tiny"
[tokenizer]
vocab_size = 300
[model]
d_model = 16
d_ff = 32
n_heads = 2
encoder_layers = 1
decoder_layers = 1
[training]
steps = 24
save_every = 6
log_every = 1
average = 3
batch_tokens = 256
valid_sentences = 3
warmup = 20
device = "cpu"
precision = "float32"
"""

FORK_SERVER = multiprocessing.get_context("forkserver")
FORK_SERVER.set_forkserver_preload(
    [
        "dragoman.training.run",
        "dragoman.cli.main",
        "dragoman.cli.training",
        "dragoman.cli.translating",
        "dragoman.documents.documents",
        "dragoman.runtimes.int8",
        "dragoman.tasks.bulk",
        "torch._dynamo",
        "sacrebleu",
        "typer.main",
        "pydantic.fields",
        "pydantic.type_adapter",
    ]
)


def write_corpus(
    folder: Path, name: str, pairs: int, seed: int = 1, longest: int = 8, turned: bool = True
) -> list[str]:
    """Distinct rows of digits as English and German words, the German in reverse order; the
    names of the two files."""
    draw = random.Random(seed)
    seen: set[tuple[int, ...]] = set()
    while len(seen) < pairs:
        seen.add(tuple(draw.randrange(10) for _ in range(draw.randint(1, longest))))
    rows = sorted(seen)
    draw.shuffle(rows)
    files = [folder / f"{name}.en", folder / f"{name}.de"]
    files[0].write_text(
        "".join(" ".join(ENGLISH[digit] for digit in row) + "\n" for row in rows), encoding="utf-8"
    )
    order = -1 if turned else 1
    files[1].write_text(
        "".join(" ".join(GERMAN[digit] for digit in row[::order]) + "\n" for row in rows),
        encoding="utf-8",
    )
    return [str(file) for file in files]


def tables(**training: Any) -> dict[str, Any]:
    """The recipe as nested tables, some training options of it changed; for `run.start`."""
    import tomllib

    given = tomllib.loads(RECIPE)
    given["training"].update(training)
    return given


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def losses(folder: Path) -> list[tuple[int, float, float]]:
    """Step and both losses of each training line."""
    return [(line["step"], line["loss"], line["nll"]) for line in metrics(folder) if "loss" in line]


def validations(folder: Path) -> list[tuple[int, float, float]]:
    return [
        (line["step"], line["valid_loss"], line["bleu"])
        for line in metrics(folder)
        if "valid_loss" in line
    ]


class Command:
    """`dragoman` with some words in a process of its own; `before` is called there first, to
    break something."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        before: Callable[..., None] | None = None,
        *arguments: Any,
    ) -> None:
        self._start(folder, _command, list(words), before, arguments)

    def _start(self, folder: Path, target: Callable[..., None], *arguments: Any) -> None:
        self.log = folder / f"command-{time.monotonic_ns()}"
        self.process = FORK_SERVER.Process(
            target=target, args=(str(self.log), *arguments), daemon=True
        )
        self.process.start()

    def kill(self, number: int = signal.SIGKILL) -> None:
        assert self.process.pid is not None
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself: see its exit code
            os.kill(self.process.pid, number)

    def wait(self, seconds: float = 300.0) -> int:
        """The exit code; minus the number of the signal that ended it."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"still running after {seconds} s: {self.errors}"
        return self.process.exitcode

    def until(self, ready: Callable[[], bool], seconds: float = 300.0) -> None:
        """Waits for something that the process does."""
        end = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < end, self.errors
            assert self.process.is_alive(), self.errors
            time.sleep(0.002)

    @property
    def output(self) -> str:
        return self._said(".out")

    @property
    def errors(self) -> str:
        return self._said(".err")

    def _said(self, ending: str) -> str:
        path = self.log.with_suffix(ending)
        return path.read_text(encoding="utf-8") if path.exists() else ""


class Script(Command):
    """Some Python in a process of its own, which runs in a folder."""

    def __init__(self, code: str, folder: Path) -> None:
        self._start(folder, _script, code, str(folder))


class Torchrun(Command):
    """torchrun with some words, which runs in a folder and has its log in another. The processes
    that it starts are new ones, as a user's are."""

    def __init__(self, words: Sequence[str], folder: Path, logs: Path) -> None:
        self._start(logs, _torchrun, list(words), str(folder))

    @property
    def said(self) -> str:
        """What it and its processes have printed, wherever."""
        return self.output + self.errors


def run(
    words: Sequence[str], folder: Path, before: Callable[..., None] | None = None, *arguments: Any
) -> Command:
    """A command that has ended."""
    command = Command(words, folder, before, *arguments)
    command.wait()
    return command


def halt_after(journal: str, lines: int) -> None:
    """For `before`: text is put through a model, and once its journal has more than so many lines,
    the process waits to be killed."""
    from dragoman.improving.passage_journal import Journal

    note = Journal.note

    def noted(self: Journal, *entry: Any) -> None:
        note(self, *entry)
        if Path(journal).read_bytes().count(b"\n") > lines:
            time.sleep(600)

    Journal.note = noted  # type: ignore[method-assign, assignment]


def run_python(code: str, folder: Path) -> Command:
    """A script that has ended."""
    script = Script(code, folder)
    script.wait()
    return script


def _redirect(log: str) -> None:
    for number, ending in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(log + ending, os.O_WRONLY | os.O_CREAT, 0o644), number)
    # Tests that run in the background would hand down that Ctrl-C and hanging up are ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _script(log: str, code: str, folder: str) -> None:
    _redirect(log)
    os.chdir(folder)
    exec(compile(code, "<script>", "exec"), {"__name__": "__main__"})


def _torchrun(log: str, words: list[str], folder: str) -> None:
    _redirect(log)
    os.chdir(folder)
    package = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    from torch.distributed.run import main

    main(words)


def _command(
    log: str, words: list[str], before: Callable[..., None] | None, arguments: tuple[Any, ...]
) -> None:
    _redirect(log)
    sys.argv = ["dragoman", *words]
    if before is not None:
        before(*arguments)
    from dragoman.cli.main import main

    main()
