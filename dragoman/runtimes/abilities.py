"""What our own runtime can do with a model, by its configuration and the device alone."""

from __future__ import annotations

import torch

from dragoman.model.model_config import ModelConfig
from dragoman.runtimes import int8
from dragoman.runtimes.runtime import DECODE, GRAMMAR, GRAPHS, HEADS, INT8, SHORTLIST, TERMS


def abilities(config: ModelConfig, device: torch.device) -> frozenset[str]:
    """Return what our own runtime can do with a model of this shape on this device."""
    words = {HEADS}
    if config.decoder_layers:
        words |= {DECODE, GRAMMAR}
    if config.decoder_layers and device.type != "cpu":
        words.add(GRAPHS)
    if device.type == "cpu" and int8.available():
        words.add(INT8)
    if config.decoder_layers and config.encoder_layers and config.input == "tokens":
        words.add(TERMS)
    if not config.departures:
        words.add(SHORTLIST)
    return frozenset(words)
