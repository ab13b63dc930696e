"""A preset's name stands for the paper's settings; `auto` picks more for more text, and says
what it picked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.config import build, load_toml, merge, to_toml
from dragoman.errors import OptionError
from dragoman.training.presets import automatic, named, resolve
from dragoman.training.training_options import PRESETS, Options

EDGES = [9_999, 10_000, 10_001, 49_999, 50_000, 199_999, 200_000, 999_999, 1_000_000]
PAIRS = [int(pairs) for pairs in np.geomspace(1_000, 10_000_000, 150)] + EDGES


def options_of(tables: dict[str, Any]) -> Options:
    return build(Options, tables)


@pytest.mark.parametrize(
    ("name", "model", "training"),
    [
        (
            "base",
            {"d_model": 512, "d_ff": 2048, "n_heads": 8, "dropout": 0.1},
            {"steps": 100_000, "average": 5},
        ),
        (
            "big",
            {"d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3},
            {"steps": 300_000, "average": 20},
        ),
    ],
)
def test_base_and_big_are_the_papers(
    name: str, model: dict[str, Any], training: dict[str, Any]
) -> None:
    """Table 3 and §5.1 to §6.1; checkpoints came every ten minutes, at 0.4 s a step for base and
    1.0 s for big."""
    options = options_of(named(name))
    expected_model = {**model, "encoder_layers": 6, "decoder_layers": 6, "norm_first": False}
    assert {key: getattr(options.model, key) for key in expected_model} == expected_model
    expected = {
        **training,
        "save_every": 1500 if name == "base" else 600,
        "batch_tokens": 25_000,
        "optimizer": "adam",
        "beta1": 0.9,
        "beta2": 0.98,
        "epsilon": 1e-9,
        "weight_decay": 0.0,
        "schedule": "paper",
        "learning_rate": 1.0,
        "warmup": 4000,
        "clip": 0.0,
        "label_smoothing": 0.1,
        "patience": 0,
        "minutes": 0.0,
    }
    assert {key: getattr(options.training, key) for key in expected} == expected
    assert (options.tokenizer.kind, options.tokenizer.vocab_size, options.tokenizer.joint) == (
        "bpe",
        37_000,
        True,
    )
    assert options.tokenizer.sampling == 0.0
    assert options.preset == name


def weights_in_layers(options: Options) -> int:
    model = options.model
    return model.encoder_layers * (4 * model.d_model**2 + 2 * model.d_model * model.d_ff)


@pytest.mark.parametrize("on_gpu", [False, True])
def test_auto_picks_no_less_for_more_text(on_gpu: bool) -> None:
    found = [options_of(automatic(pairs, on_gpu)[0]) for pairs in sorted(PAIRS)]
    for rising in (
        [weights_in_layers(options) for options in found],
        [options.tokenizer.vocab_size for options in found],
        [options.training.batch_tokens for options in found],
        [-options.model.dropout for options in found],
    ):
        assert rising == sorted(rising)
    # The tokens of the whole run as well, to within the batch that rounding may cost.
    tokens = np.array([options.training.steps * options.training.batch_tokens for options in found])
    assert (np.diff(tokens) >= -25_000).all()


@pytest.mark.parametrize("on_gpu", [False, True])
def test_auto_is_sane(on_gpu: bool) -> None:
    for pairs in PAIRS:
        options = options_of(automatic(pairs, on_gpu)[0])
        training = options.training
        assert 500 <= training.steps <= 200_000
        assert 1 <= training.warmup <= training.steps / 2
        assert 5 <= training.steps / training.save_every <= 150
        assert training.save_every * training.patience <= 2 * training.steps  # patience can matter
        assert 0.1 <= options.model.dropout <= 0.3
        assert (
            4 <= training.steps * training.batch_tokens / (25 * pairs) <= 100
        )  # passes over the text
        assert options.tokenizer.vocab_size <= 2 * pairs


def test_a_gpu_never_gets_less_than_a_cpu() -> None:
    for pairs in PAIRS:
        on_cpu, on_gpu = (options_of(automatic(pairs, gpu)[0]) for gpu in (False, True))
        assert weights_in_layers(on_gpu) >= weights_in_layers(on_cpu)


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("pairs", [1_000, 29_000, 120_000, 600_000, 10_000_000])
def test_auto_says_what_it_picked(pairs: int, on_gpu: bool) -> None:
    tables, why = automatic(pairs, on_gpu)
    training = tables["training"]
    for said in (
        f"{pairs:,} pairs",
        "a GPU" if on_gpu else "a CPU",
        f"{tables['tokenizer']['vocab_size']:,} pieces",
        f"dropout {tables['model']['dropout']}",
        f"batches of {training['batch_tokens']:,} tokens",
        f"{training['steps']:,} steps",
        f"{training['patience']} validations",
    ):
        assert said in why
    (shape,) = [name for name in ("tiny", "small", "base", "big") if f"the {name} shape" in why]
    assert named(shape)["model"]["d_model"] == tables["model"]["d_model"]
    assert "\n" not in why


def test_what_was_named_is_checked_with_what_the_task_brings() -> None:
    """AdamW, which has a decay, comes with the task."""
    given = {"task": "lm", "training": {"weight_decay": 0.05}}
    options, _ = resolve(given, pairs=1000, on_gpu=False)
    assert (options.training.optimizer, options.training.weight_decay) == ("adamw", 0.05)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"task": "lm", "training": {"steps": "many"}}, "training.steps"),
        ({"task": "lm", "data": {"block": "long"}}, "data.block"),
        ({"task": "image", "model": {"input_size": "large"}}, "model.input_size"),
        ({"task": "lm", "data": 5}, "data"),
        ({"task": "singing"}, "task is 'singing'"),
        ({"preset": "huge"}, "preset is 'huge'"),
        ({"task": "lm", "traning": {}}, "unknown option 'traning'"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        resolve(given, pairs=1000, on_gpu=False)


@pytest.mark.parametrize("preset", PRESETS)
def test_resolved_options_read_back(preset: str, tmp_path: Path) -> None:
    tables = automatic(29_000, False)[0] if preset == "auto" else named(preset)
    files = {
        "data": {"train": ['a "quoted" \\ name.en', "ü\n.de"], "weights": [0.5]},
        "training": {"epsilon": 1e-12},
    }
    options = options_of(merge(tables, files))
    (tmp_path / "training.toml").write_text(to_toml(options), encoding="utf-8")
    assert build(Options, load_toml(tmp_path / "training.toml")) == options


def test_auto_follows_what_was_asked() -> None:
    def training(**given: Any) -> tuple[str, str, float]:
        found = resolve({"training": given}, 29_000, on_gpu=False)[0].training
        return found.optimizer, found.schedule, found.learning_rate

    assert training() == ("muon", "inverse_sqrt", 2e-3)
    assert training(minutes=30.0) == ("muon", "cosine", 2e-3)
    assert training(minutes=30.0, schedule="constant") == ("muon", "constant", 2e-3)
    assert training(shard=True) == ("adam", "inverse_sqrt", 1e-3)
    assert training(optimizer="adam") == ("adam", "inverse_sqrt", 1e-3)
    assert training(optimizer="adam", learning_rate=5e-4) == ("adam", "inverse_sqrt", 5e-4)
