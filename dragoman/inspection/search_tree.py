"""The search for a translation as a tree: all that entered the beam, step by step.

Knows the record of a search and pieces; no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.decoding.hypothesis import length_penalty
from dragoman.decoding.step import NEVER
from dragoman.decoding.trace import Record
from dragoman.tasks.parse import Parser
from dragoman.tasks.text_to_text import TextToText
from dragoman.tasks.translate import Translator


@dataclass
class _Node:
    """A piece that entered the beam, after the pieces of its parents."""

    id: int
    parent: int | None
    piece: str
    log_probability: float
    score: float  # of the text up to here
    kept: bool  # whether the search went on from here, or ended
    best: bool  # whether it is part of the translation


def search_tree(
    record: Record, best: Sequence[int], alpha: float, model: Translator | Parser | TextToText
) -> list[dict[str, Any]]:
    """Return the start and all that entered the beam after it; what was drawn twice is one node.

    `best` are the tokens of the translation, `alpha` is the exponent of the length penalty.
    """
    nodes = [_Node(0, None, "<s>", 0.0, 0.0, True, True)]
    known: dict[tuple[int, int], int] = {}  # (parent, token) -> node
    columns = [values[:, 0].tolist() for values in record]
    here = [0] * len(columns[0][0]) if columns[0] else []
    for length, step in enumerate(zip(*columns, strict=True), 1):
        before = here
        here = []
        penalty = length_penalty(float(length), alpha)
        best_token = list(best[length - 1 : length])
        for token, log_probability, total, beam in zip(*step, strict=True):
            if total <= NEVER:
                here.append(-1)
                continue
            parent = nodes[before[beam]]
            if (parent.id, token) not in known:
                known[parent.id, token] = len(nodes)
                parent.kept = True
                node = _Node(
                    id=len(nodes),
                    parent=parent.id,
                    piece=model.tokenizer.pieces([token], "target")[0],
                    log_probability=round(log_probability, 4),
                    score=round(total / penalty, 4),
                    kept=token == model.description.frame.end,
                    best=parent.best and best_token == [token],
                )
                nodes.append(node)
            here.append(known[parent.id, token])
    return [asdict(node) for node in nodes]
