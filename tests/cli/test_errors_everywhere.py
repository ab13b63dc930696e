"""Every command with every kind of mistake: exit code 2, one sentence on standard error, and no
traceback. The commands run in this process, through the real front door."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import pytest
import tiny
import treebank

from dragoman.cli import main as front_door
from dragoman.cli.main import COMMANDS

pytest.importorskip("rapidfuzz", reason="the extra serve is not installed")
from dragoman.server.corrections import Corrections

Said = tuple[int, str, str]  # the exit code, standard output and standard error
Run = Callable[..., Said]

# For each command a line that is right but for what stands for FILE, and what else it needs.
# Where a command reads several kinds of file, there is a line for each.
READERS = {
    "check": ["check FILE a.de", "check a.en FILE", "check a.en a.de --valid FILE valid.de"],
    "train": [
        "train FILE a.de --out new",
        "train a.en a.de --valid FILE valid.de --out new",
        "train a.en a.de --config FILE --out new",
        "train --resume FILE",
        "train a.en a.de --continue FILE --out new",
        "train --task lm FILE --out new",
        "train --task image FILE --out new",
        "train --task parse FILE --out new",
        "train --task parse trees.mrg --valid FILE --out new",
        "train --task text FILE a.de --out new",
        "train --task class FILE --out new",
        "train --task label FILE --out new",
        "train --task label words.tsv --valid FILE --out new",
        "train --task embed FILE a.de --out new",
        "train --task embed a.en a.de --valid FILE valid.de --out new",
    ],
    "improve": [
        "improve FILE --text a.en a.de --valid valid.en valid.de --quiet --out new",
        "improve --from-text FILE a.de --valid valid.en valid.de --quiet --out new",
        "improve --from-text a.en a.de --valid FILE valid.de --quiet --out new",
        "improve --from-text a.en a.de --related FILE --quiet --out new",
        "improve model --text a.en a.de --target-text FILE --quiet --out new",
        "improve --from-text a.en a.de --config FILE --quiet --out new",
    ],
    "average": ["average new FILE:1", "average new model:0.5 FILE:0.5"],
    "translate": [
        "translate -m model FILE",
        "translate -m FILE in.en",
        "translate -m model in.en --glossary FILE",
    ],
    "backtranslate": [
        "backtranslate -m model FILE --out new --device cpu --processes 1",
        "backtranslate -m FILE in.en --out new",
    ],
    "distil": [
        "distil -m model FILE --out new --device cpu --processes 1",
        "distil -m FILE in.en --out new",
        "distil -m model in.en --config FILE --out new",
        "distil -m model in.en --reverse FILE --out new",
    ],
    "shortlist": ["shortlist -m FILE", "shortlist -m model FILE a.de"],
    "evaluate": [
        "evaluate -m model FILE a.de",
        "evaluate -m FILE a.en a.de",
        "evaluate -m model a.en a.de --against FILE",
        "evaluate -m model a.en a.de --glossary FILE",
        "evaluate -m parser FILE",
        "evaluate -m FILE --task parse trees.mrg",
        "evaluate -m model --task text FILE a.de",
        "evaluate -m model --task text a.en a.de --against FILE",
        "evaluate -m FILE --task label words.tsv",
        "evaluate -m model --task label FILE",
        "evaluate -m FILE --task class words.tsv",
        "evaluate -m model --task class FILE",
        "evaluate -m FILE --task embed words.tsv",
        "evaluate -m model --task embed FILE",
    ],
    "calibrate": ["calibrate -m model FILE a.de", "calibrate -m FILE a.en a.de"],
    "inspect": ["inspect one -m FILE"],
    "generate": ["generate -m FILE one"],
    "fill": ["fill -m FILE [MASK]"],
    "embed": ["embed -m FILE in.en --jsonl"],
    "classify": ["classify -m FILE one"],
    "label": ["label -m FILE one", "label -m FILE"],
    "transcribe": ["transcribe -m FILE sound.wav", "transcribe -m model FILE"],
    "parse": ["parse -m FILE in.en", "parse -m parser FILE"],
    "rewrite": [
        "rewrite -m FILE in.en",
        "rewrite -m model FILE",
        "rewrite -m model in.en --json-schema FILE",
    ],
    "ask": [
        "ask why -m FILE --context in.en",
        "ask why -m model --context FILE",
        "ask why -m model --context in.en --json-schema FILE",
    ],
    "summarise": ["summarise in.en -m FILE", "summarise FILE -m model"],
    "convert": [
        "convert FILE ct2:new",
        "convert FILE onnx:new",
        "convert hf:FILE new",
        "convert FILE argos:new",
    ],
    "serve": ["serve FILE --port 0", "serve model --port 0 --keys FILE"],
    "corrections": [
        "corrections export FILE new.tmx",
        "corrections import FILE --corrections new.sqlite",
    ],
    "learn": [
        "learn FILE --corrections corrections.sqlite --quiet --out new",
        "learn model --corrections FILE --quiet --out new",
    ],
    "rollback": ["rollback FILE"],
}
# A file of this kind is right for these lines, or right enough.
FINE = {
    ("empty", "translate -m model FILE"),  # nothing in, nothing out
    ("empty", "parse -m parser FILE"),
    ("empty", "rewrite -m model FILE"),
    ("empty", "train a.en a.de --config FILE --out new"),  # a recipe without options
    ("empty", "distil -m model in.en --config FILE --out new"),
    ("empty", "serve model --port 0 --keys FILE"),  # nobody is let in
    ("empty", "translate -m model in.en --glossary FILE"),  # no terms
    ("empty", "evaluate -m model a.en a.de --glossary FILE"),
    ("empty", "corrections export FILE new.tmx"),  # nobody has corrected anything
    # What is wrong with a text is what `check` reports; it exits with 1.
    *((kind, line) for kind in ("empty", "binary") for line in READERS["check"]),
}
WRITERS = {
    "check": "check a.en a.de --clean OUT",
    "train": "train a.en a.de --out OUT --steps 1",
    "improve": "improve --from-text a.en a.de --quiet --out OUT",
    "average": "average OUT model:1",
    "translate": "translate -m model in.en --out OUT",
    "backtranslate": "backtranslate -m model in.en --out OUT",
    "distil": "distil -m model in.en --out OUT",
    "inspect": "inspect one -m model --out OUT.html",
    "embed": "embed -m model in.en --out OUT.npy",
    "parse": "parse -m parser in.en --svg OUT.svg",
    "convert": "convert model marian:OUT",
    "add-key": "add-key OUT anna",
    "corrections": "corrections export corrections.sqlite OUT.tsv",
}
NUMBERS = {
    "train": "train a.en a.de --out new --steps",
    "improve": "improve --from-text a.en a.de --out new --minutes",
    "translate": "translate -m model in.en --beam",
    "backtranslate": "backtranslate -m model in.en --out new --processes",
    "distil": "distil -m model in.en --out new --keep",
    "evaluate": "evaluate -m model a.en a.de --beam",
    "inspect": "inspect one -m model --beam",
    "generate": "generate one -m model --max-tokens",
    "fill": "fill [MASK] -m model --count",
    "classify": "classify one -m model --count",
    "transcribe": "transcribe sound.wav -m model --beam",
    "parse": "parse -m parser in.en --beam",
    "rewrite": "rewrite -m model in.en --nbest",
    "ask": "ask why -m model --context in.en --beam",
    "summarise": "summarise in.en -m model --min-length",
    "serve": "serve model --port",
    "add-key": "add-key keys anna --per-minute",
}


@pytest.fixture(scope="module")
def place(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what is right, and what is wrong in four ways."""
    folder = tmp_path_factory.mktemp("mistakes")
    tiny.write_corpus(folder, "a", 30)
    tiny.write_corpus(folder, "valid", 10, seed=3)
    (folder / "in.en").write_text("one two\n", encoding="utf-8")
    shutil.copytree(trained, folder / "model", ignore=shutil.ignore_patterns("state"))
    treebank.save_random_parser(folder / "parser")
    treebank.write_treebank(folder / "trees.mrg", 5)
    (folder / "words.tsv").write_text("Rain\tO\n\nfalls\tB-X\n", encoding="utf-8")
    Corrections(folder / "corrections.sqlite").close()
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    (folder / "binary").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe\xfd" * 50)
    (folder / "sealed").write_text("a file, in which nothing can be made", encoding="utf-8")
    return folder


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str, stdin: type[io.TextIOWrapper] = io.TextIOWrapper) -> Said:
        monkeypatch.chdir(place)
        monkeypatch.setattr(sys, "argv", ["dragoman", *words])
        with open("in.en", "rb") as file:
            monkeypatch.setattr(sys, "stdin", stdin(file))
            with pytest.raises(SystemExit) as stopped:
                front_door.main()
        said = capsys.readouterr()
        return int(stopped.value.code or 0), said.out, said.err

    return call


