"""The loop: steps that do not depend on how memory is shared out, losses that are no numbers,
and which weights are kept."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from safetensors.torch import load_file
from torch import Tensor

from dragoman.data.batches import Batch, PackedBatch
from dragoman.errors import TrainingError
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.training import compute, run
from dragoman.training.distributed import World
from dragoman.training.loss import ModelLoss
from dragoman.training.stepper import Stepper
from dragoman.training.stopping import StopRule
from dragoman.training.training_options import TrainingOptions
from dragoman.training.validation import Quality, ValidSet

Forward = Any


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return tiny.write_corpus(tmp_path_factory.mktemp("corpus"), "a", 120)


def quiet(sentence: str) -> None:
    pass


def train(files: list[str], folder: Path, held_out: int = 1000, **training: Any) -> str:
    """A run without dropout; the reason why it ended."""
    given = tiny.tables(**{"steps": 12, **training})
    given["data"] = {"train": files, "held_out": held_out}
    given["model"]["dropout"] = 0.0
    return run.start(folder, given, quiet)


@pytest.fixture(scope="module")
def plain(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain") / "model"
    assert train(files, folder) == "steps"
    return folder


def assert_same_losses(folder: Path, plain: Path) -> None:
    np.testing.assert_allclose(tiny.losses(folder), tiny.losses(plain), rtol=1e-5)


def test_parts_of_a_batch_add_up_to_the_batch(
    files: list[str], plain: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    sizes: list[int] = []
    forward = ModelLoss.forward

    def counted(self: ModelLoss, batch: Batch) -> Any:
        if self.model.training:
            sizes.append(max(batch.source.numel(), batch.target.numel()))
        return forward(self, batch)

    monkeypatch.setattr(ModelLoss, "forward", counted)
    train(files, tmp_path / "model", micro_tokens=70)
    assert max(sizes) <= 70
    assert len(sizes) > 3 * 12
    assert_same_losses(tmp_path / "model", plain)


def test_the_precision_follows_the_cpu(
    files: list[str],
    plain: Path,
    tmp_path: Path,
    cpu_bfloat16: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`auto` is bfloat16 where the CPU has instructions for it and float32 elsewhere, where the
    losses are those of a run that names float32."""
    said: list[str] = []
    given = tiny.tables(steps=12, precision="auto")
    given["data"] = {"train": files}
    given["model"]["dropout"] = 0.0
    run.start(tmp_path / "model", given, said.append)
    (introduction,) = (line for line in said if "On cpu, " in line)
    assert f"On cpu, {'bfloat16' if cpu_bfloat16 else 'float32'}, " in introduction
    same = tiny.losses(tmp_path / "model") == tiny.losses(plain)
    assert same != cpu_bfloat16
    np.testing.assert_allclose(tiny.losses(tmp_path / "model"), tiny.losses(plain), rtol=2e-3)


def test_the_paths_can_be_exchanged_at_a_checkpoint(
    files: list[str], tmp_path: Path, monkeypatch: Any
) -> None:
    """What a GPU does, without compiling it, in parts, all the way; and the same begun so and
    ended in padded rows."""
    layouts = []
    forward = ModelLoss.forward

    def seen(self: ModelLoss, batch: Any) -> Any:
        if self.model.training:
            layouts.append(type(batch))
        return forward(self, batch)

    monkeypatch.setattr(ModelLoss, "forward", seen)
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **_: None)
    monkeypatch.setattr(compute, "_compiles", lambda options, device: True)
    train(files, tmp_path / "whole", micro_tokens=100)
    train(files, tmp_path / "begun", steps=6)
    assert set(layouts) == {PackedBatch}
    monkeypatch.setattr(compute, "_compiles", lambda options, device: False)
    run.resume(tmp_path / "begun", {"training": {"steps": 12}}, quiet)
    assert set(layouts) == {PackedBatch, Batch}
    assert_same_losses(tmp_path / "begun", tmp_path / "whole")


