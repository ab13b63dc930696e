"""The part of `evaluate` that is about encoders: labels of texts and of words, and vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.arguments import Machine
from dragoman.cli.terminal import print_json

if TYPE_CHECKING:
    from dragoman.tasks.class_scores import ClassScores
    from dragoman.tasks.retrieval import RetrievalScores
    from dragoman.tasks.span_scores import LabelScores


def evaluate_encoder(
    task: str, folder: Path, files: list[str], machine: Machine, as_json: bool
) -> None:
    """Score a classifier, a labeller of words or the vectors of texts, and print the scores."""
    scores: ClassScores | LabelScores | RetrievalScores
    if task == "class":
        scores = _classes(folder, files, machine)
    elif task == "label":
        scores = _labels(folder, files, machine)
    else:
        scores = _vectors(folder, files, machine)
    if as_json:
        print_json({"model": str(folder), **scores.as_dict()})
    else:
        print("\n".join(scores.lines()))


def _classes(folder: Path, files: list[str], machine: Machine) -> ClassScores:
    from dragoman.data.labelled_text import read_labelled
    from dragoman.tasks.class_scores import score_classes
    from dragoman.tasks.encode import TextEncoder

    examples = read_labelled(files)
    encoder = TextEncoder.load(folder, machine.device, machine.runtime)
    found = encoder.classify(["\t".join(texts) for _, texts in examples])
    best = [guesses[0][0] for guesses in found]
    return score_classes(best, [label for label, _ in examples])


def _labels(folder: Path, files: list[str], machine: Machine) -> LabelScores:
    from dragoman.data.labelled_words import read_labelled_words
    from dragoman.tasks.label_words import Labeller
    from dragoman.tasks.span_scores import score_labels

    sentences = read_labelled_words(files)
    labeller = Labeller.load(folder, machine.device, machine.runtime)
    guesses = labeller.label_words([one.words for one in sentences])
    found = [[label for label, _ in words] for words in guesses]
    return score_labels(found, [one.labels for one in sentences])


def _vectors(folder: Path, files: list[str], machine: Machine) -> RetrievalScores:
    from dragoman.data.labelled_text import read_text_pairs
    from dragoman.tasks.encode import TextEncoder
    from dragoman.tasks.retrieval import score_retrieval

    pairs = read_text_pairs(files)
    encoder = TextEncoder.load(folder, machine.device, machine.runtime)
    sources = encoder.embed([source for source, _ in pairs])
    targets = encoder.embed([target for _, target in pairs])
    return score_retrieval(sources, targets, pairs)