def check(found: Said) -> str:
    code, _, errors = found
    assert code == 2, errors
    assert errors.startswith("error: "), errors
    assert errors.count("\n") == 1, errors
    assert errors.endswith("\n")
    assert "Traceback" not in errors
    assert "Errno" not in errors
    return errors


def reading() -> list[tuple[str, str]]:
    lines = [line for group in READERS.values() for line in group]
    kinds = ("missing", "folder", "empty", "binary")
    return [(kind, line) for line in lines for kind in kinds if (kind, line) not in FINE]


def test_every_command_is_tried() -> None:
    assert set(READERS) | {"models", "add-key"} == set(COMMANDS)
    assert set(WRITERS) | set(NUMBERS) <= set(COMMANDS)


@pytest.mark.parametrize(("kind", "line"), reading())
def test_a_file_that_is_not_what_it_should_be(run: Run, place: Path, kind: str, line: str) -> None:
    said = check(run(*line.replace("FILE", kind).split()))
    assert not (place / "new").exists(), said


@pytest.mark.parametrize("line", WRITERS.values())
def test_an_output_that_cannot_be_written(run: Run, line: str) -> None:
    """Below a file; not even root could write there."""
    said = check(run(*line.replace("OUT", "sealed/below").split()))
    assert "sealed" in said


