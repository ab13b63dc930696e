"""The options of a search. Imports no torch, so that a command's help can list them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dragoman.errors import OptionError


@dataclass(frozen=True)
class SearchOptions:
    """How to search for the best outputs; the defaults are the paper's (§6.1)."""

    beam: Annotated[int, "hypotheses followed side by side; 1 is greedy search"] = 4
    alpha: Annotated[float, "length penalty ((5 + length) / 6) ^ alpha; 0 favours short output"] = (
        0.6
    )
    nbest: Annotated[int, "translations returned for each sentence, at most the beam"] = 1
    min_length: Annotated[int, "fewest tokens of an output, its end counted"] = 1
    max_length: Annotated[
        int, "most tokens of an output, its end counted; 0: max_extra more than the source"
    ] = 0
    max_extra: Annotated[int, "the output may have this many tokens more than the source"] = 50
    no_repeat_ngram: Annotated[int, "n-grams of this size occur at most once; 0: no limit"] = 0
    coverage: Annotated[
        float, "penalty for source tokens that no output token looked at; 0.2 is a good start"
    ] = 0.0
    branch: Annotated[
        bool, "the translations part at the first token after the prefix, which differs in each"
    ] = False
    sample: Annotated[
        bool, "draw each token by its probability rather than search; draws `nbest` outputs"
    ] = False
    temperature: Annotated[float, "for sampling: below 1 more cautious, above 1 more varied"] = 1.0
    top_k: Annotated[int, "for sampling: draw among the k likeliest tokens; 0: among all"] = 0
    top_p: Annotated[
        float, "for sampling: draw among the likeliest tokens that have this share together"
    ] = 1.0
    seed: Annotated[int, "for sampling: the same seed draws the same for the same lines"] = 1

    def __post_init__(self) -> None:
        self._check_search()
        self._check_lengths()
        self._check_sampling()
        self._check_together()

    @property
    def hypotheses(self) -> int:
        """The number of hypotheses followed side by side: the beam of a search; as many as are
        returned where each is drawn or branches off by itself."""
        return self.nbest if self.sample or self.branch else self.beam

    def _check_search(self) -> None:
        if self.beam < 1:
            raise OptionError(f"beam is {self.beam}; it must be at least 1, which is greedy search")
        if not 0.0 <= self.alpha < float("inf"):
            raise OptionError(
                f"alpha is {self.alpha}; it must be at least 0 (no penalty); the paper has 0.6"
            )
        if self.nbest < 1:
            raise OptionError(f"nbest is {self.nbest}; it must be at least 1")
        if self.nbest > self.hypotheses:
            raise OptionError(
                f"nbest is {self.nbest}; it must lie between 1 and the beam, {self.beam}, "
                "so widen the beam"
            )
        if not 0.0 <= self.coverage < float("inf"):
            raise OptionError(
                f"coverage is {self.coverage}; it must be 0 (off) or more, 0.2 is a good start"
            )

    def _check_lengths(self) -> None:
        if self.max_extra < 1:
            raise OptionError(
                f"max_extra is {self.max_extra}; it must be at least 1, the paper has 50"
            )
        if self.min_length < 1 or 0 < self.max_length < self.min_length or self.max_length < 0:
            raise OptionError(
                f"min_length is {self.min_length} and max_length {self.max_length}; "
                "the first must be at least 1 and the second 0 or no less than it"
            )
        if self.no_repeat_ngram < 0:
            raise OptionError(
                f"no_repeat_ngram is {self.no_repeat_ngram}; it must be 0 (off) or a size"
            )

    def _check_sampling(self) -> None:
        if not self.temperature > 0.0 or self.top_k < 0 or not 0.0 < self.top_p <= 1.0:
            raise OptionError(
                f"temperature is {self.temperature}, top_k {self.top_k} and top_p {self.top_p}; "
                "the first must be above 0, the second 0 or more, "
                "the third above 0 and at most 1"
            )
        defaults = (self.temperature, self.top_k, self.top_p) == (1.0, 0, 1.0)
        if not self.sample and not defaults:
            raise OptionError(
                "temperature, top_k and top_p apply to sampling; add sample or omit them"
            )

    def _check_together(self) -> None:
        if self.sample and self.branch:
            raise OptionError(
                "sample and branch exclude each other; a drawn output branches by itself"
            )
        if (self.sample or self.branch) and self.coverage:
            raise OptionError(
                "coverage ranks the outputs of a search; it cannot be used with sample or branch"
            )
