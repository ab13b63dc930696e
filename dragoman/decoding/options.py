"""The options of a search. Imports no torch, so that a command's help can list them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dragoman.errors import OptionError


@dataclass(frozen=True)
class SearchOptions:
    """How the best translations are looked for; the defaults are the paper's (§6.1)."""

    beam: Annotated[int, "hypotheses followed side by side; 1 is greedy search"] = 4
    alpha: Annotated[float, "length penalty ((5 + length) / 6) ^ alpha; 0 favours short output"] = 0.6
    nbest: Annotated[int, "translations returned for each sentence, at most the beam"] = 1
    max_extra: Annotated[int, "the output may have this many tokens more than the source"] = 50

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise OptionError(f"beam is {self.beam}; it must be at least 1, which is greedy search")
        if not 0.0 <= self.alpha < float("inf"):
            raise OptionError(f"alpha is {self.alpha}; it must be 0 (no length penalty) or more, the paper has 0.6")
        if not 1 <= self.nbest <= self.beam:
            raise OptionError(f"nbest is {self.nbest}; it must lie between 1 and the beam, {self.beam}, so widen the beam")
        if self.max_extra < 1:
            raise OptionError(f"max_extra is {self.max_extra}; it must be at least 1, the paper has 50")
