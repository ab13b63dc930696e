"""How the arithmetic of a run is done: on which device, in which precision, compiled or not. Knows
no data and no optimiser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch

from dragoman.folder.description import PAIR_TASKS
from dragoman.kernels.jit import has_triton
from dragoman.model.decoder import Decoder
from dragoman.model.encoder import Encoder
from dragoman.model.transformer import Transformer
from dragoman.runtimes.device import computes_bfloat16
from dragoman.training.training_options import TrainingOptions


@dataclass(frozen=True)
class Compute:
    """What was chosen for this device, model and task."""

    device: torch.device
    precision: torch.dtype
    compiled: bool  # whether the layers are compiled
    packed: bool  # whether the pairs of a batch lie end to end, instead of in padded rows

    @contextmanager
    def autocast(self) -> Iterator[None]:
        """Computes in bfloat16 where that was chosen."""
        half = self.precision == torch.bfloat16
        with torch.autocast(self.device.type, torch.bfloat16) if half else nullcontext():
            yield


def choose_compute(
    options: TrainingOptions, device: torch.device, model: Transformer, task: str
) -> Compute:
    """Compiled layers read packed pairs where the model can, and padded batches of other tasks.

    Padded batches of translation and of speech have too many shapes to compile.
    """
    compiles = _compiles(options, device)
    packed = compiles and not model.config.departures
    compiled = packed or (compiles and task not in (*PAIR_TASKS, "speech"))
    return Compute(device, _precision(options, device), compiled, packed)


def compile_layers(model: Transformer, one_length: bool) -> None:
    """Compiles each layer and final norm; for any length, unless all examples have the same one."""
    for stack in model.children():
        if isinstance(stack, (Encoder, Decoder)):
            for layer in [*stack.layers, stack.norm]:
                layer.compile(dynamic=not one_length)


def _compiles(options: TrainingOptions, device: torch.device) -> bool:
    if options.anchor:  # the old model reads the same padded rows
        return False
    if options.compile == "auto":
        return has_triton(device)
    return options.compile == "on"


def _precision(options: TrainingOptions, device: torch.device) -> torch.dtype:
    half = options.precision == "bfloat16"
    if options.precision == "auto":
        half = computes_bfloat16(device)
    return torch.bfloat16 if half else torch.float32
