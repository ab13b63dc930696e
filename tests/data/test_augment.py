"""Pairs as people also write them: each kind of change, and none where it cannot be."""

from __future__ import annotations

import random

import pytest

from dragoman.data.augment import Augmenter, AugmentOptions, with_typos
from dragoman.errors import OptionError
from dragoman.text.copying import NAMES

ENGLISH = "In 2014, Angela Merkel met Barack Obama in Berlin at 5:30 pm."
GERMAN = "2014 traf Angela Merkel Barack Obama in Berlin um 17:30 Uhr."
PAIR = (ENGLISH, GERMAN)
LOWER = ("the cat sat here", "die katze saß hier")


def changed(
    kind: str, pair: tuple[str, str] = PAIR, seed: int = 1, copies: int = 10
) -> tuple[str, str]:
    return Augmenter("en", "de", copies).change(kind, pair, random.Random(seed))


def test_case() -> None:
    assert changed("upper", ("See a.pdf now.", "Siehe a.pdf jetzt.")) == (
        "SEE a.pdf NOW.",
        "SIEHE a.pdf JETZT.",
    )
    assert changed("title") == (
        "In 2014, Angela Merkel Met Barack Obama In Berlin At 5:30 Pm.",
        GERMAN,
    )
    assert changed("lower") == (ENGLISH.lower(), GERMAN)


def test_typos_change_letters_of_the_source_alone() -> None:
    for seed in range(20):
        source, target = changed("typos", seed=seed)
        assert target == GERMAN
        assert source != ENGLISH
        words = list(zip(source.split(), ENGLISH.split(), strict=True))
        assert 1 <= sum(one != other for one, other in words) <= 3
        assert all(abs(len(one) - len(other)) <= 1 for one, other in words)
    assert with_typos("a be 123", random.Random(1), 3) == "a be 123"


def test_final_stops_go_from_both_sides_or_from_none() -> None:
    assert changed("stop") == (ENGLISH[:-1], GERMAN[:-1])
    for pair in (("Yes.", "Ja"), ("Well...", "Nun..."), (".", "."), LOWER):
        assert changed("stop", pair) == pair


def test_signs_stand_at_the_same_end() -> None:
    found = {changed("signs", LOWER, seed) for seed in range(30)}
    assert found == {
        (f"{LOWER[0]} <x1>", f"{LOWER[1]} <x1>"),
        (f"<x1> {LOWER[0]}", f"<x1> {LOWER[1]}"),
    }
    for seed in range(30):  # without copy tokens they are signs
        source, target = changed("signs", LOWER, seed, copies=0)
        sign = set(source.split()) - set(LOWER[0].split())
        assert sign == set(target.split()) - set(LOWER[1].split())


def test_copy_tokens_are_numbered_by_the_source_and_stand_for_the_same() -> None:
    seen = set()
    for seed in range(60):
        source, target = changed("copies", seed=seed)
        names = [name for name in NAMES if name in source]
        assert names == list(NAMES[: len(names)])  # none is left out
        assert sorted(names, key=source.index) == names
        assert all(source.count(name) == target.count(name) == 1 for name in names)
        assert 1 <= len(names) <= 4
        seen.add(source)
    assert len(seen) > 20
    assert any("<x1>2014<x2>" in source for source in seen)  # around a word, as tags are
    assert any("at 5:30 pm" not in source for source in seen)  # which is um 17:30 Uhr


def test_only_what_both_sides_have_once_is_copied() -> None:
    for pair in (LOWER, ("Berlin, Berlin", "Berlin"), ("Bob", "Bob Bob"), ("He", "Herr")):
        found = {changed("copies", pair, seed) for seed in range(30)}
        wrapped = {one for one in found if "<x1>" in one[0]}
        assert found - wrapped == {pair}
        assert changed("whole", pair) == pair
    assert changed("copies", ("Say <x1> to Bob", "Sag Bob <x1>")) == (
        "Say <x1> to Bob",
        "Sag Bob <x1>",
    )
    assert changed("copies", copies=0) == PAIR


def test_what_stands_between_copy_tokens_may_be_translated() -> None:
    """Tags stand around any text, not only around what is the same in both languages."""
    found = {changed("copies", ("a red house.", "ein rotes Haus."), seed) for seed in range(60)}
    assert found == {
        ("a red house.", "ein rotes Haus."),
        ("<x1>a red house<x2>.", "<x1>ein rotes Haus<x2>."),
        ("<x1>a red house.<x2>", "<x1>ein rotes Haus.<x2>"),
    }
    assert changed("copies", ("a", "b"), copies=1) == ("a", "b")  # a tag needs another


def test_whole_lines_are_copied() -> None:
    found = {changed("whole", seed=seed) for seed in range(40)}
    assert ("Berlin", "Berlin") in found
    assert ("at 5:30 pm", "um 17:30 Uhr") in found


def test_shares_must_leave_something() -> None:
    assert sum(share for _, share in AugmentOptions().shares()) < 0.6
    with pytest.raises(OptionError, match=r"augment\.upper is 1\.5"):
        AugmentOptions(upper=1.5)
    with pytest.raises(OptionError, match=r"sum to 1\.2"):
        AugmentOptions(upper=0.6, lower=0.6, title=0, typos=0, stop=0, signs=0, copies=0, whole=0)
