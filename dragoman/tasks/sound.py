"""Sound files as Whisper hears them: samples at 16 kHz, read a little at a time, and log-mel
features of a window of them.

Reads WAV itself and everything else through ffmpeg, where that is installed. Knows no model, no
tokens and no text.
"""

from __future__ import annotations

import math
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy
import numpy.typing
import torch

from dragoman.errors import InputError, MissingDependencyError

Array = numpy.typing.NDArray[numpy.float32]
RATE = 16_000
HOP = 160  # samples between two frames of features
_FRAME = 400  # samples that a frame looks at
_BLOCK = 2**12  # samples of a file that are read at once
_ZEROS = 32  # zero crossings of the resampling filter on each side
_PLAIN, _FLOAT, _ELSEWHERE = (
    1,
    3,
    0xFFFE,
)  # how a WAV file says that samples are coded; the last: it says so further on
# what ffmpeg may take a file for: no playlists, which name other files
_CONTAINERS = "wav,aiff,flac,mp3,ogg,aac,mov,matroska"
_PATIENCE, _LONGEST = 900, 36 * 3600  # seconds that ffmpeg may work, and that the sound may last


class Sound:
    """A file's samples, from where we stand on; what lies behind is forgotten, so that hours of
    it take little memory."""

    def __init__(self, path: Path) -> None:
        self._blocks, self._ahead = read_sound(path), numpy.zeros(0, numpy.float32)
        self.position = 0  # samples that lie behind
        if not len(self.look(1)):
            raise InputError(f"{path} holds no sound: there is not one sample in it")

    def look(self, count: int) -> Array:
        """The next samples, fewer where the file ends."""
        held, missing = [self._ahead], count - len(self._ahead)
        while missing > 0 and (block := next(self._blocks, None)) is not None:
            held, missing = [*held, block], missing - len(block)
        self._ahead = numpy.concatenate(held)
        return self._ahead[:count]

    def move(self, count: int) -> None:
        """Past so many samples of those last looked at."""
        self._ahead, self.position = self._ahead[count:], self.position + count


def read_sound(path: Path) -> Iterator[Array]:
    """The samples from -1 to 1 at 16 kHz, the channels' mean, in blocks."""
    with open(path, "rb") as file, tempfile.TemporaryDirectory() as folder:
        layout = _read_header(file, path)
        if layout is None:
            yield from read_sound(_converted(path, Path(folder) / "sound.wav"))
        else:
            blocks = _samples(file, *layout[1:])
            yield from blocks if layout[0] == RATE else resample(blocks, layout[0])


def resample(blocks: Iterator[Array], rate: int) -> Iterator[Array]:
    """To 16 kHz, by a windowed sinc that lets pass what both rates can hold."""
    up, down = RATE // math.gcd(rate, RATE), rate // math.gcd(rate, RATE)
    cut = 0.97 * min(1.0, up / down)  # of half the rate; the filter needs a little room to fall
    half = math.ceil(_ZEROS / cut)
    # Sample n lies at n * down / up of the input: one of `up` places between two samples, each with
    # weights of its own.
    weights = numpy.empty((up, 2 * half), numpy.float32)
    for place in range(up):
        away = numpy.arange(1 - half, half + 1) - place / up
        weights[place] = cut * numpy.sinc(cut * away) * numpy.cos(numpy.pi / 2 * away / half) ** 2
    silence = numpy.zeros(half, numpy.float32)
    held, behind, told = silence[1:], 0, 0  # samples at hand, those forgotten, those given
    for block in chain(blocks, [silence]):
        held = numpy.concatenate([held, block])
        ready = -(
            -(behind + len(held) - 2 * half + 1) * up // down
        )  # those whose last tap is at hand
        if ready <= told:
            continue
        places = numpy.arange(told, ready)
        windows = numpy.lib.stride_tricks.sliding_window_view(held, 2 * half)[
            places * down // up - behind
        ]
        yield numpy.einsum("nt,nt->n", windows, weights[places * down % up])
        gone = ready * down // up - behind
        held, behind, told = held[gone:], behind + gone, ready


def log_mel(samples: Array, bands: int, frames: int) -> torch.Tensor:
    """(bands, frames) as Whisper's: a frame each 10 ms, silence behind the end, within 80 dB of
    the loudest."""
    padded = torch.zeros(frames * HOP)
    padded[: len(samples)] = torch.from_numpy(samples[: len(padded)])
    spectrum = torch.stft(
        padded, _FRAME, HOP, window=torch.hann_window(_FRAME), return_complex=True
    )[:, :-1]
    loudness = (
        (torch.from_numpy(_mel_filters(bands)) @ spectrum.abs() ** 2).clamp(min=1e-10).log10()
    )
    return (loudness.clamp(min=float(loudness.max()) - 8.0) + 4.0) / 4.0


