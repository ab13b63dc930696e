"""Strict configuration: TOML and flags in, frozen dataclasses out, and back to TOML.

Knows no option by name. A dataclass says what exists: its annotations give the type, and
`Annotated[int, "text", Range(1)]` the help and the limits, which its `__post_init__` enforces. An
unknown key is an error that names the nearest valid one.
"""

from __future__ import annotations

import difflib
import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from tomllib import TOMLDecodeError
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from dragoman.errors import OptionError
from dragoman.folder.files import read_bounded

T = TypeVar("T")
_TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    str: "a word",
    bool: "true or false",
}


@dataclass(frozen=True)
class Range:
    """The numbers that an option accepts; part of its annotation."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf

    def __contains__(self, value: float) -> bool:
        # A comparison with NaN is false, so NaN is in no range.
        within = self.least <= value <= self.most
        return within and value > self.above and math.isfinite(value)

    def __str__(self) -> str:
        limits = []
        if self.least > -math.inf:
            limits.append(f"at least {self.least:,}")
        if self.above > -math.inf:
            limits.append(f"above {self.above:,}")
        if self.most < math.inf:
            limits.append(f"at most {self.most:,}")
        return " and ".join(limits) or "finite"


@dataclass(frozen=True)
class Option:
    """What is known of one field of a configuration."""

    name: str  # with dots: training.steps
    hint: Any  # its type
    default: Any  # None if it is required
    required: bool
    notes: tuple[Any, ...]  # what its annotation adds to its type

    @property
    def help(self) -> str:
        """What it means, as a phrase."""
        return next((note for note in self.notes if isinstance(note, str)), "")

    @property
    def range(self) -> Range | None:
        """The numbers that it accepts, if it names them."""
        return next((note for note in self.notes if isinstance(note, Range)), None)

    @property
    def kind(self) -> str:
        """Its type, in words."""
        return _type_name(self.hint)


def load_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        text = read_bounded(path).decode("utf-8")
        return tomllib.loads(text)
    except FileNotFoundError:
        raise OptionError(f"{path} does not exist; name a TOML file of options") from None
    except (TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} is not a TOML file: {error}") from None


def build(cls: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """A `cls` from nested tables; unknown keys and wrong types are refused."""
    hints = get_type_hints(cls)
    known = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
    arguments = {}
    for key, value in values.items():
        name = f"{where}{key}"
        if key not in known:
            raise OptionError(f"unknown option '{name}'{_nearest(key, known)}")
        arguments[key] = _convert(value, hints[key], name)
    for key, field in known.items():
        if _is_required(field) and key not in arguments:
            raise OptionError(f"'{where}{key}' is missing; it has no default")
    return cls(**arguments)


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables laid over one another, the later ones on top."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            below = merged.get(key)
            if isinstance(value, Mapping) and isinstance(below, Mapping):
                merged[key] = merge(below, value)
            else:
                merged[key] = value
    return merged


def assignments(cls: type, items: Sequence[str]) -> dict[str, Any]:
    """`section.key=value` or, where the key is unique, `key=value`, as nested tables. Values are
    read as TOML."""
    known = _names_for(cls)
    tables: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        key = key.strip()
        if not equals:
            raise OptionError(f"'{item}' is not an assignment; write --set key=value")
        if key not in known:
            raise OptionError(f"unknown option '{key}'{_nearest(key, known)}")
        name, *others = known[key]
        if others:
            either = " or ".join([name, *others])
            raise OptionError(f"'{key}' could be {either}; write the whole name")
        nested: Any = _read_value(text.strip())
        path = name.split(".")
        for part in reversed(path):
            nested = {part: nested}
        tables = merge(tables, nested)
    return tables


def _names_for(cls: type) -> dict[str, list[str]]:
    """The whole names that a name may stand for: each for itself, and its last part for all."""
    names: dict[str, list[str]] = {}
    for option in describe(cls):
        names.setdefault(option.name, [option.name])
        _, dot, last = option.name.rpartition(".")
        if dot:
            alike = names.setdefault(last, [])
            alike.append(option.name)
    return names


def to_dict(config: Any) -> dict[str, Any]:
    """Nested plain values; what `build` reads back."""
    plain = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            value = to_dict(value)
        if isinstance(value, tuple):
            value = list(value)
        plain[field.name] = value
    return plain


def to_toml(config: Any) -> str:
    """The whole config as TOML, each line with its help; reads back to an equal config."""
    scalars: list[str] = []
    tables: list[str] = []
    helps = {option.name: option.help for option in describe(type(config))}
    for key, value in to_dict(config).items():
        if isinstance(value, dict):
            lines = [f"[{key}]"]
            for name, item in value.items():
                text = helps.get(f"{key}.{name}", "")
                if item is not None:  # TOML has no word for nothing
                    lines.append(_toml_line(name, item, text))
            tables.append("\n".join(lines))
        elif value is not None:
            text = helps.get(key, "")
            scalars.append(_toml_line(key, value, text))
    if scalars:
        tables.insert(0, "\n".join(scalars))
    return "\n\n".join(tables) + "\n"


def describe(cls: type, prefix: str = "") -> Iterator[Option]:
    """Every field, those of nested dataclasses with the name of their table before their own."""
    hints = get_type_hints(cls, include_extras=True)
    for field in fields(cls):
        name = f"{prefix}{field.name}"
        hint, *notes = _annotated(hints[field.name])
        if is_dataclass(hint):
            yield from describe(cast(type, hint), f"{name}.")
            continue
        default = field.default
        yield Option(
            name=name,
            hint=hint,
            default=None if default is MISSING else default,
            required=_is_required(field),
            notes=tuple(notes),
        )


def check_ranges(config: Any) -> None:
    """Refuses a number outside the range that its field names."""
    for name, allowed in _ranges(config.__class__):
        value = getattr(config, name)
        if value not in allowed:
            raise OptionError(f"{name} is {value}; it must be {allowed}")


def one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    """Refuses a value that is not among those allowed."""
    if value not in allowed:
        values = ", ".join(allowed)
        hint = _nearest(value, allowed)
        raise OptionError(f"{name} is '{value}'; it must be one of {values}{hint}")


@cache
def _ranges(cls: type) -> tuple[tuple[str, Range], ...]:
    """The fields of a dataclass itself that name a range, and that range."""
    found = []
    for option in describe(cls):
        allowed = option.range
        if "." not in option.name and allowed is not None:
            found.append((option.name, allowed))
    return tuple(found)


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _annotated(hint: Any) -> tuple[Any, ...]:
    """A type and what its annotation adds to it."""
    return get_args(hint) if get_origin(hint) is Annotated else (hint,)


def _nearest(word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


def _read_value(text: str) -> Any:
    try:
        table = tomllib.loads(f"value = {text}")
    except TOMLDecodeError:
        return text
    return table["value"]


def _convert(value: Any, hint: Any, name: str) -> Any:
    """`value` as the type `hint` asks for, or an error that names the option."""
    if is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise OptionError(f"'{name}' is a table of options, not {value!r}")
        return build(cast(type, hint), value, f"{name}.")
    origin = get_origin(hint)
    arguments = get_args(hint)
    if origin is tuple:
        items = value if isinstance(value, (list, tuple)) else [value]
        kind = arguments[0]
        return tuple(_convert(item, kind, name) for item in items)
    if origin in (Union, UnionType):
        if value is None:
            return None
        return _convert(value, arguments[0], name)
    given = type(value)
    if hint is float and given is int:
        return float(value)
    if hint is str and given is bool:
        return json.dumps(value)  # --set compile=true, for an option that also takes other words
    if given is not hint or (hint is float and not math.isfinite(value)):
        raise OptionError(f"'{name}' must be {_type_name(hint)}, not {value!r}")
    if hint is str and not _is_utf8(value):
        raise OptionError(f"'{name}' must be text in UTF-8, not {value!r}")
    return value


def _is_utf8(text: str) -> bool:
    """Whether a string can be written; half of a surrogate pair cannot."""
    encoded = text.encode("utf-8", "replace")
    return encoded.decode("utf-8") == text


def _type_name(hint: Any) -> str:
    if get_origin(hint) is tuple:
        item, *_ = get_args(hint)
        kind = _TYPE_NAMES.get(item, "a value")
        return f"a list, each {kind}"
    return _TYPE_NAMES.get(hint, str(hint))


def _toml_line(key: str, value: Any, text: str) -> str:
    literal = json.dumps(value, ensure_ascii=False)
    # JSON's strings are TOML's but for this character, which TOML wants to be escaped as well.
    literal = literal.replace("\x7f", "\\u007f")
    line = f"{key} = {literal}"
    return f"{line}  # {text}" if text else line
