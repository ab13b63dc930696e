"""What an output may not say: anything but its forced prefix, its end too early, an n-gram twice,
some tokens twice. Knows numbers only.

Shapes: B sentences, K beams, V vocabulary, T positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Problem, Rows, S

_NO_TOKEN = -1


class Rules:
    """Sets what is forbidden to -inf, in place. What it remembers moves with the beams."""

    def __init__(self, problem: Problem[S], options: SearchOptions) -> None:
        device = problem.max_lengths.device
        n_rows = len(problem.max_lengths)
        end = problem.end
        self._end = end
        self._options = options
        # (B, S) tokens that may complete an n-gram said before, as the end always may
        named = problem.spared or [[]] * n_rows
        spared = [[*tokens, end] for tokens in named]
        self._spared = _table(spared, end).to(device)
        self._once = _table(problem.once, end).to(device)  # (B, M), filled up with the end
        self._prefixes = _table(problem.prefixes, _NO_TOKEN).to(device)  # (B, P)
        shape = (n_rows, options.hypotheses, 0)
        self._said = torch.empty(shape, dtype=torch.long, device=device)  # (B, K, T)

    def apply(self, log_probs: Tensor, length: int) -> None:
        """Forbid tokens in log_probs (B, K, V), those of the token after `length` others."""
        options = self._options
        longest_prefix = self._prefixes.size(1)
        if length < longest_prefix:
            self._force_prefix(log_probs, length)
        if length + 1 < options.min_length:
            log_probs[..., self._end] = NEVER
        size = options.no_repeat_ngram
        if size and length >= size:
            self._forbid_repeats(log_probs, length)
        if self._once.numel() and length:
            self._forbid_said(log_probs)

    def apply_anywhere(self, log_probs: Tensor, length: Tensor) -> None:
        """Forbid tokens as `apply` does after `length` others, (1,) on the device, without asking
        for the number. Nothing is known there of n-grams."""
        column = self._forced_at(length)
        self._force(log_probs, column)
        too_short = length + 1 < self._options.min_length
        of_end = log_probs[..., self._end]
        of_end.masked_fill_(too_short, NEVER)

    def widen(self, longest_prefix: int) -> None:
        """Make room for prefixes of that many tokens, and one place that forces nothing."""
        table = self._prefixes.new_full((len(self._said), longest_prefix + 1), _NO_TOKEN)
        n_rows, longest = self._prefixes.shape  # no rows where there are no prefixes
        table[:n_rows, :longest] = self._prefixes
        self._prefixes = table

    def take(self, other: Rules) -> None:
        """Force the prefixes of the other rules, which have as much room."""
        self._prefixes.copy_(other._prefixes)

    def follow(self, tokens: Tensor, beams: Tensor) -> None:
        """Remember the tokens (B, K) that were chosen and the beams they continue."""
        if self._options.no_repeat_ngram or self._once.numel():
            self.remember(tokens, beams)

    def keep(self, sentences: Tensor) -> None:
        """Drop finished sentences, as `State.keep` does."""
        self._said = self._said[sentences]
        self._spared = self._spared[sentences]
        if len(self._once):
            self._once = self._once[sentences]
        if len(self._prefixes):
            self._prefixes = self._prefixes[sentences]

    def remember(self, tokens: Tensor, beams: Tensor) -> None:
        """Append the tokens to what each beam has said."""
        n_said = self._said.size(2)
        continued = beams[..., None]
        continued = continued.expand(-1, -1, n_said)
        before = self._said.gather(1, continued)
        newest = tokens[..., None]
        self._said = torch.cat([before, newest], dim=2)

    def _force_prefix(self, log_probs: Tensor, length: int) -> None:
        """Leave only the prefix's token, in the sentences that have one at this position."""
        self._force(log_probs, self._prefixes[:, length])

    def _forced_at(self, length: Tensor) -> Tensor:
        """(B,) the token of each prefix at this position; _NO_TOKEN behind it."""
        last = self._prefixes.size(1) - 1
        column = self._prefixes.index_select(1, length.clamp(max=last))
        return column[:, 0]

    def _force(self, log_probs: Tensor, column: Tensor) -> None:
        """Leave only these tokens (B,), in the sentences that have one."""
        n_beams = log_probs.size(1)
        forced = column[:, None, None]
        forced = forced.expand(-1, n_beams, 1)  # (B, K, 1)
        is_forced = forced >= 0
        index = forced.clamp(min=0)
        of_prefix = log_probs.gather(2, index)
        log_probs.masked_fill_(is_forced, NEVER)
        unchanged = log_probs[..., :1]  # of the sentences whose index is 0 because none is forced
        left = torch.where(is_forced, of_prefix, unchanged)
        log_probs.scatter_(2, index, left)

    def _forbid_repeats(self, log_probs: Tensor, length: int) -> None:
        """Forbid every token that would complete an n-gram said before in the same beam."""
        size = self._options.no_repeat_ngram
        before = size - 1
        grams = self._said.unfold(2, size, 1)  # (B, K, N, n)
        beginnings = grams[..., :before]
        n_old = self._said.size(2) - before
        newest = self._said[:, :, None, n_old:]
        is_same = beginnings == newest
        is_same = is_same.all(-1)
        longest_prefix = self._prefixes.size(1)
        if length < longest_prefix:
            # A given prefix may repeat itself.
            is_free = self._prefixes[:, length] < 0
            is_same &= is_free[:, None, None]
        # The end is never the last token of an n-gram, so it stands for "none".
        last = grams[..., before]
        repeated = torch.where(is_same, last, self._end)
        n_beams = log_probs.size(1)
        spared = self._spared[:, None]
        spared = spared.expand(-1, n_beams, -1)
        of_spared = log_probs.gather(2, spared)
        log_probs.scatter_(2, repeated, NEVER)
        log_probs.scatter_(2, spared, of_spared)

    def _forbid_said(self, log_probs: Tensor) -> None:
        """Forbid the tokens that may be said once wherever a beam has said them."""
        n_beams = log_probs.size(1)
        once = self._once[:, None]
        once = once.expand(-1, n_beams, -1)  # (B, K, M)
        is_said = self._said[..., None, :] == once[..., None]
        is_said = is_said.any(-1) & (once != self._end)
        left = log_probs.gather(2, once).masked_fill(is_said, NEVER)
        log_probs.scatter_(2, once, left)


def rules_for(problem: Problem[S], options: SearchOptions) -> Rules | None:
    """Return the rules of a search, or None where nothing is forbidden."""
    has_prefix = any(map(len, problem.prefixes))
    says_once = any(map(len, problem.once))
    if has_prefix or says_once or options.no_repeat_ngram or options.min_length > 1:
        return Rules(problem, options)
    return None


def _table(rows: Rows, fill: int) -> Tensor:
    """(B, longest row), the rows filled up."""
    longest = max(map(len, rows), default=0)
    empty = [fill] * longest
    filled = []
    for row in rows:
        rest = empty[len(row) :]
        filled.append([*row, *rest])
    table = torch.tensor(filled, dtype=torch.long)
    return table.view(len(rows), longest)
