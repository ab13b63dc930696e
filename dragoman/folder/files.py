"""Writing files so that they are whole or not there, and reading files that may come from anywhere.
Knows nothing of what is in them, and of the package only its errors.

Whatever is written goes first into a hidden folder beside its destination, which `tempfile.mkdtemp`
names `.NAME.XXXXXXXX.partial`; it is flushed there and then renamed. A kill at any moment leaves
the old file or the new one, whole. Cleaning up removes that hidden folder and nothing else, so no
file that somebody else made is ever touched, whatever its name.

A process that dies without cleaning up (SIGKILL, a power cut) leaves its hidden folder behind.
Nothing reads it, and it may be deleted. Only `dragoman train --resume` deletes any by itself: those
of its own run, in the model folder (see training_state.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from dragoman.errors import FullDiskError, ModelFolderError, OptionError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_AGAIN = "free some space, then run the command again"
_PARTIAL = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}\.partial")
_AT_FDCWD = -100  # paths as the process sees them (Linux)
_EXCHANGE = 2  # the flag of both systems that can exchange two names
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_LONGEST_NAME = 40  # characters of a name that stand in that of its hidden folder


@contextlib.contextmanager
def aside(path: Path, replace: bool = True) -> Iterator[Path]:
    """Yield where to write the file or folder that is to become `path`; it takes its place at once
    when the block ends, and never appears when the block raises. Missing parents are made then.

    With `replace`, what stands at `path` goes; without it, anything but an empty folder there is an
    error. A full disk raises FullDiskError.
    """
    path = Path(os.path.abspath(path))
    parent = next(folder for folder in path.parents if folder.is_dir())
    with space_for(path):
        scratch = _scratch(path, parent)
        try:
            new = scratch / path.name
            yield new
            path.parent.mkdir(parents=True, exist_ok=True)
            _put(new, path, replace)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def output(path: Path) -> Iterator[Path]:
    """Yield where to write a file that the user named. It replaces an older file with the older
    one's permissions; links are followed, and what is not a file (a device, a pipe) is written to
    directly."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        with space_for(path):
            yield path
        return
    _need_parent(path)
    with aside(path) as new:
        yield new
        if path.exists():
            shutil.copymode(path, new)


def check_place(path: Path) -> None:
    """Raise an error if nothing can be written at `path`, so that long work is not done in vain."""
    parents = Path(os.path.abspath(path)).parents
    nearest = next(folder for folder in parents if folder.exists())
    if not nearest.is_dir():
        raise OptionError(f"{path} cannot be written, since {nearest} is not a folder")
    if not os.access(nearest, os.W_OK):
        raise OptionError(f"{path} cannot be written, since nothing may be made in {nearest}")


def check_file_place(path: Path) -> None:
    """Raise an error if no file can be written at `path`, in a folder that is there already."""
    check_place(path)
    _need_parent(path)


def settle(new: Path, path: Path) -> None:
    """Give a file that is complete its name; raise an error if something has that name already."""
    _put(new, path, replace=False)


def write_file(path: Path, content: bytes) -> None:
    """Write a file; the old one stays until the new one is whole."""
    _need_parent(path)
    with aside(path) as new:
        new.write_bytes(content)


def append_line(path: Path, line: str) -> None:
    """Add a line to a file. Where the line does not fit on the disk, the file stays as it was."""
    with space_for(path):
        existed = path.exists()
        size = path.stat().st_size if existed else 0
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError:
            if existed:
                os.truncate(path, size)
            else:
                path.unlink(missing_ok=True)
            raise


def copy_folder(source: Path, target: Path, without: Collection[str] = ()) -> None:
    """Copy a folder to where there is none, without what has one of the names. Unlike copytree, it
    stops at the first error and raises that, such as a full disk."""
    target.mkdir()
    for path in sorted(source.iterdir()):
        if path.name in without:
            continue
        if path.is_dir():
            copy_folder(path, target / path.name, without)
        else:
            shutil.copy2(path, target / path.name)


def remove_folder(path: Path) -> None:
    """Remove a folder at once: under another, hidden name until all of it is gone."""
    if not path.exists():
        return
    scratch = _scratch(path, path.parent)
    os.rename(path, scratch / path.name)
    shutil.rmtree(scratch, ignore_errors=True)