def test_a_name_cannot_command_the_terminal(run: Run) -> None:
    """A terminal clears its screen, moves up and writes over what it said before, where told so."""
    said = check(run("translate", "--to", "de", "a\x1b[2J\rall is well\x9b.txt"))
    assert "a\\x1b[2J\\x0dall is well\\x9b.txt" in said
    assert not set(said) & {"\x1b", "\r", "\x9b"}


@pytest.mark.parametrize("command", ["help", "1", "zzzz"])
def test_a_command_that_does_not_exist(run: Run, command: str) -> None:
    assert check(run(command)).endswith("; dragoman --help lists the commands\n")


@pytest.mark.parametrize("value", ["many", "-7"])
@pytest.mark.parametrize("line", NUMBERS.values())
def test_a_number_that_is_wrong(run: Run, line: str, value: str) -> None:
    said = check(run(*line.split(), value))
    flag = line.split()[-1].strip("-")
    assert flag in said or flag.replace("-", "_") in said


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_an_option_that_does_not_exist(run: Run, command: str) -> None:
    assert "--nonsense" in check(run(command, "--nonsense"))


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", ["", *sorted(COMMANDS), "corrections export"])
def test_help(run: Run, command: str, flag: str) -> None:
    code, output, errors = run(*command.split(), flag)
    assert (code, errors) == (0, "")
    assert f"Usage: dragoman {command}".rstrip() in output
    for word in ("<int>", "<str>", "<path>", "<bool>", "<float>", "list["):
        assert word not in output


def test_text_in_the_place_of_a_file(run: Run) -> None:
    said = check(run("translate", "-m", "model", "Where's it?"))
    assert """echo 'Where'"'"'s it?' | dragoman translate -m model""" in said


