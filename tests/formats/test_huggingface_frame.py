"""Special tokens that a folder names and does not have."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="needs transformers")

import folders

from dragoman.errors import ModelFolderError
from dragoman.folder.description import load_description
from dragoman.formats.import_huggingface import convert
from dragoman.tasks.write import Writer

OUTSIDE = 50_256


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    folder = tmp_path_factory.mktemp("gpt2")
    tokenizer = folders.tokenizer_of("gpt2", folder)
    return folder, tokenizer, folders.model_of("gpt2", len(tokenizer), folder)


def spoilt(folder: Path, copy: Path, name: str, **values: Any) -> Path:
    """A copy whose file `name` has other values."""
    if not copy.exists():
        shutil.copytree(folder, copy)
    path = copy / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return copy


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
def test_an_end_outside_the_vocabulary_is_a_warning(
    gpt2: tuple[Path, Any, Any], name: str, tmp_path: Path
) -> None:
    """As in folders whose vocabulary is their own and whose config is GPT-2's."""
    folder, tokenizer, model = gpt2
    theirs = spoilt(folder, tmp_path / "theirs", name, eos_token_id=OUTSIDE, bos_token_id=OUTSIDE)
    spoilt(theirs, theirs, "tokenizer_config.json", eos_token=None)
    if name == "config.json":
        (theirs / "generation_config.json").unlink()  # which counts more
    said: list[str] = []
    convert(theirs, tmp_path / "ours", say=said.append)
    report = (tmp_path / "ours" / "report.md").read_text()
    for text in (said[0], report):
        assert f"Warning: eos_token_id in {theirs / name} is {OUTSIDE}" in text
        assert f"0 to {len(tokenizer) - 1}" in text
        assert "No token ends a text" in text
    description, _ = load_description(tmp_path / "ours")
    assert description.model.vocab_size == len(tokenizer) + 1
    writer = Writer.load(tmp_path / "ours", "cpu", exact=True)
    prompt = tokenizer("the cat sat").input_ids
    expected = list(prompt)
    with torch.no_grad():
        for _ in range(30):
            expected.append(int(model(torch.tensor([expected])).logits[0, -1].argmax()))
    found = list(writer.tokens(prompt, most=30))
    assert [*prompt, *found] == expected


def test_the_tokenisers_own_end_is_taken(gpt2: tuple[Path, Any, Any], tmp_path: Path) -> None:
    folder, tokenizer, _ = gpt2
    theirs = spoilt(folder, tmp_path / "theirs", "config.json", eos_token_id=OUTSIDE)
    spoilt(theirs, theirs, "generation_config.json", eos_token_id=OUTSIDE)
    said: list[str] = []
    convert(theirs, tmp_path / "ours", say=said.append)
    description, _ = load_description(tmp_path / "ours")
    assert description.frame.end == tokenizer.eos_token_id
    assert description.model.vocab_size == len(tokenizer)
    assert "'<|endoftext|>' ends a text instead" in said[0]


def test_a_translator_ends_as_its_tokeniser_says(tmp_path: Path) -> None:
    tokenizer = folders.tokenizer_of("t5", tmp_path / "theirs")
    folders.model_of("t5", len(tokenizer), tmp_path / "theirs")
    for name in ("config.json", "generation_config.json"):
        spoilt(tmp_path / "theirs", tmp_path / "theirs", name, eos_token_id=99)
    convert(tmp_path / "theirs", tmp_path / "ours")
    assert load_description(tmp_path / "ours")[0].frame.end == tokenizer.eos_token_id


@pytest.mark.parametrize("name", ["decoder_start_token_id", "forced_bos_token_id"])
def test_a_start_outside_the_vocabulary_names_token_and_file(name: str, tmp_path: Path) -> None:
    tokenizer = folders.tokenizer_of("bart", tmp_path / "theirs")
    folders.model_of("bart", len(tokenizer), tmp_path / "theirs")
    spoilt(tmp_path / "theirs", tmp_path / "theirs", "generation_config.json", **{name: 9999})
    with pytest.raises(ModelFolderError, match=rf"{name} in .*generation_config\.json is 9999,"):
        convert(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_encoder_and_decoder_may_differ_in_width(tmp_path: Path) -> None:
    """Marian with narrow feed-forward layers in the decoder: the same logits as theirs."""
    import transformers
    from references import both_ways, close, randomised

    sizes = folders.SIZES | {"encoder_ffn_dim": 40, "decoder_ffn_dim": 24}
    ids = folders.FAIRSEQ | {"decoder_start_token_id": 2}
    for kind, name in (("Marian", "MTModel"), ("Bart", "ForConditionalGeneration")):
        config = getattr(transformers, f"{kind}Config")(vocab_size=60, **ids, **sizes)
        torch.manual_seed(1)
        theirs = randomised(getattr(transformers, f"{kind}{name}")(config))
        source = torch.randint(3, 59, (2, 7))
        target = torch.randint(3, 59, (2, 5))
        with torch.no_grad():
            expected = theirs(input_ids=source, decoder_input_ids=target).logits
            for model in both_ways(tmp_path / kind, theirs):
                close(model(source, target), expected)
                assert model.config.decoder_d_ff == 24
                shapes = {key: tuple(value.shape) for key, value in model.named_parameters()}
                assert shapes["encoder.layers.0.feedforward.inner.weight"] == (40, 16)
