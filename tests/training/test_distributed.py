"""Two processes take the steps that one takes with the same global batch, as copies (DDP) and as
shards (fully_shard)."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tiny
from tiny import Command

STEPS = 14


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`one` is the run of a single process. Its batches hold one pair to five, so that some have
    fewer rows than processes."""
    folder = tmp_path_factory.mktemp("distributed")
    recipe = tiny.RECIPE.replace("batch_tokens = 256", "batch_tokens = 48").replace(
        "steps = 24", f"steps = {STEPS}"
    )
    # Gradients are clipped by their norm over all processes, or two would differ from one.
    recipe = recipe.replace("[model]", "[model]\ndropout = 0.0").replace(
        "[training]", "[training]\nclip = 0.5"
    )
    (folder / "recipe.toml").write_text(recipe, encoding="utf-8")
    tiny.write_corpus(folder, "a", 60)
    assert tiny.run(words(folder, "one"), folder).wait() == 0
    return folder


def words(place: Path, name: str, *more: str) -> list[str]:
    files = [str(place / "a.en"), str(place / "a.de")]
    return [
        "train",
        *files,
        "--out",
        str(place / name),
        "--config",
        str(place / "recipe.toml"),
        *more,
    ]


def join_world(rank: int, port: int) -> None:
    """The environment that torchrun gives to a process."""
    world = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ.update({name: str(value) for name, value in world.items()})


def run_two(words: Sequence[str], place: Path) -> list[Command]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    commands = [Command(words, place, join_world, rank, port) for rank in (0, 1)]
    for command in commands:
        command.wait()
    return commands


def assert_like_one(place: Path, name: str) -> None:
    found, one = np.array(tiny.losses(place / name)), np.array(tiny.losses(place / "one"))
    assert found[:, 0].tolist() == list(range(1, STEPS + 1))
    np.testing.assert_allclose(found, one, rtol=1e-5)
    np.testing.assert_allclose(
        tiny.validations(place / name), tiny.validations(place / "one"), rtol=1e-4
    )


def test_batches_are_as_the_fixture_says(place: Path) -> None:
    from dragoman.data.batch_plan import plan_epoch
    from dragoman.data.batches import Draw, Pairs

    pairs = Pairs(place / "one" / "state" / "data" / "train", "uint16")
    sizes = [len(rows) for rows in plan_epoch(pairs, [(len(pairs), 1.0)], 48, Draw(1, 0))]
    assert min(sizes[:STEPS]) == 1
    assert max(sizes[:STEPS]) >= 3


@pytest.mark.parametrize("shard", ["false", "true"])
def test_two_processes_like_one(place: Path, shard: str) -> None:
    """Two processes begin, in parts of few tokens; one goes on; two end it, whole batches at a
    time."""
    name = f"shard-{shard}"
    begun = words(
        place, name, "--steps", "6", "--set", f"shard={shard}", "--set", "micro_tokens=10"
    )
    on = ["train", "--resume", str(place / name), "--steps"]
    for commands in (
        run_two(begun, place),
        [tiny.run([*on, "12"], place)],
        run_two([*on, str(STEPS), "--set", "micro_tokens=0"], place),
    ):
        for command in commands:
            assert command.wait() == 0, command.errors
            assert "Warning" not in command.errors
        assert (
            len(commands) == 1 or commands[1].errors + commands[1].output == ""
        )  # one of them speaks
    assert_like_one(place, name)


@pytest.mark.parametrize("shard", ["false", "true"])
def test_two_processes_in_bfloat16(place: Path, shard: str) -> None:
    """Against the run of one process in float32, from which rounding alone parts them."""
    name = f"bfloat16-{shard}"
    changes = ["--set", f"shard={shard}", "--set", "precision=bfloat16", "--steps", "6"]
    for command in run_two(words(place, name, *changes), place):
        assert command.wait() == 0, command.errors
    found = tiny.losses(place / name)
    np.testing.assert_allclose(found, tiny.losses(place / "one")[:6], rtol=5e-3)


def test_sigterm_to_torchrun_saves_and_leaves(place: Path, tmp_path: Path) -> None:
    name = "stopped"
    launcher = ["--standalone", "--nproc-per-node", "2", "-m", "dragoman"]
    endless = words(place, name, "--steps", "100000", "--save-every", "50000")
    command = tiny.Torchrun([*launcher, *endless], place, tmp_path)
    metrics = place / name / "metrics.jsonl"
    command.until(lambda: metrics.exists() and len(tiny.losses(place / name)) >= STEPS)
    command.kill(signal.SIGTERM)
    command.wait()
    assert "stopped by SIGTERM at step" in command.said
    (saved,) = (place / name / "state").glob("stop-*")
    step = int(saved.name[5:])
    on = tiny.run(["train", "--resume", str(place / name), "--steps", str(step + 2)], place)
    assert on.wait() == 0, on.errors
    assert f"continuing from step {step:,}" in on.errors
    found = tiny.losses(place / name)
    assert [line[0] for line in found] == list(range(1, step + 3))
    np.testing.assert_allclose(found[:STEPS], tiny.losses(place / "one"), rtol=1e-5)


def test_a_mistake_is_said_once(place: Path) -> None:
    """The process that does not read the text leaves without a word."""
    first, second = run_two(
        ["train", str(place / "a.en"), str(place / "nothing.de"), "--out", str(place / "mistake")],
        place,
    )
    assert first.wait() == 2
    assert first.errors == f"error: {place / 'nothing.de'} does not exist; name a text file\n"
    assert second.wait() == 2
    assert second.errors == ""
