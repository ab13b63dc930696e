"""Marks that go with their words: translations and alignments are given by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman.text.markup import rewritten
from dragoman.text.markup_transfer import MOST, Answer
from dragoman.text.spans import Span


def text(words: str) -> Span:
    return Span("text", words, words)


def opened(name: str) -> Span:
    return Span("open", raw=f"<{name}>", name=name)


def closed(name: str) -> Span:
    return Span("close", raw=f"</{name}>", name=name)


def kept(words: str) -> Span:
    return Span("void", words, words)


BREAK = Span("void", "", "<br>")


def translated(spans: Sequence[Span], target: str, links: str) -> str:
    """The paragraph in a language whose translation is `target`; links are as in "0-0 1-2"."""
    alignment = [tuple(map(int, link.split("-"))) for link in links.split()]

    def ask(source: str) -> Answer:
        assert source == " ".join("".join(span.text for span in spans).split())
        return target, alignment  # type: ignore[return-value]

    return rewritten(spans, ask, lambda span: span.text)


def test_a_mark_follows_its_word() -> None:
    spans = [text("the "), opened("b"), text("red"), closed("b"), text(" house")]
    made = translated(spans, "la maison rouge", "0-0 1-2 2-1")
    assert made == "la maison <b>rouge</b>"


def test_a_mark_around_words_that_part_is_written_twice() -> None:
    spans = [opened("b"), text("turn off"), closed("b"), text(" the lamp")]
    made = translated(spans, "schalte die Lampe aus", "0-0 1-3 2-1 3-2")
    assert made == "<b>schalte</b> die Lampe <b>aus</b>"


def test_neighbours_share_the_space_between_them() -> None:
    spans = [opened("i"), opened("b"), text("good"), closed("b"), text(" day"), closed("i")]
    assert translated(spans, "guten Tag", "0-0 1-1") == "<i><b>guten</b> Tag</i>"


def test_punctuation_stays_outside_where_it_was() -> None:
    spans = [text("("), opened("b"), text("yes"), closed("b"), text(")")]
    assert translated(spans, "(ja)", "0-0") == "(<b>ja</b>)"


def test_a_word_without_a_link_belongs_to_the_word_before_it() -> None:
    spans = [opened("b"), text("goes"), closed("b"), text(" home")]
    made = translated(spans, "geht nun heim", "0-0 1-2")
    assert made == "<b>geht nun</b> heim"


def test_an_empty_element_separates_the_same_words() -> None:
    spans = [text("one"), BREAK, text(" two three")]
    assert translated(spans, "eins zwei drei", "0-0 1-1 2-2") == "eins<br> zwei drei"


def test_what_must_stay_comes_once() -> None:
    spans = [text("open "), kept("{x}"), text(" now")]
    assert translated(spans, "jetzt {x} öffnen", "0-2 1-1 2-0") == "jetzt {x} öffnen"


def test_a_mark_whose_word_vanished_takes_the_nearest_word() -> None:
    spans = [text("I "), opened("b"), text("do"), closed("b"), text(" not know")]
    made = translated(spans, "ich weiß nicht", "0-0 2-2 3-1")
    assert made == "ich <b>weiß</b> nicht"


def test_a_mark_that_only_opens_is_put_back() -> None:
    spans = [text("a "), opened("b"), text("dog")]
    assert translated(spans, "ein Hund", "0-0 1-1") == "ein <b>Hund"


def test_the_space_around_a_paragraph_stays() -> None:
    assert translated([text("  yes\n")], "ja", "0-0") == "  ja\n"


@pytest.mark.parametrize(
    "spans",
    [
        [text("12 + 30")],
        [kept("{name}")],
        [text("a"), *[BREAK] * MOST],
    ],
    ids=["no letters", "no text", "too many spans"],
)
def test_what_is_not_translated(spans: list[Span]) -> None:
    def ask(source: str) -> Answer:
        raise AssertionError(source)

    assert rewritten(spans, ask, str) == "".join(span.raw for span in spans)


def test_the_same_text_is_left_as_it_was() -> None:
    spans = [text("Berlin  "), opened("b"), text("2026"), closed("b")]
    assert translated(spans, "Berlin 2026", "0-0 1-1") == "Berlin  <b>2026</b>"


def test_an_empty_translation_keeps_what_must_stay() -> None:
    spans = [text("well"), BREAK]
    assert translated(spans, "", "") == "<br>"


def test_an_article_that_the_alignment_gives_to_its_adjective() -> None:
    """The source has an article too, which is aligned with nothing."""
    spans = [text("with a "), opened("b"), text("strong"), closed("b"), text(" handle")]
    made = translated(spans, "mit einem starken Griff", "0-0 2-1 2-2 3-3")
    assert made == "mit einem <b>starken</b> Griff"


def test_a_word_apart_that_has_taken_the_place_of_its_neighbour() -> None:
    spans = [text("it is "), opened("b"), text("very"), closed("b"), text(" important for us")]
    made = translated(spans, "es ist für uns sehr wichtig", "0-0 1-1 2-2 5-3 2-4 3-5")
    assert made == "es ist für uns <b>sehr</b> wichtig"


def test_of_two_source_words_the_one_that_no_other_word_has() -> None:
    spans = [text("you "), opened("b"), text("read"), closed("b"), text(" more here")]
    assert translated(spans, "hier mehr lesen", "3-0 2-1 1-2 2-2") == "hier mehr <b>lesen</b>"


def test_a_word_that_stays_is_not_replaced_for_another_one() -> None:
    """The alignment gives the pronoun to the key as well."""
    spans = [text("then press "), kept("{x}"), text(".")]
    made = translated(spans, "dann drücken Sie {x}.", "0-0 1-1 2-2 2-3")
    assert made == "dann drücken Sie {x}."
    spans = [text("visit "), opened("a"), text("example.org"), closed("a"), text(" now")]
    made = translated(spans, "besuchen Sie example.org jetzt", "0-0 1-1 1-2 2-3")
    assert made == "besuchen Sie <a>example.org</a> jetzt"


def test_the_stop_stays_outside_of_the_mark_of_the_last_word() -> None:
    spans = [text("they "), opened("a"), text("built"), closed("a"), text(" it here.")]
    made = translated(spans, "hier haben sie es gebaut.", "0-2 1-4 2-3 3-0")
    assert made == "hier haben sie es <a>gebaut</a>."
    spans = [text("here is "), opened("a"), text("the end."), closed("a")]
    assert translated(spans, "Ende hier.", "3-0 0-1") == "<a>Ende</a> hier<a>.</a>"


def test_a_comma_that_only_the_translation_has_stays_outside_too() -> None:
    spans = [text("click "), opened("b"), text("here"), closed("b"), text(" to sign in")]
    made = translated(spans, "klicken Sie hier, um sich anzumelden", "0-0 1-2 2-3 3-5 4-5")
    assert made == "klicken Sie <b>hier</b>, um sich anzumelden"
    spans = [text("see "), opened("b"), text("here,"), closed("b"), text(" then go")]
    made = translated(spans, "siehe hier, dann geh", "0-0 1-1 2-2 3-3")
    assert made == "siehe <b>hier,</b> dann geh"
    spans = [text("stay "), opened("b"), text("to win"), closed("b")]
    made = translated(spans, "bleib, um zu gewinnen", "0-0 1-1 2-3")
    assert made == "bleib, <b>um zu gewinnen</b>"
