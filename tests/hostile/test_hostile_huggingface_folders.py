"""Hugging Face folders from strangers: each ends with one sentence, or is converted to a model that
loads; nothing in them is run, and none takes much memory or time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hostile_files import bounded, mark_of
from huggingface_folders import CASES, good

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError
from dragoman.formats.import_huggingface import convert
from dragoman.tasks.translate import Translator

pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return good(tmp_path_factory.mktemp("hostile") / "folder")


def test_there_are_enough() -> None:
    assert len(CASES) >= 68


@pytest.mark.parametrize("name", CASES)
def test_a_huggingface_folder(name: str, original: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(original, tmp_path / "folder"))
    out = tmp_path / "out"
    CASES[name].change(folder)
    with bounded():
        if CASES[name].loads:
            convert(folder, out)
            translator = Translator.load(out, "cpu", "torch")
            assert len(translator.translate(["5 6"], SearchOptions(max_length=4))) == 1
        else:
            with pytest.raises((DragomanError, OSError)) as caught:
                convert(folder, out)
            assert "\n" not in str(caught.value)
            assert len(str(caught.value)) < 600
            assert not out.exists()
    assert not mark_of(folder).exists()
