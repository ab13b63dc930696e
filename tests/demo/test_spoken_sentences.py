"""demo/spoken_sentences.py: what is held out, and what is said where espeak-ng is missing. Nothing
is spoken here."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "demo" / "spoken_sentences.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("spoken_sentences", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["spoken_sentences"] = module
    spec.loader.exec_module(module)
    return module


def test_no_sentence_of_a_test_is_trained_on() -> None:
    spoken = script()
    texts = spoken.sentences(random.Random(1), spoken.TRAIN + spoken.VALID + spoken.TEST)
    parts = dict(spoken.parts(texts))
    assert [*parts] == ["test", "test-voice", "valid", "train"]
    assert [len(some) for some in parts.values()] == [300, 300, 100, 4000]
    assert parts["test"] == parts["test-voice"]
    assert not set(parts["train"]) & {*parts["test"], *parts["valid"]}
    assert not set(parts["test"]) & set(parts["valid"])
    assert len(set(texts)) == len(texts)
    assert spoken.HELD_OUT_VOICE not in spoken.VOICES
    # Every word of the tests is learnt.
    learnt = {word for text in parts["train"] for word in text.split()}
    assert {word for text in parts["test"] for word in text.split()} <= learnt


def test_recordings_and_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = script()
    said: list[tuple[str, str]] = []

    def speak(text: str, voice: str, file: Path, draw: random.Random) -> None:
        said.append((voice, text))
        file.write_bytes(b"")

    monkeypatch.setattr(spoken, "speak", speak)
    monkeypatch.setattr(spoken.shutil, "which", lambda name: f"/usr/bin/{name}")
    for name, count in (("TRAIN", 6), ("VALID", 2), ("TEST", 3)):
        monkeypatch.setattr(spoken, name, count)
    spoken.main(tmp_path / "spoken")
    rows = (tmp_path / "spoken" / "test-voice.tsv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 3
    for row in rows:
        path, text = row.split("\t")
        assert (tmp_path / "spoken" / path).exists()
        assert (spoken.HELD_OUT_VOICE, text) in said
    assert len(said) == 14
    with pytest.raises(SystemExit, match="exists; name a folder that is new"):
        spoken.main(tmp_path / "spoken")


def test_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = script()
    monkeypatch.setattr(spoken.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="run: apt install espeak-ng"):
        spoken.main(tmp_path / "spoken")
    assert not (tmp_path / "spoken").exists()
