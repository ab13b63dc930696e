"""Tiny random models of transformers, and what we make of their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from dragoman.folder.weights import assign_weights, load_model, save_weights
from dragoman.formats.huggingface_weights import read_config, read_weights
from dragoman.model.transformer import Transformer

WHISPER = {
    "vocab_size": 50,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "num_mel_bins": 8,
    "max_source_positions": 10,
    "max_target_positions": 20,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


def randomised(model: Any) -> Any:
    """Norms and biases, too, which begin as ones and zeros; tables of sines stay what they are."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            owner = model.get_submodule(name.rpartition(".")[0])
            is_sines = "sinusoidal" in type(owner).__name__.lower()
            if weight.requires_grad and not is_sines:
                weight.add_(torch.randn_like(weight) * 0.1)
        if getattr(model, "final_logits_bias", None) is not None:
            model.final_logits_bias.normal_()
    return model.eval()


def both_ways(folder: Path, theirs: Any) -> list[Transformer]:
    """What we read from their folder, and what we load after saving it in ours."""
    theirs.save_pretrained(folder / "theirs")
    config, said = read_config(folder / "theirs")
    weights = read_weights(folder / "theirs", config, said)
    model = Transformer(config).eval()
    assign_weights(model, weights)
    (folder / "ours").mkdir()
    save_weights(folder / "ours", weights)
    return [model, load_model(folder / "ours", config, torch.device("cpu"))]


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
