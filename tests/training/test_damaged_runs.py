"""A run whose files were damaged is refused in one sentence that says how to go on; it is never
trained on as if nothing had happened, and never hangs."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny

from dragoman.errors import ModelFolderError
from dragoman.training import run
from dragoman.training.claim import claim, locked

NEWEST = "state/step-00000012"
PROGRESS = f"{NEWEST}/progress.json"


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has made 12 steps."""
    folder = tmp_path_factory.mktemp("half")
    given = tiny.tables(steps=12, average=2)
    given["data"] = {"train": tiny.write_corpus(folder, "a", 150)}
    assert run.start(folder / "run", given, print) == "steps"
    return folder / "run"


@pytest.fixture
def copy(half: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(half, tmp_path / "run"))


def counted(name: str, value: object) -> Callable[[Path], None]:
    """Gives one counter of progress.json another value."""

    def damage(file: Path) -> None:
        values = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps({**values, name: value}), encoding="utf-8")

    return damage


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def cut_evenly(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-16])


def randomised(file: Path) -> None:
    file.write_bytes(random.Random(3).randbytes(file.stat().st_size))


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def removed(file: Path) -> None:
    file.unlink()


def appended(content: bytes) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        file.write_bytes(content + file.read_bytes())

    return damage


def swapped(file: Path) -> None:
    """The weights of another model."""
    shutil.copy(file.with_name("optimizer.safetensors"), file)


def manifest(**changes: Any) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        values = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps({**values, **changes}), encoding="utf-8")

    return damage


DAMAGES: list[tuple[str, str, Callable[[Path], None]]] = [
    ("step-a-word", PROGRESS, counted("step", "x")),
    ("step-negative", PROGRESS, counted("step", -5)),
    ("step-another", PROGRESS, counted("step", 11)),
    ("epoch-huge", PROGRESS, counted("epoch", 10**18)),
    ("epoch-true", PROGRESS, counted("epoch", True)),
    ("batch-huge", PROGRESS, counted("batch", 10**9)),
    ("best-a-word", PROGRESS, counted("best", "x")),
    ("best-nan", PROGRESS, counted("best", float("nan"))),
    ("seconds-none", PROGRESS, counted("seconds", None)),
    ("seconds-infinite", PROGRESS, counted("seconds", float("inf"))),
    ("window-short", PROGRESS, counted("window", [1.0])),
    ("window-words", PROGRESS, counted("window", ["a", "b", "c"])),
    ("window-a-number", PROGRESS, counted("window", 3)),
    ("packed-plan", PROGRESS, counted("packed_plan", "no")),
    ("unknown-counter", PROGRESS, counted("colour", 1)),
    ("progress-empty", PROGRESS, emptied),
    ("progress-removed", PROGRESS, removed),
    ("optimizer-removed", f"{NEWEST}/optimizer.safetensors", removed),
    ("optimizer-random", f"{NEWEST}/optimizer.safetensors", randomised),
    ("weights-cut", f"{NEWEST}/model.safetensors", cut),
    ("weights-swapped", f"{NEWEST}/model.safetensors", swapped),
    ("metrics-latin1", "metrics.jsonl", appended(b"\xff\n")),
    ("metrics-without-step", "metrics.jsonl", appended(b'{"loss": 1.0}\n')),
    ("metrics-a-list", "metrics.jsonl", appended(b"[1]\n")),
    ("metrics-loss-a-word", "metrics.jsonl", appended(b'{"step": 1, "loss": "x"}\n')),
    ("options-removed", "training.toml", removed),
    ("options-damaged", "training.toml", appended(b"\x00[")),
    ("manifest-without-corpora", "state/data/manifest.json", manifest(train=None)),
    ("manifest-pairs", "state/data/manifest.json", manifest(train=[{"pairs": 3, "weight": 1.0}])),
    ("manifest-dtype", "state/data/manifest.json", manifest(dtype="float64")),
    *[
        (f"{part}-{file}-{damage.__name__}", f"state/data/{part}/{file}", damage)
        for part in ("train", "valid")
        for file in ("source.bin", "source.idx", "target.bin", "target.idx")
        for damage in (cut, cut_evenly, randomised, emptied, removed)
    ],
]


@pytest.mark.parametrize(
    ("file", "damage"), [row[1:] for row in DAMAGES], ids=[r[0] for r in DAMAGES]
)
def test_a_damaged_run_is_refused(copy: Path, file: str, damage: Callable[[Path], None]) -> None:
    damage(copy / file)
    before = {path: path.read_bytes() for path in copy.rglob("*.safetensors")}
    with pytest.raises(ModelFolderError) as caught:
        run.resume(copy, {"training": {"steps": 24}}, print)
    sentence = str(caught.value)
    assert str(copy) in sentence
    assert f"--continue {copy}" in sentence
    assert "\n" not in sentence
    assert {path: path.read_bytes() for path in copy.rglob("*.safetensors")} == before


