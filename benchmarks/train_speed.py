"""Training speed on one GPU: Dragoman compiled and plain, and transformers' Marian, on batches of
the same real text in one run: packed pairs for Dragoman compiled, padded ones for the others.

    dragoman train e.en e.de --out text --preset base --vocab-size 32000 --steps 1
    python benchmarks/train_speed.py text --presets base big

The first command prepares the text.

Each system runs in a process of its own, so that none finds the other's compiled code or memory.
Speed is target tokens a second, padding not counted, over `--steps` steps after `--warm` steps; `of
peak` is the arithmetic of the model's matrix products against a large bfloat16 product measured in
the same run. `--curve` prints the losses of both of our paths instead.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from dragoman.config import build, load_toml
from dragoman.data.batches import Pairs
from dragoman.data.prefetch import prefetch
from dragoman.folder.description import load_description
from dragoman.model.families import SHAPES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes.device import pick_device
from dragoman.training.distributed import World
from dragoman.training.optimizer import learning_rate
from dragoman.training.step_batches import StepBatch
from dragoman.training.trainer import Trainer
from dragoman.training.training_data import TrainingData
from dragoman.training.training_options import Options
from dragoman.training.validation import ValidPairs

SYSTEMS = ("dragoman", "dragoman-plain", "marian-compiled", "marian")
Step = Callable[[StepBatch], None]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a model folder with prepared text")
    parser.add_argument("--presets", nargs="+", default=["base"])
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS))
    parser.add_argument("--tokens", type=int, default=25_000, help="a batch")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm", type=int, default=40)
    parser.add_argument("--norm-first", action="store_true")
    parser.add_argument(
        "--curve",
        type=int,
        default=0,
        help="steps of the loss curves of both paths, instead of speed",
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(_measure(given, given.one, given.presets[0])), flush=True)
        return
    peak = _peak()
    print(f"{torch.cuda.get_device_name()}: {peak / 1e12:.0f} TFLOP/s in bfloat16\n")
    print(
        "| preset | system | tokens/s | of peak | first step after | memory |\n"
        "|---|---|---|---|---|---|"
    )
    for preset in given.presets:
        for system in given.systems:
            if given.curve and system.startswith("marian"):
                continue
            if not (found := _alone(preset, system)):
                print(f"| {preset} | {system} | failed | | | |", flush=True)
                continue
            share = found["flops"] * found["speed"] / peak
            row = (
                f"{found['speed']:,.0f} | {share:.1%} | "
                f"{found['start']:.0f} s | {found['memory']:.1f} GiB"
            )
            print(f"| {preset} | {system} | {row} |", flush=True)
            for step, loss in found["curve"]:
                print(f"    step {step}: loss {loss:.4f}")


def _alone(preset: str, system: str) -> dict[str, Any]:
    """Return what was measured, also if the process failed afterwards; else nothing."""
    words = [sys.executable, __file__, *sys.argv[1:], "--one", system, "--presets", preset]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    return dict(json.loads((done.stdout.splitlines() or ["{}"])[-1]))


def _measure(given: argparse.Namespace, system: str, preset: str) -> dict[str, Any]:
    began = time.perf_counter()
    with TemporaryDirectory() as place:
        trainer = _trainer(given, preset, "on" if system == "dragoman" else "off", Path(place))
        step = (
            _marian(trainer, system == "marian-compiled")
            if system.startswith("marian")
            else partial(_step, trainer)
        )
        batches = prefetch(trainer.batches.walk(trainer.progress))
        curve = list(_curve(trainer, batches, given.curve))
        speed, start = (0.0, 0.0) if given.curve else _speed(trainer, step, batches, given, began)
    shape = SHAPES[preset]
    width = shape["d_model"]
    inner = shape["d_ff"]
    vocabulary = trainer.model.config.vocab_size
    encoder = 4 * width**2 + 2 * width * inner
    decoder = 8 * width**2 + 2 * width * inner
    weights = (
        encoder * shape["encoder_layers"] + decoder * shape["decoder_layers"] + width * vocabulary
    )
    return {
        "speed": speed,
        "start": start,
        "curve": curve,
        "flops": 6
        # a target token and, near enough, a source token each: forward, and twice as much backward
        * weights,
        "memory": torch.cuda.max_memory_allocated() / 2**30,
    }


def _trainer(given: argparse.Namespace, preset: str, compiled: str, place: Path) -> Trainer:
    description, tokenizer = load_description(given.folder)
    manifest = json.loads((given.folder / "state" / "data" / "manifest.json").read_text())
    options = build(Options, load_toml(given.folder / "training.toml")).training
    options = replace(
        options, batch_tokens=given.tokens, compile=compiled, device="cuda", log_every=10**9
    )
    config = ModelConfig(
        vocab_size=description.model.vocab_size, norm_first=given.norm_first, **SHAPES[preset]
    )
    pairs = Pairs(given.folder / "state" / "data" / "train", manifest["dtype"])
    valid = ValidPairs(
        given.folder / "state" / "data" / "valid", manifest["dtype"], tokenizer, description, 0
    )
    data = TrainingData(place, "translate", lambda _: pairs, [(len(pairs), 1.0)], valid)
    torch.manual_seed(1)
    return Trainer(Transformer(config), options, place, World(pick_device("cuda")), data)


def _step(trainer: Trainer, work: StepBatch) -> None:
    """A step of the run, without its checkpoints and lines."""
    step = trainer.progress.step + 1
    trainer._sums += trainer.stepper.gradients(work, step, trainer.batches, print)
    d_model = trainer.model.config.d_model
    trainer.stepper.update(learning_rate(step, trainer.options, d_model), step)


def _speed(
    trainer: Trainer,
    step: Step,
    batches: Iterator[StepBatch],
    given: argparse.Namespace,
    began: float,
) -> tuple[float, float]:
    start = 0.0
    tokens = 0
    mark = 0.0
    for number, work in enumerate(batches):
        if number == given.warm:
            torch.cuda.synchronize()
            mark = time.perf_counter()
        if number == given.warm + given.steps:
            break
        trainer.progress = replace(trainer.progress, step=number)
        step(work)
        if number == 0:
            torch.cuda.synchronize()
            start = time.perf_counter() - began
        tokens += work.tokens if number >= given.warm else 0
    torch.cuda.synchronize()
    return tokens / (time.perf_counter() - mark), start


def _curve(
    trainer: Trainer, batches: Iterator[StepBatch], steps: int
) -> Iterator[tuple[int, float]]:
    tokens = 0
    for number in range(1, steps + 1):
        work = next(batches)
        trainer.progress = replace(trainer.progress, step=number - 1)
        _step(trainer, work)
        tokens += work.tokens
        if number % 50 == 0:
            yield number, float(trainer._sums[0]) / tokens
            trainer._sums.zero_()
            tokens = 0


def _marian(trainer: Trainer, compiled: bool) -> Step:
    """A model of the same shape on the same batches, padded, with fused Adam and bfloat16."""
    from transformers import MarianConfig, MarianMTModel

    config = trainer.model.config
    model = MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            dropout=config.dropout,
            attention_dropout=0.0,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            activation_function="relu",
            encoder_attention_heads=config.n_heads,
            decoder_attention_heads=config.n_heads,
            pad_token_id=0,
            eos_token_id=3,
            decoder_start_token_id=2,
            scale_embedding=True,
        )
    )
    torch.nn.Module.cuda(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    run = torch.compile(model, dynamic=True) if compiled else model

    def step(work: StepBatch) -> None:
        batch = work.examples.batch(work.rows).to(trainer.world.device)
        labels = torch.full_like(batch.target, -100).flatten()
        labels[batch.positions] = batch.labels
        with torch.autocast("cuda", torch.bfloat16):
            out = run(
                input_ids=batch.source,
                attention_mask=(batch.source != 0).long(),
                decoder_input_ids=batch.target,
            )
            loss = torch.nn.functional.cross_entropy(
                out.logits.flatten(0, 1), labels, label_smoothing=0.1
            )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _peak() -> float:
    """Operations a second of a large product of random bfloat16 matrices."""
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for _ in range(5):
        left @ right
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(50):
        left @ right
    torch.cuda.synchronize()
    return 50 * 2 * 8192**3 / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