def _mel_filters(bands: int) -> Array:
    """(bands, _FRAME / 2 + 1): triangles of equal area on Slaney's scale, even up to 1 kHz and
    logarithmic above."""
    mels = numpy.linspace(0.0, 15.0 + 27.0 * math.log(RATE / 2 / 1000, 6.4), bands + 2)
    edges = numpy.where(mels < 15.0, mels * 200.0 / 3.0, 1000.0 * 6.4 ** ((mels - 15.0) / 27.0))[
        :, None
    ]
    bins, widths = numpy.linspace(0.0, RATE / 2, _FRAME // 2 + 1), numpy.diff(edges, axis=0)
    triangles = numpy.minimum(
        (bins - edges[:-2]) / widths[:-1], (edges[2:] - bins) / widths[1:]
    ).clip(0.0)
    return (triangles * 2.0 / (edges[2:] - edges[:-2])).astype(numpy.float32)


def _read_header(file: BinaryIO, path: Path) -> tuple[int, int, int, int, int] | None:
    """Of a WAV file its rate, coding, bytes of a sample, channels and bytes of all samples, the
    file standing before the first; None where it is of another kind."""
    head, form = file.read(12), b""
    if head[:4] + head[8:] != b"RIFFWAVE":
        return None
    while len(chunk := file.read(8)) == 8 and chunk[:4] != b"data":
        length = int.from_bytes(chunk[4:], "little")
        body = file.read(min(length, 26)) if chunk[:4] == b"fmt " else b""
        form = body or form
        file.seek(length + length % 2 - len(body), 1)
    coding, channels, rate, bits = struct.unpack("<HHI6xH", form[:16].ljust(16, b"\0"))
    if not (len(chunk) == 8 and 1 <= channels <= 64 and 1000 <= rate <= 768_000):
        told = f"{channels} channels at {rate:,} Hz" if len(chunk) == 8 else "no sound"
        raise InputError(
            f"{path} has {told}; "
            "expected are 1 to 64 channels at 1,000 to 768,000 Hz, so make it anew"
        )
    length, there = int.from_bytes(chunk[4:], "little"), path.stat().st_size - file.tell()
    if there < length < 2**32 - 1:  # which a program writes that cannot go back and fill it in
        raise InputError(
            f"{path} is cut off: "
            f"its header promises {length:,} bytes of sound and {there:,} follow; copy it again"
        )
    coding = int.from_bytes(form[24:26], "little") if coding == _ELSEWHERE else coding
    read_here = bits in {_PLAIN: (8, 16, 24, 32), _FLOAT: (32, 64)}.get(coding, ())
    return (rate, coding, bits // 8, channels, min(length, there)) if read_here else None


def _samples(file: BinaryIO, coding: int, width: int, channels: int, size: int) -> Iterator[Array]:
    while size >= width * channels and (raw := file.read(min(size, _BLOCK * width * channels))):
        size -= len(raw)
        raw = raw[: len(raw) // (width * channels) * width * channels]
        if coding == _FLOAT:
            values = numpy.nan_to_num(numpy.frombuffer(raw, f"<f{width}")).clip(-1.0, 1.0)
        else:
            wide = numpy.zeros(
                (len(raw) // width, 4), numpy.uint8
            )  # the bytes become the upper ones of four
            wide[:, 4 - width :] = numpy.frombuffer(raw, numpy.uint8).reshape(-1, width)
            wide[:, 3] ^= 128 * (width == 1)  # single bytes have no sign
            values = wide.view("<i4") / 2.0**31
        yield values.reshape(-1, channels).mean(1).astype(numpy.float32)


def _converted(path: Path, out: Path) -> Path:
    """As WAV, by ffmpeg, which is told to open nothing but this file."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise MissingDependencyError(
            f"{path} is no WAV file of plain samples, and ffmpeg, which reads others, "
            "is not installed; run: apt install ffmpeg"
        )
    words = [
        program,
        "-nostdin",
        "-v",
        "quiet",
        "-protocol_whitelist",
        "file",
        "-format_whitelist",
        _CONTAINERS,
    ]
    words += [
        "-i",
        f"file:{path}",
        "-map",
        "0:a:0",
        "-t",
        f"{_LONGEST}",
        "-ac",
        "1",
        "-ar",
        f"{RATE}",
        "-c:a",
        "pcm_s16le",
    ]
    try:
        subprocess.run([*words, f"{out}"], timeout=_PATIENCE, check=True)
    except (subprocess.SubprocessError, OSError):
        raise InputError(
            f"ffmpeg finds no sound in {path}; `ffmpeg -i {path}` says why, convert it to WAV"
        ) from None
    return out
