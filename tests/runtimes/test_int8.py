"""The model in 8-bit integers: near the float model, and blind to what else is in the batch."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import FullDiskError, ModelFolderError
from dragoman.folder import quantised
from dragoman.folder.weights import assign_weights
from dragoman.kernels import native
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8, load
from dragoman.runtimes.device import multiplies_bytes
from dragoman.runtimes.runtime import Request
from dragoman.runtimes.torch_runtime import TorchRuntime

pytestmark = pytest.mark.skipif(
    not int8.available(), reason="this CPU has no 8-bit kernels in torch"
)


@pytest.fixture(autouse=True, params=["native", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test by the native library, and by torch as where the library was not built."""
    if request.param == "torch":
        monkeypatch.setattr(native, "library", lambda: None)
    elif not native.available():
        pytest.skip("the native library was not built: no compiler was found")
    return str(request.param)


def float_model(norm_first: bool = False, source_vocab_size: int = 0) -> Transformer:
    torch.manual_seed(2)
    return Transformer(
        ModelConfig(
            vocab_size=300,
            source_vocab_size=source_vocab_size,
            d_model=64,
            d_ff=128,
            n_heads=4,
            encoder_layers=2,
            decoder_layers=2,
            norm_first=norm_first,
        )
    ).eval()


@pytest.mark.parametrize(("norm_first", "source_vocab_size"), [(False, 0), (True, 0), (False, 200)])
@torch.no_grad()
def test_the_numbers_are_near_those_of_the_float_model(
    norm_first: bool, source_vocab_size: int
) -> None:
    model = float_model(norm_first, source_vocab_size)
    small = int8.build(model.config, quantised.quantise(model))
    source, target = torch.randint(4, 200, (5, 9)), torch.randint(4, 300, (5, 7))
    lengths = torch.tensor([9, 4, 9, 1, 6])
    exact, near = model(source, target, lengths), small(source, target, lengths)
    # Rounding a value to one of 255 levels errs by 0.3% of the largest at most; a few layers of it
    # stay within some percent.
    assert float((near - exact).norm() / exact.norm()) < 0.03
    state, other = model.start(source, lengths), small.start(source, lengths)
    for position in range(3):
        tokens = target[:, position : position + 2]
        exact, near = model.step(tokens, state), small.step(tokens, other)
        assert float((near - exact).norm() / exact.norm()) < 0.03


FAMILY = (
    *("marian", "bart", "mbart", "m2m_100", "t5", "whisper", "bert", "xlnet", "vit", "gpt2"),
    *("llama", "palm"),
)
SIZES: dict[str, dict[str, Any]] = {
    "t5": {"gated": True, "tied": False},
    "whisper": {"input_size": 8, "source_length": 10},
    "bert": {"classes": 7, "output_transform": True, "output_bias": True},
    "vit": {"classes": 7, "input_size": 8, "patch_size": 4},
    "llama": {"kv_heads": 2, "tied": False},
}


def of_family(family: str) -> Transformer:
    torch.manual_seed(2)
    layers = {"encoder_layers": 2, "decoder_layers": 2}
    fields = layers | FAMILIES[family] | SIZES.get(family, {})
    model = Transformer(ModelConfig(300, d_model=64, d_ff=128, n_heads=4, **fields)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.02)
    return model


def distance(near: Tensor, exact: Tensor) -> float:
    return float((near - exact).norm() / exact.norm())


