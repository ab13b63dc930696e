"""Earlier models: one takes another's place in one step, goes back, and no kill loses either."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from dragoman.errors import ModelFolderError
from dragoman.folder import files, history, layout
from dragoman.folder.shipped import SHIPPED


class KilledError(BaseException):
    """What ends a process in the middle of something."""


def made(folder: Path, words: str, number: int | None = None, previous: int = 0) -> Path:
    folder.mkdir(parents=True)
    (folder / layout.CONFIG).write_text("{}", encoding="utf-8")
    (folder / layout.WEIGHTS).write_text(words, encoding="utf-8")
    if number is not None:
        history.write_learnt(folder, {"number": number, "previous": previous})
    return folder


def words(folder: Path) -> str:
    return (folder / layout.WEIGHTS).read_text(encoding="utf-8")


def learnt(folder: Path, words: str) -> None:
    """What `learn` does in the end."""
    number = history.next_number(folder)
    made(history.place_for(folder, number), words, number, history.number_of(folder))
    history.make_current(folder, number)


@pytest.fixture(params=[True, False], ids=["exchange", "two renames"])
def model(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder, on a system that can exchange two names and on one that cannot."""
    folder = made(tmp_path / "en-de", "first")
    if not request.param:
        monkeypatch.setattr(files, "exchange", lambda one, other: False)
    elif not files.exchange(made(tmp_path / "a", "a"), made(tmp_path / "b", "b")):
        pytest.skip("this system cannot exchange two names")
    return folder


def test_there_and_back(model: Path) -> None:
    learnt(model, "second")
    learnt(model, "third")
    assert words(model) == "third"
    kept = {number: words(path) for number, path in history.earlier(model).items()}
    assert kept == {0: "first", 1: "second"}
    assert history.go_back(model) == 1
    assert words(model) == "second"
    # What learns now comes from the second; the third is no longer on the way back.
    learnt(model, "fourth")
    assert history.number_of(model) == 3
    assert history.go_back(model) == 1
    assert history.go_back(model) == 0
    assert words(model) == "first"
    kept = {number: words(path) for number, path in history.earlier(model).items()}
    assert kept == {1: "second", 2: "third", 3: "fourth"}
    for number, path in history.earlier(model).items():
        assert path == history.place_for(model, number)
    with pytest.raises(ModelFolderError, match="none to go back to"):
        history.go_back(model)


@pytest.mark.parametrize("at", range(3))
def test_killed_at_any_rename_it_is_one_of_the_two(
    model: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """A kill before each change of a name, one after the other, and then the next command."""
    done = 0
    rename = os.rename
    exchange = files.exchange

    def counted(change: object) -> None:
        nonlocal done
        if done == at:
            raise KilledError
        done += 1

    def renamed(old: Path, new: Path) -> None:
        counted(None)
        rename(old, new)

    def exchanged(one: Path, other: Path) -> bool:
        counted(None)
        return exchange(one, other)

    number = history.next_number(model)
    made(history.place_for(model, number), "second", number)
    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(files, "exchange", exchanged)
    with contextlib.suppress(KilledError):
        history.make_current(model, number)
    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(files, "exchange", exchange)
    history.put_right(model)
    assert words(model) in ("first", "second")
    others = {words(path) for path in history.earlier(model).values()}
    assert others == {"first", "second"} - {words(model)}
    for number, path in history.earlier(model).items():
        assert path == history.place_for(model, number)


def test_only_so_many_are_kept_and_the_first_always(model: Path) -> None:
    for name in ("b", "c", "d", "e", "f"):
        learnt(model, name)
    assert history.forget(model, most=2) == [1, 2]
    assert sorted(history.earlier(model)) == [0, 3, 4]
    assert words(history.place_for(model, 0)) == "first"
    assert words(model) == "f"
    # The one before is gone from the history by hand: the way back leads to the first.
    files.remove_folder(history.place_for(model, 4))
    assert history.go_back(model) == 0


def test_what_is_no_model_in_a_history_stays_as_it_is(model: Path) -> None:
    place = history.history_of(model)
    (place / "0007").mkdir(parents=True)
    (place / "0007" / "notes.txt").write_text("mine", encoding="utf-8")
    (place / "0008").write_text("mine", encoding="utf-8")
    learnt(model, "second")
    history.put_right(model)
    history.forget(model, most=0)
    assert (place / "0007" / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (place / "0008").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("number", ['"3"', "-1", "true", "1e300", "null"])
def test_a_damaged_number_is_an_error(model: Path, number: str) -> None:
    (model / layout.LEARNT).write_text(f'{{"number": {number}}}', encoding="utf-8")
    with pytest.raises(ModelFolderError, match="damaged"):
        history.number_of(model)


def test_a_bundled_model_is_known(tmp_path: Path) -> None:
    assert history.is_bundled(SHIPPED / "en-de")
    (tmp_path / "link").symlink_to(SHIPPED / "en-de")
    assert history.is_bundled(tmp_path / "link")
    assert not history.is_bundled(tmp_path / "en-de")


def test_an_exchange_of_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    made(tmp_path / "one", "one")
    if not files.exchange(made(tmp_path / "a", "a"), made(tmp_path / "b", "b")):
        pytest.skip("this system cannot exchange two names")
    with pytest.raises(OSError, match="one"):
        files.exchange(tmp_path / "one", tmp_path / "none")
    assert words(tmp_path / "a") == "b"
