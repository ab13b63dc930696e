"""The race: systems that share text, batches, loss, optimiser and search are trained in turns and
scored. Prints no tables.

What a system must have: `features` and `output_weight` for the loss, `start` and `step` for the
search.
"""

from __future__ import annotations

import bisect
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from convolution import ConvolutionalTranslator
from lstm import RecurrentTranslator
from torch import Tensor

from dragoman.data.batch_plan import fill_padded, plan_epoch
from dragoman.data.batches import Batch, Draw, Pairs
from dragoman.decoding.search import search
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem, Step
from dragoman.kernels.training_twins import accelerate_training
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.tasks.evaluate import Scoring, score, tokenize_for
from dragoman.text.tokenizer import BOS, EOS, Tokenizer
from dragoman.training.loss import smoothed_loss
from dragoman.training.optimizer import build_optimizer, learning_rate
from dragoman.training.training_options import TrainingOptions

Model = RecurrentTranslator | ConvolutionalTranslator | Transformer
# Each from a config, whose vocabulary and d_model all share, and a width, which the Transformer
# leaves aside.
SYSTEMS: dict[str, Callable[[ModelConfig, int], Model]] = {
    "lstm": RecurrentTranslator,
    "lstm-feeding": lambda config, width: RecurrentTranslator(config, width, feeding=True),
    "convolution": ConvolutionalTranslator,
    "transformer": lambda config, width: Transformer(config),
}
TURNS = 6  # in which the minutes are shared out; the valid loss is taken after each
TRIAL = 3, 10  # steps without and with a clock, from which the common number of steps is planned
PLANNED = 0.8  # of the steps that the slowest will have taken in the minutes


@dataclass(frozen=True)
class Work:
    """What all systems share."""

    config: ModelConfig  # the Transformer's
    options: TrainingOptions
    tokenizer: Tokenizer
    language: str  # of the target
    pairs: Pairs
    corpora: list[tuple[int, float]]
    valid: Pairs
    references: list[str]  # of the first valid pairs: those that are translated
    device: torch.device
    precision: torch.dtype
    beam: int = 4
    buckets: int = 4  # of sentence length
    clock: Callable[[], float] = time.perf_counter


@dataclass(frozen=True)
class Quality:
    """On the valid set: the plain loss a token, BLEU with its interval, and BLEU of each bucket
    of length."""

    loss: float
    bleu: float
    low: float | None
    high: float | None
    by_length: dict[str, float]
    signature: str


