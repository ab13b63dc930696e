"""Lists of recordings and what is said in them: lines of path, tab and text, or JSON lines. Knows
formats and strings; opens no recording.

A path is relative to the folder of the list. A third column of a .tsv file is the language that is
spoken. A line of a .jsonl file has "audio" and "text", and may have "language", "task" (transcribe
or translate), "start" and "end", in seconds.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.data.check_report import excerpt
from dragoman.data.corpus import corpora
from dragoman.data.text_lines import location, read_lines
from dragoman.errors import InputError, MissingDependencyError
from dragoman.text.normalise import normalise

TASKS = ("transcribe", "translate")
_KINDS = (".tsv", ".jsonl")
_LATEST = 1e6  # seconds


@dataclass(frozen=True)
class Recording:
    """A sound file, or a part of one, and what is said in it."""

    path: Path
    text: str
    language: str = ""  # that is spoken; empty where the list does not say it
    translated: bool = False  # whether the text is a translation of what is said
    start: float = 0.0  # seconds
    end: float | None = None
    place: str = ""  # the file and line that name it

    @property
    def name(self) -> str:
        """For people to read."""
        if self.end is None and not self.start:
            return str(self.path)
        end = "" if self.end is None else f"{self.end:g}"
        return f"{self.path} {self.start:g}-{end} s"


@dataclass(frozen=True)
class Spoken:
    """What holds for the recordings of which a list does not say it."""

    language: str = ""
    translated: bool = False


def read_recordings(files: Sequence[str], unsaid: Spoken) -> list[Recording]:
    """Return the recordings of all lists; a line that cannot be used is an error."""
    found: list[Recording] = []
    for file in files:
        (corpus,) = corpora([file], lone_source=True)
        if corpus.kind not in _KINDS:
            raise InputError(
                f"{file} is not a .tsv or .jsonl file; write path, tab and text on each line of one"
            )
        for number, line in enumerate(read_lines(file, _refuse), 1):
            place = location(file, number)
            read = _read_row if corpus.kind == ".tsv" else _read_object
            found.append(_checked(read(line or "", place, unsaid), Path(file).parent))
    if not found:
        names = " and ".join(files)
        raise InputError(f"{names} has no recordings; write path, tab and text on each line")
    return found


def set_aside(
    recordings: Sequence[Recording],
    most: int,
    seed: int,
) -> tuple[list[Recording], list[Recording]]:
    """Return the recordings to train on, and those that validate: a twentieth of them, or `most`.

    Whoever speaks, a text is in one of the two only.
    """
    wanted = min(most, max(1, len(recordings) // 20))
    texts = sorted({one.text for one in recordings})
    counts = Counter(one.text for one in recordings)
    random.Random(seed).shuffle(texts)
    chosen: set[str] = set()
    held_out = 0
    for text in texts[1:]:  # one is always left to train on
        if held_out >= wanted:
            break
        chosen.add(text)
        held_out += counts[text]
    train = [one for one in recordings if one.text not in chosen]
    valid = [one for one in recordings if one.text in chosen]
    return train, valid


@contextmanager
def naming(recording: Recording) -> Iterator[None]:
    """Put the line of a list before whatever is wrong with the recording that it names."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(
            f"{recording.place}: {recording.path} does not exist; a path is relative to the folder "
            "of the list"
        ) from None
    except (InputError, MissingDependencyError) as error:
        raise type(error)(f"{recording.place}: {error}") from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{recording.place}: {recording.path} cannot be read ({error}); name a sound file"
        ) from None


def _refuse(kind: str, place: str, text: str) -> None:
    """Refuse a line that is not text; CR LF and a byte order mark are fine."""
    if kind in ("crlf", "mark", "utf16"):
        return
    raise InputError(f"{place}: this line is not text that can be read ({kind} {excerpt(text)})")


def _read_row(line: str, place: str, unsaid: Spoken) -> Recording:
    columns = line.split("\t")
    if not 2 <= len(columns) <= 3:
        raise InputError(
            f"{place} is '{excerpt(line)}'; write path, tab and text, with the language in an "
            "optional third column"
        )
    path, text, *language = columns
    return Recording(
        path=Path(path),
        text=text,
        language=language[0].strip() if language else unsaid.language,
        translated=unsaid.translated,
        place=place,
    )


def _read_object(line: str, place: str, unsaid: Spoken) -> Recording:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or not _has_kinds(values):
        raise InputError(
            f"{place} is '{excerpt(line)}'; write an object with the strings \"audio\" and "
            '"text" and, optionally, "language" and "task" and the numbers "start" and "end"'
        )
    task = values.get("task") or TASKS[unsaid.translated]
    if task not in TASKS:
        or_words = " or ".join(TASKS)
        raise InputError(f"{place} has the task '{excerpt(task)}'; it must be {or_words}")
    end = values.get("end")
    return Recording(
        path=Path(values["audio"]),
        text=values["text"],
        language=values.get("language") or unsaid.language,
        translated=task == "translate",
        start=float(values.get("start") or 0.0),
        end=None if end is None else float(end),
        place=place,
    )


def _has_kinds(values: dict[str, Any]) -> bool:
    """Whether all values have the types that they should have."""
    strings = [values.get("audio"), values.get("text")]
    strings += [values[name] for name in ("language", "task") if values.get(name) is not None]
    numbers = [values[name] for name in ("start", "end") if values.get(name) is not None]
    are_strings = all(isinstance(value, str) for value in strings)
    return are_strings and all(map(_is_time, numbers))


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < _LATEST


def _checked(recording: Recording, folder: Path) -> Recording:
    """The recording with its path from the folder of the list, and its text normalised."""
    text = normalise(recording.text)
    if not text:
        raise InputError(f"{recording.place} has no text; write down what is said, or omit it")
    if recording.end is not None and recording.start >= recording.end:
        raise InputError(
            f"{recording.place} starts at {recording.start:g} s and ends at {recording.end:g} s; "
            "the start must lie before the end"
        )
    return replace(recording, path=folder / recording.path, text=text)