def exchange(one: Path, other: Path) -> bool:
    """Let two files or folders on one disk have each other's name, in one step that a kill cannot
    divide; return False, with nothing changed, where the system cannot."""
    names = (os.fsencode(one), os.fsencode(other))
    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        rename = library.renameat2  # type: ignore[union-attr]
        failed = rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE)
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, _EXCHANGE)  # type: ignore[union-attr]
    else:
        return False
    if failed:
        number = ctypes.get_errno()
        if number in _CANNOT:
            return False
        raise OSError(number, os.strerror(number), str(one))
    flush_folder(one.parent)
    flush_folder(other.parent)
    return True


def flush_folder(path: Path) -> None:
    """Let the names in a folder survive a power cut."""
    _flush(path)


def move(old: Path, new: Path) -> None:
    """Give a file or folder another name on the same disk, which nothing may have yet."""
    if new.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
    os.rename(old, new)
    _flush(new.parent)


def check_regular(path: Path) -> None:
    """Raise an error for what exists but is not a regular file: opening a pipe waits for whoever
    writes to it, and a device may never end."""
    if path.is_dir():
        raise ModelFolderError(f"{path} is a folder; a file is expected there")
    if path.exists() and not path.is_file():
        raise ModelFolderError(f"{path} is not a regular file but a pipe or a device")


def read_bounded(path: Path, most: int = 2**20) -> bytes:
    """Return the content of a file that may be huge, or not a regular file at all."""
    check_regular(path)
    with open(path, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ModelFolderError(
            f"{path} is larger than any such file that dragoman writes: "
            f"it has more than {most:,} bytes"
        )
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file that may come from anywhere."""
    try:
        values = json.loads(read_bounded(path).decode("utf-8"))
    except FileNotFoundError:
        raise ModelFolderError(
            f"{path} is missing, so {path.parent} is not a model folder"
        ) from None
    except (ValueError, RecursionError):
        raise ModelFolderError(f"{path} is damaged: it is not JSON") from None
    if not isinstance(values, dict):
        raise ModelFolderError(f"{path} is damaged: it is not a JSON object")
    return values


def partial_of(path: Path) -> str | None:
    """Return the name of the file or folder whose unfinished write `path` is, judged by its name;
    None for anything else."""
    match = _PARTIAL.fullmatch(path.name)
    return match["name"] if match else None


def remove_unfinished(folder: Path, names: Collection[str]) -> None:
    """Remove what killed processes have left of writing these files. The caller knows that nobody
    writes them now."""
    begun = {name[:_LONGEST_NAME] for name in names}
    for path in folder.iterdir():
        if partial_of(path) in begun:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def space_for(path: Path, advice: str = _AGAIN) -> Iterator[None]:
    """Turn a full disk, quota or limit on the size of files into a FullDiskError with advice."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise FullDiskError(f"no space is left to write {path}; {advice}") from None


def _need_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _scratch(path: Path, parent: Path) -> Path:
    """A new hidden folder; nobody else can have made it."""
    prefix = f".{path.name[:_LONGEST_NAME]}."
    return Path(tempfile.mkdtemp(prefix=prefix, suffix=".partial", dir=parent))


def _put(new: Path, path: Path, replace: bool) -> None:
    """Flush what was written and rename it."""
    for part in sorted(new.rglob("*")):
        _flush(part)
    _flush(new)
    if new.is_dir() and replace:
        _swap(new, path)
    elif new.is_dir():
        os.rename(new, path)  # which fails where `path` is a folder with anything in it
    elif replace:
        os.replace(new, path)
    elif path.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    else:
        os.rename(new, path)
    _flush(path.parent)


def _swap(new: Path, path: Path) -> None:
    """The old folder moves into the hidden one, which is removed with it."""
    if not path.exists():
        os.rename(new, path)
        return
    old = Path(tempfile.mkdtemp(dir=new.parent)) / path.name
    os.rename(path, old)
    try:
        os.rename(new, path)
    except OSError:
        os.rename(old, path)
        raise


def _flush(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # Windows cannot flush a folder
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
