"""An exported ONNX folder, run by onnxruntime: a step function and a state, which is all that our
search asks for. Knows the inputs and outputs of the two graphs; no weights and no text.

B sentences, K beams; N = B K rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.formats.onnx_graph import engine

ENCODER = "encoder.onnx"
DECODER = "decoder.onnx"


@dataclass
class OnnxState:
    """What a step remembers of each row; before the first one, of each sentence."""

    lengths: np.ndarray | None = None  # (N,) of the sources
    memory: dict[str, np.ndarray] = field(default_factory=dict)
    past: dict[str, np.ndarray] = field(default_factory=dict)
    beams: int = 0  # 0 before the first step

    def reorder(self, beams: Tensor) -> None:
        """beams (B, K): which of its sentence's old beams each new beam continues."""
        sentences = np.arange(len(beams))[:, None]
        rows = sentences * self.beams + beams.numpy()
        self.past = _taken(self.past, rows.reshape(-1))

    def keep(self, sentences: Tensor) -> None:
        """Keep these sentences (B'), in this order, and drop the others."""
        kept = sentences.numpy()[:, None]
        rows = kept * self.beams + np.arange(self.beams)
        rows = rows.reshape(-1)
        self._take(rows)
        self.past = _taken(self.past, rows)

    def spread(self, beams: int) -> None:
        """Give each beam a row of its own."""
        if self.lengths is not None:
            sentences = np.arange(len(self.lengths))
            self._take(sentences.repeat(beams))
        self.beams = beams

    def _take(self, rows: np.ndarray) -> None:
        if self.lengths is not None:
            self.lengths = self.lengths[rows]
        self.memory = _taken(self.memory, rows)


class OnnxModel:
    """The graphs of a folder, loaded."""

    def __init__(self, folder: Path) -> None:
        encoder = folder / ENCODER
        self._encoder = _session(encoder) if encoder.exists() else None
        self._decoder = _session(folder / DECODER)
        # With nothing said before; heads and their width are fixed, the rest is free.
        self._empty: dict[str, tuple[int, int]] = {}
        for one in self._decoder.get_inputs():
            if one.name.startswith("past_"):
                self._empty[one.name] = (one.shape[1], one.shape[3])

    def start(self, source: Tensor | None, lengths: Tensor | None) -> OnnxState:
        """Read the sources once; return the state from which `step` decodes."""
        if self._encoder is None or source is None or lengths is None:
            return OnnxState()
        given = {
            "source": source.numpy(),
            "lengths": lengths.numpy(),
        }
        names = [one.name for one in self._encoder.get_outputs()]
        found = self._encoder.run(names, given)
        memory = dict(zip(names, found, strict=True))
        return OnnxState(lengths.numpy(), memory)

    def step(self, tokens: Tensor, state: OnnxState) -> Tensor:
        """Logits (B, K, V) of what follows `tokens` (B, K), the newest token of each beam."""
        rows = tokens.numel()
        if not state.beams:
            state.spread(tokens.size(1))
            for name, (heads, size) in self._empty.items():
                state.past[name] = np.zeros((rows, heads, 0, size), np.float32)
        given = {
            "tokens": tokens.reshape(-1).numpy(),
            **state.memory,
            **state.past,
        }
        if state.lengths is not None:
            given["lengths"] = state.lengths
        names = [one.name for one in self._decoder.get_outputs()]
        outputs = self._decoder.run(names, given)
        found = dict(zip(names, outputs, strict=True))
        logits = torch.from_numpy(found.pop("logits"))
        state.past = {}
        for name, array in found.items():
            state.past[name.replace("present", "past")] = array
        return logits.view(*tokens.shape, -1)


def _taken(arrays: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    """These rows of every array."""
    return {name: array[rows] for name, array in arrays.items()}


def _session(path: Path) -> Any:
    runtime = engine()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
