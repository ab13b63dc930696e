"""The training pairs by their ordinals, which count on from corpus to corpus: where a pair stands,
and its text once more. Knows files; does not judge what it reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from dragoman.data.corpus import Corpus, Pair, ignore, read_pairs


class Numbered:
    """Corpora whose pairs are counted while they are read."""

    def __init__(self, corpora: Sequence[Corpus], languages: tuple[str, str]) -> None:
        self._corpora = corpora
        self._languages = languages
        self.ends: list[int] = []  # ordinal after the last pair of each corpus that was read

    def parts(self) -> Iterator[tuple[Corpus, int, int]]:
        """Yield each corpus that was read, its first ordinal and the one after its last."""
        starts = [0, *self.ends]
        yield from zip(self._corpora, starts, self.ends, strict=False)

    def location(self, ordinal: int) -> str:
        """Return where a pair stands."""
        index = bisect_right(self.ends, ordinal)
        start = self.ends[index - 1] if index else 0
        number = ordinal - start + 1
        return self._corpora[index].location(number)

    def pairs(self, corpus: Corpus, count: int) -> Iterator[Pair]:
        """Read the first pairs of a corpus once more."""
        again = read_pairs(corpus, *self._languages, ignore)
        return islice(again, count)

    def texts(self, ordinals: Sequence[int]) -> dict[int, str]:
        """Return the text of these pairs, read once more as far as they stand."""
        texts = {}
        for corpus, start, end in self.parts():
            wanted = {ordinal for ordinal in ordinals if start <= ordinal < end}
            if not wanted:
                continue
            pairs = self.pairs(corpus, max(wanted) - start + 1)
            for ordinal, (source, target) in enumerate(pairs, start):
                if ordinal in wanted:
                    texts[ordinal] = f"{source} | {target}"
        return texts
