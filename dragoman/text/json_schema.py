"""A bounded part of JSON Schema: what a value may be, read from a file and checked. Knows JSON; no
tokens.

Objects have fixed properties, all of which are written, in the order of the schema. Strings have
`enum` or `maxLength`, arrays `items` and `maxItems`; besides these there are integers, numbers and
booleans. Whatever else a schema says is refused rather than ignored, so that an output that keeps
to it keeps to all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import InputError, OptionError
from dragoman.folder.files import read_bounded
from dragoman.text.normalise import normalise

LARGEST = 2**20  # bytes of a schema
DIGITS = 15  # of a whole number, and of the part of a number before the point
DECIMALS = 6
_DEEPEST = 20
_MOST_PROPERTIES = 100
_MOST_VALUES = 1000
_LONGEST_STRING = 2000
_MOST_ITEMS = 100
# What says nothing about which values are valid.
_REMARKS = {"title", "description", "$schema", "$id", "$comment", "examples", "default"}
_KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "string": {"enum", "maxLength"},
    "array": {"items", "maxItems"},
    "integer": set(),
    "number": set(),
    "boolean": set(),
}


@dataclass(frozen=True)
class Value:
    """What one value may be."""

    kind: str  # object, string, array, integer, number or boolean
    properties: tuple[tuple[str, Value], ...] = ()  # of an object
    choices: tuple[str, ...] = ()  # of a string; none: any up to `most` characters
    items: Value | None = None  # of an array
    most: int = 0  # characters of a string, items of an array


def load_schema(path: Path) -> Value:
    """Read a schema from a file."""
    try:
        schema = json.loads(read_bounded(path, LARGEST))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; name a file with a JSON schema") from None
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"{path} is not JSON: {reason}") from None
    try:
        return read_schema(schema)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None


def read_schema(schema: Any, where: str = "the schema", depth: int = 0) -> Value:
    """Return what a schema allows; raise an error for a keyword outside of the part that is
    read."""
    if not isinstance(schema, Mapping):
        raise OptionError(
            f'{where} is not an object with a \'type\'; write one such as {{"type": "integer"}}'
        )
    if depth > _DEEPEST:
        raise OptionError(f"{where} is nested over {_DEEPEST} levels deep; make it flatter")
    kind = schema.get("type", "string" if "enum" in schema else None)
    if not isinstance(kind, str) or kind not in _KEYWORDS:
        shown = json.dumps(kind)[:60]
        raise OptionError(f"{where} has the type {shown}; it must be one of {', '.join(_KEYWORDS)}")
    allowed = _KEYWORDS[kind] | _REMARKS | {"type"}
    for keyword in schema:
        if keyword not in allowed:
            known = ", ".join(sorted(_KEYWORDS[kind])) or "none"
            raise OptionError(
                f"{where} has the keyword '{keyword}', which is not supported; for the type {kind} "
                f"these are: {known}"
            )
    if kind == "object":
        return _object(schema, where, depth)
    if kind == "array":
        return _array(schema, where, depth)
    return _string(schema, where) if kind == "string" else Value(kind)


def is_valid(value: Any, schema: Value) -> bool:
    """Whether a JSON value keeps to the schema."""
    if schema.kind == "object":
        if not isinstance(value, dict) or list(value) != [name for name, _ in schema.properties]:
            return False
        return all(is_valid(value[name], inner) for name, inner in schema.properties)
    if schema.kind == "array":
        assert schema.items is not None
        if not isinstance(value, list) or len(value) > schema.most:
            return False
        return all(is_valid(item, schema.items) for item in value)
    if schema.kind == "string":
        if not isinstance(value, str):
            return False
        return value in schema.choices if schema.choices else len(value) <= schema.most
    if schema.kind == "boolean":
        return isinstance(value, bool)
    numbers = (int,) if schema.kind == "integer" else (int, float)
    return isinstance(value, numbers) and not isinstance(value, bool)


def _object(schema: Mapping[str, Any], where: str, depth: int) -> Value:
    named = schema.get("properties")
    if not isinstance(named, Mapping) or not 0 < len(named) <= _MOST_PROPERTIES:
        raise OptionError(
            f"{where} is an object without 'properties'; name 1 to {_MOST_PROPERTIES} of them"
        )
    if schema.get("additionalProperties", False) is not False:
        raise OptionError(f"{where} has additionalProperties; only false is supported")
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(name in named for name in required):
        raise OptionError(f"{where} requires a property that 'properties' does not have")
    properties = []
    for name, inner in named.items():
        _check_text(where, name)
        properties.append((name, read_schema(inner, f"'{name[:40]}'", depth + 1)))
    return Value("object", properties=tuple(properties))


def _array(schema: Mapping[str, Any], where: str, depth: int) -> Value:
    most = _number(schema, "maxItems", where, _MOST_ITEMS)
    if "items" not in schema:
        raise OptionError(f"{where} is an array without 'items'; say what its items are")
    items = read_schema(schema["items"], f"an item of {where}", depth + 1)
    return Value("array", items=items, most=most)


def _string(schema: Mapping[str, Any], where: str) -> Value:
    if "enum" not in schema:
        return Value("string", most=_number(schema, "maxLength", where, _LONGEST_STRING))
    choices = schema["enum"]
    is_list = isinstance(choices, list) and 0 < len(choices) <= _MOST_VALUES
    if not is_list or not all(isinstance(choice, str) for choice in choices):
        raise OptionError(f"the enum of {where} must be a list of 1 to {_MOST_VALUES:,} strings")
    most = schema.get("maxLength", _LONGEST_STRING)
    for choice in choices:
        _check_text(where, choice)
        if not isinstance(most, int) or len(choice) > most:
            raise OptionError(f"the enum of {where} has '{choice[:40]}', longer than its maxLength")
    return Value("string", choices=tuple(dict.fromkeys(choices)))


def _number(schema: Mapping[str, Any], keyword: str, where: str, most: int) -> int:
    value = schema.get(keyword)
    if type(value) is not int or not 0 <= value <= most:
        given = "no" if value is None else json.dumps(value)[:40]
        raise OptionError(
            f"{where} has {given} {keyword}; it must have one, a whole number up to {most:,}"
        )
    return value


def _check_text(where: str, text: str) -> None:
    """Models write text in which white space is normal, so that nothing else can be asked for."""
    if normalise(text) != text or len(text) > _LONGEST_STRING:
        raise OptionError(
            f"{where} has the text {json.dumps(text)[:60]}; control characters, double spaces and "
            f"spaces at its ends cannot be written, nor over {_LONGEST_STRING:,} characters"
        )
