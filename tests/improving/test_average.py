"""`dragoman average`: models that began as one, averaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tiny
import torch

from dragoman import Translator
from dragoman.folder.description import load_description
from dragoman.folder.weights import load_model, save_weights


def average(place: Path, *words: str | Path) -> tiny.Command:
    return tiny.run(["average", *map(str, words)], place)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    about, _ = load_description(folder)
    model = load_model(folder, about.model, torch.device("cpu"))
    return {name: weight.detach() for name, weight in model.named_parameters()}


@pytest.fixture
def louder(trained: Path, tmp_path: Path) -> Path:
    """The trained model with all its weights doubled."""
    shutil.copytree(trained, tmp_path / "louder")
    save_weights(
        tmp_path / "louder", {name: 2 * weight for name, weight in weights(trained).items()}
    )
    return tmp_path / "louder"


def test_shares_of_two_models(trained: Path, louder: Path, tmp_path: Path) -> None:
    done = average(tmp_path, tmp_path / "both", f"{trained}:0.75", f"{louder}:0.25")
    assert done.wait() == 0, done.errors
    one, both = weights(trained), weights(tmp_path / "both")
    assert one.keys() == both.keys()
    for name, weight in both.items():
        torch.testing.assert_close(weight, 1.25 * one[name])
    assert f"0.25 of {louder}" in (tmp_path / "both" / "report.md").read_text(encoding="utf-8")


def test_a_model_with_itself_says_the_same(trained: Path, tmp_path: Path) -> None:
    average(tmp_path, tmp_path / "same", f"{trained}:0.5", f"{trained}:0.5")
    said = [
        Translator.load(folder).translate(["three two one"])[0].text
        for folder in (trained, tmp_path / "same")
    ]
    assert said[0] == said[1] != ""


def test_a_model_of_both_directions_turned_round(trained: Path, tmp_path: Path) -> None:
    average(tmp_path, tmp_path / "back", f"{trained}:1", "--from", "twi", "--to", "en")
    about, _ = load_description(tmp_path / "back")
    assert (about.source_language, about.target_language) == ("twi", "en")


def test_what_does_not_go_together(trained: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(trained, other)
    about = (other / "config.json").read_text(encoding="utf-8")
    (other / "config.json").write_text(about.replace('"relu"', '"gelu"'), encoding="utf-8")
    out = tmp_path / "out"
    for words, reason in (
        ([out, f"{trained}:0.5", f"{other}:0.5"], "another shape or vocabulary"),
        ([out, f"{trained}:0.5", f"{trained}:0.6"], "add up to 1.1"),
        ([other, f"{trained}:1"], "exists already"),
        ([out, trained], "is not FOLDER:SHARE"),
        ([out, f"{trained}:most"], "is not FOLDER:SHARE"),
        ([out, f"{tmp_path / 'nowhere'}:1"], "nowhere"),
    ):
        done = average(tmp_path, *words)
        assert done.wait() == 2
        assert reason in done.errors
        assert "Traceback" not in done.errors
    assert not out.exists()
