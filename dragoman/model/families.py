"""Named shapes. A row is a set of `ModelConfig` fields; `base` and `big` are Table 3 of the paper."""

from __future__ import annotations

from typing import Any

SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "d_ff": 512, "n_heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.1},
    "small": {"d_model": 256, "d_ff": 1024, "n_heads": 4, "encoder_layers": 4, "decoder_layers": 4, "dropout": 0.1},
    "base": {"d_model": 512, "d_ff": 2048, "n_heads": 8, "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.1},
    "big": {"d_model": 1024, "d_ff": 4096, "n_heads": 16, "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.3},
}
