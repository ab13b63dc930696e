"""One process or many: DDP and fully_shard under `torchrun`. Knows processes and weights; knows no
data.

Every process plans the same batches and takes its share of the rows. Losses are summed, divided by
the tokens of the whole batch and multiplied by the number of processes, since both wrappers average
gradients: any number of processes takes the step that one would. Checkpoints hold whole tensors, so
another number of processes can go on from them.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import _set_pg_timeout
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from dragoman.errors import TrainingError
from dragoman.runtimes.device import pick_device
from dragoman.training.joint_start import PATIENCE, STARTING, Place, start_together
from dragoman.training.loss import ModelLoss

_TEXT = 4096  # bytes of what a process says of itself
# What gloo and stores say when a process at the other end is gone.
_LOST = ("gloo", "Connection reset", "Connection closed", "Broken pipe", "failed to recv")


@dataclass(frozen=True)
class World:
    """The processes of a run, and the device of this one."""

    device: torch.device
    rank: int = 0
    size: int = 1

    @property
    def main(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    def wait(self) -> None:
        if self.size > 1:
            dist.barrier()

    def once(self, work: Callable[[], None]) -> None:
        """Work of the main process, for which the others wait; where it fails, they exit without
        a message of their own."""
        done = 0.0
        try:
            if self.main:
                work()
            done = 1.0
        finally:
            done = self.agree(done)
        if not done:
            raise SystemExit(2)

    def agree(self, value: float) -> float:
        """The value of the main process, in every process."""
        if self.size == 1:
            return value
        box = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.broadcast(box, 0)
        return float(box.item())

    def least(self, value: float) -> float:
        """The smallest value of all processes."""
        box = torch.tensor([value], dtype=torch.float64, device=self.device)
        if self.size > 1:
            dist.all_reduce(box, dist.ReduceOp.MIN)
        return float(box.item())

    def each(self, text: str) -> list[str]:
        """A short text of every process, by rank."""
        if self.size == 1:
            return [text]
        own = torch.zeros(_TEXT, dtype=torch.uint8)
        content = text.encode()
        assert len(content) <= _TEXT
        own[: len(content)] = torch.tensor(list(content), dtype=torch.uint8)
        own = own.to(self.device)
        boxes = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(boxes, own)
        return [bytes(box.tolist()).rstrip(b"\0").decode() for box in boxes]

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        if self.size == 1:
            return flag
        return self.total(torch.tensor(float(flag), device=self.device)).item() > 0

    def total(self, value: Tensor) -> Tensor:
        """The sum over the processes."""
        if self.size > 1:
            dist.all_reduce(value)
        return value


@contextlib.contextmanager
def join(settle: Callable[[], str]) -> Iterator[World]:
    """The world that torchrun's environment describes; a world of one without it. `settle` is
    called in the main process alone and returns the name of the device, which holds for all;
    where it fails, the others exit without a message of their own."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World(pick_device(settle()))
        return
    with _contact(int(os.environ["RANK"]), size):
        store, rank, size = next(rendezvous("env://", timeout=STARTING))
        store, device = start_together(store, Place(rank, size), settle)
        own = pick_device(device)
        backend = "gloo"
        if own.type == "cuda":
            own = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(own)
            backend = "nccl"
        # A process that dies in this moment is not waited for as long as one that prepares text.
        dist.init_process_group(backend, timeout=STARTING, store=store, rank=rank, world_size=size)
        store.set_timeout(PATIENCE)  # by it NCCL connects, before the first exchange
        _set_pg_timeout(PATIENCE)
        try:
            yield World(own, rank, size)
        finally:
            dist.destroy_process_group()


@contextlib.contextmanager
def _contact(rank: int, size: int) -> Iterator[None]:
    """Where another process is gone, one sentence says so."""
    try:
        yield
    except RuntimeError as error:
        if not _is_loss_of_contact(error):
            raise
        raise TrainingError(
            f"process {rank} of {size} has lost contact with the others; what was saved is intact: "
            "the run continues from there under torchrun --max-restarts, or with --resume"
        ) from None


