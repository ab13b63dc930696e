"""A label for each word of a text: names, parts of speech, or whatever a model was trained to tell.
Knows words, labels and the encoder; no files and no command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy
from torch import Tensor

from dragoman.data.word_examples import framed, parts, pieces_of_words
from dragoman.folder.description import Description
from dragoman.runtimes.load import load
from dragoman.tasks.encode import TextEncoder, check_encoder, unfit
from dragoman.tasks.lines import as_lines
from dragoman.tasks.span_scores import spans
from dragoman.text.words import separate_words


@dataclass(frozen=True)
class LabelledWord:
    """A word, its label and how likely that is; `start` and `end` say where it stands in the
    text."""

    text: str
    label: str
    probability: float
    start: int
    end: int


@dataclass(frozen=True)
class LabelledSpan:
    """Words that labels such as B-PER and I-PER join, as they stand in the text."""

    text: str
    label: str
    start: int
    end: int


@dataclass(frozen=True)
class LabelledText:
    """A text, the label of each of its words, and the spans that they form."""

    text: str
    words: tuple[LabelledWord, ...]
    spans: tuple[LabelledSpan, ...]


class Labeller:
    """A trained model that labels the words of texts.

    >>> labeller = Labeller.load("models/ner")
    >>> labeller.label("Ada Lovelace lived in London.").spans
    """

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder
        self.tokenizer = encoder.tokenizer
        self.description = encoder.description

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", runtime: str = "auto") -> Labeller:
        """Load a model folder; `runtime` may be int8, which is faster on a CPU and less exact."""
        loaded = load(folder, device, runtime, check=_check)
        return cls(TextEncoder(Path(folder), loaded))

    @overload
    def label(  # type: ignore[overload-overlap]  # a str is also an iterable of strings
        self, texts: str, tokenized: bool = False
    ) -> LabelledText: ...

    @overload
    def label(self, texts: Iterable[str], tokenized: bool = False) -> list[LabelledText]: ...

    def label(
        self, texts: str | Iterable[str], tokenized: bool = False
    ) -> LabelledText | list[LabelledText]:
        """Label the words of texts; a string is one text and gives one result. Words are what
        stands between spaces if a text is `tokenized` already, else marks stand by themselves."""
        lines = list(as_lines(texts, "texts"))
        places = [_spaced(line) if tokenized else separate_words(line) for line in lines]
        words = []
        for line, of_line in zip(lines, places, strict=True):
            words.append([line[start:end] for start, end in of_line])
        guesses = self.label_words(words)
        labelled = [_labelled(*one) for one in zip(lines, places, guesses, strict=True)]
        return labelled[0] if isinstance(texts, str) else labelled

    def label_words(self, sentences: Sequence[Sequence[str]]) -> list[list[tuple[str, float]]]:
        """Return the label of each word of sentences that are split into words, and how likely it
        is. A sentence that is longer than the model reads is read in parts."""
        frame = self.description.frame
        most = max(1, self.description.longest - len(frame.source(())))
        labels = self.description.labels
        rows = []
        starts = []
        origins = []
        for number, words in enumerate(pieces_of_words(self.tokenizer, sentences)):
            own_parts = parts(words, most) if words else []
            for part in own_parts:
                tokens, firsts = framed(frame, words[part], most)
                rows.append(tokens)
                starts.append(firsts)
                origins.append(number)
        found: list[list[tuple[str, float]]] = [[] for _ in sentences]
        computed = self.encoder.run(rows, self._chances)
        for number, firsts, chances in zip(origins, starts, computed, strict=True):
            for of_word in chances[firsts]:
                best = int(numpy.argmax(of_word))
                probability = float(of_word[best])
                found[number].append((labels[best], probability))
        return found

    def _chances(self, source: Tensor, lengths: Tensor | None) -> Tensor:
        logits = self.encoder.model.classify(source, lengths)
        return logits.float().softmax(-1)


def _spaced(line: str) -> list[tuple[int, int]]:
    """Where each word between spaces begins and ends."""
    places = []
    end = 0
    for word in line.split():
        start = line.index(word, end)
        end = start + len(word)
        places.append((start, end))
    return places


def _labelled(
    text: str, places: Sequence[tuple[int, int]], guesses: Sequence[tuple[str, float]]
) -> LabelledText:
    words = []
    for (start, end), (label, probability) in zip(places, guesses, strict=True):
        words.append(LabelledWord(text[start:end], label, probability, start, end))
    joined = []
    for span in spans([word.label for word in words]):
        start = words[span.start].start
        end = words[span.end - 1].end
        joined.append(LabelledSpan(text[start:end], span.kind, start, end))
    return LabelledText(text, tuple(words), tuple(joined))


def _check(folder: Path, description: Description) -> None:
    check_encoder(folder, description)
    model = description.model
    if not model.classes or model.pooled != "every" or len(description.labels) != model.classes:
        raise unfit(folder, description, "one that was trained to label words, as by --task label")
