"""What an encoder is good for by itself: words where a text has a mask, a vector for each text, a
label for a text or an image.

Text and files in, numbers and words out. Knows no command line; how a file becomes pixels is known
to data/images.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy
import numpy.typing
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.data.images import read_image
from dragoman.errors import InputError, ModelFolderError
from dragoman.folder.description import Description
from dragoman.model.heads import text_vectors
from dragoman.runtimes.load import Loaded, load
from dragoman.runtimes.torch_runtime import TorchRuntime
from dragoman.tasks.lines import as_lines

Array = numpy.typing.NDArray[numpy.float32]
Guesses = tuple[tuple[str, float], ...]  # the likeliest first, with their probabilities
_ON_GPU = 8192  # tokens of a batch, padding counted
_ON_CPU = 128  # where larger batches gain nothing, and lose what they pad
_IMAGES = 16  # of a batch
MASK = re.compile(r"(\s*)(?:\[MASK\]|<mask>)")


@dataclass(frozen=True)
class Filled:
    """A text without its masks, and the guesses for each of them."""

    text: str
    masks: tuple[Guesses, ...]


class TextEncoder:
    """A model that reads.

    >>> TextEncoder.load("models/bert").fill("The cat sat on the [MASK].").text
    """

    def __init__(self, folder: Path, loaded: Loaded) -> None:
        self.folder = folder
        self.runtime: TorchRuntime = loaded.runtime
        self.model = self.runtime.model
        self.description = loaded.description
        self.tokenizer = loaded.tokenizer
        self.config = loaded.description.model

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", runtime: str = "auto") -> TextEncoder:
        """Load a model folder; `runtime` may be int8, which is faster on a CPU and less exact."""
        return cls(Path(folder), load(folder, device, runtime, check=check_encoder))

    def __repr__(self) -> str:
        """Say what the model is and where it lies."""
        return f"<TextEncoder: {self.description.summary()}, from {self.folder}>"

    @torch.inference_mode()
    def fill(self, text: str, count: int = 5) -> Filled:
        """Return the likeliest pieces for each [MASK], and the text with the first of them in its
        place."""
        mask = self.tokenizer.mask
        config = self.config
        if mask is None or config.decoder_layers or config.classes:
            raise unfit(
                self.folder,
                self.description,
                "one that was trained to fill in, as by --task mlm, and its tokeniser",
            )
        if not config.output_transform and not config.output_bias:
            raise ModelFolderError(
                f"{self.folder} holds an encoder without the head that fills in; convert a folder "
                "that has one, such as BertForMaskedLM, or train a model with --task mlm"
            )
        (row,) = self._tokens([self._masked(text)])
        positions = [index for index, token in enumerate(row) if token == mask]
        written = MASK.findall(text)
        if not positions or len(positions) != len(written):
            raise InputError(
                f"'{text[:60]}' has {len(positions)} masks within reach; "
                "write [MASK] for a word, in a short text"
            )
        source, lengths = self._source([row])
        logits = self.model(source, None, lengths)[0, positions]
        probabilities = logits.float().softmax(-1)
        most = min(count, config.vocab_size)
        best = probabilities.topk(most)
        pieces = [self.tokenizer.pieces(tokens, "target") for tokens in best.indices.tolist()]
        first = iter([of_mask[0] for of_mask in pieces])
        filled = MASK.sub(lambda gap: _placed(next(first), gap[1]), text)
        masks = []
        for of_mask, chances in zip(pieces, best.values.tolist(), strict=True):
            words = [piece.removeprefix("▁") for piece in of_mask]
            guesses = zip(words, chances, strict=True)
            masks.append(tuple(guesses))
        return Filled(filled, tuple(masks))

    def embed(self, items: str | Iterable[str], first: bool = False) -> Array:
        """Return (N, D): the mean over the tokens of each text (or squares of each image), or what
        stands first; of length 1. A string is one item and gives (D,)."""

        def pool(source: Tensor, lengths: Tensor | None) -> Tensor:
            memory = self.model.encode(source, lengths)
            if first:
                return F.normalize(memory[:, 0], dim=-1)
            return text_vectors(memory, lengths)

        lines = list(as_lines(items, "items"))
        vectors = numpy.array(self.run(self._rows(lines), pool), numpy.float32)
        if isinstance(items, str):
            return vectors.reshape(-1)
        return vectors.reshape(-1, self.config.d_model)

    @overload
    def classify(self, items: str) -> Guesses: ...  # type: ignore[overload-overlap]

    @overload
    def classify(self, items: Iterable[str]) -> list[Guesses]: ...

    def classify(self, items: str | Iterable[str]) -> Guesses | list[Guesses]:
        """Return the labels for each text or image file, the likeliest first; for a string, which
        is one item, those of that item. A tab separates the two texts of a pair."""
        if not self.config.classes or self.config.pooled == "every":
            raise unfit(
                self.folder,
                self.description,
                "one that was trained to classify, as by --task class or image",
            )
        numbers = range(self.config.classes)
        labels = self.description.labels or tuple(map(str, numbers))

        def compute(source: Tensor, lengths: Tensor | None) -> Tensor:
            logits = self.model.classify(source, lengths)
            return logits.float().softmax(-1)

        lines = list(as_lines(items, "items"))
        computed = self.run(self._rows(lines, paired=True), compute)
        guesses = []
        for chances in computed:
            pairs = zip(labels, chances.tolist(), strict=False)
            ranked = sorted(pairs, key=lambda pair: -pair[1])
            guesses.append(tuple(ranked))
        return guesses[0] if isinstance(items, str) else guesses

    @torch.inference_mode()
    def attention(self, item: str) -> tuple[list[str], Array]:
        """Return the pieces of a text, or the squares of an image as row,column behind a first;
        and (layers, heads, S, S) weights."""
        weights: list[Tensor] = []
        if self.config.input == "image":
            rows: list[Any] = [item]
            pieces = self._squares()
        else:
            rows = self._rows([self._masked(item)], paired=True)
            pieces = self.tokenizer.pieces(rows[0], "source")
        source, _ = self._source(rows)
        self.model.encoder(source, None, weights)
        of_layers = torch.cat(weights)
        return pieces, of_layers.cpu().numpy()

    @torch.inference_mode()
    def run(
        self, rows: Sequence[Any], compute: Callable[[Tensor, Tensor | None], Tensor]
    ) -> list[Array]:
        """Return what is computed of each row of tokens, or image file, in order; rows of like
        length are computed together."""
        results: dict[int, Array] = {}
        for batch in self._batches(rows):
            source, lengths = self._source([rows[index] for index in batch])
            computed = compute(source, lengths)
            values = computed.float().cpu().numpy()
            results |= dict(zip(batch, values, strict=True))
        return [results[index] for index in range(len(rows))]

    def _rows(self, items: Sequence[str], paired: bool = False) -> list[Any]:
        """Image files, or the tokens of texts; those of a pair together where items may be such."""
        if self.config.input == "image":
            return list(items)
        if not paired or not any("\t" in item for item in items):
            return self._tokens(items)
        frame = self.description.frame
        texts: list[str] = []
        for number, item in enumerate(items, 1):
            parts = item.split("\t")
            texts += parts
            if len(parts) > 2 or (len(parts) == 2 and not frame.between):
                read = "pairs of texts" if frame.between else "single texts"
                raise InputError(
                    f"item {number:,} has {len(parts)} texts with tabs between, and the model "
                    f"reads {read}; give it what it was trained on"
                )
        longest = self.description.longest
        most = max(1, longest - len(frame.source(())))
        tokens = iter(self.tokenizer.encode(texts, "source"))
        rows = []
        for item in items:
            row = next(tokens)
            pair = "\t" in item
            rows.append(
                frame.pair(row, next(tokens), longest) if pair else frame.source(row[:most])
            )
        return rows

    def _batches(self, rows: Sequence[Any]) -> Iterator[list[int]]:
        """Indices of rows, the longest first."""
        is_image = self.config.input == "image"
        budget = _ON_GPU if self.runtime.device.type == "cuda" else _ON_CPU
        order = list(range(len(rows)))
        if not is_image:
            order.sort(key=lambda index: -len(rows[index]))
        while order:
            count = _IMAGES
            if not is_image:
                longest = len(rows[order[0]])
                count = max(1, budget // longest)
            yield order[:count]
            order = order[count:]

    def _squares(self) -> list[str]:
        patch = max(1, self.config.patch_size)
        count = self.config.input_size // patch
        side = range(1, count + 1)
        squares = [f"{row},{column}" for row in side for column in side]
        return ["class", *squares]

    def _masked(self, text: str) -> str:
        """With masks as the tokeniser writes them, if it has one."""
        mask = self.tokenizer.mask
        if mask is None:
            return text
        (piece,) = self.tokenizer.pieces([mask], "source")
        own = piece.strip("▁ ")
        if not own:
            return text
        return MASK.sub(lambda _: f" {own}", text)

    def _tokens(self, lines: Sequence[str]) -> list[list[int]]:
        """With what stands around a text; a long one loses its end."""
        frame = self.description.frame
        around = frame.source(())
        most = max(1, self.description.longest - len(around))
        rows = self.tokenizer.encode(lines, "source")
        return [frame.source(row[:most]) or [0] for row in rows]

    def _source(self, rows: Sequence[Any]) -> tuple[Tensor, Tensor | None]:
        """Source and lengths, as the model takes them; no lengths where nothing is padded."""
        device = self.runtime.device
        if self.config.input == "image":
            images = [read_image(Path(row), self.config.input_size) for row in rows]
            return torch.stack(images).to(device), None
        tensors = [torch.tensor(row) for row in rows]
        tokens = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)
        tokens = tokens.to(device)
        lengths = [len(row) for row in rows]
        if min(lengths) == max(lengths):
            return tokens, None
        return tokens, torch.tensor(lengths, device=device)


def _placed(piece: str, space: str) -> str:
    """A piece that begins a word stands where the mask stood; another goes on with the word before
    it."""
    begins_word = piece.startswith("▁")
    return space * begins_word + piece.removeprefix("▁")


def check_encoder(folder: Path, description: Description) -> None:
    """Refuse a model that does not read text or images."""
    model = description.model
    if not model.encoder_layers or model.input == "sound":
        raise unfit(folder, description, "an encoder of text or images")


def unfit(folder: Path, description: Description, needed: str) -> ModelFolderError:
    """Return the error of a folder whose model is for another task."""
    return ModelFolderError(
        f"{folder} holds a model for the task {description.task}; this needs {needed}"
    )
