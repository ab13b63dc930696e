"""Streams: what is written for a line, how a run that was killed goes on, several processes, the
progress line."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import multiprocessing
import os
import pty
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import pytest
import tiny
from patience import LONG, wait_for

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError, InputError, ModelFolderError
from dragoman.tasks import bulk, device_shares, lines
from dragoman.tasks.bulk import Job, record
from dragoman.tasks.lines import CHUNK, Chunk, growing, read_chunks
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translation import Translation
from dragoman.tasks.workers import by_processes

FOUND = Translation(
    "ein\tHund 😀",
    -0.25,
    ("▁ein", "▁Hund"),
    (0.5, 1 / 3, math.nan),
    (Translation("Hund", -1.0),),
    ((0, 0), (1, 2)),
    None,
    ("copied",),
)


def job(folder: Path = Path(), nbest: int = 1, align: bool = False, jsonl: bool = False) -> Job:
    options = SearchOptions(beam=max(nbest, 1), nbest=nbest)
    return Job(folder, TranslateRequest(options, align=align), "int8", jsonl=jsonl)


def test_what_is_written_for_a_line() -> None:
    assert record(job(), 3, "a dog", FOUND) == "ein\tHund 😀\n"
    assert record(job(align=True), 3, "a dog", FOUND) == "ein Hund 😀\t0-0 1-2\n"
    assert record(job(nbest=2), 3, "a dog", FOUND) == "3\t-0.2500\tein Hund 😀\n3\t-1.0000\tHund\n"
    assert record(job(nbest=2), 4, "", Translation("")) == "4\t0.0000\t\n"
    line = record(job(nbest=2, align=True, jsonl=True), 3, "a\u2028dog", FOUND)
    assert "😀" in line
    assert json.loads(line, parse_constant=pytest.fail) == {
        "source": "a\u2028dog",
        "text": "ein\tHund 😀",
        "score": -0.25,
        "tokens": ["▁ein", "▁Hund"],
        "token_probabilities": [0.5, 0.333333, None],
        "confidence": None,
        "flags": ["copied"],
        "alignment": [[0, 0], [1, 2]],
        "alternatives": [
            {
                "text": "Hund",
                "score": -1.0,
                "tokens": [],
                "token_probabilities": [],
                "confidence": None,
            }
        ],
    }
    assert {"alignment", "alternatives"} & json.loads(
        record(job(jsonl=True), 1, "", FOUND)
    ).keys() == set()


def test_a_long_text_has_as_many_processes_as_suit_the_device(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(device_shares, "cores", lambda: 3)
    monkeypatch.setattr(device_shares, "free_memory", lambda: 2**40)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert bulk._devices(job(), "auto", 10_000) == bulk._devices(job(), "auto", None) == ["cpu"]
    assert bulk._devices(job(), "auto", 2**21) == ["cpu"] * 3
    assert bulk._devices(job(), "cpu,cpu", 10_000) == ["cpu", "cpu"]
    theirs = replace(job(), runtime="ctranslate2")
    assert bulk._devices(theirs, "auto", 2**30) == ["auto"]
    (tmp_path / "ctranslate2").mkdir()
    (tmp_path / "ctranslate2" / "model.bin").touch()
    either = replace(job(tmp_path), runtime="auto")
    assert bulk._devices(either, "auto", 2**30) == ["cpu"]


def test_chunks_are_cut_by_lines_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    content = "one\r\n\n\u2028é\nlonger than that\nlast".encode()
    chunks = list(read_chunks(io.BytesIO(content), "x", repeat(2)))
    assert chunks == [
        Chunk(2, 6, ["one", ""]),
        Chunk(4, 29, ["\u2028é", "longer than that"]),
        Chunk(5, 33, ["last"]),
    ]
    monkeypatch.setattr(lines, "_CHUNK_BYTES", 8)
    found = [chunk.lines for chunk in read_chunks(io.BytesIO(content), "x", repeat(9))]
    assert found == [["one", "", "\u2028é"], ["longer than that"], ["last"]]
    monkeypatch.setattr(lines, "MAX_LINE", 5)
    with pytest.raises(InputError, match="x, line 3 has over 5 bytes"):
        list(read_chunks(io.BytesIO(content), "x", repeat(2)))


def test_the_first_chunks_are_short() -> None:
    """The first results come soon, and the longest chunks are reached soon too."""
    sizes = list(islice(growing(), 12))
    assert sizes == [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 2048, 2048, 2048]
    assert sizes[-1] == CHUNK
    assert list(islice(growing(20), 4)) == [8, 16, 20, 20]
    assert list(islice(growing(1), 3)) == [1, 1, 1]
    text = b"x\n" * 100
    found = [len(chunk.lines) for chunk in read_chunks(io.BytesIO(text), "x")]
    assert found == [8, 16, 32, 44]


@pytest.mark.parametrize(
    ("output", "numbered", "before", "kept"),
    [
        (b"", False, 0, b""),
        (b"a\nb\nc\nd\ne\n", False, 4, b"a\nb\nc\nd\n"),  # the third chunk is there in part
        (b"a\nb\nc\nd\n", False, 4, b"a\nb\nc\nd\n"),
        (b"a\nb\nc\nd", False, 2, b"a\nb\n"),
        (b"a", False, 0, b""),
        (b"a\nb\nc\nd\ne\nf\n", False, None, b"a\nb\nc\nd\ne\nf\n"),
        (b"1\tx\n1\ty\n2\tx\n", True, 0, b""),  # a second line may have been to come
        (b"1\tx\n1\ty\n2\tx\n3\tx\n3\ty\n", True, 2, b"1\tx\n1\ty\n2\tx\n"),
        (b"1\tx\n2\tx\n3\tx\n4\tx\n4\ty\n10", True, 2, b"1\tx\n2\tx\n"),
    ],
)
def test_where_a_run_goes_on(
    tmp_path: Path, output: bytes, numbered: bool, before: int | None, kept: bytes
) -> None:
    """Six lines in chunks of two; `before` is what the first chunk to do has before it."""
    (tmp_path / "out").write_bytes(output)
    chunks = [Chunk(last, 0, ["x", "y"]) for last in (2, 4, 6)]
    left = list(bulk._remaining(iter(chunks), tmp_path / "out", numbered))
    assert left == [chunk for chunk in chunks if before is not None and chunk.last > before]
    assert (tmp_path / "out").read_bytes() == kept


def test_what_cannot_be_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"a\nb\nc\n")
    with pytest.raises(
        InputError, match=r"has 3 records but the input 2 lines, so .*out is not its translation"
    ):
        bulk._remaining(iter([Chunk(2, 0, ["x", "y"])]), tmp_path / "out", numbered=False)
    with pytest.raises(InputError, match="has a line without a number"):
        bulk._remaining(iter([Chunk(2, 0, ["x", "y"])]), tmp_path / "out", numbered=True)
    assert (tmp_path / "out").read_bytes() == b"a\nb\nc\n"


def small_chunks(size: int) -> None:
    vars(bulk)["CHUNK"] = size


def slow_chunks(size: int, seconds: float) -> None:
    """Small chunks, each of which takes so long that a test can act before all are done."""
    small_chunks(size)
    read = read_chunks

    def slowly(*arguments: Any) -> Iterator[Chunk]:
        for chunk in read(*arguments):
            time.sleep(seconds)
            yield chunk

    vars(bulk)["read_chunks"] = slowly


@pytest.fixture(scope="module")
def text(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,200 lines, some of them empty."""
    folder = tmp_path_factory.mktemp("bulk")
    draw = random.Random(4)
    rows = [
        " ".join(draw.choice(tiny.ENGLISH) for _ in range(draw.randrange(9))) for _ in range(1200)
    ]
    (folder / "in.en").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return folder / "in.en"


