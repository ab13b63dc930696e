"""The options of a search. Imports no torch, so that a command's help can list them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dragoman.config import Range, check_ranges
from dragoman.errors import OptionError

_SEEDS = Range(-(2**63), 2**63 - 1)  # what torch's generators accept


@dataclass(frozen=True)
class SearchOptions:
    """How to search for the best outputs. The defaults are the paper's (§6.1)."""

    beam: Annotated[int, "hypotheses kept at each step; 1 is greedy search", Range(1)] = 4
    alpha: Annotated[
        float,
        "exponent of the length penalty ((5 + length) / 6) ^ alpha; 0 favours short output",
        Range(0),
    ] = 0.6
    nbest: Annotated[int, "outputs to return per input, at most the beam", Range(1)] = 1
    min_length: Annotated[int, "minimum tokens of an output, its end included", Range(1)] = 1
    max_length: Annotated[
        int, "maximum tokens of an output, its end included; 0: 50 more than the source", Range(0)
    ] = 0
    max_extra: Annotated[
        int, "how many more tokens than the source an output may have", Range(1)
    ] = 50
    no_repeat_ngram: Annotated[
        int, "no sequence of N tokens may occur twice in an output; 0 allows repeats", Range(0)
    ] = 0
    coverage: Annotated[
        float, "penalty for source tokens that get no attention; 0 is off, try 0.2", Range(0)
    ] = 0.0
    branch: Annotated[
        bool, "return translations that differ in the first token after the prefix"
    ] = False
    sample: Annotated[bool, "draw each token at random by its probability instead of searching"] = (
        False
    )
    temperature: Annotated[
        float, "for sampling: below 1 is more cautious, above 1 more varied", Range(above=0)
    ] = 1.0
    top_k: Annotated[int, "for sampling: draw from the K likeliest tokens; 0 is all", Range(0)] = 0
    top_p: Annotated[
        float,
        "for sampling: draw from the likeliest tokens that sum to this probability",
        Range(above=0, most=1),
    ] = 1.0
    seed: Annotated[
        int, "for sampling: the same seed draws the same for the same lines", _SEEDS
    ] = 1

    def __post_init__(self) -> None:
        check_ranges(self)
        if 0 < self.max_length < self.min_length:
            raise OptionError(
                f"min_length is {self.min_length} and max_length {self.max_length}; "
                "max_length must be 0 or at least min_length"
            )
        if not self.sample and (self.temperature, self.top_k, self.top_p) != (1.0, 0, 1.0):
            raise OptionError(
                "temperature, top_k and top_p apply to sampling; add sample or omit them"
            )
        if self.sample and self.branch:
            raise OptionError("sample and branch exclude each other; omit one of them")
        if (self.sample or self.branch) and self.coverage:
            raise OptionError(
                "coverage ranks the outputs of a search; omit it with sample and branch"
            )
        if self.nbest > self.hypotheses:
            raise OptionError(
                f"nbest is {self.nbest}; it must be at most the beam, which is {self.beam}"
            )

    @property
    def hypotheses(self) -> int:
        """The number of hypotheses followed side by side: the beam of a search; as many as are
        returned if each is drawn or branches off by itself."""
        return self.nbest if self.sample or self.branch else self.beam
