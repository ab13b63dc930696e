"""Tiny random encoders and Whisper of transformers, read by us, give the same logits, hidden
states and attention weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from references import WHISPER, both_ways, close, randomised

from dragoman.errors import ModelFolderError
from dragoman.folder.weights import assign_weights
from dragoman.formats.huggingface_weights import read_config, read_weights
from dragoman.model.transformer import Transformer

transformers = pytest.importorskip("transformers", reason="needs transformers")

BERT = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
    "num_labels": 4,
}
VIT = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "image_size": 12,
    "patch_size": 4,
    "num_labels": 5,
}
TOKENS = torch.randint(3, 50, (3, 7), generator=torch.Generator().manual_seed(1))
LENGTHS = torch.tensor([7, 4, 2])
MASK = torch.arange(7) < LENGTHS[:, None]
PADDED = TOKENS.where(MASK, 1)  # RoBERTa counts its positions by what is padding


KINDS = ("Bert", "Roberta", "DistilBert", "XLNet", "ViT", "Whisper", "GPT2")
DISTILBERT = {
    "vocab_size": 50,
    "dim": 16,
    "n_layers": 3,
    "n_heads": 2,
    "hidden_dim": 24,
    "max_position_embeddings": 20,
}
XLNET = {
    "vocab_size": 50,
    "d_model": 16,
    "n_layer": 3,
    "n_head": 4,
    "d_inner": 24,
    "num_labels": 4,
}


def reference(name: str, fields: dict[str, Any], **more: Any) -> Any:
    kind = next(kind for kind in KINDS if name.startswith(kind))
    config = getattr(transformers, f"{kind}Config")(**fields)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    return randomised(getattr(transformers, name)(config, **more))


@pytest.mark.parametrize("kind", ["Bert", "Roberta"])
@torch.no_grad()
def test_filling_in_tokens(kind: str, tmp_path: Path) -> None:
    theirs = reference(f"{kind}ForMaskedLM", BERT)
    expected = theirs(input_ids=PADDED, attention_mask=MASK.long()).logits
    for model in both_ways(tmp_path, theirs):
        close(model(PADDED, lengths=LENGTHS)[MASK], expected[MASK])
        assert model.classifier is None


@pytest.mark.parametrize("kind", ["Bert", "Roberta"])
@torch.no_grad()
def test_classes_of_text(kind: str, tmp_path: Path) -> None:
    theirs = reference(f"{kind}ForSequenceClassification", BERT)
    expected = theirs(input_ids=PADDED, attention_mask=MASK.long()).logits
    for model in both_ways(tmp_path, theirs):
        close(model.classify(PADDED, LENGTHS), expected)
        assert expected.shape == (3, 4)


@pytest.mark.parametrize("pooler", [True, False])
@pytest.mark.parametrize("kind", ["Bert", "Roberta"])
@torch.no_grad()
def test_an_encoder_without_a_head(kind: str, pooler: bool, tmp_path: Path) -> None:
    theirs = reference(f"{kind}Model", BERT, add_pooling_layer=pooler)
    expected = theirs(input_ids=PADDED, attention_mask=MASK.long()).last_hidden_state
    for model in both_ways(tmp_path, theirs):
        close(model.encode(PADDED, LENGTHS)[MASK], expected[MASK])


@torch.no_grad()
def test_distilbert(tmp_path: Path) -> None:
    theirs = reference("DistilBertForMaskedLM", DISTILBERT)
    expected = theirs(input_ids=PADDED, attention_mask=MASK.long()).logits
    for model in both_ways(tmp_path / "filling", theirs):
        close(model(PADDED, lengths=LENGTHS)[MASK], expected[MASK])
    bare = reference("DistilBertModel", DISTILBERT)
    expected = bare(input_ids=PADDED, attention_mask=MASK.long()).last_hidden_state
    for model in both_ways(tmp_path / "bare", bare):
        close(model.encode(PADDED, LENGTHS)[MASK], expected[MASK])


@torch.no_grad()
def test_distilbert_with_a_classifier_is_refused(tmp_path: Path) -> None:
    """Before its classifier stands a layer with max(0, x), where ours has tanh."""
    reference("DistilBertForSequenceClassification", DISTILBERT).save_pretrained(tmp_path)
    config, said = read_config(tmp_path)
    with pytest.raises(ModelFolderError, match=r"has a weight 'classifier\.bias' that"):
        read_weights(tmp_path, config, said)


@pytest.mark.parametrize("name", ["XLNetModel", "XLNetLMHeadModel"])
@torch.no_grad()
def test_hidden_states_of_xlnet(name: str, tmp_path: Path) -> None:
    theirs = reference(name, XLNET)
    inner = getattr(theirs, "transformer", theirs)
    expected = inner(input_ids=TOKENS, attention_mask=MASK.float(), output_attentions=True)
    for model in both_ways(tmp_path, theirs):
        assert model.config.positions == "distances"
        close(model.encode(TOKENS, LENGTHS)[MASK], expected.last_hidden_state[MASK])
        weights = model.attention_weights(TOKENS, lengths=LENGTHS)
        for ours, other in zip(weights.encoder, expected.attentions, strict=True):
            close(ours.transpose(1, 2)[MASK], other.transpose(1, 2)[MASK])


@torch.no_grad()
def test_classes_of_xlnet(tmp_path: Path) -> None:
    """From the last token of each row, whatever stands behind it."""
    theirs = reference("XLNetForSequenceClassification", XLNET)
    for model in both_ways(tmp_path, theirs):
        close(model.classify(TOKENS), theirs(input_ids=TOKENS).logits)
        padded = model.classify(TOKENS, LENGTHS)
        for row, length in enumerate(LENGTHS.tolist()):
            alone = TOKENS[row : row + 1, :length]
            close(padded[row : row + 1], theirs(input_ids=alone).logits)


@torch.no_grad()
def test_classes_of_images(tmp_path: Path) -> None:
    theirs, images = reference("ViTForImageClassification", VIT), torch.randn(2, 3, 12, 12)
    for model in both_ways(tmp_path, theirs):
        close(model.classify(images), theirs(pixel_values=images).logits)
        assert model.encode(images).shape == (2, 1 + 9, 16)


@pytest.mark.parametrize("pooler", [True, False])
@torch.no_grad()
def test_images_without_a_head(pooler: bool, tmp_path: Path) -> None:
    theirs, images = reference("ViTModel", VIT, add_pooling_layer=pooler), torch.randn(2, 3, 12, 12)
    for model in both_ways(tmp_path, theirs):
        close(model.encode(images), theirs(pixel_values=images).last_hidden_state)


@torch.no_grad()
def test_whisper_at_once_and_step_by_step(tmp_path: Path) -> None:
    theirs, sound, target = (
        reference("WhisperForConditionalGeneration", WHISPER),
        torch.randn(3, 8, 20),
        TOKENS[:, :6],
    )
    expected = theirs(input_features=sound, decoder_input_ids=target)
    for model in both_ways(tmp_path, theirs):
        close(model.encode(sound), expected.encoder_last_hidden_state)
        close(model(sound, target), expected.logits)
        state = model.start(sound)
        steps = [model.step(target[:, i : i + 1], state) for i in range(6)]
        close(torch.cat(steps, dim=1), expected.logits)


@torch.no_grad()
def test_the_attention_of_an_encoder_alone(tmp_path: Path) -> None:
    theirs = reference("BertForMaskedLM", BERT)
    expected = theirs(
        input_ids=PADDED, attention_mask=MASK.long(), output_attentions=True
    ).attentions
    weights = both_ways(tmp_path, theirs)[0].attention_weights(PADDED, lengths=LENGTHS)
    assert (len(weights.encoder), weights.decoder, weights.cross) == (3, [], [])
    for ours, other in zip(weights.encoder, expected, strict=True):
        close(ours.transpose(1, 2)[MASK], other.transpose(1, 2)[MASK])


@torch.no_grad()
def test_the_attention_of_a_decoder_alone(tmp_path: Path) -> None:
    theirs = reference(
        "GPT2LMHeadModel",
        {"vocab_size": 50, "n_embd": 16, "n_layer": 3, "n_head": 4, "n_positions": 32},
    )
    expected = theirs(input_ids=TOKENS, output_attentions=True).attentions
    weights = both_ways(tmp_path, theirs)[0].attention_weights(None, TOKENS)
    assert (weights.encoder, weights.cross) == ([], [])
    for ours, other in zip(weights.decoder, expected, strict=True):
        close(ours, other)


@torch.no_grad()
def test_the_attention_of_whisper(tmp_path: Path) -> None:
    theirs, sound = reference("WhisperForConditionalGeneration", WHISPER), torch.randn(3, 8, 20)
    expected = theirs(input_features=sound, decoder_input_ids=TOKENS, output_attentions=True)
    weights = both_ways(tmp_path, theirs)[0].attention_weights(sound, TOKENS)
    for ours, other in (
        (weights.encoder, expected.encoder_attentions),
        (weights.decoder, expected.decoder_attentions),
        (weights.cross, expected.cross_attentions),
    ):
        assert len(ours) == len(other)
        for one, two in zip(ours, other, strict=True):
            close(one, two)


@torch.no_grad()
def test_half_the_precision_stays_until_the_weights_are_used(tmp_path: Path) -> None:
    theirs = reference("BertForMaskedLM", BERT).bfloat16()
    model = both_ways(tmp_path, theirs)[1]
    config, said = read_config(tmp_path / "theirs")
    weights = read_weights(tmp_path / "theirs", config, said)
    assert weights["encoder.layers.0.attention.key_value.weight"].dtype == torch.bfloat16
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    close(model(TOKENS), theirs.float()(input_ids=TOKENS).logits)


@torch.no_grad()
def test_names_of_old_folders_and_weights_that_say_nothing_new(tmp_path: Path) -> None:
    """As in Google's own BERT: gamma and beta for the norms, the table of positions counted out,
    two heads."""
    from safetensors.torch import load_file, save_file

    theirs = reference("BertForPreTraining", BERT)
    theirs.save_pretrained(tmp_path)
    old = load_file(tmp_path / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): old[name]
        for name in old
    }
    save_file(
        old | {"bert.embeddings.position_ids": torch.arange(20)[None]},
        tmp_path / "model.safetensors",
    )
    config, said = read_config(tmp_path)
    model = Transformer(config).eval()
    assign_weights(model, read_weights(tmp_path, config, said))
    close(model(TOKENS), theirs(input_ids=TOKENS).prediction_logits)
