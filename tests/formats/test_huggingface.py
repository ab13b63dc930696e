"""Tiny random models of transformers, read by us, give the same logits: with padding, and step by step with the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.checkpoint import assign_weights
from dragoman.formats.huggingface import read_config, read_weights
from dragoman.model.transformer import Transformer

transformers = pytest.importorskip("transformers", reason="needs transformers")

BART = {"vocab_size": 50, "d_model": 16, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 40,
        "pad_token_id": 1, "eos_token_id": 2, "bos_token_id": 0, "decoder_start_token_id": 2}  # fmt: skip
T5 = {"vocab_size": 50, "d_model": 16, "d_kv": 6, "d_ff": 24, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 3}
LLAMA = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64}  # fmt: skip
STRETCHED = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_position_embeddings": 16, "rope_theta": 500.0}  # fmt: skip
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "marian": ("Marian", BART | {"scale_embedding": True, "activation_function": "swish"}),
    "bart": ("Bart", BART),
    "mbart": ("MBart", BART | {"scale_embedding": True}),
    "m2m_100": ("M2M100", BART),
    "t5": ("T5", T5),
    "t5 gated": ("T5", T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "gpt2": ("GPT2", {"vocab_size": 50, "n_embd": 16, "n_layer": 3, "n_head": 4, "n_positions": 32}),
    "llama": ("Llama", LLAMA),
    "llama stretched": ("Llama", LLAMA | {"rope_parameters": STRETCHED, "tie_word_embeddings": True}),
}
CLASSES = {"Marian": "MarianMTModel", "GPT2": "GPT2LMHeadModel", "Llama": "LlamaForCausalLM"}


def reference(name: str) -> Any:
    kind, fields = MODELS[name]
    config = getattr(transformers, f"{kind}Config")(**fields)
    torch.manual_seed(0)
    model = getattr(transformers, CLASSES.get(kind, f"{kind}ForConditionalGeneration"))(config).eval()
    with torch.no_grad():
        for weight_name, weight in model.named_parameters():
            if "embed_positions" not in weight_name or kind in ("Bart", "MBart"):  # the others' are sines
                weight.add_(torch.randn_like(weight) * 0.1)
        if getattr(model, "final_logits_bias", None) is not None:
            model.final_logits_bias.normal_()
    return model


def ours(folder: Path) -> Transformer:
    config, theirs = read_config(folder)
    model = Transformer(config)
    assign_weights(model, read_weights(folder, config, theirs))
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_the_same_logits(name: str, tmp_path: Path) -> None:
    theirs = reference(name)
    theirs.save_pretrained(tmp_path)
    model = ours(tmp_path)
    torch.manual_seed(1)
    source, target = torch.randint(3, 50, (3, 7)), torch.randint(3, 50, (3, 6))
    lengths = torch.tensor([7, 4, 2])
    mask = (torch.arange(7) < lengths[:, None]).long()
    if model.config.encoder_layers:
        expected = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
    else:
        expected = theirs(input_ids=target).logits
    torch.testing.assert_close(model(source, target, lengths), expected, rtol=1e-4, atol=1e-4)
    state = model.start(source, lengths)
    steps = [model.step(target[:, i : i + 1], state) for i in range(6)]
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, rtol=1e-4, atol=1e-4)
