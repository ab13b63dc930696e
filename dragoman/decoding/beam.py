"""Beam search with the paper's length penalty. Knows probabilities and a state that can be reordered; no text and no model.

At every position the K likeliest continuations of the live hypotheses are taken. Those that end are finished and leave the
beam; the next position fills it again from those still alive. A sentence is over when nothing alive can enter the n best.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.decoding.options import SearchOptions
from dragoman.decoding.seam import Hypothesis, S, Step, length_penalty
from dragoman.decoding.trace import NEVER, Trace


def beam_search(
    step: Step[S], state: S, max_lengths: Tensor, options: SearchOptions, bos: int, eos: int
) -> list[list[Hypothesis]]:
    """The n best hypotheses of each sentence, as `search` describes them."""
    trace = Trace(max_lengths)
    shape = len(max_lengths), options.beam
    tokens = torch.full(shape, bos, device=max_lengths.device)
    live = torch.full(shape, NEVER, device=max_lengths.device)  # log-probability of each beam; -inf where nothing lives
    live[:, 0] = 0.0  # the beams start alike, so one of them speaks for all
    finished = torch.full((len(max_lengths), options.nbest), NEVER, device=max_lengths.device)  # the n best scores, best first
    for length in range(1, int(max_lengths.max()) + 1):
        tokens, log_probs, totals, beams = _continue(live, step(tokens, state))
        trace.add(tokens, log_probs, totals, beams)
        ended = tokens == eos
        scores = totals.masked_fill(~ended, NEVER) / length_penalty(float(length), options.alpha)
        finished = torch.cat([finished, scores], dim=1).topk(options.nbest).values
        live = totals.masked_fill(ended, NEVER)
        over = _hopeless(live, finished, max_lengths, options.alpha) | (max_lengths <= length)
        running = int((~over).sum())  # the one synchronisation of a step
        if not running:
            break
        live = live.masked_fill(over[:, None], NEVER)
        state.reorder(beams)
        tokens, live, finished, max_lengths = trace.thin(over, running, state, tokens, live, finished, max_lengths)
    return trace.hypotheses(options, eos)


def _continue(live: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The K likeliest continuations, each (B, K): token, log-probability, sum with it, beam that it continues."""
    # The best K of all are among the best K of each beam, so only (B, K, K) sums are needed.
    values, tokens = log_probs.topk(min(live.size(1), log_probs.size(2)))
    sums = (live[:, :, None] + values).nan_to_num(nan=NEVER, neginf=NEVER)
    totals, picks = sums.flatten(1).topk(live.size(1))
    beams = picks // values.size(2)
    return tokens.flatten(1).gather(1, picks), values.flatten(1).gather(1, picks), totals, beams


def _hopeless(live: Tensor, finished: Tensor, max_lengths: Tensor, alpha: float) -> Tensor:
    """(B,) True where no live hypothesis can end better than the worst of the n best, or none lives.

    Log-probabilities are at most 0 and the penalty grows with the length (or is 1 throughout, alpha being 0). So the most
    that a live hypothesis can reach is its present sum under the penalty of the maximum length.
    """
    return live.amax(1) / length_penalty(max_lengths.float(), alpha) <= finished[:, -1]
