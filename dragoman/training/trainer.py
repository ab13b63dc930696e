"""The loop: batches in, steps taken, checkpoints out. Knows no text, and files only by their
owners.

Everything random in step N follows from (seed, N), and an epoch's batches from (seed, epoch): a
checkpoint needs weights, moments and a few counters, and a run that was killed goes on with the
losses of one that never was.
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor

from dragoman.data.prefetch import prefetch
from dragoman.errors import TrainingError
from dragoman.folder import layout, training_state
from dragoman.folder.weights import read_tensors, save_weights, shapes
from dragoman.model.transformer import Transformer
from dragoman.training.compute import choose_compute, compile_layers
from dragoman.training.diary import Diary, Stopwatch, memory_in_use
from dragoman.training.distributed import (
    World,
    put_moments,
    put_weights,
    whole_moments,
    whole_weights,
)
from dragoman.training.memory import fit_micro_tokens
from dragoman.training.optimizer import learning_rate
from dragoman.training.progress import Progress, read_progress
from dragoman.training.step_batches import StepBatch, StepBatches
from dragoman.training.stepper import Stepper
from dragoman.training.stopping import StopRule, caught_signals
from dragoman.training.training_data import TrainingData
from dragoman.training.training_options import TrainingOptions
from dragoman.training.validation import Quality


class Trainer:
    """A run from its latest checkpoint to its end."""

    def __init__(
        self,
        model: Transformer,
        options: TrainingOptions,
        folder: Path,
        world: World,
        data: TrainingData,
    ) -> None:
        self.options = options
        self.folder = folder
        self.world = world
        self.valid = data.valid
        self.model = model.to(world.device).train()
        self.compute = choose_compute(options, world.device, model, data.task)
        if self.compute.compiled:
            compile_layers(model, data.one_length)
        self.stepper = Stepper(model, options, world, self.compute, data.task)
        self.progress = self._restored()
        self.batches = StepBatches(data, options, world, self.compute.packed)
        # The same in all processes, so that all of them have equally many parts.
        fitting = fit_micro_tokens(self.stepper.module, options, self.compute, data.task)
        self.batches.micro_tokens = int(world.least(fitting))
        losses = self.progress.window[:2] if world.main else (0.0, 0.0)
        self._sums = torch.tensor(losses, device=world.device)
        self._saved = self.progress.step  # the step of the last checkpoint

    def run(self, diary: Diary) -> str:
        """Trains until there is a reason to stop, and returns it: steps, minutes, patience, or a
        signal's name."""
        watch = Stopwatch(self.progress.seconds)
        stop = StopRule(self.options, self.world, watch)
        mark = watch.seconds()
        counted = 0  # tokens since the mark
        with caught_signals() as signals:
            for work in prefetch(self.batches.walk(self.progress)):
                reason = stop.reason(self.progress, signals)
                if reason:
                    break
                self._step(work, stop.seconds, diary)
                self.progress = replace(self.progress, seconds=watch.seconds())
                counted += work.read
                diary.advance(self.progress.step, self.progress.seconds)
                if self.progress.step % self.options.log_every == 0:
                    now = watch.seconds()
                    self._log(diary, counted / max(1e-9, now - mark))
                    mark = now
                    counted = 0
                if self.progress.step % self.options.save_every == 0:
                    self._checkpoint(diary, validate=True)
                    mark = watch.seconds()
                    counted = 0
        self._last_checkpoint(diary, reason)
        return reason

    def finish(self) -> tuple[Quality | None, str]:
        """The better of the best weights and the average of the last checkpoints becomes the
        model; with a running mean of the weights, the best mean is the model already. Returns its
        quality, and which of them it is."""
        if self.options.ema:
            quality = self._quality(read_tensors(self.folder / layout.WEIGHTS))
            step = self.progress.best_step or self.progress.step
            return quality, f"the running mean of the weights at step {step:,}"
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
        step = self.progress.best_step
        if self.progress.best_of == 1:
            return quality, f"the checkpoint of step {step:,}"
        return quality, f"the average of {self.progress.best_of} checkpoints up to step {step:,}"

    def _restored(self) -> Progress:
        """Puts the latest checkpoint into the model and the optimiser; returns how far it came."""
        state = training_state.latest_state(self.folder)
        if self.world.main:
            training_state.tidy(self.folder, self.options.average)
        if state is None:
            return Progress(packed_plan=self.compute.packed)
        progress = read_progress(state)
        expected = shapes(self.model)
        put_weights(self.model, state.weights(expected))
        put_moments(self.model, self.stepper.optimizer, state.optimizer(expected))
        return progress

    def _step(self, work: StepBatch, seconds: float, diary: Diary) -> None:
        step = self.progress.step + 1
        self._sums += self.stepper.gradients(work, step, self.batches, diary.say)
        rate = learning_rate(step, self.options, self.model.config.d_model, seconds)
        self.stepper.update(rate, step)
        tokens = self.progress.window[2] + work.tokens
        self.progress = replace(
            self.progress,
            step=step,
            epoch=work.epoch,
            batch=work.index + 1,
            window=(0.0, 0.0, tokens),
        )

    def _log(self, diary: Diary, tokens_per_second: float) -> None:
        smoothed, plain, tokens = self._window()
        diary.record(
            {
                "step": self.progress.step,
                "loss": smoothed / tokens,
                "nll": plain / tokens,
                "lr": self.stepper.optimizer.param_groups[0]["lr"],
                "tokens_per_second": round(tokens_per_second, 1),
                "epoch": self.progress.epoch,
                "memory_gib": round(memory_in_use(self.world.device), 2),
                "seconds": round(self.progress.seconds, 1),
            }
        )
        self._sums.zero_()
        self.progress = replace(self.progress, window=(0.0, 0.0, 0.0))

    def _window(self) -> tuple[float, float, float]:
        """Losses and tokens of all processes since the last line of metrics."""
        smoothed, plain = self.world.total(self._sums.double().clone()).tolist()
        if not math.isfinite(smoothed + plain):
            raise _not_a_number("the loss", self.progress.step)
        return smoothed, plain, self.progress.window[2]

    def _last_checkpoint(self, diary: Diary, reason: str) -> None:
        if reason in ("steps", "minutes", "patience"):
            if self.progress.validated < self.progress.step:
                self._checkpoint(diary, validate=True)
        elif self._saved < self.progress.step:
            self._checkpoint(diary, validate=False)

    def _checkpoint(self, diary: Diary, validate: bool) -> None:
        """Validates, keeps the weights if they are the best, then saves the state: a kill in
        between repeats it all."""
        weights = whole_weights(self.model)
        moments = whole_moments(self.model, self.stepper.optimizer)
        step = self.progress.step
        validated = step if validate else self.progress.validated
        self.progress = replace(self.progress, window=self._window(), validated=validated)
        finite = all(bool(weight.isfinite().all()) for weight in weights.values())
        if self.world.any(not finite):
            raise _not_a_number("a weight", step)
        if self.world.main:
            if validate:
                self._validate(diary, _means(weights, moments))
            checkpoint = training_state.Checkpoint(
                step, weights, moments, asdict(self.progress), temporary=not validate
            )
            training_state.save_state(self.folder, checkpoint, self.options.average)
        self._saved = step
        self.progress = replace(self.progress, stale=int(self.world.agree(self.progress.stale)))

    def _validate(self, diary: Diary, weights: dict[str, Tensor]) -> None:
        quality = self._quality(weights)
        if quality is None:  # without a valid set, the newest weights are the model
            save_weights(self.folder, weights)
            return
        step = self.progress.step
        better = quality.value > self.progress.best
        samples = {"samples": [asdict(sample) for sample in quality.samples]}
        shown = samples if quality.samples else {}
        diary.record({"step": step, **quality.metrics, "best": better, **shown})
        if better:
            save_weights(self.folder, weights)
            self.progress = replace(
                self.progress, best=quality.value, best_step=step, best_of=1, stale=0
            )
        else:
            self.progress = replace(self.progress, stale=self.progress.stale + 1)

    def _quality(self, weights: dict[str, Tensor]) -> Quality | None:
        """The quality of a plain copy of the model, measured by this process alone."""
        if not len(self.valid):
            return None
        device = self.world.device
        model = Transformer(self.model.config).to(device)
        put_weights(model, weights)
        return self.valid.quality(model, device, self.options.select, self.compute.autocast)


def _means(weights: dict[str, Tensor], moments: dict[str, Tensor]) -> dict[str, Tensor]:
    """The running means of the weights where there are such, else the weights."""
    return {name: moments.get(f"ema/{name}", weight) for name, weight in weights.items()}


def _not_a_number(what: str, step: int) -> TrainingError:
    return TrainingError(
        f"{what} is not a number at step {step:,}; the last checkpoint is intact: "
        "continue from it with --resume and a lower training.learning_rate, or with training.clip=1"
    )
