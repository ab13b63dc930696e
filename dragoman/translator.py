"""Text in, text out: the only place where strings meet tensors at run time."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dragoman.checkpoint import Description, load_description, load_model
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.seam import Hypothesis
from dragoman.decoding.search import search
from dragoman.device import pick_device
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import BOS, EOS, PAD, Tokenizer

CHUNK = 2048  # lines of a stream that are sorted by length together
_SENTENCE_ENDS = (".", "!", "?", ";", ":", "।", "።")
_FULL_ENDS = ("。", "！", "？")  # no space follows them


@dataclass(frozen=True)
class Translation:
    """A line's translation. `score` is the search's: a length-normalised log-probability, nearer to 0 is better."""

    text: str
    score: float
    pieces: tuple[str, ...] = ()
    alternatives: tuple[Translation, ...] = ()


EMPTY = Translation("", 0.0)


class Translator:
    """A trained model that translates lines.

    >>> translator = Translator.load("models/en-de")
    >>> translator.translate(["The cat sat on the mat."])[0].text
    """

    def __init__(self, model: Transformer, tokenizer: Tokenizer, description: Description, device: torch.device) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.description = description
        self.device = device

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Translator:
        """The model of a folder, on the device named (auto: the GPU where there is one)."""
        description, tokenizer = load_description(Path(folder))
        place = pick_device(device)
        return cls(load_model(Path(folder), description.model, place), tokenizer, description, place)

    def translate(self, lines: Sequence[str], options: SearchOptions | None = None) -> list[Translation]:
        """A translation for each line, in the order of the lines. A line without text stays empty; a line longer than the
        model was trained for is translated in parts."""
        options = options or SearchOptions()
        parts = [self._parts(tokens) for tokens in self.tokenizer.encode(lines, "source")]
        flat = [part for line in parts for part in line]
        done: list[list[Hypothesis]] = [[] for _ in flat]
        for rows in self._batches(flat, options.beam):
            for row, best in zip(rows, self._search([flat[row] for row in rows], options), strict=True):
                done[row] = best
        results = iter(done)
        return [self._joined([next(results) for _ in line]) for line in parts]

    def stream(self, lines: Iterable[str], options: SearchOptions | None = None, at_once: int = CHUNK) -> Iterator[Translation]:
        """The same for lines without end, in constant memory: `at_once` lines are waited for and then translated."""
        remaining = iter(lines)
        while chunk := list(itertools.islice(remaining, at_once)):
            yield from self.translate(chunk, options)

    def _parts(self, tokens: list[int]) -> list[list[int]]:
        """The tokens in parts that the model can take, cut after a sentence, else between words, else where it must be."""
        limit = self.description.longest - 1  # the end token comes behind
        parts = []
        while len(tokens) > limit:
            pieces = self.tokenizer.pieces(tokens[: limit + 1], "source")
            words = [i for i in range(1, limit + 1) if pieces[i].startswith("▁")]
            sentences = [i for i in words if pieces[i - 1].endswith(_SENTENCE_ENDS)]
            sentences += [i for i in range(1, limit + 1) if pieces[i - 1].endswith(_FULL_ENDS)]
            cut = max(sentences or words or [limit])
            parts.append(tokens[:cut])
            tokens = tokens[cut:]
        return [*parts, tokens] if tokens else parts

    def _batches(self, rows: Sequence[Sequence[int]], beam: int) -> Iterator[list[int]]:
        """Row numbers in batches of like length, longest first, so that too little memory shows at once."""
        budget = (65_536 if self.device.type == "cuda" else 8192) // beam
        batch: list[int] = []
        for row in sorted(range(len(rows)), key=lambda i: -len(rows[i])):
            if batch and (len(batch) + 1) * len(rows[batch[0]]) > budget:
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch

    @torch.inference_mode()
    def _search(self, rows: Sequence[Sequence[int]], options: SearchOptions) -> list[list[Hypothesis]]:
        source, lengths = self._padded(rows)
        state = self.model.start(source, None if int(lengths.min()) == source.size(1) else lengths)
        longest = (lengths - 1 + options.max_extra).clamp(max=self.model.config.max_length)  # §6.1: input + 50
        return search(self.model.step, state, len(rows), longest, options, BOS, EOS)

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        width = max(map(len, rows)) + 1
        padded = [[*row, EOS] + [PAD] * (width - 1 - len(row)) for row in rows]
        lengths = [len(row) + 1 for row in rows]
        return torch.tensor(padded, device=self.device), torch.tensor(lengths, device=self.device)

    def _joined(self, parts: list[list[Hypothesis]]) -> Translation:
        """One translation of a line's parts; alternatives only where there is one part."""
        if not parts:
            return EMPTY
        best = [self._translation(part[0]) for part in parts]
        if len(parts) > 1:
            pieces = tuple(piece for part in best for piece in part.pieces)
            return Translation(" ".join(part.text for part in best), sum(part.score for part in best), pieces)
        others = tuple(self._translation(other) for other in parts[0][1:])
        return Translation(best[0].text, best[0].score, best[0].pieces, others)

    def _translation(self, hypothesis: Hypothesis) -> Translation:
        tokens = hypothesis.tokens
        text = self.tokenizer.decode([tokens])[0]
        return Translation(text, hypothesis.score, tuple(self.tokenizer.pieces(tokens, "target")))
