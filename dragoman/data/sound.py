"""Sound files as Whisper hears them: samples at 16 kHz, read a little at a time, and log-mel
features of a window of them.

Reads WAV itself and everything else through ffmpeg, where that is installed. Knows no model, no
tokens and no text.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy
import numpy.typing
import torch

from dragoman.data.resampling import resample, start_before
from dragoman.data.sound_conversion import Conversions
from dragoman.errors import InputError

Array = numpy.typing.NDArray[numpy.float32]
RATE = 16_000
HOP = 160  # samples between two frames of features
_FRAME = 400  # samples that a frame looks at
_BLOCK = 2**12  # samples of a file that are read at once
# How a WAV file says that samples are coded; the last one says so further on.
_INTEGERS = 1
_FLOAT = 3
_ELSEWHERE = 0xFFFE
_WIDTHS = {_INTEGERS: (8, 16, 24, 32), _FLOAT: (32, 64)}  # bits of a sample that are read here
# The length that a program writes which cannot go back and fill it in.
_UNKNOWN = 2**32 - 1


@dataclass(frozen=True)
class Layout:
    """How the samples of a WAV file are stored."""

    rate: int
    coding: int
    width: int  # bytes of a sample
    channels: int
    size: int  # bytes of all samples


class Sound:
    """A file's samples, from the present position on. What lies behind it is forgotten, so that
    hours of sound take little memory."""

    def __init__(
        self,
        path: Path,
        start: float = 0.0,
        end: float | None = None,
        conversions: Conversions | None = None,
    ) -> None:
        """`start` and `end`, in seconds, name a part of the file; positions count from its
        start. For many parts of a file, `conversions` keep what is converted."""
        self._blocks = read_sound(path, start, end, conversions)
        self._next = numpy.zeros(0, numpy.float32)
        self.position = 0  # samples that lie behind
        if not len(self.look(1)):
            where = "in it" if end is None and not start else "between start and end"
            raise InputError(f"{path} holds no sound: there is not one sample {where}")

    def look(self, count: int) -> Array:
        """Return the next samples, fewer where the file ends."""
        held = [self._next]
        missing = count - len(self._next)
        while missing > 0:
            block = next(self._blocks, None)
            if block is None:
                break
            held.append(block)
            missing -= len(block)
        self._next = numpy.concatenate(held)
        return self._next[:count]

    def move(self, count: int) -> None:
        """Move past `count` of the samples last looked at."""
        self._next = self._next[count:]
        self.position += count


def read_sound(
    path: Path,
    start: float = 0.0,
    end: float | None = None,
    conversions: Conversions | None = None,
) -> Iterator[Array]:
    """Yield the samples from -1 to 1 at 16 kHz, the channels' mean, in blocks: those from `start`
    to `end`, in seconds. What lies before is not read."""
    with open(path, "rb") as file:
        layout = _read_header(file, path)
        if layout is not None:
            yield from _part(file, layout, start, end)
            return
    if conversions is not None:
        yield from read_sound(conversions.wav_of(path, RATE), start, end)
        return
    with Conversions() as own:
        yield from read_sound(own.wav_of(path, RATE), start, end)


def _part(
    file: BinaryIO,
    layout: Layout,
    start: float,
    end: float | None,
) -> Iterator[Array]:
    first = round(start * RATE)
    behind = None if end is None else round(end * RATE)
    if layout.rate == RATE:
        skipped = first
        blocks = _samples(file, layout, first)
    else:
        frames, skipped = start_before(first, layout.rate, RATE)
        blocks = resample(_samples(file, layout, frames), layout.rate, RATE)
    return _between(blocks, skipped, first, behind)


def _between(
    blocks: Iterator[Array],
    position: int,
    first: int,
    behind: int | None,
) -> Iterator[Array]:
    """Yield the samples from the first one up to the one behind, given the position at which the
    blocks begin."""
    for block in blocks:
        lower = max(0, first - position)
        upper = len(block) if behind is None else behind - position
        part = block[lower : max(0, upper)]
        position += len(block)
        if len(part):
            yield part
        if behind is not None and position >= behind:
            return


def log_mel(samples: Array, bands: int, frames: int) -> torch.Tensor:
    """Return (bands, frames) as Whisper reads them: a frame each 10 ms, silence behind the end,
    within 80 dB of the loudest."""
    size = frames * HOP
    padded = torch.zeros(size)
    sound = samples[:size]
    padded[: len(sound)] = torch.from_numpy(sound)
    window = torch.hann_window(_FRAME)
    spectrum = torch.stft(padded, _FRAME, HOP, window=window, return_complex=True)
    spectrum = spectrum[:, :-1]
    power = spectrum.abs() ** 2
    filters = torch.from_numpy(_mel_filters(bands))
    energy = filters @ power
    energy = energy.clamp(min=1e-10)
    loudness = energy.log10()
    floor = float(loudness.max()) - 8.0
    loudness = loudness.clamp(min=floor)
    return (loudness + 4.0) / 4.0


def quietest(samples: Array, first: int, behind: int) -> int:
    """Return the middle of the quietest tenth of a second between two samples."""
    energy = numpy.square(samples[first:behind], dtype=numpy.float64)
    sums = numpy.cumsum(energy)
    width = min(RATE // 10, len(sums) - 1)
    heard = sums[width:] - sums[:-width]
    return first + int(heard.argmin()) + width // 2 + 1


@cache
def _mel_filters(bands: int) -> Array:
    """(bands, _FRAME / 2 + 1): triangles of equal area on Slaney's scale, even up to 1 kHz and
    logarithmic above."""
    nyquist = RATE / 2
    factors = math.log(nyquist / 1000, 6.4)
    highest = 15.0 + 27.0 * factors
    mels = numpy.linspace(0.0, highest, bands + 2)
    low = mels * 200.0 / 3.0
    above = (mels - 15.0) / 27.0
    high = 1000.0 * 6.4**above
    edges = numpy.where(mels < 15.0, low, high)
    edges = edges[:, None]
    widths = numpy.diff(edges, axis=0)
    left = edges[:-2]
    right = edges[2:]
    bins = numpy.linspace(0.0, nyquist, _FRAME // 2 + 1)
    rising = (bins - left) / widths[:-1]
    falling = (right - bins) / widths[1:]
    triangles = numpy.minimum(rising, falling)
    triangles = triangles.clip(0.0)
    of_equal_area = triangles * 2.0 / (right - left)
    return of_equal_area.astype(numpy.float32)


def _read_header(file: BinaryIO, path: Path) -> Layout | None:
    """Read up to the first sample of a WAV file; None where it is of another kind."""
    head = file.read(12)
    if head[:4] + head[8:] != b"RIFFWAVE":
        return None
    form, promised = _read_chunks(file)
    has_data = promised is not None
    fields = form[:16].ljust(16, b"\0")
    coding, channels, rate, bits = struct.unpack("<HHI6xH", fields)
    is_usual = 1 <= channels <= 64 and 1000 <= rate <= 768_000
    if promised is None or not is_usual:
        content = f"{channels} channels at {rate:,} Hz" if has_data else "no sound"
        raise InputError(
            f"{path} has {content}; expected are 1 to 64 channels at 1,000 to 768,000 Hz, "
            "so make it again"
        )
    there = path.stat().st_size - file.tell()
    if there < promised < _UNKNOWN:
        raise InputError(
            f"{path} is cut off: its header promises {promised:,} bytes of sound "
            f"and {there:,} follow; copy it again"
        )
    if coding == _ELSEWHERE:
        coding = int.from_bytes(form[24:26], "little")
    if bits not in _WIDTHS.get(coding, ()):
        return None
    return Layout(
        rate=rate,
        coding=coding,
        width=bits // 8,
        channels=channels,
        size=min(promised, there),
    )


def _read_chunks(file: BinaryIO) -> tuple[bytes, int | None]:
    """Read up to the first sample: how samples are stored, and how many bytes of them the header
    promises, or None where there are none."""
    form = b""
    while len(head := file.read(8)) == 8:
        name = head[:4]
        length = int.from_bytes(head[4:], "little")
        if name == b"data":
            return form, length
        body = b""
        if name == b"fmt ":
            body = file.read(min(length, 26))
        form = body or form
        padding = length % 2
        file.seek(length + padding - len(body), 1)
    return form, None


def _samples(file: BinaryIO, layout: Layout, first: int) -> Iterator[Array]:
    step = layout.width * layout.channels
    left = layout.size - first * step
    file.seek(first * step, 1)
    read = _floats if layout.coding == _FLOAT else _integers
    while left >= step:
        raw = file.read(min(left, _BLOCK * step))
        if not raw:
            break
        left -= len(raw)
        whole_steps = len(raw) // step
        raw = raw[: whole_steps * step]
        values = read(raw, layout.width)
        by_channel = values.reshape(-1, layout.channels)
        mono = by_channel.mean(1)
        yield mono.astype(numpy.float32)


def _floats(raw: bytes, width: int) -> numpy.typing.NDArray[Any]:
    values = numpy.frombuffer(raw, f"<f{width}")
    return numpy.nan_to_num(values).clip(-1.0, 1.0)


def _integers(raw: bytes, width: int) -> numpy.typing.NDArray[Any]:
    # The bytes become the upper ones of four.
    count = len(raw) // width
    wide = numpy.zeros((count, 4), numpy.uint8)
    given = numpy.frombuffer(raw, numpy.uint8)
    wide[:, 4 - width :] = given.reshape(count, width)
    if width == 1:  # single bytes have no sign
        wide[:, 3] ^= 128
    return wide.view("<i4") / 2.0**31
