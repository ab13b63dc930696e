"""Model folders that the tests of the ways out write to other formats."""

from __future__ import annotations

from pathlib import Path

import tiny
import torch

from dragoman.folder.description import Description, save_description
from dragoman.folder.weights import save_weights
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions, learn


def make(
    folder: Path, joint: bool = True, norm_first: bool = False
) -> tuple[Transformer, Tokenizer]:
    """A model folder with weights of which none is 0 or 1, so that each of them matters."""
    english, german = (
        [f"{word} {other}" for word in words for other in words]
        for words in (tiny.ENGLISH, tiny.GERMAN)
    )
    tokenizer = learn(TokenizerOptions(vocab_size=290, joint=joint), english, german)[0]
    config = ModelConfig(
        vocab_size=tokenizer.target_size,
        source_vocab_size=0 if joint else tokenizer.source_size,
        d_model=16,
        d_ff=32,
        n_heads=2,
        encoder_layers=2,
        decoder_layers=3,
        max_length=100,
        norm_first=norm_first,
    )
    torch.manual_seed(1)
    model = Transformer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    save_description(folder, Description(model.config, "en", "de", 40), tokenizer)
    save_weights(folder, dict(model.named_parameters()))
    return model, tokenizer
