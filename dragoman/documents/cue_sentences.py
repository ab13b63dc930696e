"""Subtitles by sentence: which cues one sentence runs over, its translation as a whole, and the
cuts that give each cue its share of it.

Times never change. Knows cues as strings with marks; what a file of cues looks like is known to the
formats.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from dragoman.documents.cue_turns import Turn, turns_of
from dragoman.documents.line_breaks import break_at, break_lines
from dragoman.documents.segments import SpanAt, read_spans, without_added_stop
from dragoman.text.markup import rewritten
from dragoman.text.markup_transfer import Answer, Ask
from dragoman.text.sentences import split
from dragoman.text.spans import Span

LINE_LENGTH = 42  # characters of a line, if the source keeps to it
MOST_CUES = 8  # that one sentence runs over
MOST_CHARACTERS = 600
MOST_SECONDS = 4.0  # between two cues of a sentence
_KEEPING = 0.98  # of the lines are short enough: the source keeps to it
_PUNCTUATED = 0.3  # of the cues end with a mark: a missing one means that the sentence goes on
_BONUS = 10  # characters that a cut at punctuation may be further away
_FULL_STOPS = ".!?…。！？؟۔।॥።"
_PAUSES = ",;—–-，、；،"
_CLOSERS = "\"'”’»›)]}」』）"
_NOTHING_LEFT = "…"  # of a sentence that has fewer words than cues


@dataclass(frozen=True)
class Cue:
    """What is shown at one time: its text as it is written, without the line end after it."""

    body: str
    start: float = 0.0  # seconds
    end: float = 0.0
    speaker: str = ""  # cues of different speakers are never of one sentence


@dataclass(frozen=True)
class CueSyntax:
    """How a kind of subtitles writes marks, lines and characters."""

    find_marks: Callable[[str], Iterator[SpanAt]]
    line_break: str
    decode: Callable[[str], str] = str
    write: Callable[[Span], str] = lambda span: span.text


@dataclass(frozen=True)
class _Place:
    """A turn and the cue that it is in."""

    cue: int
    turn: int


def translate_cues(cues: Sequence[Cue], syntax: CueSyntax, ask: Ask, language: str) -> list[str]:
    """Return the translated bodies of cues, in a source language."""
    film = _Film(cues, syntax, language)
    asked = without_added_stop(ask)
    for chain in film.chains():
        film.translate(chain, asked)
    return film.bodies()


class _Film:
    """All cues of a file, whose turns are replaced as their translations come."""

    def __init__(self, cues: Sequence[Cue], syntax: CueSyntax, language: str) -> None:
        self._cues = cues
        self._syntax = syntax
        self._language = language
        self._turns = [turns_of(cue.body, syntax.line_break) for cue in cues]
        self._new: dict[tuple[int, int], str] = {}
        turns = [turn for turns in self._turns for turn in turns]
        lines = [self._visible(line) for turn in turns for line in turn.lines]
        short = sum(len(line) <= LINE_LENGTH for line in lines)
        self._keeps_lines = short >= _KEEPING * len(lines)
        ended = sum(_ends(self._visible(turns[-1].text)) for turns in self._turns if turns)
        self._is_punctuated = ended >= _PUNCTUATED * len(cues)

    def chains(self) -> Iterator[list[_Place]]:
        """Yield the turns of each sentence, or of several that share a cue."""
        chain: list[_Place] = []
        size = 0
        for cue, turns in enumerate(self._turns):
            for number, turn in enumerate(turns):
                goes_on = bool(chain) and number == 0 and self._goes_on(chain[-1], cue)
                is_full = len(chain) >= MOST_CUES or size + len(turn.text) > MOST_CHARACTERS
                if chain and (not goes_on or is_full):
                    yield chain
                    chain = []
                    size = 0
                chain.append(_Place(cue, number))
                size += len(turn.text)
        if chain:
            yield chain

    def translate(self, chain: Sequence[_Place], ask: Ask) -> None:
        """Translate what the turns of a chain say together, and give each its share."""
        turns = [self._turns[place.cue][place.turn] for place in chain]
        raw = "\n".join(turn.text for turn in turns)
        answers: list[Answer] = []

        def listen(text: str) -> Answer:
            answers.append(ask(text))
            return answers[-1]

        syntax = self._syntax
        spans = list(read_spans(raw, syntax.find_marks(raw), syntax.decode))
        translation = rewritten(spans, listen, syntax.write)
        if translation == raw:
            return
        pieces = self._cut(translation, turns, answers[0])
        for place, turn, piece in zip(chain, turns, pieces, strict=True):
            lines = self._lines(piece, turn)
            self._new[place.cue, place.turn] = turn.prefix + syntax.line_break.join(lines)

    def bodies(self) -> list[str]:
        """Return the bodies of all cues as they are now."""
        bodies = []
        for cue, turns in enumerate(self._turns):
            out = []
            for number, turn in enumerate(turns):
                text = self._new.get((cue, number), turn.prefix + turn.raw)
                out.append(turn.joint + text + turn.suffix)
            bodies.append("".join(out))
        return bodies

    def _visible(self, raw: str) -> str:
        """Return a text without its marks."""
        spans = read_spans(raw, self._syntax.find_marks(raw), self._syntax.decode)
        return "".join(span.text for span in spans if span.kind == "text").strip()

    def _goes_on(self, place: _Place, following: int) -> bool:
        """Whether the sentence of a cue's last turn goes on in the following cue."""
        cue = self._cues[place.cue]
        next_cue = self._cues[following]
        turn = self._turns[place.cue][place.turn]
        next_turn = self._turns[following][0]
        if following != place.cue + 1 or turn.is_apart or next_turn.is_apart:
            return False
        if next_turn.has_dash or cue.speaker != next_cue.speaker:
            return False
        if next_cue.start - cue.end > MOST_SECONDS or next_cue.start < cue.start:
            return False
        text = self._visible(turn.text)[-MOST_CHARACTERS:]
        next_text = self._visible(next_turn.text)[:MOST_CHARACTERS]
        return self._is_one_sentence(text, next_text)

    def _is_one_sentence(self, text: str, following: str) -> bool:
        if not text or not following:
            return False
        first = following.lstrip(".… \"'“„«¿¡(")[:1]
        if _ends(text):
            is_pause = text.endswith(("...", "…")) and (
                first.islower() or following.startswith(("...", "…"))
            )
            return is_pause or self._is_abbreviation(text, following)
        if first.islower() or text[-1] in _PAUSES:
            return True
        is_title = text == text.upper() or text[-1] == ":"
        return self._is_punctuated and not is_title

    def _is_abbreviation(self, text: str, following: str) -> bool:
        """Whether a sentence that ends with a full stop is not over, as after "Mr."."""
        if not text.endswith("."):
            return False
        sentences = split(f"{text} {following}", self._language)
        ends = accumulate(len(sentence) + len(space) for sentence, space in sentences)
        return following[:1].isupper() and len(text) + 1 not in set(ends)

    def _cut(self, text: str, turns: Sequence[Turn], answer: Answer) -> list[str]:
        """Cut a translation into a piece for each turn."""
        if len(turns) == 1:
            return [text]
        sizes = [len(self._visible(turn.text)) for turn in turns]
        whole = max(sum(sizes), 1)
        shares = [size / whole for size in accumulate(sizes[:-1])]
        aligned = self._aligned_shares(turns, answer) or shares
        wanted = [
            (share + other) / 2 * len(text) for share, other in zip(shares, aligned, strict=True)
        ]
        pieces = break_at(text, wanted, _BONUS)
        pieces += [_NOTHING_LEFT] * (len(turns) - len(pieces))
        return _closed(pieces, self._syntax)

    def _aligned_shares(self, turns: Sequence[Turn], answer: Answer) -> list[float]:
        """Return how much of a translation belongs to the turns up to each cut, by its words."""
        translation, alignment = answer
        words = translation.split()
        if not alignment or not words:
            return []
        ends = list(accumulate(len(word) + 1 for word in words))
        counts = accumulate(len(self._visible(turn.text).split()) for turn in turns[:-1])
        shares = []
        for count in counts:
            gap = _fewest_crossings(alignment, count, len(words))
            shares.append(ends[gap - 1] / ends[-1] if gap else 0.0)
        return shares

    def _lines(self, piece: str, turn: Turn) -> list[str]:
        """Break a piece into lines: as many as the turn had, or more where they are too long."""
        lines = break_lines(piece, turn.lines)
        count = len(turn.lines)
        while self._keeps_lines and count < 3 and self._is_long(lines):
            count += 1
            lines = break_lines(piece, ["x"] * count)
        return lines

    def _is_long(self, lines: Sequence[str]) -> bool:
        return any(len(self._visible(line)) > LINE_LENGTH for line in lines)


