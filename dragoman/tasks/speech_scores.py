"""How near transcripts come to what was said: word and character error rates, the edits that turn
one into the other as a share of what was said. Knows strings; no sound and no model.

Counted is what is written, with capitals and punctuation; and once more without both, which says
more about hearing. Words stand between spaces, and spaces are characters. The rates are those of
the whole set; their intervals are those of sets drawn from it again and again.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from dragoman.errors import InputError
from dragoman.tasks.text_scores import Share

_DRAWS = 1000
_SEED = 12345
_NUMBERS_AT_ONCE = 2**21
Numbers = NDArray[numpy.int64]


@dataclass(frozen=True)
class SpeechScores:
    """The errors of a transcriber, in percent."""

    wer: Share
    cer: Share
    plain_wer: Share  # without capitals and punctuation
    plain_cer: Share
    recordings: int
    words: int  # that were said

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    def in_lines(self) -> list[str]:
        """For people to read."""
        return [
            f"WER {self.wer.shown()}",
            f"CER {self.cer.shown()}  {self.recordings:,} recordings, {self.words:,} words",
            f"without capitals and punctuation: WER {self.plain_wer.shown()}, "
            f"CER {self.plain_cer.shown()}",
        ]


def score_speech(
    outputs: Sequence[str], references: Sequence[str], intervals: bool = True
) -> SpeechScores:
    """Return the error rates of outputs, each beside what was said."""
    if len(outputs) != len(references) or not references:
        raise InputError(
            f"there are {len(outputs):,} transcripts to score but {len(references):,} references; "
            "each needs one"
        )
    plain_outputs = [plain(text) for text in outputs]
    plain_references = [plain(text) for text in references]
    words = [text.split() for text in references]
    return SpeechScores(
        wer=_rate([text.split() for text in outputs], words, intervals),
        cer=_rate(_spaced(outputs), _spaced(references), intervals),
        plain_wer=_rate(
            [text.split() for text in plain_outputs],
            [text.split() for text in plain_references],
            intervals,
        ),
        plain_cer=_rate(_spaced(plain_outputs), _spaced(plain_references), intervals),
        recordings=len(references),
        words=sum(map(len, words)),
    )


def edits(output: Sequence[str], reference: Sequence[str]) -> int:
    """Return how many insertions, deletions and substitutions lead from one to the other.

    A column of the table of distances is two numbers, whose bits say where it rises and falls from
    row to row (Myers 1999, Hyyrö 2003); so an item of `output` costs a few operations.
    """
    if not reference:
        return len(output)
    places: dict[str, int] = {}
    for place, item in enumerate(reference):
        places[item] = places.get(item, 0) | 1 << place
    every = (1 << len(reference)) - 1
    last = 1 << (len(reference) - 1)
    rises = every
    falls = 0
    distance = len(reference)
    for item in output:
        same = places.get(item, 0)
        kept = same | falls
        diagonal = (((same & rises) + rises) ^ rises) | same
        right_rises = falls | (every & ~(diagonal | rises))
        right_falls = rises & diagonal
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises = (right_rises << 1 | 1) & every
        right_falls = (right_falls << 1) & every
        rises = right_falls | (every & ~(kept | right_rises))
        falls = right_rises & kept
    return distance


def plain(text: str) -> str:
    """Return a text in lower case, with a space in the place of punctuation and signs; an
    apostrophe inside of a word stays."""
    kept = []
    folded = unicodedata.normalize("NFKC", text).lower()
    for index, character in enumerate(folded):
        is_inside = 0 < index < len(folded) - 1 and folded[index - 1 : index + 2 : 2].isalpha()
        if character in "'’" and is_inside:
            kept.append("'")
        elif unicodedata.category(character)[0] in "PS":
            kept.append(" ")
        else:
            kept.append(character)
    return " ".join("".join(kept).split())


def _spaced(texts: Sequence[str]) -> list[str]:
    """The texts as rows of characters, with single spaces."""
    return [" ".join(text.split()) for text in texts]


def _rate(
    outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], with_interval: bool
) -> Share:
    """The edits in percent of what was said."""
    pairs = list(zip(outputs, references, strict=True))
    errors = numpy.array([edits(output, reference) for output, reference in pairs])
    lengths = numpy.array([len(reference) for reference in references])
    value = 100.0 * int(errors.sum()) / max(1, int(lengths.sum()))
    if not with_interval:
        return Share(value)
    low, high = numpy.percentile(_drawn(errors, lengths), [2.5, 97.5])
    return Share(value, float(low), float(high))


def _drawn(errors: Numbers, lengths: Numbers) -> NDArray[numpy.float64]:
    """The rates of sets drawn with replacement."""
    generator = numpy.random.default_rng(_SEED)
    at_once = max(1, _NUMBERS_AT_ONCE // len(errors))
    rates = []
    for first in range(0, _DRAWS, at_once):
        count = min(at_once, _DRAWS - first)
        rows = generator.integers(len(errors), size=(count, len(errors)))
        said = lengths[rows].sum(1).clip(min=1)
        rates.append(100.0 * errors[rows].sum(1) / said)
    return numpy.concatenate(rates)
