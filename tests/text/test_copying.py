"""What is concealed comes back, each thing once and tags in pairs, whatever a model made of it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.copying import (
    MOST,
    NAMES,
    Concealer,
    Copy,
    is_whole,
    part_of,
    spelt,
    written,
)

CONCEALER = Concealer("en", "de")
ENGLISH = "Press <b>here</b> at 5:30 pm, {name}! It costs $1,234.56 😂👍."


def test_names_stand_for_spans_and_figures() -> None:
    concealed = CONCEALER.conceal(ENGLISH)
    named = concealed.named(concealed.text, MOST)
    assert named.text == "Press <x1>here<x2> <x3>, <x4>! It costs <x5> <x6>."
    assert named.original == ENGLISH
    assert [copy.target for copy in named.copies] == [
        "<b>",
        "</b>",
        "um 17:30 Uhr",
        "{name}",
        "1.234,56 $",
        "😂👍",
    ]
    german = written("<x1>Hier<x2> um <x3> drücken, <x4>! Kostet <x5> <x6>.", named.copies)
    # The model wrote "um" as well, which is said once.
    assert german == "<b>Hier</b> um 17:30 Uhr drücken, {name}! Kostet 1.234,56 $ 😂👍."


def test_a_line_of_more_spans_than_names_keeps_the_others() -> None:
    line = " ".join(f"{{a{number}}}" for number in range(MOST + 2))
    concealed = CONCEALER.conceal(line)
    named = concealed.named(concealed.text, MOST)
    assert named.text == " ".join([*NAMES, "{a10}", "{a11}"])
    assert concealed.named(concealed.text, 0).text == line


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("use {a}, {b} or {c}, then {d} and {e}", ["use {a}, {b} or {c},", "then {d} and {e}"]),
        ("use {a} in {b} for {c} with {d} and {e}", ["use {a} in {b} for {c} with {d}", "and {e}"]),
        (
            "<b>{a}, {b}</b> in <i>{c}, {d}, {e}</i>",
            ["<b>{a}, {b}</b>", "in <i>{c}, {d},", "{e}</i>"],
        ),
        ("{a}<b/>{c}<d/>{e}<f/>", ["{a}<b/>{c}<d/>", "{e}<f/>"]),
        ("{a} and {b}", ["{a} and {b}"]),
    ],
)
def test_a_sentence_of_many_spans_is_cut_where_it_does_least_harm(
    line: str, parts: list[str]
) -> None:
    concealed = CONCEALER.conceal(line)
    cut = list(concealed.cut(concealed.text, "\n", 4))
    assert [concealed.reveal(part) for part, _ in cut] == parts
    assert "".join(concealed.reveal(part) + space for part, space in cut) == f"{line}\n"


def test_many_spans_are_cut_in_time() -> None:
    concealed = CONCEALER.conceal(" ".join(["{a}"] * 20_000))
    began = time.process_time()
    assert len(list(concealed.cut(concealed.text, "", 4))) == 5_000
    assert time.process_time() - began < 5


def test_each_sentence_has_names_of_its_own() -> None:
    concealed = CONCEALER.conceal("Open {a}. Close {b}.")
    first, second = concealed.text.split(". ")
    assert concealed.named(first, MOST).text == "Open <x1>"
    assert concealed.named(second, MOST).text == "Close <x1>."
    assert concealed.named(second, MOST).copies == (Copy("{b}", "{b}"),)


def test_a_part_counts_from_the_first_name_again() -> None:
    copies = (Copy("{a}", "{a}"), Copy("{b}", "{b}"), Copy("1.5", "1,5"))
    part = part_of("and <x2> with <x3>", copies)
    assert part.text == "and <x1> with <x2>"
    assert part.original == "and {b} with 1.5"
    assert part.copies == copies[1:]


@given(st.text())
def test_any_text_comes_back(line: str) -> None:
    concealed = CONCEALER.conceal(line)
    assert concealed.reveal(concealed.text) == line
    named = concealed.named(concealed.text, MOST)
    assert named.original == line
    same = [Copy(copy.source, copy.source) for copy in named.copies]
    if is_whole(named.text, same):
        assert written(named.text, same) == line


def test_names_in_the_text_itself_are_no_names() -> None:
    concealed = CONCEALER.conceal("Say <x2> and {a}.")
    named = concealed.named(concealed.text, MOST)
    assert named.text == "Say <x1> and <x2>."
    assert written("Sag <x1> und <x2>.", named.copies) == "Sag <x2> und {a}."


TAGS = (Copy("<b>", "<b>"), Copy("</b>", "</b>"), Copy("{a}", "{a}"))


@pytest.mark.parametrize(
    ("named", "whole", "text"),
    [
        ("<x1>eins<x2> <x3>", True, "<b>eins</b> {a}"),
        ("<x3> <x1>eins<x2>", True, "{a} <b>eins</b>"),
        ("<x1>eins<x2>", False, "<b>eins</b> {a}"),  # lost
        ("<x1>eins<x2> <x3> <x3>", False, "<b>eins</b> {a}"),  # twice
        ("<x1>eins<x2> <x3> <x9>", False, "<b>eins</b> {a}"),  # never there
        ("<x2>eins<x1> <x3>", False, "<b>eins</b> {a}"),  # the wrong way round
        ("", False, "<b> </b> {a}"),
    ],
)
def test_nothing_is_lost(named: str, whole: bool, text: str) -> None:
    assert is_whole(named, TAGS) is whole
    assert written(named, TAGS) == text


def test_tags_that_cross_in_the_source_may_cross() -> None:
    crossing = tuple(Copy(tag, tag) for tag in ("<b>", "<i>", "</b>", "</i>"))
    assert is_whole("<x1>a<x2>b<x3>c<x4>", crossing)
    nested = tuple(Copy(tag, tag) for tag in ("<b>", "<i>", "</i>", "</b>"))
    assert not is_whole("<x1>a<x2>b<x4>c<x3>", nested)
    assert is_whole("<x1>a<x2>b<x3><x4>", nested)


def test_pieces_of_a_name_are_words_of_what_it_stands_for() -> None:
    found = spelt(["▁Um", "▁", "<x1>", ".", "<x2>"], ["17:30 Uhr"])
    assert found == [["▁Um"], ["▁"], ["17:30", "▁Uhr"], ["."], ["<x2>"]]
