"""Text in, text out, with a model that really learnt something: English digits into German, word
by word."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny

import dragoman
from dragoman import SearchOptions, Translation, Translator
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions as PlainOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.runtimes.runtime import Request
from dragoman.tasks.calibrate import calibrate
from dragoman.tasks.calibration import Calibration
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.signs import Evidence
from dragoman.text.glossary import Glossary, Term
from dragoman.text.tokenizer import TokenizerOptions, learn

GREEDY = SearchOptions(beam=1)


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return Translator.load(trained, "cpu")


def digits(count: int, seed: int, longest: int = 8) -> tuple[list[str], list[str]]:
    """Lines and what they should become."""
    draw = random.Random(seed)
    rows = [[draw.randrange(10) for _ in range(draw.randint(1, longest))] for _ in range(count)]
    return [" ".join(tiny.ENGLISH[d] for d in row) for row in rows], [
        " ".join(tiny.GERMAN[d] for d in row) for row in rows
    ]


def texts(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


@pytest.mark.parametrize("options", [GREEDY, SearchOptions(), SearchOptions(beam=7, alpha=1.0)])
def test_it_translates_in_order(translator: Translator, options: SearchOptions) -> None:
    """Enough lines for several batches, of all lengths in any order; the model is small, so a
    few may be wrong."""
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


def test_a_string_is_one_line(translator: Translator) -> None:
    """Not a sequence of letters, which is what Python takes it for."""
    found = translator.translate("one two three")
    assert isinstance(found, Translation)
    assert found == translator.translate(["one two three"])[0]
    assert translator.translate("") == Translation("")
    assert texts(list(translator.stream("one two three"))) == [found.text]
    assert texts(translator.translate(line for line in ["one", "two"])) == ["eins", "zwei"]


@pytest.mark.parametrize("given", [b"one two", None, 7, ["one", None], [b"one"]])
def test_what_is_no_text_is_refused_in_a_sentence(translator: Translator, given: Any) -> None:
    with pytest.raises(OptionError, match="must be a string"):
        translator.translate(given)
    with pytest.raises(OptionError, match="must be a string"):
        list(translator.stream(given))


def test_a_translator_says_what_it_is(translator: Translator) -> None:
    shown = repr(translator)
    assert shown.startswith("<Translator: en to de, 1+1 layers of ")
    assert translator.runtime.name in shown
    assert shown.endswith("not calibrated>")


def test_a_translation_has_score_and_pieces(translator: Translator) -> None:
    (found,) = translator.translate(["three four"])
    assert found.text == "drei vier"
    assert "".join(found.tokens).replace("▁", " ").strip() == "drei vier"
    assert -1.0 < found.score < 0.0
    assert found.alternatives == ()
    with pytest.raises(AttributeError):
        found.text = "x"  # type: ignore[misc]


def test_alternatives_are_other_texts_with_lower_scores(translator: Translator) -> None:
    (found,) = translator.translate(["three four"], SearchOptions(beam=5, nbest=4))
    assert len(found.alternatives) == 3
    everything = [found, *found.alternatives]
    assert len({one.tokens for one in everything}) == 4
    assert [one.score for one in everything] == sorted(
        (one.score for one in everything), reverse=True
    )


@pytest.fixture(scope="module")
def short_sighted(translator: Translator) -> Translator:
    """The same, told that it was trained on no more than eleven tokens and the end."""
    description = replace(translator.description, longest=12)
    return Translator(translator.runtime, translator.tokenizer, description)


def test_a_long_line_is_translated_in_parts_and_nothing_is_lost(short_sighted: Translator) -> None:
    (line,), (wanted,) = digits(1, seed=8, longest=400)
    tokens = short_sighted.tokenizer.encode([line], "source")[0]
    parts = short_sighted.segmenter.split_tokens(tokens)
    assert len(parts) > 10
    assert [token for part in parts for token in part] == tokens
    assert all(0 < len(part) <= 11 for part in parts)
    found = short_sighted.translate(["one", line, "two"])
    assert texts(found)[::2] == ["eins", "zwei"]
    words = found[1].text.split()
    assert len(words) == len(wanted.split())
    assert sum(a == b for a, b in zip(words, wanted.split(), strict=True)) >= 0.95 * len(words)
    assert found[1].score < 0
    assert "".join(found[1].tokens).replace("▁", " ").split() == words


def test_where_a_long_line_is_cut(short_sighted: Translator) -> None:
    """After a sentence if one ends in time, else between words, else anywhere."""
    text = [f"{a} {b}. {b}! {a}? 三{a}。四！" for a in tiny.ENGLISH for b in tiny.ENGLISH]
    tokenizer, _ = learn(TokenizerOptions(vocab_size=330), text, text)
    reader = Translator(short_sighted.runtime, tokenizer, short_sighted.description)

    def parts(line: str) -> list[str]:
        cut = reader.segmenter.split_tokens(tokenizer.encode([line], "source")[0])
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
        assert [
            token for part in translator.segmenter.split_tokens(tokens) for token in part
        ] == tokens


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
    assert taken == 8  # a stream without end is read no further than it must
    assert texts([first, *stream]) == texts(translator.translate(lines))
    assert texts(list(translator.stream(lines))) == texts(translator.translate(lines))


def test_the_output_may_grow_by_as_much_as_is_allowed(translator: Translator) -> None:
    (found,) = translator.translate(
        ["one two three four five six"], SearchOptions(beam=1, max_extra=1)
    )
    assert (
        len(found.tokens)
        <= len(translator.tokenizer.encode(["one two three four five six"], "source")[0]) + 1
    )


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


def test_a_paragraph_keeps_its_white_space(translator: Translator) -> None:
    """Sentence by sentence; what stands between them, before and behind stays."""
    (found,) = translator.translate(["  one two.   three?\tfour five "])
    # The model has never seen a full stop, so what it makes of a sentence is its own; the spaces
    # are ours.
    assert re.fullmatch(r"  \w+( \w+)*   \w+( \w+)*\tvier fünf ", found.text)
    (whole,) = translator.translate([" one two"], split=False)
    assert whole.text == " eins zwei"


def test_line_breaks_of_other_kinds_do_not_break_the_output(translator: Translator) -> None:
    (found,) = translator.translate(["one.\u2028two.\x85three."])
    assert len(found.text.splitlines()) == 1


def test_the_output_begins_as_it_is_told(translator: Translator) -> None:
    found = translator.translate(["one two three", "four"], prefix="neun")
    assert [one.text.split()[0] for one in found] == ["neun", "neun"]
    assert translator.translate(["one two three"], prefix="eins zwei")[0].text == "eins zwei drei"


def test_only_the_first_sentence_of_a_line_begins_as_it_is_told(translator: Translator) -> None:
    """A line of two sentences is two searches; both halves are longer than the prefix."""
    forced = translator.tokenizer.encode(["neun"], "target")[0]
    asked = TranslateRequest(prefix="neun")
    first, second = translator.segmenter.segments("one two. three four.", asked)
    assert list(first.request.prefix) == forced
    assert list(second.request.prefix) == []
    found = translator.translate("one two. three four.", prefix="neun")
    assert found.text.split().count("neun") == 1


def test_only_the_first_part_of_a_long_line_begins_as_it_is_told(
    short_sighted: Translator,
) -> None:
    asked = TranslateRequest(prefix="neun")
    parts = short_sighted.segmenter.segments("one two three four five " * 4, asked)
    assert len(parts) > 1
    assert [bool(part.request.prefix) for part in parts] == [True] + [False] * (len(parts) - 1)


def test_branches_differ_where_they_are_asked_to(translator: Translator) -> None:
    (found,) = translator.translate(
        ["one two three"], SearchOptions(nbest=3, branch=True), prefix="eins"
    )
    texts = [found.text, *(other.text for other in found.alternatives)]
    assert len({text.split()[1] if " " in text else "" for text in texts}) == 3
    assert texts[0] == "eins zwei drei"


def test_a_term_of_the_glossary_is_said_where_it_belongs(translator: Translator) -> None:
    glossary = Glossary([Term("two", ("neun", "acht")), Term("five", ("null",))])
    lines = ["one two three", "four five six seven", "one one", "TWO"]
    found = texts(translator.translate(lines, glossary=glossary))
    assert found[0] in ("eins neun drei", "eins acht drei")
    assert found[1] == "vier null sechs sieben"
    assert found[2] == translator.translate(["one one"])[0].text  # nothing of it occurs
    assert {"neun", "acht"} & set(found[3].split())


def test_a_term_is_said_as_often_as_it_occurs(translator: Translator) -> None:
    glossary = Glossary([Term("two", ("neun",)), Term("five", ("null",))])
    lines = ["two one two", "one two three two four", "five two five", "two two two"]
    found = texts(translator.translate(lines, glossary=glossary))
    assert [text.split().count("neun") for text in found] == [2, 2, 1, 3]
    assert [text.split().count("null") for text in found] == [0, 0, 2, 0]
    assert [len(text.split()) for text in found] == [3, 5, 3, 3]  # none at the end


def test_an_alignment_links_the_words(translator: Translator) -> None:
    line = "one two three. four five"
    (found,) = translator.translate([line], align=True)
    source, target = line.replace(".", "").split(), found.text.replace(".", "").split()
    right = {
        (i, j)
        for i, j in found.alignment
        if tiny.ENGLISH.index(source[i]) == tiny.GERMAN.index(target[j])
    }
    assert {i for i, _ in right} == set(
        range(5)
    )  # each word is linked to its own, if not to that alone
    assert translator.translate([line])[0].alignment == ()


def test_the_encoder_reads_a_text_once_for_its_alignment_too(translator: Translator) -> None:
    lines = ["one two three", "five four", "two", "one one five two"]
    read: list[int] = []
    encoder = translator.runtime.model.encoder  # type: ignore[attr-defined]
    watching = encoder.register_forward_hook(lambda _, given, made: read.append(len(given[0])))
    try:
        together = translator.translate(lines, align=True)
        assert read == [len(lines)]
    finally:
        watching.remove()
    alone = [translator.translate(line, align=True) for line in lines]
    assert [one.alignment for one in together] == [one.alignment for one in alone]
    assert all(one.alignment for one in together)


def test_what_a_translation_knows_of_itself(translator: Translator) -> None:
    (found,) = translator.translate(["three four"])
    assert len(found.token_probabilities) == len(found.tokens) + 1
    assert all(0.0 < value <= 1.0 for value in found.token_probabilities)
    log_probability = sum(math.log(value) for value in found.token_probabilities)
    length = len(found.token_probabilities)
    assert found.score == pytest.approx(log_probability / ((5 + length) / 6) ** 0.6, abs=1e-5)
    assert found.confidence is None
    assert found.flags == ()


def test_a_calibrated_model_says_how_sure_it_is(translator: Translator) -> None:
    certain = Calibration((0.0, 1.0), (0.0, 0.8), (0.0, 0.3), 0.01, 0.7, 100, "")
    sure = Translator(translator.runtime, translator.tokenizer, translator.description, certain)
    (found,) = sure.translate(["three four"])
    mean = sum(found.token_probabilities) / len(found.token_probabilities)
    assert found.confidence == pytest.approx(0.8 * mean, abs=1e-6)


def test_a_confidence_is_of_the_tokens_that_the_translation_shows(translator: Translator) -> None:
    """What was learnt from a translation's tokens is asked of the same tokens."""
    lines, references = digits(60, seed=8)
    learnt = calibrate(lines, translator.translate(lines), references)
    sure = Translator(translator.runtime, translator.tokenizer, translator.description, learnt)
    for line, found in zip(lines, sure.translate(lines), strict=True):
        log_probs = [math.log(value) for value in found.token_probabilities]
        evidence = Evidence(log_probs, line, found.text, found.tokens)
        assert found.confidence == pytest.approx(learnt.confidence(evidence))


