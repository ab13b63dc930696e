"""Sentences that are translated with names in place of what must be copied, and the way back from
their tokens. Knows segments, a tokeniser and hypotheses; no runtime and no search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.runtimes.runtime import Request
from dragoman.tasks.segment import Segment
from dragoman.text.stand_ins import StandIns, with_stand_ins
from dragoman.text.tokenizer import Tokenizer

_SPACE = "▁"


@dataclass(frozen=True)
class Disguised:
    """A segment whose request has names in place of what must be copied."""

    segment: Segment
    names: StandIns
    request: Request


def disguised(segment: Segment, tokenizer: Tokenizer) -> Disguised | None:
    """Return the segment with names; None where it cannot have any, or is held to terms or to a
    beginning, which may be about what the names replace."""
    request = segment.request
    if request.terms or request.prefix:
        return None
    names = with_stand_ins(segment.named.text)
    if names is None:
        return None
    (tokens,) = tokenizer.encode([names.text], "source")
    return Disguised(segment, names, replace(request, tokens=tokens))


def revealed(found: Hypothesis, names: StandIns, tokenizer: Tokenizer) -> Hypothesis | None:
    """Return a translation with what the names stand for; None unless each of them came out once.

    What is copied has the probability of its name, all of it in the first of its tokens.
    """
    for name, span in names.spans:
        pieces = tokenizer.pieces(found.tokens, "target")
        places = _places(name, pieces)
        if len(places) != 1 or "".join(pieces).count(name) != 1:
            return None
        first, end = places[0]
        tokens = _tokens_of(span, pieces[first], tokenizer)
        if not tokens:
            return None
        certain = [0.0] * (len(tokens) - 1)
        log_probs = [sum(found.log_probs[first:end]), *certain]
        found = replace(
            found,
            tokens=(*found.tokens[:first], *tokens, *found.tokens[end:]),
            log_probs=(*found.log_probs[:first], *log_probs, *found.log_probs[end:]),
        )
    return found


def _places(name: str, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Where pieces spell a name and nothing else, as a word of its own."""
    places = []
    for first in range(len(pieces)):
        spelt = ""
        for end in range(first, min(len(pieces), first + len(name) + 1)):
            spelt += pieces[end]
            if spelt.lstrip(_SPACE) == name and _is_word(pieces, first, end + 1):
                places.append((first, end + 1))
                break
    # A piece that is nothing but a space belongs to the name behind it, which was found with it.
    return [one for one in places if (one[0] - 1, one[1]) not in places]


def _is_word(pieces: Sequence[str], first: int, end: int) -> bool:
    """Whether nothing is written onto these pieces: "Annas" is another word."""
    before = pieces[first - 1][-1:] if first and not pieces[first].startswith(_SPACE) else ""
    behind = pieces[end][:1] if end < len(pieces) else ""
    return not (before.isalnum() or behind.isalnum())


def _tokens_of(span: str, first_piece: str, tokenizer: Tokenizer) -> list[int]:
    """The tokens of what a name stands for, with a space before it where the name had one; none
    where the tokeniser cannot write it so."""
    (tokens,) = tokenizer.encode([span], "target")
    if first_piece.startswith(_SPACE):
        return tokens
    pieces = tokenizer.pieces(tokens[:1], "target")
    return tokens[1:] if pieces == [_SPACE] else []
