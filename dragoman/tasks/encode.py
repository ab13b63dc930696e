"""What an encoder is good for by itself: words where a text has a mask, a vector for each text, a
label for a text or an image.

Text and files in, numbers and words out. Knows no command line; how a file becomes pixels is known
to images.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import numpy.typing
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.data.images import read_image
from dragoman.errors import InputError, ModelFolderError
from dragoman.folder.description import load_description
from dragoman.folder.weights import load_model
from dragoman.kernels.decoding_twins import accelerate_decoding
from dragoman.model.sight import padding_mask
from dragoman.runtimes.device import pick_device

Array = numpy.typing.NDArray[numpy.float32]
Guesses = tuple[tuple[str, float], ...]  # the likeliest first, with their probabilities
_TOKENS, _IMAGES = 8192, 16  # of a batch
MASK = re.compile(r"(\s*)(?:\[MASK\]|<mask>)")


@dataclass(frozen=True)
class Filled:
    """A text without its masks, and what was thought of for each of them."""

    text: str
    masks: tuple[Guesses, ...]


class Encoder:
    """A model that reads.

    >>> Encoder.load("models/bert").fill("The cat sat on the [MASK].").text
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        self.folder, self.device = folder, device
        self.description, self.tokenizer = load_description(folder)
        self.config = self.description.model
        if not self.config.encoder_layers or self.config.input == "sound":
            raise self._unfit("an encoder of text or images")
        self.model = load_model(folder, self.config, device)
        accelerate_decoding(self.model, device)

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Encoder:
        return cls(Path(folder), pick_device(device))

    @torch.inference_mode()
    def fill(self, text: str, count: int = 5) -> Filled:
        """The likeliest pieces for each [MASK], and the text with the first of them in its place."""
        mask = self.tokenizer.mask
        if mask is None or self.config.decoder_layers or self.config.classes:
            raise self._unfit(
                "one that was trained to fill in, as by --task mlm, and its tokeniser"
            )
        rows = self._tokens([self._masked(text)])
        places = [place for place, token in enumerate(rows[0]) if token == mask]
        if not places or len(places) != len(MASK.findall(text)):
            raise InputError(
                f"'{text[:60]}' has {len(places)} masks within reach; write [MASK] for a word, in a short text"
            )
        chances, tokens = (
            self.model(*self._source(rows))[0, places]
            .float()
            .softmax(-1)
            .topk(min(count, self.config.vocab_size))
        )
        pieces = [self.tokenizer.pieces(row, "target") for row in tokens.tolist()]
        best = iter([row[0] for row in pieces])
        # A piece that begins a word stands where the mask stood; another goes on with the word
        # before it.
        filled = MASK.sub(
            lambda gap: gap[1] * (piece := next(best)).startswith("▁") + piece.removeprefix("▁"),
            text,
        )
        words = [[piece.removeprefix("▁") for piece in row] for row in pieces]
        return Filled(
            filled,
            tuple(
                tuple(zip(*row, strict=True)) for row in zip(words, chances.tolist(), strict=True)
            ),
        )

    def embed(self, items: Sequence[str], first: bool = False) -> Array:
        """(N, D): the mean over the tokens of each text (or squares of each image), or what
        stands first; of length 1."""

        def pool(source: Tensor, _: None, lengths: Tensor | None) -> Tensor:
            memory, there = (
                self.model.encode(source, lengths),
                None if first else padding_mask(source, lengths),
            )
            # The length being 1 in the end, a sum is as good as a mean.
            memory = (
                memory[:, :1]
                if first
                else memory
                if there is None
                else memory * there[:, 0, 0, :, None]
            )
            return F.normalize(memory.sum(1), dim=-1)

        return self._run(items, pool).reshape(-1, self.config.d_model)

    def classify(self, items: Sequence[str]) -> list[Guesses]:
        """The labels for each text or image file, the likeliest first."""
        if not self.config.classes:
            raise self._unfit("one that was trained to classify, as by --task class or image")
        labels = self.description.labels or tuple(map(str, range(self.config.classes)))
        chances = self._run(
            items,
            lambda source, _, lengths: self.model.classify(source, lengths).float().softmax(-1),
        )
        return [
            tuple(sorted(zip(labels, row, strict=False), key=lambda one: -one[1]))
            for row in chances.tolist()
        ]

    @torch.inference_mode()
    def attention(self, item: str) -> tuple[list[str], Array]:
        """The pieces of a text, or the squares of an image as row,column behind a first; and
        (layers, heads, S, S) weights."""
        rows: list[Any] = (
            [item] if self.config.input == "image" else self._tokens([self._masked(item)])
        )
        weights: list[Tensor] = []
        self.model.encoder(self._source(rows)[0], None, weights)
        side = range(1, 1 + self.config.input_size // max(1, self.config.patch_size))
        squares = ["class", *(f"{row},{column}" for row in side for column in side)]
        pieces = (
            squares if self.config.input == "image" else self.tokenizer.pieces(rows[0], "source")
        )
        return pieces, torch.cat(weights).cpu().numpy()

    @torch.inference_mode()
    def _run(self, items: Sequence[str], compute: Callable[..., Tensor]) -> Array:
        """A row for each item, in order; those of like length are computed together."""
        images, found = self.config.input == "image", dict[int, Array]()
        rows: list[Any] = list(items) if images else self._tokens(items)
        order = sorted(range(len(rows)), key=lambda place: 0 if images else -len(rows[place]))
        while order:
            count = _IMAGES if images else max(1, _TOKENS // len(rows[order[0]]))
            batch, order = order[:count], order[count:]
            values = compute(*self._source([rows[place] for place in batch]))
            found |= dict(zip(batch, values.float().cpu().numpy(), strict=True))
        return numpy.array([found[place] for place in range(len(rows))], numpy.float32)

    def _masked(self, text: str) -> str:
        """With masks as the tokeniser writes them, if it has one."""
        own = (
            ""
            if self.tokenizer.mask is None
            else self.tokenizer.pieces([self.tokenizer.mask], "source")[0].strip("▁ ")
        )
        return MASK.sub(lambda _: f" {own}", text) if own else text

    def _tokens(self, lines: Sequence[str]) -> list[list[int]]:
        """With what stands around a text; a long one loses its end."""
        frame = self.description.frame
        room = max(1, self.description.longest - len(frame.source(())))
        return [frame.source(row[:room]) or [0] for row in self.tokenizer.encode(lines, "source")]

    def _source(self, rows: Sequence[Any]) -> tuple[Tensor, None, Tensor | None]:
        """Source, target and lengths, as the model takes them."""
        if self.config.input == "image":
            return (
                torch.stack([read_image(Path(row), self.config.input_size) for row in rows]).to(
                    self.device
                ),
                None,
                None,
            )
        tokens = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(row) for row in rows], batch_first=True
        )
        return (
            tokens.to(self.device),
            None,
            torch.tensor([len(row) for row in rows], device=self.device),
        )

    def _unfit(self, needed: str) -> ModelFolderError:
        return ModelFolderError(
            f"{self.folder} holds a model for the task {self.description.task}; this needs {needed}"
        )
