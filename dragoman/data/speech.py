"""Recordings as one file of samples with the tokens of what is said in each, and batches of
features made of them. Knows files, samples and tokens; knows no text and no model.

Features are made when a batch is, so that a set takes no more memory than a batch, and the disk
holds 16-bit samples: 115 MB for an hour. In training some of their time and some of their bands may
be hidden (SpecAugment, Park et al. 2019); which follows from (seed, epoch).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.data.batches import Batch, Draw, Rows
from dragoman.data.blocks import map_tokens
from dragoman.data.data_options import DataOptions
from dragoman.data.recordings import Recording, naming
from dragoman.data.sound import HOP, RATE, Array, Sound, log_mel
from dragoman.data.sound_conversion import Conversions
from dragoman.errors import InputError
from dragoman.folder import layout

TICK = 2 * HOP  # samples from one position of the encoder to the next
SAMPLES = "<i2"
SOUND = "sound"
TARGET = "target"
_OFFSETS = "<i8"
_FULL_SCALE = 32768
# The widest masks, as shares: of the bands 27 of 80, as in the paper; of a recording's time a
# tenth, so that a word of a short recording rarely disappears.
_WIDEST_BANDS = 27 / 80
_LONGEST_TIME = 0.1


@dataclass(frozen=True)
class Masks:
    """How many stretches of time and ranges of bands are hidden in each recording."""

    times: int = 0
    bands: int = 0

    @classmethod
    def of(cls, options: DataOptions) -> Masks:
        """What the options say."""
        return cls(options.time_masks, options.band_masks)


@dataclass(frozen=True)
class Hearing:
    """What a model hears at once."""

    bands: int
    positions: int  # of its encoder

    @property
    def samples(self) -> int:
        """Of a window."""
        return self.positions * TICK

    @property
    def frames(self) -> int:
        """Of the features of a window."""
        return 2 * self.positions


class Speech:
    """The recordings of one prepared split; some of each is hidden if there is a draw."""

    def __init__(
        self,
        folder: Path,
        dtype: str,
        start: int,
        hearing: Hearing,
        masking: tuple[Masks, Draw] | None = None,
    ) -> None:
        self._samples = map_tokens(folder / layout.tokens(SOUND), SAMPLES)
        self._sounds = map_tokens(folder / layout.offsets(SOUND), _OFFSETS)
        self._tokens = map_tokens(folder / layout.tokens(TARGET), dtype)
        self._targets = map_tokens(folder / layout.offsets(TARGET), _OFFSETS)
        self._start = start
        self._hearing = hearing
        self._masking = masking

    def __len__(self) -> int:
        return len(self._targets) - 1

    def lengths(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the positions of the encoder, as many for each recording, and the tokens of what
        is said."""
        targets = np.asarray(self._targets[rows + 1] - self._targets[rows])
        return np.full(len(rows), self._hearing.positions), targets

    def batch(self, rows: Rows) -> Batch:
        """Return features (B, bands, frames), and the tokens to be predicted."""
        spectra = [self.features(row) for row in rows.tolist()]
        tokens = [self.tokens(row) for row in rows.tolist()]
        lengths = np.array([len(row) for row in tokens])
        longest = int(lengths.max())
        target = np.zeros((len(rows), longest), np.int64)
        for padded, row in zip(target, tokens, strict=True):
            padded[0] = self._start
            padded[1 : len(row)] = row[:-1]
        is_real = np.arange(longest) < lengths[:, None]
        labels = np.concatenate(tokens).astype(np.int64)
        return Batch(
            source=torch.stack(spectra),
            target=torch.from_numpy(target),
            lengths=None,
            positions=torch.from_numpy(np.flatnonzero(is_real)),
            labels=torch.from_numpy(labels),
        )

    def features(self, row: int) -> torch.Tensor:
        """Return the features of a recording, (bands, frames), silence behind its end."""
        samples = self.samples(row)
        spectrum = log_mel(samples, self._hearing.bands, self._hearing.frames)
        if self._masking is not None:
            masks, draw = self._masking
            n_frames = -(-len(samples) // HOP)
            random = np.random.default_rng([*draw, 5, row])
            hide(spectrum, n_frames, masks, random)
        return spectrum

    def samples(self, row: int) -> Array:
        """Return the samples of a recording, from -1 to 1."""
        stored = self._samples[self._sounds[row] : self._sounds[row + 1]]
        return stored.astype(np.float32) / np.float32(_FULL_SCALE)

    def tokens(self, row: int) -> NDArray[np.int64]:
        """Return the tokens of what is said, the end included."""
        return np.asarray(self._tokens[self._targets[row] : self._targets[row + 1]])


def hide(
    spectrum: torch.Tensor,
    n_frames: int,
    masks: Masks,
    random: np.random.Generator,
) -> None:
    """Hide stretches of the first `n_frames` frames of a spectrum (bands, frames), and ranges of
    its bands: they become 0, which lies in the middle of what features are."""
    n_bands = spectrum.size(0)
    longest = int(n_frames * _LONGEST_TIME)
    widest = round(n_bands * _WIDEST_BANDS)
    for _ in range(masks.times):
        first, behind = _stretch(n_frames, longest, random)
        spectrum[:, first:behind] = 0.0
    for _ in range(masks.bands):
        first, behind = _stretch(n_bands, widest, random)
        spectrum[first:behind] = 0.0


def write_speech(
    folder: Path,
    recordings: Iterable[tuple[Recording, list[int]]],
    hearing: Hearing,
    dtype: str,
) -> float:
    """Write the samples of recordings and their tokens, and return how many seconds they last.

    A recording that cannot be read, is empty or longer than the model hears at once is an error.
    """
    sound_ends = [0]
    target_ends = [0]
    with (
        Conversions() as conversions,
        (folder / layout.tokens(SOUND)).open("wb") as sounds,
        (folder / layout.tokens(TARGET)).open("wb") as targets,
    ):
        for recording, tokens in recordings:
            with naming(recording):
                samples = read_whole(recording, hearing.samples, conversions)
            scaled = (samples * _FULL_SCALE).round().clip(-_FULL_SCALE, _FULL_SCALE - 1)
            sounds.write(scaled.astype(SAMPLES).tobytes())
            targets.write(np.array(tokens, dtype).tobytes())
            sound_ends.append(sound_ends[-1] + len(samples))
            target_ends.append(target_ends[-1] + len(tokens))
    np.array(sound_ends, _OFFSETS).tofile(folder / layout.offsets(SOUND))
    np.array(target_ends, _OFFSETS).tofile(folder / layout.offsets(TARGET))
    return sound_ends[-1] / RATE


def read_whole(recording: Recording, most: int, conversions: Conversions) -> Array:
    """Return the samples of a recording, at most `most` of them."""
    sound = Sound(recording.path, recording.start, recording.end, conversions)
    samples = sound.look(most + 1)
    if len(samples) > most:
        raise InputError(
            f"{recording.name} lasts longer than the {most / RATE:g} s that the model hears at "
            'once; cut it, or name parts of it by "start" and "end" in a .jsonl file'
        )
    return samples


def _stretch(whole: int, longest: int, random: np.random.Generator) -> tuple[int, int]:
    """Return the beginning and end of a part that is up to so long."""
    length = int(random.integers(longest + 1))
    first = int(random.integers(whole - length + 1))
    return first, first + length
