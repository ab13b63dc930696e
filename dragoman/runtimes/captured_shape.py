"""The shapes for which graphs are captured: few, so that a graph serves many searches. The batch is
rounded up to a power of two, the width and the positions to a multiple of 16 (of 256 where there is
no encoder). Knows numbers only."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.term_tree import Extent, extent_of
from dragoman.model.model_config import ModelConfig
from dragoman.runtimes.beginning import Beginning, Guide

_ROUND = 16
_ROUND_TEXT = 256


@dataclass(frozen=True)
class Steering:
    """What steers a captured search: how many tokens its prefixes have at most, and how large the
    tables of its terms are."""

    prefix: int = 0
    terms: Extent | None = None


@dataclass(frozen=True)
class Shape:
    """The shape of a plan."""

    rows: int
    width: int  # of a source of tokens; 0 for others
    turns: int  # the most tokens of an output
    capacity: int  # positions of the decoder
    head: tuple[int, ...]  # that the decoder reads first; empty without an encoder
    options: SearchOptions
    # Whether only the model's step is captured, for rules and draws that ask the host for more.
    step_alone: bool
    steering: Steering | None = None
    has_read: bool = False  # whether the source was read before


def can_steer(guide: Guide, options: SearchOptions) -> bool:
    """Return whether a whole turn of such a search can be captured: prefixes, terms and a minimum
    length are tensors, and nothing else is asked for."""
    drawn = options.sample or options.branch
    remembers = options.no_repeat_ngram or guide.says_once
    return not (drawn or remembers or guide.rules is not None or guide.eager)


def shape_of(config: ModelConfig, start: Beginning, options: SearchOptions, guide: Guide) -> Shape:
    """Return the shape of the plan for a search from this beginning."""
    step_alone = not can_steer(guide, options)
    if step_alone:  # nothing else of the options is in the graph, such as the seed of a draw
        options = SearchOptions(options.hypotheses)
    turns = int(start.max_lengths.max())
    before = len(start.head) - 1  # positions that are read before the first turn
    if start.source is None:
        read = min(before + turns, config.max_length)
        capacity = _rounded(read, _ROUND_TEXT)
        most = _rounded(config.max_length, _ROUND)
        return Shape(
            rows=1,
            width=0,
            turns=_rounded(turns, _ROUND_TEXT),
            capacity=min(capacity, most),
            head=(),
            options=options,
            step_alone=step_alone,
            steering=None if step_alone else _steering(guide, options, 0),
        )
    rows = len(start.max_lengths)
    turns = _rounded(turns, _ROUND)
    width = 0
    if config.input == "tokens":
        width = _rounded(start.source.size(1), _ROUND)
    return Shape(
        rows=1 << (rows - 1).bit_length(),
        width=width,
        turns=turns,
        capacity=turns + before,
        head=start.head,
        options=options,
        step_alone=step_alone,
        steering=None if step_alone else _steering(guide, options, width),
        has_read=start.read is not None,
    )


def _steering(guide: Guide, options: SearchOptions, width: int) -> Steering | None:
    if not guide.steers(options):
        return None
    longest = max(map(len, guide.prefixes), default=0)
    prefix = _rounded(longest, _ROUND)
    if guide.terms is None:
        return Steering(prefix)
    extent = extent_of(guide.terms.wanted, width)
    return Steering(prefix, extent.rounded())


def _rounded(number: int, step: int) -> int:
    return -(-number // step) * step
