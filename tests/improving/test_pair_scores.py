"""What judges a pair: a translator by probability, an encoder by the cosine of its vectors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dragoman.folder.description import Description, save_description
from dragoman.folder.weights import save_weights
from dragoman.improving.forced_scores import ForcedScorer
from dragoman.improving.pair_scores import pair_scorer
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.tables.field_path import FieldPath
from dragoman.tables.table_stages import ScoreStage
from dragoman.tasks.encode import TextEncoder
from dragoman.text.tokenizer import BOS, Frame, TokenizerOptions, learn

PAIRS = [("one two", "one two"), ("one two", "three"), ("three", "two one")]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    tokenizer, _ = learn(TokenizerOptions(vocab_size=290), ["one two three"] * 50, ())
    shape = {"vocab_size": tokenizer.target_size, "d_model": 16, "d_ff": 24, "n_heads": 2}
    config = ModelConfig(**(FAMILIES["bert"] | shape | {"encoder_layers": 1, "max_length": 20}))
    torch.manual_seed(2)
    frame = Frame(source_start=(BOS,))
    save_description(folder, Description(config, "", "", 20, task="embed", frame=frame), tokenizer)
    save_weights(folder, dict(Transformer(config).named_parameters()))
    return folder


def test_an_encoder_scores_by_cosines(encoder: Path) -> None:
    vectors = TextEncoder.load(encoder, "cpu")
    expected = [float(vectors.embed(source) @ vectors.embed(target)) for source, target in PAIRS]
    found = pair_scorer(encoder, "cpu").scores(PAIRS)
    assert found == pytest.approx(expected, abs=1e-5)
    assert found[0] == pytest.approx(1.0, abs=1e-5)
    assert max(found[1:]) < 0.999


def test_a_translator_scores_by_probabilities(trained: Path) -> None:
    pairs = [("one two", "eins zwei"), ("one two", "drei")]
    assert pair_scorer(trained, "cpu").scores(pairs) == ForcedScorer(trained, "cpu").scores(pairs)


def test_a_column_of_a_table(encoder: Path) -> None:
    """A row without a text has no score, and nothing went wrong with it."""
    stage = ScoreStage(FieldPath.parse("a"), FieldPath.parse("b"), encoder)
    score, error = stage.load("cpu")([["one two", "one two"], [None, "three"]])
    assert score.name == "score"
    assert list(score.values) == [pytest.approx(1.0, abs=1e-5), None]
    assert error.name == "score_error"
    assert list(error.values) == [None, None]
