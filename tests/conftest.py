"""Fixtures that many tests share."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
import tiny

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A model folder that puts English digits into German, `digits` beside it holding its
    corpus; made once for all workers."""
    from dragoman.training import run

    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent
    with open(base / "trained.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
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
