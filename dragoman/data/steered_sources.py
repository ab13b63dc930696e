"""Training sources that say how to translate: a tag for the tone or the variant of the target, and
the sentences that stand before. Knows pairs in the order of their files and their fates; no
batches.

Consecutive lines of a corpus are one document; an empty line, or the end of the corpus, ends it.
Only a share of the sources is changed, so that a model also learns to do without. A source that
would become too long has fewer sentences before it.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path

from dragoman.data.check import Screen
from dragoman.data.data_options import DataOptions
from dragoman.data.fates import DROPPED, KEPT, REPEATED, SHIFTED, dropped_for
from dragoman.data.tokenise import Words
from dragoman.errors import OptionError
from dragoman.folder.files import aside
from dragoman.text.formality import TONES, Formality, rules, rules_for
from dragoman.text.steering_tags import SEPARATOR, tag
from dragoman.text.tokenizer import Tokenizer

_EMPTY = dropped_for("empty")
_BUFFER = 1 << 20  # bytes


def steering_tags(data: DataOptions) -> tuple[str, ...]:
    """Return the words that these options put into sources, each of which is to be one piece."""
    names = [*(TONES if data.tone else ()), *filter(None, dict.fromkeys(data.variants))]
    words = [tag(name) for name in names]
    if data.context:
        words.append(SEPARATOR)
    return tuple(words)


def check_steering(data: DataOptions, languages: tuple[str, str], corpora: int) -> None:
    """Raise an error for options that do not go with this text."""
    if data.tone and rules_for(languages[1]) is None:
        raise OptionError(
            f"data.tone is true and the target language is '{languages[1]}'; "
            f"there are rules for {', '.join(sorted(rules()))}"
        )
    if data.variants and len(data.variants) != corpora:
        raise OptionError(
            f"data.variants has {len(data.variants)} names for {corpora} corpora; "
            "give one for each, and an empty one where a corpus has no variant"
        )


def steer(path: Path, screen: Screen, tokenizer: Tokenizer, seed: int) -> list[str]:
    """Rewrite the sources of the pairs of a file that are kept for training; return what was found
    in sentences for the report."""
    if not tokenizer.by_words:
        raise OptionError(
            "data.tone, data.variants and data.context need a tokeniser of dragoman's own, and "
            "this model brought another; train a new one"
        )
    sources = _Sources(screen, tokenizer, random.Random(f"steering {seed}"))
    with (
        aside(path) as new,
        path.open(encoding="utf-8", newline="\n", buffering=_BUFFER) as lines,
        new.open("w", encoding="utf-8", newline="\n", buffering=_BUFFER) as out,
    ):
        out.writelines(sources.rewritten(lines))
    return sources.notes()


class _Sources:
    """Rewrites one source after another."""

    def __init__(self, screen: Screen, tokenizer: Tokenizer, draw: random.Random) -> None:
        data = screen.data
        self._screen = screen
        self._data = data
        self._draw = draw
        self._words = Words(tokenizer, "source", 4)
        self._rules: Formality | None = rules_for(screen.languages[1]) if data.tone else None
        self._before: deque[str] = deque(maxlen=max(1, data.context))
        self._found: Counter[str] = Counter()

    def rewritten(self, lines: Iterator[str]) -> Iterator[str]:
        """Yield the lines, which are those of the pairs that were written when they were read."""
        start = 0
        for corpus, end in enumerate(self._screen.numbered.ends):
            self._before.clear()
            for fate in self._screen.fates[start:end]:
                if fate < DROPPED:
                    source, target = next(lines)[:-1].split("\t")
                    steered = self._steered(source, target, corpus) if fate == KEPT else source
                    yield f"{steered}\t{target}\n"
                    self._remember(source, fate)
                elif fate == _EMPTY:
                    self._before.clear()
            start = end

    def notes(self) -> list[str]:
        """Return what was found."""
        notes = []
        if self._data.tone:
            counts = " and ".join(f"{self._found[tone]:,} {tone}" for tone in TONES)
            notes.append(f"Of the targets, {counts} ones were found.")
        if self._data.context:
            notes.append(f"{self._found['context']:,} sources have sentences before them.")
        return notes

    def _remember(self, source: str, fate: int) -> None:
        """Keep a source for those behind it; what is set aside for validation is not shown."""
        if fate in (KEPT, REPEATED):
            self._before.append(source)
        elif fate == SHIFTED:
            self._before.clear()

    def _steered(self, source: str, target: str, corpus: int) -> str:
        room = self._data.max_length - self._length(source)
        tags = self._tags(target, corpus)
        room -= sum(map(self._piece_count, tags))
        if room < 0:
            return source
        return " ".join([*tags, *self._context(room), source])

    def _tags(self, target: str, corpus: int) -> list[str]:
        """The tags of a pair; a share of the pairs have them."""
        names = []
        if self._rules is not None:
            tone = self._rules.tone_of(target)
            self._found[tone] += 1
            names.append(tone)
        if self._data.variants:
            names.append(self._data.variants[corpus])
        return [tag(name) for name in names if name and self._drawn(self._data.tag_share)]

    def _context(self, room: int) -> list[str]:
        """Sentences before this one, each with what separates it from the next."""
        if not self._data.context or not self._drawn(self._data.context_share):
            return []
        count = self._draw.randint(1, self._data.context)
        parts: list[str] = []
        for sentence in list(self._before)[::-1][:count]:
            room -= self._length(sentence) - 1 + self._piece_count(SEPARATOR)
            if room < 0:
                break
            parts = [sentence, SEPARATOR, *parts]
        self._found["context"] += bool(parts)
        return parts

    def _drawn(self, share: float) -> bool:
        return self._draw.random() < share

    def _length(self, line: str) -> int:
        """The tokens of a line, its end counted."""
        return len(self._words.line(line)) // self._words.width

    def _piece_count(self, word: str) -> int:
        return len(self._words[word]) // self._words.width
