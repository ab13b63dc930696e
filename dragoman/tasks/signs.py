"""What can be seen of a translation that goes with its quality: how sure the model was, and what
the two strings look like side by side. Knows probabilities and text; no model and no references.

Each sign is one number that costs next to nothing, so that every translation has all of them.
Entropies of whole distributions and coverage by attention would cost another pass of the decoder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# In the order of `signs`.
SIGNS = (
    "certainty",  # mean probability of a token
    "likelihood",  # mean log-probability of a token
    "weakest",  # the lowest probability of a token
    "unsure",  # share of the tokens with a probability below 0.5
    "length",  # log of the number of tokens
    "growth",  # log(target characters / source characters)
    "imbalance",  # how far that is from 0
    "copied",  # share of the target's words that the source has as well
    "capitals",  # share of capitals among the source's letters
    "digits",  # share of digits among the source's characters
    "word_length",  # characters of a source word
    "runs",  # mean probability that all tokens of six characters in a row are right
    "spread",  # standard deviation of the tokens' probabilities
    "words",  # log of the number of source words
)
_LEAST = -20.0  # log-probability
_RUN = 6  # characters: the longest that chrF compares


@dataclass(frozen=True)
class Evidence:
    """A translation to be judged."""

    log_probs: Sequence[float]  # of the tokens and of the end
    source: str = ""
    target: str = ""
    pieces: Sequence[str] = ()  # of the target's tokens


def certainty(log_probs: Sequence[float] | Floats) -> float:
    """Return the mean probability of the tokens; 0 if there are none.

    A token that could not be (-inf, NaN) counts as 0 instead of outweighing the others.
    """
    if not len(log_probs):
        return 0.0
    return float(_probabilities(log_probs).mean())


def signs(evidence: Evidence) -> Floats:
    """Return a number for each of SIGNS, all of them finite."""
    probabilities = _probabilities(evidence.log_probs)
    if not len(probabilities):
        probabilities = np.zeros(1)
    with np.errstate(divide="ignore"):
        log_probs = np.maximum(np.log(probabilities), _LEAST)
    source = evidence.source.strip()
    target = evidence.target.strip()
    growth = math.log((len(target) + 1) / (len(source) + 1))
    letters = [letter for letter in source if letter.isalpha()]
    words = source.split()
    values = (
        probabilities.mean(),
        log_probs.mean(),
        probabilities.min(),
        (probabilities < 0.5).mean(),
        math.log(len(probabilities)),
        growth,
        abs(growth),
        _copied(words, target.split()),
        _share(sum(letter.isupper() for letter in letters), len(letters)),
        _share(sum(letter.isdigit() for letter in source), len(source)),
        _share(len(source), len(words)),
        _right_runs(log_probs, _widths(evidence, len(log_probs))),
        probabilities.std(),
        math.log(len(words) + 1),
    )
    return np.array(values, np.float64)


def _probabilities(log_probs: Sequence[float] | Floats) -> Floats:
    values = np.asarray(log_probs, np.float64)
    return np.nan_to_num(np.exp(np.minimum(values, 0.0)))


def _right_runs(log_probs: Floats, widths: Sequence[int]) -> float:
    """Return the mean probability that six characters in a row are right, as if one token said
    nothing of another; `widths` are the characters of the first tokens."""
    token = np.repeat(np.arange(len(widths)), widths)  # that each character is of
    if not len(token):
        return 0.0
    reach = min(_RUN, len(token)) - 1
    first = token[: len(token) - reach]
    last = token[reach:]
    before = np.concatenate([[0.0], np.cumsum(log_probs)])
    return float(np.exp(before[last + 1] - before[first]).mean())


def _widths(evidence: Evidence, count: int) -> list[int]:
    """Return how many characters each token has, of `count` with the end. All have equally many
    where it is not known which is which, as in a line that was translated in parts."""
    pieces = evidence.pieces
    if pieces and count - len(pieces) in (0, 1):
        return [len(piece.replace("▁", "")) for piece in pieces]
    characters = len("".join(evidence.target.split()))
    return [max(1, round(characters / count))] * count


def _copied(source: list[str], target: list[str]) -> float:
    known = {word.casefold() for word in source}
    return _share(sum(word.casefold() in known for word in target), len(target))


def _share(count: int, of: int) -> float:
    return count / max(1, of)
