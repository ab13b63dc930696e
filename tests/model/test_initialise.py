"""A model without numbers: all weights lie on the meta device, and torch's compiler stays where it
is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dragoman.model.initialise import blueprint
from dragoman.model.model_config import ModelConfig
from dragoman.model.positions import Positions, sinusoids
from dragoman.model.transformer import Transformer

SHAPE = {"vocab_size": 11, "d_model": 8, "d_ff": 16, "n_heads": 2, "max_length": 12}


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_weights_have_shapes_and_no_numbers(positions: str) -> None:
    config = ModelConfig(**SHAPE, positions=positions)  # type: ignore[arg-type]
    with blueprint():
        model = Transformer(config)
    for name, weight in model.named_parameters():
        assert weight.is_meta or name.endswith("rotary.frequencies")  # which are computed
    drawn = Transformer(config)
    assert [weight.shape for weight in model.parameters()] == [
        weight.shape for weight in drawn.parameters()
    ]


def test_tables_are_computed() -> None:
    with blueprint():
        positions = Positions(12, 8)
    assert torch.equal(positions.table, sinusoids(12, 8))
    assert torch.randn(1).device.type == "cpu"  # outside, all is as it was


def test_a_model_is_loaded_without_the_compiler(trained: Path) -> None:
    """It takes longer to load than everything else together."""
    program = (
        "import sys; from dragoman import Translator\n"
        "for runtime in ('int8', 'torch'):\n"
        f"    found = Translator.load({str(trained)!r}, 'cpu', runtime).translate('one two')\n"
        "    assert found.text == 'eins zwei', found\n"
        "    assert 'torch._dynamo' not in sys.modules, runtime\n"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
