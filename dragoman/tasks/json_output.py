"""Outputs that are JSON of a schema, whatever the model would rather say. Knows the pieces of a
tokeniser, the automaton of a schema and how a search is held to it; no weights."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy

from dragoman.decoding.grammar import GrammarRules
from dragoman.decoding.json_grammar import JsonAutomaton, TokenMachine
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import OptionError
from dragoman.folder.description import Description
from dragoman.runtimes.beginning import Guide, Searched
from dragoman.text.foreign import Foreign
from dragoman.text.json_machine import NEVER, UNREACHABLE, Machine, machine_for
from dragoman.text.json_schema import Value, load_schema
from dragoman.text.tokenizer import EOS, Tokenizer

_SPACE = "▁"
_LONGEST_PIECE = 64  # characters; longer pieces are never said
_ROOM = 64  # tokens beyond twice the shortest output


class JsonOutput:
    """A schema for one model's tokens."""

    def __init__(self, schema: Value, tokenizer: Tokenizer) -> None:
        self.schema = schema
        self._machine = machine_for(schema)
        self._texts = token_texts(tokenizer)
        if self.tokens.distance[self._machine.start] == UNREACHABLE:
            raise OptionError(
                f"the model's vocabulary cannot spell JSON of this schema: it has no piece for "
                f"{self._missing()}; use a model whose tokeniser has it"
            )

    @classmethod
    def load(cls, path: Path, tokenizer: Tokenizer) -> JsonOutput:
        """Read a schema from a file."""
        return cls(load_schema(path), tokenizer)

    @cached_property
    def tokens(self) -> TokenMachine:
        """The automaton over the model's tokens."""
        machine = self._machine
        nothing = machine.table.shape[1]  # a class of its own that stays where it is
        longest = max((len(text) for text in self._texts if text), default=1)
        rows = numpy.full((len(self._texts), longest), nothing, dtype=numpy.int32)
        spelt = set()
        for token, text in enumerate(self._texts):
            classes = [machine.class_of(character) for character in text or ""]
            rows[token, : len(classes)] = classes
            if len(classes) == 1:
                spelt.add(classes[0])
        itself = numpy.arange(len(machine.table), dtype=numpy.int32)
        return TokenMachine(
            table=numpy.column_stack([machine.table, itself]),
            accepts=machine.accepts,
            distance=machine.distances(spelt - {NEVER}),
            tokens=rows,
            usable=numpy.array([bool(text) for text in self._texts]),
            start=Machine.start,
        )

    def guide(self) -> Guide:
        """Return what holds a search to the schema."""
        return Guide(rules=self._rules)

    def with_room(
        self, options: SearchOptions, source: int, description: Description
    ) -> SearchOptions:
        """Return the options with room for the shortest output and more; `source` is the number of
        tokens of the longest source."""
        shortest = self.tokens.shortest
        most = description.model.max_length - len(description.frame.head)
        asked = options.max_length or max(source + options.max_extra, 2 * shortest + _ROOM)
        if min(asked, most) < shortest:
            raise OptionError(
                f"JSON of this schema takes up to {shortest:,} tokens, and an output may have "
                f"{min(asked, most):,}; use a smaller schema or a larger limit"
            )
        return replace(options, max_length=min(asked, most))

    def _rules(self, problem: Searched, options: SearchOptions) -> GrammarRules:
        automaton = JsonAutomaton(self.tokens, problem, options.hypotheses)
        return GrammarRules(problem, options, automaton)

    def _missing(self) -> str:
        """The characters that the schema names and no token spells."""
        spelt = {text for text in self._texts if text}
        missing = [one for one in self._machine.classes if one not in spelt]
        return " ".join(missing[:10])


def token_texts(tokenizer: Tokenizer) -> list[str]:
    """Return the text of each target token; empty for those that are not text by themselves."""
    pieces = tokenizer.pieces(range(tokenizer.target_size), "target")
    texts = [piece.replace(_SPACE, " ") for piece in pieces]
    if isinstance(tokenizer, Foreign):
        decoded = tokenizer.decode([[token] for token in range(tokenizer.target_size)])
        for token, text in enumerate(texts):
            # What is decoded to something else is a part of a character, or a special token.
            if text.strip() != decoded[token].strip() or not (text.strip() or text == " "):
                texts[token] = ""
    else:
        texts = [_own_text(token, text) for token, text in enumerate(texts)]
    return ["" if len(text) > _LONGEST_PIECE else text for text in texts]


def _own_text(token: int, text: str) -> str:
    """The text of a token of ours: bytes are pieces such as <0x7B>, of which those of ASCII are
    characters."""
    if token <= EOS:
        return ""
    is_byte = len(text) == 6 and text.startswith("<0x") and text.endswith(">")
    if not is_byte:
        return text
    number = int(text[3:5], 16)
    return chr(number) if 0x20 <= number < 0x7F else ""
