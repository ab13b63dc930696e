"""Lists of recordings: what a line may say, and what is said of lines that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.recordings import Recording, Spoken, naming, read_recordings, set_aside
from dragoman.errors import InputError


def written(folder: Path, name: str, *lines: str) -> str:
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(folder / name)


def test_a_line_is_path_tab_and_text(tmp_path: Path) -> None:
    file = written(tmp_path, "a.tsv", "one.wav\tHello  there", "/far/two.wav\tGuten Tag\tde")
    first, second = read_recordings([file], Spoken("en"))
    assert first == Recording(tmp_path / "one.wav", "Hello there", "en", place=f"{file}, line 1")
    assert second.path == Path("/far/two.wav")
    assert (second.language, second.text, second.translated) == ("de", "Guten Tag", False)
    assert read_recordings([file], Spoken("en", True))[0].translated


def test_an_object_may_say_more(tmp_path: Path) -> None:
    line = {"audio": "a.wav", "text": "Yes.", "start": 1, "end": 2.5, "task": "translate"}
    plain = {"audio": "b.wav", "text": "No.", "language": "fr", "speaker": 7}
    file = written(tmp_path, "a.jsonl", json.dumps(line), json.dumps(plain))
    first, second = read_recordings([file], Spoken("de"))
    assert (first.start, first.end, first.language, first.translated) == (1.0, 2.5, "de", True)
    assert first.name == f"{tmp_path / 'a.wav'} 1-2.5 s"
    assert (second.start, second.end, second.language, second.translated) == (0, None, "fr", False)
    assert second.name == str(tmp_path / "b.wav")


WRONG: dict[str, tuple[str, Any, str]] = {
    "no tab": ("tsv", "one.wav hello", "line 2 is 'one.wav hello'; write path, tab and"),
    "four columns": ("tsv", "a\tb\tc\td", "with the language in an optional third column"),
    "an empty line": ("tsv", "", "line 2 is ''"),
    "no text": ("tsv", "one.wav\t ", "line 2 has no text"),
    "no JSON": ("jsonl", "{", "line 2 is '{'; write an object"),
    "no audio": ("jsonl", {"text": "a"}, "write an object"),
    "text that is none": ("jsonl", {"audio": "a", "text": 5}, "write an object"),
    "a time in words": ("jsonl", {"audio": "a", "text": "b", "start": "1"}, '"start" and "end"'),
    "a time below 0": ("jsonl", {"audio": "a", "text": "b", "start": -1}, '"start" and "end"'),
    "no number": ("jsonl", {"audio": "a", "text": "b", "end": float("nan")}, '"start" and "end"'),
    "a truth": ("jsonl", {"audio": "a", "text": "b", "end": True}, '"start" and "end"'),
    "turned": (
        "jsonl",
        {"audio": "a", "text": "b", "start": 3, "end": 2},
        "starts at 3 s",
    ),
    "a task": ("jsonl", {"audio": "a", "text": "b", "task": "sing"}, "the task 'sing'; it must be"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_line_that_cannot_be_used(name: str, tmp_path: Path) -> None:
    kind, line, said = WRONG[name]
    good = "one.wav\thello" if kind == "tsv" else json.dumps({"audio": "a", "text": "b"})
    wrong = line if isinstance(line, str) else json.dumps(line)
    file = written(tmp_path, f"list.{kind}", good, wrong)
    with pytest.raises(InputError) as caught:
        read_recordings([file], Spoken())
    assert said in str(caught.value)
    assert f"list.{kind}, line 2" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_lists(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_recordings([str(tmp_path / "none.tsv")], Spoken())
    with pytest.raises(InputError, match=r"is not a \.tsv or \.jsonl file"):
        read_recordings([written(tmp_path, "a.txt", "one.wav\thello")], Spoken())
    with pytest.raises(InputError, match="has no recordings"):
        read_recordings([written(tmp_path, "a.tsv")], Spoken())


def test_an_error_names_the_line() -> None:
    recording = Recording(Path("gone.wav"), "text", place="list.tsv, line 9")
    with (
        pytest.raises(InputError, match=r"^list.tsv, line 9: gone.wav does not exist"),
        naming(recording),
    ):
        Path("gone.wav").read_bytes()
    with pytest.raises(InputError, match=r"^list.tsv, line 9: too short$"), naming(recording):
        raise InputError("too short")


def test_a_sentence_is_trained_on_or_validates(tmp_path: Path) -> None:
    recordings = [Recording(Path(f"{number}.wav"), f"text {number % 40}") for number in range(200)]
    train, valid = set_aside(recordings, 1000, seed=1)
    assert len(valid) == 10  # a twentieth: two texts of five recordings each
    assert not {one.text for one in train} & {one.text for one in valid}
    assert sorted(one.path for one in train + valid) == sorted(one.path for one in recordings)
    assert set_aside(recordings, 1000, seed=1) == (train, valid)
    assert set_aside(recordings, 1000, seed=2)[1] != valid
    assert len(set_aside(recordings, 3, seed=1)[1]) == 5
    same = [Recording(Path("a"), "one text"), Recording(Path("b"), "one text")]
    assert set_aside(same, 10, seed=1) == (same, [])
