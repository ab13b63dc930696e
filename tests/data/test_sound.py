"""Sound files: every coding that WAV has for plain samples, other rates, broken files, and
Whisper's features of them."""

from __future__ import annotations

import os
import struct
import wave
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from dragoman.data import resampling, sound_conversion
from dragoman.data.sound import RATE, Sound, log_mel, read_sound
from dragoman.errors import DragomanError, InputError, MissingDependencyError


def wav(
    path: Path,
    body: bytes,
    tag: int = 1,
    channels: int = 1,
    rate: int = RATE,
    bits: int = 16,
    claim: int = -1,
) -> Path:
    """A WAV file by the book, with a chunk that says nothing before the samples; `claim` is the
    length that it tells."""
    form = struct.pack(
        "<HHIIHH", tag, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits
    )
    if tag == 0xFFFE:
        form += struct.pack("<HHIH14x", 22, bits, 0, 1)
    chunks = (
        b"fmt " + struct.pack("<I", len(form)) + form + b"LIST" + struct.pack("<I", 3) + b"abc\0"
    )
    chunks += b"data" + struct.pack("<I", len(body) if claim < 0 else claim) + body
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)
    return path


def tone(hertz: float, rate: int, seconds: float) -> numpy.ndarray:
    return 0.5 * numpy.sin(2 * numpy.pi * hertz * numpy.arange(int(rate * seconds)) / rate)


def read(path: Path) -> numpy.ndarray:
    return numpy.concatenate(list(read_sound(path)))


@pytest.mark.parametrize(
    ("tag", "bits", "body"),
    [
        (1, 8, bytes([0, 64, 128, 192])),
        (1, 16, struct.pack("<4h", -32768, -16384, 0, 16384)),
        (0xFFFE, 16, struct.pack("<4h", -32768, -16384, 0, 16384)),
        (1, 24, bytes([0, 0, 0x80, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0x40])),
        (1, 32, struct.pack("<4i", -(2**31), -(2**30), 0, 2**30)),
        (3, 32, struct.pack("<4f", -1.0, -0.5, 0.0, 0.5)),
        (3, 64, struct.pack("<4d", -1.0, -0.5, float("nan"), 0.5)),
    ],
)
def test_every_coding_gives_the_same_samples(
    tmp_path: Path, tag: int, bits: int, body: bytes
) -> None:
    assert read(wav(tmp_path / "a.wav", body, tag, bits=bits)).tolist() == [-1.0, -0.5, 0.0, 0.5]


def test_channels_are_averaged_and_odd_bytes_left(tmp_path: Path) -> None:
    body = struct.pack("<4h", 16384, 0, -16384, -16384) + b"\x01"
    assert read(wav(tmp_path / "a.wav", body, channels=2)).tolist() == [0.25, -0.5]


def test_a_length_that_was_never_filled_in(tmp_path: Path) -> None:
    assert len(read(wav(tmp_path / "a.wav", bytes(200), claim=0xFFFFFFFF))) == 100


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 44101, 48000])
def test_other_rates_keep_a_tone(tmp_path: Path, rate: int) -> None:
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes((tone(1000, rate, 3.0) * 32767).astype("<i2").tobytes())
    found = read(path)
    assert len(found) == 3 * RATE
    assert numpy.abs(found - tone(1000, RATE, 3.0))[200:-200].max() < 1e-3


def test_what_16_khz_cannot_hold_is_gone() -> None:
    found = numpy.concatenate(
        list(
            resampling.resample(iter([tone(9000, 48_000, 1.0).astype(numpy.float32)]), 48_000, RATE)
        )
    )
    assert numpy.abs(found[200:-200]).max() < 1e-5


def signal(rate: int, highest: float) -> numpy.ndarray:
    """A second of twelve tones up to `highest` Hz, with phases of their own, in float64."""
    seconds = numpy.arange(rate) / rate
    phases = numpy.random.default_rng(1).uniform(0.0, 2 * numpy.pi, 12)
    tones = numpy.linspace(110.0, highest, 12)
    parts = [
        numpy.sin(2 * numpy.pi * hertz * seconds + phase)
        for hertz, phase in zip(tones, phases, strict=True)
    ]
    return 0.05 * sum(parts)


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000])
def test_resampling_is_exact_to_100_db(rate: int) -> None:
    """Against the same tones computed at 16 kHz. A Kaiser window with beta 9 over 16 crossings and
    a cutoff of 0.97, the default of ffmpeg's resampler, gives 29 dB here."""
    highest = 0.9 * min(rate, RATE) / 2
    given = signal(rate, highest).astype(numpy.float32)
    found = numpy.concatenate(
        list(resampling.resample(iter(numpy.array_split(given, 4)), rate, RATE))
    )
    expected = signal(RATE, highest)
    inside = slice(1000, -1000)
    noise = found[inside] - expected[inside]
    assert 10 * numpy.log10((expected[inside] ** 2).sum() / (noise**2).sum()) > 100


