"""Random cuttings of words, for subword regularisation: BPE-dropout (Provilkov et al. 2020) and
unigram sampling (Kudo 2018).

Knows one SentencePiece model and no seed of its own. SentencePiece can draw too, but mixes a number
of the process into its seed, so that a run could never be repeated. Here a word has SLOTS cuttings,
which follow from the word and the options alone; each time the word occurs the caller's generator
chooses one of them.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random

import sentencepiece

SLOTS = 32
# characters; text without spaces is cut in stretches, since dropout looks at every neighbour at
# every merge
_STRETCH = 64
_CACHED_WORDS = 200_000
# makes a strength of 0.1 change about as many words as BPE-dropout of 0.1 does, one in five
_FLATTEN = 0.03
_NEVER = float("inf")


class Sampler:
    """Draws cuttings of lines. `strength` is the share of merges that BPE leaves out, or
    flattens the unigram distribution."""

    def __init__(
        self, model: sentencepiece.SentencePieceProcessor, kind: str, strength: float
    ) -> None:
        self._model, self._bpe, self._strength = model, kind == "bpe", strength
        ids = range(model.get_piece_size())
        plain = [
            token
            for token in ids
            if not (model.is_control(token) or model.is_byte(token) or model.is_unknown(token))
        ]
        self._ids = {model.id_to_piece(token): token for token in plain}
        self._bytes = [model.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        self._scores = [model.get_score(token) for token in ids]
        self._cache: dict[
            str, list[list[int]]
        ] = {}  # the cuttings of a word; an empty one has not been made yet

    def draw(self, line: str, generator: random.Random) -> list[int]:
        """One cutting of a normalised line."""
        ids: list[int] = []
        for word in line.split(" ") if line else ():
            cuttings = self._cache.get(word) or self._new(word)
            slot = int(generator.random() * SLOTS)
            ids += cuttings[slot] or self._dropout(word, slot)
        return ids

    def _new(self, word: str) -> list[list[int]]:
        if len(self._cache) >= _CACHED_WORDS:
            self._cache.clear()
        self._cache[word] = [[]] * SLOTS if self._bpe else self._likely(word)
        return self._cache[word]

    def _dropout(self, word: str, slot: int) -> list[int]:
        """Merges as BPE does, the best-scored neighbours first, but each candidate is overlooked
        now and then."""
        chance, text = random.Random(f"{slot} {word}").random, f"▁{word}"
        cutting: list[int] = []
        for start in range(0, len(text), _STRETCH):
            parts = list(text[start : start + _STRETCH])
            ranks = [self._rank(left, right) for left, right in itertools.pairwise(parts)]
            while seen := [
                (rank, place)
                for place, rank in enumerate(ranks)
                if rank < _NEVER and chance() >= self._strength
            ]:
                place = min(seen)[1]
                parts[place : place + 2] = [parts[place] + parts[place + 1]]
                del ranks[place]
                for near in range(max(0, place - 1), min(place + 1, len(ranks))):
                    ranks[near] = self._rank(parts[near], parts[near + 1])
            cutting += itertools.chain.from_iterable(map(self._to_ids, parts))
        self._cache[word][slot] = cutting
        return cutting

    def _rank(self, left: str, right: str) -> float:
        """Which merge comes first: the lower."""
        token = self._ids.get(left + right)
        return _NEVER if token is None else -self._scores[token]

    def _to_ids(self, piece: str) -> list[int]:
        token = self._ids.get(piece)
        return [self._bytes[byte] for byte in piece.encode("utf-8")] if token is None else [token]

    def _likely(self, word: str) -> list[list[int]]:
        """The likeliest cuttings, each as many times among the slots as its flattened
        probability says."""
        cuttings = self._model.nbest_encode(word, nbest_size=SLOTS, out_type=int)
        logs = [
            _FLATTEN / self._strength * sum(self._scores[token] for token in cutting)
            for cutting in cuttings
        ]
        weights = list(itertools.accumulate(math.exp(log - max(logs)) for log in logs))
        return [
            cuttings[bisect.bisect(weights, (slot + 0.5) / SLOTS * weights[-1])]
            for slot in range(SLOTS)
        ]
