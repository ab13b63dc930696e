"""A run of captured graphs against the same run in padded rows, compiled by nobody. Needs a GPU
with Triton."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch

from dragoman.kernels.jit import HAS_TRITON
from dragoman.training import run
from dragoman.training.captured_steps import Graphs

NO_GPU = not torch.cuda.is_available() or not HAS_TRITON
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(NO_GPU, reason="needs a GPU with Triton")]


@pytest.mark.parametrize("r_drop", [0.0, 2.0])
def test_the_same_losses_as_without_graphs(tmp_path: Path, monkeypatch: Any, r_drop: float) -> None:
    """The second half of the run goes on from the same checkpoint, once by each path. At the
    rate that such a small model would have (0.03) a difference of 1e-6 in the weights grows to
    12% of the loss; at a twentieth of it, it stays where it is."""
    replays: list[int] = []
    call = Graphs.__call__

    def counted(self: Graphs, *arguments: Any) -> Any:
        replays.append(len(self._captured))
        return call(self, *arguments)

    monkeypatch.setattr(Graphs, "__call__", counted)
    given = tiny.tables(
        steps=20, device="cuda", compile="on", valid_sentences=0, r_drop=r_drop, learning_rate=0.05
    )
    given["data"] = {"train": tiny.write_corpus(tmp_path, "a", 400)}
    given["model"].update({"dropout": 0.0, "d_model": 64, "d_ff": 64})
    run.start(tmp_path / "m", given, lambda _: None)
    (tmp_path / "other").mkdir()
    import shutil

    shutil.copytree(tmp_path / "m", tmp_path / "other" / "m")
    for folder, path in ((tmp_path / "m", "on"), (tmp_path / "other" / "m", "off")):
        run.resume(folder, {"training": {"steps": 60, "compile": path}}, lambda _: None)
    assert max(replays) > 1
    np.testing.assert_allclose(
        tiny.losses(tmp_path / "m"), tiny.losses(tmp_path / "other" / "m"), rtol=1e-3
    )


def test_dropout_differs_from_step_to_step(tmp_path: Path) -> None:
    """The seeds are drawn outside of the graph: two replays of one batch do not drop the same."""
    from dragoman.data.batches import Pairs
    from dragoman.training.distributed import World
    from dragoman.training.trainer import Trainer

    seen: list[Trainer] = []
    given = tiny.tables(steps=12, device="cuda", compile="on", valid_sentences=0)
    given["data"] = {"train": tiny.write_corpus(tmp_path, "a", 400)}
    given["model"].update({"dropout": 0.5, "d_model": 64, "d_ff": 64})
    original = Trainer.__init__

    def kept(self: Trainer, *arguments: Any) -> None:
        original(self, *arguments)
        seen.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "__init__", kept)
        run.start(tmp_path / "m", given, lambda _: None)
    trainer = seen[0]
    assert isinstance(trainer.world, World)
    work = next(trainer.batches.walk(trainer.progress))
    assert isinstance(work.examples, Pairs)
    trainer.stepper._graphs.forget()  # type: ignore[union-attr]
    sums = []
    for seed in (1, 1, 1, 2, 1):
        torch.manual_seed(seed)
        sums.append(trainer.stepper._accumulate(work.parts, work.tokens)[0].item())
    assert sums[2] == pytest.approx(sums[4], rel=1e-5)
    assert sums[3] != pytest.approx(sums[2], rel=1e-4)
