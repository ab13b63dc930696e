"""Any model of the family in 8-bit integers, for CPUs. Knows tensors only; where they are stored is
the model folder's business.

Each row of a weight matrix has one scale. There are two products. In the usual one activations
become integers too, each row with a scale of its own, so that a sentence's numbers do not depend on
those that share its batch; it is oneDNN's, the kernel that torch's own compiler calls for quantised
models. In the other one, for decoders alone, only the weights are integers, and what they are
multiplied with stays in floating point. Measured on one row, it is the slower one where the CPU has
instructions for products of bytes (VNNI), and the faster one elsewhere. It is also for wide
decoders, in which single activations are so large that integers lose the others (Dettmers et al.
2022, from 6.7B parameters on).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.folder.quantised import SCALE, check
from dragoman.kernels import native
from dragoman.kernels import native_structs as structs
from dragoman.kernels.joint_projection import use_joint
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.initialise import blueprint
from dragoman.model.model_config import ModelConfig
from dragoman.model.positions import Positions, sinusoids
from dragoman.model.transformer import Transformer
from dragoman.runtimes import native_int8
from dragoman.runtimes.device import multiplies_bytes

_by_integers: Any = (
    getattr(torch.ops.onednn, "qlinear_pointwise", None)
    and torch.ops.onednn.qlinear_pointwise.default
)
_by_weights: Any = getattr(torch, "_weight_int8pack_mm", None)
_FEW = 64  # rows; for more of them it is faster to make floats of the weights first
_ALIGNMENT = 64  # bytes
_WIDE = 4096  # d_model of LLaMA 7B
_LANES = 16  # numbers that the kernel for few rows takes at a time; it would read past a remainder


def available() -> bool:
    """Whether torch has the kernels in vector instructions for this CPU."""
    has_both = _by_integers is not None and _by_weights is not None
    return has_both and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def keeps_activations(config: ModelConfig) -> bool:
    """Whether only the weights of a model of this shape become integers on this CPU."""
    return not config.encoder_layers and (config.d_model >= _WIDE or not multiplies_bytes())


def build(
    config: ModelConfig, tensors: Mapping[str, Tensor], weights_only: bool | None = None
) -> Int8Transformer:
    """Return the model that computes with these tensors, as `folder.quantised.quantise` makes
    them; by default `weights_only` is as `keeps_activations` has it."""
    check(tensors)
    with blueprint():
        model = Int8Transformer(config)
    model.weights_only = keeps_activations(config) if weights_only is None else weights_only
    layers = _Layers(tensors, model.weights_only)
    embeddings: dict[int, Int8Embedding] = {}
    for name, module in list(model.named_modules()):
        if isinstance(module, MultiHeadAttention) and name.endswith(".attention"):
            _join(module, layers.linear(f"{name}.query", f"{name}.key_value"))
        for part_name, part in list(module.named_children()):
            full_name = f"{name}.{part_name}" if name else part_name
            if isinstance(part, nn.Linear):
                _replace(module, part_name, layers.linear(full_name))
            elif isinstance(part, nn.Embedding):  # which both sides may share
                if id(part) not in embeddings:
                    embeddings[id(part)] = layers.embedding(full_name)
                _replace(module, part_name, embeddings[id(part)])
        if isinstance(module, Positions) and not module.learned:
            module.table = sinusoids(*module.table.shape)
    rest = {name: tensors[name] for name, _ in model.named_parameters()}
    model.load_state_dict(rest, assign=True)
    if native_int8.fits(config) and not model.weights_only:
        native.settle([layer.matrix for layer in layers.made])
        native_int8.install(model)
    return model.eval()


class Int8Transformer(Transformer):
    """A Transformer whose output layer is in integers too."""

    weights_only = False

    def logits(self, features: Tensor) -> Tensor:
        """(…, D) -> (…, V)."""
        return self._output_layer()(features)

    def output_matrix(self, tokens: Tensor | None = None) -> native.PackedMatrix:
        """Return the output layer for these tokens alone, by default for all, as the native library
        wants it."""
        if tokens is None:
            return self._output_layer().matrix
        return native.PackedMatrix(*self._output_parts(), tokens)

    def output_rows(self, tokens: Tensor) -> Int8Linear:
        """Return the output layer for these tokens alone."""
        weight, scale, bias = self._output_parts()
        own_bias = None if bias is None else bias[tokens]
        return Int8Linear(weight[tokens], scale[tokens], own_bias)

    def _output_layer(self) -> Int8Linear:
        """The source's own matrix, where there is one, has no such use; so it is made late."""
        made: Int8Linear | None = self.__dict__.get("_made_output")
        if made is None:
            made = Int8Linear(*self._output_parts(), weights_only=self.weights_only)
            self.__dict__["_made_output"] = made
        return made

    def _output_parts(self) -> tuple[Tensor, Tensor, Tensor | None]:
        stack = self.decoder if self.config.decoder_layers else self.encoder
        layer: Any = stack.embeddings.tokens if self.config.tied else self.output
        return layer.weight, layer.scale, self.output_bias


