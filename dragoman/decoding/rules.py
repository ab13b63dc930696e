"""What an output may not say: anything but its forced prefix, its end too early, an n-gram
twice. Knows numbers only."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER

Rows = Sequence[Sequence[int]]  # tokens of each sentence


class Rules:
    """Sets what is forbidden to -inf, in place. What it remembers moves with the beams."""

    def __init__(
        self,
        options: SearchOptions,
        prefixes: Rows,
        rows: int,
        eos: int,
        device: torch.device,
        spared: Rows = (),
    ):
        """`spared` are tokens of each sentence that may complete an n-gram said before, as the
        end always may."""
        self._eos, self._options = eos, options
        most = max(map(len, spared), default=0)
        ends = [[*tokens, *[eos] * (most - len(tokens) + 1)] for tokens in spared or [[]] * rows]
        self._spared = torch.tensor(ends, dtype=torch.long, device=device)  # (B, S)
        longest = max(map(len, prefixes), default=0)
        padded = [[*prefix, *[-1] * (longest - len(prefix))] for prefix in prefixes]
        # (B, P), -1 behind the end
        self._prefixes = torch.tensor(padded, dtype=torch.long, device=device).view(
            len(padded), longest
        )
        self._said = torch.empty(
            rows, options.beam, 0, dtype=torch.long, device=device
        )  # (B, K, T)

    def apply(self, log_probs: Tensor, length: int) -> None:
        """log_probs (B, K, V) of the token after `length` others."""
        if length < self._prefixes.size(1):
            forced = self._prefixes[:, None, length : length + 1].expand(
                *log_probs.shape[:2], 1
            )  # (B, K, 1)
            told = log_probs.gather(2, forced.clamp(min=0))
            log_probs.masked_fill_(forced >= 0, NEVER)
            log_probs.scatter_(
                2, forced.clamp(min=0), torch.where(forced >= 0, told, log_probs[..., :1])
            )
        if length + 1 < self._options.min_length:
            log_probs[..., self._eos] = NEVER
        if self._options.no_repeat_ngram and length >= self._options.no_repeat_ngram:
            self._forbid_repeats(log_probs, length)

    def follow(self, tokens: Tensor, beams: Tensor) -> None:
        """The tokens (B, K) that were chosen and the beams they continue."""
        if self._options.no_repeat_ngram:
            old = self._said.gather(1, beams[..., None].expand(-1, -1, self._said.size(2)))
            self._said = torch.cat([old, tokens[..., None]], dim=2)

    def keep(self, sentences: Tensor) -> None:
        """As State.keep."""
        self._said, self._spared = self._said[sentences], self._spared[sentences]
        self._prefixes = self._prefixes[sentences] if len(self._prefixes) else self._prefixes

    def _forbid_repeats(self, log_probs: Tensor, length: int) -> None:
        """A token that would complete an n-gram said before, whatever beam it would be in."""
        before = self._options.no_repeat_ngram - 1
        grams = self._said.unfold(2, before + 1, 1)  # (B, K, N, n)
        same = (grams[..., :before] == self._said[:, :, None, self._said.size(2) - before :]).all(
            -1
        )
        if length < self._prefixes.size(1):
            same &= (self._prefixes[:, length] < 0)[
                :, None, None
            ]  # what is given may repeat itself
        again = torch.where(
            same, grams[..., before], self._eos
        )  # which is never an n-gram's last token, so it stands for none
        spared = self._spared[:, None].expand(-1, log_probs.size(1), -1)
        told = log_probs.gather(2, spared)
        log_probs.scatter_(2, again, NEVER)
        log_probs.scatter_(2, spared, told)
