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

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.data.batches import Batch, PackedBatch
from dragoman.kernels.cross_entropy import loss_gradient
from dragoman.kernels.packed_model import Side, packed_features
from dragoman.model.transformer import Transformer

# Logits at once: 128 MiB in float32, and as much again for their log-probabilities.
BLOCK = 2**25
GPU_BLOCK = 2**28  # 512 MiB in bfloat16: as few and as large products as memory allows


class ModelLoss(nn.Module):
    """A model with its loss, whatever it predicts: what data-parallel training wraps, since its
    forward is what a step calls."""

    def __init__(self, model: Transformer, smoothing: float, r_drop: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing
        self.r_drop = r_drop

    def forward(self, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor]:
        """The summed smoothed loss, and the summed plain loss. With R-Drop the batch holds its
        rows twice, one half after the other, and each pair's loss is the mean of both."""
        if self.model.classifier is not None:
            assert isinstance(batch, Batch)
            logits = self.logits(batch)
            smoothed, plain = label_loss(logits, batch.labels, self.smoothing, self.r_drop)
        else:
            features, weight = self.features(batch)
            labels = batch.labels
            smoothed, plain = smoothed_loss(features, weight, labels, self.smoothing, self.r_drop)
        if self.r_drop:
            return smoothed / 2, plain / 2
        return smoothed, plain

    def logits(self, batch: Batch) -> Tensor:
        """The logits (N, V) at the positions of the batch, or of its labels (N, classes)."""
        if self.model.classifier is not None:
            logits = self.model.classify(batch.source, batch.lengths)
            return logits.flatten(0, -2)[batch.positions]
        return F.linear(*self.features(batch))

    def features(
        self, batch: Batch | PackedBatch, memory: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """What is multiplied to give the logits: the features (N, D) and the matrix (V, D).
        `memory` is the encoder's output where that is known."""
        if isinstance(batch, PackedBatch):
            source = Side(batch.source, batch.sources)
            target = Side(batch.target, batch.targets)
            features = packed_features(self.model, source, target, batch.longest)
            # A row of zeros adds nothing to either gradient.
            is_labelled = (batch.labels >= 0)[:, None]
            return features * is_labelled, self.model.output_weight
        features = self.model.features(batch.source, batch.target, batch.lengths, memory)
        features = features.flatten(0, 1)[batch.positions]
        weight = self.model.output_weight
        bias = self.model.output_bias
        if bias is None:
            return features, weight
        # The bias is one more column of the matrix, times 1; eight keep the products aligned.
        column = features.new_ones(len(features), 1)
        ones = F.pad(column, (0, 7))
        biases = F.pad(bias[:, None], (0, 7))
        features = torch.cat((features, ones), dim=1)
        weight = torch.cat((weight, biases), dim=1)
        return features, weight


def label_loss(
    logits: Tensor, labels: Tensor, smoothing: float, r_drop: float = 0.0
) -> tuple[Tensor, Tensor]:
    """logits (N, classes), labels (N) -> the summed smoothed loss, with a gradient, and the summed
    plain loss. For logits that are few, unlike those of a vocabulary."""
    logits = logits.float()
    smoothed = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing)
    plain = F.cross_entropy(logits.detach(), labels, reduction="sum")
    if r_drop:
        one, two = logits.log_softmax(-1).chunk(2)
        apart = F.kl_div(one, two, reduction="sum", log_target=True)
        apart = apart + F.kl_div(two, one, reduction="sum", log_target=True)
        smoothed = smoothed + r_drop / 2 * apart
    return smoothed, plain


def smoothed_loss(
    features: Tensor,
    weight: Tensor,
    labels: Tensor,
    smoothing: float,
    r_drop: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """features (N, D), weight (V, D), labels (N) -> the summed smoothed loss, with a gradient, and
    the summed plain loss.

    A label of -1 has no loss; its features are zeros."""
    kind = features.device.type
    if torch.is_autocast_enabled(kind):
        features = features.to(torch.get_autocast_dtype(kind))
    # The types are set here; autocast would not follow into `out=`.
    with torch.autocast(kind, enabled=False):
        terms = _Terms(smoothing, r_drop)
        smoothed, plain = _SmoothedLoss.apply(features, weight, labels, terms)
    return smoothed, plain


@dataclass(frozen=True)
class _Terms:
    """What is added to the plain loss."""

    smoothing: float
    r_drop: float


class _SmoothedLoss(torch.autograd.Function):
    """Computes the gradients together with the loss. fully_shard hands the weight over in bfloat16;
    what is summed over tokens and blocks is summed in float32."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        labels: Tensor,
        terms: _Terms,
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad)
        features_gradient = features
        weight_gradient = weight
        if wanted:
            features_gradient = torch.empty_like(features)
            weight_gradient = torch.zeros_like(weight, dtype=torch.float32)
        matrix = weight.to(features.dtype)
        plain, chosen, apart = features.new_zeros((3,), dtype=torch.float32)
        # With R-Drop a block holds the same rows of both copies.
        copies = 2 if terms.r_drop else 1
        rows = features.view(copies, -1, features.size(1))
        golds = labels.view(copies, -1)
        n_rows = rows.size(1)
        vocabulary = weight.size(0)
        n_logits = GPU_BLOCK if features.is_cuda else BLOCK
        size = max(1, n_logits // copies // vocabulary)
        for first in range(0, n_rows, size):
            here = slice(first, first + size)
            part = rows[:, here].flatten(0, 1)
            gold = golds[:, here].reshape(-1, 1)
            block = _block(part @ matrix.T, gold, terms, wanted)
            plain += block.plain
            chosen += block.chosen
            apart += block.apart
            if block.gradient is not None:
                spot = features_gradient.view_as(rows)[:, here]
                to_part = block.gradient @ matrix
                spot.copy_(to_part.view_as(spot))
                _add_product(weight_gradient, block.gradient.T, part)
        # What is uniform over the vocabulary: the terms of eps / V.
        mean_row = weight.mean(0, dtype=torch.float32)
        features_sum = features.float().sum(0)
        smoothing = terms.smoothing
        if wanted:
            features_gradient.sub_(smoothing * mean_row)
            weight_gradient.sub_(smoothing / vocabulary * features_sum)
            weight_gradient = weight_gradient.to(weight.dtype)
            ctx.save_for_backward(features_gradient, weight_gradient)
        mean_logits = features_sum @ mean_row
        smoothed = plain + smoothing * (chosen - mean_logits) + apart
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None]:
        features_gradient, weight_gradient = ctx.saved_tensors
        features_gradient.mul_(upstream)
        weight_gradient.mul_(upstream)
        return features_gradient, weight_gradient, None, None


@dataclass(frozen=True)
class _Block:
    """What the logits of some tokens give, summed."""

    plain: Tensor  # the loss without smoothing
    chosen: Tensor  # the logits of the labels
    apart: Tensor | float  # R-Drop's distance
    gradient: Tensor | None  # to the logits, without the terms of eps / V


def _block(logits: Tensor, gold: Tensor, terms: _Terms, wanted: bool) -> _Block:
    """The sums over a block of tokens and, where it is `wanted`, their gradient."""
    if not terms.r_drop:
        sums = loss_gradient(logits, gold, terms.smoothing)
        if sums is not None:
            plain, chosen_logits = sums
            return _Block(
                plain=plain,
                chosen=chosen_logits,
                apart=0.0,
                # The kernel has turned the logits into their gradient.
                gradient=logits if wanted else None,
            )
    unlabelled = gold < 0
    gold = gold.clamp(min=0)
    of_labels = logits.gather(1, gold)
    chosen_logits = of_labels.sum(dtype=torch.float32)
    log_probs = logits.log_softmax(-1, dtype=torch.float32)
    chosen = log_probs.gather(1, gold)
    plain = -chosen.masked_fill(unlabelled, 0.0).sum()
    if not wanted:
        return _Block(plain, chosen_logits, 0.0, None)
    pull: Tensor | None = None
    apart: Tensor | float = 0.0
    if terms.r_drop:
        of_copies = log_probs.view(2, -1, logits.size(1))
        pull, apart = _pull(of_copies, terms.r_drop)
    confidence = 1 - terms.smoothing
    at_labels = chosen.exp() - confidence
    gradient = log_probs.exp_()
    gradient.scatter_(1, gold, at_labels)
    if pull is not None:
        gradient.add_(pull)
    return _Block(
        plain=plain,
        chosen=chosen_logits,
        apart=apart,
        gradient=gradient.to(logits.dtype),
    )


def _pull(log_probs: Tensor, r_drop: float) -> tuple[Tensor, Tensor]:
    """For log-probabilities (2, N, V): the gradient (2 * N, V) of r/2 (KL(p, q) + KL(q, p)) to
    the logits, and its sum."""
    log_p, log_q = log_probs
    p = log_p.exp()
    q = log_q.exp()
    ratio = log_p - log_q
    p_to_q = (p * ratio).sum(-1, keepdim=True)
    q_to_p = -(q * ratio).sum(-1, keepdim=True)
    pull_p = p * (ratio - p_to_q) + p - q
    pull_q = q * (-ratio - q_to_p) + q - p
    half = r_drop / 2
    pull = torch.cat((pull_p, pull_q))
    pull.mul_(half)
    both_ways = p_to_q + q_to_p
    return pull, half * both_ways.sum()


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """total += left @ right; in one call where all have the same type."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right
