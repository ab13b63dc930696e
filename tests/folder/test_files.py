"""Files are whole or not there, and nothing is touched that somebody else made."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import FullDiskError
from dragoman.folder import files


def everything(folder: Path) -> dict[str, bytes | None]:
    """What lies in a folder, hidden or not; None for folders."""
    found: dict[str, bytes | None] = {}
    for path in folder.rglob("*"):
        found[str(path.relative_to(folder))] = path.read_bytes() if path.is_file() else None
    return found


def write_neighbours(folder: Path, name: str) -> None:
    """What people, editors and older programs call things."""
    for ending in (".old", ".new", ".tmp", ".bak", ".partial", ".converting", "~"):
        (folder / f"{name}{ending}").mkdir()
        (folder / f"{name}{ending}" / "thesis").write_text("years of work", encoding="utf-8")
        (folder / f".{name}{ending}").write_text("more of it", encoding="utf-8")
    (folder / "notes.tmp").write_text("notes", encoding="utf-8")
    (folder / "state" / "writing").mkdir(parents=True)
    (folder / "state" / "writing" / "chapter").write_text("one", encoding="utf-8")


def write_folder(path: Path, content: str, replace: bool = True) -> None:
    with files.aside(path, replace) as new:
        new.mkdir()
        (new / "inner").mkdir()
        (new / "inner" / "file").write_text(content, encoding="utf-8")


@pytest.mark.parametrize("times", [1, 2])
def test_neighbours_of_a_file(tmp_path: Path, times: int) -> None:
    write_neighbours(tmp_path, "out")
    before = everything(tmp_path)
    for time in range(times):
        files.write_file(tmp_path / "out", str(time).encode())
    assert everything(tmp_path) == before | {"out": str(times - 1).encode()}


@pytest.mark.parametrize("times", [1, 2])
def test_neighbours_of_a_folder(tmp_path: Path, times: int) -> None:
    write_neighbours(tmp_path, "out")
    before = everything(tmp_path)
    for time in range(times):
        write_folder(tmp_path / "out", str(time))
    new = {"out": None, "out/inner": None, "out/inner/file": str(times - 1).encode()}
    assert everything(tmp_path) == before | new
    files.remove_folder(tmp_path / "out")
    assert everything(tmp_path) == before
    files.remove_folder(tmp_path / "out")


@pytest.mark.parametrize("deed", ["fsync", "replace", "rename", "mkdir"])
def test_a_full_disk_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_neighbours(tmp_path, "out")
    files.write_file(tmp_path / "out", b"old")
    write_folder(tmp_path / "folder", "old")
    before = everything(tmp_path)
    monkeypatch.setattr(os, deed, fail)
    advice = "free some space, then run the command again"
    if deed != "rename":
        with pytest.raises(FullDiskError, match=f"no space is left to write .*out; {advice}"):
            files.write_file(tmp_path / "out", b"new")
    if deed != "replace":
        with pytest.raises(FullDiskError, match=f"no space is left to write .*folder; {advice}"):
            write_folder(tmp_path / "folder", "new")
    assert everything(tmp_path) == before


def test_a_folder_that_cannot_take_its_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, count = os.rename, 0

    def fail_second(*arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise OSError(errno.EIO, "Input/output error")
        rename(*arguments)

    write_folder(tmp_path / "folder", "old")
    before = everything(tmp_path)
    monkeypatch.setattr(os, "rename", fail_second)
    with pytest.raises(OSError, match="Input/output error"):
        write_folder(tmp_path / "folder", "new")
    assert everything(tmp_path) == before


def test_an_interrupted_block_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with files.aside(tmp_path / "deep" / "out") as new:
            new.write_text("half", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert everything(tmp_path) == {}


def test_what_is_to_be_new_replaces_nothing(tmp_path: Path) -> None:
    """It may have come into being since it was looked for."""
    files.write_file(tmp_path / "file", b"old")
    write_folder(tmp_path / "folder", "old")
    (tmp_path / "empty").mkdir()
    before = everything(tmp_path)
    for name in ("file", "folder"):
        with pytest.raises(OSError, match=r"exists|not empty|Not a directory"):
            write_folder(tmp_path / name, "new", replace=False)
    with (
        pytest.raises(FileExistsError),
        files.aside(tmp_path / "file", replace=False) as new,
    ):
        new.write_text("new", encoding="utf-8")
    assert everything(tmp_path) == before
    write_folder(tmp_path / "empty", "new", replace=False)
    assert (tmp_path / "empty" / "inner" / "file").exists()


def test_files_have_the_permissions_that_files_have(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write_file(tmp_path / "file", b"")
        write_folder(tmp_path / "folder", "")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o750


def write_output(path: Path, content: str) -> None:
    with files.output(path) as new:
        new.write_text(content, encoding="utf-8")


def test_an_output_keeps_permissions_and_follows_links(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("old", encoding="utf-8")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "link").symlink_to("secret")
    write_output(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "secret").read_text(encoding="utf-8") == "new"
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_an_output_that_is_a_device_stays_one() -> None:
    write_output(Path("/dev/null"), "anything")
    assert Path("/dev/null").is_char_device()


def test_an_output_in_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    for write in (write_output, lambda path, text: files.write_file(path, text.encode())):
        with pytest.raises(FileNotFoundError) as caught:
            write(tmp_path / "missing" / "out", "text")
        assert caught.value.filename == str(tmp_path / "missing" / "out")
    assert everything(tmp_path) == {}


def test_names_of_any_length(tmp_path: Path) -> None:
    for name in ("n" * 255, "ü" * 127):
        files.write_file(tmp_path / name, b"content")
        assert everything(tmp_path).pop(name) == b"content"


def test_a_line_that_does_not_fit_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        """A file that takes four bytes more."""

        def __init__(self, path: Path, *_: Any, **__: Any) -> None:
            self.file = path.open("ab", buffering=0)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, text: str) -> None:
            self.file.write(text.encode()[:4])
            raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "keys").write_text("anna 1234\n", encoding="utf-8")
    monkeypatch.setattr(files, "open", Full, raising=False)
    for name in ("keys", "more"):
        with pytest.raises(FullDiskError, match="then run the command again"):
            files.append_line(tmp_path / name, "berta 5678")
    assert everything(tmp_path) == {"keys": b"anna 1234\n"}


@pytest.mark.parametrize(
    ("name", "of"),
    [
        (".out.abcd_123.partial", "out"),
        (".model.safetensors.abcd_123.partial", "model.safetensors"),
        ("out.abcd_123.partial", None),
        (".out.partial", None),
        (".out.ABCD_123.partial", None),
        (".out.abcd_123.partial.old", None),
    ],
)
def test_what_an_unfinished_write_is_called(tmp_path: Path, name: str, of: str | None) -> None:
    assert files.partial_of(tmp_path / name) == of


def test_unfinished_writes_are_called_so(tmp_path: Path) -> None:
    with files.aside(tmp_path / "out.txt") as new:
        new.write_text("", encoding="utf-8")
        assert new.name == "out.txt"
        assert files.partial_of(new.parent) == "out.txt"
        assert new.parent.parent == tmp_path


def test_a_folder_is_copied_or_the_first_error_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    (old / "inner").mkdir(parents=True)
    (old / "inner" / "a.txt").write_text("a")
    (old / "state").mkdir()
    (old / "b.txt").write_text("b")
    files.copy_folder(old, tmp_path / "new", ("state",))
    found = sorted(str(path.relative_to(tmp_path / "new")) for path in tmp_path.glob("new/**/*"))
    assert found == ["b.txt", "inner", "inner/a.txt"]

    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copy2", full)
    with (
        pytest.raises(FullDiskError, match="no space is left to write"),
        files.aside(tmp_path / "third") as third,
    ):
        files.copy_folder(old, third)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]
