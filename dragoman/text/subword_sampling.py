"""Random segmentations of words, for subword regularisation: BPE-dropout (Provilkov et al. 2020)
and unigram sampling (Kudo 2018).

Knows one SentencePiece model and no seed of its own. SentencePiece can sample too, but mixes a
number of the process into its seed, so that a run could never be repeated. Here a word has SLOTS
segmentations, which follow from the word and the options alone; each time the word occurs the
caller's generator chooses one of them.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random

import sentencepiece

SLOTS = 32
# Characters. Text without spaces is segmented in stretches of this length, since dropout looks at
# every neighbour at every merge.
_STRETCH = 64
_CACHED_WORDS = 200_000
# Makes a strength of 0.1 change about as many words as BPE-dropout of 0.1 does, one in five.
_FLATTEN = 0.03
_NEVER = float("inf")

Segmentation = list[int]


class Sampler:
    """Draws segmentations of lines.

    `strength` is the share of merges that BPE leaves out, or flattens the unigram distribution.
    """

    def __init__(
        self,
        model: sentencepiece.SentencePieceProcessor,
        kind: str,
        strength: float,
    ) -> None:
        self._model = model
        self._is_bpe = kind == "bpe"
        self._strength = strength
        tokens = range(model.get_piece_size())
        self._tokens = {
            model.id_to_piece(token): token for token in tokens if self._is_plain(token)
        }
        self._bytes = [model.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        self._scores = [model.get_score(token) for token in tokens]
        # The segmentations of a word; an empty one has not been made yet.
        self._cache: dict[str, list[Segmentation]] = {}

    def draw(self, line: str, generator: random.Random) -> Segmentation:
        """Return a random segmentation of a normalised line."""
        tokens: Segmentation = []
        words = line.split(" ") if line else []
        for word in words:
            segmentations = self._cache.get(word) or self._add(word)
            slot = int(generator.random() * SLOTS)
            tokens += segmentations[slot] or self._drop_merges(word, slot)
        return tokens

    def _is_plain(self, token: int) -> bool:
        model = self._model
        return not (model.is_control(token) or model.is_byte(token) or model.is_unknown(token))

    def _add(self, word: str) -> list[Segmentation]:
        if len(self._cache) >= _CACHED_WORDS:
            self._cache.clear()
        segmentations = [[]] * SLOTS if self._is_bpe else self._likely(word)
        self._cache[word] = segmentations
        return segmentations

    def _drop_merges(self, word: str, slot: int) -> Segmentation:
        """Merge as BPE does, the best-scored neighbours first, but skip some candidates."""
        generator = random.Random(f"{slot} {word}")
        text = f"▁{word}"
        segmentation: Segmentation = []
        for start in range(0, len(text), _STRETCH):
            stretch = text[start : start + _STRETCH]
            for piece in self._merged(stretch, generator):
                segmentation += self._to_tokens(piece)
        self._cache[word][slot] = segmentation
        return segmentation

    def _merged(self, text: str, generator: random.Random) -> list[str]:
        pieces = list(text)
        ranks = [self._rank(left, right) for left, right in itertools.pairwise(pieces)]
        while True:
            candidates = [
                (rank, index)
                for index, rank in enumerate(ranks)
                if rank < _NEVER and generator.random() >= self._strength
            ]
            if not candidates:
                return pieces
            _, index = min(candidates)
            merged = pieces[index] + pieces[index + 1]
            pieces[index : index + 2] = [merged]
            del ranks[index]
            first = max(0, index - 1)
            last = min(index + 1, len(ranks))
            for near in range(first, last):
                ranks[near] = self._rank(pieces[near], pieces[near + 1])

    def _rank(self, left: str, right: str) -> float:
        """Return the rank of a merge; the lowest comes first."""
        token = self._tokens.get(left + right)
        return _NEVER if token is None else -self._scores[token]

    def _to_tokens(self, piece: str) -> Segmentation:
        token = self._tokens.get(piece)
        if token is not None:
            return [token]
        return [self._bytes[byte] for byte in piece.encode("utf-8")]

    def _likely(self, word: str) -> list[Segmentation]:
        """Return the likeliest segmentations; probable ones fill several slots."""
        segmentations = self._model.nbest_encode(word, nbest_size=SLOTS, out_type=int)
        logs = []
        for segmentation in segmentations:
            score = sum(self._scores[token] for token in segmentation)
            logs.append(_FLATTEN / self._strength * score)
        best = max(logs)
        probabilities = [math.exp(log - best) for log in logs]
        weights = list(itertools.accumulate(probabilities))
        total = weights[-1]
        slots = []
        for slot in range(SLOTS):
            weight = (slot + 0.5) / SLOTS * total
            index = bisect.bisect(weights, weight)
            slots.append(segmentations[index])
        return slots
