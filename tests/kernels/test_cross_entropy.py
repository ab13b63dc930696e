"""The loss and its gradient by a kernel, against torch's log-softmax."""

from __future__ import annotations

import pytest
import torch

from dragoman.kernels import cross_entropy

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("rows", "size"), [(5, 300), (16, 5000), (3, 70_000)])
def test_gradient_of_the_loss(device: torch.device, rows: int, size: int) -> None:
    """The last vocabulary is larger than what a program holds, so that it reads chunks."""
    torch.manual_seed(0)
    logits = 3 * torch.randn(rows, size, device=device)
    gold = torch.randint(size, (rows, 1), device=device)
    gold[0] = -1
    counted = slice(1, None)
    log_probs = logits.log_softmax(-1)
    share = torch.full((rows - 1, 1), -0.9, device=device)
    expected = log_probs.exp()[counted].scatter_add_(1, gold[counted], share)
    plain = -log_probs[counted].gather(1, gold[counted]).sum()
    chosen = logits[counted].gather(1, gold[counted]).sum()
    sums = cross_entropy.launch(logits, gold, 0.1)
    torch.testing.assert_close(sums, torch.stack((plain, chosen)), rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(logits[counted], expected, rtol=1e-4, atol=1e-6)


def test_no_kernel_on_a_cpu() -> None:
    logits = torch.randn(2, 5)
    assert cross_entropy.loss_gradient(logits, torch.tensor([[1], [2]]), 0.1) is None
