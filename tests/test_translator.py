"""Text in, text out, with a model that really learnt something: English digits into German, word by word."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import tiny

import dragoman
from dragoman import SearchOptions, Translation, Translator
from dragoman.decoding.options import SearchOptions as PlainOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.text.tokenizer import TokenizerOptions, learn

GREEDY = SearchOptions(beam=1)


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return Translator.load(trained, "cpu")


def digits(count: int, seed: int, longest: int = 8) -> tuple[list[str], list[str]]:
    """Lines and what they should become."""
    draw = random.Random(seed)
    rows = [[draw.randrange(10) for _ in range(draw.randint(1, longest))] for _ in range(count)]
    return [" ".join(tiny.ENGLISH[d] for d in row) for row in rows], [" ".join(tiny.GERMAN[d] for d in row) for row in rows]


def texts(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


@pytest.mark.parametrize("options", [GREEDY, SearchOptions(), SearchOptions(beam=7, alpha=1.0)])
def test_it_translates_in_order(translator: Translator, options: SearchOptions) -> None:
    """Enough lines for several batches, of all lengths in any order; the model is small, so a few may be wrong."""
    lines, wanted = digits(300, seed=5)
    found = texts(translator.translate(lines, options))
    assert len(found) == 300
    assert sum(a == b for a, b in zip(found, wanted, strict=True)) >= 285


def test_a_line_does_not_depend_on_its_neighbours(translator: Translator) -> None:
    lines, _ = digits(40, seed=6)
    together = texts(translator.translate(lines))
    assert [translator.translate([line])[0].text for line in lines] == together


def test_empty_lines_stay_empty(translator: Translator) -> None:
    found = translator.translate(["", "one", "   ", "\u200b", "\t", "two", ""])
    assert texts(found) == ["", "eins", "", "", "", "zwei", ""]
    assert found[0] == Translation("", 0.0)
    assert translator.translate([]) == []


def test_a_translation_has_score_and_pieces(translator: Translator) -> None:
    (found,) = translator.translate(["three four"])
    assert found.text == "drei vier"
    assert "".join(found.pieces).replace("▁", " ").strip() == "drei vier"
    assert -1.0 < found.score < 0.0
    assert found.alternatives == ()
    with pytest.raises(AttributeError):
        found.text = "x"  # type: ignore[misc]


def test_alternatives_are_other_texts_with_lower_scores(translator: Translator) -> None:
    (found,) = translator.translate(["three four"], SearchOptions(beam=5, nbest=4))
    assert len(found.alternatives) == 3
    everything = [found, *found.alternatives]
    assert len({one.pieces for one in everything}) == 4
    assert [one.score for one in everything] == sorted((one.score for one in everything), reverse=True)


@pytest.fixture(scope="module")
def short_sighted(translator: Translator) -> Translator:
    """The same, told that it was trained on no more than eleven tokens and the end."""
    description = replace(translator.description, longest=12)
    return Translator(translator.model, translator.tokenizer, description, translator.device)


def test_a_long_line_is_translated_in_parts_and_nothing_is_lost(short_sighted: Translator) -> None:
    (line,), (wanted,) = digits(1, seed=8, longest=400)
    tokens = short_sighted.tokenizer.encode([line], "source")[0]
    parts = short_sighted._parts(tokens)
    assert len(parts) > 10
    assert [token for part in parts for token in part] == tokens
    assert all(0 < len(part) <= 11 for part in parts)
    found = short_sighted.translate(["one", line, "two"])
    assert texts(found)[::2] == ["eins", "zwei"]
    words = found[1].text.split()
    assert len(words) == len(wanted.split())
    assert sum(a == b for a, b in zip(words, wanted.split(), strict=True)) >= 0.95 * len(words)
    assert found[1].score < 0
    assert "".join(found[1].pieces).replace("▁", " ").split() == words


def test_where_a_long_line_is_cut(short_sighted: Translator) -> None:
    """After a sentence if one ends in time, else between words, else anywhere."""
    text = [f"{a} {b}. {b}! {a}? 三{a}。四！" for a in tiny.ENGLISH for b in tiny.ENGLISH]
    tokenizer, _ = learn(TokenizerOptions(vocab_size=330), text, text)
    reader = Translator(short_sighted.model, tokenizer, short_sighted.description, short_sighted.device)

    def parts(line: str) -> list[str]:
        cut = reader._parts(tokenizer.encode([line], "source")[0])
        assert all(len(part) <= 11 for part in cut)
        return tokenizer.decode(cut, "source")

    assert parts("one two three. four five! six seven eight nine one two three four five six") == [
        "one two three. four five!",
        *parts("six seven eight nine one two three four five six"),
    ]
    assert parts("seven " * 25) == [" ".join(["seven"] * count) for count in (11, 11, 3)]
    first, rest = "三四三四。四三四三！", "三三三四四四四四三三三三三三"
    assert parts(first + rest) == [first, rest[:11], rest[11:]]
    assert "".join(parts("x" * 50)) == "x" * 50


STRANGE = [
    "😀👩‍👩‍👧 one",
    "one\ttwo\x00\x07three",
    "\ud800 one \udfff",
    "one\u2028two\x85three\x0bfour",
    "é é ﬁ ½",
    "漢字かな交じり文",
    "\u202eone",
    "▁▁one▁",
    "<unk> </s> <s> <pad> <0x41>",
    "a" * 5000,
]


@pytest.mark.parametrize("options", [GREEDY, SearchOptions()])
def test_strange_text_does_no_harm(translator: Translator, options: SearchOptions) -> None:
    """Each gives one line of valid text, and the lines beside it are as they would be alone."""
    lines = [line for strange in STRANGE for line in (strange, "four")]
    found = texts(translator.translate(lines, options))
    assert len(found) == len(lines)
    assert found[1::2] == ["vier"] * len(STRANGE)
    for text in found:
        text.encode("utf-8")
        assert text.split() == text.split(" ") or not text


def test_a_line_of_100_000_characters(translator: Translator) -> None:
    """20,000 words, and one word that has no place to be cut at."""
    words, word = ("one two three four five " * 5000)[:100_000], "y" * 100_000
    found = translator.translate([words, "six", word], GREEDY)
    assert found[1].text == "sechs"
    assert len(found[0].text) > 1000
    for line in (words, word):
        tokens = translator.tokenizer.encode([line], "source")[0]
        assert [token for part in translator._parts(tokens) for token in part] == tokens


def test_a_stream_gives_the_same(translator: Translator) -> None:
    lines, _ = digits(50, seed=9)
    lines[7] = ""
    taken = 0

    def source() -> Iterator[str]:
        nonlocal taken
        for line in lines:
            taken += 1
            yield line

    stream = translator.stream(source(), at_once=16)
    assert taken == 0
    first = next(stream)
    assert taken == 16  # a stream without end is read no further than it must
    assert texts([first, *stream]) == texts(translator.translate(lines))
    assert texts(list(translator.stream(lines))) == texts(translator.translate(lines))


def test_the_output_may_grow_by_as_much_as_is_allowed(translator: Translator) -> None:
    (found,) = translator.translate(["one two three four five six"], SearchOptions(beam=1, max_extra=1))
    assert len(found.pieces) <= len(translator.tokenizer.encode(["one two three four five six"], "source")[0]) + 1


def test_the_python_front_door(trained: Path) -> None:
    assert dragoman.Translator is Translator
    assert dragoman.SearchOptions is PlainOptions
    assert Translator.load(str(trained)).translate(["nine"])[0].text == "neun"
    with pytest.raises(OptionError, match="device is 'tpu'"):
        Translator.load(trained, "tpu")
    with pytest.raises(ModelFolderError, match="is not a folder"):
        Translator.load(trained / "config.json")
    with pytest.raises(AttributeError):
        _ = dragoman.nothing
