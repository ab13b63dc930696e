"""What a runtime or a trainer exchanges computes what the plain model computes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.kernels import decoding_attention, dropout
from dragoman.kernels.decoding_twins import DECODING, accelerate_decoding
from dragoman.kernels.joint_projection import join_projections
from dragoman.kernels.packed_model import Side, packed_features
from dragoman.kernels.training_twins import PACKED, TRAINING, accelerate_training
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer

CPU = torch.device("cpu")
FAMILIES: dict[str, dict[str, Any]] = {
    "paper": {},
    "relative": {"positions": "relative", "norm": "rms", "norm_first": True, "bias": False},
    "alone": {"encoder_layers": 0},
    "grouped": {"encoder_layers": 0, "positions": "rotary", "kv_heads": 2, "bias": False},
}


def tiny(**fields: Any) -> Transformer:
    torch.manual_seed(0)
    shape = {"vocab_size": 30, "d_model": 32, "d_ff": 64, "n_heads": 4}
    layers = {"encoder_layers": 2, "decoder_layers": 2}
    return Transformer(ModelConfig(**(shape | layers | fields))).eval()


def steps(model: Transformer, beams: int) -> Tensor:
    """Logits of a few positions, the beams being reordered in between."""
    draw = torch.Generator().manual_seed(1)
    source = torch.randint(30, (2, 5), generator=draw) if model.config.encoder_layers else None
    state = model.start(source, None if source is None else torch.tensor([5, 3]))
    logits = []
    for _ in range(4):
        logits.append(model.step(torch.randint(30, (2, beams), generator=draw), state))
        state.reorder(torch.randint(beams, (2, beams), generator=draw))
    return torch.stack(logits)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_decoding(family: str, joint: bool, beams: int) -> None:
    model = tiny(**FAMILIES[family])
    expected = steps(model, beams)
    accelerate_decoding(model, CPU)
    if joint:
        join_projections(model)
    torch.testing.assert_close(steps(model, beams), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_copy_has_its_own_twins() -> None:
    """A method that was exchanged belongs to the module that has it."""
    model = tiny()
    accelerate_decoding(model, CPU)
    other = copy.deepcopy(model)
    for weight in other.parameters():
        weight.zero_()
    attention: Any = other.decoder.layers[0].attention
    assert attention.look.__self__ is attention
    assert steps(model, 2).abs().sum() > 0
    assert steps(other, 2).abs().sum() == 0


def functions(device: str, config: ModelConfig) -> list[object]:
    place = torch.device(device)
    return [twin.function for twin in DECODING if twin.fits(place, config)]


def test_which_twins_fit() -> None:
    paper, alone = ModelConfig(), ModelConfig(encoder_layers=0)
    assert functions("cpu", paper)[1:] == [decoding_attention.look_by_products]
    assert functions("cpu", alone)[-1] == decoding_attention.look_along_text
    for device, function in (("cpu", dropout.drop_by_fours), ("cuda", dropout.drop_by_hash)):
        place = torch.device(device)
        assert [twin.function for twin in TRAINING if twin.fits(place, paper)] == [function]


def test_every_twin_names_a_method() -> None:
    for twin in DECODING + TRAINING + PACKED:
        assert callable(getattr(twin.owner, twin.method))


def packed(model: Transformer, device: torch.device) -> Tensor:
    draw = torch.Generator().manual_seed(2)
    tokens = torch.randint(30, (12,), generator=draw).to(device)
    source = Side(tokens, torch.tensor([0, 5, 8, 12], dtype=torch.int32, device=device))
    target = Side(tokens, torch.tensor([0, 2, 9, 12], dtype=torch.int32, device=device))
    return packed_features(model, source, target, 8)


@pytest.mark.slow
def test_packed_layers_are_compiled_whole() -> None:
    """Without a break in the graph, which would cost a GPU its speed; and what is dropped follows
    from the seeds."""
    model = tiny(dropout=0.0).train()
    accelerate_training(model, CPU, packed=True)
    expected = packed(model, CPU)
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers:
            layer.compile(dynamic=True, fullgraph=True)
    torch.testing.assert_close(packed(model, CPU), expected, rtol=1e-4, atol=1e-5)
    dropouts = [one for one in model.modules() if isinstance(one, nn.Dropout)]
    for one in dropouts:
        one.forward = dropout.drop_by_hash.__get__(one)  # type: ignore[method-assign]
        one.p = 0.3
    model.encoder.embeddings.dropout.p = model.decoder.embeddings.dropout.p = 0.0
    seeds = dropout.sow(model, CPU)
    results = []
    for seed in (3, 3, 4):
        seeds.fill_(seed)
        results.append(packed(model, CPU))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