@pytest.mark.parametrize("flags", ["--beam 1", "--nbest 3", "--sample --temperature 2 --jsonl"])
def test_killed_at_any_moment_it_goes_on_without_a_line_lost(
    trained: Path, text: Path, tmp_path: Path, flags: str
) -> None:
    """A real kill -9, again and again, and besides an output that is torn anywhere, as a full
    disk would leave it."""
    words = ["translate", "-m", str(trained), str(text), *flags.split(), "--runtime", "int8"]
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert tiny.run([*words, "--out", str(whole)], tmp_path, small_chunks, 20).wait() == 0
    draw = random.Random(flags)
    out.write_bytes(b"")
    for torn in (0, 0, 1, 60, 700):
        size = out.stat().st_size
        resumed = [*words, "--out", str(out), "--resume"]
        command = tiny.Command(resumed, tmp_path, slow_chunks, 20, 0.02)
        command.until(lambda size=size: out.stat().st_size > size)  # type: ignore[misc]
        time.sleep(draw.random() * 0.1)
        command.kill()
        assert command.wait() == -signal.SIGKILL
        os.truncate(out, max(0, out.stat().st_size - torn))
    assert out.stat().st_size < whole.stat().st_size
    for _ in range(2):  # the second time there is nothing left to do
        assert (
            tiny.run([*words, "--out", str(out), "--resume"], tmp_path, small_chunks, 20).wait()
            == 0
        )
        assert out.read_bytes() == whole.read_bytes()


