"""What a ModelConfig takes and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import OptionError
from dragoman.model.families import SHAPES
from dragoman.model.model_config import ModelConfig


def test_the_defaults_are_the_papers_base_model() -> None:
    assert ModelConfig() == ModelConfig(**SHAPES["base"])
    assert (ModelConfig().d_model, ModelConfig().d_ff, ModelConfig().n_heads) == (512, 2048, 8)


@pytest.mark.parametrize("name", SHAPES)
def test_every_named_shape_is_valid(name: str) -> None:
    config = ModelConfig(vocab_size=100, **SHAPES[name])
    assert config.d_ff >= 2 * config.d_model
    assert config.d_model // config.n_heads in (32, 64)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"d_model": 0}, "d_model"),
        ({"d_model": 100, "n_heads": 8}, "multiple of n_heads"),
        ({"d_model": 9, "n_heads": 3}, "even"),
        ({"n_heads": 0}, "n_heads"),
        ({"d_ff": -1}, "d_ff"),
        ({"encoder_layers": -1}, "encoder_layers"),
        ({"decoder_layers": 10**6}, "decoder_layers"),
        ({"vocab_size": -1}, "vocab_size"),
        ({"source_vocab_size": 10**9}, "source_vocab_size"),
        ({"max_length": 0}, "max_length"),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout": -0.1}, "dropout"),
        ({"dropout": float("nan")}, "dropout"),
        ({"encoder_layers": 0, "decoder_layers": 0}, "one of them"),
        ({"encoder_layers": 0, "classes": 2}, "encoder_layers"),
        (
            {"encoder_layers": 0, "input": "image", "input_size": 8, "patch_size": 4},
            "encoder_layers",
        ),
        ({"output_transform": True}, "decoder_layers"),
        ({"input": "smell"}, "tokens, image, sound"),
        ({"input": "image", "input_size": 8}, "patch_size"),
        ({"input": "image", "input_size": 8, "patch_size": 9}, "patch_size"),
        ({"input": "image", "input_size": 10**9, "patch_size": 4}, "input_size"),
        ({"input": "sound", "input_size": 80}, "source_length"),
        ({"classes": 10**9}, "classes"),
    ],
)
def test_a_bad_value_is_refused_by_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        ModelConfig(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"decoder_layers": 0},
        {"encoder_layers": 0},
        {"classes": 2},
        {"decoder_layers": 0, "output_transform": True},
        {"input": "sound", "input_size": 8, "source_length": 10},
        {"activation": "gelu"},
    ],
)
def test_only_the_model_of_the_paper_departs_in_nothing(fields: dict[str, Any]) -> None:
    assert ModelConfig(norm_first=True, d_model=64).departures == ()
    assert ModelConfig(**fields).departures


def test_departures_are_named_with_their_values() -> None:
    config = ModelConfig(positions="learned", encoder_layers=0)
    assert config.departures == ("encoder_layers 0", "positions learned")
