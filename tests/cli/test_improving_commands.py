"""`backtranslate` and `distil` as a person meets them: what they print, on a terminal and not, and
how Ctrl-C ends them."""

from __future__ import annotations

import json
import os
import pty
import signal
from pathlib import Path

import pytest
import tiny

from dragoman.cli.terminal import duration

MACHINE = "--device cpu --processes 1 --runtime torch"
COUNTS = {"out", "lines", "pairs", "dropped", "seconds", "complete"}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return Path(tiny.write_corpus(tmp_path, "mono", 300, seed=5, longest=6, turned=False)[0])


def words(trained: Path, text: Path, more: str) -> list[str]:
    out = text.with_name("bt.tsv.gz")
    return f"backtranslate -m {trained} {text} --out {out} {MACHINE} {more}".split()


def test_what_is_printed(trained: Path, text: Path, tmp_path: Path) -> None:
    first = tiny.run(words(trained, text, ""), tmp_path)
    assert first.output == ""
    assert first.errors.startswith(f"{tmp_path}/bt.tsv.gz: ")
    assert " pairs from 300 lines in 0:" in first.errors
    assert first.errors.count("\n") == 1
    counts = tiny.run(words(trained, text, "--json"), tmp_path)
    assert json.loads(counts.output).keys() == COUNTS
    assert counts.errors == ""
    nothing = tiny.run(words(trained, text, "--quiet"), tmp_path)
    assert (nothing.wait(), nothing.output, nothing.errors) == (0, "", "")
    mistake = tiny.run(words(trained, text, "--quiet --beam 2"), tmp_path)
    assert mistake.wait() == 2
    assert mistake.errors.startswith("error: ")
    assert "search was" in mistake.errors


def test_a_quiet_distillation(trained: Path, text: Path, tmp_path: Path) -> None:
    (tmp_path / "student.toml").write_text(tiny.RECIPE, encoding="utf-8")
    line = f"distil -m {trained} {text} --config {tmp_path}/student.toml {MACHINE} --quiet"
    command = tiny.run(f"{line} --out {tmp_path}/student --set steps=2".split(), tmp_path)
    assert (command.wait(), command.output, command.errors) == (0, "", "")
    assert (tmp_path / "student" / "model.safetensors").exists()


def test_ctrl_c_says_how_to_go_on(trained: Path, text: Path, tmp_path: Path) -> None:
    journal = tmp_path / "bt.tsv.gz.journal"
    halt = (tiny.halt_after, str(journal), 1)
    command = tiny.Command(words(trained, text, ""), tmp_path, *halt)
    command.until(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 1)
    command.kill(signal.SIGINT)
    assert command.wait() == 130
    assert command.errors == "stopped; run the same command again to continue\n"
    again = tiny.run(words(trained, text, "--json"), tmp_path)
    assert json.loads(again.output)["lines"] == 300


def on_a_terminal(path: str) -> None:
    """Lets standard error go to a terminal."""
    os.environ["COLUMNS"] = "150"
    os.dup2(os.open(path, os.O_RDWR | os.O_NOCTTY), 2)


def test_progress_on_a_terminal(trained: Path, text: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = tiny.run(words(trained, text, ""), tmp_path, on_a_terminal, os.ttyname(theirs))
    assert command.wait() == 0
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the end
            break
        if not part:
            break
        shown += part
    screen = shown.decode()
    assert "back-translating: " in screen
    assert "300 of 300 lines" in screen
    assert "0:00 left" in screen
    assert "100%" in screen


def test_durations() -> None:
    assert [duration(seconds) for seconds in (0, 59.6, 127, 3727)] == [
        "0:00",
        "1:00",
        "2:07",
        "1:02:07",
    ]