def test_blocks_do_not_show() -> None:
    """In float64, whose rounding, which differs from CPU to CPU, is far below the least weight."""
    noise: Any = numpy.random.default_rng(1).normal(size=50_000)
    whole = numpy.concatenate(list(resampling.resample(iter([noise]), 44_100, RATE)))
    parts = numpy.concatenate(
        list(resampling.resample(iter(numpy.split(noise, [7, 8, 900, 40_000])), 44_100, RATE))
    )
    assert len(whole) == -(-50_000 * 160 // 441)
    assert whole.dtype == numpy.float64
    assert numpy.abs(whole - parts).max() < 1e-12


def test_a_sound_is_walked_through_and_forgotten(tmp_path: Path) -> None:
    values = numpy.arange(-32768, 32768, dtype="<i2")
    heard = Sound(wav(tmp_path / "a.wav", values.tobytes() * 3))
    assert (heard.look(40_000) * 32768).tolist() == values[:40_000].tolist()
    heard.move(30_000)
    assert (heard.look(40_000) * 32768).tolist() == [*values[30_000:], *values[: 40_000 - 35_536]]
    assert heard.position == 30_000
    assert len(heard._next) < 100_000
    heard.move(40_000)
    assert len(heard.look(200_000)) == 3 * 65_536 - 70_000


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100])
def test_a_part_is_read_from_where_it_begins(rate: int, tmp_path: Path) -> None:
    values = numpy.random.default_rng(1).integers(-20_000, 20_000, 3 * rate).astype("<i2")
    path = wav(tmp_path / "a.wav", values.tobytes(), rate=rate)
    whole = read(path)
    for start, end in ((0.0, 0.5), (0.01, 0.02), (1.25, 2.0), (2.9, None), (2.999, 7.0)):
        part = numpy.concatenate(list(read_sound(path, start, end)))
        behind = None if end is None else round(end * RATE)
        numpy.testing.assert_allclose(part, whole[round(start * RATE) : behind], atol=1e-5)
    # What lies before is not even looked at.
    with path.open("r+b") as file:
        file.seek(-2 * 3 * rate, os.SEEK_END)
        file.write(b"\x11" * rate)
    later = numpy.concatenate(list(read_sound(path, 2.0)))
    numpy.testing.assert_allclose(later, whole[2 * RATE :], atol=1e-5)
    assert not list(read_sound(path, 3.5, 4.0))


def test_parts_of_a_file_are_converted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: list[Path] = []

    def convert(path: Path, out: Path, rate: int) -> None:
        assert not out.exists()
        converted.append(path)
        wav(out, path.read_bytes(), rate=rate)

    monkeypatch.setattr(sound_conversion, "_convert", convert)
    one = tmp_path / "one.mp3"
    two = tmp_path / "two.mp3"
    one.write_bytes(struct.pack("<h", 8192) * RATE)
    two.write_bytes(struct.pack("<h", -8192) * RATE)
    heard = []
    with sound_conversion.Conversions() as conversions:
        for path, start in ((one, 0.0), (one, 0.25), (two, 0.5), (one, 0.75)):
            sound = Sound(path, start, start + 0.1, conversions)
            heard.append((len(sound.look(RATE)), float(sound.look(1)[0])))
    assert heard == [(1600, 0.25), (1600, 0.25), (1600, -0.25), (1600, 0.25)]
    assert converted == [one, two, one]


@pytest.mark.parametrize("bands", [80, 128])
def test_features_are_whispers(bands: int) -> None:
    extractor = pytest.importorskip("transformers").WhisperFeatureExtractor(feature_size=bands)
    samples = numpy.random.default_rng(1).normal(scale=0.1, size=5 * RATE).astype(numpy.float32)
    samples[RATE : 2 * RATE] += tone(440, RATE, 1.0).astype(numpy.float32)
    samples[3 * RATE :] = 0.0
    for heard in (samples, numpy.tile(samples, 7)):  # shorter and longer than a window
        theirs = extractor(heard, sampling_rate=RATE, return_tensors="pt")["input_features"][0]
        ours = log_mel(heard, bands, 3000)
        assert ours.shape == (bands, 3000)
        assert torch.allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["text", "no channels", "cut", "ten hours", "no data", "no samples", "empty", "slow"]
)
def test_broken_files_give_one_sentence(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = wav(tmp_path / "a.wav", bytes(1000))
    if name == "no channels":
        wav(path, bytes(1000), channels=0)
    elif name == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif name == "ten hours":
        wav(path, b"", claim=10 * 3600 * 2 * RATE)
    elif name == "no samples":
        wav(path, b"")
    elif name == "slow":
        wav(path, bytes(1000), rate=10)
    else:
        path.write_bytes(
            {"text": b"Hello, I am a text.", "no data": path.read_bytes()[:40], "empty": b""}[name]
        )
    with pytest.raises(
        MissingDependencyError if name in ("text", "empty") else InputError
    ) as caught:
        Sound(path)
    assert "a.wav" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_formats_go_through_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wav(tmp_path / "made.wav", struct.pack("<2h", 16384, -16384))
    program = tmp_path / "ffmpeg"
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/said\n'
        f"for last; do :; done\n/bin/cp {tmp_path}/made.wav $last\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "-song.mp3"
    path.write_bytes(b"ID3")
    monkeypatch.chdir(tmp_path)
    assert read(Path("-song.mp3")).tolist() == [0.5, -0.5]
    assert (
        "-i file:-song.mp3 " in (tmp_path / "said").read_text()
    )  # a name is never taken for an option or another protocol
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(InputError, match="ffmpeg finds no sound"):
        read(path)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("tmp")]
    program.unlink()
    with pytest.raises(DragomanError, match="apt install ffmpeg"):
        read(path)


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("block", [100, 4096])
def test_rows_of_samples_are_the_samples_one_by_one(
    rate: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resampling by products of matrices is what each sample's own taps give."""
    values = numpy.random.default_rng(3).normal(size=rate // 3).astype(numpy.float32)

    def resampled() -> numpy.ndarray:
        blocks = (values[first : first + block] for first in range(0, len(values), block))
        return numpy.concatenate(list(resampling.resample(blocks, rate, RATE)))

    in_rows = resampled()
    monkeypatch.setattr(resampling, "_LARGEST_BANK", 0)
    one_by_one = resampled()
    assert len(in_rows) == len(one_by_one)
    numpy.testing.assert_allclose(in_rows, one_by_one, atol=2e-6, rtol=0)
