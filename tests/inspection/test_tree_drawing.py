"""Drawings of trees, beside drawings made by hand."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from dragoman.inspection.tree_drawing import as_rows, as_svg
from dragoman.text.trees import read_bracketed

TREE = read_bracketed("(S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (NN it)))) (. .))")
SVG = "{http://www.w3.org/2000/svg}"


def test_rows() -> None:
    assert as_rows(TREE) == [
        "S",
        "├─ NP",
        "│  ├─ DT The",
        "│  └─ NN cat",
        "├─ VP",
        "│  ├─ VBD sat",
        "│  └─ PP",
        "│     ├─ IN on",
        "│     └─ NP",
        "│        └─ NN it",
        "└─ . .",
    ]


def test_svg() -> None:
    root = ElementTree.fromstring(as_svg([TREE]))
    places = {
        text.text: (float(text.get("x", "")), float(text.get("y", "")))
        for text in root.iter(f"{SVG}text")
    }
    # Words from left to right in one row, below everything else.
    words = [places[word] for word in ("The", "cat", "sat", "on", "it")]
    assert words == sorted(words)
    assert len({y for _, y in words}) == 1
    assert places["S"][1] < places["VP"][1] < places["PP"][1] < places["IN"][1] < words[0][1]
    # A constituent stands over the middle of its parts.
    assert places["NN"][0] == places["it"][0]
    middle = (places["VBD"][0] + places["PP"][0]) / 2
    assert places["VP"][0] == pytest.approx(middle, abs=0.1)
    # A line to each of the 11 nodes but the root, and one to each of the 6 words.
    assert len(list(root.iter(f"{SVG}path"))) == 10 + 6


def test_several_trees_and_signs() -> None:
    other = read_bracketed("(NP (NN a<b) (SYM &))")
    root = ElementTree.fromstring(as_svg([TREE, other]))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "a<b" in texts
    assert "&" in texts
    assert ElementTree.fromstring(as_svg([])) is not None


def test_a_deep_tree() -> None:
    deep = read_bracketed("(S " * 199 + "(NN a)" + ")" * 199)
    rows = as_rows(deep)
    assert len(rows) == 200
    assert rows[-1].endswith("└─ NN a")
    assert as_svg([deep]).count("<text") == 201
