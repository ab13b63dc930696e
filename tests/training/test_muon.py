"""What Muon moves and how far, that it forgets nothing, and the running mean of the weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny
import torch
from torch import Tensor, nn

from dragoman.folder import layout
from dragoman.folder.weights import read_tensors
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.training.distributed import put_moments, put_weights, whole_moments, whole_weights
from dragoman.training.muon import SCALE, Matrix, Muon, MuonSettings, orthogonalised
from dragoman.training.optimizer import build_optimizer
from dragoman.training.training_options import TrainingOptions

MUON = TrainingOptions(optimizer="muon")


def shape() -> ModelConfig:
    return ModelConfig(
        vocab_size=50, d_model=16, d_ff=24, n_heads=2, encoder_layers=1, decoder_layers=1
    )


def step(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    """With gradients that follow from the seed."""
    draw = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=draw)
    for group in optimizer.param_groups:
        group["lr"] = 0.01
    optimizer.step()


def moved(weight: Tensor, gradient: Tensor, parts: int, weight_decay: float = 0.0) -> Tensor:
    """What one step at rate 1 adds to a matrix."""
    parameter = nn.Parameter(weight.clone())
    parameter.grad = gradient
    fixed = MuonSettings(betas=(0.9, 0.98), epsilon=1e-9, weight_decay=weight_decay)
    optimizer = Muon([Matrix(parameter, parts)], [nn.Parameter(torch.zeros(1))], fixed)
    optimizer.param_groups[0]["lr"] = 1.0
    optimizer.step()
    return parameter.detach() - weight


@pytest.mark.parametrize("size", [(3, 32, 32), (2, 16, 64), (2, 64, 16)])
def test_singular_values_come_near_1(size: tuple[int, ...]) -> None:
    found = torch.linalg.svdvals(
        orthogonalised(torch.randn(size, generator=torch.Generator().manual_seed(1)))
    )
    assert found.min() > 0.3
    assert found.max() < 1.3
    assert 0.7 < found.median() < 1.2


def test_a_gradient_of_zero_moves_nothing() -> None:
    assert moved(torch.ones(4, 4), torch.zeros(4, 4), 1).abs().max() == 0


def test_the_length_of_a_step() -> None:
    """Singular values of about 0.4 times the root of the longer side, whatever the gradient's
    length."""
    gradient = torch.randn(24, 16, generator=torch.Generator().manual_seed(2))
    large, small = (moved(torch.zeros(24, 16), gradient * scale, 1) for scale in (100.0, 0.01))
    assert torch.allclose(large, small, atol=1e-4)
    assert torch.linalg.svdvals(large).median() == pytest.approx(SCALE * 24**0.5, rel=0.3)
    assert (large * gradient).sum() < 0


def test_matrices_that_lie_in_one_move_on_their_own() -> None:
    gradient = torch.randn(32, 16, generator=torch.Generator().manual_seed(3))
    halves = [moved(torch.zeros(16, 16), half, 1) for half in gradient.chunk(2)]
    assert torch.allclose(moved(torch.zeros(32, 16), gradient, 2), torch.cat(halves), atol=1e-6)


def test_decay() -> None:
    gradient = torch.randn(8, 8, generator=torch.Generator().manual_seed(4))
    shrunk = moved(torch.ones(8, 8), gradient, 1, weight_decay=0.25) - moved(
        torch.ones(8, 8), gradient, 1
    )
    assert torch.allclose(shrunk, torch.full((8, 8), -0.25), atol=1e-5)


def test_which_weights_are_whose() -> None:
    """The matrices of attention and feed-forward are Muon's; embeddings, biases and norms are
    Adam's."""
    model = Transformer(shape())
    optimizer = build_optimizer(model.named_parameters(), MUON)
    matrices, others = optimizer.param_groups
    assert (
        sum(parameter.numel() for parameter in matrices["params"])
        == 3 * 4 * 16 * 16 + 2 * 2 * 16 * 24
    )
    assert (others["betas"], others["eps"]) == ((0.9, 0.98), 1e-9)
    both = [*matrices["params"], *others["params"]]
    assert {id(parameter) for parameter in both} == {
        id(parameter) for parameter in model.parameters()
    }
    step(model, optimizer, 1)
    kinds = {name: set(optimizer.state[parameter]) for name, parameter in model.named_parameters()}
    assert kinds["encoder.layers.0.attention.key_value.weight"] == {"momentum"}
    assert (
        kinds["encoder.embeddings.tokens.weight"]
        == kinds["decoder.layers.0.after_attention.norm.weight"]
        == {"step", "exp_avg", "exp_avg_sq"}
    )


def test_moments_come_back() -> None:
    """An optimiser that was given another's moments takes the same steps, to the bit."""
    models = [Transformer(shape()), Transformer(shape())]
    first, second = (build_optimizer(model.named_parameters(), MUON) for model in models)
    for seed in (1, 2):
        step(models[0], first, seed)
    put_weights(models[1], whole_weights(models[0]))
    put_moments(
        models[1],
        second,
        {name: value.clone() for name, value in whole_moments(models[0], first).items()},
    )
    for model, optimizer in zip(models, (first, second), strict=True):
        step(model, optimizer, 3)
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        assert torch.equal(one, other)


def test_the_running_mean_is_the_model(tmp_path: Path) -> None:
    """Step by step, the mean of the weights as the steps have left them."""
    (tmp_path / "recipe.toml").write_text(tiny.RECIPE, encoding="utf-8")
    files = [str(tmp_path / name) for name in tiny.write_corpus(tmp_path, "a", 60)]
    folder = tmp_path / "model"
    words = ["train", *files, "--config", str(tmp_path / "recipe.toml"), "--steps", "4"]
    for setting in ("save_every=1", "average=9", "training.ema=0.5"):
        words += ["--set", setting]
    command = tiny.run([*words, "--out", str(folder)], tmp_path)
    assert command.wait() == 0, command.errors
    checkpoints = sorted((folder / "state").glob("step-*"))
    states = [read_tensors(path / layout.WEIGHTS) for path in checkpoints]
    name = "decoder.layers.0.feedforward.inner.weight"
    mean = states[0][name]
    for number, state in enumerate(states[1:], 2):
        mean = torch.lerp(mean, state[name], 1 - min(0.5, number / (number + 10)))
    assert len(states) == 4
    assert torch.allclose(read_tensors(folder / layout.WEIGHTS)[name], mean, atol=1e-7)
    report = (folder / layout.REPORT).read_text(encoding="utf-8")
    assert "running mean of the weights at step 4" in report
