"""The shape of a Transformer, as `config.json` stores it. Knows numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dragoman.errors import OptionError

# A config may come from anywhere; these bound what reading one can cost.
LIMITS = {
    "vocab_size": 10_000_000,
    "source_vocab_size": 10_000_000,
    "d_model": 65_536,
    "d_ff": 1_048_576,
    "n_heads": 1024,
    "encoder_layers": 512,
    "decoder_layers": 512,
    "max_length": 65_536,
}


@dataclass(frozen=True)
class ModelConfig:
    """Sizes in the paper's names; the defaults are its base model (Table 3)."""

    vocab_size: Annotated[int, "pieces of the target side; set by the tokeniser"] = 0
    source_vocab_size: Annotated[int, "pieces of the source side, 0 where the sides share a matrix; set by the tokeniser"] = 0
    d_model: Annotated[int, "width of every layer"] = 512
    d_ff: Annotated[int, "width inside the feed-forward layers"] = 2048
    n_heads: Annotated[int, "attention heads; divides d_model"] = 8
    encoder_layers: Annotated[int, "layers of the encoder"] = 6
    decoder_layers: Annotated[int, "layers of the decoder"] = 6
    dropout: Annotated[float, "share of values dropped in training, after each sub-layer and the embeddings"] = 0.1
    norm_first: Annotated[bool, "layer norm before each sub-layer (pre-norm) rather than after it, as the paper has it"] = False
    max_length: Annotated[int, "positions in the table; longer input is cut into parts"] = 1024

    def __post_init__(self) -> None:
        for name, most in LIMITS.items():
            least = 0 if name.endswith("vocab_size") else 1
            if not least <= getattr(self, name) <= most:
                raise OptionError(f"model.{name} is {getattr(self, name)}; it must lie between {least} and {most:,}")
        if self.d_model % self.n_heads or self.d_model % 2:
            raise OptionError(f"model.d_model is {self.d_model}; it must be even and a multiple of n_heads ({self.n_heads})")
        if not 0.0 <= self.dropout < 1.0:
            raise OptionError(f"model.dropout is {self.dropout}; it must lie between 0 and 1")
