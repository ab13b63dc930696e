"""How a command says what it takes: the arguments that several commands share, and dataclasses
whose fields become flags.

A parameter of a command that is a dataclass stands for one flag per field. The flag of a field has
its name, type and default; its help is the text of the annotation.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import typer
from typer.models import ParameterInfo

from dragoman.config import Option, describe
from dragoman.text.glossary import Glossary

ModelFolder = Annotated[Path, typer.Option("--model", "-m", help="Model folder.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Runtime = Annotated[
    str, typer.Option(help="auto (the fastest available), torch, int8 or ctranslate2.")
]
TestSet = Annotated[
    list[str],
    typer.Argument(
        help="Source and reference file, one .tsv, .tmx or .jsonl file, trees (.mrg), or labelled "
        "texts (.tsv) or words."
    ),
]
ValidationText = Annotated[
    list[str],
    typer.Argument(help="Pairs of source and reference files, or .tsv, .tmx and .jsonl files."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
RayAddress = Annotated[
    str, typer.Option(help="Ray cluster to join, such as auto. Default: a new one here.")
]

# What the help calls the value of an option.
_KINDS = {"int": "NUMBER", "float": "NUMBER", "path": "PATH"}
# Flags whose names differ from those of Python's arguments.
_SPELLINGS = {"align": "--alignments", "split": "--whole-lines", "protect": "--unprotected"}
# What a flag needs to say beyond the option's own help.
_NOTES = {
    "align": "printed after a tab, such as 0-0 1-2",
    "glossary": "a .tsv or .csv file with a term per line (source, target, other forms), or .tbx",
}
# Options that are for Python and the service.
_WITHOUT_FLAG = ("max_extra", "branch")


@dataclass(frozen=True)
class Flags:
    """Which fields of a dataclass are flags of a command, and which have another default there."""

    only: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ChosenModel:
    """The model of a command: a folder, or a bundled one by its languages."""

    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="Model folder. Default: the bundled model for --to."),
    ] = None
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Source language, if several bundled models have this --to."),
    ] = None
    to: Annotated[
        str | None, typer.Option(help="Target language of a bundled model, such as de.")
    ] = None

    def folder(self) -> Path:
        """The folder of the model."""
        from dragoman.folder.shipped import choose

        return choose(self.model, self.from_, self.to)


@dataclass(frozen=True)
class ChosenModels:
    """The models of a command, one or two that meet in a language: folders, or by languages."""

    model: Annotated[
        list[Path] | None,
        typer.Option(
            "--model",
            "-m",
            help="Model folder. Give two to translate by way of a language they share. Default: "
            "models for --from and --to, bundled or in models/.",
        ),
    ] = None
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Source language, if several bundled models have this --to."),
    ] = None
    to: Annotated[str | None, typer.Option(help="Target language of a model, such as de.")] = None

    def folders(self) -> list[Path]:
        """The folders of the models, in the order in which a text goes through them."""
        from dragoman.folder.ways import choose_way

        return choose_way(self.model or [], self.from_, self.to)


@dataclass(frozen=True)
class Machine:
    """What computes."""

    runtime: Runtime = "auto"
    device: Device = "auto"


@dataclass(frozen=True)
class Printing:
    """How much is printed."""

    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False
    as_json: AsJson = False

    @property
    def silent(self) -> bool:
        """Whether a person is told nothing while it runs."""
        return self.quiet or self.as_json


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with each parameter that is a dataclass replaced by its flags."""
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, _Group] = {}
    for parameter in signature.parameters.values():
        group = _group(parameter.annotation)
        if group is None:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            groups[parameter.name] = group
            parameters += group.parameters()

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group.take(given)
        command(**given)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def name_kinds(command: Any, ctx: Any) -> None:
    """Lets the help of a command say what each option takes in plain words: NUMBER rather than
    `<int>`, and nothing for a switch, which takes nothing."""
    for parameter in [*command.params, command.get_help_option(ctx)]:
        kind = _plain_kind(parameter, ctx)
        if kind is not None:
            parameter.display_type_rich = functools.partial(_kind_alone, kind)
    for part in getattr(command, "commands", {}).values():
        name_kinds(part, ctx)


def _plain_kind(parameter: Any, ctx: Any) -> str | None:
    """None where typer is an older one, whose words are plain."""
    if not hasattr(parameter, "display_type_rich"):
        return None
    if parameter.param_type_name == "argument" or parameter.is_flag:
        return ""
    found = re.search("int|float|path", parameter.display_type(ctx))
    return _KINDS[found[0]] if found else "TEXT"


def _kind_alone(kind: str, ctx: Any) -> str:
    return kind


@dataclass(frozen=True)
class _Group:
    """A dataclass as flags."""

    cls: type
    flags: Flags

    def options(self) -> Iterator[tuple[str, Option]]:
        """The options that are flags, by the names of their fields."""
        for option in describe(self.cls):
            name = option.name.split(".")[-1]
            wanted = name in self.flags.only or not self.flags.only
            if wanted and name not in _WITHOUT_FLAG:
                yield name, option

    def parameters(self) -> list[inspect.Parameter]:
        return [self._parameter(name, option) for name, option in self.options()]

    def take(self, given: dict[str, Any]) -> Any:
        """The dataclass made of its flags, which are taken out of `given`."""
        values = {}
        for name, option in self.options():
            value = given.pop(name)
            if _is_switched_off(option):
                value = not value
            if _is_glossary(option) and value is not None:
                value = Glossary.load(value)
            values[name] = value
        return _build(self.cls, values)

    def _parameter(self, name: str, option: Option) -> inspect.Parameter:
        default = self.flags.defaults.get(name, option.default)
        if _is_switched_off(option):
            default = False
        elif option.required:
            default = inspect.Parameter.empty
        hint = Path | None if _is_glossary(option) else option.hint
        return inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[hint, _flag(name, option)],
        )


def _group(annotation: Any) -> _Group | None:
    notes: tuple[Any, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *rest = get_args(annotation)
        notes = tuple(rest)
    if not dataclasses.is_dataclass(annotation):
        return None
    assert isinstance(annotation, type)
    flags = next((note for note in notes if isinstance(note, Flags)), Flags())
    return _Group(annotation, flags)


def _flag(name: str, option: Option) -> Any:
    """What typer is told of an option: what the field itself says, or its help as a sentence."""
    for note in option.notes:
        if isinstance(note, ParameterInfo):
            return note
    text = option.help
    if _is_switched_off(option):
        text = f"do not {text}"
    if name in _NOTES:
        text = f"{text}; {_NOTES[name]}"
    spelling = _SPELLINGS.get(name, f"--{name.replace('_', '-')}")
    return typer.Option(spelling, help=f"{text[0].upper()}{text[1:]}.")


def _is_switched_off(option: Option) -> bool:
    """Whether the flag turns off what is on by default."""
    return option.hint is bool and option.default is True


def _is_glossary(option: Option) -> bool:
    return Glossary in get_args(option.hint)


def _build(cls: type, values: Mapping[str, Any]) -> Any:
    """The dataclass and those inside it, from the values of all their fields."""
    arguments = {}
    for name, hint in get_type_hints(cls).items():
        if dataclasses.is_dataclass(hint):
            arguments[name] = _build(cast(type, hint), values)
        elif name in values:
            arguments[name] = values[name]
    return cls(**arguments)
