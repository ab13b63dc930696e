"""What must stay stays, with a model that knows copy tokens and with one that does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pytest

from dragoman import Translator
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.folder.description import Description
from dragoman.model.model_config import ModelConfig
from dragoman.runtimes.runtime import DECODE, TERMS, Request
from dragoman.tasks.outcome import aligned_words
from dragoman.text.copying import TAUGHT
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions, learn

TEXT = [
    "Press here at once, it costs a lot. See and open the file.",
    "Drücken Sie hier sofort, es kostet viel. Siehe und öffne.",
] * 5
NAMED = [*TEXT, *["Welcome back, Anna and Peter! (Willkommen zurück)"] * 5]


class Scripted:
    """A runtime that says what a function makes of the source's text."""

    name = "scripted"
    can = frozenset({DECODE, TERMS})

    def __init__(self, tokenizer: Tokenizer, say: Callable[[str, bool], str]) -> None:
        self.tokenizer = tokenizer
        self.say = say
        self.requests: list[Request] = []

    def batch_rows(self, width: int, beams: int) -> int:
        return 4

    def search(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        found = []
        for request in batch:
            self.requests.append(request)
            text = self.tokenizer.decode([request.tokens], "source")[0]
            said = self.say(text, bool(request.terms))
            tokens = self.tokenizer.encode([said], "target")[0]
            log_probs = tuple([-0.1] * (len(tokens) + 1))
            found.append([Hypothesis(tuple(tokens), -0.1, log_probs)])
        return found

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[numpy.ndarray]:
        """Each target token looks at the source token of the same text, or at the first."""
        tables = []
        for source, target in zip(sources, targets, strict=True):
            table = numpy.zeros((len(target) + 1, len(source) + 1))
            for row, token in enumerate(target):
                table[row, source.index(token) if token in source else 0] = 1.0
            table[-1, -1] = 1.0
            tables.append(table)
        return tables


def translator(
    copies: bool, say: Callable[[str, bool], str], text: list[str] = TEXT
) -> tuple[Translator, Scripted]:
    tokenizer, _ = learn(TokenizerOptions(vocab_size=340, copies=copies), text, text)
    model = ModelConfig(vocab_size=tokenizer.target_size)
    runtime = Scripted(tokenizer, say)
    description = Description(model, "en", "de", 40)
    return Translator(runtime, tokenizer, description), runtime


def same(text: str, again: bool) -> str:
    return text


def test_a_model_reads_copy_tokens_and_people_read_what_they_stand_for() -> None:
    found, runtime = translator(True, same)
    (line,) = found.translate(["See <b>here</b>: https://a.org/?x=1. It costs $1,234.56 👍"])
    assert line.text == "See <b>here</b>: https://a.org/?x=1. It costs 1.234,56 $ 👍"
    assert line.flags == ()
    texts = [found.tokenizer.decode([one.tokens], "source")[0] for one in runtime.requests]
    assert sorted(texts) == ["It costs <x1> <x2>", "See <x1>here<x2>: <x3>."]
    assert "<b>" in line.tokens
    assert "https://a.org/?x=1" in line.tokens


def test_nothing_is_protected_if_nobody_asks() -> None:
    found, runtime = translator(True, same)
    (line,) = found.translate(["See {a}, it costs $1,234.56"], protect=False)
    assert line.text == "See {a}, it costs $1,234.56"
    assert found.tokenizer.copies[0] not in runtime.requests[0].tokens


@pytest.mark.parametrize("copies", [True, False])
def test_what_is_lost_is_asked_for_again(copies: bool) -> None:
    """The last search has it as a term; before that a model without copy tokens has lost the name
    in its place as well."""

    def forgetful(text: str, again: bool) -> str:
        if again:
            return text
        for name in ("<x1>",) if copies else ("{name}", "Anna"):
            text = text.replace(name, "")
        return text

    found, runtime = translator(copies, forgetful)
    (line,) = found.translate(["Press {name} at once."])
    assert line.text == "Press {name} at once."
    assert line.flags == ()
    assert len(runtime.requests) == (2 if copies else 3)
    terms = runtime.requests[-1].terms
    if copies:
        assert terms == [[[found.tokenizer.copies[0]]]]
        place = runtime.requests[1].tokens.index(found.tokenizer.copies[0])
        assert runtime.requests[1].places == [[place]]
    else:
        assert found.tokenizer.decode(terms[0]) == ["{name}"]


def test_a_second_attempt_may_say_each_copy_once() -> None:
    """Else it may repeat one of them where another belongs."""

    def say(text: str, again: bool) -> str:
        return text if again else "<x2> <x2>"

    found, runtime = translator(True, say)
    (line,) = found.translate(["Pay {a} and {b}"])
    assert line.text == "Pay {a} and {b}"
    first, second = runtime.requests
    assert not first.once
    assert list(second.once) == list(found.tokenizer.copies[:2])


def test_the_words_around_a_placeholder_are_not_lost() -> None:
    """A model that has never seen a placeholder, and forgets what it was saying when it is held to
    one: it reads a name instead."""

    def out_of_step(text: str, again: bool) -> str:
        if again:
            return "{name}!!"
        return text.replace("{name}", "").replace("Welcome back", "Willkommen zurück")

    found, runtime = translator(False, out_of_step, NAMED)
    line = found.translate("Welcome back, {name}!", align=True)
    assert line.text == "Willkommen zurück, {name}!"
    assert line.flags == ()
    read = [found.tokenizer.decode([one.tokens], "source")[0] for one in runtime.requests]
    assert read == ["Welcome back, {name}!", "Welcome back, Anna!"]
    assert "".join(line.tokens) == "▁Willkommen▁zurück,▁<0x7B>name<0x7D>!"
    assert len(line.token_probabilities) == len(line.tokens) + 1
    assert all(0.0 < one <= 1.0 for one in line.token_probabilities)


@pytest.mark.parametrize(
    "said",
    [
        "Willkommen zurück, Annas!",  # inflected
        "Willkommen zurück, Anna, Anna!",
        "Willkommen zurück, Annette!",
        "Willkommen zurück!",
    ],
)
def test_a_name_that_does_not_come_out_once_is_no_stand_in(said: str) -> None:
    def inflected(text: str, again: bool) -> str:
        return "Willkommen zurück, {name}!" if again else said

    found, runtime = translator(False, inflected, NAMED)
    assert found.translate("Welcome back, {name}!").text == "Willkommen zurück, {name}!"
    assert len(runtime.requests) == 3
    assert runtime.requests[-1].terms


def test_several_placeholders_come_back_where_their_names_came_out() -> None:
    def turned(text: str, again: bool) -> str:
        assert not again
        if "{" in text:
            return "lost"
        first, second = (word for word in text.split() if word in ("Anna", "Peter"))
        return f"({second}) an {first}"

    found, _ = translator(False, turned, NAMED)
    assert found.translate("Send {what} to {name} at once").text == "({name}) an {what}"


def test_what_stays_lost_is_put_at_the_end_and_flagged() -> None:
    found, _ = translator(True, lambda text, again: text.replace("<x1>", "").replace("<x2>", ""))
    (line,) = found.translate(["Press {name} and {b} at once."])
    assert line.text == "Press and at once. {name} {b}"
    assert "protected" in line.flags


def test_a_model_without_copy_tokens_is_flagged_if_it_always_fails() -> None:
    found, _ = translator(False, lambda text, again: "See here", NAMED)
    (line,) = found.translate(["See here 👍"])
    assert line.text == "See here"
    assert line.flags == ("protected",)


def test_sampled_translations_are_not_searched_again() -> None:
    found, runtime = translator(True, lambda text, again: text.replace("<x1>", ""))
    (line,) = found.translate(["Press {a}."], SearchOptions(sample=True, beam=1))
    assert line.text == "Press . {a}"
    assert line.flags == ("protected",)
    assert len(runtime.requests) == 1


def test_a_sentence_is_never_split_inside_what_stays() -> None:
    found, runtime = translator(True, same)
    (line,) = found.translate(["Open `a. B. C` here. See it."])
    assert line.text == "Open `a. B. C` here. See it."
    assert len(runtime.requests) == 2


def test_parts_of_a_long_sentence_have_names_of_their_own() -> None:
    found, runtime = translator(True, same)
    source = " ".join(f"open the file {{name{number}}}" for number in range(9))
    (line,) = found.translate([source])
    assert line.text == source
    assert "protected" not in line.flags
    assert len(runtime.requests) == 3  # four, four and one
    first = found.tokenizer.copies[0]
    assert all(first in request.tokens for request in runtime.requests)


@pytest.mark.parametrize("between", [" ", ", ", " and the ", ""])
@pytest.mark.parametrize("split", [True, False])
def test_more_spans_than_a_model_has_learnt_to_copy(between: str, split: bool) -> None:
    """None of the requests holds more of them, and the spaces between the parts come back."""
    found, runtime = translator(True, same)
    source = between.join(f"<b{number}/>" for number in range(13))
    (line,) = found.translate([source], split=split)
    assert line.text == source
    assert line.flags == ()
    names = found.tokenizer.copies
    assert len(runtime.requests) == 4
    assert all(names[TAUGHT] not in request.tokens for request in runtime.requests)


def test_words_are_aligned_as_people_read_them() -> None:
    """A name that stands for two words is two words of the alignment."""
    found, _ = translator(True, same)
    (line,) = found.translate(["See 5:30 pm here"], align=True)
    assert line.text == "See 17:30 Uhr here"
    assert (0, 0) in line.alignment
    assert (3, 3) in line.alignment
    assert {pair for pair in line.alignment if 1 in pair or 2 in pair} <= {
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
    }


def test_a_prefix_may_name_what_stays() -> None:
    found, runtime = translator(True, same)
    found.translate(["Press {name}."], prefix="Drücken {name}")
    assert found.tokenizer.copies[0] in runtime.requests[0].prefix


def test_alternatives_are_written_out_too() -> None:
    found, runtime = translator(True, same)
    search = runtime.search

    def two(batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        return [[*best, *best] for best in search(batch, options)]

    runtime.search = two  # type: ignore[method-assign]
    (line,) = found.translate(["See {a}."], SearchOptions(beam=2, nbest=2))
    assert [other.text for other in line.alternatives] == ["See {a}."]


def test_names_of_a_model_without_copy_tokens_are_text() -> None:
    found, _ = translator(False, same)
    (line,) = found.translate(["See <x1> here"])
    assert line.text == "See <x1> here"
    assert line.flags == ()


def kinds() -> list[Any]:
    return ["{name}", "{{a.b}}", "%s", "%1$s", "${x}", "&nbsp;", "https://a.org", "a@b.org"]


@pytest.mark.parametrize("span", [*kinds(), "a.pdf", "#tag", "`x y`", "😀", "12:30", "1,000"])
def test_every_kind_is_kept(span: str) -> None:
    found, _ = translator(True, same)
    (line,) = found.translate([f"See {span} here"])
    written = {"1,000": "1.000"}.get(span, span)
    assert line.text == f"See {written} here"


def test_what_is_copied_is_linked_to_what_it_repeats() -> None:
    """Word by word, whatever the attention says; a full stop that is written onto it does not
    count."""
    # "It costs <x1> today." and "Heute kostet es <x1>."; each looks at "today" the most.
    attention = numpy.full((6, 6), 0.1)
    attention[:, 4] = 0.5
    source = [["▁It"], ["▁costs"], ["▁"], ["at", "▁9", "▁am"], ["▁today"]]
    target = [["▁Heute"], ["▁kostet"], ["▁"], ["um", "▁9", "▁Uhr"], ["."]]
    links = aligned_words(attention, source, target, [(3, 3)])
    assert {pair for pair in links if pair[0] in (2, 3, 4) or pair[1] in (2, 3, 4)} == {
        (2, 2),
        (3, 3),
        (4, 4),
    }
    source[3] = ["$5"]
    target[3] = ["5", "▁$"]
    links = aligned_words(attention, source, target, [(3, 3)])
    assert {pair for pair in links if pair[0] == 2 or pair[1] in (2, 3)} == {(2, 2), (2, 3)}
