"""Sentences to trees: always well-formed and of the right words, in every runtime, whatever the
model has learnt."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
import treebank

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.runtimes import int8
from dragoman.runtimes.captured import Graphs
from dragoman.runtimes.routed import Routed
from dragoman.tasks.parse import OPTIONS, Parse, Parser, with_beam
from dragoman.text.trees import fault

FEW = replace(OPTIONS, beam=4, max_extra=30)  # a drawn model would write as much as it may
WORDS = ["the", "cat", "zebra", "(", "½", "saw", "in", ".", "Fluß", "un-known", ")"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return treebank.save_random_parser(tmp_path_factory.mktemp("parser") / "model")


@pytest.fixture(scope="module")
def parser(folder: Path) -> Parser:
    return Parser.load(folder, "cpu", "torch")


def drawn(count: int, longest: int, seed: int = 1) -> list[list[str]]:
    draw = random.Random(seed)
    return [draw.choices(WORDS, k=draw.randint(1, longest)) for _ in range(count)]


def check(parses: list[Parse], sentences: list[list[str]]) -> None:
    for parse, words in zip(parses, sentences, strict=True):
        assert parse.tree is not None, parse.problem
        assert list(parse.tree.words) == words
        assert not fault(parse.tree.symbols, len(words))
        assert parse.score is not None
        assert parse.score < 0


def test_the_options_are_those_of_the_paper() -> None:
    assert (OPTIONS.beam, OPTIONS.alpha, OPTIONS.max_extra) == (21, 0.3, 300)
    assert with_beam(4, 0.6) == replace(OPTIONS, beam=4, alpha=0.6)


@pytest.mark.parametrize("beam", [1, 4, 21])
def test_every_tree_is_well_formed(parser: Parser, beam: int) -> None:
    sentences = drawn(6, 15)
    check(parser.parse_words(sentences, replace(FEW, beam=beam)), sentences)


def test_in_8_bits(folder: Path) -> None:
    if not int8.available():
        pytest.skip("this CPU has no 8-bit kernels")
    parser = Parser.load(folder, "cpu", "int8")
    assert parser.runtime.name == "int8"
    sentences = drawn(8, 20, seed=2)
    check(parser.parse_words(sentences, FEW), sentences)


def test_a_tree_does_not_depend_on_its_neighbours(parser: Parser) -> None:
    sentences = drawn(8, 12, seed=3)
    options = replace(FEW, beam=3)
    together = parser.parse_words(sentences, options)
    alone = [parser.parse_words([words], options)[0] for words in sentences]
    assert [one.tree for one in together] == [one.tree for one in alone]
    streamed = parser.stream(map(" ".join, sentences), options, tokenized=True)
    assert [one.tree for one in streamed] == [one.tree for one in alone]


class Again:
    """In the place of a graph: it does its work again."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.replay = work
        work()


def test_captured_steps_write_the_same_trees(folder: Path, parser: Parser) -> None:
    captured = Parser.load(folder, "cpu", "torch")
    with torch.inference_mode():
        captured.runtime._graphs = Graphs(captured.runtime.model, captured.runtime.device, Again)
    sentences = drawn(4, 12, seed=4)
    for words in sentences:
        [found] = captured.parse_words([words], FEW)
        [plain] = parser.parse_words([words], FEW)
        check([found], [words])
        assert found.tree == plain.tree
    # Several at once are stepped without a graph.
    check(captured.parse_words(sentences, FEW), sentences)


def test_a_runtime_beside_a_faster_one(parser: Parser) -> None:
    """Whatever the faster one is, trees come from the one that can hold to a grammar."""
    routed = Routed(Mock(can=frozenset()), parser.runtime)
    words = ["the", "cat", "left"]
    beside = Parser(routed, parser.tokenizer, parser.description)  # type: ignore[arg-type]
    assert beside.parse_words([words], FEW) == parser.parse_words([words], FEW)


def test_no_room_to_spare(parser: Parser) -> None:
    """With the least room there can be, a tree is flat and yet finished."""
    words = ["the"] * 9
    options = SearchOptions(beam=2, max_length=len(words) + 3)
    [parse] = parser.parse_words([words], options)
    check([parse], [words])
    assert parse.tree is not None
    assert len(parse.tree.constituents()) == 1


def test_text_becomes_words(parser: Parser) -> None:
    one = parser.parse("The cat (a dog) didn't see it.", FEW)
    assert isinstance(one, Parse)
    assert one.tree is not None
    assert one.tree.words == ("The", "cat", "(", "a", "dog", ")", "did", "n't", "see", "it", ".")
    assert " -LRB-)" in one.tree.bracketed()
    several = parser.parse(["the cat", "", "a-b c"], FEW, tokenized=True)
    assert isinstance(several, list)
    assert [one.tree.words if one.tree else None for one in several] == [
        ("the", "cat"),
        None,
        ("a-b", "c"),
    ]
    assert several[1].is_empty
    assert parser.parse([]) == []


def test_hyphens_split_as_the_treebank_has_it(parser: Parser, tmp_path: Path) -> None:
    assert parser.words("a-b") == ["a-b"]
    symbols = {"(S", ")S", "NN", "HYPH"}
    other = Parser.load(treebank.save_random_parser(tmp_path / "hyphens", symbols), "cpu", "torch")
    assert other.words("a-b") == ["a", "-", "b"]
    assert other.words("a-b", tokenized=True) == ["a-b"]


def test_too_long_a_sentence_has_no_tree(parser: Parser) -> None:
    words = ["the"] * 130
    long, short = parser.parse_words([words, ["the"]], FEW)
    assert long.tree is None
    assert "130 pieces, and the model reads 119" in long.problem
    assert not long.is_empty
    assert short.tree is not None


def test_models_of_other_tasks_are_refused(trained: Path, folder: Path) -> None:
    with pytest.raises(ModelFolderError, match="holds a model for translate"):
        Parser.load(trained, "cpu")
    from dragoman.tasks.translate import Translator

    with pytest.raises(ModelFolderError, match="parse"):
        Translator.load(folder, "cpu")


def test_what_cannot_be_held_to_a_grammar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.runtimes import torch_runtime

    monkeypatch.setattr(torch_runtime, "abilities", lambda config, device: frozenset({"decode"}))
    with pytest.raises(OptionError, match="cannot hold an output to a grammar"):
        Parser.load(folder, "cpu", "torch")


def test_symbols_that_make_no_trees(tmp_path: Path) -> None:
    folder = treebank.save_random_parser(tmp_path / "broken", {"(S", "NN"})
    with pytest.raises(ModelFolderError, match="no symbols of trees"):
        Parser.load(folder, "cpu", "torch").parse("the cat")
