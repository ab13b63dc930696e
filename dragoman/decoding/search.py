"""The search that the options ask for. Knows probabilities and a state; knows no text and no model."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.decoding.beam import beam_search
from dragoman.decoding.greedy import greedy_search
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.seam import Hypothesis, S, Step


@torch.no_grad()
def search(
    step: Step[S], state: S, sentences: int, max_lengths: Tensor, options: SearchOptions, bos: int, eos: int
) -> list[list[Hypothesis]]:
    """The n best outputs of each sentence, best first, and always at least one.

    max_lengths (B,), on the step's device, are at least 1: the most tokens each output may have, its end counted. What
    has not ended by then is taken as it is, after everything that has. Where the step gives nothing but NaN or -inf,
    the one hypothesis is empty and its score -inf.
    """
    if not sentences:
        return []
    assert max_lengths.shape == (sentences,), f"{sentences} sentences but max_lengths {tuple(max_lengths.shape)}"
    assert int(max_lengths.min()) >= 1, "an output has room for its end at least"
    method = greedy_search if options.beam == 1 else beam_search
    return method(step, state, max_lengths, options, bos, eos)