@dataclass
class Run:
    """One system on its way."""

    name: str
    work: Work
    model: Model
    batches: Iterator[Batch]
    optimizer: torch.optim.Optimizer
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    curve: list[tuple[float, int, float]] = field(default_factory=list)  # seconds, step, valid loss
    at_time: Quality | None = None
    at_steps: Quality | None = None

    @property
    def weights(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    def train(self, seconds: float = math.inf, steps: float = math.inf) -> None:
        """On until either has been reached in all."""
        self.model.train()
        while self.step < steps and self.seconds < seconds:
            began = self.work.clock()
            self.step += 1
            self.tokens += self._step(next(self.batches).to(self.work.device))
            if self.work.device.type == "cuda":
                torch.cuda.synchronize()
            self.seconds += self.work.clock() - began

    def _step(self, batch: Batch) -> int:
        options = self.work.options
        parameters = list(self.model.parameters())
        loss, _ = losses(self.model, batch, options.label_smoothing, self.work.precision)
        # Of the sum, then divided: cuDNN's LSTM may compute in float16, in which the gradients of a
        # mean would vanish.
        loss.backward()
        torch._foreach_div_(
            [weight.grad for weight in parameters if weight.grad is not None], len(batch.labels)
        )
        if options.clip:
            torch.nn.utils.clip_grad_norm_(parameters, options.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, options, self.work.config.d_model, self.seconds)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return len(batch.labels)


def begin(name: str, work: Work) -> Run:
    torch.manual_seed(work.options.seed)
    model = SYSTEMS[name](work.config, fitting_width(name, work.config)).to(work.device)
    accelerate_training(model, work.device)
    return Run(
        name, work, model, _batches(work), build_optimizer(model.named_parameters(), work.options)
    )


def fitting_width(name: str, config: ModelConfig) -> int:
    """With which the system has about as many weights as the Transformer."""

    def weights(system: str, width: int) -> int:
        with torch.device("meta"):
            return sum(
                parameter.numel() for parameter in SYSTEMS[system](config, width).parameters()
            )

    goal = weights("transformer", 0)
    widths = range(8, 8 * config.d_model, 8)
    place = bisect.bisect(widths, goal, key=lambda width: weights(name, width))
    return min(
        widths[max(0, place - 1) : place + 1], key=lambda width: abs(goal - weights(name, width))
    )


def _batches(work: Work) -> Iterator[Batch]:
    """The same for every system."""
    for epoch in itertools.count():
        draw = Draw(work.options.seed, epoch)
        for rows in plan_epoch(work.pairs, work.corpora, work.options.batch_tokens, draw):
            yield work.pairs.batch(rows)


def losses(
    model: Model, batch: Batch, smoothing: float, precision: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Summed smoothed and summed plain loss."""
    with torch.autocast(
        batch.source.device.type, torch.bfloat16, enabled=precision == torch.bfloat16
    ):
        features = model.features(batch.source, batch.target, batch.lengths).flatten(0, 1)[
            batch.positions
        ]
        return smoothed_loss(features, model.output_weight, batch.labels, smoothing)


def compete(work: Work, systems: Sequence[str], steps: int = 0) -> tuple[int, list[Run]]:
    """The systems at the end of their minutes; each was scored there and at the same number of
    steps, which comes back too."""
    seconds = 60 * work.options.minutes
    common = steps or max(1, int(PLANNED * seconds / max(_pace(name, work) for name in systems)))
    runs = [begin(name, work) for name in systems]
    for run in runs:
        run.curve.append((0.0, 0, valid_loss(run)))
    for turn in range(1, TURNS + 1):
        for run in runs:
            _take_turn(run, seconds * turn / TURNS, common)
    for run in runs:
        run.at_time = quality(run)
        _say(f"{run.name}: BLEU {run.at_time.bleu:.1f} after {work.options.minutes:g} minutes")
    for run in runs:
        if run.at_steps is None:
            # Too slow for the plan: it goes on with a copy of its counters, so that its own stay
            # those of the minutes.
            later = replace(run)
            later.train(steps=common)
            run.at_steps = quality(later)
    return common, runs


def _take_turn(run: Run, seconds: float, common: int) -> None:
    run.train(seconds, common if run.step < common else math.inf)
    if run.step == common and run.at_steps is None:
        run.at_steps = quality(run)
        _say(f"{run.name}: BLEU {run.at_steps.bleu:.1f} after {common:,} steps")
        run.train(seconds)
    run.curve.append((run.seconds, run.step, valid_loss(run)))
    _say(f"{run.name}: {run.seconds:.0f} s, step {run.step:,}, valid loss {run.curve[-1][2]:.3f}")


def _pace(name: str, work: Work) -> float:
    """Seconds a step, from a short trial that is thrown away."""
    run = begin(name, work)
    run.train(steps=TRIAL[0])
    run.seconds = 0.0
    run.train(steps=sum(TRIAL))
    return run.seconds / TRIAL[1]


@torch.inference_mode()
def valid_loss(run: Run) -> float:
    """Plain cross-entropy a token."""
    run.model.eval()
    total = 0.0
    tokens = 0
    for rows in fill_padded(run.work.valid, np.arange(len(run.work.valid)), 4096):
        batch = run.work.valid.batch(rows).to(run.work.device)
        total += losses(run.model, batch, 0.0, run.work.precision)[1].item()
        tokens += len(batch.labels)
    return total / tokens


def quality(run: Run) -> Quality:
    references = run.work.references
    how = tokenize_for(run.work.language)
    outputs = translate(run)
    whole = score(outputs, references, Scoring(how)).bleu
    parts = {}
    for label, rows in buckets(run.work).items():
        chosen = [outputs[row] for row in rows]
        expected = [references[row] for row in rows]
        parts[label] = score(chosen, expected, Scoring(how, bootstrap=0)).bleu.value
    return Quality(valid_loss(run), whole.value, whole.low, whole.high, parts, whole.signature)


@torch.inference_mode()
def translate(run: Run) -> list[str]:
    """The search is the same for every system: it sees a step and a state."""
    run.model.eval()
    beam = run.work.beam
    step: Step[Any] = run.model.step
    found: dict[int, tuple[int, ...]] = {}
    for rows in fill_padded(run.work.valid, np.arange(len(run.work.references)), 8192 // beam):
        batch = run.work.valid.batch(rows).to(run.work.device)
        lengths = torch.from_numpy(run.work.valid.lengths(rows)[0]).to(run.work.device)
        with torch.autocast(
            batch.source.device.type, torch.bfloat16, enabled=run.work.precision == torch.bfloat16
        ):
            state = run.model.start(batch.source, batch.lengths)
            # The source's end was counted.
            problem = Problem(step, state, lengths + 49, BOS, EOS)
            best = search(problem, SearchOptions(beam=beam))
        found.update(
            {int(row): hypotheses[0].tokens for row, hypotheses in zip(rows, best, strict=True)}
        )
    return run.work.tokenizer.decode([found[row] for row in range(len(found))])


def buckets(work: Work) -> dict[str, list[int]]:
    """Rows of the valid set by the number of their source tokens; sentences of one length stay
    together."""
    lengths = work.valid.lengths(np.arange(len(work.references)))[0] - 1
    borders = np.unique(
        np.quantile(lengths, np.arange(1, work.buckets + 1) / work.buckets, method="higher")
    )
    place = np.searchsorted(borders, lengths)
    rows = [np.flatnonzero(place == number) for number in range(len(borders))]
    return {f"{lengths[some].min()}-{lengths[some].max()}": some.tolist() for some in rows}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
