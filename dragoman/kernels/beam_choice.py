"""One position of plain beam search in two kernels. Its plain twin is in `decoding/search.py`.
Knows tensors only.

B sentences, K beams, V vocabulary, C chunks of it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.kernels import native
from dragoman.kernels import native_structs as structs
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
    if device.type == "cpu" and native.available():
        return beams <= native.MOST_BEAMS and nbest == 1
    return has_triton(device) and beams <= _MOST_BEAMS and nbest == 1


def best_beams(logits: Tensor, standing: Standing, alpha: float, eos: int) -> Best:
    """Choose the best continuations of logits (B, K, V), and bring the standing up to date in
    place: what lives, what has finished and which sentences are over."""
    logits = logits.contiguous()
    if logits.device.type == "cpu" and native.available():
        return _by_native(logits, standing, alpha, eos)
    rows, beams, size = logits.shape
    chunks = -(-size // _CHUNK)
    count = next_power_of_2(beams)
    device = logits.device
    values = torch.empty(rows, beams, chunks, count, device=device)
    tokens = torch.empty(rows, beams, chunks, count, dtype=torch.int32, device=device)
    norms = torch.empty(rows, beams, chunks, device=device)
    _best_of_chunk[(rows * beams, chunks)](
        logits, values, tokens, norms, size, COUNT=count, CHUNK=_CHUNK
    )
    chosen = torch.empty(2, rows, beams, dtype=torch.long, device=device)
    numbers = torch.empty(2, rows, beams, device=device)
    _best_of_all[(rows,)](
        values,
        tokens,
        norms,
        *standing,
        chosen,
        numbers,
        rows,
        chunks,
        beams,
        alpha,
        eos,
        COUNT=count,
        CHUNKS=next_power_of_2(chunks),
    )
    return Best(
        tokens=chosen[0],
        log_probs=numbers[0],
        totals=numbers[1],
        beams=chosen[1],
    )


def _by_native(logits: Tensor, standing: Standing, alpha: float, eos: int) -> Best:
    rows, beams, size = logits.shape
    integers = torch.empty(2, rows, beams, dtype=torch.long)
    numbers = torch.empty(2, rows, beams)
    best = Best(tokens=integers[0], log_probs=numbers[0], totals=numbers[1], beams=integers[1])
    native.choose(
        logits.float(),
        structs.Standing(
            live=standing.live.data_ptr(),
            finished=standing.finished.data_ptr(),
            over=standing.over.data_ptr(),
            max_lengths=standing.max_lengths.data_ptr(),
            rows=rows,
            beams=beams,
            size=size,
            length=int(standing.length),
            end=eos,
            alpha=alpha,
        ),
        structs.Choice(
            tokens=best.tokens.data_ptr(),
            beams=best.beams.data_ptr(),
            log_probs=best.log_probs.data_ptr(),
            totals=best.totals.data_ptr(),
        ),
    )
    return best


@jit
def _best_of_chunk(logits, values, tokens, norms, size, COUNT: tl.constexpr, CHUNK: tl.constexpr):
    """One program for a chunk of a beam's logits: its COUNT best, and the log of the sum of its
    exponentials."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    lane = tl.arange(0, CHUNK)
    token = chunk * CHUNK + lane
    x = tl.load(logits + row * size + token, token < size, float("-inf"))
    x = x.to(tl.float32)
    highest = tl.max(x, 0)
    floor = tl.where(highest == float("-inf"), 0.0, highest)
    total = tl.sum(tl.exp(x - floor), 0)
    at = row * tl.num_programs(1) + chunk
    tl.store(norms + at, floor + tl.log(total))
    for i in tl.static_range(COUNT):
        highest, where = tl.max(x, 0, return_indices=True)
        spot = at * COUNT + i
        tl.store(values + spot, highest)
        tl.store(tokens + spot, chunk * CHUNK + where)
        x = tl.where(lane == where, float("-inf"), x)


@jit
def _penalty(length, alpha):
    """`length_penalty` of decoding/."""
    return tl.exp(alpha * tl.log((5.0 + length) / 6.0))


@jit
def _best_of_all(
    values,
    tokens,
    norms,
    live,
    finished,
    over,
    max_lengths,
    length,
    chosen,
    numbers,
    rows,
    chunks,
    beams,
    alpha,
    eos,
    COUNT: tl.constexpr,
    CHUNKS: tl.constexpr,
):
    """One program for a sentence: the best of all chunks of all beams, then what ended."""
    row = tl.program_id(0)
    each = tl.arange(0, COUNT)
    k = each[:, None]
    c = tl.arange(0, CHUNKS)[None]
    n = tl.arange(0, CHUNKS * COUNT)[None]
    is_beam = each < beams
    first = row * beams  # of the beams of this sentence
    beam_rows = (first + k) * chunks
    # (K,) what turns a logit of each beam into a log-probability
    there = (k < beams) & (c < chunks)
    norm = tl.load(norms + beam_rows + c, there, float("-inf"))
    highest = tl.max(norm, 1)
    floor = tl.where(highest == float("-inf"), 0.0, highest)
    total = tl.sum(tl.exp(norm - floor[:, None]), 1)
    whole = floor + tl.log(total)
    # (K, C * COUNT) sums of log-probabilities; what is not a number is never chosen
    inside = (k < beams) & (n < chunks * COUNT)
    candidates = tl.load(values + beam_rows * COUNT + n, inside, float("-inf"))
    logs = candidates - whole[:, None]
    lives = tl.load(live + first + each, is_beam, float("-inf"))
    sums = lives[:, None] + logs
    is_number = sums == sums
    sums = tl.where(inside & is_number, sums, float("-inf"))
    flat = tl.reshape(sums, (COUNT * CHUNKS * COUNT,))
    flat_logs = tl.reshape(logs, (COUNT * CHUNKS * COUNT,))
    spot = tl.arange(0, COUNT * CHUNKS * COUNT)
    ends = tl.load(length).to(tl.float32) + 1.0
    penalty = _penalty(ends, alpha)
    done = tl.load(finished + row)
    after = tl.full((COUNT,), float("-inf"), tl.float32)
    for i in range(beams):
        best, where = tl.max(flat, 0, return_indices=True)
        is_chosen = spot == where
        flat = tl.where(is_chosen, float("-inf"), flat)
        log_prob = tl.sum(tl.where(is_chosen, flat_logs, 0.0), 0)
        beam = where // (CHUNKS * COUNT)
        place = where % (CHUNKS * COUNT)
        known = (beam < beams) & (place < chunks * COUNT)
        address = (first + beam) * chunks * COUNT + place
        token = tl.load(tokens + address, known, 0).to(tl.int64)
        beam = tl.where(known, beam, 0).to(tl.int64)
        at = first + i
        second_half = rows * beams + at
        tl.store(chosen + at, token)
        tl.store(chosen + second_half, beam)
        tl.store(numbers + at, log_prob)
        tl.store(numbers + second_half, best)
        is_end = token == eos
        done = tl.where(is_end, tl.maximum(done, best / penalty), done)
        goes_on = (each == i) & (token != eos)
        after = tl.where(goes_on, best, after)
    # A sentence is over where nothing alive can still become better than what is finished.
    limit = tl.load(max_lengths + row).to(tl.float32)
    hope = tl.max(after, 0) / _penalty(limit, alpha)
    ended = (hope <= done) | (limit <= ends)
    after = tl.where(ended, float("-inf"), after)
    tl.store(finished + row, done)
    tl.store(over + row, ended)
    tl.store(live + first + each, after, is_beam)
