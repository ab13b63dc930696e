"""A graph of ONNX as it is put together: inputs, nodes, weights, outputs. Knows ONNX's format and
arrays of numbers; no model and no text. Importing this loads neither torch nor onnx.

A value of the graph is the name of a tensor. Weights may be in int8 with a scale for each row; the
nodes that turn them into floats are computed once, when a session is made.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dragoman.errors import MissingDependencyError

# What onnxruntime 1.15 and newer read: LayerNormalization came with this one.
_OPSET = 17
_IR_VERSION = 8
# Bytes of weights in one file. Protocol buffers end at 2 GiB; more goes to a file beside it.
LARGEST_FILE = 2**30
Shape = Sequence[int | str]  # a word names a dimension that may have any size


@dataclass(frozen=True)
class Weight:
    """The numbers of one weight."""

    values: np.ndarray
    scale: np.ndarray | None = None  # of each row, where the values are int8


class Graph:
    """What a graph holds so far. Calling it adds a node."""

    def __init__(self, weights: Mapping[str, Weight]) -> None:
        self._onnx = package()
        self._weights = weights
        self._nodes: list[Any] = []
        self._initialisers: dict[str, Any] = {}
        self._values: dict[str, str] = {}  # of each weight that has been used
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output and return that."""
        (result,) = self.several(kind, 1, *inputs, **attributes)
        return result

    def several(self, kind: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with `count` outputs and return them."""
        number = len(self._nodes)
        outputs = [f"{kind}_{number}_{index}" for index in range(count)]
        node = self._onnx.helper.make_node(kind, list(inputs), outputs, **attributes)
        self._nodes.append(node)
        return outputs

    def input(self, name: str, dtype: type, shape: Shape) -> str:
        """Add an input and return it."""
        self._inputs.append(self._described(name, dtype, shape))
        return name

    def output(self, name: str, value: str, shape: Shape) -> None:
        """Give a value of floats this name outside."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._described(name, np.float32, shape))

    def constant(self, numbers: Any, dtype: type = np.int64) -> str:
        """Return these numbers as a value; equal ones are stored once."""
        array = np.ascontiguousarray(numbers, dtype=dtype).reshape(np.shape(numbers))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self._stored(f"constant_{len(self._constants)}", array)
        return self._constants[key]

    def weight(self, name: str) -> str:
        """Return a weight as floats."""
        if name not in self._values:
            self._values[name] = self._read(name, self._weights[name])
        return self._values[name]

    def save(self, path: Path, about: str) -> None:
        """Write the graph to a file; if the weights are large, they go into one beside it."""
        onnx = self._onnx
        initialisers = list(self._initialisers.values())
        graph = onnx.helper.make_graph(
            self._nodes, path.stem, self._inputs, self._outputs, initialisers, about
        )
        opset = onnx.helper.make_opsetid("", _OPSET)
        model = onnx.helper.make_model(
            graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="dragoman"
        )
        size = sum(len(one.raw_data) for one in initialisers)
        if size <= LARGEST_FILE:
            onnx.save_model(model, str(path))
            return
        onnx.save_model(
            model, str(path), save_as_external_data=True, location=f"{path.stem}.weights"
        )

    def _read(self, name: str, weight: Weight) -> str:
        stored = self._stored(name, weight.values)
        if weight.scale is None:
            return stored
        # Not DequantizeLinear: onnxruntime would keep that in the graph and compute it every time.
        scale = self._stored(f"{name}.scale", weight.scale[:, None])
        values = self("Cast", stored, to=self._onnx.TensorProto.FLOAT)
        return self("Mul", values, scale)

    def _stored(self, name: str, array: np.ndarray) -> str:
        self._initialisers[name] = self._onnx.numpy_helper.from_array(array, name)
        return name

    def _described(self, name: str, dtype: type, shape: Shape) -> Any:
        helper = self._onnx.helper
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(name, kind, list(shape))


def package() -> ModuleType:
    """Import onnx, or say how to install it."""
    return _import("onnx")


def engine() -> ModuleType:
    """Import onnxruntime, or say how to install it."""
    return _import("onnxruntime")


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingDependencyError.for_extra("ONNX", "onnx") from None
