"""Scores of trees beside numbers that were worked out by hand from EVALB's rules.

The first cases have the shapes of the sample that comes with EVALB, whose published output has the
same counts for them.
"""

from __future__ import annotations

import pytest

from dragoman.errors import InputError
from dragoman.tasks.bracket_scores import compare_trees, count, score_trees
from dragoman.text.trees import read_bracketed

# Four constituents: S over 0-4, A over 0-1, B over 1-4, A over 2-4.
GOLD = "(S (A (P they)) (B (Q saw) (A (R a) (T cat))))"


@pytest.mark.parametrize(
    ("test", "matched", "found", "right_tags"),
    [
        (GOLD, 4, 4, 4),
        # Another label at one place.
        ("(S (A (P they)) (B (Q saw) (C (R a) (T cat))))", 3, 4, 4),
        # Another tag changes no constituent.
        ("(S (A (P they)) (B (Q saw) (A (R a) (U cat))))", 4, 4, 3),
        ("(S (C (P they)) (B (Q saw) (A (R a) (U cat))))", 3, 4, 3),
        # The last A is shorter.
        ("(S (A (P they)) (B (Q saw) (R a) (A (T cat))))", 3, 4, 4),
        # A over 0-2 crosses B.
        ("(S (A (P they) (Q saw)) (A (R a) (T cat)))", 2, 3, 4),
        # Flat.
        ("(S (P they) (Q saw) (R a) (T cat))", 1, 1, 4),
        # A constituent that stands twice matches once.
        ("(S (A (P they)) (B (Q saw) (A (A (R a) (T cat)))))", 4, 5, 4),
        ("(S (A (P they)) (B (Q saw) (A (A (A (A (A (R a) (T cat))))))))", 4, 8, 4),
        # A root that is left out, function tags, empty elements.
        ("(TOP (S (A (P they)) (B (Q saw) (A (R a) (T cat)))))", 4, 4, 4),
        ("(S (A-SBJ-1 (P they)) (B-X (Q saw) (A (R a) (T cat))) (-NONE- *))", 4, 4, 4),
    ],
)
def test_counts_of_a_sentence(test: str, matched: int, found: int, right_tags: int) -> None:
    counts = count(read_bracketed(test), read_bracketed(GOLD))
    assert (counts.matched, counts.found, counts.expected) == (matched, found, 4)
    assert (counts.words, counts.right_tags) == (4, right_tags)
    assert not counts.is_refused


@pytest.mark.parametrize(
    ("test", "gold", "matched", "found", "expected"),
    [
        # A comma inside of NP or outside of it: NP is over words 0-1 both times.
        (
            "(S (NP (NN Rain) (, ,)) (VP (VB falls)) (. .))",
            "(S (NP (NN Rain)) (, ,) (VP (VB falls) (. .)))",
            3,
            3,
            3,
        ),
        # A constituent of punctuation alone is none.
        (
            "(S (PRN (`` ``) ('' '')) (VP (VB go)) (X (: :)))",
            "(S (`` ``) ('' '') (VP (VB go)) (: :))",
            2,
            2,
            2,
        ),
        # ADVP and PRT are one label, ADJP is another.
        (
            "(VP (VB give) (ADVP (RP up)) (PRT (RB soon)))",
            "(VP (VB give) (PRT (RP up)) (ADVP (RB soon)))",
            3,
            3,
            3,
        ),
        ("(VP (VB give) (ADJP (RP up)))", "(VP (VB give) (PRT (RP up)))", 1, 2, 2),
        # Two of one label over the same words, in another order: X over NP matches as a set does.
        ("(S (X (NP (NN a))))", "(S (NP (X (NN a))))", 3, 3, 3),
        # Brackets are words like any other.
        (
            "(NP (NN a) (PRN (-LRB- -LRB-) (NN b) (-RRB- -RRB-)))",
            "(NP (NN a) (-LRB- -LRB-) (PRN (NN b)) (-RRB- -RRB-))",
            1,
            2,
            2,
        ),
        # TOP of several parts counts in neither tree.
        ("(TOP (S (VB go)) (S (VB on)))", "(S (S (VB go)) (S (VB on)))", 2, 2, 3),
    ],
)
def test_collins_parameters(test: str, gold: str, matched: int, found: int, expected: int) -> None:
    counts = count(read_bracketed(test), read_bracketed(gold))
    assert (counts.matched, counts.found, counts.expected) == (matched, found, expected)


def test_shares_over_a_set() -> None:
    gold = [GOLD, GOLD, GOLD]
    trees = [
        GOLD,  # 4 of 4 and 4
        "(S (A (P they) (Q saw)) (A (R a) (U cat)))",  # 2 of 3 found and 4 expected
        "(S (P they) (Q saw) (R a) (T cat))",  # 1 of 1 and 4
    ]
    scores = score_trees([*map(read_bracketed, trees)], [*map(read_bracketed, gold)])
    assert scores.precision == pytest.approx(100 * 7 / 8)
    assert scores.recall == pytest.approx(100 * 7 / 12)
    assert scores.f1 == pytest.approx(70.0)  # 2 * 7 / (8 + 12)
    assert scores.exact == pytest.approx(100 / 3)
    assert scores.tags == pytest.approx(100 * 11 / 12)
    assert scores.low < scores.f1 < scores.high
    assert "F1 70.00" in scores.lines()[0]
    assert scores.as_dict()["sentences"] == 3


def test_a_sentence_without_a_tree_counts_as_wrong() -> None:
    gold = read_bracketed(GOLD)
    scores = score_trees([gold, None], [gold, gold])
    assert scores.precision == 100.0
    assert scores.recall == 50.0
    assert scores.exact == 50.0
    assert scores.tags == 50.0
    assert scores.empty == 1


def test_punctuation_with_another_tag_counts_by_the_treebank() -> None:
    gold = read_bracketed("(S (NP (NN Rain)) (VP (VB falls)) (. .))")
    other = read_bracketed("(S (NP (NN Rain)) (VP (VB falls)) (SYM .))")
    scores = score_trees([other], [gold])
    assert (scores.f1, scores.tags, scores.refused_by_evalb) == (100.0, 100.0, 1)


def test_a_comparison_is_paired() -> None:
    gold = [read_bracketed(GOLD)] * 40
    flat = read_bracketed("(S (P they) (Q saw) (R a) (T cat))")  # F1 2 / 5
    worse = compare_trees([flat, *gold[1:]], gold, gold)
    # 157 of 160 expected and 157 found: one sentence in 40 could as well be chance.
    assert worse.f1 == pytest.approx(100 * 2 * 157 / (160 + 157))
    assert worse.other == 100.0
    assert worse.p_value > 0.05
    assert "cannot tell" in worse.verdict
    clear = compare_trees(gold, [flat] * 20 + gold[20:], gold)
    assert clear.p_value < 0.01
    assert "finds this parser better than the other: 100.00 against" in clear.verdict
    assert "worse" in compare_trees([flat] * 20 + gold[20:], gold, gold).verdict
    same = compare_trees(gold, gold, gold)
    assert same.p_value == 1.0


def test_what_does_not_belong_together() -> None:
    gold = read_bracketed(GOLD)
    with pytest.raises(InputError, match="2 trees to score but 1"):
        score_trees([gold, gold], [gold])
    with pytest.raises(InputError, match="do not belong together"):
        score_trees([read_bracketed("(S (NN a))")], [gold])
    with pytest.raises(InputError, match="no trees"):
        score_trees([], [])
