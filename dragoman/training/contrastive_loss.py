"""The loss that makes texts with the same meaning neighbours. Knows vectors, and the processes of a
run; knows no text.

Each text of a batch is to find its partner among all texts of the other side: the cross-entropy
of its cosines, divided by a temperature, and the same from the other side (symmetric in-batch
negatives). A margin taken off the cosine of the right pair (Yang et al. 2019; LaBSE has 0.3) makes
the model keep others at that distance. Where a batch has a text twice, neither of its partners is
a wrong one for it.

The batch of a step is one, however many processes share it: each gets the vectors of all. Its own
have a gradient, and since the whole loss is computed from them, that gradient is whole.
"""

from __future__ import annotations

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from dragoman.data.batches import Batch, PackedBatch
from dragoman.model.heads import text_vectors
from dragoman.model.transformer import Transformer
from dragoman.training.loss import ModelLoss


class ContrastiveLoss(ModelLoss):
    """An encoder with the loss of its vectors."""

    def __init__(self, model: Transformer, temperature: float, margin: float) -> None:
        super().__init__(model, smoothing=0.0)
        self.temperature = temperature
        self.margin = margin

    def forward(self, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor]:
        """The loss summed over this process's pairs, whose gradient is that of all pairs together,
        and the same without the margin."""
        assert isinstance(batch, Batch)
        pairs = len(batch.labels)  # none of them where a process has no row of its own
        read = self.model.encode(batch.source, batch.lengths)
        vectors = text_vectors(read, batch.lengths)
        rows = len(vectors) // 2
        sources = vectors[:rows]
        targets = vectors[rows:]
        own = torch.stack((sources[:pairs], targets[:pairs])).float()  # (2, P, D)
        texts = batch.positions.view(2, -1)
        first, all_vectors, all_texts = _of_all_processes(own, texts)
        here = slice(first, first + pairs)
        losses = pair_losses(all_vectors, all_texts, self.temperature, self.margin)
        value = losses[here].sum().detach()
        whole = losses.sum() + 0.0 * vectors.sum()  # connected even where there is no own row
        with torch.no_grad():
            plain = pair_losses(all_vectors, all_texts, self.temperature, 0.0)
        return whole - whole.detach() + value, plain[here].sum()


def pair_losses(vectors: Tensor, texts: Tensor, temperature: float, margin: float) -> Tensor:
    """vectors (2, P, D) of length 1, texts (2, P) the same number where texts are the same -> the
    loss of each pair, (P): the mean of both directions."""
    sources, targets = vectors
    device = vectors.device
    pairs = len(sources)
    right = torch.arange(pairs, device=device)
    is_right = torch.eye(pairs, dtype=torch.bool, device=device)
    with torch.autocast(device.type, enabled=False):
        cosines = sources @ targets.T
        lowered = cosines - margin * is_right
        logits = lowered / temperature
        logits = logits.masked_fill(_no_negatives(texts, is_right), -math.inf)
        there = F.cross_entropy(logits, right, reduction="none")
        back = F.cross_entropy(logits.T, right, reduction="none")
    both = there + back
    return both / 2


def _no_negatives(texts: Tensor, is_right: Tensor) -> Tensor:
    """(P, P) where a text is not to be told from another, since one of their pairs has a text of
    the other."""
    source, target = texts
    same_source = source[:, None] == source
    same_target = target[:, None] == target
    same = same_source | same_target
    return same & ~is_right


def _of_all_processes(own: Tensor, texts: Tensor) -> tuple[int, Tensor, Tensor]:
    """Vectors (2, P, D) and texts (2, P) of all processes in order of rank, and where this one's
    begin. Others' vectors have no gradient here."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return 0, own, texts
    pairs = own.size(1)
    of_processes = _gathered(torch.tensor([pairs], device=own.device))
    counts = [int(count) for count in of_processes]
    missing = max(counts) - pairs
    padded = F.pad(own.detach(), (0, 0, 0, missing))
    padded_texts = F.pad(texts, (0, missing))
    vectors = _without_padding(_gathered(padded), counts)
    numbers = _without_padding(_gathered(padded_texts), counts)
    rank = dist.get_rank()
    vectors[rank] = own
    first = sum(counts[:rank])
    return first, torch.cat(vectors, dim=1), torch.cat(numbers, dim=1)


def _without_padding(parts: list[Tensor], counts: list[int]) -> list[Tensor]:
    """Parts (2, P, …), each with its own number of pairs."""
    return [part[:, :count] for part, count in zip(parts, counts, strict=True)]


def _gathered(value: Tensor) -> list[Tensor]:
    """The values of all processes, in order of rank."""
    value = value.contiguous()
    boxes = [torch.empty_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(boxes, value)
    return boxes
