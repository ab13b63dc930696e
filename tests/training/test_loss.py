"""The loss in blocks against torch's own cross-entropy, in value and in gradients."""

from __future__ import annotations

from itertools import chain

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.data.batches import Batch, PackedBatch
from dragoman.kernels.training_twins import accelerate_training
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.training import loss as loss_module
from dragoman.training.loss import ModelLoss, label_loss, smoothed_loss


def example(n: int = 37, d: int = 16, v: int = 50) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    features = torch.randn(n, d, generator=generator).requires_grad_()
    weight = torch.randn(v, d, generator=generator).requires_grad_()
    return features, weight, torch.randint(v, (n,), generator=generator)


def reference(
    features: Tensor, weight: Tensor, labels: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Smoothed and plain sums and the two gradients, by torch in float64."""
    h, e = features.detach().double().requires_grad_(), weight.detach().double().requires_grad_()
    smoothed = F.cross_entropy(h @ e.T, labels, reduction="sum", label_smoothing=smoothing)
    plain = F.cross_entropy(h @ e.T, labels, reduction="sum")
    (smoothed * 3).backward()
    assert h.grad is not None
    assert e.grad is not None
    return smoothed.detach(), plain.detach(), h.grad, e.grad


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("block", [2**25, 50 * 8, 50 * 37, 1])
def test_value_and_gradients_equal_cross_entropy(
    smoothing: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_module, "BLOCK", block)
    features, weight, labels = example()
    smoothed, plain = smoothed_loss(features, weight, labels, smoothing)
    expected = reference(features, weight, labels, smoothing)
    (smoothed * 3).backward()
    for got, want in zip((smoothed, plain, features.grad, weight.grad), expected, strict=True):
        assert got is not None
        torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-5)
    assert not plain.requires_grad


def test_large_logits_do_not_overflow() -> None:
    features, weight, labels = example()
    large = (features.detach() * 1000).requires_grad_()
    smoothed, plain = smoothed_loss(large, weight, labels, 0.1)
    expected = reference(large, weight, labels, 0.1)
    smoothed.backward()
    assert torch.isfinite(large.grad).all()  # type: ignore[arg-type]
    torch.testing.assert_close(
        (smoothed.double(), plain.double()), expected[:2], rtol=1e-5, atol=1e-2
    )


def test_without_gradients_the_value_is_the_same() -> None:
    features, weight, labels = example()
    with torch.no_grad():
        smoothed, plain = smoothed_loss(features, weight, labels, 0.1)
    expected = reference(features, weight, labels, 0.1)
    assert not smoothed.requires_grad
    torch.testing.assert_close(
        (smoothed.double(), plain.double()), expected[:2], rtol=1e-5, atol=1e-5
    )


def test_an_empty_batch_costs_nothing_and_still_has_a_gradient_path() -> None:
    features, weight, labels = example(n=0)
    smoothed, plain = smoothed_loss(features, weight, labels, 0.1)
    smoothed.backward()
    assert smoothed.item() == plain.item() == 0.0
    assert features.grad is not None
    assert features.grad.shape == (0, 16)
    assert weight.grad is not None
    assert weight.grad.count_nonzero() == 0


def test_bfloat16_features_with_a_float32_matrix() -> None:
    features, weight, labels = example()
    half = features.detach().bfloat16().requires_grad_()
    smoothed, _ = smoothed_loss(half, weight, labels, 0.1)
    expected = reference(half, weight.detach().bfloat16(), labels, 0.1)
    (smoothed * 3).backward()
    assert half.grad is not None
    assert weight.grad is not None
    assert (smoothed.dtype, half.grad.dtype, weight.grad.dtype) == (
        torch.float32,
        torch.bfloat16,
        torch.float32,
    )
    assert smoothed.item() == pytest.approx(expected[0].item(), rel=1e-2)
    assert F.cosine_similarity(half.grad.double().flatten(), expected[2].flatten(), dim=0) > 0.999
    assert F.cosine_similarity(weight.grad.double().flatten(), expected[3].flatten(), dim=0) > 0.999


@pytest.mark.parametrize("block", [2**25, 50 * 8])
def test_a_bfloat16_matrix(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """fully_shard hands out the output matrix in the precision of the products; sums over tokens
    and over blocks are still made in float32."""
    monkeypatch.setattr(loss_module, "BLOCK", block)
    features, weight, labels = example()
    half = features.detach().bfloat16().requires_grad_()
    matrix = weight.detach().bfloat16().requires_grad_()
    smoothed, plain = smoothed_loss(half, matrix, labels, 0.1)
    expected = reference(half, matrix, labels, 0.1)
    (smoothed * 3).backward()
    assert half.grad is not None
    assert matrix.grad is not None
    assert (smoothed.dtype, plain.dtype) == (torch.float32, torch.float32)
    assert (half.grad.dtype, matrix.grad.dtype) == (torch.bfloat16, torch.bfloat16)
    assert smoothed.item() == pytest.approx(expected[0].item(), rel=2e-3)
    assert plain.item() == pytest.approx(expected[1].item(), rel=2e-3)
    assert F.cosine_similarity(half.grad.double().flatten(), expected[2].flatten(), dim=0) > 0.9999
    grads = matrix.grad.double().flatten()
    assert F.cosine_similarity(grads, expected[3].flatten(), dim=0) > 0.9999


def test_translation_loss_counts_the_named_places_only() -> None:
    torch.manual_seed(0)
    model = Transformer(
        ModelConfig(
            vocab_size=50, d_model=32, d_ff=64, n_heads=4, encoder_layers=1, decoder_layers=1
        )
    ).eval()
    source, lengths = torch.randint(50, (2, 6)), torch.tensor([6, 3])
    target, places, labels = (
        torch.randint(50, (2, 5)),
        torch.tensor([0, 1, 2, 3, 4, 5, 6]),
        torch.randint(50, (7,)),
    )
    smoothed, plain = ModelLoss(model, 0.1)(Batch(source, target, lengths, places, labels))
    smoothed.backward()
    gradient = model.output_weight.grad
    model.output_weight.grad = None

    logits = model(source, target, lengths)
    chosen = torch.cat((logits[0], logits[1, :2]))
    expected = F.cross_entropy(chosen, labels, reduction="sum", label_smoothing=0.1)
    expected.backward()
    torch.testing.assert_close(smoothed, expected)
    torch.testing.assert_close(plain, F.cross_entropy(chosen, labels, reduction="sum"))
    torch.testing.assert_close(gradient, model.output_weight.grad, rtol=1e-4, atol=1e-5)


def test_pairs_end_to_end_have_the_same_loss_and_gradients(model: Transformer) -> None:
    """Three pairs, one of zeros and an empty one, against the same three in padded rows."""
    sources, targets = [[5, 6, 3], [7, 3], [8, 9, 10, 11, 3]], [[12, 3], [13, 14, 15, 3], [16, 3]]
    width = 5
    source = torch.tensor([row + [0] * (width - len(row)) for row in sources])
    target = torch.tensor([[2, *row[:-1]] + [0] * (width - len(row)) for row in targets])
    labels = torch.tensor([*chain(*targets)])
    places = torch.tensor([r * width + i for r, row in enumerate(targets) for i in range(len(row))])
    padded = Batch(source, target, torch.tensor([3, 2, 5]), places, labels)
    packed = PackedBatch(
        8,
        torch.tensor([*chain(*sources)] + [0] * 6),
        torch.tensor([token for row in targets for token in (2, *row[:-1])] + [2] + [0] * 7),
        torch.cat((labels, torch.full((8,), -1))),
        torch.tensor([0, 3, 5, 10, 16, 16], dtype=torch.int32),
        torch.tensor([0, 2, 6, 8, 16, 16], dtype=torch.int32),
    )
    found = []
    for batch in (padded, packed):
        model.zero_grad()
        accelerate_training(model, torch.device("cpu"), packed=batch is packed)
        smoothed, plain = ModelLoss(model, 0.1)(batch)
        smoothed.backward()
        gradients = torch.cat(
            [weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]
        )
        found.append((smoothed.detach(), plain, gradients))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_r_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against autograd, over three blocks of two labels, each with both copies."""
    monkeypatch.setattr(loss_module, "BLOCK", 2 * 2 * 40)
    torch.manual_seed(0)
    features, weight = (
        torch.randn(12, 8, dtype=torch.float64, requires_grad=True),
        torch.randn(40, 8, dtype=torch.float64),
    )
    weight.requires_grad_()
    labels = torch.randint(40, (6,)).repeat(2)
    smoothed, plain = smoothed_loss(features.float(), weight.float(), labels, 0.1, r_drop=3.0)
    found = torch.autograd.grad(smoothed, (features, weight))

    logits = features @ weight.T
    logs = logits.log_softmax(-1)
    p, q = logs.view(2, 6, 40)
    apart = F.kl_div(q, p, reduction="sum", log_target=True) + F.kl_div(
        p, q, reduction="sum", log_target=True
    )
    expected = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=0.1) + 1.5 * apart
    torch.testing.assert_close(smoothed.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        plain.double(), F.cross_entropy(logits, labels, reduction="sum"), rtol=1e-5, atol=1e-5
    )
    for one, other in zip(found, torch.autograd.grad(expected, (features, weight)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("r_drop", [0.0, 3.0])
def test_labels(r_drop: float) -> None:
    """Logits of labels against those of a vocabulary, with the identity for an output matrix."""
    torch.manual_seed(0)
    logits = torch.randn(12, 5, requires_grad=True)
    labels = torch.randint(5, (6,)).repeat(2)
    found = label_loss(logits, labels, 0.1, r_drop)
    expected = smoothed_loss(logits, torch.eye(5), labels, 0.1, r_drop)
    torch.testing.assert_close(found, expected)
    one, two = (torch.autograd.grad(smoothed, logits)[0] for smoothed, _ in (found, expected))
    torch.testing.assert_close(one, two)
    assert not found[1].requires_grad


def test_r_drop_sees_each_pair_twice(model: Transformer) -> None:
    """Without dropout both passes agree, and the loss is that of one."""
    source, target, labels = (
        torch.randint(4, 50, (2, 6)),
        torch.randint(4, 50, (2, 5)),
        torch.randint(50, (10,)),
    )
    once = Batch(source, target, None, torch.arange(10), labels)
    twice = Batch(
        source.repeat(2, 1), target.repeat(2, 1), None, torch.arange(20), labels.repeat(2)
    )
    for one, other in zip(
        ModelLoss(model, 0.1)(once), ModelLoss(model, 0.1, 5.0)(twice), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(
        ModelConfig(
            vocab_size=50, d_model=32, d_ff=64, n_heads=4, encoder_layers=2, decoder_layers=2
        )
    ).eval()
