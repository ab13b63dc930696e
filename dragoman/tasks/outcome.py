"""What a search made of the segments of a line, and the translation that it becomes. Knows tokens,
a tokeniser and a calibration; no runtime and no search."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.tasks.calibration import Calibration
from dragoman.tasks.segment import Segment
from dragoman.tasks.signs import Evidence
from dragoman.tasks.translation import Draft, Translation, join_translations
from dragoman.text.copying import NAMES, is_whole, spelt, written
from dragoman.text.flags import FLAGS, SERIOUS, flags
from dragoman.text.tokenizer import Side, Tokenizer
from dragoman.text.words import align as align_words

if TYPE_CHECKING:
    import numpy

# What other programs take for the end of a line.
_LINE_BREAKS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_SPACE = "▁"  # as a piece
_CERTAIN = 100.0  # outweighs the attention of what is written onto a copy, such as a full stop


@dataclass(frozen=True)
class Outcome:
    """A segment and what the search made of it."""

    segment: Segment
    hypotheses: list[Hypothesis]  # best first
    text: str  # of the best
    flags: tuple[str, ...]
    attention: numpy.ndarray | None = None  # of the best

    @property
    def best(self) -> Hypothesis:
        """The best hypothesis."""
        return self.hypotheses[0]


class Renderer:
    """Makes text of what the searches of one model found."""

    def __init__(self, tokenizer: Tokenizer, calibration: Calibration | None) -> None:
        self._tokenizer = tokenizer
        self._calibration = calibration

    def outcomes(
        self, segments: Sequence[Segment], found: Sequence[list[Hypothesis]]
    ) -> Iterator[Outcome]:
        """Yield what the search made of each segment, given its hypotheses."""
        named = self._texts([hypotheses[0] for hypotheses in found])
        for segment, hypotheses, text in zip(segments, found, named, strict=True):
            yield self._outcome(segment, hypotheses, text)

    def drafts(self, lines: Sequence[Sequence[Segment]], best: Sequence[Hypothesis]) -> list[Draft]:
        """Return a draft of each line, given its segments and the best hypothesis of each segment
        of all lines, in order."""
        texts = iter(self._texts(best))
        remaining = iter(best)
        drafts = []
        for segments in lines:
            count = len(segments)
            of_line = list(islice(remaining, count))
            texts_of_line = list(islice(texts, count))
            drafts.append(_draft(segments, of_line, texts_of_line))
        return drafts

    def line(self, outcomes: list[Outcome], line: str) -> Translation:
        """Return one translation of a line's segments; with alternatives only if there is one
        segment."""
        if not outcomes:
            return Translation("")
        lead_length = len(line) - len(line.lstrip())
        lead = line[:lead_length]
        if len(outcomes) == 1:
            return self._single(outcomes[0], lead)
        best = [self._translation(one) for one in outcomes]
        sources = [one.segment.text for one in outcomes]
        spaces = [one.segment.space for one in outcomes]
        whole = join_translations(best, sources, spaces)
        return replace(whole, text=_one_line(lead + whole.text))

    def _single(self, outcome: Outcome, lead: str) -> Translation:
        """The translation of a line that is one segment, with what the search found besides."""
        space = outcome.segment.space

        def whole_line(one: Translation) -> Translation:
            return replace(one, text=_one_line(lead + one.text + space))

        best = whole_line(self._translation(outcome))
        others = [whole_line(other) for other in self._alternatives(outcome)]
        return replace(best, alternatives=tuple(others))

    def _alternatives(self, outcome: Outcome) -> list[Translation]:
        """What the search found besides the best; the attention is that of the best alone."""
        alternatives = []
        for hypothesis in outcome.hypotheses[1:]:
            (named,) = self._texts([hypothesis])
            other = self._outcome(outcome.segment, [hypothesis], named)
            alternatives.append(self._translation(other))
        return alternatives

    def _outcome(self, segment: Segment, hypotheses: list[Hypothesis], named: str) -> Outcome:
        """What a search made of a segment; `named` is its text with names for what is copied."""
        return Outcome(
            segment=segment,
            hypotheses=hypotheses,
            text=_written(segment, named),
            flags=self._flags(segment, named),
        )

    def _flags(self, segment: Segment, named: str) -> tuple[str, ...]:
        """What looks wrong with a translation, given with names for what is copied."""
        ratio = None if self._calibration is None else self._calibration.ratio
        found = set(flags(segment.named.text, named, ratio))
        if not _is_whole(segment, named):
            found.add("protected")
        return tuple(name for name in FLAGS if name in found)

    def _texts(self, hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Each as one line without white space at its ends, which not all tokenisers give."""
        rows = [hypothesis.tokens for hypothesis in hypotheses]
        return [" ".join(text.split()) for text in self._tokenizer.decode(rows)]

    def _translation(self, outcome: Outcome) -> Translation:
        segment = outcome.segment
        hypothesis = outcome.best
        target = self._spelt(hypothesis.tokens, "target", segment)
        tokens = tuple("".join(parts) for parts in target)
        alignment: tuple[tuple[int, int], ...] = ()
        if outcome.attention is not None:
            source = self._spelt(segment.request.tokens, "source", segment)
            pairs = self._copied(segment.request.tokens, hypothesis.tokens)
            alignment = aligned_words(outcome.attention, source, target, pairs)
        return Translation(
            text=outcome.text,
            score=hypothesis.score,
            tokens=tokens,
            token_probabilities=tuple(map(math.exp, hypothesis.log_probs)),
            alignment=alignment,
            confidence=self._confidence(outcome, tokens),
            flags=outcome.flags,
        )

    def _confidence(self, outcome: Outcome, tokens: Sequence[str]) -> float | None:
        if self._calibration is None:
            return None
        log_probs = outcome.best.log_probs
        evidence = Evidence(log_probs, outcome.segment.text, outcome.text, tokens)
        has_serious_flag = not SERIOUS.isdisjoint(outcome.flags)
        return self._calibration.confidence(evidence, has_serious_flag)

    def _copied(self, source: Sequence[int], target: Sequence[int]) -> list[tuple[int, int]]:
        """Which token of the source each copy token of the target repeats."""
        names = self._tokenizer.pieces(source, "source")
        found = []
        for place, piece in enumerate(self._tokenizer.pieces(target, "target")):
            if piece in NAMES and piece in names:
                found.append((names.index(piece), place))
        return found

    def _spelt(self, tokens: Sequence[int], side: Side, segment: Segment) -> list[list[str]]:
        """The pieces of each token; those of a copy token are of what it stands for."""
        copies = segment.named.copies
        texts = [copy.source if side == "source" else copy.target for copy in copies]
        pieces = self._tokenizer.pieces(tokens, side)
        if segment.capitals and side == "target":
            # Copies are pieces such as <x1>, bytes such as <0xC3>.
            pieces = [piece if piece[:1] == "<" else piece.upper() for piece in pieces]
        return spelt(pieces, texts)


