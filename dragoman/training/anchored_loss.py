"""A loss that teaches a trained model something new and holds it to everything else. Knows features
and matrices; knows no text.

The model that the run continues (the old one) reads every batch too. Where it would have said the
token of the text itself, the new model is to predict what the old one predicts, with all of its
doubts (Hinton et al. 2015); only where it would have said another is that token to be learnt. At
first nothing but the tokens that are new pulls at the weights, and whatever moves for their sake is
pulled back wherever it changes another prediction. Li and Hoiem (2016) hold a model to its old
outputs in the same way.

With p the new and q the wanted distribution, the loss of a token is -sum(q log p), and its gradient
to the logits is p - q. As in loss.py, the logits exist for a block of tokens at a time.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dragoman.data.batches import Batch, PackedBatch
from dragoman.model.transformer import Transformer
from dragoman.training.loss import BLOCK, ModelLoss


class AnchoredLoss(ModelLoss):
    """A model with its loss, and a frozen copy of the model as it is now."""

    def __init__(self, model: Transformer, doubt: float) -> None:
        """`doubt` is what the old model's predictions keep of a token that is new."""
        super().__init__(model, smoothing=0.0)
        self._doubt = doubt
        stays = {id(one): one for one in model.parameters() if not one.requires_grad}
        old = copy.deepcopy(model, stays)  # what is not trained need not be there twice
        self._old = ModelLoss(old.eval().requires_grad_(False), smoothing=0.0)
        has_encoder = model.config.encoder_layers > 0
        # Where nothing in the encoder is trained, both models read with the same one.
        self._shares_encoder = has_encoder and not any(
            one.requires_grad for one in model.encoder.parameters()
        )

    def forward(self, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor]:
        """The summed loss, with a gradient, and the summed plain loss of the text's tokens."""
        assert isinstance(batch, Batch)  # compute.py packs none where there is an anchor
        memory = None
        with torch.no_grad():
            if self._shares_encoder:
                memory = self._old.model.encode(batch.source, batch.lengths)
            old_features, old_weight = self._old.features(batch, memory)
        features, weight = self.features(batch, memory)
        anchor = Anchor(old_features, old_weight, batch.labels, self._doubt)
        return anchored_loss(features, weight, anchor)


@dataclass(frozen=True)
class Anchor:
    """What the new model is held to, and the tokens that it is to learn."""

    features: Tensor  # (N, D) of the old model
    weight: Tensor  # (V, D) of the old model
    labels: Tensor  # (N)
    doubt: float

    def block(self, here: slice) -> Tensor:
        """The wanted distributions of some tokens, (n, V)."""
        matrix = self.weight.to(self.features.dtype)
        logits = self.features[here] @ matrix.T
        return wanted(logits, self.labels[here], self.doubt)


def wanted(old_logits: Tensor, labels: Tensor, doubt: float) -> Tensor:
    """Old logits (N, V), labels (N) -> what is to be predicted, (N, V): what the old model predicts
    where it would have said the label itself, else the label with `doubt` of those predictions."""
    distribution = old_logits.float().softmax(-1)
    is_new = distribution.argmax(-1) != labels
    distribution[is_new] *= doubt
    distribution[is_new, labels[is_new]] += 1 - doubt
    return distribution


def anchored_loss(features: Tensor, weight: Tensor, anchor: Anchor) -> tuple[Tensor, Tensor]:
    """features (N, D), weight (V, D) -> the summed loss, with a gradient, and the summed plain loss
    of the labels."""
    kind = features.device.type
    if torch.is_autocast_enabled(kind):
        features = features.to(torch.get_autocast_dtype(kind))
    with torch.autocast(kind, enabled=False):
        loss, plain = _AnchoredLoss.apply(features, weight, anchor)
    return loss, plain


class _AnchoredLoss(torch.autograd.Function):
    """Computes the gradients together with the loss, a block of tokens at a time."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, anchor: Anchor
    ) -> tuple[Tensor, Tensor]:
        features_gradient = torch.empty_like(features)
        is_trained = ctx.needs_input_grad[1]
        weight_gradient = torch.zeros_like(weight, dtype=torch.float32) if is_trained else None
        matrix = weight.to(features.dtype)
        loss, plain = features.new_zeros((2,), dtype=torch.float32)
        size = max(1, BLOCK // weight.size(0))
        for first in range(0, features.size(0), size):
            here = slice(first, first + size)
            part = features[here]
            log_probs = (part @ matrix.T).float().log_softmax(-1)
            distribution = anchor.block(here)
            labels = anchor.labels[here, None]
            plain -= log_probs.gather(1, labels).sum()
            loss -= (distribution * log_probs).sum()
            gradient = log_probs.exp_().sub_(distribution).to(features.dtype)
            features_gradient[here] = gradient @ matrix
            if weight_gradient is not None:
                weight_gradient += gradient.T @ part
        if weight_gradient is not None:
            weight_gradient = weight_gradient.to(weight.dtype)
        ctx.save_for_backward(features_gradient, weight_gradient)
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor, Tensor | None, None]:
        features_gradient, weight_gradient = ctx.saved_tensors
        if weight_gradient is not None:
            weight_gradient = weight_gradient * upstream
        return features_gradient * upstream, weight_gradient, None
