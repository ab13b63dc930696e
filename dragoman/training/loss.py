"""Cross-entropy with label smoothing (§5.4), without ever holding the logits of the whole batch.

With log-probabilities p and logits z = E h, the loss of a token is -p_y + eps (z_y - mean(z)), and
its gradient to z is exp(p) - (1 - eps) onehot(y) - eps / V. A block of tokens at a time, the logits
are computed, turned into their gradient, multiplied into the two gradients that are asked for, and
forgotten. What is uniform over the vocabulary needs no logits: mean(z) is h times the mean row of
E, and eps / V reaches the gradients as that row and as the sum of all h.

R-Drop (Wu et al. 2021) sends every pair through the model twice and asks the two predictions p and
q, which differ by dropout alone, to agree: r/2 (KL(p, q) + KL(q, p)) is added to the losses of
both.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.data.batches import Batch, PackedBatch
from dragoman.kernels.cross_entropy import loss_gradient
from dragoman.kernels.packed_model import Side, packed_features
from dragoman.model.transformer import Transformer

BLOCK = 2**25  # logits at once: 128 MiB in float32, and as much again for their log-probabilities
GPU_BLOCK = 2**28  # 512 MiB in bfloat16: as few and as large products as memory allows


class TranslationLoss(nn.Module):
    """The model with its loss: what data-parallel training wraps, since its forward is what a
    step calls."""

    def __init__(self, model: Transformer, smoothing: float, r_drop: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing
        self.r_drop = r_drop

    def forward(self, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor]:
        """Summed smoothed loss, and summed plain loss. With R-Drop the batch holds its rows
        twice, one half after the other, and each pair's loss is the mean of both."""
        if isinstance(batch, PackedBatch):
            source = Side(batch.source, batch.sources)
            target = Side(batch.target, batch.targets)
            features = packed_features(self.model, source, target, batch.longest)
            features = (
                features * (batch.labels >= 0)[:, None]
            )  # a row of zeros adds nothing to either gradient
            weight = self.model.output_weight
        else:
            features, weight = self.at_places(batch)
        smoothed, plain = smoothed_loss(features, weight, batch.labels, self.smoothing, self.r_drop)
        return (smoothed / 2, plain / 2) if self.r_drop else (smoothed, plain)

    def at_places(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What is multiplied at each place to give its logits."""
        if self.model.classifier is not None:  # its logits stand for themselves
            logits = self.model.classify(batch.source, batch.lengths)[batch.positions]
            return logits, torch.eye(logits.size(1), device=logits.device)
        features = self.model.features(batch.source, batch.target, batch.lengths).flatten(0, 1)[
            batch.positions
        ]
        weight, bias = self.model.output_weight, self.model.output_bias
        if bias is not None:  # one more column, times 1; eight of them keep the products aligned
            features = torch.cat(
                (features, F.pad(features.new_ones(len(features), 1), (0, 7))), dim=1
            )
            weight = torch.cat((weight, F.pad(bias[:, None], (0, 7))), dim=1)
        return features, weight


def smoothed_loss(
    features: Tensor, weight: Tensor, labels: Tensor, smoothing: float, r_drop: float = 0.0
) -> tuple[Tensor, Tensor]:
    """features (N, D), weight (V, D), labels (N) -> the summed smoothed loss, with a gradient, and
    the summed plain loss.

    A label of -1 has no loss; its features are zeros."""
    kind = features.device.type
    if torch.is_autocast_enabled(kind):
        features = features.to(torch.get_autocast_dtype(kind))
    with torch.autocast(
        kind, enabled=False
    ):  # the types are set here; autocast would not follow into `out=`
        smoothed, plain = _SmoothedLoss.apply(features, weight, labels, smoothing, r_drop)
    return smoothed, plain


class _SmoothedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, labels: Tensor, smoothing: float, r_drop: float
    ) -> tuple[Tensor, Tensor]:
        # fully_shard hands the weight over in bfloat16; what is summed is summed in float32.
        matrix = weight.to(features.dtype)
        mean_row = weight.mean(0, dtype=torch.float32)
        features_sum = features.float().sum(0)
        gradients = None
        if any(ctx.needs_input_grad):
            gradients = (
                torch.empty_like(features),
                torch.zeros_like(weight, dtype=torch.float32),
            )
        plain, chosen_sum, apart = features.new_zeros((3,), dtype=torch.float32)
        copies = 2 if r_drop else 1
        rows, golds = features.view(copies, -1, features.size(1)), labels.view(copies, -1)
        block = max(1, (GPU_BLOCK if features.is_cuda else BLOCK) // copies // weight.size(0))
        for first in range(0, rows.size(1), block):
            part, gold = (
                rows[:, first : first + block].flatten(0, 1),
                golds[:, first : first + block].reshape(-1, 1),
            )
            logits = part @ matrix.T
            sums = loss_gradient(logits, gold, smoothing) if not r_drop else None
            if sums is not None:
                gradient = logits
                plain += sums[0]
                chosen_sum += sums[1]
            else:
                spared, gold = gold < 0, gold.clamp(min=0)
                chosen_sum += logits.gather(1, gold).sum(dtype=torch.float32)
                log_probs = logits.log_softmax(-1, dtype=torch.float32)
                chosen = log_probs.gather(1, gold)
                plain -= chosen.masked_fill(spared, 0.0).sum()
                if gradients is None:
                    continue
                pull, distance = (
                    _pull(log_probs.view(copies, -1, weight.size(0)), r_drop)
                    if r_drop
                    else (None, 0.0)
                )
                apart += distance
                gradient = log_probs.exp_().scatter_(1, gold, chosen.exp() - (1 - smoothing))
                gradient = (gradient if pull is None else gradient.add_(pull)).to(part.dtype)
            if gradients:
                spot = gradients[0].view_as(rows)[:, first : first + block]
                spot.copy_((gradient @ matrix).view_as(spot))
                _add_product(gradients[1], gradient.T, part)
        if gradients:
            gradients[0].sub_(smoothing * mean_row)
            gradients[1].sub_(smoothing / weight.size(0) * features_sum)
            ctx.save_for_backward(gradients[0], gradients[1].to(weight.dtype))
        smoothed = plain + smoothing * (chosen_sum - features_sum @ mean_row) + apart
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        features_gradient, weight_gradient = ctx.saved_tensors
        return features_gradient.mul_(upstream), weight_gradient.mul_(upstream), None, None, None


def _pull(log_probs: Tensor, r_drop: float) -> tuple[Tensor, Tensor]:
    """For log-probabilities (2, N, V): the gradient (2 * N, V) of r/2 (KL(p, q) + KL(q, p)) to
    the logits, and its sum."""
    one, two = log_probs
    ratio, p, q = one - two, one.exp(), two.exp()
    forth, back = (p * ratio).sum(-1, keepdim=True), -(q * ratio).sum(-1, keepdim=True)
    pull = torch.cat((p * (ratio - forth) + p - q, q * (-ratio - back) + q - p))
    return pull.mul_(r_drop / 2), r_drop / 2 * (forth + back).sum()


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """total += left @ right; in one call where all are of one type."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right
