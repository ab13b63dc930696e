"""How well trees match those of a treebank, counted as EVALB counts with COLLINS.prm. Knows trees;
no model.

Constituents match if their labels and their words are the same, ADVP and PRT being one label.
Punctuation is left out of both trees before the words are numbered, so that a constituent may hold
a comma or not; a constituent of nothing else is left out too, and so is the root TOP. Where a word
is punctuation in one tree and not in the other, EVALB refuses the sentence and leaves it out of
its score. Here the tags of the treebank decide for both, so that no sentence is left out.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from dragoman.errors import InputError
from dragoman.text.trees import TOP, Tree

PUNCTUATION = frozenset({",", ":", "``", "''", "."})
_LEFT_OUT = (TOP, "")
_SAME = {"PRT": "ADVP"}
_DRAWS = 1000
_SEED = 12345
_SIGNIFICANT = 0.05
Table = NDArray[numpy.int64]


@dataclass(frozen=True)
class BracketScores:
    """Shares from 0 to 100, over all sentences together."""

    precision: float
    recall: float
    f1: float
    exact: float  # sentences whose constituents are all as in the treebank
    tags: float  # words, without punctuation, whose tag is as in the treebank
    sentences: int
    empty: int  # sentences for which there was no tree
    refused_by_evalb: int  # sentences that EVALB would leave out; they count here
    low: float  # 95% interval of F1, by resampling sentences
    high: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    def lines(self) -> list[str]:
        """For people to read."""
        lines = [
            f"F1 {self.f1:.2f} (95%: {self.low:.2f} to {self.high:.2f})  "
            f"labelled precision {self.precision:.2f}, recall {self.recall:.2f}",
            f"exact match {self.exact:.2f}, tags {self.tags:.2f}, {self.sentences:,} sentences; "
            "counted as EVALB does with COLLINS.prm",
        ]
        if self.empty:
            lines.append(f"{self.empty:,} sentences have no tree and count as wrong")
        if self.refused_by_evalb:
            lines.append(
                f"{self.refused_by_evalb:,} sentences have punctuation with other tags; "
                "EVALB would leave them out"
            )
        return lines


@dataclass(frozen=True)
class TreeComparison:
    """F1 of two parsers on the same sentences, and whether chance could make the difference."""

    f1: float
    other: float
    p_value: float
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Counts:
    """What is counted in one sentence."""

    matched: int
    found: int  # constituents of the tree to be scored
    expected: int  # constituents of the treebank's tree
    words: int
    right_tags: int
    is_empty: bool = False
    is_refused: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether all constituents match."""
        return self.matched == self.found == self.expected and not self.is_empty


def score_trees(trees: Sequence[Tree | None], gold: Sequence[Tree]) -> BracketScores:
    """Return the scores of trees; None stands for a sentence without a tree."""
    if len(trees) != len(gold):
        raise InputError(f"there are {len(trees):,} trees to score but {len(gold):,} in the test")
    if not gold:
        raise InputError("there are no trees to score; the files are empty")
    counts = [count(tree, expected) for tree, expected in zip(trees, gold, strict=True)]
    matched = sum(one.matched for one in counts)
    found = sum(one.found for one in counts)
    expected = sum(one.expected for one in counts)
    words = sum(one.words for one in counts)
    right_tags = sum(one.right_tags for one in counts)
    low, high = _interval(counts)
    return BracketScores(
        precision=_percent(matched, found),
        recall=_percent(matched, expected),
        f1=_percent(2 * matched, found + expected),
        exact=_percent(sum(one.is_exact for one in counts), len(counts)),
        tags=_percent(right_tags, words),
        sentences=len(counts),
        empty=sum(one.is_empty for one in counts),
        refused_by_evalb=sum(one.is_refused for one in counts),
        low=low,
        high=high,
    )


def compare_trees(
    trees: Sequence[Tree | None], others: Sequence[Tree | None], gold: Sequence[Tree]
) -> TreeComparison:
    """Return the comparison of two parsers, by a paired bootstrap test over sentences."""
    own = score_trees(trees, gold).f1
    other = score_trees(others, gold).f1
    own_table = _table([count(tree, right) for tree, right in zip(trees, gold, strict=True)])
    other_table = _table([count(tree, right) for tree, right in zip(others, gold, strict=True)])
    differences = [_f1(own_table[rows]) - _f1(other_table[rows]) for rows in _draws(len(own_table))]
    centred = numpy.array(differences) - numpy.mean(differences)
    # Nothing is drawn less often than once: the sentences as they are count as a draw.
    as_far = 1 + int((numpy.abs(centred) >= abs(own - other)).sum())
    p_value = 1.0 if own == other else as_far / (1 + _DRAWS)
    outcome = "cannot tell this parser from the other"
    if p_value < _SIGNIFICANT:
        outcome = f"finds this parser {'better' if own > other else 'worse'} than the other"
    verdict = f"F1 {outcome}: {own:.2f} against {other:.2f} (p = {p_value:.3f})."
    return TreeComparison(own, other, p_value, verdict)


def count(tree: Tree | None, gold: Tree) -> Counts:
    """Return the counts of one sentence."""
    is_counted = [tag not in PUNCTUATION for tag in gold.tags]
    expected = _constituents(gold, is_counted)
    words = sum(is_counted)
    if tree is None:
        return Counts(0, 0, expected.total(), words, 0, is_empty=True)
    if len(tree.words) != len(gold.words):
        raise InputError(
            f"a tree has {len(tree.words):,} words and the treebank's {len(gold.words):,}: "
            f"{' '.join(gold.words)[:80]!r}; the files do not belong together"
        )
    found = _constituents(tree, is_counted)
    right_tags = 0
    is_refused = False
    for tag, right, counts in zip(tree.tags, gold.tags, is_counted, strict=True):
        right_tags += counts and _SAME.get(tag, tag) == _SAME.get(right, right)
        is_refused |= (tag in PUNCTUATION) == counts
    matched = (found & expected).total()
    return Counts(
        matched,
        found.total(),
        expected.total(),
        words,
        right_tags,
        is_refused=is_refused,
    )


def _constituents(tree: Tree, is_counted: Sequence[bool]) -> Counter[tuple[str, int, int]]:
    """The constituents by label and by the words that are counted."""
    before = numpy.concatenate([[0], numpy.cumsum(is_counted)])
    found: Counter[tuple[str, int, int]] = Counter()
    for label, start, end in tree.constituents():
        first = int(before[start])
        last = int(before[end])
        if first < last and label not in _LEFT_OUT:
            found[_SAME.get(label, label), first, last] += 1
    return found


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def _interval(counts: Sequence[Counts]) -> tuple[float, float]:
    """The middle 95% of F1 over sentences drawn again and again."""
    table = _table(counts)
    scores = [_f1(table[rows]) for rows in _draws(len(table))]
    low, high = numpy.percentile(scores, [2.5, 97.5])
    return float(low), float(high)


def _table(counts: Sequence[Counts]) -> Table:
    """(sentences, 2): what F1 is computed from."""
    return numpy.array([(one.matched, one.found + one.expected) for one in counts])


def _f1(table: Table) -> float:
    matched, both = table.sum(0).tolist()
    return _percent(2 * matched, both)


def _draws(sentences: int) -> Iterator[Table]:
    """Sentences drawn with replacement, the same ones each time."""
    generator = numpy.random.default_rng(_SEED)
    for _ in range(_DRAWS):
        yield generator.integers(sentences, size=sentences)
