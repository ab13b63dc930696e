"""The Transformer in 8-bit integers, for CPUs. Knows tensors only; where they are stored is the
model folder's business.

Each row of a weight matrix has one scale, and each row of activations gets one when it comes, so
that a sentence's numbers do not depend on those that share its batch. The products are oneDNN's,
the kernels that torch's own compiler calls for quantised models; they take plain tensors and
outlive torch's quantised dtypes, which are being retired.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.folder.quantised import SCALE, check
from dragoman.kernels.joint_projection import use_joint
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.feedforward import FeedForward
from dragoman.model.model_config import ModelConfig
from dragoman.model.positions import Positions, sinusoids
from dragoman.model.transformer import Transformer

_product: Any = (
    getattr(torch.ops.onednn, "qlinear_pointwise", None)
    and torch.ops.onednn.qlinear_pointwise.default
)


def available() -> bool:
    """True where torch has the kernels, on CPUs of the x86 kind."""
    return _product is not None and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def build(config: ModelConfig, tensors: Mapping[str, Tensor]) -> Transformer:
    """The model that computes with these tensors."""
    check(tensors)
    with torch.device("meta"):
        model = Int8Transformer(config)
    for name, module in list(model.named_modules()):
        if isinstance(module, MultiHeadAttention):
            if name.endswith(".attention"):
                use_joint(module, _linear(tensors, f"{name}.query", f"{name}.key_value"))
                module.query = module.key_value = nn.Identity()  # type: ignore[assignment]
            else:
                module.query, module.key_value = (
                    _linear(tensors, f"{name}.{part}") for part in ("query", "key_value")
                )
            module.out = _linear(tensors, f"{name}.out")
        elif isinstance(module, FeedForward):
            module.inner, module.outer = (
                _linear(tensors, f"{name}.{part}") for part in ("inner", "outer")
            )
        elif isinstance(module, Positions):
            module.table = sinusoids(config.max_length, config.d_model)
    shared = config.source_vocab_size == 0
    source = _embedding(tensors, "encoder.embeddings.tokens")
    model.encoder.embeddings.tokens = source
    model.decoder.embeddings.tokens = (
        source if shared else _embedding(tensors, "decoder.embeddings.tokens")
    )
    model.load_state_dict(
        {name: tensors[name] for name, _ in model.named_parameters()}, assign=True
    )  # of the norms
    return model.eval()


def _linear(tensors: Mapping[str, Tensor], *names: str) -> Any:
    """One layer of the rows of these; it stands where the type says nn.Linear."""
    return Int8Linear(
        *(
            torch.cat([tensors[name + kind] for name in names])
            for kind in (".weight", f".weight{SCALE}", ".bias")
        )
    )


def _embedding(tensors: Mapping[str, Tensor], name: str) -> Any:
    return Int8Embedding(tensors[f"{name}.weight"], tensors[f"{name}.weight{SCALE}"])


class Int8Transformer(Transformer):
    """The output layer is the target embedding, in integers too."""

    def logits(self, features: Tensor) -> Tensor:
        """(…, D) -> (…, V)."""
        tokens: Any = self.decoder.embeddings.tokens
        return tokens.project(features)


class Int8Linear(nn.Module):
    """x W^T + b."""

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.bias = bias
        self._scale = scale
        self._zeros = torch.zeros(len(weight), dtype=torch.int32)
        self._packed = torch.ops.onednn.qlinear_prepack(weight, None)
        self._middle = torch.tensor(
            128.5
        )  # zero as a uint8, and a half, for cutting off the fraction is then rounding

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) -> (…, out)."""
        largest = x.abs().amax(
            -1, keepdim=True
        )  # a row of zeros becomes nonsense, which is then multiplied by 0
        small = torch.addcmul(self._middle, x, largest.reciprocal(), value=127.0).to(torch.uint8)
        y = _product(
            small,
            1.0 / 127.0,
            128,
            self._packed,
            self._scale,
            self._zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        return y.mul_(largest) if self.bias is None else torch.addcmul(self.bias, y, largest)


class Int8Embedding(nn.Module):
    """Rows of a matrix, and the output layer before the softmax, which is the same matrix (§3.4)."""

    def __init__(self, weight: Tensor, scale: Tensor) -> None:
        super().__init__()
        self._weight, self._scale = weight, scale
        self._output: Int8Linear | None = None

    def forward(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self._weight).float() * F.embedding(tokens, self._scale[:, None])

    def project(self, features: Tensor) -> Tensor:
        """(…, D) -> (…, V)."""
        if self._output is None:  # the source's own matrix, where there is one, has no such use
            self._output = Int8Linear(self._weight, self._scale)
        return self._output(features)

    def rows(self, tokens: Tensor) -> Int8Linear:
        """The output layer of these tokens alone."""
        return Int8Linear(self._weight[tokens], self._scale[tokens])
