"""The recurrent translator: a bidirectional LSTM reads, another LSTM writes and looks back at what
was read by attention.

    Bahdanau, Cho, Bengio: Neural Machine Translation by Jointly Learning to Align and Translate
    (ICLR 2015, arXiv 1409.0473)
    Luong, Pham, Manning: Effective Approaches to Attention-based Neural Machine Translation
    (EMNLP 2015, arXiv 1508.04025)

The encoder and the first state are Bahdanau's, the attention is Luong's, which can look back for
all target positions at once. Each position waits for the one before it, which the Transformer did
away with. Knows tokens and tensors; no text, no training.

Shapes: B sentences, K beams, S source and T target tokens, D width of the embeddings, H width of
the LSTMs, V vocabulary.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from memory import State, attend, real
from torch import Tensor, nn

from dragoman.model.model_config import ModelConfig

# of the encoder and of the decoder; Bahdanau has 1, Luong 4, and more do not train without
# residuals
LAYERS = 2


class RecurrentTranslator(nn.Module):
    """`config` is that of the Transformer beside it, of which vocabulary, d_model and dropout
    are taken; `width` is H."""

    def __init__(self, config: ModelConfig, width: int, feeding: bool = False) -> None:
        super().__init__()
        size = config.d_model
        half = width // 2
        self.feeding = feeding
        self.target_tokens = nn.Embedding(config.vocab_size, size)
        shared = config.source_vocab_size == 0
        self.source_tokens = (
            self.target_tokens if shared else nn.Embedding(config.source_vocab_size, size)
        )
        inputs = [size, *[2 * half] * (LAYERS - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(given, half, batch_first=True) for given in inputs)
        self.backwards = nn.ModuleList(nn.LSTM(given, half, batch_first=True) for given in inputs)
        inputs = [2 * size if feeding else size, *[width] * (LAYERS - 1)]
        self.decoder = nn.ModuleList(nn.LSTM(given, width, batch_first=True) for given in inputs)
        self.first = nn.Linear(half, LAYERS * width)  # W_s of Bahdanau A.2.2, for each layer
        # W_a of Luong §3.1, the `general` score.
        self.score = nn.Linear(2 * half, width, bias=False)
        self.combine = nn.Linear(2 * half + width, size, bias=False)  # W_c of Luong, equation 5
        self.dropout = nn.Dropout(config.dropout)
        # As in the Transformer (§3.4), since the output shares them, for which they are small.
        self.scale = math.sqrt(size)
        self.apply(_initialise)

    @property
    def output_weight(self) -> Tensor:
        """The matrix before the softmax, W_s of Luong's equation 6, (V, D); here it is the
        target embedding."""
        return self.target_tokens.weight

    def forward(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) of the token after each target token."""
        return F.linear(self.features(source, target, lengths), self.output_weight)

    def features(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(B, T, D), from which the logits are computed."""
        state = self.start(source, lengths)
        if not self.feeding:
            return self._look(self._recur(self._embed(target), state), state)
        # What was found at one position is part of the next one's input, so that nothing can be
        # done at once.
        return torch.cat([self._advance(tokens, state) for tokens in target.split(1, dim=1)], dim=1)

    def start(self, source: Tensor, lengths: Tensor | None = None) -> State:
        """Reads the source; the state from which `step` decodes."""
        seen = real(source, lengths)
        memory = self._read(source, seen)
        # At the first token, where all the others have been read.
        backward = memory[:, 0, memory.size(2) // 2 :]
        # Bahdanau A.2.2: s_0 = tanh(W_s h_1), h_1 being the backward LSTM's. Its cells, which the
        # paper's GRU has not, are 0.
        # of each layer: (B, 1, H)
        hidden = torch.tanh(self.first(backward)).unsqueeze(1).chunk(LAYERS, dim=-1)
        fed = memory.new_zeros(len(source), 1, self.combine.out_features)
        past = [*hidden, *[torch.zeros_like(layer) for layer in hidden], fed]
        return State([memory, self.score(memory), seen[:, None]], past)

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Logits (B, K, V) of what follows `tokens` (B, K), the newest token of each of K beams."""
        return F.linear(self._advance(tokens, state), self.output_weight)

    def _read(self, source: Tensor, seen: Tensor) -> Tensor:
        """(B, S) -> (B, S, H): h_j = [forward h_j; backward h_j] (Bahdanau §3.2 and A.2.1).

        The backward LSTM runs forward over rows whose tokens, not their padding, are in reverse
        order."""
        places = torch.arange(source.size(1), device=source.device).expand_as(source)
        turned = torch.where(seen, seen.sum(1, keepdim=True) - 1 - places, places)
        rows = torch.arange(len(source), device=source.device)[:, None]
        x = self.source_tokens(source) * self.scale
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            x = self.dropout(x)
            x = torch.cat(
                (_cast(forwards(x)[0]), _cast(backwards(x[rows, turned])[0])[rows, turned]), dim=-1
            )
        return self.dropout(x)

    def _embed(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.target_tokens(tokens) * self.scale)

    def _advance(self, tokens: Tensor, state: State) -> Tensor:
        """One position of every beam: (B, K) -> (B, K, D)."""
        state.widen(tokens.size(1))
        x = self._embed(tokens)
        if self.feeding:  # Luong §3.3: [y_t; h~_{t-1}]
            x = torch.cat((x, state.past[-1]), dim=-1)
        found = self._look(
            self._recur(x.flatten(0, 1)[:, None], state).view(*tokens.shape, -1), state
        )
        state.past[-1] = found
        return found

    def _recur(self, x: Tensor, state: State) -> Tensor:
        """(N, T, D) -> (N, T, H), from the states and cells of N beams, which move on: h_t =
        LSTM(x_t, h_{t-1})."""
        for number, layer in enumerate(self.decoder):
            places = number, LAYERS + number
            before = tuple(
                state.past[place].flatten(0, 1)[None].contiguous().to(x.dtype) for place in places
            )
            x, after = layer(x if number == 0 else self.dropout(x), before)
            for place, values in zip(places, after, strict=True):
                state.past[place] = values[0].view_as(state.past[place])
            x = _cast(x)
        return x

    def _look(self, hidden: Tensor, state: State) -> Tensor:
        """(B, T, H) -> h~ (B, T, D): the context c_t beside the state h_t (Luong, equations 5
        and 7)."""
        memory, keys, seen = state.memory
        context = attend(hidden, keys, memory, seen)
        return self.dropout(torch.tanh(self.combine(torch.cat((context, hidden), dim=-1))))


def _cast(x: Tensor) -> Tensor:
    """In the type of autocast, if it is on: where that is bfloat16, cuDNN's LSTM gives float16,
    and autocast mixes no two."""
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x


def _initialise(module: nn.Module) -> None:
    """As Bahdanau B.1, recurrent matrices are orthogonal; a forget gate is open at first
    (Jozefowicz et al. 2015)."""
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    elif isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
    elif isinstance(module, nn.LSTM):
        weights = dict(module.named_parameters())  # each of four gates: input, forget, cell, output
        for name in ("bias_ih_l0", "bias_hh_l0"):
            nn.init.zeros_(weights[name])
        nn.init.ones_(weights["bias_ih_l0"].chunk(4)[1])
        for gate in weights["weight_ih_l0"].chunk(4):
            nn.init.xavier_uniform_(gate)
        for gate in weights["weight_hh_l0"].chunk(4):
            nn.init.orthogonal_(gate)
