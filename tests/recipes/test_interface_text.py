"""recipes/interface_text.py on catalogues that are made here."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "recipes" / "interface_text.py"


def write_catalogue(path: Path, messages: dict[str, str]) -> None:
    """A .mo file as GNU gettext's manual describes it."""
    messages = {"": "Content-Type: text/plain; charset=UTF-8\n", **messages}
    entries = sorted((key.encode(), value.encode()) for key, value in messages.items())
    ids = b"".join(key + b"\0" for key, _ in entries)
    count = len(entries)
    start = 28 + 16 * count
    tables = b""
    for column, first in ((0, start), (1, start + len(ids))):
        place = first
        for entry in entries:
            tables += struct.pack("<II", len(entry[column]), place)
            place += len(entry[column]) + 1
    texts = b"".join(value + b"\0" for _, value in entries)
    head = struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, start)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + tables + ids + texts)


def run(tmp_path: Path, out: Path, *more: str) -> int:
    words = [sys.executable, str(SCRIPT), str(tmp_path / "in"), str(out), *more]
    return subprocess.run(words, capture_output=True).returncode


def written(tmp_path: Path, *more: str) -> list[str]:
    out = tmp_path / f"out{''.join(more)}.tsv"
    assert run(tmp_path, out, *more) == 0
    return sorted(out.read_text(encoding="utf-8").splitlines())


def test_a_file_that_exists_is_left_alone(tmp_path: Path) -> None:
    write_catalogue(tmp_path / "in/de/LC_MESSAGES/a.mo", {"Kept": "Behalten"})
    own = tmp_path / "own.tsv"
    own.write_text("mine", encoding="utf-8")
    assert run(tmp_path, own) == 2
    assert own.read_text(encoding="utf-8") == "mine"


def test_messages_of_several_programs(tmp_path: Path) -> None:
    for number in range(4):
        messages = {
            "_Cancel": "_Abbrechen",
            f"Only here {chr(97 + number)}": "Nur hier",
            "menu\x04&Open File": "Datei &öffnen",
        }
        if number == 0:
            messages["Cancel"] = "Abbruch"
        write_catalogue(tmp_path / f"in/{number}/de/LC_MESSAGES/a.mo", messages)
    write_catalogue(tmp_path / "in/x/fr/LC_MESSAGES/a.mo", {"Save": "Enregistrer"})
    lines = written(tmp_path)
    assert lines.count("Cancel\tAbbrechen") == 2
    assert "Cancel\tAbbruch" not in lines
    assert lines.count("Open File\tDatei öffnen") == 2
    assert [line for line in lines if "Nur hier" in line] == [
        f"Only here {letter}\tNur hier" for letter in "abcd"
    ]
    assert not any("Enregistrer" in line for line in lines)


def test_what_is_no_text_is_left_out(tmp_path: Path) -> None:
    messages = {
        "%d files": "%d Dateien",
        "See www.example.org": "Siehe www.example.org",
        "Ends.": "Endet",
        "12:30 --> 5": "12:30 --> 6",
        "Same": "Same",
        "word " * 13: "Wort " * 13,
        "Kept": "Behalten",
    }
    write_catalogue(tmp_path / "in/de/LC_MESSAGES/a.mo", messages)
    assert written(tmp_path) == ["Kept\tBehalten"]
    assert written(tmp_path, "--source", "de") == ["Behalten\tKept"]
