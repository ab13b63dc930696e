"""Words of pieces, and alignments from tables of attention that were made by hand."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.normalise import normalise
from dragoman.text.tokenizer import RESERVED, TokenizerOptions, learn
from dragoman.text.words import ATOM, align, pharaoh, words_of


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["▁The", "▁c", "at", "▁sat", "."], [0, 1, 1, 2, 2]),
        (["▁", "<0xE2>", "<0x82>", "<0xAC>", "▁5"], [0, 0, 0, 0, 1]),
        (["▁我", "喜欢", "苹果", "。"], [0, 0, 0, 0]),
        (["at", "▁a"], [0, 1]),  # a prefix may begin within a word
        (
            ["▁a", "▁", "▁b", "▁", "c", "▁"],
            [0, 1, 1, 2, 2, 2],
        ),  # "a  b c " has three words once it is normalised
        (["▁"], [0]),
        ([], []),
    ],
)
def test_words_of(pieces: list[str], words: list[int]) -> None:
    assert words_of(pieces) == words


LEARNT, _ = learn(
    TokenizerOptions(vocab_size=RESERVED + 60),
    ["the cat sat on the mat", "Bankkonto ist gut"] * 5,
    ["ɛyɛ papa"] * 5,
)


@given(
    st.lists(
        st.sampled_from(["the", "cat", "Bank", "日本", "naïve", "😀", "1,000.5", "ɛyɛ", "…"]),
        min_size=1,
        max_size=9,
    )
)
def test_words_are_those_of_the_text(words: list[str]) -> None:
    text = normalise(" ".join(words))
    pieces = LEARNT.pieces(LEARNT.encode([text], "source")[0], "source")
    numbers = words_of(pieces)
    assert sorted(set(numbers)) == list(range(len(words)))
    for number, word in enumerate(words):
        ids = LEARNT.encode([word], "source")[0]
        assert LEARNT.pieces(ids, "source") == [
            piece for piece, at in zip(pieces, numbers, strict=True) if at == number
        ]


def test_align_sums_pieces_and_leaves_out_the_end() -> None:
    source = ["▁the", "▁c", "at", "▁sleeps"]
    target = ["▁die", "▁Kat", "ze", "▁schläft"]
    attention = numpy.array(
        [
            # the   c    at  sleeps end
            [0.60, 0.10, 0.10, 0.10, 0.10],  # die
            [0.30, 0.20, 0.20, 0.10, 0.20],  # Kat: "the" leads by piece, "c" + "at" by word
            [0.10, 0.30, 0.30, 0.10, 0.20],  # ze
            [0.05, 0.05, 0.05, 0.15, 0.70],  # schläft looks at the end most
            [0.00, 0.00, 0.00, 0.00, 1.00],
        ]
    )
    assert align(attention, source, target) == ((0, 0), (1, 1), (2, 2))
    assert pharaoh(align(attention, source, target)) == "0-0 1-1 2-2"


def test_align_links_a_compound_to_both_of_its_words() -> None:
    source = ["▁my", "▁bank", "▁account", "▁please"]
    target = ["▁mein", "▁Bankkonto"]
    # "account" has half of what "bank" has: linked; "please" has less: not.
    attention = numpy.array(
        [
            [0.7, 0.1, 0.1, 0.1, 0.0],
            [
                0.1,
                0.5,
                0.25,
                0.15,
                0.0,
            ],
            [0.0, 0.0, 0.0, 0.0, 1.0],
        ],
        dtype=numpy.float32,
    )
    assert align(attention, source, target) == ((0, 0), (1, 1), (2, 1))


def test_align_of_nothing() -> None:
    assert align(numpy.ones((1, 3)), ["▁a", "▁b"], []) == ()
    assert align(numpy.ones((3, 1)), [], ["▁a", "▁b"]) == ()
    assert pharaoh(()) == ""


@pytest.mark.parametrize(
    ("text", "atoms"),
    [
        ("The cat's mat, 3.5%", ["The", "cat", "'", "s", "mat", ",", "3", ".", "5", "%"]),
        ("使用Python编程。", ["使", "用", "Python", "编", "程", "。"]),
        ("ɔ̃kɔ snake_case", ["ɔ̃kɔ", "snake", "_", "case"]),
        ("हिन्दी में।", ["हिन्दी", "में", "।"]),
        ("مُحَمَّد هنا؟", ["مُحَمَّد", "هنا", "؟"]),
        ("한국어 می‌خواهم", ["한국어", "می‌خواهم"]),
    ],
)
def test_atoms(text: str, atoms: list[str]) -> None:
    assert ATOM.findall(text) == atoms