def aligned_words(
    attention: numpy.ndarray,
    source: list[list[str]],
    target: list[list[str]],
    copied: list[tuple[int, int]],
) -> tuple[tuple[int, int], ...]:
    """The alignment of words; every piece of a token has the token's attention.

    What is copied belongs to what it repeats, whatever the attention says: word by word, since
    both are written alike.
    """
    rows = [row for row, parts in enumerate([*target, [""]]) for _ in parts]
    columns = [column for column, parts in enumerate([*source, [""]]) for _ in parts]
    of_pieces = attention[rows][:, columns]
    for source_token, target_token in copied:
        first_row = rows.index(target_token)
        first_column = columns.index(source_token)
        n_rows = len(target[target_token])
        n_columns = len(source[source_token])
        # The space before a copy is a piece of its own, and belongs to it.
        row_before = first_row - int(target[target_token - 1 : target_token] == [[_SPACE]])
        column_before = first_column - int(source[source_token - 1 : source_token] == [[_SPACE]])
        of_pieces[row_before : first_row + n_rows] = 0.0
        of_pieces[:, column_before : first_column + n_columns] = 0.0
        for step in range(max(n_rows, n_columns)):
            row = first_row + min(step, n_rows - 1)
            column = first_column + min(step, n_columns - 1)
            of_pieces[row, column] = _CERTAIN
    source_pieces = [piece for parts in source for piece in parts]
    target_pieces = [piece for parts in target for piece in parts]
    return align_words(of_pieces, source_pieces, target_pieces)


def _draft(segments: Sequence[Segment], found: Sequence[Hypothesis], texts: Sequence[str]) -> Draft:
    """One draft of a line's segments; `texts` have names for what is copied."""
    whole = True
    text = ""
    source_tokens = 0
    for segment, named in zip(segments, texts, strict=True):
        whole = whole and _is_whole(segment, named)
        text += _written(segment, named) + segment.space
        source_tokens += len(segment.request.tokens)
    return Draft(
        text=_one_line(text).strip(),
        source_tokens=source_tokens,
        target_tokens=sum(len(one.tokens) for one in found),
        finished=all(one.finished for one in found),
        whole=whole,
    )


def _written(segment: Segment, named: str) -> str:
    """The text of a segment's translation, given with names for what is copied."""
    if segment.capitals:
        from dragoman.text.capitals import in_capitals  # few texts need it

        named = in_capitals(named)
    if not segment.has_names:
        return named
    return written(named, segment.named.copies)


def _is_whole(segment: Segment, named: str) -> bool:
    """Whether a translation has everything that its segment must carry over by name."""
    return not segment.has_names or is_whole(named, segment.named.copies)


def _one_line(text: str) -> str:
    return _LINE_BREAKS.sub(" ", text)
