"""Named shapes, and the family of the Transformer. A row is a set of `ModelConfig` fields; base
and big are Table 3."""

from __future__ import annotations

from typing import Any

SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {
        "d_model": 128,
        "d_ff": 512,
        "n_heads": 4,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "dropout": 0.1,
    },
    "small": {
        "d_model": 256,
        "d_ff": 1024,
        "n_heads": 4,
        "encoder_layers": 4,
        "decoder_layers": 4,
        "dropout": 0.1,
    },
    "base": {
        "d_model": 512,
        "d_ff": 2048,
        "n_heads": 8,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "dropout": 0.1,
    },
    "big": {
        "d_model": 1024,
        "d_ff": 4096,
        "n_heads": 16,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "dropout": 0.3,
    },
    # For a CPU, taught by a larger model: the encoder reads a sentence once, and the decoder runs
    # for every word. With two layers of it translating takes half as long again.
    "student": {
        "d_model": 384,
        "d_ff": 2048,
        "n_heads": 6,
        "encoder_layers": 6,
        "decoder_layers": 1,
        "dropout": 0.1,
        "norm_first": True,
    },
}

_BART = {
    "positions": "learned",
    "norm_embeddings": True,
    "scale_embeddings": False,
    "activation": "gelu",
    "output_bias": True,
}
_T5 = {
    "positions": "relative",
    "norm": "rms",
    "norm_first": True,
    "bias": False,
    "scale_embeddings": False,
}
_ENCODER = {
    "decoder_layers": 0,
    "positions": "learned",
    "activation": "gelu",
    "scale_embeddings": False,
}
_BERT = _ENCODER | {"norm_embeddings": True, "pooler": True}
_DECODER = {"encoder_layers": 0, "norm_first": True, "scale_embeddings": False}
_LLAMA = _DECODER | {
    "positions": "rotary",
    "norm": "rms",
    "bias": False,
    "gated": True,
    "activation": "silu",
}

# What each member has that the model of 2017 has not; sizes come with the weights.
FAMILIES: dict[str, dict[str, Any]] = {
    "transformer": {},
    "marian": {"positions": "learned", "output_bias": True},
    "bart": _BART,
    "mbart": _BART | {"norm_first": True},
    "pegasus": _BART | {"norm_first": True, "norm_embeddings": False},
    "m2m_100": {"positions": "learned", "norm_first": True},
    "t5": _T5,
    "whisper": {
        "input": "sound",
        "positions": "learned",
        "activation": "gelu",
        "norm_first": True,
        "scale_embeddings": False,
    },
    "bert": _BERT,
    "roberta": _BERT,
    "distilbert": _ENCODER | {"norm_embeddings": True, "norm_epsilon": 1e-12},
    "xlnet": _ENCODER
    | {"positions": "distances", "norm_epsilon": 1e-12, "pooler": True, "pooled": "last"},
    "vit": _ENCODER | {"input": "image", "norm_first": True},
    "gpt2": _DECODER | {"positions": "learned", "activation": "gelu_tanh"},
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA | {"bias": True},
    # With one head of keys and values, and the two halves of a layer side by side.
    "palm": _LLAMA | {"parallel": True, "kv_heads": 1},
    "falcon": _DECODER
    | {
        "positions": "rotary",
        "bias": False,
        "activation": "gelu",
        "parallel": True,
        "kv_heads": 1,
    },
}
