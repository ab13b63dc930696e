"""How long does one real sentence take with a model folder, beside CTranslate2 with its weights?

    OMP_NUM_THREADS=1 python benchmarks/sentence_speed.py dragoman/shipped-models/en-de news.en
    python benchmarks/sentence_speed.py MODEL news.en --count 100 --batch 32

Sentences go one at a time, as from the page or to an idle service, or in batches of --batch, from
tokens to tokens. Dragoman computes in int8 by its native library and, as `torch`, without it;
CTranslate2 computes in int8 with the converted weights, with every number of threads up to those of
this process. All take turns, round after round; the median of the rounds counts, by the clock and
by the processor. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from family_speed import _cpu_name

from dragoman.decoding.search_options import SearchOptions
from dragoman.formats.export_ctranslate2 import export
from dragoman.kernels import native
from dragoman.runtimes.load import load
from dragoman.runtimes.runtime import Request

Rows = Sequence[Sequence[int]]
Run = Callable[[Rows, int], int]  # sentences, beam -> output tokens


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--count", type=int, default=40, help="sentences")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shortlist", action="store_true", help="with the folder's shortlist")
    given = parser.parse_args()
    lines = given.text.read_text(encoding="utf-8").splitlines()[: given.count]
    with tempfile.TemporaryDirectory() as folder:
        systems, rows = _systems(given, lines, Path(folder))
        report: dict[str, Any] = {"cpu": _cpu_name(), "threads": torch.get_num_threads()}
        print(f"{report['cpu']}, {report['threads']} threads, load {os.getloadavg()[0]:.1f}")
        lengths = sum(map(len, rows)) / len(rows)
        print(f"{len(rows)} sentences of {lengths:.1f} tokens, batches of {given.batch}\n")
        print("| beam | system | ms a sentence | processor | over it |\n|---|---|---|---|---|")
        for beam in given.beams:
            report[f"beam {beam}"] = _compared(systems, rows, given, beam)
    print(json.dumps(report))


def _systems(
    given: argparse.Namespace, lines: Sequence[str], folder: Path
) -> tuple[dict[str, Run], Rows]:
    loaded = load(given.model, "cpu", "int8", shortlist=given.shortlist)
    rows = loaded.tokenizer.encode(lines, "source")
    systems = {"dragoman": _ours(loaded.runtime)}
    if native.available():
        library = native.library
        native.library = lambda: None  # type: ignore[assignment]
        systems["dragoman by torch"] = _without(library, _ours(_torch_runtime(given)))
        native.library = library
    import ctranslate2

    export(given.model, folder / "converted")
    for threads in range(1, torch.get_num_threads() + 1):
        engine = ctranslate2.Translator(
            str(folder / "converted"), compute_type="int8", intra_threads=threads
        )
        systems[f"ctranslate2, {threads} threads"] = _theirs(engine, loaded.tokenizer)
    return systems, rows


def _torch_runtime(given: argparse.Namespace) -> Any:
    return load(given.model, "cpu", "int8", shortlist=given.shortlist).runtime


def _without(library: Any, run: Run) -> Run:
    """The run as where the library was not built."""

    def alone(rows: Rows, beam: int) -> int:
        native.library = lambda: None  # type: ignore[assignment]
        try:
            return run(rows, beam)
        finally:
            native.library = library

    return alone


def _ours(runtime: Any) -> Run:
    def run(rows: Rows, beam: int) -> int:
        found = runtime.search([Request(row) for row in rows], SearchOptions(beam))
        return sum(len(best[0].log_probs) for best in found)

    return run


def _theirs(engine: Any, tokenizer: Any) -> Run:
    def run(rows: Rows, beam: int) -> int:
        batch = [tokenizer.pieces(row, "source") for row in rows]
        found = engine.translate_batch(
            batch, beam_size=beam, length_penalty=0.6, max_decoding_length=256
        )
        return sum(len(one.hypotheses[0]) + 1 for one in found)

    return run


def _compared(
    systems: dict[str, Run], rows: Rows, given: argparse.Namespace, beam: int
) -> dict[str, Any]:
    batches = [rows[first : first + given.batch] for first in range(0, len(rows), given.batch)]
    clock: dict[str, list[float]] = {name: [] for name in systems}
    processor: dict[str, list[float]] = {name: [] for name in systems}
    tokens = {}
    for number in range(given.rounds + 1):
        for name, run in systems.items():
            began, used = time.perf_counter(), time.process_time()
            tokens[name] = sum(run(batch, beam) for batch in batches)
            if number:  # the first round is for getting warm
                clock[name].append(time.perf_counter() - began)
                processor[name].append(time.process_time() - used)
            time.sleep(0.2)  # until its threads have gone to sleep
    best = {name: 1000 * statistics.median(every) / len(rows) for name, every in clock.items()}
    report = {}
    for name, milliseconds in best.items():
        used = 1000 * statistics.median(processor[name]) / len(rows)
        ratio = milliseconds / best["dragoman"]
        print(f"| {beam} | {name} | {milliseconds:.1f} | {used:.1f} | {ratio:.2f}x |", flush=True)
        report[name] = {"ms": milliseconds, "processor_ms": used, "tokens": tokens[name]}
    return report


if __name__ == "__main__":
    main()
