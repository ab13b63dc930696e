"""Cross-entropy with label smoothing (§5.4), without ever holding the logits of the whole batch.

With log-probabilities p and logits z = E h, the loss of a token is -p_y + eps (z_y - mean(z)), and its gradient to z is
exp(p) - (1 - eps) onehot(y) - eps / V. A block of tokens at a time, the logits are computed, turned into their gradient,
multiplied into the two gradients that are asked for, and forgotten. What is uniform over the vocabulary needs no logits:
mean(z) is h times the mean row of E, and eps / V reaches the gradients as that row and as the sum of all h.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from dragoman.model.transformer import Transformer

BLOCK = 2**25  # logits at once: 128 MiB in float32, and as much again for their log-probabilities


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
    """features (N, D), weight (V, D), labels (N) -> the summed smoothed loss, with a gradient, and the summed plain loss."""
    kind = features.device.type
    if torch.is_autocast_enabled(kind):
        features = features.to(torch.get_autocast_dtype(kind))
    with torch.autocast(kind, enabled=False):  # the types are set here; autocast would not follow into `out=`
        smoothed, plain = _SmoothedLoss.apply(features, weight, labels, smoothing)
    return smoothed, plain


class _SmoothedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        matrix, mean_row, features_sum = weight.to(features.dtype), weight.mean(0), features.float().sum(0)
        gradients = (torch.empty_like(features), torch.zeros_like(weight)) if any(ctx.needs_input_grad) else None
        plain, chosen_sum = features.new_zeros((2,), dtype=torch.float32)
        block = max(1, BLOCK // weight.size(0))
        for first in range(0, features.size(0), block):
            part, gold = features[first : first + block], labels[first : first + block, None]
            logits = part @ matrix.T
            chosen_sum += logits.gather(1, gold).sum(dtype=torch.float32)
            log_probs = logits.log_softmax(-1, dtype=torch.float32)
            chosen = log_probs.gather(1, gold)
            plain -= chosen.sum()
            if gradients:
                gradient = log_probs.exp_().scatter_(1, gold, chosen.exp() - (1 - smoothing)).to(part.dtype)
                torch.mm(gradient, matrix, out=gradients[0][first : first + block])
                _add_product(gradients[1], gradient.T, part)
        if gradients:
            gradients[0].sub_(smoothing * mean_row)
            gradients[1].sub_(smoothing / weight.size(0) * features_sum)
            ctx.save_for_backward(*gradients)
        smoothed = plain + smoothing * (chosen_sum - features_sum @ mean_row)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None]:
        features_gradient, weight_gradient = ctx.saved_tensors
        return features_gradient.mul_(upstream), weight_gradient.mul_(upstream), None, None


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """total += left @ right; in one call where all are of one type."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right
