"""One step: the gradients of a batch, part by part, and the optimiser. Knows no epochs, files or
text.

Everything random in step N follows from (seed, N, process).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.batches import PackedBatch
from dragoman.errors import TrainingError
from dragoman.kernels.packed_attention import has_kernels
from dragoman.kernels.training_twins import accelerate_training
from dragoman.model.transformer import Transformer
from dragoman.training.anchored_loss import AnchoredLoss
from dragoman.training.captured_steps import Graphs
from dragoman.training.compute import Compute
from dragoman.training.contrastive_loss import ContrastiveLoss
from dragoman.training.distributed import World, spread, syncing
from dragoman.training.loss import ModelLoss
from dragoman.training.optimizer import build_optimizer, update_running_mean
from dragoman.training.step_batches import Part, StepBatch, StepBatches
from dragoman.training.training_options import TrainingOptions

FEWEST = 8  # tokens at once, below which a smaller model is what is needed


class Stepper:
    """The model with its loss, spread over the processes, and its optimiser."""

    def __init__(
        self,
        model: Transformer,
        options: TrainingOptions,
        world: World,
        compute: Compute,
        task: str = "translate",
    ) -> None:
        self.model = model
        self._options = options
        self._world = world
        self._compute = compute
        self._contrasts = task == "embed"
        _freeze(model, options.freeze)
        loss = _loss(model, options, self._contrasts)
        self._dropout_seeds = accelerate_training(model, compute.device, compute.packed)
        self.module: nn.Module = spread(loss, world, options.shard, compute.precision)
        self.optimizer = build_optimizer(_trained(model), options)
        self._graphs = None
        if compute.packed and world.size == 1:
            head_size = model.config.d_model // model.config.n_heads
            if has_kernels(compute.device, head_size):
                self._graphs = Graphs(self.module, compute.device, compute.autocast)

    def gradients(
        self,
        work: StepBatch,
        step: int,
        batches: StepBatches,
        say: Callable[[str], None],
    ) -> Tensor:
        """Leaves the batch's gradients in the parameters. Returns the sums of its smoothed and its
        plain loss over this process's share, (2,). Where memory runs out, the same batch is done
        again in smaller parts."""
        parts = work.parts
        if work.micro_tokens != batches.micro_tokens:  # made before memory ran out
            parts = batches.split(work.examples, work.rows, batches.micro_tokens)
        while True:
            try:
                torch.manual_seed(_seed(self._options.seed, step, self._world.rank))
                return self._accumulate(parts, work.tokens)
            except torch.OutOfMemoryError:
                tried = max(max(part.source.numel(), part.target.numel()) for part in parts)
                batches.micro_tokens = self._fewer_tokens(batches.micro_tokens, tried)
            say(
                f"out of memory: continuing with parts of {batches.micro_tokens:,} tokens; "
                "the batch stays the same"
            )
            self._free_memory()
            parts = batches.split(work.examples, work.rows, batches.micro_tokens)

    def update(self, rate: float, step: int) -> None:
        """Moves the weights along the gradients, which are then forgotten."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if self._options.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self._options.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self._options.ema:
            weights: list[Tensor] = list(self.model.parameters())
            update_running_mean(self.optimizer, weights, self._options.ema, step)

    def _accumulate(self, parts: list[Part], tokens: int) -> Tensor:
        sums = torch.zeros(2, device=self._compute.device)
        for number, part in enumerate(parts, 1):
            if self._compute.compiled:
                self._dropout_seeds.random_()
            if self._graphs is not None and isinstance(part, PackedBatch):
                sums += self._graphs(part, 1 / tokens, len(parts) == 1)
                continue
            with syncing(self.module, last=number == len(parts)), self._compute.autocast():
                smoothed, plain = self.module(part.to(self._compute.device))
                (smoothed * (self._world.size / tokens)).backward()
            sums += torch.stack((smoothed.detach(), plain))
        return sums

    def _fewer_tokens(self, micro_tokens: int, tried: int) -> int:
        """Half as many tokens at once as were too many."""
        fewer = min(micro_tokens, tried) // 2
        if self._contrasts:
            raise TrainingError(
                f"a batch of {self._options.batch_tokens:,} tokens a side does not fit into "
                "memory, and the loss compares each text with all others of its batch; continue "
                f"with --resume and --set batch_tokens={self._options.batch_tokens // 2}"
            )
        if self._world.size > 1:
            raise TrainingError(
                f"process {self._world.rank} ran out of memory with {tried:,} tokens at once; "
                f"continue with --resume and --set micro_tokens={fewer}"
            )
        if fewer < FEWEST:
            raise TrainingError(
                "even one pair at a time does not fit into memory; choose a smaller --preset"
            )
        return fewer

    def _free_memory(self) -> None:
        self.optimizer.zero_grad()
        if self._graphs is not None:
            self._graphs.forget()
        if self._compute.device.type == "cuda":
            torch.cuda.empty_cache()


def _freeze(model: Transformer, what: str) -> None:
    if what == "nothing":
        return
    model.requires_grad_(False)
    model.decoder.layers.requires_grad_(True)
    model.decoder.norm.requires_grad_(True)


def _trained(model: Transformer) -> list[tuple[str, nn.Parameter]]:
    return [(name, one) for name, one in model.named_parameters() if one.requires_grad]


def _loss(model: Transformer, options: TrainingOptions, contrasts: bool) -> ModelLoss:
    """The loss; where it is anchored, to the model as it is now, before a checkpoint is read."""
    if contrasts:
        return ContrastiveLoss(model, options.temperature, options.margin)
    if options.anchor:
        return AnchoredLoss(model, options.label_smoothing)
    return ModelLoss(model, options.label_smoothing, options.r_drop)


def _seed(*numbers: int) -> int:
    """A seed that follows from all the numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
