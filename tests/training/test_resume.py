"""A run that is stopped or killed at any moment goes on as if nothing had happened: equal losses
and weights, to the bit."""

from __future__ import annotations

import functools
import importlib
import json
import os
import random
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
from kills import Kills
from tiny import Command

from dragoman.training.stopping import caught_signals

CORPORA = {
    "plain": "",
    "sampled": "tokenizer.sampling=0.1",
    "weighted": "data.weights=[2.0, 0.5]",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resume")
    (folder / "recipe.toml").write_text(tiny.RECIPE, encoding="utf-8")
    tiny.write_corpus(folder, "a", 150, seed=1)
    tiny.write_corpus(folder, "b", 120, seed=2, longest=6)
    return folder


def words(place: Path, name: str, kind: str = "plain", *more: str) -> list[str]:
    files = [
        str(place / f"{corpus}.{side}")
        for corpus in ("ab" if kind == "weighted" else "a")
        for side in ("en", "de")
    ]
    extra = ["--set", CORPORA[kind]] if CORPORA[kind] else []
    return [
        "train",
        *files,
        "--out",
        str(place / name),
        "--config",
        str(place / "recipe.toml"),
        *extra,
        *more,
    ]


def resume(place: Path, name: str, *more: str) -> list[str]:
    return ["train", "--resume", str(place / name), *more]


@pytest.fixture(scope="module")
def unbroken(place: Path) -> Callable[[str], Path]:
    """The folder of a run that was never stopped."""

    @functools.cache
    def made(kind: str) -> Path:
        assert tiny.run(words(place, f"unbroken-{kind}", kind), place).wait() == 0
        return place / f"unbroken-{kind}"

    return made


def assert_same_run(folder: Path, reference: Path, steps: int = 24) -> None:
    assert [step for step, _, _ in tiny.losses(folder)] == list(range(1, steps + 1))
    assert tiny.losses(folder) == tiny.losses(reference)
    assert tiny.validations(folder) == tiny.validations(reference)
    assert (folder / "model.safetensors").read_bytes() == (
        reference / "model.safetensors"
    ).read_bytes()
    assert (folder / "tokenizer.model").read_bytes() == (reference / "tokenizer.model").read_bytes()
    assert result(folder) == result(reference)


def result(folder: Path) -> str:
    """The end of the report, but for its name and the time that the run took."""
    report = (folder / "report.md").read_text(encoding="utf-8").split("The model is")[1]
    return re.sub(r"steps in [^:;]*", "", report).replace(str(folder), "")


def lines(folder: Path) -> int:
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def die_in(module: str, name: str) -> None:
    setattr(
        importlib.import_module(module), name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    )


def slow_steps(seconds: float) -> None:
    trainer = importlib.import_module("dragoman.training.trainer")
    rate = trainer.learning_rate

    def slowly(*arguments: Any) -> float:
        time.sleep(seconds)
        return rate(*arguments)

    vars(trainer)["learning_rate"] = slowly


def slow_saving() -> None:
    weights = importlib.import_module("dragoman.folder.weights")
    save = weights.save_file

    def slowly(*arguments: Any) -> None:
        time.sleep(0.1)
        save(*arguments)

    vars(weights)["save_file"] = slowly


@pytest.mark.parametrize("kind", CORPORA)
def test_killed_again_and_again(place: Path, unbroken: Callable[[str], Path], kind: str) -> None:
    name = f"killed-{kind}"
    draw = random.Random(kind)
    given = words(place, name, kind)
    for _ in range(4):
        command = Command(given, place, slow_steps, 0.1)
        command.until(lambda: (place / name / "training.toml").exists())
        seen = lines(place / name)
        more = draw.randrange(6)
        command.until(lambda seen=seen, more=more: lines(place / name) >= seen + more)  # type: ignore[misc]
        time.sleep(draw.random() * 0.02)
        command.kill()
        assert command.wait() == -signal.SIGKILL, command.errors
        given = resume(place, name)
    last = tiny.run(given, place)
    assert last.wait() == 0, last.errors
    assert_same_run(place / name, unbroken(kind))


def test_killed_with_muon_and_a_running_mean(place: Path) -> None:
    """Momentum and mean go on as they were."""
    more = ["--set", "training.optimizer=muon", "--set", "training.ema=0.9"]
    assert tiny.run(words(place, "muon", "plain", *more), place).wait() == 0
    killed = place / "muon-killed"
    command = Command(words(place, "muon-killed", "plain", *more), place, slow_steps, 0.05)
    command.until(lambda: lines(killed) > 0 and len(tiny.losses(killed)) >= 9)
    command.kill()
    assert command.wait() == -signal.SIGKILL
    command = Command(resume(place, "muon-killed"), place)
    assert command.wait() == 0, command.errors
    assert_same_run(killed, place / "muon")


def test_killed_at_file_system_events(tmp_path: Path) -> None:
    """A sample of what tests/kills.py does at every event: each run is killed before an event, and
    its successor before another."""
    kills = Kills(tmp_path)
    count = len(kills.events)
    assert count > 300
    draw = random.Random(7)
    for _ in range(5):
        number = draw.randrange(1, count)
        again = draw.randrange(1, count)
        difference = kills.survives(number, again)
        assert not difference, f"killed before event {number}, then {again}: {difference}"


def test_killed_while_saving(place: Path, unbroken: Callable[[str], Path]) -> None:
    """Each life ends while state/ holds an unfinished checkpoint; the one before it must still be
    there, and the next life removes what is unfinished."""
    name = "saving"
    state, given = place / name / "state", words(place, name)
    for newest in ("", "step-00000006", "step-00000012"):
        command = Command(given, place, slow_saving)
        earlier = state / newest if newest else state
        command.until(functools.partial(saves_after, state, earlier))
        command.kill()
        assert command.wait() == -signal.SIGKILL
        assert len(unfinished(state)) == 1
        whole = [
            path.name for path in state.glob("step-*") if (path / "optimizer.safetensors").exists()
        ]
        assert newest in whole or not newest
        # The next life gets as far as its first checkpoint.
        command = Command(resume(place, name), place, slow_steps, 0.02)
        step = f"step-{int(newest[5:] or 0) + 6:08d}"
        command.until(lambda: (state / step).exists())  # noqa: B023
        command.kill()
        command.wait()
        given = resume(place, name)
    assert tiny.run(given, place).wait() == 0
    assert not unfinished(state)
    assert_same_run(place / name, unbroken("plain"))


def unfinished(state: Path) -> list[Path]:
    return list(state.glob(".step-*.partial"))


def saves_after(state: Path, earlier: Path) -> bool:
    """Whether a step is being saved and the earlier one has been."""
    return bool(unfinished(state)) and earlier.exists()


@pytest.mark.parametrize(
    ("module", "deed"),
    [
        ("dragoman.data.prepare", "learn"),
        ("dragoman.data.prepare", "_finish"),
        ("dragoman.training.prepare_pairs", "save_description"),
        ("dragoman.training.run", "Transformer"),
    ],
)
def test_killed_while_preparing(
    place: Path, unbroken: Callable[[str], Path], module: str, deed: str
) -> None:
    name = f"preparing-{deed}"
    assert tiny.run(words(place, name), place, die_in, module, deed).wait() == -signal.SIGKILL
    command = tiny.run(resume(place, name), place)
    assert command.wait() == 0, command.errors
    assert_same_run(place / name, unbroken("plain"))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_saves_and_leaves(
    place: Path, unbroken: Callable[[str], Path], number: signal.Signals, code: int
) -> None:
    """Stopped twice between checkpoints: neither stop may enter the average of the last
    checkpoints."""
    name = f"signal-{number.name}"
    folder, given, seen = place / name, words(place, name), 0
    for wanted in (9, 21):
        command = Command(given, place, slow_steps, 0.03)
        command.until(lambda: len(tiny.losses(folder)) >= wanted if lines(folder) > seen else False)  # noqa: B023
        command.kill(number)
        assert command.wait() == code, command.errors
        done = tiny.losses(folder)[-1][0]
        assert f"stopped by {number.name} at step {done}" in command.errors
        assert f"dragoman train --resume {folder}" in command.errors
        assert "Traceback" not in command.errors
        newest = max((folder / "state").glob("*-0*"), key=lambda path: path.name[5:])
        assert json.loads((newest / "progress.json").read_text(encoding="utf-8"))["step"] == done
        given, seen = resume(place, name), lines(folder)
    assert tiny.run(given, place).wait() == 0
    assert_same_run(folder, unbroken("plain"))
    assert sorted(path.name for path in (folder / "state").glob("st*-0*")) == [
        f"step-{step:08d}" for step in (12, 18, 24)
    ]


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """`nohup dragoman train` goes on when the terminal closes."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with caught_signals() as arrived:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
            assert arrived == ["SIGTERM"]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_minutes_of_a_resumed_run_are_more_minutes(place: Path) -> None:
    """After a run that had its minutes, --minutes N trains for N more, and --resume alone says
    that there is nothing left to do."""
    name = "minutes"
    first = tiny.run(words(place, name, "plain", "--minutes", "0.0001"), place)
    assert first.wait() == 0, first.errors
    toml = (place / name / "training.toml").read_text(encoding="utf-8")
    assert "\nminutes = 0.0001 " in toml
    done = tiny.losses(place / name)[-1][0]
    assert done < 24
    again = tiny.run(resume(place, name), place)
    assert again.wait() == 0
    assert tiny.losses(place / name)[-1][0] == done
    more = tiny.run(resume(place, name, "--minutes", "1"), place)
    assert more.wait() == 0
    assert tiny.losses(place / name)[-1][0] == 24
    toml = (place / name / "training.toml").read_text(encoding="utf-8")
    in_all = float(toml.split("\nminutes = ")[1].split()[0])
    assert 1.0 < in_all < 2.0


def test_a_second_run_in_the_folder_is_refused(place: Path) -> None:
    name = "twice"
    first = Command(words(place, name), place, slow_steps, 0.2)
    first.until(lambda: lines(place / name) > 0)
    second = tiny.run(resume(place, name), place)
    assert second.wait() == 2
    assert (
        second.errors
        == f"error: another run is training in {place / name}; wait for it or name another --out\n"
    )
    third = tiny.run(words(place, name), place)
    assert third.wait() == 2
    assert third.errors.startswith(f"error: {place / name} already holds a run;")
    assert first.process.is_alive()
    first.kill()
    first.wait()
    assert [step for step, _, _ in tiny.losses(place / name)] == list(
        range(1, len(tiny.losses(place / name)) + 1)
    )


def test_what_may_change_and_what_may_not(place: Path, unbroken: Callable[[str], Path]) -> None:
    """A shorter run, made longer by --resume, has the losses of one that was long from the
    start."""
    name = "longer"
    assert tiny.run(words(place, name, "plain", "--steps", "12"), place).wait() == 0
    before = (place / name / "training.toml").read_bytes()
    for refused, what in [
        (["--set", "model.d_model=32"], "model"),
        (["--vocab-size", "400"], "tokenizer"),
        (["--preset", "small"], "preset"),
        (["--valid", "x.en", "x.de"], "data"),
    ]:
        command = tiny.run(resume(place, name, *refused), place)
        assert command.wait() == 2
        assert (
            command.errors
            == f"error: '{what}' cannot change when a run is resumed; only [training] options can\n"
        )
    command = tiny.run(resume(place, name, "--out", "elsewhere"), place)
    assert command.wait() == 2
    assert command.errors.startswith("error: --resume continues in ")
    assert (place / name / "training.toml").read_bytes() == before
    assert tiny.run(resume(place, name, "--steps", "24"), place).wait() == 0
    assert tiny.losses(place / name) == tiny.losses(unbroken("plain"))
    assert tiny.validations(place / name) == tiny.validations(unbroken("plain"))


def test_resuming_a_finished_run_changes_nothing(place: Path) -> None:
    """The last step is no multiple of save_every, so that its validation could be made and
    written twice."""
    name = "finished"
    assert tiny.run(words(place, name, "plain", "--steps", "9"), place).wait() == 0
    files = ("metrics.jsonl", "model.safetensors", "training.toml")
    before = [(place / name / file).read_bytes() for file in files]
    assert [step for step, _, _ in tiny.validations(place / name)] == [6, 9]
    assert tiny.run(resume(place, name), place).wait() == 0
    assert [(place / name / file).read_bytes() for file in files] == before


def test_nothing_to_resume(place: Path) -> None:
    (place / "empty").mkdir()
    for folder in ("empty", "nowhere"):
        command = tiny.run(resume(place, folder), place)
        assert command.wait() == 2
        assert (
            command.errors
            == f"error: {place / folder} holds no run to resume: it has no state/given.json\n"
        )
