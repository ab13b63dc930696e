"""What differs between the tasks whose examples are read whole: how files become examples, which
labels and texts they have, and how they are written as tokens. A row for each. Knows files and
tokens; knows no loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.data.blocks import write_sides
from dragoman.data.images import find_images, write_images
from dragoman.data.labelled_text import read_labelled, read_text_pairs
from dragoman.data.labelled_words import read_labelled_words
from dragoman.data.word_examples import framed, parts, pieces_of_words
from dragoman.training.training_data import RunSetup, token_dtype

PATCHES = 65  # of an image, about; as many tokens
TOKENS_PER_PAIR = 25
CHARACTERS_PER_PAIR = 100  # of text, which counts as much as a pair of sentences


class Example(NamedTuple):
    """What is learnt, and from what: a label and texts or an image, the labels of words and the
    words, or two texts that belong together."""

    labels: tuple[str, ...]
    content: Any


Examples = list[Example]


@dataclass(frozen=True)
class Kind:
    """What a task makes of its examples."""

    unit: str
    read: Callable[[Sequence[str], int], Examples]  # files and, for images, their size
    write: Callable[[RunSetup, Path, Examples], None]
    # The texts to learn a vocabulary from.
    texts: Callable[[Example], Iterable[str]] = lambda example: example.content
    labelled: bool = True

    def pairs(self, examples: Examples) -> int:
        """Return how many pairs of sentences so many examples count as."""
        if self is KINDS["image"]:
            return len(examples) * PATCHES // TOKENS_PER_PAIR
        characters = sum(len(text) for example in examples for text in self.texts(example))
        return characters // CHARACTERS_PER_PAIR


def _read_texts(files: Sequence[str], _: int) -> Examples:
    return [Example((label,), texts) for label, texts in read_labelled(files)]


def _read_words(files: Sequence[str], _: int) -> Examples:
    return [Example(one.labels, one.words) for one in read_labelled_words(files)]


def _read_pairs(files: Sequence[str], _: int) -> Examples:
    return [Example((), texts) for texts in read_text_pairs(files)]


def _read_images(files: Sequence[str], size: int) -> Examples:
    found, _ = find_images(files, size)
    return [Example((label,), image) for label, image in found]


def _write_texts(setup: RunSetup, folder: Path, examples: Examples) -> None:
    description = setup.description
    frame = description.frame
    longest = description.longest
    most = longest - len(frame.source(()))
    contents = [example.content for example in examples]
    sides = zip(*contents, strict=True)
    rows = [setup.tokenizer.encode(texts, "source") for texts in sides]
    if len(rows) == 2:
        pairs = zip(*rows, strict=True)
        tokens = [frame.pair(one, other, longest) for one, other in pairs]
    else:
        tokens = [frame.source(row[:most]) for part in rows for row in part]
    labels = [[number] for number in _numbers(setup, examples)]
    write_sides(folder, tokens, labels, token_dtype(setup.tokenizer))


def _write_words(setup: RunSetup, folder: Path, examples: Examples) -> None:
    description = setup.description
    frame = description.frame
    most = description.longest - len(frame.source(()))
    numbers = {label: number for number, label in enumerate(description.labels, 1)}
    sources = []
    targets = []
    sentences = pieces_of_words(setup.tokenizer, [example.content for example in examples])
    for example, words in zip(examples, sentences, strict=True):
        for part in parts(words, most):
            tokens, starts = framed(frame, words[part], most)
            marks = [0] * len(tokens)
            for start, label in zip(starts, example.labels[part], strict=True):
                marks[start] = numbers[label]
            sources.append(tokens)
            targets.append(marks)
    write_sides(folder, sources, targets, token_dtype(setup.tokenizer))


def _write_pairs(setup: RunSetup, folder: Path, examples: Examples) -> None:
    description = setup.description
    frame = description.frame
    most = description.longest - len(frame.source(()))
    sides = []
    for side in (0, 1):
        texts = [example.content[side] for example in examples]
        rows = setup.tokenizer.encode(texts, "source")
        sides.append([frame.source(row[:most]) for row in rows])
    write_sides(folder, sides[0], sides[1], token_dtype(setup.tokenizer))


def _write_images(setup: RunSetup, folder: Path, examples: Examples) -> None:
    images = [example.content for example in examples]
    labels = _numbers(setup, examples)
    write_images(folder, images, labels, setup.options.model.input_size)


def _numbers(setup: RunSetup, examples: Examples) -> list[int]:
    """The number of the label of each example."""
    numbers = {label: number for number, label in enumerate(setup.description.labels)}
    return [numbers[label] for (label,), _ in examples]


def _sentence(example: Example) -> Iterable[str]:
    return [" ".join(example.content)]


KINDS = {
    "class": Kind("examples", _read_texts, _write_texts),
    "label": Kind("sentences", _read_words, _write_words, _sentence),
    "embed": Kind("pairs", _read_pairs, _write_pairs, labelled=False),
    "image": Kind("examples", _read_images, _write_images, lambda example: ()),
}
