"""XLNet's pre-training in small: the stream of queries does not see its own token, each position
sees what comes before it in the order alone, and a toy model learns."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.two_streams import TwoStreams

SIZES = {"vocab_size": 20, "d_model": 32, "d_ff": 64, "n_heads": 4, "encoder_layers": 2}


def streams() -> TwoStreams:
    torch.manual_seed(0)
    model = TwoStreams(ModelConfig(**SIZES | FAMILIES["xlnet"], dropout=0.0))
    with torch.no_grad():
        for layer in model.encoder.layers:
            for name, weight in layer.named_parameters():
                if name.startswith("attention.to_"):
                    weight.normal_(std=0.3)
    return model


@torch.no_grad()
def test_a_prediction_depends_on_what_comes_before_it_in_the_order() -> None:
    model = streams().eval()
    tokens = torch.tensor([[3, 7, 5, 11, 2, 9]])
    order = torch.tensor([[2, 0, 5, 1, 4, 3]])
    logits = model(tokens, order)
    assert torch.isfinite(logits).all()
    for place in range(6):
        changed = tokens.clone()
        changed[0, place] = 15
        moved = (model(changed, order) - logits).abs().amax(-1)[0] > 1e-6
        expected = order[0] > order[0, place]  # later in the order, and never the place itself
        assert moved.tolist() == expected.tolist()


def test_a_prediction_depends_on_distances() -> None:
    model = streams().eval()
    tokens = torch.tensor([[3, 8, 5, 5]])
    order = torch.tensor([[0, 1, 2, 2]])  # the last two see the first two, from further or nearer
    with torch.no_grad():
        logits = model(tokens, order)[0]
    assert not torch.allclose(logits[2], logits[3], atol=1e-4)


def test_a_toy_model_learns() -> None:
    """Rows that count upwards from any number: a token and its distance tell all others."""
    model = streams()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    draw = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(120):
        first = torch.randint(0, 20, (16, 1), generator=draw)
        tokens = (first + torch.arange(8)) % 20
        order = torch.rand(16, 8, generator=draw).argsort(1)
        logits = model(tokens, order)
        known = order >= 4  # as XLNet, the last in the order are predicted
        loss = F.cross_entropy(logits[known], tokens[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 2.5
    assert sum(losses[-10:]) / 10 < 0.5 * losses[0]
