"""The part of JSON Schema that outputs can be held to: what is read, what is refused, and the
automaton that reads every valid text and no other."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.text.json_machine import ANY, NEVER, UNREACHABLE, Machine, machine_for
from dragoman.text.json_schema import is_valid, load_schema, read_schema

COLOURS = ["red", "green", "re", 'a "quoted" one']
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "a thing",
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "is old": {"type": "boolean"},
        "colour": {"enum": COLOURS},
        "parts": {
            "type": "array",
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {
                    "sizes": {"type": "array", "maxItems": 3, "items": {"type": "integer"}}
                },
                "additionalProperties": False,
            },
        },
        "none": {"type": "array", "maxItems": 0, "items": {"type": "boolean"}},
    },
    "required": ["name", "count"],
}
MACHINE = machine_for(read_schema(SCHEMA))
GOOD = {
    "name": 'a "b',
    "count": -12,
    "share": 0.25,
    "is old": True,
    "colour": "re",
    "parts": [{"sizes": []}, {"sizes": [1, 0, 30]}],
    "none": [],
}


def numbers(least: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(least, most)


VALUES = st.fixed_dictionaries(
    {
        "name": st.text(st.sampled_from('abc äß日"\\/{}:,'), max_size=6),
        "count": numbers(-(10**15) + 1, 10**15 - 1),
        "share": numbers(-(10**6), 10**6).map(lambda number: number / 1000),
        "is old": st.booleans(),
        "colour": st.sampled_from(COLOURS),
        "parts": st.lists(
            st.fixed_dictionaries({"sizes": st.lists(numbers(0, 9), max_size=3)}), max_size=2
        ),
        "none": st.just([]),
    }
)


@given(VALUES, st.booleans())
def test_every_valid_text_is_accepted(value: dict[str, Any], compact: bool) -> None:
    value = {name: value[name] for name in SCHEMA["properties"]}
    separators = (",", ":") if compact else (", ", ": ")
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    assert MACHINE.accepts_text(text)
    assert MACHINE.accepts_text(f" {text}")
    assert is_valid(value, read_schema(SCHEMA))


@given(st.integers(0, 10**9))
def test_every_accepted_text_is_valid(seed: int) -> None:
    """Random walks through the automaton, judged by another program."""
    text = walk(MACHINE, random.Random(seed))
    value = json.loads(text)
    jsonschema_rs.validate(SCHEMA, value)
    assert is_valid(value, read_schema(SCHEMA))


def walk(machine: Machine, draw: random.Random) -> str:
    names = {number: character for character, number in machine.classes.items()} | {ANY: "ß"}
    state = machine.start
    text = ""
    while True:
        following = [number for number in names if machine.table[state, number]]
        if machine.accepts[state] and (not following or draw.random() < 0.5):
            return text
        number = draw.choice(following)
        text += names[number]
        state = int(machine.table[state, number])


@pytest.mark.parametrize(
    "change",
    [
        {"name": "abcdefg"},
        {"count": 1.5},
        {"count": 10**15},
        {"share": "1"},
        {"is old": None},
        {"colour": "r"},
        {"colour": "redd"},
        {"parts": [{"sizes": []}] * 3},
        {"parts": [{"sizes": [1, 2, 3, 4]}]},
        {"parts": [{}]},
        {"none": [True]},
    ],
)
def test_no_other_text_is_accepted(change: dict[str, Any]) -> None:
    assert MACHINE.accepts_text(json.dumps(GOOD))
    assert not MACHINE.accepts_text(json.dumps(GOOD | change))


def test_no_damaged_text_is_accepted() -> None:
    text = json.dumps(GOOD)
    assert not MACHINE.accepts_text(text[:-1])
    assert not MACHINE.accepts_text(text + " ")
    assert not MACHINE.accepts_text(text.replace("-12", "-012"))
    assert not MACHINE.accepts_text(text.replace('"a ', '"\n '))
    assert MACHINE.class_of("\x00") == MACHINE.class_of("\u0301") == NEVER
    assert not MACHINE.accepts_text(json.dumps({name: GOOD[name] for name in reversed(GOOD)}))


def test_how_far_it_is_to_the_end() -> None:
    machine = machine_for(
        read_schema({"type": "array", "maxItems": 2, "items": {"type": "boolean"}})
    )
    spelt = set(machine.classes.values())
    assert machine.distances(spelt)[machine.start] == len("[]")
    without = spelt - {machine.classes["]"]}
    assert machine.distances(without)[machine.start] == UNREACHABLE


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ([], "is not an object with a 'type'"),
        ({"type": "null"}, 'the type "null"; it must be one of object, string'),
        ({"type": ["string", "null"]}, 'the type ["string", "null"]'),
        ({"type": "string"}, "no maxLength"),
        ({"type": "string", "maxLength": -1}, "-1 maxLength"),
        ({"type": "string", "maxLength": True}, "true maxLength"),
        ({"type": "string", "pattern": "a+"}, "the keyword 'pattern', which is not supported"),
        ({"type": "integer", "minimum": 0}, "the keyword 'minimum'"),
        ({"$ref": "#/x"}, "the type null"),
        ({"enum": [1]}, "must be a list of 1 to 1,000 strings"),
        ({"enum": []}, "must be a list of 1 to 1,000 strings"),
        ({"enum": ["two  spaces"]}, "double spaces"),
        ({"type": "array", "items": {"type": "integer"}}, "no maxItems"),
        ({"type": "array", "maxItems": 3}, "without 'items'"),
        ({"type": "object"}, "without 'properties'"),
        ({"type": "object", "properties": {}}, "without 'properties'"),
        ({"type": "object", "properties": {"a": 1}}, "'a' is not an object"),
        (
            {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["b"]},
            "requires",
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "boolean"}},
                "additionalProperties": {},
            },
            "additionalProperties; only false",
        ),
    ],
)
def test_what_is_refused(schema: Any, words: str) -> None:
    with pytest.raises(DragomanError) as raised:
        read_schema(schema)
    assert words in str(raised.value)


def nested(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        inner = {"type": "array", "maxItems": 1, "items": inner}
    return inner


def test_what_is_too_much() -> None:
    with pytest.raises(DragomanError, match="20 levels deep"):
        read_schema(nested(30))
    many = {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 2000}}
    with pytest.raises(DragomanError, match="allows too much"):
        machine_for(read_schema(many))


@pytest.mark.parametrize("content", [b"", b"\x89PNG\xff", b"{", b"[" * 100_000])
def test_a_file_that_is_no_schema(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_bytes(content)
    with pytest.raises(DragomanError, match="is not JSON"):
        load_schema(file)
    with pytest.raises(DragomanError, match="does not exist"):
        load_schema(tmp_path / "missing.json")
