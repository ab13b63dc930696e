"""Where corrections are kept when no file is named."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
import tiny
from patience import LONG

from dragoman.server.corrections_place import default_place, is_for_us_alone, open_default


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "home/.local/share/dragoman/corrections.sqlite"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "home/.local/share/dragoman/corrections.sqlite"),
        ("darwin", {}, "home/Library/Application Support/dragoman/corrections.sqlite"),
        ("win32", {}, "home/AppData/Local/dragoman/corrections.sqlite"),
    ],
)
def test_by_the_conventions_of_the_system(
    platform: str,
    environment: dict[str, str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert default_place() == tmp_path / expected


def test_a_folder_named_for_data_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kept, sentence = open_default()
    assert kept is not None
    kept.close()
    place = tmp_path / "dragoman" / "corrections.sqlite"
    assert str(place) in sentence
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_without_a_folder_the_service_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    kept, sentence = open_default()
    assert kept is None
    assert "no corrections are kept" in sentence
    assert "--corrections" in sentence


@pytest.mark.parametrize(
    ("host", "has_keys", "names_others", "expected"),
    [
        ("127.0.0.1", False, False, True),
        ("localhost", False, False, True),
        ("::1", False, False, True),
        ("0.0.0.0", False, False, False),
        ("0.0.0.0", True, False, True),
        ("127.0.0.1", False, True, False),
        ("127.0.0.1", True, True, True),
    ],
)
def test_strangers_decide_nothing(
    host: str, has_keys: bool, names_others: bool, expected: bool
) -> None:
    assert is_for_us_alone(host, has_keys, names_others) is expected


def data_in(folder: str) -> None:
    os.environ["XDG_DATA_HOME"] = folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "corrections of readers are kept in {place}"),
        (
            ["--allowed-host", "t.example"],
            "no corrections are kept, since strangers may reach this",
        ),
    ],
)
def test_the_terminal_says_where(
    trained: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    place = tmp_path / "data" / "dragoman" / "corrections.sqlite"
    command = ["serve", str(trained), "--port", "0", "--runtime", "torch", *words]
    process = tiny.Command(command, tmp_path, data_in, str(tmp_path / "data"))
    try:
        process.until(lambda: "open http" in process.errors)
        assert said.format(place=place) in process.errors
        assert place.exists() == (not words)
    finally:
        process.process.terminate()
        process.process.join(LONG)


def test_corrections_and_none_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    from dragoman.cli.running_service import _open_corrections
    from dragoman.cli.serving import Address, Service
    from dragoman.errors import OptionError

    with pytest.raises(OptionError, match="exclude each other"):
        _open_corrections(Address(), Service(corrections=Path("a"), no_corrections=True))
    assert _open_corrections(Address(), Service(no_corrections=True)) == (None, "")
    assert capsys.readouterr().err == ""
