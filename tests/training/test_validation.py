"""What a validation finds, against the same worked out pair by pair."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from dragoman.folder.description import load_description
from dragoman.folder.weights import load_model
from dragoman.model.transformer import Transformer
from dragoman.tasks.translate import Translator
from dragoman.training.validation import ValidPairs

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model(trained: Path) -> Transformer:
    return load_model(trained, load_description(trained)[0].model, CPU)


def valid_set(trained: Path, sentences: int) -> ValidPairs:
    description, tokenizer = load_description(trained)
    return ValidPairs(
        trained / "state" / "data" / "valid", "uint16", tokenizer, description, sentences
    )


def test_the_loss_is_that_of_each_pair_alone(trained: Path, model: Transformer) -> None:
    valid = valid_set(trained, 0)
    losses: list[float] = []
    with torch.no_grad():
        for row in range(len(valid)):
            batch = valid.examples.batch(np.array([row]))
            losses += F.cross_entropy(
                model(batch.source, batch.target)[0], batch.labels, reduction="none"
            ).tolist()
    quality = valid.quality(model, CPU, "loss", nullcontext)
    assert quality.metrics == {"valid_loss": pytest.approx(np.mean(losses), rel=1e-5)}
    assert quality.value == -quality.metrics["valid_loss"]


@pytest.mark.parametrize("select", ["bleu", "chrf"])
def test_scores_of_the_first_sentences(trained: Path, model: Transformer, select: str) -> None:
    """With its own translations for references a model has all the points; with others it has
    not."""
    valid = valid_set(trained, 10)
    assert len(valid.sources) == len(valid.references) == 10
    assert len(valid) > 10
    translator = Translator.load(trained, "cpu")
    valid.references = [translation.text for translation in translator.translate(valid.sources)]
    quality = valid.quality(model, CPU, select, nullcontext)
    assert quality.value == quality.metrics[select] == pytest.approx(100.0)
    valid.references = [" ".join(reversed(text.split())) for text in valid.references]
    assert valid.quality(model, CPU, select, nullcontext).value < 90


def test_the_mode_of_the_model_is_put_back(trained: Path, model: Transformer) -> None:
    for training in (True, False):
        model.train(training)
        valid_set(trained, 0).quality(model, CPU, "loss", nullcontext)
        assert model.training == training
