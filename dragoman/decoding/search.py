"""The search: one loop for beam, sampling, branches and terms. Knows probabilities and a state; no
text and no model.

At every position the chooser takes K continuations of the live hypotheses. Those that end are
finished and leave the beam; the next position fills it again from those still alive. A sentence is
over when nothing alive can enter the n best.

Shapes: B sentences, K beams, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Generic

import torch
from torch import Tensor

from dragoman.decoding.choosers import Branches, Drawn, Likeliest, likeliest
from dragoman.decoding.giving_way import give_way
from dragoman.decoding.hypothesis import Hypothesis, length_penalty
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Choice, Chooser, Problem, S
from dragoman.decoding.trace import Trace

if TYPE_CHECKING:
    from dragoman.decoding.rules import Rules


@torch.no_grad()
def search(
    problem: Problem[S], options: SearchOptions, chooser: Chooser | None = None
) -> list[list[Hypothesis]]:
    """Return the n best outputs of each sentence, best first, and always at least one.

    What has not ended by its maximum length is taken as it is, and ranks behind everything that
    has. Where the step returns nothing but NaN or -inf, the one hypothesis is empty and its score
    -inf. Where the options ask for branches, all prefixes have the same length.
    """
    from dragoman.decoding.rules import rules_for

    if not len(problem.max_lengths):
        return []
    rules = rules_for(problem, options)
    return Loop(problem, options, rules, chooser).run()


class Loop(Generic[S]):
    """The tensors of a search between two positions. They keep their place in memory, so that
    `turn` can be captured."""

    # Whether another search may run between two positions: not where both share one memory.
    gives_way = True

    def __init__(
        self,
        problem: Problem[S],
        options: SearchOptions,
        rules: Rules | None = None,
        chooser: Chooser | None = None,
        capacity: int = 0,
    ) -> None:
        """With a `capacity` of that many positions, the trace keeps its place as well."""
        max_lengths = problem.max_lengths
        device = max_lengths.device
        n_rows = len(max_lengths)
        self.problem = problem
        self.options = options
        self.rules = rules
        self.chooser = chooser or _default_chooser(problem, options)
        self.state = problem.state
        self.max_lengths = max_lengths.clone()
        shape = (n_rows, options.hypotheses)
        self.tokens = torch.empty(shape, dtype=torch.long, device=device)
        # Sums of log-probabilities; -inf where nothing lives.
        self.live = torch.empty(shape, device=device)
        # The n best scores, best first.
        self.finished = torch.empty(n_rows, options.nbest, device=device)
        self.over = torch.zeros(n_rows, dtype=torch.bool, device=device)
        # Sentences that are not over, and positions done, both on the device.
        self.running = torch.full((1,), n_rows, device=device)
        self.length = torch.zeros(1, dtype=torch.long, device=device)
        self.trace = Trace(max_lengths, options.hypotheses, capacity)
        self.positions = 0
        self.done = False
        self.reset(max_lengths)

    def reset(self, max_lengths: Tensor) -> None:
        """Go back to before the first position."""
        self.max_lengths.copy_(max_lengths)
        self.tokens.fill_(self.problem.start)
        # Where all beams start alike, one of them speaks for all.
        first_alive = self.options.hypotheses if self.options.sample else 1
        self.live.fill_(NEVER)
        self.live[:, :first_alive] = 0.0
        self.finished.fill_(NEVER)
        self.over.fill_(False)
        self.length.zero_()
        self.trace.reset(max_lengths)
        self.positions = 0
        self.done = False

    def run(self) -> list[list[Hypothesis]]:
        """Search to the end and return the n best outputs of each sentence, best first."""
        assert int(self.max_lengths.min()) >= 1, "an output has room for its end at least"
        for _ in self.stream():
            pass
        return self.hypotheses()

    def stream(self, count: int | None = None) -> Iterator[Tensor]:
        """Yield the tokens (B, K) of the next `count` positions as they are chosen; of all that
        follow by default. They are overwritten by the next."""
        until = math.inf if count is None else self.positions + count
        while not self.done and self.positions < until:
            self.advance()
            newest = self.tokens
            self.thin()
            yield newest
            if self.gives_way and not self.done:
                give_way()

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the n best outputs so far of each sentence, best first."""
        return self.trace.hypotheses(self.options, self.problem.end)

    def advance(self) -> None:
        """Move one position further."""
        self.turn()
        self.positions += 1

    def look_again(self) -> None:
        """The state was changed from outside: forget where its parts were. Here nobody notes it."""

    def thin(self) -> None:
        """Drop finished sentences from the batch once enough have finished."""
        running = int(self.running)  # the one synchronisation of a position
        self.done = running == 0
        left = self.trace.thin(self.over, running)
        if left is None:
            return
        for part in (self.state, self.chooser, self.rules):
            if part is not None:
                part.keep(left)
        self.tokens = self.tokens[left]
        self.live = self.live[left]
        self.finished = self.finished[left]
        self.max_lengths = self.max_lengths[left]
        self.over = self.over[left]

    def turn(self) -> None:
        """Compute one position: all the work of it that is done on the device."""
        logits = self.problem.step(self.tokens, self.state)
        choice = self._choice(logits)
        self.trace.add(choice, self.length)
        self.length += 1
        self.running.copy_((~self.over).sum())
        self.tokens.copy_(choice.tokens)
        self.state.reorder(choice.beams)
        if self.rules is not None:
            self.rules.follow(choice.tokens, choice.beams)

    def _choice(self, logits: Tensor) -> Choice:
        """The continuations of this position, taken."""
        guided = self.chooser is not None or self.rules is not None
        plain = not guided and not self.problem.normalised
        if plain and self._fused and not self.problem.eager:
            return self._fused_choice(logits)
        choice = likeliest(self.live, logits) if plain else self._guided_choice(logits)
        self._take(choice)
        return choice

    @cached_property
    def _fused(self) -> bool:
        """Whether there are kernels for this search; they are loaded with its first position."""
        from dragoman.kernels import beam_choice

        device = self.max_lengths.device
        return beam_choice.fits(device, self.options.hypotheses, self.options.nbest)

    def _fused_choice(self, logits: Tensor) -> Choice:
        """The likeliest continuations, chosen and taken by kernels."""
        from dragoman.kernels import beam_choice

        standing = beam_choice.Standing(
            live=self.live,
            finished=self.finished,
            over=self.over,
            max_lengths=self.max_lengths,
            length=self.length,
        )
        best = beam_choice.best_beams(logits, standing, self.options.alpha, self.problem.end)
        return Choice(*best)

    def _guided_choice(self, logits: Tensor) -> Choice:
        """What the rules allow and the chooser chooses."""
        log_probs = logits
        if not self.problem.normalised:
            log_probs = logits.log_softmax(-1, dtype=torch.float32)
        return self._steered_choice(log_probs)

    def _steered_choice(self, log_probs: Tensor) -> Choice:
        if self.rules is not None:
            self.rules.apply(log_probs, self.positions)
        chooser = self.chooser or Likeliest()
        return chooser.choose(self.live, log_probs, self.positions)

    def _take(self, choice: Choice) -> None:
        """What ends is finished; the others live on, unless the sentence is over."""
        ended = choice.tokens == self.problem.end
        penalty = length_penalty(self.length + 1.0, self.options.alpha)
        scores = choice.totals.masked_fill(~ended, NEVER) / penalty
        candidates = torch.cat([self.finished, scores], dim=1)
        if self.options.nbest == 1:
            self.finished.copy_(candidates.amax(1, keepdim=True))
        else:
            self.finished.copy_(candidates.topk(self.options.nbest).values)
        alive = choice.totals.masked_fill(ended, NEVER)
        self.live.copy_(alive)
        at_limit = self.max_lengths <= self.length + 1
        over = self._hopeless() | at_limit
        if self.problem.eager:
            over |= self.finished[:, -1] > NEVER
        self.over.copy_(over)
        self.live.masked_fill_(self.over[:, None], NEVER)

    def _hopeless(self) -> Tensor:
        """(B,) True where no live hypothesis can end better than the worst of the n best, or none
        lives.

        Log-probabilities are at most 0 and the penalty grows with the length (or is 1 throughout,
        alpha being 0). So the most that a live hypothesis can reach is its present sum under the
        penalty of the maximum length.
        """
        penalty = length_penalty(self.max_lengths.float(), self.options.alpha)
        best = self.live.amax(1) / penalty
        return best <= self.finished[:, -1]


def _default_chooser(problem: Problem[S], options: SearchOptions) -> Chooser | None:
    """The chooser that the options ask for; None for plain beam search."""
    if options.sample:
        return Drawn(options, problem.max_lengths.device)
    if options.branch:
        return Branches(max(map(len, problem.prefixes), default=0))
    return None