def was_restarted() -> bool:
    """Whether torchrun has started this process again, after one of the run had died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def _is_loss_of_contact(error: RuntimeError) -> bool:
    """Whether an error is that of a connection between processes; gloo has no class for it."""
    words = str(error)
    return isinstance(error, dist.DistError) or any(sign in words for sign in _LOST)


def spread(loss: ModelLoss, world: World, shard: bool, precision: torch.dtype) -> nn.Module:
    """The model over all processes: a copy in each (DDP), or a shard of every matrix in each
    (fully_shard)."""
    if world.size == 1:
        return loss
    if not shard:
        return DistributedDataParallel(loss, gradient_as_bucket_view=True)
    # These modules take half a second to load, and a single process needs none of them.
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    # Nothing here is changed in place, which is what this warning is about.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")
    lower = None if precision == torch.float32 else precision
    policy = MixedPrecisionPolicy(param_dtype=lower, reduce_dtype=torch.float32)
    config = loss.model.config
    if config.encoder_layers:
        for layer in loss.model.encoder.layers:
            fully_shard(layer, mp_policy=policy)
    if config.decoder_layers:
        for layer in loss.model.decoder.layers:
            if config.encoder_layers:
                # A unit of its own: the decoder projects the memory before it calls the layer,
                # which puts only its own parts together.
                fully_shard(layer.get_submodule("cross_attention.key_value"), mp_policy=policy)
            fully_shard(layer, mp_policy=policy)
    fully_shard(loss, mp_policy=policy)
    return loss


@contextlib.contextmanager
def syncing(module: nn.Module, last: bool) -> Iterator[None]:
    """Gradients travel with the last part of a batch only."""
    if isinstance(module, DistributedDataParallel) and not last:
        with module.no_sync():
            yield
        return
    wait: Callable[[bool], None] | None = getattr(module, "set_requires_gradient_sync", None)
    if wait is not None:  # sharded
        wait(last)
    yield


def whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Every weight by name, a shared one once; sharded ones are put together (a call that all
    processes make)."""
    return {name: _whole(parameter.detach()) for name, parameter in model.named_parameters()}


def whole_moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state by weight and name of moment."""
    moments = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            moments[f"{key}/{name}"] = _whole(value)
    return moments


@torch.no_grad()
def put_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copies whole weights into the model, sharded or not."""
    for name, parameter in model.named_parameters():
        parameter.copy_(_like(weights[name], parameter))


def put_moments(
    model: nn.Module, optimizer: torch.optim.Optimizer, moments: dict[str, Tensor]
) -> None:
    """Copies whole moments into the optimiser."""
    by_weight: dict[str, dict[str, Tensor]] = {}
    for key, value in moments.items():
        moment, name = key.split("/", 1)
        by_weight.setdefault(name, {})[moment] = value
    for name, parameter in model.named_parameters():
        state = {}
        for moment, value in by_weight.get(name, {}).items():
            if value.shape == parameter.shape:
                state[moment] = _like(value, parameter).clone()
            else:  # a count of steps
                state[moment] = value.to(parameter.device)
        optimizer.state[parameter] = state


def _whole(value: Tensor) -> Tensor:
    """A sharded tensor put together, in main memory since a GPU need not hold them all; in the
    other processes, an empty one."""
    if not _is_sharded(value):
        return value
    whole: Tensor = value.full_tensor()  # type: ignore[attr-defined]
    return whole.cpu() if dist.get_rank() == 0 else whole.new_empty(0)


def _like(whole: Tensor, parameter: Tensor) -> Tensor:
    whole = whole.to(parameter.device)
    if not _is_sharded(parameter):
        return whole
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(parameter, DTensor)
    return distribute_tensor(whole, parameter.device_mesh, parameter.placements)


def _is_sharded(value: Tensor) -> bool:
    """Whether each process has a part of a tensor alone."""
    return hasattr(value, "full_tensor")
