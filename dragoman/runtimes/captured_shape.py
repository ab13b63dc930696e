"""The shapes for which graphs are captured: few, so that a graph serves many searches. The batch is
rounded up to a power of two, the width and the positions to a multiple of 16 (of 256 where there is
no encoder). Knows numbers only."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.decoding.search_options import SearchOptions
from dragoman.model.model_config import ModelConfig
from dragoman.runtimes.beginning import Beginning

_ROUND = 16
_ROUND_TEXT = 256


@dataclass(frozen=True)
class Shape:
    """The shape of a plan."""

    rows: int
    width: int  # of a source of tokens; 0 for others
    turns: int  # the most tokens of an output
    capacity: int  # positions of the decoder
    head: tuple[int, ...]  # that the decoder reads first; empty without an encoder
    options: SearchOptions
    steered: bool
    has_read: bool = False  # whether the source was read before


def shape_of(config: ModelConfig, start: Beginning, options: SearchOptions, steered: bool) -> Shape:
    """Return the shape of the plan for a search from this beginning."""
    if steered:  # nothing else of the options is in the graph, such as the seed of a draw
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
            steered=steered,
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
        steered=steered,
        has_read=start.read is not None,
    )


def _rounded(number: int, step: int) -> int:
    return -(-number // step) * step
