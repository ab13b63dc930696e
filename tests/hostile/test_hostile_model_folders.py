"""Model folders from strangers: each ends with one sentence, or loads rightly, and none takes
much memory or time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hostile_files import bounded, mark_of
from model_folders import CASES, good

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError
from dragoman.tasks.translate import Translator


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return good(tmp_path_factory.mktemp("hostile") / "model")


def options(words: tuple[str, ...]) -> dict[str, object]:
    """The options of a command as `Translator.load` takes them."""
    chosen: dict[str, object] = {"shortlist": "--shortlist" in words}
    if "--runtime" in words:
        chosen["runtime"] = words[words.index("--runtime") + 1]
    return chosen


def test_there_are_enough() -> None:
    assert len(CASES) >= 75


@pytest.mark.parametrize("name", CASES)
def test_a_model_folder(name: str, original: Path, tmp_path: Path) -> None:
    case = CASES[name]
    if "ctranslate2" in case.options:
        pytest.importorskip("ctranslate2")
    folder = Path(shutil.copytree(original, tmp_path / "model"))
    case.change(folder)
    chosen = options(case.options)
    with bounded():
        if case.loads:
            translator = Translator.load(folder, "cpu", **chosen)  # type: ignore[arg-type]
            assert len(translator.translate(["5 6"], SearchOptions(max_length=4))) == 1
        else:
            with pytest.raises((DragomanError, OSError)) as caught:
                Translator.load(folder, "cpu", **chosen)  # type: ignore[arg-type]
            assert "\n" not in str(caught.value)
            assert len(str(caught.value)) < 600
    assert not mark_of(folder).exists()
