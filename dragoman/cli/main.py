"""The command line: finds a command and runs it, and turns errors into a sentence and an exit code.

Every group of commands is a module of its own, which is loaded when one of its commands is called
and imports what it needs when it runs, so that `--help` is instant.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from dragoman import __version__
from dragoman.cli.arguments import name_kinds
from dragoman.cli.terminal import say
from dragoman.errors import DragomanError, OptionError

NAME = "dragoman"  # also where it is called by another, such as `python -m dragoman`

# The module of each command, in the order of the help.
COMMANDS = {
    "check": "checking",
    "train": "training",
    "improve": "bettering",
    "average": "averaging",
    "backtranslate": "improving",
    "distil": "improving",
    "learn": "learning",
    "rollback": "learning",
    "translate": "translating",
    "models": "translating",
    "shortlist": "translating",
    "evaluate": "evaluating",
    "calibrate": "evaluating",
    "inspect": "inspecting",
    "generate": "writing",
    "fill": "encoding",
    "embed": "encoding",
    "classify": "encoding",
    "label": "encoding",
    "transcribe": "transcribing",
    "parse": "parsing",
    "rewrite": "rewriting",
    "ask": "rewriting",
    "summarise": "rewriting",
    "convert": "converting",
    "serve": "serving",
    "add-key": "serving",
    "corrections": "correcting",
}
# What the value of an option must be, by pydantic's name for the mistake.
_WANTED = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "at least {}",
    "less_than_equal": "at most {}",
}
# Options that take all words up to the next option.
OF_SEVERAL_FILES = (
    "--valid",
    "--test",
    "--text",
    "--from-text",
    "--target-text",
    "--source-text",
    "--related",
)


class Commands(TyperGroup):
    """The commands, loaded when they are called or listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None if there is none."""
        # The names nearest to an unknown one are looked for among the commands that are loaded.
        wanted = [cmd_name] if cmd_name in COMMANDS else list(COMMANDS)
        for name in wanted:
            if name not in self.commands:
                self.commands.update(_load(COMMANDS[name]))
        command = self.commands.get(cmd_name)
        if command is not None:
            name_kinds(command, ctx)
        return command

    def get_params(self, ctx: Any) -> list[Any]:
        """The options before a command, with plain words for what they take."""
        parameters = super().get_params(ctx)
        name_kinds(self, ctx)
        return parameters


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def main() -> None:
    """Run the command `dragoman`."""
    _open_closed_streams()
    # Text comes and goes in UTF-8, whatever the terminal's settings say.
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = app(_spread(sys.argv[1:]), prog_name=NAME, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(_fail("interrupted", 130))
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except Exception as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        sys.exit(_fail(sentence, 2))
    sys.exit(code if isinstance(code, int) else 0)


@app.callback(invoke_without_command=True)
def top(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Two aligned text files become a translator that you own."""
    if version:
        print(__version__)
        raise typer.Exit


def _load(module: str) -> dict[str, Any]:
    """The commands of a module, by name."""
    parent = typer.Typer(rich_markup_mode="markdown")
    parent.add_typer(importlib.import_module(f"dragoman.cli.{module}").commands)
    return dict(get_group(parent).commands)


def _spread(words: list[str]) -> list[str]:
    """`--valid a b` as `--valid a --valid b`: an option of several files takes all words up to
    the next option."""
    spread: list[str] = []
    taking = ""
    for word, following in zip(words, [*words, "-"][1:], strict=True):
        if word.startswith("-"):
            taking = word if word in OF_SEVERAL_FILES else ""
            if taking and following.startswith("-"):
                raise OptionError(f"{word} needs one or two files after it")
            if not taking:
                spread.append(word)
        elif taking:
            spread += [taking, word]
        else:
            spread.append(word)
    return spread


def _sentence(error: Exception) -> str | None:
    """What a user is told of an error; None if it is ours."""
    if isinstance(error, DragomanError):
        return str(error)
    if hasattr(error, "format_message"):  # the parser's: an unknown flag, a missing argument
        sentence = _wrong_value(error) or str(error.format_message())
        if sentence.startswith("No such command") and "Did you mean" not in sentence:
            return f"{sentence.rstrip('.')}; dragoman --help lists the commands"
        return sentence
    if isinstance(error, OSError):
        return _os_sentence(error)
    return None


def _wrong_value(error: Any) -> str:
    """What is wrong with the value of an option, in place of pydantic's words; empty for other
    mistakes."""
    cause = error.__cause__
    option = getattr(error, "param", None)
    if option is None or not hasattr(cause, "errors"):
        return ""
    found = cause.errors()[0]
    wanted = _WANTED.get(found["type"])
    if wanted is None:
        return ""
    bound = next(iter(found.get("ctx", {}).values()), "")
    name = option.opts[0] if option.opts[0].startswith("-") else option.human_readable_name
    return f"{name} is '{found['input']}'; it must be {wanted.format(bound)}"


def _os_sentence(error: OSError) -> str:
    """What the system says of a file, with what is to be done where that is known."""
    if not error.filename:
        if error.errno == errno.ENOSPC:
            return "no space is left to write the output; free some space, then run it again"
        return str(error.strerror or error)
    folder = Path(os.fsdecode(error.filename)).parent
    if isinstance(error, FileNotFoundError) and not folder.is_dir():
        return f"{error.filename}: there is no folder {folder}; make it, or name another place"
    return f"{error.filename}: {error.strerror or error}"


def _open_closed_streams() -> None:
    """Open what a parent has closed, so that no file takes its place: nothing is read from it, and
    what is written to it is lost."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _fail(sentence: str, code: int) -> int:
    if sentence:  # empty if the parser has printed the help
        say(f"error: {sentence}")
    return code