def chunks(text: Path) -> Iterator[Chunk]:
    with open(text, "rb") as file:
        yield from read_chunks(file, "text", repeat(50))


@pytest.mark.usefixtures("quick_processes")
def test_two_processes_write_what_one_writes(trained: Path, text: Path) -> None:
    one = [chunk.records for chunk in bulk._translated(job(trained), ["cpu"], chunks(text))]
    assert not multiprocessing.active_children()
    taken: list[Chunk] = []
    counted = (chunk for chunk in chunks(text) if taken.append(chunk) is None)  # type: ignore[func-returns-value]
    results = bulk._translated(job(trained), ["cpu", "cpu"], counted)
    two = []
    for done, chunk in enumerate(results, 1):
        assert len(multiprocessing.active_children()) == 2
        assert len(taken) - done <= 4
        two.append(chunk.records)
    assert two == one
    assert len(two) == 24
    assert not multiprocessing.active_children()


@pytest.mark.usefixtures("quick_processes")
def test_an_error_in_a_process_ends_them_all(trained: Path, text: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match=r"config\.json is missing"):
        list(bulk._translated(job(tmp_path), ["cpu", "cpu"], chunks(text)))
    assert not multiprocessing.active_children()
    large = iter(
        [Chunk(number, 0, ["x" * 10_000_000]) for number in (1, 2, 3)]
    )  # more than a pipe holds
    with pytest.raises(ModelFolderError, match=r"config\.json is missing"):
        list(bulk._translated(job(tmp_path), ["cpu", "cpu"], large))


def dying(place: Path, often: int, device: str) -> Callable[[int], int]:
    """Doubles a number; the process is killed so often over the number 2."""

    def work(number: int) -> int:
        before = len(list(place.iterdir()))
        if number == 2 and before < often:
            (place / str(before)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * number

    return work


@pytest.mark.usefixtures("quick_processes")
def test_a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    for often in (2, 4):
        (tmp_path / str(often)).mkdir()
    twice = functools.partial(dying, tmp_path / "2", 2)
    assert list(by_processes(twice, ["cpu", "cpu"], iter(range(6)))) == [0, 2, 4, 6, 8, 10]
    assert len(list((tmp_path / "2").iterdir())) == 2
    always = functools.partial(dying, tmp_path / "4", 4)
    with pytest.raises(DragomanError, match="the process on cpu was killed 4 times over the same"):
        list(by_processes(always, ["cpu", "cpu"], iter(range(6))))
    assert not multiprocessing.active_children()


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "dragoman", *map(str, words)]


