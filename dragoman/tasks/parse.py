"""Sentences to constituency trees (§6.3 of the paper). Knows words, trees and the runtime; how a
tree is searched for is the business of decoding.

A model reads the word pieces of a sentence and writes its tree as a row of symbols, the words left
out. The search is among trees of exactly as many words as the sentence has, so that whatever it
finds is one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import torch

from dragoman.decoding.grammar import GrammarRules
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.tree_grammar import AROUND, NO_LABEL, TreeAutomaton, TreeTokens
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import Description
from dragoman.runtimes.beginning import Guide, Searched
from dragoman.runtimes.load import load
from dragoman.runtimes.runtime import GRAMMAR, Request
from dragoman.runtimes.torch_runtime import TorchRuntime
from dragoman.tasks.lines import as_lines, growing
from dragoman.text.penn_words import penn_words
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.trees import CLOSE, MAX_WORDS, OPEN, Tree, is_tag, plain_word

# §6.3: beam 21, alpha 0.3, outputs of up to 300 tokens more than the input has.
OPTIONS = SearchOptions(beam=21, alpha=0.3, max_extra=300)
_WORD_START = "▁"
_HYPHEN_TAG = "HYPH"
_AT_ONCE = 256  # sentences of a stream


@dataclass(frozen=True)
class Parse:
    """What became of one sentence."""

    tree: Tree | None  # None where the sentence is empty or too long for the model
    score: float | None = None  # the log-probability divided by the length penalty
    problem: str = ""  # why there is no tree
    is_empty: bool = False  # whether there was nothing to parse


class Parser:
    """A trained model that parses sentences.

    >>> parser = Parser.load("models/parser")
    >>> parser.parse("Rain falls.").tree.bracketed()
    """

    def __init__(
        self, runtime: TorchRuntime, tokenizer: Tokenizer, description: Description
    ) -> None:
        self.runtime = runtime
        self.tokenizer = tokenizer
        self.description = description

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", runtime: str = "auto") -> Parser:
        """Load the model of a folder. `device` is auto, cpu, cuda or cuda:N; `runtime` is auto,
        torch or int8."""
        loaded = load(folder, device, runtime, check=_check)
        if GRAMMAR not in loaded.runtime.can:
            raise OptionError(
                f"runtime {loaded.runtime.name} cannot hold an output to a grammar; "
                "use --runtime int8 or torch"
            )
        return cls(loaded.runtime, loaded.tokenizer, loaded.description)

    @property
    def splits_hyphens(self) -> bool:
        """Whether the treebank that the model learnt from splits words at hyphens."""
        return _HYPHEN_TAG in self.symbols

    @cached_property
    def symbols(self) -> dict[str, int]:
        """The symbols of trees and their tokens."""
        pieces = self.tokenizer.pieces(range(self.tokenizer.target_size), "target")
        found = {}
        for token, piece in enumerate(pieces):
            symbol = piece.removeprefix(_WORD_START)
            if piece.startswith(_WORD_START) and symbol:
                found[symbol] = token
        return found

    def words(self, sentence: str, tokenized: bool = False) -> list[str]:
        """Return the words of a sentence: those between spaces if it is `tokenized` already, or
        those that a treebank would have."""
        if tokenized:
            return sentence.split()
        return penn_words(sentence, self.splits_hyphens)

    def parse(
        self,
        sentences: str | Iterable[str],
        options: SearchOptions = OPTIONS,
        tokenized: bool = False,
    ) -> Parse | list[Parse]:
        """Parse sentences. Several give a list in their order; a string is one sentence and gives
        one result."""
        rows = [self.words(sentence, tokenized) for sentence in as_lines(sentences, "sentences")]
        parses = self.parse_words(rows, options)
        return parses[0] if isinstance(sentences, str) else parses

    def stream(
        self,
        sentences: Iterable[str],
        options: SearchOptions = OPTIONS,
        tokenized: bool = False,
    ) -> Iterator[Parse]:
        """Parse any number of sentences in constant memory. The first are few, so that they come
        soon."""
        remaining = as_lines(sentences, "sentences")
        for size in growing(_AT_ONCE):
            chunk = list(itertools.islice(remaining, size))
            if not chunk:
                return
            rows = [self.words(sentence, tokenized) for sentence in chunk]
            yield from self.parse_words(rows, options)

    def parse_words(
        self, sentences: Sequence[Sequence[str]], options: SearchOptions = OPTIONS
    ) -> list[Parse]:
        """Parse sentences that are split into words."""
        lines = [" ".join(map(plain_word, words)) for words in sentences]
        rows = self.tokenizer.encode(lines, "source") if lines else []
        problems = [self.problem(words, row) for words, row in zip(sentences, rows, strict=True)]
        parses = [
            Parse(None, problem=problem, is_empty=not words)
            for words, problem in zip(sentences, problems, strict=True)
        ]
        order = [index for index, problem in enumerate(problems) if not problem]
        # Sentences of like length together, the longest first.
        order.sort(key=lambda index: -len(rows[index]))
        while order:
            width = len(rows[order[0]]) + 1
            count = self.runtime.batch_rows(width, options.hypotheses)
            batch = order[:count]
            order = order[count:]
            leaves = [len(sentences[index]) for index in batch]
            found = self._search([rows[index] for index in batch], leaves, options)
            for index, hypothesis in zip(batch, found, strict=True):
                parses[index] = self._parse(sentences[index], hypothesis)
        return parses

    def problem(self, words: Sequence[str], tokens: Sequence[int]) -> str:
        """Return why a sentence has no tree; empty where nothing stands against it."""
        if not words:
            return "the sentence is empty"
        around = len(self.description.frame.source(()))
        longest = self.description.longest - around
        if len(tokens) > longest:
            return (
                f"the sentence has {len(tokens):,} pieces, and the model reads {longest:,}; "
                "split it into sentences"
            )
        room = self.description.model.max_length - len(self.description.frame.head) - AROUND
        most = min(room, MAX_WORDS)
        if len(words) > most:
            return f"the sentence has {len(words):,} words, and the model writes trees of {most:,}"
        return ""

    def guide(self, leaves: Sequence[int]) -> Guide:
        """Return what holds a search to trees of so many words, one number for each sentence."""
        return Guide(rules=partial(self._rules, leaves))

    @torch.inference_mode()
    def _search(
        self, rows: Sequence[Sequence[int]], leaves: Sequence[int], options: SearchOptions
    ) -> list[Hypothesis]:
        requests = [Request(row) for row in rows]
        start = self.runtime.start(requests, options)
        found = self.runtime.loop(start, options, self.guide(leaves)).run()
        return [hypotheses[0] for hypotheses in found]

    def _rules(
        self, leaves: Sequence[int], problem: Searched, options: SearchOptions
    ) -> GrammarRules:
        automaton = TreeAutomaton(self._tokens, leaves, problem, options.hypotheses)
        return GrammarRules(problem, options, automaton)

    @cached_property
    def _tokens(self) -> TreeTokens:
        """What each target token is in a tree."""
        size = self.tokenizer.target_size
        leaves = [False] * size
        opens = [NO_LABEL] * size
        closes = [NO_LABEL] * size
        names = {symbol[1:] for symbol in self.symbols if symbol.startswith(OPEN)}
        closed = {symbol[1:] for symbol in self.symbols if symbol.startswith(CLOSE)}
        if not names or names != closed or not any(map(is_tag, self.symbols)):
            raise ModelFolderError("the tokeniser has no symbols of trees; copy the folder again")
        numbers = {name: number for number, name in enumerate(sorted(names))}
        for symbol, token in self.symbols.items():
            if symbol.startswith(OPEN):
                opens[token] = numbers[symbol[1:]]
            elif symbol.startswith(CLOSE):
                closes[token] = numbers[symbol[1:]]
            else:
                leaves[token] = True
        return TreeTokens(leaves, opens, closes)

    @cached_property
    def _names(self) -> dict[int, str]:
        return {token: symbol for symbol, token in self.symbols.items()}

    def _parse(self, words: Sequence[str], hypothesis: Hypothesis) -> Parse:
        if not hypothesis.finished:
            return Parse(None, problem="the model's numbers are not finite; train it again")
        symbols = tuple(self._names[token] for token in hypothesis.tokens)
        return Parse(Tree(tuple(words), symbols), hypothesis.score)


def with_beam(beam: int, alpha: float) -> SearchOptions:
    """Return the options of a search for trees with another beam or length penalty."""
    return replace(OPTIONS, beam=beam, alpha=alpha)


def _check(folder: Path, description: Description) -> None:
    if description.task != "parse":
        raise ModelFolderError(
            f"{folder} holds a model for {description.task}; parsing needs one for parse, as "
            "`dragoman train --task parse` makes it"
        )
