"""The search: one loop for beam, sampling, branches and terms. Knows probabilities and a state; no
text and no model.

At every position the chooser takes K continuations of the live hypotheses. Those that end are
finished and leave the beam; the next position fills it again from those still alive. A sentence is
over when nothing alive can enter the n best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

import torch
from torch import Tensor

from dragoman.decoding.choosers import Branches, Drawn, Likeliest, likeliest
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.rules import Rules
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Choice, Chooser, S, Step, length_penalty
from dragoman.decoding.trace import Trace
from dragoman.kernels import decode as kernels


@torch.no_grad()
def search(
    step: Step[S],
    state: S,
    max_lengths: Tensor,
    options: SearchOptions,
    bos: int,
    eos: int,
    prefixes: Sequence[Sequence[int]] = (),
    chooser: Chooser | None = None,
    normalised: bool = False,
    traces: list[Trace] | None = None,
    spared: Sequence[Sequence[int]] = (),
) -> list[list[Hypothesis]]:
    """The n best outputs of each sentence, best first, and always at least one.

    max_lengths (B,), on the step's device, are at least 1: the most tokens each output may have,
    its end counted. What has not ended by then is taken as it is, after everything that has. Where
    the step gives nothing but NaN or -inf, the one hypothesis is empty and its score -inf.
    `prefixes` are the tokens each output begins with; all have the same length where the options
    ask for branches; `spared` are tokens that may complete an n-gram said before. `normalised`:
    what the step gives are log-probabilities already. The record of the search is left in `traces`
    for whoever wants it.
    """
    if not len(max_lengths):
        return []
    assert int(max_lengths.min()) >= 1, "an output has room for its end at least"
    if chooser is None and options.sample:
        chooser = Drawn(options, max_lengths.device)
    elif chooser is None and options.branch:
        chooser = Branches(max(map(len, prefixes), default=0))
    loop = Loop(step, state, max_lengths, options, bos, eos, chooser)
    loop.normalised = normalised
    if any(map(len, prefixes)) or options.no_repeat_ngram or options.min_length > 1:
        loop.rules = Rules(options, prefixes, len(max_lengths), eos, max_lengths.device, spared)
    while not loop.done:
        loop.advance()
        loop.thin()
    if traces is not None:
        traces.append(loop.trace)
    return loop.trace.hypotheses(options, eos)


class Loop(Generic[S]):
    """The tensors of a search between two positions. They keep their place in memory, so that
    `advance` can be captured."""

    def __init__(
        self,
        step: Step[S],
        state: S,
        max_lengths: Tensor,
        options: SearchOptions,
        bos: int,
        eos: int,
        chooser: Chooser | None = None,
        room: int = 0,
    ) -> None:
        """With `room` for so many positions, the trace keeps its place as well."""
        self.step, self.state, self.options, self.chooser = step, state, options, chooser
        self._bos, self._eos = bos, eos
        self.rules: Rules | None = None
        self.normalised = False
        shape, device = (len(max_lengths), options.beam), max_lengths.device
        self.max_lengths = max_lengths.clone()
        self.tokens = torch.empty(shape, dtype=torch.long, device=device)
        self.live = torch.empty(shape, device=device)  # log-probabilities; -inf where nothing lives
        self.finished = torch.empty(
            len(max_lengths), options.nbest, device=device
        )  # the n best scores, best first
        self.over = torch.zeros(len(max_lengths), dtype=torch.bool, device=device)
        self.running = torch.ones(1, dtype=torch.bool, device=device)
        self.length = torch.zeros(
            1, dtype=torch.long, device=device
        )  # positions done, for the device
        self.trace = Trace(max_lengths, options.beam, room)
        self.reset(max_lengths)

    def reset(self, max_lengths: Tensor) -> None:
        """Back to the first position."""
        self.max_lengths.copy_(max_lengths)
        self.tokens.fill_(self._bos)
        self.live.fill_(NEVER)
        self.live[:, : self.options.beam if self.options.sample else 1] = (
            0.0  # where beams start alike, one speaks for all
        )
        self.finished.fill_(NEVER)
        self.over.fill_(False)
        self.length.zero_()
        self.trace.reset(max_lengths)
        self.positions = 0  # positions done, for us
        self.done = False

    def advance(self) -> None:
        """One position further."""
        logits = self.step(self.tokens, self.state)
        plain = self.chooser is None and self.rules is None and not self.normalised
        choice = self._advance_fused(logits) if plain else None
        if choice is None:
            choice = likeliest(self.live, logits) if plain else self._choice(logits)
            self._take(choice)
        self.trace.add(choice, self.length)
        self.length += 1
        self.positions += 1
        self.running.copy_((~self.over).any())
        self.tokens.copy_(choice.tokens)
        self.state.reorder(choice.beams)
        if self.rules is not None:
            self.rules.follow(choice.tokens, choice.beams)

    def _choice(self, logits: Tensor) -> Choice:
        log_probs = logits if self.normalised else logits.log_softmax(-1, dtype=torch.float32)
        if self.rules is not None:
            self.rules.apply(log_probs, self.positions)
        return (self.chooser or Likeliest()).choose(self.live, log_probs, self.positions)

    def _take(self, choice: Choice) -> None:
        """What ends is finished; the others live on, unless the sentence is over."""
        ended = choice.tokens == self._eos
        scores = choice.totals.masked_fill(~ended, NEVER) / length_penalty(
            self.length + 1.0, self.options.alpha
        )
        best = torch.cat([self.finished, scores], dim=1)
        self.finished.copy_(
            best.amax(1, keepdim=True)
            if self.options.nbest == 1
            else best.topk(self.options.nbest).values
        )
        self.live.copy_(choice.totals.masked_fill(ended, NEVER))
        self.over.copy_(self._hopeless() | (self.max_lengths <= self.length + 1))
        self.live.masked_fill_(self.over[:, None], NEVER)

    def _advance_fused(self, logits: Tensor) -> Choice | None:
        """The likeliest, taken, in two kernels; None where there are none."""
        found = kernels.best_beams(
            logits,
            self.live,
            self.finished,
            self.over,
            self.max_lengths,
            self.length,
            self.options.alpha,
            self._eos,
        )
        return None if found is None else Choice(*found)

    def thin(self) -> None:
        """Lets the sentences that are over leave, as soon as there are enough of them."""
        running = int((~self.over).sum())  # the one synchronisation of a step
        self.done = running == 0
        left = self.trace.thin(self.over, running)
        if left is not None:
            for part in (self.state, self.chooser, self.rules):
                if part is not None:
                    part.keep(left)
            for name in ("tokens", "live", "finished", "max_lengths", "over"):
                setattr(self, name, getattr(self, name)[left])

    def _hopeless(self) -> Tensor:
        """(B,) True where no live hypothesis can end better than the worst of the n best, or none
        lives.

        Log-probabilities are at most 0 and the penalty grows with the length (or is 1 throughout,
        alpha being 0). So the most that a live hypothesis can reach is its present sum under the
        penalty of the maximum length.
        """
        best = self.live.amax(1) / length_penalty(self.max_lengths.float(), self.options.alpha)
        return best <= self.finished[:, -1]