def heed() -> None:
    """Tests that run in the background would hand down that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def children(process: int) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()


@pytest.mark.parametrize(
    ("send", "number", "code"), [(os.killpg, signal.SIGINT, 130), (os.kill, signal.SIGKILL, -9)]
)
def test_however_it_ends_nobody_is_left_behind(
    trained: Path, tmp_path: Path, send: Callable[[int, int], None], number: int, code: int
) -> None:
    """Ctrl-C, which a terminal sends to the whole group, and a kill of the one that has started
    the others."""
    (tmp_path / "in.en").write_text("one two three\n" * 100_000, encoding="utf-8")
    words = command(
        "translate",
        "-m",
        trained,
        tmp_path / "in.en",
        "--out",
        tmp_path / "out",
        "--device",
        "cpu,cpu",
    )

    with subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed
    ) as process:
        while not ((tmp_path / "out").exists() and (tmp_path / "out").stat().st_size):
            assert process.poll() is None
            time.sleep(0.01)
        born = children(process.pid)
        assert len(born) >= 2
        send(process.pid, number)
        assert process.wait(LONG) == code
        assert process.stderr is not None
        said = process.stderr.read()  # which ends when all have ended that can write to it
    wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in born))
    written = (tmp_path / "out").read_bytes()
    assert written.endswith(b"\n")
    if number == signal.SIGINT:
        assert said == (
            f"stopped: the first {written.count(bytes([10])):,} lines are translated and in "
            f"{tmp_path / 'out'}; continue with the same command and --resume\n"
        )
    else:
        assert said == ""


def test_a_pipe_that_is_interrupted_keeps_its_lines(trained: Path, tmp_path: Path) -> None:
    """Few lines come; the first of them are there long before 2,048 have come."""
    words = command("translate", "-m", trained)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, preexec_fn=heed
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"one two\n" * 8)
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(8)] == [b"eins zwei\n"] * 8
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(LONG) == 130
        assert process.stderr.read() == (
            b"stopped: the first 8 lines are translated and in standard output; "
            b"continue with the input from line 9 on\n"
        )


class Screen:
    """Reads a terminal as it is written: what nobody reads stops the writer."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._shown = b""
        threading.Thread(target=self._read, daemon=True).start()

    def until(self, text: str) -> str:
        """Return what is shown once the text is."""
        wait_for(lambda: text.encode() in self._shown)
        return self._shown.decode()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the other side is closed
            while part := os.read(self._terminal, 10_000):
                self._shown += part


def test_a_terminal_is_answered_line_by_line_and_told_of_progress(
    trained: Path, text: Path
) -> None:
    """What is typed is answered before the input ends; a file's progress is on a terminal alone,
    and not in the output."""
    ours, theirs = pty.openpty()
    words = command("translate", "-m", trained)
    with subprocess.Popen(
        words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        os.write(ours, b"one two\n")
        assert process.stdout.readline() == b"eins zwei\n"
        os.write(ours, b"\x04")  # Ctrl-D
        hint = b"type a sentence and press Enter; Ctrl-D ends\n"
        assert process.communicate(timeout=LONG) == (b"", hint)
    screen = Screen(ours)
    with subprocess.Popen([*words, str(text)], stdout=subprocess.PIPE, stderr=theirs) as process:
        output, _ = process.communicate(timeout=LONG)
    assert output.count(b"\n") == 1200
    shown = screen.until("100%")
    assert "1,200 lines, " in shown
    assert " sentences/s" in shown
    os.close(theirs)


def test_a_translation_that_exists_is_not_replaced_unasked(trained: Path, tmp_path: Path) -> None:
    source = tmp_path / "in"
    out = tmp_path / "out"
    source.write_text("one two\n")
    out.write_text("hours of work\n")
    words = ["translate", "-m", str(trained), "--out", str(out)]

    def run(*more: str) -> tuple[int, bytes]:
        done = subprocess.run(command(*words, *more), capture_output=True)
        return done.returncode, done.stderr

    exists = f"error: {out} exists already; add --overwrite to replace it"
    assert run(str(source)) == (2, f"{exists}, or --resume to continue it\n".encode())
    assert out.read_text() == "hours of work\n"
    read_end, write_end = os.pipe()
    os.write(write_end, b"one two\n")
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        piped = subprocess.run(command(*words), stdin=pipe, capture_output=True)
    assert (piped.returncode, piped.stderr) == (2, f"{exists}\n".encode())
    assert run(str(source), "--overwrite") == (0, b"")
    assert out.read_text() == "eins zwei\n"
    out.write_text("")  # holds nothing that could be lost
    assert run(str(source)) == (0, b"")
    assert out.read_text() == "eins zwei\n"


def test_a_pipe_cannot_be_read_again(trained: Path, tmp_path: Path) -> None:
    words = command("translate", "-m", trained, "--out", tmp_path / "out", "--resume")
    done = subprocess.run(words, input=b"one\n", capture_output=True)
    assert done.returncode == 2
    assert done.stderr == b"error: --resume needs --out, and an input that is a file\n"
