"""A finite automaton that reads JSON of a schema character by character. Knows characters and
states; no tokens.

A schema of the part that json_schema.py reads allows finitely many texts, so that its automaton has
no stack: what may follow an item of an array is written out once for each number of items. Between
a comma or a colon and what follows there may be a space, as `json.dumps` writes it, and one before
everything. Characters that the schema does not name are of one class, those of any string.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from dragoman.errors import OptionError
from dragoman.text.json_schema import DECIMALS, DIGITS, Value
from dragoman.text.normalise import normalise

DEAD = 0  # the state of a text that is no beginning of any that is allowed
ANY = 0  # the class of characters that the schema does not name
NEVER = 1  # the class of those that no text has
_FIRST_NAMED = 2
_MOST_STATES = 50_000
_MOST_CELLS = 2**24  # states times classes
_NUMERALS = "0123456789"
_STRUCTURE = '{}[]:," \\-.' + _NUMERALS + "truefals"
_AFTER_BACKSLASH = '"\\/bfnrt'
UNREACHABLE = 2**30
States = NDArray[numpy.int32]


@dataclass(frozen=True)
class Machine:
    """The automaton; its first state is 1."""

    classes: dict[str, int]  # of the characters that are told apart
    table: States  # (states, classes): the next state
    accepts: NDArray[numpy.bool_]  # (states,): whether a text may end there

    start = 1

    def class_of(self, character: str) -> int:
        """Return the class of a character."""
        named = self.classes.get(character)
        if named is not None:
            return named
        return ANY if _is_text(character) else NEVER

    def accepts_text(self, text: str) -> bool:
        """Whether the automaton accepts a text."""
        state = self.start
        for character in text:
            state = int(self.table[state, self.class_of(character)])
        return bool(self.accepts[state])

    def distances(self, spelt: Collection[int]) -> States:
        """Return (states,): the fewest characters until a text may end, of those classes that can
        be `spelt`; `UNREACHABLE` where it never can."""
        before: list[set[int]] = [set() for _ in self.table]
        for number in spelt:
            for state, following in enumerate(self.table[:, number].tolist()):
                before[following].add(state)
        distance = numpy.full(len(self.table), UNREACHABLE, dtype=numpy.int32)
        distance[self.accepts] = 0
        waiting = deque(numpy.flatnonzero(self.accepts).tolist())
        while waiting:
            state = waiting.popleft()
            for earlier in before[state]:
                if earlier != DEAD and distance[earlier] == UNREACHABLE:
                    distance[earlier] = distance[state] + 1
                    waiting.append(earlier)
        return distance


def machine_for(schema: Value) -> Machine:
    """Return the automaton of a schema."""
    builder = _Builder(schema)
    last = builder.state()
    builder.accepting.add(last)
    first = builder.value(schema, last)
    # The first state is followed by whatever the value may begin with, or by a space.
    builder.edges[Machine.start] = dict(builder.edges[first])
    builder.link(Machine.start, " ", first)
    return builder.machine()


class _Builder:
    """Writes the automaton backwards: a value is made to lead to what follows it."""

    def __init__(self, schema: Value) -> None:
        named = dict.fromkeys(_STRUCTURE + _AFTER_BACKSLASH)
        for text in _texts(schema):
            named |= dict.fromkeys(json.dumps(text, ensure_ascii=False))
        self.classes = {character: _FIRST_NAMED + place for place, character in enumerate(named)}
        self.edges: list[dict[int, int]] = [{}, {}]  # the dead state and the first
        self.accepting: set[int] = set()

    def state(self) -> int:
        self.edges.append({})
        if len(self.edges) > _MOST_STATES or len(self.edges) * len(self.classes) > _MOST_CELLS:
            raise OptionError(
                "the schema allows too much at once; lower maxLength, maxItems or the number of "
                "properties"
            )
        return len(self.edges) - 1

    def link(self, state: int, characters: Iterable[str], following: int) -> None:
        for character in characters:
            self.edges[state][self.classes[character]] = following

    def value(self, schema: Value, following: int) -> int:
        """Return the state in which a value begins, after which the state follows.

        Where that leads is known already, so that an end can be a copy of it.
        """
        if schema.kind == "object":
            return self._object(schema, following)
        if schema.kind == "array":
            return self._array(schema, following)
        if schema.kind == "string" and schema.choices:
            quoted = [json.dumps(choice, ensure_ascii=False) for choice in schema.choices]
            return self._one_of(quoted, following)
        if schema.kind == "string":
            return self._string(schema.most, following)
        if schema.kind == "boolean":
            return self._one_of(["true", "false"], following)
        return self._number(schema.kind == "number", following)

    def _one_of(self, texts: Iterable[str], following: int) -> int:
        """Any one of some texts, none of which begins another."""
        first = self.state()
        for text in texts:
            state = first
            for character in text[:-1]:
                number = self.classes[character]
                if number not in self.edges[state]:
                    self.edges[state][number] = self.state()
                state = self.edges[state][number]
            self.link(state, text[-1], following)
        return first

    def _literal(self, text: str, following: int) -> int:
        """A text, after which there may be a space where it ends in a comma or a colon."""
        state = following
        if text[-1] in ",:":
            spaced = self._copy(following)
            self.link(spaced, " ", following)
            state = spaced
        for character in reversed(text):
            before = self.state()
            self.link(before, character, state)
            state = before
        return state

    def _object(self, schema: Value, following: int) -> int:
        after = self._closing("}", following)
        for place, (name, inner) in reversed(list(enumerate(schema.properties))):
            begun = self.value(inner, after)
            key = json.dumps(name, ensure_ascii=False)
            opening = "{" if place == 0 else ","
            named = self._literal(f"{key}:", begun)
            if opening == "{":
                return self._literal("{", named)
            after = self._literal(",", named)
        raise AssertionError("an object has properties")

    def _array(self, schema: Value, following: int) -> int:
        assert schema.items is not None
        after = self._closing("]", following)
        closing = after
        for place in reversed(range(schema.most)):
            begun = self.value(schema.items, after)
            if place == 0:
                opened = self._copy(begun)
                self.edges[opened] |= self.edges[closing]
                return self._literal("[", opened)
            after = self._copy(closing)
            comma = self._literal(",", begun)
            self.edges[after] |= self.edges[comma]
        return self._literal("[", closing)

    def _string(self, most: int, following: int) -> int:
        plain = [number for character, number in self.classes.items() if _is_plain(character)]
        state = self.state()
        self.link(state, '"', following)
        for _ in range(most):
            before = self.state()
            escaped = self.state()
            self.edges[before] = {ANY: state} | dict.fromkeys(plain, state)
            self.link(before, "\\", escaped)
            self.link(before, '"', following)
            self.link(escaped, _AFTER_BACKSLASH, state)
            state = before
        return self._literal('"', state)

    def _number(self, with_decimals: bool, following: int) -> int:
        point = self.state()
        state = self._copy(following)
        for _ in range(DECIMALS - 1):
            before = self._copy(following)
            self.link(before, _NUMERALS, state)
            state = before
        self.link(point, _NUMERALS, state)

        def ending() -> int:
            end = self._copy(following)
            if with_decimals:
                self.link(end, ".", point)
            return end

        state = ending()
        for _ in range(DIGITS - 1):
            before = ending()
            self.link(before, _NUMERALS, state)
            state = before
        unsigned = self.state()
        self.link(unsigned, _NUMERALS[1:], state)
        self.link(unsigned, "0", ending())
        signed = self._copy(unsigned)
        self.link(signed, "-", unsigned)
        return signed

    def _closing(self, bracket: str, following: int) -> int:
        state = self.state()
        self.link(state, bracket, following)
        return state

    def _copy(self, state: int) -> int:
        copied = self.state()
        self.edges[copied] = dict(self.edges[state])
        if state in self.accepting:
            self.accepting.add(copied)
        return copied

    def machine(self) -> Machine:
        count = len(self.edges)
        width = _FIRST_NAMED + len(self.classes)
        table = numpy.zeros((count, width), dtype=numpy.int32)
        for state, edges in enumerate(self.edges):
            for number, following in edges.items():
                table[state, number] = following
        accepts = numpy.zeros(count, dtype=numpy.bool_)
        accepts[list(self.accepting)] = True
        return Machine(self.classes, table, accepts)


def _texts(schema: Value) -> Iterable[str]:
    """Every text that the schema names."""
    yield from schema.choices
    for name, inner in schema.properties:
        yield name
        yield from _texts(inner)
    if schema.items is not None:
        yield from _texts(schema.items)


def _is_plain(character: str) -> bool:
    """Whether a named character stands for itself inside a string."""
    return character not in '"\\'


def _is_text(character: str) -> bool:
    """Whether a character inside a string comes through as it is."""
    return normalise(f"a{character}a") == f"a{character}a"
