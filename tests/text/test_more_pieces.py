"""Words that a tokeniser gets as further pieces."""

from __future__ import annotations

import pytest

from dragoman.text.more_pieces import with_pieces
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions, learn

TEXT = [f"number {number} is a number of the numbers" for number in range(200)]
OPTIONS = TokenizerOptions(vocab_size=300, tags=("<bt>",), copies=True)


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    return learn(OPTIONS, TEXT, TEXT)[0]


def test_each_word_is_one_piece_behind_all_others(old: Tokenizer) -> None:
    new = with_pieces(old, ["<formal>", "<bt>", "<sep>"])
    size = old.source_size
    assert new.pieces(range(size), "source") == old.pieces(range(size), "source")
    assert new.pieces(range(size, new.source_size), "source") == ["▁<formal>", "▁<sep>"]
    assert new.target_size == new.source_size
    (told,) = new.encode(["<formal> number <sep> 12"], "source")
    (number,) = old.encode(["number"], "source")
    (twelve,) = old.encode(["12"], "source")
    assert told == [size, *number, size + 1, *twelve]
    assert new.decode([told]) == ["<formal> number <sep> 12"]


def test_other_text_has_the_tokens_it_had(old: Tokenizer) -> None:
    new = with_pieces(old, ["<formal>"])
    lines = [*TEXT[:20], "<bt> a formal number", "< formal>", "Ünknown ✓"]
    assert new.encode(lines, "source") == old.encode(lines, "source")
    assert new.copies == old.copies
    assert len(old.copies) > 0


def test_a_long_word_is_written_whole_and_read_again(old: Tokenizer) -> None:
    word = "<" + "long" * 50 + ">"
    new = with_pieces(old, [word])
    again = Tokenizer(new.serialised()[0])
    assert again.encode([word], "source") == [[old.source_size]]


def test_what_has_them_or_has_two_sides_stays_as_it_is(old: Tokenizer) -> None:
    assert with_pieces(old, ["<bt>"]) is old
    assert with_pieces(old, []) is old
    two, _ = learn(TokenizerOptions(vocab_size=300, joint=False), TEXT, TEXT)
    assert with_pieces(two, ["<formal>"]) is two
