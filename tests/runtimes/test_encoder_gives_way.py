"""An encoder that gives way: between its layers and between some sentences and the next, with the
numbers of one that does not."""

from __future__ import annotations

import pytest
import torch

from dragoman.decoding.giving_way import giving_way
from dragoman.folder import quantised
from dragoman.kernels import native
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8, native_int8
from dragoman.runtimes.torch_runtime import TorchRuntime

LAYERS = 3


def model(norm_first: bool, positions: str = "sinusoidal") -> Transformer:
    torch.manual_seed(3)
    config = ModelConfig(
        120,
        d_model=32,
        d_ff=64,
        n_heads=4,
        encoder_layers=LAYERS,
        decoder_layers=1,
        norm_first=norm_first,
        positions=positions,
    )
    made = Transformer(config).eval()
    return int8.build(config, quantised.quantise(made))


def encoded(encoder: Transformer, between: list[int] | None) -> torch.Tensor:
    """Seven sentences through the encoder; `between` gets an entry each time it gives way."""
    source = torch.randint(4, 120, (7, 20), generator=torch.Generator().manual_seed(5))
    lengths = torch.tensor([20, 3, 17, 20, 1, 9, 12])
    with torch.inference_mode():
        if between is None:
            return encoder.encode(source, lengths)
        with giving_way(lambda: between.append(1)):
            return encoder.encode(source, lengths)


@pytest.mark.skipif(not native.available(), reason="the native library was not built")
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "relative"])
def test_the_native_encoder_gives_way_after_each_layer_of_some_sentences(
    norm_first: bool, positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_int8, "_AT_ONCE", 40)  # two sentences of 20 positions
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    small = model(norm_first, positions)
    alone = encoded(small, None)
    between: list[int] = []
    given_way = encoded(small, between)
    assert len(between) == 4 * LAYERS  # seven sentences, two at a time
    assert torch.equal(given_way, alone)


@pytest.mark.skipif(not native.available(), reason="the native library was not built")
def test_another_sentence_may_be_read_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_int8, "_AT_ONCE", 20)
    small = model(norm_first=True)
    alone = encoded(small, None)
    inside = []
    source = torch.randint(4, 120, (7, 20), generator=torch.Generator().manual_seed(5))
    with torch.inference_mode(), giving_way(lambda: inside.append(encoded(small, None))):
        outside = small.encode(source, torch.tensor([20, 3, 17, 20, 1, 9, 12]))
    assert torch.equal(outside, alone)
    assert len(inside) >= LAYERS
    for one in inside:
        assert torch.equal(one, alone)


def test_the_encoder_of_torch_gives_way_after_each_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "library", lambda: None)
    small = model(norm_first=True)
    TorchRuntime(small, torch.device("cpu"))
    alone = encoded(small, None)
    between: list[int] = []
    assert torch.equal(encoded(small, between), alone)
    assert len(between) == LAYERS
