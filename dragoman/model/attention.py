"""Attention (§3.2). Knows queries, keys, values and masks; how they came to be is the layer's
business.

B sentences, T queries, S keys, D d_model, H heads, E = D / H.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.kernels import decode as kernels
from dragoman.kernels.packed_attention import Segments, attend_to_memory, attend_to_own
from dragoman.model.model_config import ModelConfig
from dragoman.model.positions import Rotary

KeysValues = tuple[Tensor, Tensor]  # each (B, H, S, E)
Memory = KeysValues | Tensor  # or (S, D), where sentences lie end to end
Remember = Callable[
    [Tensor], KeysValues
]  # takes in the newest keys and values (2, B, H, K, E), returns all to be seen


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V, equation 1, with its weights (…, T, S). `mask` is true where
    keys are seen, or is added."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (…, T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    if causal:
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(ahead, -math.inf)
    weights = scores.softmax(-1)
    return weights @ value, weights


class MultiHeadAttention(nn.Module):
    """§3.2.2: h attentions side by side in subspaces of d_model / h, their results joined by one
    more matrix."""

    def __init__(self, config: ModelConfig, across: bool = False) -> None:
        super().__init__()
        self.n_heads, self.kv_heads = config.n_heads, config.kv_heads or config.n_heads
        inner, outer = config.size * self.n_heads, config.size * self.kv_heads
        self.query = nn.Linear(config.d_model, inner, bias=config.bias)
        self.key_value = nn.Linear(config.d_model, 2 * outer, bias=config.bias)
        self.out = nn.Linear(inner, config.d_model, bias=config.bias)
        self.rotary = Rotary(config.size) if config.positions == "rotary" and not across else None
        self.fused: nn.Module | None = (
            None  # query and key_value in one, where a translator has put it
        )
        self.alone = not config.encoder_layers  # in a decoder that has no encoder

    def project(self, x: Tensor) -> Memory:
        """Keys and values of x (B, S, D), a head each; x itself where it is (S, D), whose
        projection is compiled elsewhere."""
        if x.dim() == 2:
            return x
        return self._both(self.key_value(x))

    def forward(
        self,
        x: Tensor,
        keys_values: Memory | None = None,
        mask: Tensor | Segments | None = None,
        causal: bool = False,
        record: list[Tensor] | None = None,
        keep: Callable[[Tensor], None] | None = None,
    ) -> Tensor:
        """What x (B, T, D) finds among the keys, by default its own; the weights (B, H, T, S) go to
        `record` if given, keys and values (2, B, H, S, E) to `keep`.

        Sentences that lie end to end, x (T, D), have `Segments` for a mask."""
        if isinstance(mask, Segments):
            return self.out(self._packed(x, keys_values, mask, causal))
        if keys_values is None:
            joint, both = self._all(x)
            key, value = self._both(both)
        else:
            joint, (key, value) = self.query(x), keys_values
        query = self._heads(joint, self.n_heads)
        if self.rotary is not None:
            query, key = self.rotary(query), self.rotary(key)
        if keep is not None:
            keep(torch.stack((key, value)))
        if record is None:
            if mask is not None and causal:  # the fused kernel takes one or the other
                ahead = torch.ones(
                    query.size(2), key.size(2), dtype=torch.bool, device=x.device
                ).triu(1)
                mask, causal = (
                    mask.masked_fill(ahead, False if mask.dtype == torch.bool else -math.inf),
                    False,
                )
            heads = F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal)
        else:
            heads, weights = attention(query, key, value, mask, causal)
            record.append(weights)
        return self.out(heads.transpose(1, 2).flatten(2))  # (B, T, D)

    def _packed(self, x: Tensor, memory: Memory | None, segments: Segments, causal: bool) -> Tensor:
        if isinstance(memory, Tensor):
            return attend_to_memory(self.query(x), self.key_value(memory), segments, self.n_heads)
        weight, bias = (
            torch.cat((getattr(self.query, name), getattr(self.key_value, name)))
            for name in ("weight", "bias")
        )
        return attend_to_own(F.linear(x, weight, bias), segments, self.n_heads, causal)

    def look_back(
        self, x: Tensor, remember: Remember, ancestors: Tensor | None, last: Tensor
    ) -> Tensor:
        """What the newest position of K beams, x (B, K, D), finds among its ancestors; `last`
        (1,) is its number."""
        query, both = self._all(x)
        newest = both.unflatten(-1, (2, self.kv_heads, -1)).permute(
            2, 0, 3, 1, 4
        )  # (B, K, 2 * D) -> (2, B, H, K, E)
        if self.kv_heads != self.n_heads:
            newest = newest.repeat_interleave(self.n_heads // self.kv_heads, dim=2)
        if self.rotary is not None:
            query = self.rotary.at(query.unflatten(-1, (self.n_heads, -1)), last).flatten(-2)
            newest = torch.stack((self.rotary.at(newest[0], last), newest[1]))
        return self._look(query, remember(newest), ancestors, last)

    def _all(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (B, T, D), and keys and values (B, T, 2 * D), of x."""
        if self.fused is None:
            both = self.key_value(
                x
            )  # first, as with a memory: the order decides how gradients are rounded
            return self.query(x), both
        joint = self.fused(x)
        inner = joint.size(-1) * self.n_heads // (self.n_heads + 2 * self.kv_heads)
        return joint[..., :inner], joint[..., inner:]

    def look_at(
        self, x: Tensor, memory: KeysValues, bias: Tensor | None, record: list[Tensor] | None
    ) -> Tensor:
        """What it finds in the memory; the beams of a sentence are queries over one copy of it."""
        if record is None:
            return self._look(self.query(x), memory, bias, None)
        mask = None if bias is None else bias == 0.0
        heads, weights = attention(self._heads(self.query(x), self.n_heads), *memory, mask)
        record.append(weights)
        return self.out(heads.transpose(1, 2).flatten(2))

    def _look(
        self, query: Tensor, keys_values: KeysValues, bias: Tensor | None, last: Tensor | None
    ) -> Tensor:
        """`bias` (B, 1, K or 1, N) is added to the scores."""
        found = kernels.attend(query, *keys_values, bias, last)
        if (
            found is None and bias is None and self.alone
        ):  # for one query and many keys the fused kernel is faster
            heads = F.scaled_dot_product_attention(self._heads(query, self.n_heads), *keys_values)
            found = heads.transpose(1, 2).flatten(2)
        if found is None:
            found = self._few_look(query, *keys_values, bias)
        return self.out(found)

    def _few_look(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """query (B, K, D) -> (B, K, D). For so few queries plain products are faster on a CPU
        than the fused kernel, and keys times queries are twice as fast as queries times keys."""
        rows, beams, heads = *query.shape[:2], self.n_heads
        columns = (
            query.unflatten(-1, (heads, -1)).permute(0, 2, 3, 1).reshape(rows * heads, -1, beams)
        )  # (B * H, E, K)
        key, value, none = key.flatten(0, 1), value.flatten(0, 1), query.new_zeros(1, 1, 1)
        scores = torch.baddbmm(none, key, columns, beta=0, alpha=key.size(-1) ** -0.5).transpose(
            1, 2
        )  # (B * H, K, N)
        if bias is not None:
            scores = scores + bias.expand(rows, heads, -1, -1).flatten(0, 1)
        return (
            torch.bmm(scores.softmax(-1), value)
            .unflatten(0, (rows, heads))
            .transpose(1, 2)
            .flatten(2)
        )

    def _both(self, x: Tensor) -> KeysValues:
        """Keys and values side by side (B, S, 2 * D) -> each (B, H, S, E)."""
        key, value = self._heads(x, 2 * self.kv_heads).chunk(2, dim=1)
        if self.kv_heads == self.n_heads:
            return key, value
        group = self.n_heads // self.kv_heads
        return key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)

    @staticmethod
    def _heads(x: Tensor, count: int) -> Tensor:
        return x.unflatten(-1, (count, -1)).transpose(1, 2)  # (B, T, count * E) -> (B, count, T, E)
