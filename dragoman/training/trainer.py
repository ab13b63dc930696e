"""The loop: batches in, steps taken, checkpoints out. Knows no text and no files but by their
owners.

Everything random in step N follows from (seed, N), and an epoch's batches from (seed, epoch): a
checkpoint needs weights, moments and a few counters, and a run that was killed goes on with the
losses of one that never was.
"""

from __future__ import annotations

import itertools
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batch_plan import plan_epoch
from dragoman.data.batches import SHORTEST, Batch, Draw, Examples, PackedBatch, Pairs, Rows
from dragoman.data.prefetch import prefetch
from dragoman.errors import TrainingError
from dragoman.folder import layout, training_state
from dragoman.folder.weights import read_tensors, save_weights
from dragoman.kernels.jit import has_triton
from dragoman.kernels.packed_attention import has_kernels
from dragoman.kernels.training_twins import accelerate_training
from dragoman.model.decoder import Decoder
from dragoman.model.encoder import Encoder
from dragoman.model.transformer import Transformer
from dragoman.runtimes.device import computes_bfloat16
from dragoman.training.captured_steps import Graphs
from dragoman.training.distributed import (
    World,
    put_moments,
    put_weights,
    spread,
    syncing,
    whole_moments,
    whole_weights,
)
from dragoman.training.loss import TranslationLoss
from dragoman.training.memory import fit_micro_tokens
from dragoman.training.optimizer import build_optimizer, learning_rate
from dragoman.training.progress import Diary, Stopwatch, memory_in_use
from dragoman.training.training_options import TrainingOptions
from dragoman.training.validation import HeldOut, Quality, ValidSet


