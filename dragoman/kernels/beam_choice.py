"""One position of plain beam search in two kernels. Its plain twin is in `decoding/search.py`.
Knows tensors only.

B sentences, K beams, V vocabulary, C chunks of it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.kernels.jit import has_triton, jit, next_power_of_2, tl

_MOST_BEAMS = 16
_CHUNK = 4096  # of the vocabulary that one program looks through


class Standing(NamedTuple):
    """The state of a search between two positions."""

    live: Tensor  # (B, K) sums of log-probabilities; -inf where nothing lives
    finished: Tensor  # (B, 1) the best score of an output that has ended
    over: Tensor  # (B,) whether the search of a sentence is over
    max_lengths: Tensor  # (B,) the most tokens of an output, its end counted
    length: Tensor  # (1,) positions done


class Best(NamedTuple):
    """The K best continuations, each (B, K)."""

    tokens: Tensor
    log_probs: Tensor
    totals: Tensor
    beams: Tensor


def fits(device: torch.device, beams: int, nbest: int) -> bool:
    """Whether there are kernels for a search of this kind."""
    return has_triton(device) and beams <= _MOST_BEAMS and nbest == 1


def best_beams(logits: Tensor, standing: Standing, alpha: float, eos: int) -> Best:
    """Choose the best continuations of logits (B, K, V), and bring the standing up to date in
    place: what lives, what has finished and which sentences are over."""
    logits = logits.contiguous()
    rows, beams, size = logits.shape
    chunks = -(-size // _CHUNK)
    count = next_power_of_2(beams)
    device = logits.device
    values = torch.empty(rows, beams, chunks, count, device=device)
    tokens = torch.empty(rows, beams, chunks, count, dtype=torch.int32, device=device)
    norms = torch.empty(rows, beams, chunks, device=device)
    _best_of_chunk[(rows * beams, chunks)](
        logits, values, tokens, norms, size, beams, COUNT=count, CHUNK=_CHUNK
    )
    chosen = torch.empty(2, rows, beams, dtype=torch.long, device=device)
    numbers = torch.empty(2, rows, beams, device=device)
    _best_of_all[(rows,)](
        values, tokens, norms, *standing, chosen, numbers, rows, chunks, beams, alpha, eos,
        COUNT=count, BEAMS=count, CHUNKS=next_power_of_2(chunks),
    )  # fmt: skip
    return Best(tokens=chosen[0], log_probs=numbers[0], totals=numbers[1], beams=chosen[1])


@jit
def _best_of_chunk(
    logits, values, tokens, norms, size, beams, COUNT: tl.constexpr, CHUNK: tl.constexpr
):
    """One program for a chunk of a beam's logits: its COUNT best, and the log of the sum of its
    exponentials."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    lane = tl.arange(0, CHUNK)
    token = chunk * CHUNK + lane
    x = tl.load(logits + row * size + token, token < size, float("-inf")).to(tl.float32)
    highest = tl.max(x, 0)
    floor = tl.where(highest == float("-inf"), 0.0, highest)
    at = row * tl.num_programs(1) + chunk
    tl.store(norms + at, floor + tl.log(tl.sum(tl.exp(x - floor), 0)))
    for i in tl.static_range(COUNT):
        highest, where = tl.max(x, 0, return_indices=True)
        tl.store(values + at * COUNT + i, highest)
        tl.store(tokens + at * COUNT + i, chunk * CHUNK + where)
        x = tl.where(lane == where, float("-inf"), x)


@jit
def _best_of_all(
    values, tokens, norms, live, finished, over, max_lengths, length, chosen, numbers,
    rows, chunks, beams, alpha, eos,
    COUNT: tl.constexpr, BEAMS: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """One program for a sentence: the best of all chunks of all beams, then what ended."""
    row = tl.program_id(0)
    each = tl.arange(0, BEAMS)
    k = each[:, None]
    c = tl.arange(0, CHUNKS)[None]
    n = tl.arange(0, CHUNKS * COUNT)[None]
    # (K,) what turns a logit of each beam into a log-probability
    there = (k < beams) & (c < chunks)
    norm = tl.load(norms + (row * beams + k) * chunks + c, there, float("-inf"))
    highest = tl.max(norm, 1)
    floor = tl.where(highest == float("-inf"), 0.0, highest)
    whole = floor + tl.log(tl.sum(tl.exp(norm - floor[:, None]), 1))
    # (K, C * COUNT) sums of log-probabilities; what is not a number is never chosen
    inside = (k < beams) & (n < chunks * COUNT)
    candidates = values + (row * beams + k) * chunks * COUNT + n
    logs = tl.load(candidates, inside, float("-inf")) - whole[:, None]
    lives = tl.load(live + row * beams + each, each < beams, float("-inf"))
    sums = lives[:, None] + logs
    sums = tl.where(inside & (sums == sums), sums, float("-inf"))
    flat = tl.reshape(sums, (BEAMS * CHUNKS * COUNT,))
    flat_logs = tl.reshape(logs, (BEAMS * CHUNKS * COUNT,))
    spot = tl.arange(0, BEAMS * CHUNKS * COUNT)
    ends = tl.load(length).to(tl.float32) + 1.0
    penalty = tl.exp(alpha * tl.log((5.0 + ends) / 6.0))
    done = tl.load(finished + row)
    after = tl.full((BEAMS,), float("-inf"), tl.float32)
    for i in range(beams):
        best, where = tl.max(flat, 0, return_indices=True)
        flat = tl.where(spot == where, float("-inf"), flat)
        beam = where // (CHUNKS * COUNT)
        place = where % (CHUNKS * COUNT)
        known = (beam < beams) & (place < chunks * COUNT)
        address = tokens + (row * beams + beam) * chunks * COUNT + place
        token = tl.load(address, known, 0).to(tl.int64)
        at = row * beams + i
        tl.store(chosen + at, token)
        tl.store(chosen + rows * beams + at, tl.where(known, beam, 0).to(tl.int64))
        tl.store(numbers + at, tl.sum(tl.where(spot == where, flat_logs, 0.0), 0))
        tl.store(numbers + rows * beams + at, best)
        done = tl.where(token == eos, tl.maximum(done, best / penalty), done)
        after = tl.where((each == i) & (token != eos), best, after)
    # A sentence is over where nothing alive can still become better than what is finished.
    limit = tl.load(max_lengths + row).to(tl.float32)
    hope = tl.max(after, 0) / tl.exp(alpha * tl.log((5.0 + limit) / 6.0))
    ended = (hope <= done) | (limit <= ends)
    tl.store(finished + row, done)
    tl.store(over + row, ended)
    tl.store(live + row * beams + each, tl.where(ended, float("-inf"), after), each < beams)
