"""`dragoman train`, `evaluate` and `transcribe` for speech, through the front door."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import spoken_tones

from dragoman.cli import main as front_door
from dragoman.tasks.speech_scores import edits

Run = Callable[..., tuple[int, str, str]]
MODEL = [
    word
    for name, value in {**spoken_tones.SHAPE, "dropout": "0.0"}.items()
    for word in ("--set", f"model.{name}={value}")
]
QUICK = ["--preset", "tiny", "--vocab-size", "280", "--device", "cpu", "--steps", "4"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    spoken_tones.write_recordings(folder, "train", 30)
    spoken_tones.write_recordings(folder, "test", 3, seed=5)
    return folder


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.chdir(place)
        monkeypatch.setattr(sys, "argv", ["dragoman", *words])
        with pytest.raises(SystemExit) as stopped:
            front_door.main()
        said = capsys.readouterr()
        return int(stopped.value.code or 0), said.out, said.err

    return call


def trained(run: Run, out: str, *more: str) -> None:
    if not Path(out).exists():
        words = ["train", "--task", "speech", "train.tsv", "--out", out, *QUICK, *MODEL, *more]
        code, _, errors = run(*words)
        assert code == 0, errors


def test_a_model_is_trained_continued_scored_and_used(run: Run, place: Path) -> None:
    trained(run, str(place / "model"), "--from", "en")
    code, out, _ = run("evaluate", "-m", "model", "--task", "speech", "test.tsv", "--json")
    assert code == 0
    scores = json.loads(out)
    assert (scores["model"], scores["recordings"]) == ("model", 3)
    said = []
    for number in range(3):
        code, out, _ = run("transcribe", "-m", "model", f"test/{number}.wav")
        assert code == 0
        said.append(" ".join(out.split()))
    texts = [line.split("\t")[1] for line in (place / "test.tsv").read_text().splitlines()]
    pairs = list(zip(said, texts, strict=True))
    wrong = sum(edits(one.split(), text.split()) for one, text in pairs)
    assert scores["words"] == sum(len(text.split()) for text in texts)
    assert scores["wer"]["value"] == pytest.approx(100 * wrong / scores["words"])
    code, out, _ = run("evaluate", "-m", "model", "test.tsv", "--beam", "2")
    assert code == 0
    assert out.startswith("WER ")
    assert "3 recordings" in out
    words = ["train", "--task", "speech", "train.tsv", "--continue", "model", "--out", "ours"]
    code, out, errors = run(*words, "--steps", "2", "--device", "cpu")
    assert code == 0, errors
    assert re.search("auto preset for 2[0-9] recordings: 16 of them a step, 2 steps", errors)
    assert "try it: dragoman transcribe one.wav -m ours" in errors
    code, out, _ = run("transcribe", "-m", "ours", "test/0.wav", "--exact", "--jsonl")
    assert code == 0


def test_a_model_that_translates(run: Run, place: Path) -> None:
    trained(run, str(place / "into"), "--from", "fi", "--to", "en")
    code, out, _ = run("evaluate", "-m", "into", "test.tsv", "--json")
    assert code == 0
    scores = json.loads(out)
    assert scores["translations"] == 3
    assert 0.0 <= scores["chrf"]["value"] <= 100.0
    assert "wer" not in scores
    code, _, _ = run("transcribe", "-m", "into", "test/0.wav", "--translate", "--language", "fi")
    assert code == 0
    code, _, errors = run("transcribe", "-m", "into", "test/0.wav", "--language", "de")
    assert code == 2
    assert "the language is 'de'" in errors


def test_one_sentence_for_what_is_wrong(run: Run, place: Path) -> None:
    long = numpy.zeros(16_000)
    spoken_tones.write_wav(place / "long.wav", long)
    (place / "long.tsv").write_text("train/0.wav\tlow\nlong.wav\ttop\n")
    (place / "gone.tsv").write_text("train/0.wav\tlow\ngone.wav\ttop\n")
    start = ["train", "--task", "speech", "--out", "no"]
    for words, said in (
        ([*start, "long.tsv", *QUICK, *MODEL], "long.tsv, line 2: long.wav lasts longer than the"),
        ([*start, "gone.tsv", *QUICK, *MODEL], "gone.tsv, line 2: gone.wav does not exist"),
        ([*start, "train.tsv", "--from", "fi", "--to", "sv"], "speech is translated into en alone"),
        ([*start], "needs a list of recordings"),
    ):
        code, _, errors = run(*words)
        assert code == 2
        assert errors.strip().count("\n") == 0
        assert said in errors
        assert not (place / "no").exists()
    trained(run, str(place / "model"), "--from", "en")
    for words, said in (
        (["gone.tsv"], "gone.tsv, line 2: gone.wav does not exist"),
        (["test.tsv", "--against", "model"], "--alpha and --against do not go with"),
        (["test.tsv", "--lowercase"], "are for translations"),
        (["test.tsv", "--runtime", "ctranslate2"], "CTranslate2"),
    ):
        code, out, errors = run("evaluate", "-m", "model", "--task", "speech", *words)
        assert (code, out) == (2, ""), errors
        assert errors.strip().count("\n") == 0
        assert said in errors