@dataclass
class Progress:
    """The counters of a run, as a checkpoint keeps them."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # of this epoch, done
    seconds: float = 0.0
    best: float = -math.inf  # of the validations' values
    best_step: int = 0
    best_of: int = (
        1  # checkpoints in the average that is the best; 1 where it is a checkpoint itself
    )
    validated: int = 0  # the step of the last validation
    stale: int = 0  # validations since the best
    # whether batches are filled with no thought of padding; so it stays, whichever path goes on
    packed_plan: bool = False
    window: tuple[float, float, float] = (
        0.0,
        0.0,
        0.0,
    )  # smoothed loss, plain loss, tokens since the last line of metrics


@dataclass(frozen=True)
class StepBatch:
    """A step's work: this process's share in parts that fit its memory, and the target tokens of
    all processes."""

    epoch: int
    index: int
    pairs: Examples
    rows: Rows
    tokens: int  # that have a loss
    read: int  # what speed is counted in
    micro_tokens: int  # what the parts were cut for
    parts: list[Batch | PackedBatch]


class Trainer:
    """A run from its latest checkpoint to its end."""

    def __init__(
        self,
        model: Transformer,
        options: TrainingOptions,
        folder: Path,
        world: World,
        epochs: Callable[[int], Examples],
        corpora: list[tuple[int, float]],
        valid: ValidSet,
    ) -> None:
        self.options, self.folder, self.world, self.valid = options, folder, world, valid
        self._epochs, self._corpora = epochs, corpora
        self.device = world.device
        self.precision = _precision(options, self.device)
        self.model = model.to(self.device).train()
        state = training_state.latest_state(folder)
        self.packed = _compiled(options, self.device) and model.config.plain
        self.progress = (
            _read_progress(state.progress) if state else Progress(packed_plan=self.packed)
        )
        task = isinstance(valid, HeldOut)
        self._compiled = self.packed or (task and _compiled(options, self.device))
        for stack in (
            stack
            for stack in model.children()
            if isinstance(stack, (Encoder, Decoder)) and self._compiled
        ):
            for layer in [*stack.layers, stack.norm]:
                layer.compile(dynamic=not valid.static)
        self._seeds = accelerate_training(model, self.device, self.packed)
        loss = TranslationLoss(self.model, options.label_smoothing, options.r_drop)
        self.module = spread(loss, world, options.shard, self.precision)
        self.optimizer = build_optimizer(self.model.named_parameters(), options)
        if state:
            put_weights(self.model, state.weights())
            put_moments(self.model, self.optimizer, state.optimizer())
        self._sums = torch.tensor(
            self.progress.window[:2] if world.main else (0.0, 0.0), device=self.device
        )
        self._saved, self._ask_at, self._seconds = self.progress.step, 0, self.progress.seconds
        fitted = options.micro_tokens or (
            options.batch_tokens if task and self.device.type == "cuda" else 0
        )
        fitted = fitted or fit_micro_tokens(self.module, self.device, self.autocast, self.packed)
        self.micro_tokens = int(
            world.least(fitted)
        )  # equal in all processes, so that all have equally many parts
        size = model.config.d_model // model.config.n_heads
        captured = self.packed and world.size == 1 and has_kernels(self.device, size)
        self._graphs = Graphs(self.module, self.device, self.autocast) if captured else None

    def run(self, diary: Diary) -> str:
        """Trains until something ends it, and says what: steps, minutes, patience, or a signal's
        name."""
        watch, self._diary = Stopwatch(self.progress.seconds), diary
        mark, counted = watch.seconds(), 0
        with _signals() as stop:
            for work in prefetch(self._walk()):
                reason = self._why_stop(watch, stop)
                if reason:
                    break
                self._step(work)
                self.progress = replace(
                    self.progress,
                    step=self.progress.step + 1,
                    epoch=work.epoch,
                    batch=work.index + 1,
                    seconds=watch.seconds(),
                )
                counted += work.read
                diary.advance(self.progress.step)
                if self.progress.step % self.options.log_every == 0:
                    now = watch.seconds()
                    self._log(counted / max(1e-9, now - mark))
                    mark, counted = now, 0
                if self.progress.step % self.options.save_every == 0:
                    self.checkpoint(validate=True)
                    mark, counted = watch.seconds(), 0
        if reason in ("steps", "minutes", "patience"):
            if self.progress.validated < self.progress.step:
                self.checkpoint(validate=True)
        elif self._saved < self.progress.step:
            self.checkpoint(validate=False)
        return reason

    @contextmanager
    def autocast(self) -> Iterator[None]:
        """bfloat16 where it was chosen."""
        on = self.precision == torch.bfloat16
        with torch.autocast(self.device.type, torch.bfloat16) if on else nullcontext():
            yield

    def checkpoint(self, validate: bool) -> None:
        """Validates, keeps the weights if they are the best, then saves the state: a kill in
        between repeats it all."""
        weights = whole_weights(self.model)
        moments = whole_moments(self.model, self.optimizer)
        step = self.progress.step
        self.progress = replace(
            self.progress,
            window=self._window(),
            validated=step if validate else self.progress.validated,
        )
        if self.world.any(not all(bool(weight.isfinite().all()) for weight in weights.values())):
            raise _no_number("a weight", step)
        if self.world.main:
            if validate:
                self._validate(weights)
            checkpoint = training_state.Checkpoint(
                step, weights, moments, asdict(self.progress), temporary=not validate
            )
            training_state.save_state(self.folder, checkpoint, self.options.average)
        self._saved = step
        self.progress = replace(self.progress, stale=int(self.world.agree(self.progress.stale)))

    def finish(self) -> tuple[Quality | None, str]:
        """The best weights against the average of the last checkpoints; the better ones become
        the model."""
        average, count = training_state.average_weights(self.folder, self.options.average)
        quality = self._quality(average)
        if quality is None or quality.value > self.progress.best:
            save_weights(self.folder, average)
            best = self.progress.best if quality is None else quality.value
            self.progress = replace(
                self.progress, best=best, best_step=self.progress.step, best_of=count
            )
            training_state.save_progress(self.folder, asdict(self.progress))
        else:
            quality = self._quality(read_tensors(self.folder / layout.WEIGHTS))
        step, count = self.progress.best_step, self.progress.best_of
        alone = f"the checkpoint of step {step:,}"
        return (
            quality,
            alone if count == 1 else f"the average of {count} checkpoints up to step {step:,}",
        )

    def _walk(self) -> Iterator[StepBatch]:
        """The batches from where the run stands, without end."""
        done = self.progress.batch
        for epoch in itertools.count(self.progress.epoch):
            pairs = self._epochs(epoch)
            if not len(pairs):
                raise TrainingError(
                    f"{self.folder} holds no training pairs; prepare it again from text"
                )
            plan = plan_epoch(
                pairs,
                self._corpora,
                self.options.batch_tokens,
                Draw(self.options.seed, epoch),
                self.progress.packed_plan,
            )
            for index, rows in itertools.islice(enumerate(plan), done, None):
                source, tokens = (int(side.sum()) for side in pairs.lengths(rows))
                read = tokens if self.model.config.decoder_layers else source
                fit = self.micro_tokens
                yield StepBatch(
                    epoch, index, pairs, rows, tokens, read, fit, self._parts(pairs, rows)
                )
            done = 0

    def _parts(self, pairs: Examples, rows: Rows) -> list[Batch | PackedBatch]:
        """This process's rows in parts of at most `micro_tokens`, as many parts as the other
        processes have; a part without a row takes one without its labels."""
        width = np.maximum(*pairs.lengths(rows))
        copies = 2 if self.options.r_drop else 1
        at_once = max(1, self.micro_tokens // copies // int(width.max()))
        mine = rows[np.argsort(width, kind="stable")][self.world.rank :: self.world.size]
        count = math.ceil(math.ceil(len(rows) / self.world.size) / at_once)
        parts = np.array_split(mine, count)
        unit = SHORTEST * max(1, self.options.batch_tokens // SHORTEST // 32)

        def lay(part: Rows) -> Batch | PackedBatch:
            if self.packed and isinstance(pairs, Pairs):
                return pairs.packed(part, unit, copies)
            return pairs.batch(np.tile(part, copies))

        return [lay(part) if len(part) else _without_labels(lay(rows[:1])) for part in parts]

    def _step(self, work: StepBatch) -> None:
        """One step of the optimiser; too little memory is answered by smaller parts of the same
        batch."""
        step = self.progress.step + 1
        # Parts that were made ahead of a shrinking are too large by now.
        parts = (
            work.parts
            if work.micro_tokens == self.micro_tokens
            else self._parts(work.pairs, work.rows)
        )
        while True:
            try:
                torch.manual_seed(_mixed(self.options.seed, step, self.world.rank))
                sums = self._accumulate(parts, work.tokens)
                break
            except torch.OutOfMemoryError:
                self._shrink(max(max(part.source.numel(), part.target.numel()) for part in parts))
            self.optimizer.zero_grad()
            if self._graphs is not None:
                self._graphs.forget()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            parts = self._parts(work.pairs, work.rows)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(
                step, self.options, self.model.config.d_model, self._seconds
            )
        if self.options.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self._sums += sums
        self.progress = replace(
            self.progress, window=(0.0, 0.0, self.progress.window[2] + work.tokens)
        )

    def _accumulate(self, parts: list[Batch | PackedBatch], tokens: int) -> Tensor:
        """Gradients of the whole batch; the sums of both losses over this process's share."""
        sums = torch.zeros(2, device=self.device)
        for number, part in enumerate(parts):
            if self._compiled:
                self._seeds.random_()
            if self._graphs is not None and isinstance(part, PackedBatch):
                sums += self._graphs(part, 1 / tokens, len(parts) == 1)
                continue
            with syncing(self.module, number == len(parts) - 1), self.autocast():
                smoothed, plain = self.module(part.to(self.device))
                (smoothed * (self.world.size / tokens)).backward()
            sums += torch.stack((smoothed.detach(), plain))
        return sums

    def _shrink(self, tokens: int) -> None:
        """After `tokens` at once were too many."""
        fewer = min(self.micro_tokens, tokens) // 2
        if self.world.size > 1:
            raise TrainingError(
                f"process {self.world.rank} ran out of memory with {tokens:,} tokens at once; "
                f"go on with --resume {self.folder} --set micro_tokens={fewer}"
            )
        if fewer < 8:
            raise TrainingError(
                "even one pair at a time does not fit into memory; choose a smaller --preset"
            )
        self.micro_tokens = fewer
        self._diary.say(
            f"out of memory: going on with parts of {self.micro_tokens:,} tokens, the batch stays as it was"
        )

    def _window(self) -> tuple[float, float, float]:
        """Losses and tokens of all processes since the last line of metrics."""
        smoothed, plain = self.world.total(self._sums.double().clone()).tolist()
        if not math.isfinite(smoothed + plain):
            raise _no_number("the loss", self.progress.step)
        return smoothed, plain, self.progress.window[2]

    def _log(self, tokens_per_second: float) -> None:
        smoothed, plain, tokens = self._window()
        self._diary.record(
            step=self.progress.step,
            loss=smoothed / tokens,
            nll=plain / tokens,
            lr=self.optimizer.param_groups[0]["lr"],
            tokens_per_second=round(tokens_per_second, 1),
            epoch=self.progress.epoch,
            memory_gib=round(memory_in_use(self.device), 2),
            seconds=round(self.progress.seconds, 1),
        )
        self._sums.zero_()
        self.progress = replace(self.progress, window=(0.0, 0.0, 0.0))

    def _validate(self, weights: dict[str, Tensor]) -> None:
        quality = self._quality(weights)
        if quality is None:  # no valid set: the newest weights are the model
            save_weights(self.folder, weights)
            return
        better = quality.value > self.progress.best
        self._diary.record(step=self.progress.step, **quality.metrics, best=better)
        if better:
            save_weights(self.folder, weights)
            self.progress = replace(
                self.progress, best=quality.value, best_step=self.progress.step, best_of=1, stale=0
            )
        else:
            self.progress = replace(self.progress, stale=self.progress.stale + 1)

    def _quality(self, weights: dict[str, Tensor]) -> Quality | None:
        """Of a plain copy of the model, on this process alone."""
        if not len(self.valid):
            return None
        model = Transformer(self.model.config).to(self.device)
        put_weights(model, weights)
        return self.valid.quality(model, self.device, self.options.select, self.autocast)

    def _why_stop(self, watch: Stopwatch, stop: list[str]) -> str:
        if self.progress.step >= self.options.steps:
            return "steps"
        if self.options.patience and self.progress.stale >= self.options.patience:
            return "patience"
        if self.progress.step < self._ask_at:
            return ""
        if self.world.size > 1:
            # Every two seconds or so: asking one another takes time, and who sent the signal may
            # not wait for long.
            pace = 2 * self.progress.step / max(1e-9, self.progress.seconds)
            self._ask_at = self.progress.step + int(self.world.agree(min(50, max(1, pace))))
        if self.world.any(bool(stop)):
            return stop[0] if stop else "SIGTERM"
        self._seconds = self.world.agree(
            watch.seconds()
        )  # one clock for all: the rate follows from it
        late = 0 < self.options.minutes * 60 <= self._seconds
        return "minutes" if late and self.progress.step else ""


