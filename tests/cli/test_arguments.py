"""Dataclasses as flags: what a command is given, and that its flags are the options of a
request."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from dragoman.cli.arguments import Flags, with_flags
from dragoman.cli.main import COMMANDS
from dragoman.cli.translating import translate
from dragoman.config import describe
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import OptionError
from dragoman.tasks.request import TranslateRequest

# Those that the command line spells in its own way, and those that it leaves to others.
SPELT = {"align": "--alignments", "split": "--whole-lines", "protect": "--unprotected"}
WITHOUT_FLAG = {"max_extra", "branch"}
FEW = Flags(only=("beam", "alpha"), defaults={"beam": 1})


@dataclass(frozen=True)
class Where:
    file: Annotated[Path, typer.Argument(help="A file.")]
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Another.")] = None


def called(words: str, function: Any) -> None:
    app = typer.Typer()
    app.command()(with_flags(function))
    app(words.split(), standalone_mode=False)


def test_flags_make_the_dataclass(tmp_path: Path) -> None:
    (tmp_path / "terms").write_text("one\teins\n", encoding="utf-8")
    seen: list[tuple[Where, TranslateRequest, bool]] = []

    def command(where: Where, request: TranslateRequest, loud: bool = False) -> None:
        seen.append((where, request, loud))

    called("a.txt", command)
    assert seen.pop() == (Where(Path("a.txt")), TranslateRequest(), False)
    flags = "--beam 7 --nbest 3 --no-repeat-ngram 2 --prefix eins --alignments --whole-lines --loud"
    called(f"a.txt -o b.txt {flags} --careful --glossary {tmp_path / 'terms'}", command)
    where, request, loud = seen.pop()
    assert where == Where(Path("a.txt"), Path("b.txt"))
    assert loud
    assert request.options == SearchOptions(beam=7, nbest=3, no_repeat_ngram=2)
    assert (request.prefix, request.align, request.careful, request.split) == (
        "eins",
        True,
        True,
        False,
    )
    assert request.glossary is not None
    assert [term.forms for term in request.glossary.find("one")] == [("eins",)]
    with pytest.raises(OptionError, match="beam is 0; it must be at least 1"):
        called("a.txt --beam 0", command)


def test_some_flags_only_and_other_defaults() -> None:
    seen: list[SearchOptions] = []

    def command(options: Annotated[SearchOptions, FEW]) -> None:
        seen.append(options)

    called("", command)
    called("--beam 3 --alpha 0", command)
    assert seen == [SearchOptions(beam=1), SearchOptions(beam=3, alpha=0.0)]
    app = typer.Typer()
    app.command()(with_flags(command))
    assert CliRunner().invoke(app, ["--nbest", "2"]).exit_code == 2


def test_every_option_of_a_request_is_a_flag_of_translate() -> None:
    """With the request's own type, default and help; a switch that is on is turned off."""
    parameters = inspect.signature(translate).parameters
    options = {option.name.split(".")[-1]: option for option in describe(TranslateRequest)}
    assert len(options) == len(fields(SearchOptions)) + len(fields(TranslateRequest)) - 1
    for name, option in options.items():
        if name in WITHOUT_FLAG:
            assert name not in parameters
            continue
        hint, flag = parameters[name].annotation.__origin__, parameters[name].annotation
        (info,) = flag.__metadata__
        assert info.default == SPELT.get(name, f"--{name.replace('_', '-')}")
        text = option.help
        assert text.lower() in info.help.lower()
        if name not in ("split", "protect", "glossary"):
            assert (hint, parameters[name].default) == (option.hint, option.default)
    assert parameters["split"].default is False
    assert parameters["protect"].default is False
    assert parameters["glossary"].annotation.__origin__ == Path | None


def test_the_table_of_commands_is_whole() -> None:
    """Each command is in the module that the table names, and no module has another."""
    for module in set(COMMANDS.values()):
        commands = importlib.import_module(f"dragoman.cli.{module}").commands
        parent = typer.Typer()
        parent.add_typer(commands)
        names = set(typer.main.get_group(parent).commands)
        assert names == {name for name, home in COMMANDS.items() if home == module}
    files = {path.stem for path in Path(inspect.getfile(translate)).parent.glob("*ing.py")}
    assert files == set(COMMANDS.values())


def test_one_command_loads_the_commands_of_no_other() -> None:
    code = (
        "import sys; from dragoman.cli.main import app\n"
        "app(['models'], standalone_mode=False)\n"
        "print(*[name for name in sys.modules if name.startswith('dragoman.cli.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {name.split(".")[-1] for name in loaded} == {
        "arguments",
        "main",
        "terminal",
        "translating",
    }


def test_train_takes_languages_as_translate_does() -> None:
    from dragoman.cli.training import Named

    assert Named(from_="en", to="TWI").tables(["a.txt", "b.txt"])["data"] == {
        "train": ["a.txt", "b.txt"],
        "source_language": "en",
        "target_language": "tw",
    }
    assert Named().tables(None) == {}


def test_training_says_when_the_languages_are_not_known() -> None:
    from types import SimpleNamespace

    from dragoman.training.prepare_pairs import _check_languages

    def said(source: str, target: str) -> list[str]:
        sentences: list[str] = []
        text: Any = SimpleNamespace(source_language=source, target_language=target)
        _check_languages(text, sentences.append)
        return sentences

    assert said("en", "tw") == []
    (sentence,) = said("", "")
    assert "--from en --to tw" in sentence
    assert len(said("en", "")) == 1
    assert "'zz' is not a language code" in said("en", "zz")[0]
