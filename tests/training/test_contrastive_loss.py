"""The loss of vectors against a plain computation, and that processes share one batch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F

from dragoman.data.batches import Batch
from dragoman.model.families import FAMILIES
from dragoman.model.heads import text_vectors
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.training.contrastive_loss import ContrastiveLoss, pair_losses

SHAPE = {"d_model": 8, "d_ff": 16, "n_heads": 2, "encoder_layers": 1, "dropout": 0.0}


def test_two_pairs_by_hand() -> None:
    """Cosines 1 and 0 of the first, 0.6 and 0.8 of the second text; temperature 0.5. From the first
    side: log(1 + e^-2) and log(1 + e^-0.4). From the second: log(1 + e^-0.8), log(1 + e^-1.6)."""
    vectors = torch.tensor([[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.0, 1.0]]])
    texts = torch.tensor([[1, 2], [3, 4]])
    expected = [
        (math.log1p(math.exp(-2.0)) + math.log1p(math.exp(-0.8))) / 2,
        (math.log1p(math.exp(-0.4)) + math.log1p(math.exp(-1.6))) / 2,
    ]
    assert pair_losses(vectors, texts, 0.5, 0.0).tolist() == pytest.approx(expected)
    # With a margin of 0.25 every difference to a right cosine is 0.5 less after the division.
    expected = [
        (math.log1p(math.exp(-1.5)) + math.log1p(math.exp(-0.3))) / 2,
        (math.log1p(math.exp(0.1)) + math.log1p(math.exp(-1.1))) / 2,
    ]
    assert pair_losses(vectors, texts, 0.5, 0.25).tolist() == pytest.approx(expected)


def test_a_text_twice_is_no_wrong_partner() -> None:
    """Pairs 0 and 1 have the same first text: each is told from pair 2 alone."""
    vectors = F.normalize(torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(1)), dim=-1)
    texts = torch.tensor([[7, 7, 9], [1, 2, 3]])
    found = pair_losses(vectors, texts, 0.1, 0.0)
    rest = [pair_losses(vectors[:, keep], texts[:, keep], 0.1, 0.0) for keep in ([0, 2], [1, 2])]
    assert found[0] == pytest.approx(rest[0][0].item())
    assert found[1] == pytest.approx(rest[1][0].item())
    assert found[2] > rest[0][1]


def encoder() -> Transformer:
    torch.manual_seed(3)
    fields: dict[str, Any] = SHAPE | FAMILIES["bert"] | {"vocab_size": 30, "max_length": 8}
    return Transformer(ModelConfig(**fields))


def batch_of(first: int, end: int) -> Batch:
    """Some of five pairs of texts; the tokens behind a text change nothing."""
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(3, 30, (2, 5, 6), generator=generator)
    lengths = torch.randint(2, 7, (2, 5), generator=generator)
    source = tokens[:, first:end].flatten(0, 1)
    texts = torch.arange(10).view(2, 5)[:, first:end].flatten()
    count = end - first
    return Batch(source, source[:, :0], lengths[:, first:end].flatten(), texts, torch.arange(count))


def test_the_loss_of_an_encoder_is_that_of_its_mean_vectors() -> None:
    model = encoder()
    batch = batch_of(0, 5)
    smoothed, plain = ContrastiveLoss(model, 0.1, 0.3)(batch)
    means = []
    for row, length in zip(batch.source, batch.lengths.tolist(), strict=True):  # type: ignore[union-attr]
        means.append(F.normalize(model.encode(row[None, :length])[0].mean(0), dim=0))
    vectors = torch.stack(means).view(2, 5, -1)
    texts = batch.positions.view(2, 5)
    assert smoothed.item() == pytest.approx(
        pair_losses(vectors, texts, 0.1, 0.3).sum().item(), rel=1e-5
    )
    assert plain.item() == pytest.approx(
        pair_losses(vectors, texts, 0.1, 0.0).sum().item(), rel=1e-5
    )
    assert not plain.requires_grad


class Others:
    """Three processes in one: what each hands in is kept, and handed to all."""

    def __init__(self, model: Transformer) -> None:
        self.parts = [batch_of(0, 3), batch_of(3, 5), batch_of(0, 1)]
        empty = self.parts[2]
        self.parts[2] = Batch(
            empty.source, empty.target, empty.lengths, empty.positions[:0], empty.labels[:0]
        )
        self.rank = 0
        with torch.no_grad():
            self.vectors = [self._vectors(model, part) for part in self.parts]

    @staticmethod
    def _vectors(model: Transformer, part: Batch) -> torch.Tensor:
        found = text_vectors(model.encode(part.source, part.lengths), part.lengths).view(
            2, len(part.source) // 2, -1
        )
        return F.pad(found[:, : len(part.labels)], (0, 0, 0, 3 - len(part.labels)))

    def all_gather(self, boxes: list[torch.Tensor], own: torch.Tensor) -> None:
        for rank, (box, part) in enumerate(zip(boxes, self.parts, strict=True)):
            if own.dim() == 1:
                box.fill_(len(part.labels))
            elif own.dim() == 2:
                texts = part.positions.view(2, -1)
                box.copy_(F.pad(texts, (0, 3 - texts.size(1))))
            else:
                box.copy_(self.vectors[rank])


def test_processes_share_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three processes with 3, 2 and 0 of five pairs: their losses and gradients, summed, are those
    of one process with all."""
    model = encoder()
    smoothed, plain = ContrastiveLoss(model, 0.1, 0.2)(batch_of(0, 5))
    smoothed.backward()
    wanted = [weight.grad for weight in model.parameters()]
    model.zero_grad()
    others = Others(model)
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: 3)
    monkeypatch.setattr(dist, "get_rank", lambda: others.rank)
    monkeypatch.setattr(dist, "all_gather", others.all_gather)
    sums = torch.zeros(2)
    for rank, part in enumerate(others.parts):
        others.rank = rank
        own_loss, own_plain = ContrastiveLoss(model, 0.1, 0.2)(part)
        own_loss.backward()
        sums += torch.stack((own_loss.detach(), own_plain))
    torch.testing.assert_close(sums, torch.stack((smoothed.detach(), plain)))
    for weight, gradient in zip(model.parameters(), wanted, strict=True):
        if gradient is not None:
            torch.testing.assert_close(weight.grad, gradient, rtol=1e-4, atol=1e-6)
