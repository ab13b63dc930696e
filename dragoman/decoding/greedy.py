"""Greedy search: the likeliest token at every position. Knows probabilities and a state; knows no text and no model."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.decoding.options import SearchOptions
from dragoman.decoding.seam import Hypothesis, S, Step
from dragoman.decoding.trace import NEVER, Trace


def greedy_search(
    step: Step[S], state: S, max_lengths: Tensor, options: SearchOptions, bos: int, eos: int
) -> list[list[Hypothesis]]:
    """One hypothesis for each sentence; what beam search with one beam finds."""
    trace = Trace(max_lengths)
    tokens = torch.full_like(max_lengths, bos)[:, None]  # (B, 1), as every tensor below
    totals = torch.zeros_like(tokens, dtype=torch.float32)
    for length in range(1, int(max_lengths.max()) + 1):
        log_probs, tokens = step(tokens, state).max(-1)
        totals = (totals + log_probs).nan_to_num(nan=NEVER, neginf=NEVER)
        trace.add(tokens, log_probs, totals, torch.zeros_like(tokens))
        totals = totals.masked_fill(tokens == eos, NEVER)
        over = (totals[:, 0] == NEVER) | (max_lengths <= length)
        running = int((~over).sum())  # the one synchronisation of a step
        if not running:
            break
        totals = totals.masked_fill(over[:, None], NEVER)
        tokens, totals, max_lengths = trace.thin(over, running, state, tokens, totals, max_lengths)
    return trace.hypotheses(options, eos)