@pytest.mark.parametrize(
    ("family", "weights_only"),
    [*((family, False) for family in FAMILY), ("gpt2", True), ("llama", True)],
)
@torch.no_grad()
def test_every_family_is_near_its_float_model(family: str, weights_only: bool) -> None:
    model = of_family(family)
    config = model.config
    tensors = quantised.quantise(model)
    assert set(tensors) == set(quantised.shapes(config))
    small = int8.build(config, tensors, weights_only)
    source: Tensor | None = torch.randint(4, 300, (5, 9))
    if config.input != "tokens":
        source = torch.randn(5, *((3, 8, 8) if config.input == "image" else (8, 20)))
    source = source if config.encoder_layers else None
    if config.classes:
        assert distance(small.classify(source), model.classify(source)) < 0.05
    if not config.decoder_layers:
        assert distance(small.encode(source), model.encode(source)) < 0.05
        return
    target = torch.randint(4, 300, (5, 7))
    lengths = (
        torch.tensor([9, 4, 9, 1, 6])
        if config.encoder_layers and config.input == "tokens"
        else None
    )
    assert distance(small(source, target, lengths), model(source, target, lengths)) < 0.05
    state = model.start(source, lengths)
    other = small.start(source, lengths)
    for position in range(4):
        tokens = target[:, position : position + 2]
        exact = model.step(tokens, state)
        near = small.step(tokens, other)
        assert distance(near, exact) < 0.05
        agreed = (near.argmax(-1) == exact.argmax(-1)).float().mean()
        assert agreed >= 0.6


@pytest.mark.parametrize("family", ["marian", "m2m_100", "t5", "bart"])
def test_translations_of_every_family_have_most_of_their_tokens(family: str) -> None:
    model = of_family(family)
    with torch.no_grad():
        model.output_weight.mul_(3.0)
    small = int8.build(model.config, quantised.quantise(model))
    batch = [Request(torch.randint(4, 300, (6,)).tolist()) for _ in range(8)]
    options = SearchOptions(beam=2, max_length=10)
    same = total = 0
    rows = [TorchRuntime(one, torch.device("cpu")).search(batch, options) for one in (model, small)]
    for exact, near in zip(*rows, strict=True):
        pairs = zip(exact[0].tokens, near[0].tokens, strict=False)
        same += sum(one == other for one, other in pairs)
        total += max(len(exact[0].tokens), len(near[0].tokens))
    assert same >= 0.8 * total > 0


@pytest.mark.parametrize("rows", [1, 3, 100])
@pytest.mark.parametrize("width", [80, 24, 17])  # of which the kernel can do the first
def test_weights_of_8_bits_are_off_by_half_a_step_at_most(rows: int, width: int) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(width, 24)
    weight = layer.weight.detach()
    x = torch.randn(rows, 1, width)
    scale = weight.abs().amax(1) / 127
    small = (weight / scale[:, None]).round()
    expected = torch.nn.functional.linear(x, small * scale[:, None], layer.bias)
    found = int8.Int8Linear(small.to(torch.int8), scale, layer.bias, weights_only=True)(x)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)


def test_weights_at_any_address() -> None:
    """As they lie in a file; the kernel itself would crash at most of them."""
    whole = torch.randint(-127, 128, (50 * 32 + 1,), dtype=torch.int8)
    weight = whole[1:].view(50, 32)
    layer = int8.Int8Linear(weight, torch.ones(50), weights_only=True)
    x = torch.ones(1, 32)
    torch.testing.assert_close(layer(x), weight.float().sum(1)[None], rtol=1e-2, atol=1.0)


@torch.no_grad()
def test_a_sentence_does_not_notice_its_company() -> None:
    model = float_model()
    small = int8.build(model.config, quantised.quantise(model))
    source, target = torch.randint(4, 300, (6, 8)), torch.randint(4, 300, (6, 5))
    together = small(source, target)
    for row in range(6):
        torch.testing.assert_close(
            small(source[row : row + 1], target[row : row + 1])[0],
            together[row],
            rtol=1e-5,
            atol=1e-5,
        )


def test_a_matrix_product_by_hand() -> None:
    weight = torch.tensor([[1.0, -2.0], [0.0, 4.0], [3.0, 3.0]])
    scale = weight.abs().amax(1) / 127
    layer = int8.Int8Linear(
        (weight / scale[:, None]).round().to(torch.int8), scale, torch.tensor([0.5, 0.0, -1.0])
    )
    x = torch.tensor([[1.0, 1.0], [0.0, 0.0], [-3.0, 6.0]])
    expected = torch.tensor(
        [[-0.5, 4.0, 5.0], [0.5, 0.0, -1.0], [-14.5, 24.0, 8.0]]
    )  # the row of zeros gives the bias
    torch.testing.assert_close(layer(x), expected, rtol=0.01, atol=0.05)


