"""Prepared recordings and their batches: samples to the bit, features as Whisper's own extractor
makes them, masks by (seed, epoch)."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import spoken_tones
import torch

from dragoman.data.batches import Draw
from dragoman.data.prepared_files import check_speech
from dragoman.data.recordings import Recording
from dragoman.data.speech import Hearing, Masks, Speech, hide, write_speech
from dragoman.errors import InputError, ModelFolderError

HEARING = Hearing(bands=80, positions=50)  # a second
MASKS = Masks(times=2, bands=2)


def prepared(folder: Path) -> Path:
    """Three recordings of 0.2, 0.4 and 0.6 seconds."""
    rows = []
    for count in (1, 2, 3):
        samples = spoken_tones.tones(["mid", "top", "low"][:count])
        path = spoken_tones.write_wav(folder / f"{count}.wav", samples)
        rows.append((Recording(path, "text"), [*[5, 6, 7][:count], 3]))
    data = folder / "data"
    data.mkdir()
    assert write_speech(data, rows, HEARING, "<u2") == pytest.approx(1.2)
    check_speech(data, "<u2", 8, HEARING.samples)
    return data


def test_a_batch(tmp_path: Path) -> None:
    speech = Speech(prepared(tmp_path), "<u2", 2, HEARING)
    rows = numpy.array([2, 0])
    sources, targets = speech.lengths(rows)
    assert len(speech) == 3
    assert sources.tolist() == [50, 50]
    assert targets.tolist() == [4, 2]
    batch = speech.batch(rows)
    assert batch.target.tolist() == [[2, 5, 6, 7], [2, 5, 0, 0]]
    assert batch.positions.tolist() == [0, 1, 2, 3, 4, 5]
    assert batch.labels.tolist() == [5, 6, 7, 3, 5, 3]
    assert batch.lengths is None
    assert batch.source.shape == (2, 80, 100)


def test_features_are_those_of_transformers(tmp_path: Path) -> None:
    """With silence behind the end, as Whisper pads."""
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    speech = Speech(prepared(tmp_path), "<u2", 2, HEARING)
    extractor = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=1)
    for row in range(3):
        samples = spoken_tones.tones(["mid", "top", "low"][: row + 1])
        stored = (samples * 32768).round().astype("<i2").astype(numpy.float32) / 32768
        assert speech.samples(row).tolist() == stored.tolist()
        theirs = extractor(stored, sampling_rate=16_000, return_tensors="pt")["input_features"][0]
        torch.testing.assert_close(speech.features(row), theirs, atol=1e-4, rtol=0)


def test_masks_follow_from_seed_and_epoch(tmp_path: Path) -> None:
    data = prepared(tmp_path)
    whole = Speech(data, "<u2", 2, HEARING).features(2)

    def shown(seed: int, epoch: int, masks: Masks = MASKS) -> torch.Tensor:
        return Speech(data, "<u2", 2, HEARING, (masks, Draw(seed, epoch))).features(2)

    torch.testing.assert_close(shown(1, 4), shown(1, 4), rtol=0, atol=0)
    assert not torch.equal(shown(1, 4), shown(1, 5))
    assert not torch.equal(shown(1, 4), shown(2, 4))
    torch.testing.assert_close(shown(1, 4, Masks()), whole, rtol=0, atol=0)
    hidden = shown(1, 4) != whole
    assert (shown(1, 4)[hidden] == 0.0).all()


def test_masks_keep_to_their_widths() -> None:
    """Two stretches of at most a tenth of the 60 frames that have sound, two ranges of at most 27
    of 80 bands; and in the mean half of that each."""
    random = numpy.random.default_rng(1)
    hidden_frames = []
    hidden_bands = []
    for _ in range(300):
        spectrum = torch.ones(80, 100)
        hide(spectrum, 60, Masks(times=2), random)
        frames = spectrum[0] == 0
        assert (spectrum == 0).sum() == 80 * frames.sum()
        assert not frames[60:].any()
        hidden_frames.append(int(frames.sum()))
        spectrum = torch.ones(80, 100)
        hide(spectrum, 60, Masks(bands=2), random)
        hidden_bands.append(int((spectrum[:, 0] == 0).sum()))
    assert max(hidden_frames) <= 12
    assert max(hidden_bands) <= 54
    assert 5.0 < numpy.mean(hidden_frames) <= 6.3  # two of three on average, less what overlaps
    assert 20.0 < numpy.mean(hidden_bands) <= 27.5


def test_what_cannot_be_heard(tmp_path: Path) -> None:
    spoken_tones.write_wav(tmp_path / "long.wav", numpy.zeros(16_001))
    spoken_tones.write_wav(tmp_path / "whole.wav", numpy.zeros(16_000))
    spoken_tones.write_wav(tmp_path / "empty.wav", numpy.zeros(0))
    cut = spoken_tones.write_wav(tmp_path / "cut.wav", numpy.zeros(9_000))
    cut.write_bytes(cut.read_bytes()[:5_000])
    (tmp_path / "noise.wav").write_bytes(b"RIFF\0\0\0\0WAVEdata")

    def prepare(name: str, start: float = 0.0, end: float | None = None) -> None:
        one = Recording(tmp_path / name, "a", start=start, end=end, place="list.tsv, line 3")
        write_speech(tmp_path, [(one, [3])], HEARING, "<u2")

    prepare("whole.wav")
    prepare("long.wav", 0.5)
    prepare("long.wav", 0.0, 1.0)
    for name, said in (
        ("long.wav", "lasts longer than the 1 s that the model hears"),
        ("empty.wav", "no sound"),
        ("cut.wav", "is cut off"),
        ("noise.wav", "no sound"),
        ("gone.wav", "does not exist"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            prepare(name)
        assert str(caught.value).startswith(f"list.tsv, line 3: {tmp_path / name}")
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="not one sample between start and end"):
        prepare("whole.wav", 5.0, 6.0)


def test_a_part_of_a_file_is_its_samples(tmp_path: Path) -> None:
    ramp = numpy.arange(16_000) / 32768
    path = spoken_tones.write_wav(tmp_path / "a.wav", ramp)
    one = Recording(path, "a", start=0.25, end=0.75)
    write_speech(tmp_path, [(one, [3])], HEARING, "<u2")
    samples = Speech(tmp_path, "<u2", 2, HEARING).samples(0)
    assert (samples * 32768).tolist() == list(range(4_000, 12_000))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("sound.bin", lambda raw: raw[:-2], "ends at sample|it ends at token"),
        ("sound.bin", lambda raw: raw[:-1], "not a multiple of 2"),
        ("sound.idx", lambda raw: raw[:8] + bytes(8) + raw[16:], "do not rise"),
        ("sound.idx", lambda raw: raw[:8] + raw[16:], "2 recordings, and there are 3 texts"),
        ("target.bin", lambda raw: b"\xff\xff" + raw[2:], "65,535, and there are 8"),
    ],
)
def test_damaged_files_are_refused(name: str, content: object, said: str, tmp_path: Path) -> None:
    data = prepared(tmp_path)
    raw = (data / name).read_bytes()
    (data / name).write_bytes(content(raw))  # type: ignore[operator]
    with pytest.raises(ModelFolderError, match=said):
        check_speech(data, "<u2", 8, HEARING.samples)


def test_sounds_that_are_too_long_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match="9,600 samples; at most 9,000"):
        check_speech(prepared(tmp_path), "<u2", 8, 9_000)