def _no_number(what: str, step: int) -> TrainingError:
    return TrainingError(
        f"{what} is not a number at step {step:,}; the last checkpoint is intact: "
        "go on from it with --resume and a lower training.learning_rate, or with training.clip=1"
    )


def _mixed(*numbers: int) -> int:
    """A seed that follows from all the numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def _without_labels(batch: Batch | PackedBatch) -> Batch | PackedBatch:
    if isinstance(batch, PackedBatch):
        return replace(batch, labels=torch.full_like(batch.labels, -1))
    return replace(batch, positions=batch.positions[:0], labels=batch.labels[:0])


def _read_progress(values: dict[str, Any]) -> Progress:
    try:
        return Progress(**{**values, "window": tuple(values["window"])})
    except (TypeError, KeyError):
        raise TrainingError(
            "the checkpoint's progress.json is damaged or of another version; start the run again"
        ) from None


def _compiled(options: TrainingOptions, device: torch.device) -> bool:
    """Whether layers are compiled; they then see pairs that lie end to end, whose one length is
    all that varies, or what other tasks have."""
    return options.compile == "on" or (options.compile == "auto" and has_triton(device))


def _precision(options: TrainingOptions, device: torch.device) -> torch.dtype:
    if options.precision == "auto":
        return torch.bfloat16 if computes_bfloat16(device) else torch.float32
    return torch.bfloat16 if options.precision == "bfloat16" else torch.float32


@contextmanager
def _signals() -> Iterator[list[str]]:
    """The signals that came in; a second one of a kind does what it always did."""
    came: list[str] = []
    before: dict[signal.Signals, Any] = {}

    def note(number: int, _: object) -> None:
        came.append(signal.Signals(number).name)
        signal.signal(number, before[signal.Signals(number)])

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, note)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
