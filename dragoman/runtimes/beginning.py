"""How a search with a model begins: what the encoder reads and what the decoder has already said.
Knows tensors and the model; no text.

B sentences, S source positions, K beams.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem, Rows, Step
from dragoman.model.cache import DecoderState
from dragoman.model.transformer import Transformer

if TYPE_CHECKING:
    from dragoman.decoding.rules import Rules
    from dragoman.decoding.term_tree import Wanted
    from dragoman.decoding.terms import Terms

Searched = Problem[DecoderState]


@dataclass(frozen=True)
class Beginning:
    """The start of a search for B outputs."""

    source: Tensor | None  # (B, S) tokens, or what else the encoder reads; None without an encoder
    lengths: Tensor | None  # (B,) of the source; None where every row is full
    head: tuple[int, ...]  # read by every output before its first token, at least one
    max_lengths: Tensor  # (B,) the most tokens of each output, its end counted
    end: int  # the token that finishes an output
    read: DecoderState | None = None  # of a model that has read the source before


@dataclass(frozen=True)
class MustSay:
    """Terms that the outputs must say."""

    wanted: Wanted
    joins: Tensor  # (V,) True for tokens that are written onto the word before them


@dataclass(frozen=True)
class Guide:
    """What steers a search besides its options."""

    prefixes: Rows = ()  # the tokens each output begins with
    spared: Rows = ()  # tokens of each sentence that may complete an n-gram said before
    once: Rows = ()  # tokens of each sentence that may be said once
    # What each output must keep to; None: what the options say.
    rules: Callable[[Searched, SearchOptions], Rules | None] | None = None
    terms: MustSay | None = None
    eager: bool = False  # whether a sentence is over once n outputs have finished

    def steers(self, options: SearchOptions) -> bool:
        """Whether this is anything but plain search with the options."""
        drawn = options.sample or options.branch
        has_prefix = any(map(len, self.prefixes))
        ruled = options.no_repeat_ngram or options.min_length > 1 or has_prefix or self.says_once
        custom = self.terms is not None or self.rules is not None or self.eager
        return bool(drawn or ruled or custom)

    @property
    def says_once(self) -> bool:
        """Whether any output may say some tokens only once."""
        return any(map(len, self.once))

    def loop(self, problem: Searched, options: SearchOptions, capacity: int = 0) -> Loop[Any]:
        """Return the search of this problem."""
        from dragoman.decoding.rules import rules_for

        rules = (self.rules or rules_for)(problem, options)
        chooser = self.chooser(problem, options.hypotheses)
        return Loop(problem, options, rules, chooser, capacity)

    def chooser(self, problem: Searched, beams: int) -> Terms | None:
        """Return what chooses where terms must be said. It looks at where the decoder looks, which
        the state records from now on."""
        if self.terms is None:
            return None
        from dragoman.decoding.terms import Terms
        from dragoman.runtimes.cross_attention import middle

        record: list[Tensor] = []
        if problem.state.record is None:
            problem.state.record = record
        looks = partial(middle, problem.state.record)
        return Terms(self.terms.wanted, problem, beams, self.terms.joins, looks)

    def for_rows(self, count: int) -> Guide:
        """Return a guide of as many outputs, of which the last are free."""
        prefixes = _filled_up(self.prefixes, count)
        once = _filled_up(self.once, count)
        if self.terms is None:
            return replace(self, prefixes=prefixes, once=once)
        wanted = self.terms.wanted
        terms = _filled_up(wanted.terms, count)
        places = _filled_up(wanted.places, count)
        more = replace(wanted, terms=terms, places=places)
        terms_for_rows = replace(self.terms, wanted=more)
        return replace(self, prefixes=prefixes, once=once, terms=terms_for_rows)

    def problem(
        self, step: Step[DecoderState], state: DecoderState, beginning: Beginning
    ) -> Searched:
        """Return the search problem of a state that has read the beginning."""
        return Problem(
            step=step,
            state=state,
            max_lengths=beginning.max_lengths,
            start=beginning.head[-1],
            end=beginning.end,
            prefixes=self.prefixes,
            spared=self.spared,
            once=self.once,
            eager=self.eager,
        )


def _filled_up(rows: Sequence[Sequence[Any]], count: int) -> Sequence[Sequence[Any]]:
    """As many rows, of which the last are empty; none where there are none."""
    if not rows:
        return rows
    missing = count - len(rows)
    return [*rows, *([()] * missing)]


def begin(model: Transformer, beginning: Beginning, beams: int) -> DecoderState:
    """Read the source, unless it has been read, and all of the head but its last token."""
    if beginning.read is None:
        state = model.start(beginning.source, beginning.lengths)
    else:
        state = beginning.read.anew()
    read_head(model, state, beginning, beams)
    return state


def read_head(model: Transformer, state: DecoderState, start: Beginning, beams: int) -> None:
    """Read all of the head but its last token."""
    if start.source is None:
        read_text(model, state, start.head[:-1], beams)
        return
    shape = (len(start.max_lengths), beams)
    for token in start.head[:-1]:
        # What follows is given already, so that no logits are needed.
        model.decoder.step(torch.full(shape, token, device=start.max_lengths.device), state)


def read_text(
    model: Transformer, state: DecoderState, tokens: Sequence[int], beams: int = 1
) -> None:
    """Let a decoder without encoder read these tokens in one pass, forgetting what it read
    before."""
    device = state.position.device
    if tokens:
        model.decoder.read(torch.tensor([tokens], device=device), state, beams)
        return
    state.begin(0, beams, embedded(model))


def embedded(model: Transformer) -> Tensor:
    """Return one embedded token, (1, D), of the type and on the device that the decoder uses."""
    embedding = model.decoder.embeddings.tokens
    token = torch.zeros(1, dtype=torch.long, device=embedding.weight.device)
    found: Tensor = embedding(token)
    return found
