"""Learning rates at steps worked out by hand, and which weights decay."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from dragoman.errors import OptionError
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.training.optimizer import build_optimizer, learning_rate, update_running_mean
from dragoman.training.training_options import TrainingOptions


@pytest.mark.parametrize(
    ("step", "rate"),
    [
        (1, 1.7469281e-7),  # 512^-0.5 * 4000^-1.5 = 0.0441941738 * 3.9528471e-6
        (4000, 6.9877125e-4),  # 0.0441941738 / 63.2455532
        (16_000, 3.4938562e-4),  # half of that: the root of four times the steps
    ],
)
def test_the_rate_of_the_paper(step: int, rate: float) -> None:
    assert learning_rate(step, TrainingOptions(), 512) == pytest.approx(rate, rel=1e-7)
    assert learning_rate(step, TrainingOptions(learning_rate=2.0), 512) == pytest.approx(
        2 * rate, rel=1e-7
    )
    assert learning_rate(step, TrainingOptions(), 2048) == pytest.approx(rate / 2, rel=1e-7)


SCHEDULES: list[tuple[str, dict[int, float]]] = [
    ("inverse_sqrt", {1: 1e-5, 50: 5e-4, 100: 1e-3, 400: 5e-4, 10_000: 1e-4}),
    ("cosine", {1: 1e-5, 50: 5e-4, 100: 1e-3, 350: 8.5355339e-4, 600: 5e-4, 1100: 0.0, 5000: 0.0}),
    ("constant", {1: 1e-5, 50: 5e-4, 100: 1e-3, 5000: 1e-3}),
]


@pytest.mark.parametrize(("schedule", "rates"), SCHEDULES)
def test_the_other_schedules(schedule: str, rates: dict[int, float]) -> None:
    """100 steps of warm-up to 0.001; the cosine ends at step 1,100, and is (1 + cos 45°) / 2
    high after a quarter of it."""
    options = TrainingOptions(schedule=schedule, learning_rate=1e-3, warmup=100, steps=1100)
    found = {step: learning_rate(step, options, 512) for step in rates}
    assert found == pytest.approx(rates, abs=1e-11)


def test_a_warm_up_longer_than_the_run() -> None:
    options = TrainingOptions(schedule="cosine", learning_rate=1.0, warmup=100, steps=50)
    assert learning_rate(50, options, 512) == pytest.approx(0.5)
    assert learning_rate(100, options, 512) == pytest.approx(1.0)


def test_a_warm_up_longer_than_the_minutes() -> None:
    """The rate falls with the time all the same."""
    options = TrainingOptions(schedule="cosine", learning_rate=1.0, warmup=100, minutes=1)
    assert [learning_rate(50, options, 512, seconds) for seconds in (0, 30, 60)] == pytest.approx(
        [0.5, 0.25, 0.0]
    )


def one_step(options: TrainingOptions, gradient: float) -> dict[str, float]:
    """Weights of 1, after a step at rate 0.5."""
    model = nn.ModuleDict({"matrix": nn.Linear(1, 1), "tokens": nn.Embedding(1, 1)})
    for parameter in model.parameters():
        nn.init.ones_(parameter)
        parameter.grad = torch.full_like(parameter, gradient)
    optimizer = build_optimizer(model.named_parameters(), options)
    for group in optimizer.param_groups:
        group["lr"] = 0.5
    optimizer.step()
    return {name: parameter.item() for name, parameter in model.named_parameters()}


def test_adamw_shrinks_matrices_alone() -> None:
    """Decay 0.1 at rate 0.5 takes a twentieth of a weight whose gradient is zero."""
    found = one_step(TrainingOptions(optimizer="adamw", weight_decay=0.1), 0.0)
    assert found == pytest.approx({"matrix.weight": 0.95, "matrix.bias": 1.0, "tokens.weight": 1.0})


def test_the_first_step_of_adam_has_the_length_of_the_rate() -> None:
    for options in (TrainingOptions(), TrainingOptions(optimizer="adamw")):
        assert one_step(options, -3.0) == pytest.approx(
            dict.fromkeys(["matrix.weight", "matrix.bias", "tokens.weight"], 1.5)
        )


def test_adamw_on_the_model() -> None:
    """Of a model the matrices of attention and feed-forward decay: 3 attentions of 4 d², 2
    feed-forwards of 2 d d_ff."""
    model = Transformer(
        ModelConfig(
            vocab_size=50, d_model=8, d_ff=24, n_heads=2, encoder_layers=1, decoder_layers=1
        )
    )
    optimizer = build_optimizer(
        model.named_parameters(), TrainingOptions(optimizer="adamw", weight_decay=0.01)
    )
    decayed, others = optimizer.param_groups
    assert (
        sum(parameter.numel() for parameter in decayed["params"]) == 3 * 4 * 8 * 8 + 2 * 2 * 8 * 24
    )
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.01, 0.0)
    both = [*decayed["params"], *others["params"]]
    assert {id(parameter) for parameter in both} == {
        id(parameter) for parameter in model.parameters()
    }
    assert len(both) == len(list(model.parameters()))


def test_adam_as_in_the_paper() -> None:
    optimizer = build_optimizer([("a", nn.Parameter(torch.zeros(2)))], TrainingOptions())
    (group,) = optimizer.param_groups
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": 0}, "training.steps is 0; it must be at least 1"),
        ({"warmup": 0}, "training.warmup is 0"),
        ({"minutes": -1.0}, "training.minutes is -1.0; it cannot be negative"),
        ({"seed": -1}, "training.seed is -1"),
        ({"seed": 2**63}, "training.seed is 9223372036854775808; it must be less than"),
        ({"beta2": 1.0}, "training.beta2 is 1.0; it must lie between 0 and 1"),
        ({"label_smoothing": 1.0}, "training.label_smoothing"),
        ({"learning_rate": 0.0}, "must be above 0"),
        ({"weight_decay": 0.1}, "goes with optimizer=adamw or muon"),
        ({"optimizer": "muon", "shard": True}, "training.shard splits the matrices"),
        ({"ema": 1.0}, "training.ema is 1.0; it must lie between 0 and 1"),
        (
            {"select": "bleu", "valid_sentences": 0},
            "training.select=bleu needs outputs for the valid set",
        ),
        (
            {"schedule": "cosin"},
            "training.schedule is 'cosin'; it must be one of .*; did you mean 'cosine'",
        ),
        ({"optimizer": "sgd"}, "training.optimizer is 'sgd'"),
        ({"precision": "fp16"}, "training.precision is 'fp16'"),
        ({"compile": "yes"}, "training.compile is 'yes'"),
    ],
)
def test_options_are_checked(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        TrainingOptions(**changes)


def test_the_running_mean_keeps_most_of_what_it_was() -> None:
    """At step 1 a mean moves by 10/11 of the way, and late in a run by 1 - decay of it."""
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([weight])
    update_running_mean(optimizer, [weight], 0.9, 1)
    with torch.no_grad():
        weight.fill_(11.0)
    update_running_mean(optimizer, [weight], 0.9, 1)
    assert optimizer.state[weight]["ema"].item() == pytest.approx(10.0)
    with torch.no_grad():
        weight.fill_(20.0)
    update_running_mean(optimizer, [weight], 0.9, 10**6)
    assert optimizer.state[weight]["ema"].item() == pytest.approx(11.0)