@pytest.mark.parametrize("has_instructions", [True, False])
def test_the_largest_products_do_not_overflow(
    monkeypatch: pytest.MonkeyPatch, has_instructions: bool
) -> None:
    """Two of them are more than 16 bits hold."""
    if has_instructions and not multiplies_bytes() and not native.available():
        pytest.skip("this CPU has no instructions for products of bytes")
    monkeypatch.setattr(int8, "multiplies_bytes", lambda: has_instructions)
    layer = int8.Int8Linear(torch.full((16, 64), 127, dtype=torch.int8), torch.ones(16))
    x = torch.ones(3, 64)
    x[1] = -1.0
    x[2, ::2] = -0.25
    expected = 127.0 * x.sum(1, keepdim=True).expand(3, 16)
    torch.testing.assert_close(layer(x), expected, rtol=0.01, atol=0.05)


def test_every_row_uses_the_whole_range() -> None:
    tensors = quantised.quantise(float_model())
    weight = tensors["decoder.layers.0.feedforward.inner.weight"]
    assert weight.dtype == torch.int8
    assert (weight.abs().amax(1) == 127).all()
    assert set(tensors) == set(quantised.shapes(float_model().config))


def test_float_weights_by_hand() -> None:
    tensors = {
        "a.weight": torch.tensor([[127, -2], [0, 64]], dtype=torch.int8),
        "a.bias": torch.tensor([3.0]),
    }
    found = quantised.dequantise(tensors | {"a.weight.scale": torch.tensor([0.5, 2.0])})
    assert {name: tensor.tolist() for name, tensor in found.items()} == {
        "a.weight": [[63.5, -1.0], [0.0, 128.0]],
        "a.bias": [3.0],
    }


@torch.no_grad()
def test_float_from_int8_is_the_int8_model_but_for_the_activations() -> None:
    """Nearer to it than the float model is; those very weights, made int8 again, are the same
    integers."""
    model = float_model()
    tensors = quantised.quantise(model)
    small, again = int8.build(model.config, tensors), float_model()
    assign_weights(again, quantised.dequantise(tensors))
    source, target = torch.randint(4, 300, (5, 9)), torch.randint(4, 300, (5, 7))
    exact, near, back = model(source, target), small(source, target), again(source, target)
    assert float((back - near).norm()) < float((exact - near).norm()) < 0.03 * float(exact.norm())
    for name, tensor in quantised.quantise(again).items():
        torch.testing.assert_close(tensor, tensors[name])


def test_weights_that_are_not_integers_are_refused() -> None:
    model = float_model()
    tensors = quantised.quantise(model)
    tensors["decoder.layers.0.feedforward.inner.weight"] = tensors[
        "decoder.layers.0.feedforward.inner.weight"
    ].float()
    for refuse in (
        lambda: int8.build(model.config, tensors),
        lambda: quantised.dequantise(tensors),
    ):
        with pytest.raises(
            ModelFolderError, match=r"inner.weight among the int8 weights is torch.float32"
        ):
            refuse()


@pytest.mark.parametrize("has_instructions", [True, False])
def test_which_product(has_instructions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8, "multiplies_bytes", lambda: has_instructions)
    gpt2 = ModelConfig(vocab_size=300, **FAMILIES["gpt2"])
    assert int8.keeps_activations(gpt2) is not has_instructions
    assert int8.keeps_activations(replace(gpt2, d_model=4096))
    assert not int8.keeps_activations(ModelConfig(vocab_size=300, d_model=4096))


@pytest.mark.parametrize("error", [PermissionError("read-only"), FullDiskError("full")])
def test_a_folder_that_cannot_be_written_to_is_used_all_the_same(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(folder: Path, tensors: object) -> None:
        raise error

    without_state = shutil.ignore_patterns("state", "model.int8.safetensors")
    shutil.copytree(trained, tmp_path / "model", ignore=without_state)
    monkeypatch.setattr(load, "save_int8", fail)
    assert load.load(tmp_path / "model", "cpu", "int8").runtime.name == "int8"
