"""The options of a search. Imports no torch, so that a command's help can list them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dragoman.errors import OptionError


@dataclass(frozen=True)
class SearchOptions:
    """How the best translations are looked for; the defaults are the paper's (§6.1)."""

    beam: Annotated[int, "hypotheses followed side by side; 1 is greedy search"] = 4
    alpha: Annotated[float, "length penalty ((5 + length) / 6) ^ alpha; 0 favours short output"] = (
        0.6
    )
    nbest: Annotated[int, "translations returned for each sentence, at most the beam"] = 1
    min_length: Annotated[int, "tokens that an output has at least, its end counted"] = 1
    max_length: Annotated[
        int, "tokens that an output has at most, its end counted; 0: 50 more than the source"
    ] = 0
    max_extra: Annotated[int, "the output may have this many tokens more than the source"] = 50
    no_repeat_ngram: Annotated[int, "n tokens in a row are said once only; 0 allows repeats"] = 0
    coverage: Annotated[
        float, "penalty for source tokens that no output token looked at; 0.2 is a good start"
    ] = 0.0
    branch: Annotated[
        bool, "the translations part at the first token after the prefix, which differs in each"
    ] = False
    sample: Annotated[
        bool, "draw each token by its probability rather than search; draws `nbest` outputs"
    ] = False
    temperature: Annotated[float, "of sampling: below 1 more cautious, above 1 more daring"] = 1.0
    top_k: Annotated[int, "of sampling: draw among so many of the likeliest tokens; 0 for all"] = 0
    top_p: Annotated[
        float, "of sampling: draw among the likeliest tokens that have this share together"
    ] = 1.0
    seed: Annotated[int, "of sampling: the same seed draws the same for the same lines"] = 1

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise OptionError(f"beam is {self.beam}; it must be at least 1, which is greedy search")
        if not 0.0 <= self.alpha < float("inf"):
            raise OptionError(
                f"alpha is {self.alpha}; it must be 0 (no length penalty) or more, the paper has 0.6"
            )
        if self.nbest < 1:
            raise OptionError(f"nbest is {self.nbest}; it must be at least 1")
        if self.max_extra < 1:
            raise OptionError(
                f"max_extra is {self.max_extra}; it must be at least 1, the paper has 50"
            )
        if self.min_length < 1 or 0 < self.max_length < self.min_length or self.max_length < 0:
            lengths = f"min_length is {self.min_length} and max_length {self.max_length}"
            raise OptionError(
                f"{lengths}; the first must be at least 1 and the second 0 or no less than it"
            )
        if self.no_repeat_ngram < 0:
            raise OptionError(
                f"no_repeat_ngram is {self.no_repeat_ngram}; it must be 0 (off) or the number of tokens"
            )
        if not 0.0 <= self.coverage < float("inf"):
            raise OptionError(
                f"coverage is {self.coverage}; it must be 0 (off) or more, 0.2 is a good start"
            )
        self._check_ways()

    def _check_ways(self) -> None:
        """Sampling and branches follow as many hypotheses as they return; search may follow more."""
        if not self.temperature > 0.0 or self.top_k < 0 or not 0.0 < self.top_p <= 1.0:
            given = f"temperature is {self.temperature}, top_k {self.top_k} and top_p {self.top_p}"
            raise OptionError(
                f"{given}; the first must be above 0, the second 0 or more, the third above 0 and at most 1"
            )
        if not self.sample and (self.temperature, self.top_k, self.top_p) != (1.0, 0, 1.0):
            raise OptionError(
                "temperature, top_k and top_p say how to draw; they need sample, or leave them away"
            )
        if self.sample and self.branch:
            raise OptionError(
                "sample and branch exclude each other; a drawn output branches by itself"
            )
        if (self.sample or self.branch) and self.coverage:
            raise OptionError(
                "coverage ranks the outputs of a search; it does not go with sample or branch"
            )
        if self.sample or self.branch:
            object.__setattr__(self, "beam", self.nbest)  # each of them is a hypothesis of its own
        elif self.nbest > self.beam:
            raise OptionError(
                f"nbest is {self.nbest}; it must lie between 1 and the beam, {self.beam}, so widen the beam"
            )
