"""Samples of one rate to another, by a windowed sinc. Knows numbers; no files and no features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

import numpy
import numpy.typing
from numpy.lib.stride_tricks import sliding_window_view

Array = numpy.typing.NDArray[numpy.float32]
# The resampling filter: a sinc under Kaiser's window. Of the frequencies that both rates hold it
# passes the lower 90% and keeps what it should remove 100 dB below.
_ZEROS = 64  # zero crossings on each side
_CUTOFF = 0.95  # the middle of its slope, as a share of half the lower rate
_BETA = 10.0
_LARGEST_BANK = 2**20  # numbers of a filter that makes many samples at once; odd rates need more


def start_before(sample: int, rate: int, wanted: int) -> tuple[int, int]:
    """Return from which sample of the input to resample, so that an output sample is as it would
    be from the beginning, and the number of the first output sample then."""
    up, down = _steps(rate, wanted)
    rounds = max(0, sample // up - math.ceil(_half(up, down) / down))
    return rounds * down, rounds * up


def resample(blocks: Iterator[Array], rate: int, wanted: int) -> Iterator[Array]:
    """Yield the blocks at the wanted rate, with what both rates can hold."""
    up, down = _steps(rate, wanted)
    lower = min(1.0, up / down)
    half = _half(up, down)
    width = 2 * half  # input samples that an output sample is made of
    weights = _filter_weights(up, half, _CUTOFF * lower)
    bank = _filter_bank(weights, down) if up * (down + width) <= _LARGEST_BANK else None
    silence = numpy.zeros(half, numpy.float32)
    held = silence[1:]  # input samples at hand
    forgotten = 0  # input samples before those
    given = 0  # output samples
    for block in chain(blocks, [silence]):
        held = numpy.concatenate([held, block])
        # Output samples whose last tap is at hand.
        complete = forgotten + len(held) - width + 1
        ready = -(-complete * up // down)
        is_last = block is silence
        if bank is not None and ready - given >= up:
            # Output samples in rows of `up`, whose inputs lie `down` apart.
            rows = (ready - given) // up
            spans = sliding_window_view(held, bank.shape[1])
            yield (spans[: rows * down : down] @ bank.T).ravel()
            given += rows * up
            held = held[rows * down :]
            forgotten += rows * down
        if ready > given and (bank is None or is_last):
            # Output sample n lies at n * down / up of the input.
            inputs = numpy.arange(given, ready) * down
            firsts = inputs // up - forgotten
            windows = sliding_window_view(held, width)
            near = windows[firsts]
            taps = weights[inputs % up]
            yield numpy.einsum("nt,nt->n", near, taps)
            passed = ready * down // up - forgotten
            held = held[passed:]
            forgotten += passed
            given = ready


def _steps(rate: int, wanted: int) -> tuple[int, int]:
    """As many output samples as input samples last equally long."""
    common = math.gcd(rate, wanted)
    return wanted // common, rate // common


def _half(up: int, down: int) -> int:
    """Input samples on either side that an output sample is made of."""
    lower = min(1.0, up / down)
    return math.ceil(_ZEROS / lower)


def _filter_bank(weights: Array, down: int) -> Array:
    """(up, span): what each of `up` output samples in a row takes of the input below them, so that
    a row is a product of matrices."""
    up, width = weights.shape
    firsts = numpy.arange(up) * down // up
    bank = numpy.zeros((up, int(firsts[-1]) + width), numpy.float32)
    for number, first in enumerate(firsts):
        bank[number, first : first + width] = weights[number * down % up]
    return bank


@lru_cache(maxsize=4)
def _filter_weights(up: int, half: int, cutoff: float) -> Array:
    """(up, 2 * half): an output sample has one of `up` positions between two input samples, each
    with weights of its own."""
    weights = numpy.empty((up, 2 * half), numpy.float32)
    taps = numpy.arange(1 - half, half + 1)
    peak = numpy.i0(_BETA)
    for position in range(up):
        distance = taps - position / up
        share = distance / half
        inside = numpy.sqrt(1.0 - share**2)
        window = numpy.i0(_BETA * inside) / peak
        sinc = numpy.sinc(cutoff * distance)
        weights[position] = cutoff * sinc * window
    return weights
