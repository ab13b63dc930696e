"""What a model folder was before: earlier models, whole, beside it. Knows names and numbers, and
how one model takes another's place; knows nothing of how a model is made or judged.

models/en-de.history/ holds the models that models/en-de was, each in a folder with its number. To
change models, two folders exchange their names, which is one step of the system: a kill leaves
models/en-de as the one model or the other. Where the system cannot do that (Windows, some network
disks), it takes two renames, and whoever finds models/en-de missing in between puts it back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import ModelFolderError
from dragoman.folder import files, layout
from dragoman.folder.shipped import SHIPPED

_NUMBERED = re.compile(r"\d{4,9}")
FIRST = 0  # the number of a model that was not made by learning


def history_of(folder: Path) -> Path:
    """Where the models are that a folder was before."""
    whole = folder.absolute()
    return whole.with_name(layout.history(whole.name))


def is_bundled(folder: Path) -> bool:
    """Whether a folder belongs to the installed package, in which nothing is ever written."""
    return folder.resolve().is_relative_to(SHIPPED.resolve())


def read_learnt(folder: Path) -> dict[str, Any]:
    """What is known of how a model learnt; empty if it did not."""
    path = folder / layout.LEARNT
    return files.read_json(path) if path.exists() else {}


def write_learnt(folder: Path, values: Mapping[str, Any]) -> None:
    """Write learnt.json, which has at least the numbers `number` and `previous`."""
    content = json.dumps(values, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    files.write_file(folder / layout.LEARNT, content.encode("utf-8", "replace"))


def number_of(folder: Path) -> int:
    """The number of a model: 0 for one that did not learn."""
    number = read_learnt(folder).get("number", FIRST)
    if type(number) is not int or not 0 <= number < 10**9:
        raise ModelFolderError(f"{folder / layout.LEARNT} is damaged: its number is {number!r}")
    return number


def earlier(folder: Path) -> dict[int, Path]:
    """The models in the history of a folder, by number."""
    history = history_of(folder)
    if not history.is_dir():
        return {}
    found = {}
    for path in sorted(history.iterdir()):
        if _NUMBERED.fullmatch(path.name) and (path / layout.CONFIG).exists():
            found[number_of(path)] = path
    return found


def next_number(folder: Path) -> int:
    """A number above those of all models there were."""
    return 1 + max([number_of(folder), *earlier(folder)])


def place_for(folder: Path, number: int) -> Path:
    """Where in its history a model of this number belongs."""
    return history_of(folder) / layout.numbered(number)


def put_right(folder: Path) -> None:
    """Finish what a kill has interrupted: a folder that is missing is put back, and each model in
    the history has its number as its name. The caller holds the lock of the history."""
    kept = earlier(folder)
    if kept and not folder.exists():
        files.move(kept.pop(max(kept)), folder.absolute())
    for number, path in kept.items():
        own = place_for(folder, number)
        if path != own and not own.exists():
            files.move(path, own)


def make_current(folder: Path, number: int) -> None:
    """Let the model of this number in the history be the folder's, and the folder's be in the
    history. The caller holds the lock of the history."""
    new = place_for(folder, number)
    whole = folder.absolute()
    old = place_for(folder, number_of(whole))
    if files.exchange(whole, new):
        files.move(new, old)
    else:
        files.move(whole, old)
        files.move(new, whole)


def go_back(folder: Path) -> int:
    """Let a folder be the model from which its own learnt; return the number of that. The caller
    holds the lock of the history."""
    put_right(folder)
    if not folder.is_dir():
        raise ModelFolderError(f"{folder} does not exist; name a model folder")
    if not read_learnt(folder):
        raise ModelFolderError(
            f"{folder} is not a model that learnt from corrections, so there is none to go back to"
        )
    kept = earlier(folder)
    wanted = read_learnt(folder).get("previous")
    number = wanted if wanted in kept else FIRST
    if number not in kept:
        raise ModelFolderError(
            f"{history_of(folder)} no longer holds the model that {folder} was before"
        )
    make_current(folder, number)
    return int(number)


def forget(folder: Path, most: int) -> list[int]:
    """Remove all but the newest models of a history, and return their numbers; the one that was
    not made by learning always stays. The caller holds the lock of the history."""
    made = {number: path for number, path in earlier(folder).items() if number != FIRST}
    too_old = sorted(made)[: max(0, len(made) - most)]
    for number in too_old:
        files.remove_folder(made[number])
    return too_old
