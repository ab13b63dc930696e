"""Multi-head attention (§3.2.2; figure 2, right). Knows vectors, a memory and a cache; no layers.

B sentences, T queries, S keys, K beams, D d_model, H heads, E = D / H.
"""

from __future__ import annotations

from torch import Tensor, nn

from dragoman.model.model_config import ModelConfig
from dragoman.model.positions import Rotary
from dragoman.model.scaled_dot_product import attend, join_heads, split_keys_values, split_queries
from dragoman.model.sight import Cache, Keep, KeysValues, Mask, Record


class MultiHeadAttention(nn.Module):
    """H attentions side by side, in E dimensions each, joined by one more matrix."""

    def __init__(self, config: ModelConfig, causal: bool = False, across: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.n_heads = config.n_heads
        self.kv_heads = config.kv_heads or config.n_heads
        width = config.n_heads * config.size
        self.query = nn.Linear(config.d_model, width, config.bias)
        self.key_value = nn.Linear(config.d_model, 2 * self.kv_heads * config.size, config.bias)
        self.out = nn.Linear(width, config.d_model, config.bias)
        self.rotary = Rotary(config.size) if config.positions == "rotary" and not across else None

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Mask = None,
        record: Record = None,
        keep: Keep | None = None,
    ) -> Tensor:
        """Whole sequences: what x (B, T, D) finds in the memory (B, S, D), or in itself."""
        query, keys_values = self.project(x, x if memory is None else memory)
        if keep is not None:
            keep(keys_values)
        heads = attend(query, keys_values, mask, self.causal and mask is None, record)
        return self.out(join_heads(heads))

    def step(
        self,
        x: Tensor,
        seen: KeysValues | Cache,
        mask: Mask,
        position: Tensor,
        record: Record = None,
    ) -> Tensor:
        """One position more: what the newest of K beams, x (B, K, D), finds in the past."""
        if callable(seen):
            query, newest = self.project(x, x, position)
            heads = self.look(query, seen(newest), mask, position, record)
        else:
            query = split_queries(self.query(x), self.n_heads)
            heads = self.look(query, seen, mask, None, record)
        return self.out(join_heads(heads))

    def look(
        self, query: Tensor, seen: KeysValues, mask: Mask, last: Tensor | None, record: Record
    ) -> Tensor:
        """Equation 1 for the few queries of a step; keys behind the position `last` are masked."""
        return attend(query, seen, mask, record=record)

    def project(
        self, x: Tensor, memory: Tensor, position: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Queries (B, H, T, E) of x, and keys and values (2, B, H, S, E) of the memory."""
        key_value = self.key_value(memory)  # first: the order decides how gradients are rounded
        return self.split(self.query(x), key_value, position)

    def keys_values(self, memory: Tensor) -> Tensor:
        """Those of a memory (B, S, D), (2, B, H, S, E), which every step over it sees."""
        return split_keys_values(self.key_value(memory), self.kv_heads, self.n_heads)

    def split(
        self, query: Tensor, key_value: Tensor, position: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Into heads, turned by their positions where these are rotary."""
        queries = split_queries(query, self.n_heads)
        keys_values = split_keys_values(key_value, self.kv_heads, self.n_heads)
        if self.rotary is None:
            return queries, keys_values
        return self.rotary(queries, keys_values, position)
