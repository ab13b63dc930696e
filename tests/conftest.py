"""Fixtures that many tests share."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny
from filelock import FileLock  # which torch needs too
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
# How long an example takes says nothing about the code on a machine that does other work too.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
# Hardly anything of what is imported from here on is garbage: to search it all for some, again and
# again, takes a third of the time until the first test.
gc.disable()


def pytest_collection_finish() -> None:
    """What is imported by now stays, and need not be searched for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Every test, and every command that it runs, starts in a folder of its own: what lies where
    pytest was called, such as the models/ of `make demo`, is never read."""
    before = Path.cwd()
    folder = tmp_path_factory.mktemp("empty")
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))  # not that of a person
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.fixture
def quick_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that share the chunks of a text come from the fork server, which has imported torch
    already. A user's are started from nothing, as in tests/tasks/test_bulk.py's test of Ctrl-C."""
    monkeypatch.setattr("dragoman.tasks.workers.get_context", lambda _: tiny.FORK_SERVER)


@pytest.fixture(params=[True, False], ids=["bfloat16", "no-bfloat16"])
def cpu_bfloat16(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether bfloat16 is taken to be the faster one on this CPU, in this process: both ways on
    any CPU, since torch computes in it everywhere."""
    from dragoman.runtimes import device

    flags = frozenset({"amx_bf16"} if request.param else ())
    monkeypatch.setattr(device, "_cpu_flags", lambda: flags)
    return bool(request.param)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A model folder that puts English digits into German, `digits` beside it holding its
    corpus; made once for all workers."""
    from dragoman.training import run

    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent
    with FileLock(base / "trained.lock"):
        folder = base / "trained" / "digits-model"
        if not (folder / "report.md").exists():
            folder.parent.mkdir()
            rate = {"schedule": "cosine", "learning_rate": 0.01, "warmup": 50}
            given = tiny.tables(
                steps=500,
                save_every=250,
                log_every=50,
                batch_tokens=512,
                valid_sentences=20,
                **rate,
            )
            given["data"] = {
                "train": tiny.write_corpus(folder.parent, "digits", 1200, longest=12, turned=False)
            }
            given["model"] |= {"d_model": 32, "d_ff": 64, "dropout": 0.0, "norm_first": True}
            given["tokenizer"]["vocab_size"] = 370  # a piece for each word
            assert run.start(folder, given, print) == "steps"
    return folder
