"""What an improvement has done: one JSON file, replaced at once after every decision. Knows names
and numbers; knows no model and no text.

A step stands in it twice: as `begun` with its settings, which are decided before it begins, and as
`done` with its outcome. Whatever is killed is begun again with the same settings, so that nothing
depends on when it was killed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import files, layout
from dragoman.folder.files import read_json, write_file

FORMAT = 1
_FILE = "journal.json"
# What may differ when the same command is given again.
_FREE = ("out",)


@dataclass(frozen=True)
class Outcome:
    """What a step gave. Paths are relative to the working folder."""

    name: str
    seconds: float = 0.0
    before: float | None = None  # BLEU on the valid set
    after: float | None = None
    p_value: float | None = None
    kept: bool = True
    note: str = ""
    model: str = ""  # a model folder, whether it was kept or not
    reverse: str = ""  # a model folder of the opposite direction
    text: tuple[tuple[str, float], ...] = ()  # files of pairs and their weights
    numbers: Mapping[str, float] = field(default_factory=dict)


def is_begun(folder: Path) -> bool:
    """Whether a working folder has a journal, or was killed before it had one."""
    if (folder / _FILE).exists():
        return True
    if not folder.is_dir():
        return False
    return {files.partial_of(path) or path.name for path in folder.iterdir()} <= {
        layout.STATE,
        _FILE,
    }


class Journal:
    """The journal of a working folder."""

    def __init__(self, folder: Path, given: Mapping[str, Any]) -> None:
        self.folder = folder
        self._path = folder / _FILE
        self._given = json.loads(json.dumps(given))
        self._settings: dict[str, dict[str, Any]] = {}
        self.done: list[Outcome] = []
        if self._path.exists():
            self._read()
        else:
            self._write()

    def outcome(self, name: str) -> Outcome | None:
        """What a step gave, or None while it has not come to its end."""
        return next((one for one in self.done if one.name == name), None)

    def settings(self, name: str, decided: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a step: those with which it began, or else those decided now."""
        if name not in self._settings:
            self._settings[name] = json.loads(json.dumps(decided))
            self._write()
        return self._settings[name]

    def change(self, name: str, settings: Mapping[str, Any]) -> None:
        """Replace the settings of a step that could not keep to them."""
        self._settings[name] = dict(settings)
        self._write()

    def finish(self, outcome: Outcome) -> None:
        """Note that a step is done."""
        self.done.append(outcome)
        self._write()

    @property
    def seconds(self) -> float:
        """What all finished steps took together."""
        return sum(one.seconds for one in self.done)

    def model(self) -> str:
        """The best model so far; empty if there is none."""
        kept = [one.model for one in self.done if one.kept and one.model]
        return kept[-1] if kept else ""

    def reverse(self) -> str:
        """The best model of the opposite direction so far; empty if there is none."""
        found = [one.reverse for one in self.done if one.reverse]
        return found[-1] if found else ""

    def text(self) -> tuple[tuple[str, float], ...]:
        """The parallel text to train on, as the last step that was kept left it."""
        kept = [one.text for one in self.done if one.kept and one.text]
        return kept[-1] if kept else ()

    def _write(self) -> None:
        values = {
            "format": FORMAT,
            "given": self._given,
            "begun": self._settings,
            "done": [asdict(one) for one in self.done],
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write_file(self._path, json.dumps(values, ensure_ascii=False, indent=1).encode())

    def _read(self) -> None:
        values = read_json(self._path)
        try:
            if values["format"] != FORMAT:
                raise ValueError
            given = dict(values["given"])
            self._settings = {str(name): dict(one) for name, one in values["begun"].items()}
            self.done = [_outcome(one) for one in values["done"]]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ModelFolderError(
                f"{self._path} is damaged or of another version; "
                "copy it from a backup, or name another --out"
            ) from None
        self._compare(given)

    def _compare(self, given: Mapping[str, Any]) -> None:
        for name in sorted(given.keys() | self._given.keys()):
            if name not in _FREE and given.get(name) != self._given.get(name):
                raise OptionError(
                    f"{self.folder} was begun with another '{name}' "
                    f"({_short(given.get(name))}, now {_short(self._given.get(name))}); "
                    "run the same command again to continue, or name another --out"
                )


def _outcome(values: Mapping[str, Any]) -> Outcome:
    known = {one.name for one in fields(Outcome)}
    if not values.keys() <= known or not isinstance(values["name"], str):
        raise ValueError
    text = tuple((str(file), float(weight)) for file, weight in values.get("text", ()))
    return Outcome(**{**values, "text": text})


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
