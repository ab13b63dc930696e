"""The loss in blocks against torch's own cross-entropy, in value and in gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.training import loss as loss_module
from dragoman.training.loss import TranslationLoss, smoothed_loss


def example(n: int = 37, d: int = 16, v: int = 50) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    features = torch.randn(n, d, generator=generator).requires_grad_()
    weight = torch.randn(v, d, generator=generator).requires_grad_()
    return features, weight, torch.randint(v, (n,), generator=generator)


def reference(features: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
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
def test_value_and_gradients_equal_cross_entropy(smoothing: float, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
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
    torch.testing.assert_close((smoothed.double(), plain.double()), expected[:2], rtol=1e-5, atol=1e-2)


def test_without_gradients_the_value_is_the_same() -> None:
    features, weight, labels = example()
    with torch.no_grad():
        smoothed, plain = smoothed_loss(features, weight, labels, 0.1)
    expected = reference(features, weight, labels, 0.1)
    assert not smoothed.requires_grad
    torch.testing.assert_close((smoothed.double(), plain.double()), expected[:2], rtol=1e-5, atol=1e-5)


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
    assert (smoothed.dtype, half.grad.dtype, weight.grad.dtype) == (torch.float32, torch.bfloat16, torch.float32)
    assert smoothed.item() == pytest.approx(expected[0].item(), rel=1e-2)
    assert F.cosine_similarity(half.grad.double().flatten(), expected[2].flatten(), dim=0) > 0.999
    assert F.cosine_similarity(weight.grad.double().flatten(), expected[3].flatten(), dim=0) > 0.999


def test_translation_loss_counts_the_named_places_only() -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(vocab_size=50, d_model=32, d_ff=64, n_heads=4, encoder_layers=1, decoder_layers=1)).eval()
    source, lengths = torch.randint(50, (2, 6)), torch.tensor([6, 3])
    target, places, labels = torch.randint(50, (2, 5)), torch.tensor([0, 1, 2, 3, 4, 5, 6]), torch.randint(50, (7,))
    smoothed, plain = TranslationLoss(model, 0.1)(source, target, lengths, places, labels)
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
