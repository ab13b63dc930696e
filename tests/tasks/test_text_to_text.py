"""Text to text: windows cover a long text, JSON keeps to its schema whatever the model, and lines
of any length come through."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import tiny
import torch

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError
from dragoman.folder.description import Description, save_description
from dragoman.folder.weights import save_weights
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes.torch_runtime import TokenFacts, TorchRuntime
from dragoman.tasks.json_output import JsonOutput
from dragoman.tasks.text_to_text import TextToText
from dragoman.tasks.windows import windows
from dragoman.text.json_schema import is_valid, read_schema
from dragoman.text.tokenizer import TokenizerOptions, learn

LINES = [" ".join(tiny.ENGLISH[first:]) for first in range(8)]
GREEDY = SearchOptions(beam=1, max_length=12)


@pytest.mark.parametrize("limit", [10, 17, 50, 400])
def test_windows_cover_the_text(limit: int) -> None:
    words = [f"w{number}" for number in range(90)]
    text = "  ".join(words)
    parts = windows(text, lambda part: len(part) <= limit, limit + 5)
    assert all(len(part) <= limit for part in parts)
    assert [word for word in words if not any(word in part.split() for part in parts)] == []
    for part, following in pairwise(parts):
        assert limit < 12 or set(part.split()) & set(following.split())


def test_windows_of_a_text_without_spaces() -> None:
    text = "字" * 100
    parts = windows(text, lambda part: len(part) <= 12, 40)
    assert all(0 < len(part) <= 12 for part in parts)
    assert sum(map(len, parts)) >= 100
    with pytest.raises(DragomanError, match="longer than the model can read"):
        windows(text, lambda part: False, 40)


SCHEMAS: dict[str, dict[str, Any]] = {
    "record": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "kind": {"type": "string", "enum": ["cat", "dog"]},
            "count": {"type": "integer"},
            "is red": {"type": "boolean"},
            "sizes": {"type": "array", "maxItems": 3, "items": {"type": "number"}},
        },
    },
    "list": {
        "type": "array",
        "maxItems": 2,
        "items": {"type": "object", "properties": {"ü": {"type": "string", "maxLength": 3}}},
    },
    "number": {"type": "number"},
}


def random_model(seed: int, max_length: int = 200) -> TextToText:
    """A model that has learnt nothing, whose choices are clear."""
    text = [*LINES, "ü für ü"]
    tokenizer, _ = learn(TokenizerOptions(vocab_size=310, coverage=1.0), text, text)
    config = ModelConfig(
        vocab_size=tokenizer.target_size,
        d_model=32,
        d_ff=64,
        n_heads=4,
        encoder_layers=1,
        decoder_layers=1,
        max_length=max_length,
    )
    torch.manual_seed(seed)
    model = Transformer(config).eval()
    with torch.no_grad():
        model.output_weight.mul_(3.0)
    description = Description(config, "", "", 60, task="text")
    facts = TokenFacts(description.frame, tokenizer.joins())
    return TextToText(TorchRuntime(model, torch.device("cpu"), facts), tokenizer, description)


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_output_keeps_to_the_schema(name: str, seed: int) -> None:
    """Of a model whose weights were drawn, with beams and greedily, in room and with hardly any."""
    model = random_model(seed)
    schema = SCHEMAS[name]
    output = JsonOutput(read_schema(schema), model.tokenizer)
    lines = [*LINES[:3], ""]
    shortest = output.tokens.shortest
    for options in (
        SearchOptions(beam=1),
        SearchOptions(beam=4, nbest=2),
        SearchOptions(beam=3, max_length=shortest),
        SearchOptions(beam=2, nbest=2, sample=True, seed=seed),
    ):
        for one in model.write(lines, options, output):
            for text in (one.text, *(text for text, _ in one.others)):
                value = json.loads(text)
                jsonschema_rs.validate(schema, value)
                assert is_valid(value, output.schema)


def test_a_schema_that_does_not_fit() -> None:
    model = random_model(1, max_length=80)
    names = {f"property {number}": {"type": "boolean"} for number in range(20)}
    output = JsonOutput(read_schema({"type": "object", "properties": names}), model.tokenizer)
    with pytest.raises(DragomanError, match="takes up to 372 tokens, and an output may have 79"):
        model.write(["the cat"], output=output)


def test_empty_and_long_lines() -> None:
    model = random_model(2)
    long = " ".join(LINES * 4)
    empty, cut = model.write(["", long], GREEDY)
    assert (empty.text, empty.score, empty.left_out) == ("", 0.0, 0)
    assert cut.left_out == cut.tokens - model.limit > 0
    assert list(model.stream(["", long], GREEDY)) == [empty, cut]


def save(folder: Path, model: TextToText) -> Path:
    folder.mkdir()
    save_description(folder, model.description, model.tokenizer)
    save_weights(folder, dict(model.runtime.model.named_parameters()))
    return folder


def test_int8_and_what_is_no_text_to_text(tmp_path: Path) -> None:
    model = random_model(3)
    folder = save(tmp_path / "model", model)
    loaded = TextToText.load(folder, "cpu")
    schema = read_schema(SCHEMAS["record"])
    for one in loaded.write(LINES[:3], output=JsonOutput(schema, loaded.tokenizer)):
        assert is_valid(json.loads(one.text), schema)
    other = replace(model.description, task="parse")
    folder = save(tmp_path / "other", TextToText(model.runtime, model.tokenizer, other))
    with pytest.raises(DragomanError, match="holds a model for parse; text to text needs one"):
        TextToText.load(folder, "cpu")
