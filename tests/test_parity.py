"""The same weights in other people's Transformers give the same numbers: torch.nn.Transformer,
and transformers' Marian."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.model.attention import MultiHeadAttention
from dragoman.model.layer import Layer
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer

SOURCE = torch.tensor([[4, 9, 6, 3, 1, 1], [7, 3, 1, 1, 1, 1], [5, 8, 2, 9, 4, 3]])
LENGTHS = torch.tensor([4, 2, 6])
TARGET = torch.tensor([[2, 5, 9, 9, 3], [2, 6, 17, 4, 8], [2, 19, 3, 5, 5]])


def ours(norm_first: bool = False) -> Transformer:
    """A tiny model in which no weight, bias or norm keeps its initial value."""
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=20,
        d_model=32,
        d_ff=48,
        n_heads=4,
        encoder_layers=2,
        decoder_layers=3,
        dropout=0.0,
        norm_first=norm_first,
    )
    model = Transformer(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def copy(to: nn.Module, source: nn.Module) -> None:
    to.load_state_dict(source.state_dict())


def copy_attention(to: nn.MultiheadAttention, source: MultiHeadAttention) -> None:
    to.in_proj_weight.copy_(torch.cat((source.query.weight, source.key_value.weight)))
    to.in_proj_bias.copy_(torch.cat((source.query.bias, source.key_value.bias)))
    copy(to.out_proj, source.out)


@torch.no_grad()
def torch_transformer(model: Transformer) -> nn.Transformer:
    c = model.config
    twin = nn.Transformer(
        c.d_model,
        c.n_heads,
        c.encoder_layers,
        c.decoder_layers,
        c.d_ff,
        0.0,
        batch_first=True,
        norm_first=c.norm_first,
    )
    for stack, mine in ((twin.encoder, model.encoder), (twin.decoder, model.decoder)):
        # torch's norm after the last layer stands there even where every layer ends in one.
        stack.norm = mine.norm
        for twin_layer, layer in zip(stack.layers, mine.layers, strict=True):
            theirs: Any = twin_layer
            assert isinstance(layer, Layer)
            copy_attention(theirs.self_attn, layer.attention)
            copy(theirs.linear1, layer.feedforward.inner)
            copy(theirs.linear2, layer.feedforward.outer)
            copy(theirs.norm1, layer.after_attention.norm)
            if stack is twin.encoder:
                copy(theirs.norm2, layer.after_feedforward.norm)
                continue
            copy_attention(theirs.multihead_attn, layer.cross_attention)
            copy(theirs.norm2, layer.after_cross_attention.norm)
            copy(theirs.norm3, layer.after_feedforward.norm)
    return twin


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [False, True])
def test_equal_to_torch_nn_transformer(norm_first: bool) -> None:
    model = ours(norm_first)
    twin = torch_transformer(model)
    padding = torch.arange(SOURCE.size(1)) >= LENGTHS[:, None]
    ahead = torch.ones(TARGET.size(1), TARGET.size(1), dtype=torch.bool).triu(1)
    theirs = twin(
        model.encoder.embeddings(SOURCE),
        model.decoder.embeddings(TARGET),
        tgt_mask=ahead,
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    mine = model.features(SOURCE, TARGET, LENGTHS)
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    for gradient, expected in zip(
        input_gradients(model, mine), input_gradients(model, theirs), strict=True
    ):
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-4)


def input_gradients(model: Transformer, output: Tensor) -> tuple[Tensor, ...]:
    loss = output.square().sum() + output[..., ::3].sum()
    return torch.autograd.grad(loss, [model.output_weight])


def copy_marian_attention(to: MultiHeadAttention, source: Any) -> None:
    copy(to.query, source.q_proj)
    to.key_value.weight.copy_(torch.cat((source.k_proj.weight, source.v_proj.weight)))
    to.key_value.bias.copy_(torch.cat((source.k_proj.bias, source.v_proj.bias)))
    copy(to.out, source.out_proj)


@torch.no_grad()
def test_equal_to_marian() -> None:
    transformers = pytest.importorskip("transformers")
    model = ours()
    c = model.config
    torch.manual_seed(7)
    marian = transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=c.vocab_size,
            d_model=c.d_model,
            encoder_layers=c.encoder_layers,
            decoder_layers=c.decoder_layers,
            encoder_ffn_dim=c.d_ff,
            decoder_ffn_dim=c.d_ff,
            encoder_attention_heads=c.n_heads,
            decoder_attention_heads=c.n_heads,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=c.max_length,
            pad_token_id=1,
            eos_token_id=3,
            decoder_start_token_id=2,
        )
    ).eval()
    for parameter in marian.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.1)

    model.output_weight.copy_(marian.model.shared.weight)
    for stack, theirs in (
        (model.encoder, marian.model.encoder),
        (model.decoder, marian.model.decoder),
    ):
        # Marian's table has all sines before all cosines.
        positions = stack.embeddings.positions
        assert positions is not None
        positions.table.copy_(theirs.embed_positions.weight)
        for layer, other in zip(stack.layers, theirs.layers, strict=True):
            assert isinstance(layer, Layer)
            copy_marian_attention(layer.attention, other.self_attn)
            copy(layer.after_attention.norm, other.self_attn_layer_norm)
            copy(layer.feedforward.inner, other.fc1)
            copy(layer.feedforward.outer, other.fc2)
            copy(layer.after_feedforward.norm, other.final_layer_norm)
            if stack is model.decoder:
                copy_marian_attention(layer.cross_attention, other.encoder_attn)
                copy(layer.after_cross_attention.norm, other.encoder_attn_layer_norm)

    mask = (torch.arange(SOURCE.size(1)) < LENGTHS[:, None]).long()
    logits = marian(input_ids=SOURCE, attention_mask=mask, decoder_input_ids=TARGET).logits
    torch.testing.assert_close(model(SOURCE, TARGET, LENGTHS), logits, rtol=1e-4, atol=1e-4)
