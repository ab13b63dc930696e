"""Training on two machines: two launchers of torchrun on this one, which meet at an address.

A machine is a current folder. The paths of the command are relative, so that a launcher in another
folder sees nothing of what the first one has: a disk that only the first machine mounts.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import tiny
from patience import wait_for

from dragoman.training.sent_folder import _receivers

STEPS = 18
TRAIN = ["train", "a.en", "a.de", "--out", "model", "--config", "recipe.toml"]


@dataclass
class Job:
    """Two machines, how they meet, and the command that both run."""

    first: Path
    second: Path
    words: list[str] = field(default_factory=lambda: list(TRAIN))
    static: bool = False
    restarts: int = 0
    port: int = 0

    def launcher(self, machine: int) -> list[str]:
        meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{self.port}"]
        if self.static:
            meeting = ["--node-rank", str(machine), "--master-addr", "127.0.0.1"]
            meeting += ["--master-port", str(self.port)]
        options = ["--nnodes", "2", "--nproc-per-node", "1", "--rdzv-id", "test"]
        options += ["--max-restarts", str(self.restarts), "--monitor-interval", "0.1"]
        return [*options, *meeting, "-m", "dragoman", *self.words]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine with text, a recipe, and the run of one process in `one`."""
    folder = tmp_path_factory.mktemp("machines")
    recipe = tiny.RECIPE.replace("steps = 24", f"steps = {STEPS}").replace(
        "[model]", "[model]\ndropout = 0.0"
    )
    (folder / "recipe.toml").write_text(recipe, encoding="utf-8")
    tiny.write_corpus(folder, "a", 60)
    files = [str(folder / "a.en"), str(folder / "a.de")]
    words = ["train", *files, "--out", str(folder / "one"), "--config", str(folder / "recipe.toml")]
    alone = tiny.run(words, folder)
    assert alone.wait() == 0, alone.errors
    return folder


@pytest.fixture
def machines(corpus: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two machines; the second has the recipe and nothing else."""
    first = tmp_path / "first"
    second = tmp_path / "second"
    for machine, names in ((first, ("a.en", "a.de", "recipe.toml")), (second, ("recipe.toml",))):
        machine.mkdir()
        for name in names:
            (machine / name).write_bytes((corpus / name).read_bytes())
    return first, second


@contextmanager
def running(job: Job, logs: Path) -> Iterator[list[tiny.Torchrun]]:
    """Both launchers; whatever still runs at the end is stopped."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        job.port = free.getsockname()[1]
    launchers = []
    for machine, folder in enumerate((job.first, job.second)):
        launchers.append(tiny.Torchrun(job.launcher(machine), folder, logs))
    try:
        yield launchers
    finally:
        for launcher in launchers:
            if launcher.process.is_alive():
                launcher.kill(signal.SIGTERM)
            launcher.wait()


def finish(launchers: list[tiny.Torchrun]) -> list[str]:
    """What both have printed; they end without an error."""
    codes = [launcher.wait() for launcher in launchers]
    said = [launcher.said for launcher in launchers]
    assert codes == [0, 0], "\n".join(said)
    return said


def workers_of(launcher: tiny.Torchrun) -> list[int]:
    """The processes that a launcher has started."""
    own = launcher.process.pid
    children = Path(f"/proc/{own}/task/{own}/children").read_text()
    found = []
    for child in map(int, children.split()):
        command = Path(f"/proc/{child}/cmdline").read_bytes()
        if b"dragoman" in command:
            found.append(child)
    return found


def until_step(folder: Path, step: int) -> None:
    wait_for(lambda: (folder / "metrics.jsonl").exists() and len(tiny.losses(folder)) >= step)


def assert_like_one(corpus: Path, found: Path) -> None:
    """Each step once, with the loss of one process to 1e-6, and the same checkpoints."""
    losses = np.array(tiny.losses(found))
    expected = np.array(tiny.losses(corpus / "one"))
    assert losses[:, 0].tolist() == list(range(1, STEPS + 1))
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-6)
    assert checkpoints(found) == checkpoints(corpus / "one")


def checkpoints(folder: Path) -> list[str]:
    found = [*folder.glob("state/st??-*"), *folder.glob("state/.*")]
    return sorted(path.name for path in found)