def _ends(text: str) -> bool:
    return text.rstrip(_CLOSERS)[-1:] in tuple(_FULL_STOPS)


def _fewest_crossings(alignment: Sequence[tuple[int, int]], count: int, size: int) -> int:
    """Return before which target word to cut, so that few links run from one side to the other.

    The first `count` source words are on the one side.
    """
    before = sorted(target for source, target in alignment if source < count)
    after = sorted(target for source, target in alignment if source >= count)
    best = 0
    fewest = len(before) + len(after) + 1
    for gap in range(size + 1):
        crossing = len(before) - bisect_left(before, gap) + bisect_left(after, gap)
        if crossing < fewest:
            fewest = crossing
            best = gap
    return best


def _closed(pieces: Sequence[str], syntax: CueSyntax) -> list[str]:
    """Close the marks that a cut left open, and open them again in the next piece."""
    closers = _closers(pieces, syntax)
    opened: list[Span] = []
    whole = []
    for piece in pieces:
        text = "".join(span.raw for span in opened) + piece
        for _, span in syntax.find_marks(piece):
            if span.kind == "open" and span.name in closers:
                opened.append(span)
            elif span.kind == "close" and opened and opened[-1].name == span.name:
                opened.pop()
        whole.append(text + "".join(closers[span.name] for span in reversed(opened)))
    if opened:  # something is never closed, and then nothing is closed at a cut
        return list(pieces)
    return whole


def _closers(pieces: Sequence[str], syntax: CueSyntax) -> dict[str, str]:
    """Return what closes the marks of each name."""
    spans = [span for piece in pieces for _, span in syntax.find_marks(piece)]
    return {span.name: span.raw for span in spans if span.kind == "close"}
