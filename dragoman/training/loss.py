"""Cross-entropy with label smoothing (§5.4), without ever holding the logits of the whole batch.

The loss of a token is logsumexp(z) - (1 - eps) z_y - eps mean(z). The logits z = E h of a block of tokens are computed, turned
into their own gradient softmax(z) - (1 - eps) onehot(y) - eps / V in place, multiplied into the two gradients that are asked
for, and overwritten by the next block. The mean of z over the vocabulary needs no logits: it is h times the mean row of E.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from dragoman.model.transformer import Transformer

BLOCK = 2**25  # logits held at once: 128 MiB in float32


class TranslationLoss(nn.Module):
    """The model with its loss: what data-parallel training wraps, since its forward is what a step calls."""

    def __init__(self, model: Transformer, smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing

    def forward(
        self, source: Tensor, target: Tensor, lengths: Tensor | None, places: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Summed smoothed loss, and summed plain loss, over the tokens that stand at `places` of the flattened (B, T)."""
        features = self.model.features(source, target, lengths)
        return smoothed_loss(features.flatten(0, 1)[places], self.model.output_weight, labels, self.smoothing)


def smoothed_loss(features: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """features (N, D), weight (V, D), labels (N) -> the sums of the smoothed and of the plain loss; the first has a gradient."""
    smoothed, plain = _SmoothedLoss.apply(features, weight, labels, smoothing)
    return smoothed, plain


class _SmoothedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        matrix = weight.to(features.dtype)
        wants_gradient = any(ctx.needs_input_grad)
        features_gradient = torch.empty_like(features) if wants_gradient else None
        weight_gradient = torch.zeros_like(weight) if wants_gradient else None
        smoothed, plain = features.new_zeros((), dtype=torch.float32), features.new_zeros((), dtype=torch.float32)
        block = max(1, BLOCK // weight.size(0))
        for first in range(0, features.size(0), block):
            part, gold = features[first : first + block], labels[first : first + block]
            logits = part @ matrix.T
            total = logits.float().logsumexp(-1)
            chosen = logits.gather(1, gold[:, None]).squeeze(1).float()
            mean = logits.float().mean(-1)
            plain += (total - chosen).sum()
            smoothed += (total - (1 - smoothing) * chosen - smoothing * mean).sum()
            if features_gradient is None or weight_gradient is None:
                continue
            gradient = logits.sub_(total[:, None].to(logits.dtype)).exp_()
            gradient.sub_(smoothing / weight.size(0))
            gradient[torch.arange(len(gold), device=gold.device), gold] -= 1 - smoothing
            torch.mm(gradient, matrix, out=features_gradient[first : first + block])
            weight_gradient += gradient.T @ part
        ctx.save_for_backward(features_gradient, weight_gradient)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None]:  # type: ignore[override]
        features_gradient, weight_gradient = ctx.saved_tensors
        return features_gradient * upstream, weight_gradient * upstream, None, None