def test_one_process_of_a_machine_receives_for_all() -> None:
    """Each answers whether it sees the folder, and the number of its machine."""
    answers = ["1 0", "1 0", "0 1", "0 1", "1 2", "0 3"]
    assert _receivers(answers) == {2: 2, 3: 2, 5: 5}


def test_a_killed_worker_is_started_again_and_goes_on(
    corpus: Path, machines: tuple[Path, Path], tmp_path: Path
) -> None:
    """The machines share a disk and meet by rendezvous; the worker of one is killed."""
    first, _ = machines
    job = Job(first, first, restarts=2)
    with running(job, tmp_path) as launchers:
        until_step(first / "model", 8)
        (worker,) = workers_of(launchers[1])
        os.kill(worker, signal.SIGKILL)
        said = "".join(finish(launchers))
    assert "continuing from step" in said
    assert "machine without access" not in said
    assert "lost contact with the others" in said
    assert "Traceback" not in said, said
    assert_like_one(corpus, first / "model")


def test_a_folder_that_only_the_first_machine_has_is_sent_again_when_its_worker_is_killed(
    corpus: Path, machines: tuple[Path, Path], tmp_path: Path
) -> None:
    """With the weights in shards; the test of machines that share a disk has copies."""
    first, second = machines
    job = Job(first, second, [*TRAIN, "--set", "shard=true"], static=True, restarts=2)
    with running(job, tmp_path) as launchers:
        until_step(first / "model", 8)
        (worker,) = workers_of(launchers[0])
        os.kill(worker, signal.SIGKILL)
        said, other = finish(launchers)
    assert said.count("to 1 machine without access to model") == 2
    assert "without access" not in other  # one of them speaks
    assert "step 1:" not in other
    assert_like_one(corpus, first / "model")
    # Checkpoints are written once: the other machine keeps nothing.
    assert [path.name for path in second.iterdir()] == ["recipe.toml"]


def test_what_was_sent_is_removed_where_its_receiver_is_killed(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    other = sent / "dragoman-of-somebody-else"
    other.mkdir(parents=True)
    code = (
        "import pathlib, tempfile, time\n"
        "from dragoman.training.sent_folder import temporary_folder\n"
        f"tempfile.tempdir = {str(sent)!r}\n"
        "with temporary_folder() as own:\n"
        "    (pathlib.Path(own) / 'text').write_text('secret')\n"
        "    print(own, flush=True)\n"
        "    time.sleep(600)\n"
    )
    receiver = tiny.Script(code, tmp_path)
    receiver.until(lambda: receiver.output.endswith("\n"))
    own = Path(receiver.output.strip())
    assert own.parent == sent
    assert (own / "text").exists()
    receiver.kill()
    assert receiver.wait() == -signal.SIGKILL
    wait_for(lambda: not own.exists())
    assert [path.name for path in sent.iterdir()] == [other.name]


def test_a_mistake_ends_both_machines_and_is_said_once(
    machines: tuple[Path, Path], tmp_path: Path
) -> None:
    first, second = machines
    (first / "a.de").unlink()
    with running(Job(first, second, static=True), tmp_path) as launchers:
        assert [launcher.wait() for launcher in launchers] == [1, 1]
    said = [launcher.said for launcher in launchers]
    assert said[0].count("error: a.de does not exist; name a text file") == 1
    assert "a.de" not in said[1]


def test_a_job_started_again_continues_its_own_run_only(corpus: Path, tmp_path: Path) -> None:
    files = [str(corpus / "a.en"), str(corpus / "a.de")]
    out = str(tmp_path / "model")
    words = ["train", *files, "--out", out, "--config", str(corpus / "recipe.toml")]
    begun = tiny.run([*words, "--auto-resume"], tmp_path)
    assert begun.wait() == 0, begun.errors
    before = (tmp_path / "model" / "metrics.jsonl").read_text()
    again = tiny.run([*words, "--auto-resume"], tmp_path)
    assert again.wait() == 0, again.errors
    assert (tmp_path / "model" / "metrics.jsonl").read_text() == before
    other = tiny.run([*words, "--auto-resume", "--seed", "7"], tmp_path)
    assert other.wait() == 2
    assert "holds a run with other options" in other.errors
    unasked = tiny.run(words, tmp_path)
    assert unasked.wait() == 2
    assert "already holds a run" in unasked.errors
    assert json.loads((tmp_path / "model" / "config.json").read_text())