def test_a_port_that_is_taken(run: Run) -> None:
    """It is found out before any model is loaded."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = check(run("serve", "model", "--port", str(port)))
    assert f"port {port} of 127.0.0.1 is in use by another program" in said
    said = check(run("serve", "model", "--host", "256.1.1.1", "--port", "0"))
    assert "cannot listen at port 0 of 256.1.1.1" in said


def test_an_extra_that_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that is offered needs no index that knows dragoman."""
    # As if one of its packages were missing; the packages themselves may be loaded already.
    monkeypatch.setitem(sys.modules, "dragoman.server.app", None)
    said = check(run("serve", "model"))
    assert "pip install fastapi uvicorn" in said
    assert "dragoman[" not in said
    monkeypatch.setattr(metadata, "requires", Mock(side_effect=metadata.PackageNotFoundError))
    assert "pip install '.[serve]'" in check(run("serve", "model"))


class Typed(io.TextIOWrapper):
    """What a person types."""

    def isatty(self) -> bool:
        return True


def test_a_person_at_a_terminal_is_told_to_type(run: Run) -> None:
    """And nobody else."""
    line = ("translate", "-m", "model", "--runtime", "torch")
    assert run(*line) == (0, "eins zwei\n", "")
    hint = "type a sentence and press Enter; Ctrl-D ends\n"
    assert run(*line, stdin=Typed) == (0, "eins zwei\n", hint)


def test_completion(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shells = pytest.importorskip("shellingham", reason="typer finds out the shell with shellingham")
    monkeypatch.setattr(shells, "detect_shell", lambda: ("bash", "/bin/bash"))
    code, script, _ = run("--show-completion")
    assert code == 0
    assert "complete -o default -F _dragoman_completion dragoman" in script
    monkeypatch.setenv("_DRAGOMAN_COMPLETE", "complete_bash")
    for words, expected in (
        ("dragoman tr", ["train", "translate", "transcribe"]),
        ("dragoman translate --al", ["--alpha", "--alignments"]),
        ("dragoman corrections ", ["export", "import"]),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        code, output, _ = run()
        assert (code, output.split()) == (0, expected)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("translate -m model --beam four", "--beam is 'four'; it must be a whole number"),
        ("translate -m model --alpha x", "--alpha is 'x'; it must be a number"),
        ("evaluate -m model a.en a.de --beam 0", "--beam is '0'; it must be at least 1"),
        ("serve model --processes 257", "--processes is '257'; it must be at most 256"),
        ("serve model --port 1.5", "--port is '1.5'; it must be a whole number"),
    ],
)
def test_a_value_of_the_wrong_kind(run: Run, words: str, said: str) -> None:
    assert said in check(run(*words.split()))


def test_a_folder_that_is_not_there(run: Run) -> None:
    """Is told before the work is done, with what to do."""
    for words in ("inspect one -m model --out no/a.html", "translate -m model in.en --out no/a"):
        code, output, said = run(*words.split())
        assert (code, output) == (2, "")
        assert "there is no folder" in said
        assert said.endswith("make it, or name another place\n")
    code, output, said = run("inspect", "one", "-m", "model", "--out", "a.pdf")
    assert (code, output) == (2, "")
    assert "its name must end in .html, .json, .svg or .png" in said


def test_one_language_for_both_sides(run: Run) -> None:
    for words in (("--from", "de", "--to", "de"), ("--from", "eng", "--to", "en")):
        assert "name two languages" in check(run("translate", "in.en", *words))


@pytest.mark.skipif(os.name == "nt", reason="the shell of Windows cannot close a stream")
@pytest.mark.parametrize(
    ("closed", "code"),
    [("<&-", 0), (">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 2)],
)
def test_streams_that_are_closed_or_full(trained: Path, closed: str, code: int) -> None:
    command = f"{shlex.quote(sys.executable)} -m dragoman translate -m {shlex.quote(str(trained))}"
    done = subprocess.run(
        ["bash", "-c", f"echo one | {command} {closed}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if "full" in closed:
        assert done.stderr.startswith("error: no space is left")
    models = subprocess.run(
        ["bash", "-c", f"{shlex.quote(sys.executable)} -m dragoman models {closed}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert models.returncode == code
    assert "Traceback" not in models.stderr
    if "full" in closed:
        assert models.stderr == (
            "error: no space is left to write the output; free some space, then run it again\n"
        )
