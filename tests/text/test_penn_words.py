"""Sentences to words, as the Penn Treebank's guidelines split them."""

from __future__ import annotations

import pytest

from dragoman.text.penn_words import penn_words


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("", ""),
        ("Rain falls.", "Rain falls ."),
        ('He said, "Go (now)."', "He said , `` Go ( now ) . ''"),
        ("She can't; they'd've gone.", "She ca n't ; they 'd 've gone ."),
        ("I'm gonna wait, you cannot.", "I 'm gon na wait , you can not ."),
        ("The dogs' owner isn't John's.", "The dogs ' owner is n't John 's ."),
        ("Mr. Day came at 10:30, with 1,000 men.", "Mr. Day came at 10:30 , with 1,000 men ."),
        ("It fell in the U.S.", "It fell in the U.S. ."),
        ("It cost $3.50 (about 5%)!", "It cost $ 3.50 ( about 5 % ) !"),
        ("AT&T paid US$ 5 & left.", "AT&T paid US$ 5 & left ."),
        ("Well... yes -- no", "Well ... yes -- no"),
        ("'Tis the '90s", "'Tis the '90s"),
        ("an 'old' way", "an ' old ' way"),
        ("See http://a.org/b?c=d, or a.b@c.org.", "See http://a.org/b?c=d , or a.b@c.org ."),
        ("“Hi,” he said.", "“ Hi , ” he said ."),
        ("a well-known and/or name", "a well-known and/or name"),
        ("is it `` so ''?", "is it `` so '' ?"),
        ("  two\u00a0 spaces\t", "two spaces"),
    ],
)
def test_words(sentence: str, words: str) -> None:
    assert penn_words(sentence) == words.split()


def test_what_is_split_stays_as_it_is() -> None:
    words = "He said , `` I ca n't go ( yet ) . ''"
    assert penn_words(words) == words.split()


def test_hyphens() -> None:
    assert penn_words("a SAM-domain and/or anti-HA X-linked 5-6", split_hyphens=True) == (
        ["a", "SAM", "-", "domain", "and", "/", "or", "anti-HA", "X", "-", "linked", "5", "-", "6"]
    )