def test_r_drop_trains(files: list[str], plain: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Each pair is seen twice. Without dropout the two passes agree, and the run is the same."""
    seen: list[tuple[int, float]] = []
    forward = ModelLoss.forward

    def counted(self: ModelLoss, batch: Batch) -> Any:
        if self.model.training:
            half = len(batch.source) // 2
            assert batch.source[:half].equal(batch.source[half:])
            seen.append((len(batch.source) % 2, self.r_drop))
        return forward(self, batch)

    monkeypatch.setattr(ModelLoss, "forward", counted)
    train(files, tmp_path / "model", r_drop=5.0)
    assert set(seen) == {(0, 5.0)}
    assert_same_losses(tmp_path / "model", plain)


def test_the_rate_follows_from_the_clock_of_all(
    files: list[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(World, "agree", lambda self, value: 45.0)
    train(
        files,
        tmp_path / "model",
        minutes=1,
        schedule="cosine",
        learning_rate=1e-3,
        warmup=1,
        log_every=4,
    )
    rates = [line["lr"] for line in tiny.metrics(tmp_path / "model") if "lr" in line]
    assert rates[:2] == [pytest.approx(1e-3 * 0.5 * (1 + math.cos(0.75 * math.pi)))] * 2


def test_too_little_memory_makes_smaller_parts(
    files: list[str],
    plain: Path,
    tmp_path: Path,
    monkeypatch: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A device that holds 130 tokens, for batches of up to 256: one halving is enough, and it is
    not done again for the batches that were made ahead."""
    forward = ModelLoss.forward

    def limited(self: ModelLoss, batch: Batch) -> Any:
        if self.model.training and max(batch.source.numel(), batch.target.numel()) > 130:
            raise torch.OutOfMemoryError("no memory")
        return forward(self, batch)

    monkeypatch.setattr(ModelLoss, "forward", limited)
    assert train(files, tmp_path / "model") == "steps"
    assert_same_losses(tmp_path / "model", plain)
    said = [
        line for line in capsys.readouterr().err.splitlines() if line.startswith("out of memory")
    ]
    assert len(said) == 1
    assert "the batch stays the same" in said[0]


def test_what_was_gathered_before_the_memory_ran_out_is_dropped(
    files: list[str], plain: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """Once a part fails after another part of its batch has left its gradients, when ten parts
    are done."""
    forward = ModelLoss.forward
    calls = iter(range(10_000))
    failed: list[bool] = []

    def once(self: ModelLoss, *arguments: Any) -> Any:
        if (
            self.model.training
            and next(calls) > 10
            and self.model.output_weight.grad is not None
            and not failed
        ):
            failed.append(True)
            raise torch.OutOfMemoryError("no memory")
        return forward(self, *arguments)

    monkeypatch.setattr(ModelLoss, "forward", once)
    assert train(files, tmp_path / "model", micro_tokens=70) == "steps"
    assert failed
    assert_same_losses(tmp_path / "model", plain)


def test_memory_for_not_even_one_pair(files: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    def never(self: ModelLoss, *arguments: Any) -> Any:
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(ModelLoss, "forward", never)
    with pytest.raises(TrainingError, match="even one pair at a time does not fit"):
        train(files, tmp_path / "model")


@pytest.fixture
def bad_step(monkeypatch: Any) -> dict[str, Any]:
    """At `step`, the loss is multiplied by `factor`, or the gradient alone where `gradient` is
    set."""
    chosen: dict[str, Any] = {"step": 0, "factor": float("nan"), "gradient": False}
    gradients = Stepper.gradients

    def spoilt(self: Stepper, work: Any, step: int, *others: Any) -> Tensor:
        sums = gradients(self, work, step, *others)
        if step == chosen["step"]:
            for parameter in self.model.parameters():
                assert parameter.grad is not None
                parameter.grad.mul_(chosen["factor"])
            return sums if chosen["gradient"] else sums * chosen["factor"]
        return sums

    monkeypatch.setattr(Stepper, "gradients", spoilt)
    return chosen


@pytest.mark.parametrize("log_every", [1, 4, 100])
def test_a_loss_that_is_no_number(
    files: list[str], plain: Path, tmp_path: Path, bad_step: dict[str, Any], log_every: int
) -> None:
    """Whether a line of metrics or a checkpoint notices it first, nothing of it is kept, and a
    better run can go on."""
    folder = tmp_path / "model"
    bad_step["step"] = 8
    with pytest.raises(
        TrainingError, match=r"the loss is not a number at step \d+; the last checkpoint is intact"
    ):
        train(files, folder, log_every=log_every)
    assert "NaN" not in (folder / "metrics.jsonl").read_text(encoding="utf-8")
    assert [path.name for path in (folder / "state").glob("s*-0*")] == ["step-00000006"]
    bad_step["step"] = 0
    assert run.resume(folder, {"training": {"log_every": 1}}, quiet) == "steps"
    assert tiny.losses(folder)[-4:] == tiny.losses(plain)[-4:]


def test_a_weight_that_is_no_number(
    files: list[str], tmp_path: Path, bad_step: dict[str, Any]
) -> None:
    """The loss of the step before a checkpoint was fine; its gradient was not."""
    bad_step.update(step=12, factor=float("inf"), gradient=True)
    with pytest.raises(
        TrainingError, match="a weight is not a number at step 12; the last checkpoint is intact"
    ):
        train(files, tmp_path / "model")
    weights = load_file(tmp_path / "model" / "state" / "step-00000006" / "model.safetensors")
    assert all(tensor.isfinite().all() for tensor in weights.values())
    assert not (tmp_path / "model" / "state" / "step-00000012").exists()


@pytest.fixture
def qualities(monkeypatch: Any) -> list[float]:
    """What the validations find, in order; the last are the average's and, where it lost, the
    best's."""
    script: list[float] = []

    def scripted(self: ValidSet, *_: Any) -> Quality:
        value = script.pop(0)
        return Quality(value, {"valid_loss": -value})

    monkeypatch.setattr(ValidSet, "quality", scripted)
    return script


def weights_of(folder: Path, *names: str) -> list[dict[str, Tensor]]:
    return [load_file(folder / name / "model.safetensors") for name in names]


def test_patience(files: list[str], tmp_path: Path, qualities: list[float]) -> None:
    """The second of five is the best; with patience 2 the run ends after the fourth, and the
    best of all is the model."""
    folder = tmp_path / "model"
    qualities += [1.0, 3.0, 2.0, 2.9, 1.5, 3.0]
    assert train(files, folder, steps=100, save_every=2, patience=2, average=5) == "patience"
    assert [(line["step"], line["best"]) for line in tiny.metrics(folder) if "best" in line] == [
        (2, True),
        (4, True),
        (6, False),
        (8, False),
    ]
    best, state = weights_of(folder, ".", "state/step-00000004")
    assert all(torch.equal(best[name], state[name]) for name in state)
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert "8 steps, when validations no longer improved, in 0:" in report
    assert "The model is the checkpoint of step 4, valid loss -3.0000" in report


def test_no_patience(files: list[str], tmp_path: Path, qualities: list[float]) -> None:
    qualities += [3.0, 2.0, 1.0, 0.0, -1.0, -2.0, 0.0, 3.0]
    assert train(files, tmp_path / "model", save_every=2) == "steps"


def test_the_average_where_it_is_better(
    files: list[str], tmp_path: Path, qualities: list[float]
) -> None:
    folder = tmp_path / "model"
    qualities += [1.0, 3.0, 2.0, 2.5, 3.1]
    assert train(files, folder, save_every=3, average=3) == "steps"
    names = [f"state/step-{step:08d}" for step in (6, 9, 12)]
    model, *last = weights_of(folder, ".", *names)
    assert sorted(path.name for path in (folder / "state").glob("s*-0*")) == [
        name[6:] for name in names
    ]
    for name, tensor in model.items():
        mean = torch.stack([weights[name] for weights in last]).double().mean(0)
        torch.testing.assert_close(tensor.double(), mean, rtol=1e-6, atol=1e-7)
    assert "The model is the average of 3 checkpoints up to step 12" in (
        folder / "report.md"
    ).read_text(encoding="utf-8")
    # What comes later must be better than that average to take its place.
    qualities += [3.05, 2.0, 3.1]
    before = (folder / "model.safetensors").read_bytes()
    assert run.resume(folder, {"training": {"steps": 15}}, quiet) == "steps"
    assert (folder / "model.safetensors").read_bytes() == before
    assert "The model is the average of 3 checkpoints up to step 12" in (
        folder / "report.md"
    ).read_text(encoding="utf-8")


def test_a_limit_of_minutes(files: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    assert train(files, folder, steps=1_000_000, save_every=1_000_000, minutes=0.01) == "minutes"
    last = tiny.losses(folder)[-1][0]
    assert [step for step, _, _ in tiny.validations(folder)] == [last]
    assert 0.6 <= tiny.metrics(folder)[-2]["seconds"] < 20
    assert (folder / "model.safetensors").exists()


def test_a_limit_that_is_over_before_the_first_step(files: list[str], tmp_path: Path) -> None:
    assert train(files, tmp_path / "model", minutes=1e-9) == "minutes"
    assert [step for step, _, _ in tiny.losses(tmp_path / "model")] == [1]


def test_without_a_valid_set(files: list[str], tmp_path: Path) -> None:
    from dragoman.tasks.translate import Translator

    folder = tmp_path / "model"
    assert train(files, folder, held_out=0, patience=1) == "steps"
    assert tiny.validations(folder) == []
    model, first, second = weights_of(folder, ".", "state/step-00000006", "state/step-00000012")
    for name, tensor in model.items():
        torch.testing.assert_close(tensor, (first[name] + second[name]) / 2)
    assert len(Translator.load(folder, "cpu").translate(["one two", ""])) == 2


@pytest.mark.parametrize("seed", [0, 20_251_115, 2**63 - 1])
def test_any_seed(files: list[str], tmp_path: Path, seed: int) -> None:
    given = tiny.tables(steps=2, save_every=2, valid_sentences=0, seed=seed)  # with dropout
    given["data"] = {"train": files}
    assert run.start(tmp_path / "model", given, quiet) == "steps"


def test_the_window_of_a_line_goes_on_over_a_stop(
    files: list[str], tmp_path: Path, monkeypatch: Any
) -> None:
    """Lines every 5 steps, a stop at step 8: the line of step 10 tells of steps 6 to 10 all the
    same."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(files, whole, log_every=5, steps=10)
    reason = StopRule.reason
    with monkeypatch.context() as patch:
        patch.setattr(
            StopRule,
            "reason",
            lambda self, progress, signals: (
                "SIGTERM" if progress.step == 8 else reason(self, progress, signals)
            ),
        )
        assert train(files, broken, log_every=5, steps=10) == "SIGTERM"
    assert run.resume(broken, {}, quiet) == "steps"
    assert tiny.losses(broken) == tiny.losses(whole)


def test_a_folder_without_pairs_is_refused(files: list[str], tmp_path: Path) -> None:
    """Rather than going round for ever."""
    folder = tmp_path / "model"
    train(files, folder, steps=2)
    for side in ("source", "target"):
        (folder / "state" / "data" / "train" / f"{side}.bin").write_bytes(b"")
        np.zeros(1, "<i8").tofile(folder / "state" / "data" / "train" / f"{side}.idx")
    manifest = folder / "state" / "data" / "manifest.json"
    values = json.loads(manifest.read_text(encoding="utf-8"))
    values["train"][0]["pairs"] = 0
    manifest.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(TrainingError, match="holds no training pairs"):
        run.resume(folder, {"training": {"steps": 4}}, quiet)


@pytest.mark.parametrize(("clip", "norm"), [(0.5, 0.5), (1e6, 20.0), (0.0, 20.0)])
def test_gradients_are_clipped_by_their_norm(clip: float, norm: float) -> None:
    """All gradients together have norm 20. The first moment of Adam is a tenth of what it was
    given, which tells what is left of them."""
    model = Transformer(ModelConfig(9, d_model=8, d_ff=8, n_heads=1))
    options = TrainingOptions(clip=clip, beta1=0.9)
    device = torch.device("cpu")
    plain = compute.Compute(device, torch.float32, compiled=False, packed=False)
    stepper = Stepper(model, options, World(device), plain)
    count = sum(weight.numel() for weight in model.parameters())
    for weight in model.parameters():
        weight.grad = torch.full_like(weight, 20.0 / math.sqrt(count))
    stepper.update(1e-3, 1)
    moments = [stepper.optimizer.state[weight]["exp_avg"] for weight in model.parameters()]
    squares = sum(float((moment / 0.1).square().sum()) for moment in moments)
    assert math.sqrt(squares) == pytest.approx(norm, rel=1e-4)
