"""The command line: finds a command and runs it, and turns errors into a sentence and an exit code.

Every group of commands is a module of its own, which is loaded when one of its commands is called
and imports what it needs when it runs, so that `--help` is instant.
"""

from __future__ import annotations

import importlib
import sys
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
        sentence = str(error.format_message())
        if sentence.startswith("No such command") and "Did you mean" not in sentence:
            return f"{sentence.rstrip('.')}; dragoman --help lists the commands"
        return sentence
    if isinstance(error, OSError):
        reason = str(error.strerror or error)
        return f"{error.filename}: {reason}" if error.filename else reason
    return None


def _fail(sentence: str, code: int) -> int:
    if sentence:  # empty if the parser has printed the help
        say(f"error: {sentence}")
    return code
