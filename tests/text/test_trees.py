"""Bracketed text to trees and back."""

from __future__ import annotations

import pytest

from dragoman.errors import InputError
from dragoman.text import trees
from dragoman.text.trees import Constituent, Tree, TreeBuilder, fault, read_bracketed


def test_a_tree_is_words_and_symbols() -> None:
    tree = read_bracketed("(S (NP (NN Rain)) (VP (VBZ falls)))")
    assert tree.words == ("Rain", "falls")
    assert tree.symbols == ("(S", "(NP", "NN", ")NP", "(VP", "VBZ", ")VP", ")S")
    assert tree.tags == ("NN", "VBZ")
    assert tree.bracketed() == "(S (NP (NN Rain)) (VP (VBZ falls)))"
    assert tree.constituents() == [
        Constituent("S", 0, 2),
        Constituent("NP", 0, 1),
        Constituent("VP", 1, 2),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Function tags and what shares an index; tags that begin with a hyphen are whole.
        ("( (S (NP-SBJ-1 (NN a)) (VP=2 (VB b))) )", "(S (NP (NN a)) (VP (VB b)))"),
        ("(NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-))", "(NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-))"),
        # Empty elements, and what holds nothing else.
        ("(S (NP (-NONE- *)) (VP (VB go) (NP (NP (-NONE- *T*)))))", "(S (VP (VB go)))"),
        # Roots that say nothing, alone and one in the other; of several parts, or of a word.
        ("(TOP (S (VB go)))", "(S (VB go))"),
        ("( (ROOT (S (VB go))))", "(S (VB go))"),
        ("( (S (VB go)) (. .))", "(TOP (S (VB go)) (. .))"),
        ("( (S (VB go)) (S (VB on)))", "(TOP (S (VB go)) (S (VB on)))"),
        ("( (UH Well))", "(TOP (UH Well))"),
        ("(UH Well)", "(TOP (UH Well))"),
        # Several lines, tabs, CR LF.
        ("(S\r\n\t(NP (NN a))\r\n  (VP\n(VB b)))", "(S (NP (NN a)) (VP (VB b)))"),
        # Escapes that are not needed in our output, and white space of another kind in a word.
        ("(NP (CD 1\\/2) (NN \u00a0x))", "(NP (CD 1/2) (NN x))"),
    ],
)
def test_cleaning(text: str, expected: str) -> None:
    tree = read_bracketed(text)
    assert tree.bracketed() == expected
    assert read_bracketed(expected) == tree
    assert not fault(tree.symbols, len(tree.words))


def test_words_stand_as_in_text() -> None:
    tree = read_bracketed("(NP (-LRB- -LRB-) (NN f-LRB-x) (-LRB- -LSB-) (-RRB- -RCB-))")
    assert tree.words == ("(", "f-LRB-x", "[", "}")
    assert Tree(("f(x)",), ("(NP", "NN", ")NP")).bracketed() == "(NP (NN f-LRB-x-RRB-))"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("(S (NN a)", "not finished"),
        ("(S (NN a)))", "never opened"),
        ("hello", "outside of all brackets"),
        ("(S a (NN b))", "has a bracket beside it"),
        ("(S (NN b) c)", "brackets of its own"),
        ("(S (NN b c))", "brackets of its own"),
        ("(S (NN))", "holds no word"),
        ("()", "holds no word"),
        ("(S (NN a)) (S (NN b))", "2 trees"),
        ("", "0 trees"),
        (f"({'X' * 31} (NN a))", "more than 30 characters"),
        (f"(S (NN {'x' * 1001}))", "more than 1,000 characters"),
        ("(S\u200b (NN a))", "not printable"),
        ("(S " * 100_000, "200 brackets deep"),
        ("(S " * 199 + "(NN a)" + ")" * 199, ""),
        ("(S " + "(NN a) " * 2001 + ")", "2,000 words"),
        ("(S " + "(-NONE- *) " * 30_000, "50,000 brackets and words"),
    ],
)
def test_what_is_refused(text: str, complaint: str) -> None:
    if not complaint:
        assert len(read_bracketed(text).words) == 1
        return
    with pytest.raises(InputError, match=complaint):
        read_bracketed(text)


def test_trees_may_come_in_pieces() -> None:
    builder = TreeBuilder()
    assert list(builder.add("( (S (NN a)")) == []
    assert builder.is_inside
    assert [tree.words for tree in builder.add(") ) (S (NN b)) (S (-NONE- *))")] == [("a",), ("b",)]
    assert not builder.is_inside


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        ("(S NN )S", ""),
        ("(S (NP NN )NP NN )S", ""),
        ("", "is not finished"),
        ("(S NN", "is not finished"),
        ("NN", "does not begin with a bracket"),
        ("(S NN )S (S NN )S", "goes on behind its root"),
        ("(S (NP )NP NN )S", "has an empty NP"),
        ("(S NN )NP", "closes a NP that is not open"),
        ("(S NN NN NN )S", "has 3 tags for 2 words"),
    ],
)
def test_what_is_wrong_with_symbols(symbols: str, expected: str) -> None:
    leaves = symbols.count("NN") if not expected else 2
    assert fault(symbols.split(), leaves) == expected


def test_bounds_are_those_of_the_docs() -> None:
    assert (trees.MAX_DEPTH, trees.MAX_WORDS) == (200, 2000)
