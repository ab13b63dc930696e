"""Is attention all one needs? An LSTM, a convolutional network and the Transformer, of like size,
trained on the same batches.

    python benchmarks/before/compare.py train.en train.de --valid valid.en valid.de \\
        --minutes 3 --threads 2
    python benchmarks/before/compare.py models/en-de --minutes 5 --device cuda

The second form reads a folder that `dragoman train` prepared.

All have the same text, tokeniser, loss, optimiser, schedule, dropout, width of embeddings, beam
search and minutes. The LSTM and the convolutions are as wide as gives them the Transformer's number
of weights. They train in turns, so that whatever else the machine does falls on all alike; their
clocks stand still while they are scored. All run as plain torch, on a GPU in bfloat16: the
Transformer too, without the compiled path that `dragoman train` takes there. Out come tables and,
last, a line of JSON with all figures and the curves of the valid loss.

`path` is the most steps between two positions n apart, over which a signal has to come through
(Vaswani et al. 2017, Table 1).
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from convolution import KERNEL
from race import SYSTEMS, Quality, Run, Work, compete

from dragoman.config import build, load_toml
from dragoman.data.batches import Pairs
from dragoman.data.data_options import DataOptions
from dragoman.data.prepare import prepare
from dragoman.errors import DragomanError, InputError
from dragoman.folder.description import load_description
from dragoman.model.families import SHAPES
from dragoman.model.model_config import ModelConfig
from dragoman.runtimes.device import keep_memory, pick_device
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions
from dragoman.training.training_options import Options, TrainingOptions

PATHS = {"lstm": "n", "lstm-feeding": "n", "convolution": f"n/{KERNEL}", "transformer": "1"}


def main(words: Sequence[str] | None = None) -> None:
    parser = _parser()
    given = parser.parse_args(words)
    if given.processor_time and (given.threads > 1 or given.device != "cpu"):
        parser.error(
            "--processor-time counts every thread's time and no GPU's; "
            "give --threads 1 and --device cpu with it"
        )
    torch.set_num_threads(given.threads)
    keep_memory()
    try:
        with TemporaryDirectory() as place:
            work = (
                from_folder(given)
                if Path(given.text[0]).is_dir()
                else from_text(given, Path(place))
            )
            show(given, work, *compete(work, given.systems, given.steps))
    except DragomanError as error:
        parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("text", nargs="+", help="training files, or one folder that `dragoman train` has prepared")
    add(
        "--valid",
        nargs="+",
        default=[],
        help="validation files; without them some training text is set aside",
    )
    add(
        "--systems",
        nargs="+",
        choices=list(SYSTEMS),
        default=["lstm", "convolution", "transformer"],
    )
    add("--minutes", type=float, default=3.0, help="of training, for each system")
    add(
        "--steps",
        type=int,
        default=0,
        help="at which all are compared as well; 0: as the slowest allows",
    )
    add(
        "--preset",
        choices=list(SHAPES),
        default="tiny",
        help="the Transformer's shape, where text is given",
    )
    add("--vocab", type=int, default=4000, help="pieces, where text is given")
    add("--batch-tokens", type=int, help="1,024 where text is given, else the folder's")
    add("--learning-rate", type=float, help="0.5 / d_model where text is given, else the folder's")
    add("--warmup", type=int, help="steps: 200 where text is given, else the folder's")
    add("--dropout", type=float, help="the preset's where text is given, else the folder's")
    add("--sentences", type=int, default=1000, help="of the valid set that are translated, at most")
    add("--beam", type=int, default=4)
    add(
        "--buckets",
        type=int,
        default=4,
        help="of sentence length, with about as many sentences in each",
    )
    add("--device", default="cpu")
    add(
        "--precision",
        choices=["auto", "float32", "bfloat16"],
        default="auto",
        help="auto: bfloat16 on a GPU",
    )
    add("--threads", type=int, default=torch.get_num_threads())
    add(
        "--processor-time",
        action="store_true",
        help="minutes of the processor, on a machine with other work; one thread only",
    )
    add("--seed", type=int, default=1)
    return parser


def from_folder(given: argparse.Namespace) -> Work:
    folder = Path(given.text[0])
    description, tokenizer = load_description(folder)
    options = build(Options, load_toml(folder / "training.toml")).training
    return _work(given, folder / "state" / "data", tokenizer, description.model, options)


def from_text(given: argparse.Namespace, place: Path) -> Work:
    data = DataOptions(train=tuple(given.text), valid=tuple(given.valid))
    tokenizer = prepare(data, TokenizerOptions(vocab_size=given.vocab), place, given.seed).tokenizer
    # Pre-norm and this schedule are what `dragoman train` takes by itself; the rate suits all three
    # on Multi30k.
    config = ModelConfig(vocab_size=tokenizer.target_size, norm_first=True, **SHAPES[given.preset])
    rate = 0.5 / config.d_model
    options = TrainingOptions(
        batch_tokens=1024, schedule="inverse_sqrt", learning_rate=rate, warmup=200, clip=1.0
    )
    return _work(given, place, tokenizer, config, options)


def _work(
    given: argparse.Namespace,
    data: Path,
    tokenizer: Tokenizer,
    config: ModelConfig,
    options: TrainingOptions,
) -> Work:
    manifest = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
    train, valid = (Pairs(data / name, manifest["dtype"]) for name in ("train", "valid"))
    if not len(valid):
        raise InputError(
            f"{', '.join(given.text)} came with no valid pairs to compare by; "
            "name some with --valid"
        )
    with open(data / "valid" / "text.tsv", encoding="utf-8", newline="\n") as file:
        references = [
            line.rstrip("\n").split("\t")[1] for line in itertools.islice(file, given.sentences)
        ]
    device = pick_device(given.device)
    half = given.precision == "bfloat16" or (given.precision == "auto" and device.type == "cuda")
    # As many positions as there can be and no more, since the convolutions learn each of them.
    config = replace(config, max_length=manifest["longest"] + 50)
    if given.dropout is not None:
        config = replace(config, dropout=given.dropout)
    named = ("batch_tokens", "learning_rate", "warmup", "minutes", "seed")
    return Work(
        config=config,
        options=replace(
            options,
            **{name: getattr(given, name) for name in named if getattr(given, name) is not None},
        ),
        tokenizer=tokenizer,
        language=manifest["target_language"],
        pairs=train,
        corpora=[(int(corpus["pairs"]), float(corpus["weight"])) for corpus in manifest["train"]],
        valid=valid,
        references=references,
        device=device,
        precision=torch.bfloat16 if half else torch.float32,
        beam=given.beam,
        buckets=given.buckets,
        clock=time.process_time if given.processor_time else time.perf_counter,
    )


def show(given: argparse.Namespace, work: Work, steps: int, runs: Sequence[Run]) -> None:
    """Two tables, and everything as a line of JSON."""
    on_gpu = work.device.type == "cuda"
    threads = f"{given.threads} thread{'s' * (given.threads > 1)}"
    where = torch.cuda.get_device_name() if on_gpu else f"{platform.machine()} CPU, {threads}"
    text = (
        f"{len(work.pairs):,} pairs, {work.config.vocab_size:,} pieces, "
        f"batches of {work.options.batch_tokens:,} tokens"
    )
    precision = str(work.precision).removeprefix("torch.")
    print(
        f"{text}, {precision}, {where}; {len(work.references):,} valid sentences, "
        f"beam {work.beam}\n"
    )
    ends = (f"after {given.minutes:g} minutes", f"after {steps:,} steps")
    columns = " | ".join(f"loss {end} | BLEU {end}" for end in ends)
    print(f"| system | weights | path | tokens/s | steps | {columns} |")
    print("|" + "---|" * 9)
    for run in runs:
        qualities = " | ".join(_shown(quality) for quality in (run.at_time, run.at_steps))
        counts = (
            f"{run.weights:,} | {PATHS[run.name]} | {run.tokens / run.seconds:,.0f} | {run.step:,}"
        )
        print(f"| {run.name} | {counts} | {qualities} |")
    lengths = list(runs[0].at_time.by_length) if runs[0].at_time else []
    print(
        f"\nBLEU {ends[0]}, by source tokens:\n\n| system | {' | '.join(lengths)} |\n|"
        + "---|" * (len(lengths) + 1)
    )
    for run in runs:
        found = run.at_time.by_length if run.at_time else {}
        print(f"| {run.name} | {' | '.join(f'{found[length]:.1f}' for length in lengths)} |")
    about = {
        "question": "what came before",
        **vars(given),
        "common_steps": steps,
        "torch": torch.__version__,
        "where": where,
    }
    print("\n" + json.dumps({**about, "systems": {run.name: _figures(run) for run in runs}}))


def _shown(quality: Quality | None) -> str:
    assert quality is not None, "every run has been scored twice"
    return f"{quality.loss:.3f} | {quality.bleu:.1f} ({quality.low:.1f} to {quality.high:.1f})"


def _figures(run: Run) -> dict[str, Any]:
    assert run.at_time is not None
    assert run.at_steps is not None
    return {
        "weights": run.weights,
        "path": PATHS[run.name],
        "tokens_per_second": run.tokens / run.seconds,
        "steps": run.step,
        "seconds": run.seconds,
        "at_time": asdict(run.at_time),
        "at_steps": asdict(run.at_steps),
        "curve": run.curve,
    }


if __name__ == "__main__":
    main()
