"""Folders from elsewhere that cannot be read: one sentence that names what is wrong, quickly,
and nothing is written."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from dragoman.errors import ModelFolderError
from dragoman.formats.huggingface_weights import read_config, read_weights, weight_names
from dragoman.model.transformer import Transformer

CONFIG = {
    "model_type": "marian",
    "vocab_size": 50,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 40,
}


def folder_of(path: Path, config: object, weights: dict[str, torch.Tensor] | None = None) -> Path:
    path.mkdir()
    (path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    save_file(weights if weights is not None else marian_weights(), path / "model.safetensors")
    return path


def marian_weights() -> dict[str, torch.Tensor]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.shared.weight": (50, 16),
        "final_logits_bias": (1, 50),
    }
    for side, attentions in (
        ("encoder", ["self_attn"]),
        ("decoder", ["self_attn", "encoder_attn"]),
    ):
        layer = f"model.{side}.layers.0."
        shapes |= {
            f"{layer}fc1.weight": (24, 16),
            f"{layer}fc2.weight": (16, 24),
            f"{layer}fc1.bias": (24,),
            f"{layer}fc2.bias": (16,),
        }
        norms = ["final_layer_norm", *(f"{one}_layer_norm" for one in attentions)]
        shapes |= {f"{layer}{norm}.{part}": (16,) for norm in norms for part in ("weight", "bias")}
        for name in (
            f"{layer}{one}.{part}_proj" for one in attentions for part in ("q", "k", "v", "out")
        ):
            shapes |= {f"{name}.weight": (16, 16), f"{name}.bias": (16,)}
    return {name: torch.randn(shape) for name, shape in shapes.items()}


def read(folder: Path) -> dict[str, torch.Tensor]:
    return read_weights(folder, *read_config(folder))


def refused(folder: Path, *words: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelFolderError) as caught:
        read(folder)
    message = str(caught.value)
    assert all(word in message for word in (*words, str(folder))), message
    assert "\n" not in message
    assert len(message) < 700
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 200 * 1024  # KiB


def test_the_folder_that_the_others_are_made_from_is_read(tmp_path: Path) -> None:
    weights = read(folder_of(tmp_path / "good", CONFIG))
    config, _ = read_config(tmp_path / "good")
    assert {name: tensor.shape for name, tensor in weights.items()} == {
        name: parameter.shape for name, parameter in Transformer(config).named_parameters()
    }
    assert dict(weight_names("marian", config))["output_bias"] == (["final_logits_bias"], "flat")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model_type": "mamba"}, ["mamba", "marian", "llama"]),
        ({"model_type": None}, ["None"]),
        ({"model_type": ["marian"]}, ["marian"]),
        ({"model_type": "x" * 100_000}, ["xxx"]),
        ({"d_model": 2**40}, ["d_model", "config.json"]),
        ({"d_model": "16"}, ["d_model"]),
        ({"d_model": {"d_model": {"d_model": 16}}}, ["d_model"]),
        ({"d_model": 17}, ["d_model", "17"]),
        ({"d_model": True}, ["d_model"]),
        ({"encoder_attention_heads": None}, ["encoder_attention_heads"]),
        ({"decoder_attention_heads": 4}, ["decoder_attention_heads"]),
        ({"vocab_size": 10**12}, ["vocab_size"]),
        ({"vocab_size": -1}, ["vocab_size"]),
        ({"vocab_size": 10_000_000}, ["10000000"]),
        ({"encoder_layers": 10**9}, ["encoder_layers"]),
        ({"encoder_layers": 60}, ["model.encoder.layers.1."]),
        ({"encoder_layers": 0, "decoder_layers": 0}, ["encoder_layers"]),
        ({"encoder_ffn_dim": 1_000_000}, ["fc1", "1000000"]),
        ({"max_position_embeddings": 10**9}, ["max_length"]),
        ({"max_position_embeddings": 10**6}, ["1,000,000 positions"]),
        ({"max_position_embeddings": 1e300}, ["max_length"]),
        ({"activation_function": ["gelu"]}, ["activation"]),
        ({"activation_function": "snake"}, ["snake"]),
        ({"tie_word_embeddings": False}, ["tie_word_embeddings"]),
    ],
)
def test_a_config_that_does_not_fit(
    fields: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    refused(folder_of(tmp_path / "bad", CONFIG | fields), *words)


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[1]", "[" * 100_000, '"marian"', '{"model_type": "marian"', '{"a":' * 50_000],
)
def test_a_config_that_is_none(text: str, tmp_path: Path) -> None:
    refused(folder_of(tmp_path / "bad", text), "config.json")


def test_a_config_that_is_too_large_or_missing(tmp_path: Path) -> None:
    refused(folder_of(tmp_path / "large", CONFIG | {"more": "x" * 2**21}), "config.json")
    (folder_of(tmp_path / "none", CONFIG) / "config.json").unlink()
    refused(tmp_path / "none", "config.json")


CHANGES: dict[str, tuple[Callable[[dict[str, torch.Tensor]], object], str]] = {
    "missing": (
        lambda weights: weights.pop("model.encoder.layers.0.fc1.bias"),
        "model.encoder.layers.0.fc1.bias",
    ),
    "one of two missing": (
        lambda weights: weights.pop("model.decoder.layers.0.self_attn.v_proj.weight"),
        "self_attn.v_proj.weight",
    ),
    "extra": (
        lambda weights: weights.update({"model.encoder.layers.1.fc1.bias": torch.zeros(24)}),
        "model.encoder.layers.1.fc1.bias",
    ),
    "wrong shape": (
        lambda weights: weights.update({"model.shared.weight": torch.zeros(51, 16)}),
        "(51, 16)",
    ),
    "turned": (
        lambda weights: weights.update({"model.encoder.layers.0.fc1.weight": torch.zeros(16, 24)}),
        "(16, 24)",
    ),
    "does not join": (
        lambda weights: weights.update(
            {"model.encoder.layers.0.self_attn.k_proj.weight": torch.zeros(16, 3)}
        ),
        "k_proj",
    ),
    "a number": (
        lambda weights: weights.update(
            {"model.encoder.layers.0.self_attn.k_proj.bias": torch.tensor(1.0)}
        ),
        "k_proj.bias",
    ),
    "nothing": (lambda weights: weights.clear(), "weight"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_do_not_fit(change: str, tmp_path: Path) -> None:
    weights = marian_weights()
    CHANGES[change][0](weights)
    refused(folder_of(tmp_path / "bad", CONFIG, weights), CHANGES[change][1])


def overwritten(path: Path, start: int, content: bytes) -> None:
    whole = bytearray(path.read_bytes())
    whole[start : start + len(content)] = content
    path.write_bytes(bytes(whole))


@pytest.mark.parametrize("kept", [0, 4, 8, 100, 5_000, -1])
def test_a_file_that_was_cut(kept: int, tmp_path: Path) -> None:
    file = folder_of(tmp_path / "bad", CONFIG) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    refused(tmp_path / "bad", "model.safetensors")


@pytest.mark.parametrize(
    "content",
    [b"\xff" * 8, (2**62).to_bytes(8, "little"), (10).to_bytes(8, "little"), b"PK\x03\x04pytorch"],
)
def test_a_file_that_lies_about_itself(content: bytes, tmp_path: Path) -> None:
    file = folder_of(tmp_path / "bad", CONFIG) / "model.safetensors"
    overwritten(file, 0, content)
    refused(tmp_path / "bad", "model.safetensors")


def test_a_header_that_asks_for_more_than_there_is(tmp_path: Path) -> None:
    header = json.dumps(
        {
            "model.shared.weight": {
                "dtype": "F32",
                "shape": [10**9, 10**6],
                "data_offsets": [0, 4 * 10**15],
            }
        }
    ).encode()
    file = folder_of(tmp_path / "bad", CONFIG) / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 64)
    refused(tmp_path / "bad", "model.safetensors")


def test_a_folder_in_place_of_the_file_and_weights_that_could_run_code(tmp_path: Path) -> None:
    file = folder_of(tmp_path / "bad", CONFIG) / "model.safetensors"
    file.unlink()
    (tmp_path / "bad" / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    refused(tmp_path / "bad", "no .safetensors")
    file.mkdir()
    refused(tmp_path / "bad", "model.safetensors")


@pytest.mark.parametrize(
    "rope",
    [
        [1],
        "linear",
        {"rope_type": "yarn"},
        {"rope_type": "llama3"},
        {"rope_type": "linear", "factor": "x"},
    ],
)
def test_rotary_positions_of_another_kind(rope: object, tmp_path: Path) -> None:
    llama = {
        "model_type": "llama",
        "vocab_size": 5,
        "hidden_size": 4,
        "intermediate_size": 6,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "rope_parameters": rope,
        "tie_word_embeddings": True,
    }
    shapes = {"q": (4, 4), "k": (4, 4), "v": (4, 4), "o": (4, 4)}
    weights = {
        f"model.layers.0.self_attn.{one}_proj.weight": torch.zeros(shape)
        for one, shape in shapes.items()
    }
    weights |= {"model.embed_tokens.weight": torch.zeros(5, 4), "model.norm.weight": torch.zeros(4)}
    weights |= {
        f"model.layers.0.{norm}.weight": torch.zeros(4)
        for norm in ("input_layernorm", "post_attention_layernorm")
    }
    weights |= {
        f"model.layers.0.mlp.{one}_proj.weight": torch.zeros(6, 4) for one in ("gate", "up")
    }
    weights["model.layers.0.mlp.down_proj.weight"] = torch.zeros(4, 6)
    refused(folder_of(tmp_path / "bad", llama, weights))


def test_reading_takes_little_more_memory_than_the_file(tmp_path: Path) -> None:
    """The weights stay in the file and in its precision until they are used; only what is joined
    is copied."""
    weights = {name: tensor.bfloat16() for name, tensor in marian_weights().items()}
    weights |= {
        "model.shared.weight": torch.ones(2_000_000, 16, dtype=torch.bfloat16),
        "final_logits_bias": torch.zeros(1, 2_000_000),
    }
    folder = folder_of(tmp_path / "large", CONFIG | {"vocab_size": 2_000_000}, weights)  # 72 MB

    def anonymous() -> int:
        return next(
            int(line.split()[1])
            for line in Path("/proc/self/status").read_text().splitlines()
            if "RssAnon" in line
        )

    read(folder)
    before = anonymous()
    found = read(folder)
    assert found["encoder.embeddings.tokens.weight"].dtype == torch.bfloat16
    assert anonymous() - before < 10 * 1024  # KiB