@pytest.mark.parametrize("content", [b"\xff\xfe", b"no tab\n"])
def test_damaged_text_for_scores_is_refused(copy: Path, content: bytes) -> None:
    (copy / "state/data/valid/text.tsv").write_bytes(content)
    with pytest.raises(ModelFolderError, match="--continue"):
        run.resume(copy, {"training": {"steps": 24}}, print)


def test_what_the_user_gave_is_checked_too(copy: Path) -> None:
    (copy / "state/given.json").write_text('{"training": 5}', encoding="utf-8")
    assert run.resume(copy, {}, print) == "steps"  # training.toml has what counts
    (copy / "state/data/manifest.json").unlink()
    with pytest.raises(Exception, match="'training' is a table of options, not 5"):
        run.resume(copy, {}, print)


def test_the_undamaged_copy_goes_on(copy: Path) -> None:
    assert run.resume(copy, {"training": {"steps": 14}}, print) == "steps"


def test_of_two_that_start_at_once_one_trains(tmp_path: Path) -> None:
    """Both claim the folder at the same moment, again and again; one has it, and the other is told
    what is going on."""
    for number in range(30):
        folder = tmp_path / str(number)
        results: list[str] = []
        both = threading.Barrier(2)

        def begin() -> None:
            both.wait()  # noqa: B023
            try:
                with locked(folder):  # noqa: B023
                    claim(folder, {"seed": 1}, None)  # noqa: B023
                    results.append("trains")  # noqa: B023
            except ModelFolderError as error:
                results.append(str(error))  # noqa: B023

        threads = [threading.Thread(target=begin) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results.count("trains") == 1
        told = next(result for result in results if result != "trains")
        busy = f"another run is training in {folder}; wait for it or name another --out"
        assert told == busy or told.startswith(f"{folder} already holds a run; ")


def test_nothing_is_written_before_the_lock(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with locked(folder):
        assert [path.name for path in (folder / "state").iterdir()] == ["lock"]
        with pytest.raises(ModelFolderError, match="another run is training"):
            run.start(folder, {"data": {"train": tiny.write_corpus(tmp_path, "a", 30)}}, print)
        assert [path.name for path in (folder / "state").iterdir()] == ["lock"]


def test_a_claim_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    state = folder / "state"
    (state / ".given.json.abcd1234.partial").mkdir(parents=True)
    (state / "lock").touch()
    given = tiny.tables(steps=2, save_every=2)
    given["data"] = {"train": tiny.write_corpus(tmp_path, "a", 60)}
    assert run.start(folder, given, print) == "steps"
    assert not list(state.glob(".*"))


@pytest.mark.parametrize("name", ["state/notes.txt", "state/data/x", "notes.txt"])
def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "run" / name
    file.parent.mkdir(parents=True)
    file.write_text("mine", encoding="utf-8")
    given = {"data": {"train": tiny.write_corpus(tmp_path, "a", 30)}}
    with pytest.raises(ModelFolderError, match="exists and is not empty"):
        run.start(tmp_path / "run", given, print)
    assert file.read_text(encoding="utf-8") == "mine"
    assert [path for path in (tmp_path / "run").rglob("*") if path.is_file()] == [file]


TERMINAL = """
import os, pty, signal, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
child, terminal = pty.fork()
if not child:
    # Tests that run under nohup would hand down that it is ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    words = [sys.executable, "-m", "dragoman", "train", "--resume", str(folder), "--steps", "90000"]
    os.execv(sys.executable, words)
metrics = folder / "metrics.jsonl"
begun = metrics.read_bytes().count(b"\\n")
end = time.monotonic() + 200
while metrics.read_bytes().count(b"\\n") < begun + 2 and time.monotonic() < end:
    time.sleep(0.01)
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_terminal_that_closes_costs_nothing(copy: Path) -> None:
    """The system sends SIGHUP, and nothing can be printed any more; the run is saved."""
    child = subprocess.run(
        [sys.executable, "-c", TERMINAL, str(copy)], capture_output=True, text=True, check=True
    )
    assert child.stdout == "129\n"
    newest = max((copy / "state").glob("st??-0*"), key=lambda path: path.name[5:])
    saved = json.loads((newest / "progress.json").read_text(encoding="utf-8"))["step"]
    assert saved == tiny.losses(copy)[-1][0] > 12
    assert f"Stopped by SIGHUP at step {saved:,}." in (copy / "report.md").read_text(
        encoding="utf-8"
    )