class Int8Linear:
    """x W^T + b, each row of W with a scale of its own.

    It is not an nn.Module, whose call takes a tenth of the time of a small product.
    """

    def __init__(
        self,
        weight: Tensor,
        scale: Tensor,
        bias: Tensor | None = None,
        weights_only: bool = False,
    ) -> None:
        # Tensors of a file lie at any address, at which the kernel for few rows would crash.
        is_aligned = weight.data_ptr() % _ALIGNMENT == 0
        self.weight = weight if is_aligned else weight.clone()
        self.scale = scale
        self.bias = None if bias is None else bias.detach()
        self._packed: Tensor | None = None
        self._native: native.PackedMatrix | None = None
        if weights_only:
            self._ones = torch.ones(len(weight), dtype=torch.bfloat16)
        elif native.available() and weight.size(1) <= native.MOST_COLUMNS:
            self._native = native.PackedMatrix(self.weight, scale, self.bias)
        else:
            self._packed = torch.ops.onednn.qlinear_prepack(weight, None)
            self._zeros = torch.zeros(len(weight), dtype=torch.int32)
            # Zero as a uint8, and a half, by which cutting off the fraction is rounding.
            self._middle = torch.tensor(128.5)
            # Without instructions for bytes oneDNN adds two products in 16 bits, which overflow
            # unless the activations have 7.
            self._splits = not multiplies_bytes()

    def __call__(self, x: Tensor) -> Tensor:
        """(…, in) -> (…, out)."""
        if self._native is not None:
            return self._native(x)
        return self._with_float(x) if self._packed is None else self._with_integers(x)

    @property
    def matrix(self) -> native.PackedMatrix:
        """The matrix as the native library wants it."""
        assert self._native is not None
        return self._native

    @property
    def struct(self) -> structs.Matrix:
        """The same, as a structure."""
        return self.matrix.struct

    def _with_integers(self, x: Tensor) -> Tensor:
        # A row of zeros becomes nonsense, which is then multiplied by 0.
        largest = x.abs().amax(-1, keepdim=True)
        scaled = torch.addcmul(self._middle, x, largest.reciprocal(), value=127.0)
        small = scaled.to(torch.uint8)
        if self._splits:
            half = small >> 1
            y = self._product(half, 64).add_(self._product(small - half, 64))
        else:
            y = self._product(small, 128)
        if self.bias is None:
            return y.mul_(largest)
        return torch.addcmul(self.bias, y, largest)

    def _product(self, x: Tensor, zero: int) -> Tensor:
        """Of bytes around this zero."""
        found: Tensor = _by_integers(
            x,
            1.0 / 127.0,
            zero,
            self._packed,
            self.scale,
            self._zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        return found

    def _with_float(self, x: Tensor) -> Tensor:
        columns = x.size(-1)
        rows = x.numel() // columns
        if rows > _FEW or columns % _LANES:
            weight = self.weight.float().mul_(self.scale[:, None])
            return F.linear(x, weight, self.bias)
        half = x.bfloat16().view(rows, columns)
        y = _by_weights(half, self.weight, self._ones).float()
        shape = (*x.shape[:-1], -1)
        if self.bias is None:
            return y.mul_(self.scale).view(shape)
        return torch.addcmul(self.bias, y, self.scale).view(shape)


class Int8Embedding:
    """Rows of a matrix of integers, each with its scale."""

    def __init__(self, weight: Tensor, scale: Tensor) -> None:
        self.weight = weight
        self.scale = scale

    def __call__(self, tokens: Tensor) -> Tensor:
        """tokens (…) -> (…, D)."""
        scales = F.embedding(tokens, self.scale[:, None])
        rows = F.embedding(tokens, self.weight)
        return rows.float() * scales


class _Layers:
    """Makes layers from stored tensors."""

    def __init__(self, tensors: Mapping[str, Tensor], weights_only: bool) -> None:
        self.made: list[Int8Linear] = []  # in the order in which a model uses them
        self._tensors = tensors
        self._weights_only = weights_only

    def linear(self, *names: str) -> Int8Linear:
        """Return one layer of the rows of all these."""
        weight = self._joined(names, "weight")
        scale = self._joined(names, f"weight{SCALE}")
        bias = None
        if f"{names[0]}.bias" in self._tensors:
            bias = self._joined(names, "bias")
        layer = Int8Linear(weight, scale, bias, self._weights_only)
        self.made.append(layer)
        return layer

    def embedding(self, name: str) -> Int8Embedding:
        weight = self._tensors[f"{name}.weight"]
        scale = self._tensors[f"{name}.weight{SCALE}"]
        return Int8Embedding(weight, scale)

    def _joined(self, names: Sequence[str], part: str) -> Tensor:
        return torch.cat([self._tensors[f"{name}.{part}"] for name in names])


def _join(attention: MultiHeadAttention, layer: Any) -> None:
    """Give attention to itself one layer for queries, keys and values."""
    use_joint(attention, layer)
    for name in ("query", "key_value"):
        _replace(attention, name, None)


def _replace(module: nn.Module, name: str, layer: Any) -> None:
    delattr(module, name)
    setattr(module, name, layer)