class Stuttering:
    """A runtime that stutters unless it is told not to."""

    name = "torch"
    can = frozenset({"terms"})

    def __init__(self, words: list[int]) -> None:
        self.words = words
        self.asked: list[Any] = []

    def batch_rows(self, width: int, beam: int) -> int:
        return 100

    def search(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        self.asked.append(options)
        tokens = tuple(self.words if options.no_repeat_ngram else self.words * 8)
        return [[Hypothesis(tokens, -1.0, (-0.1,) * (len(tokens) + 1))] for _ in batch]

    def attention(self, sources: object, targets: object) -> list[object]:
        return []


def test_a_careful_translation_is_tried_again_where_it_is_flagged(translator: Translator) -> None:
    words = translator.tokenizer.encode(["eins zwei"], "target")[0]
    runtime = Stuttering(words)
    stutterer = Translator(runtime, translator.tokenizer, translator.description)  # type: ignore[arg-type]
    (found,) = stutterer.translate(["one two"])
    assert found.flags == ("repetition",)
    (found,) = stutterer.translate(["one two"], careful=True)
    assert found.text == "eins zwei"
    assert found.flags == ()
    assert runtime.asked[-1].beam == 8


class Changing(Stuttering):
    """A runtime that gives what it is told, first without and then with more care."""

    def __init__(self, first: list[int], second: list[int]) -> None:
        super().__init__(first)
        self.second = second

    def search(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        tokens = tuple(self.second if options.no_repeat_ngram else self.words)
        return [[Hypothesis(tokens, -1.0, (-0.1,) * (len(tokens) + 1))] for _ in batch]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("eins zwei " * 8, "drei vier", "second"),  # a repetition, then nothing wrong
        ("eins zwei " * 8, "drei vier " * 8, "first"),  # as wrong as before, in other words
        ("eins zwei " * 8, "one two " * 8, "first"),  # repeated and copied as well
    ],
    ids=["better", "as wrong", "worse"],
)
def test_care_keeps_a_second_result_only_where_it_is_better(
    translator: Translator, first: str, second: str, kept: str
) -> None:
    encode = translator.tokenizer.encode
    runtime = Changing(encode([first.strip()], "target")[0], encode([second.strip()], "target")[0])
    changing = Translator(runtime, translator.tokenizer, translator.description)  # type: ignore[arg-type]
    careless = changing.translate("one two")
    assert careless.text == first.strip()
    assert "repetition" in careless.flags
    careful = changing.translate("one two", careful=True)
    assert careful.text == {"first": first, "second": second}[kept].strip()
