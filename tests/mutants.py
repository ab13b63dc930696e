"""Puts bugs into a copy of the package on purpose, one at a time, and sees whether the tests that
should notice do.

    python tests/mutants.py                   # all of them, two at a time
    python tests/mutants.py --only clipping,swapped --jobs 1

Each bug is a text that occurs exactly once in a file, and what it is replaced by. First the tests
run on the copy as it is, where they have to pass. Exits with 1 if more than two bugs survive, or if
a text is not where it should be.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PARTS = ("dragoman", "tests", "recipes", "demo", "benchmarks", "docs")
MODELS = Path("dragoman/shipped-models")  # large, and never mutated
SECONDS = 600  # a run of tests that takes longer has noticed: a bug made it hang
ALLOWED = 2  # survivors


class Mutant(NamedTuple):
    """A bug, and the tests that should notice it."""

    name: str
    file: str
    text: str
    bug: str
    tests: str


class Result(NamedTuple):
    """What became of a bug."""

    mutant: Mutant
    outcome: str  # caught, survived or stale
    seconds: float


MUTANTS = [
    # The model.
    Mutant(
        "attention without its scale",
        "model/scaled_dot_product.py",
        "key.transpose(-2, -1) / math.sqrt(query.size(-1))",
        "key.transpose(-2, -1)",
        "tests/model/test_attention.py",
    ),
    Mutant(
        "a token sees the next one",
        "model/scaled_dot_product.py",
        "every.tril()",
        "every.tril(1)",
        "tests/model/test_attention.py tests/model/test_transformer.py",
    ),
    Mutant(
        "shorter wavelengths",
        "model/positions.py",
        "10000.0 ** (even / d_model)",
        "1000.0 ** (even / d_model)",
        "tests/model/test_positions.py",
    ),
    Mutant(
        "a step one position further",
        "model/positions.py",
        "self.table.index_select(0, position)",
        "self.table.index_select(0, position + 1)",
        "tests/model/test_cache.py",
    ),
    Mutant(
        "embeddings without their factor",
        "model/embeddings.py",
        "math.sqrt(config.d_model) if config.scale_embeddings else 1.0",
        "1.0",
        "tests/model/test_transformer.py tests/test_parity.py",
    ),
    Mutant(
        "ancestors not reordered",
        "model/cache.py",
        "ancestors.copy_(continued)",
        "del continued",
        "tests/model/test_cache.py",
    ),
    Mutant(
        "masks of dropped sentences stay",
        "model/cache.py",
        "self.memory_mask = self.memory_mask[sentences]",
        "self.memory_mask = self.memory_mask[: len(sentences)]",
        "tests/model/test_cache.py",
    ),
    Mutant(
        "norm first as norm after",
        "model/norm.py",
        "return x + self.dropout(sublayer(self.norm(x)))",
        "return self.norm(x + self.dropout(sublayer(x)))",
        "tests/model/test_transformer.py tests/test_parity.py",
    ),
    # The search.
    Mutant(
        "penalty's sign",
        "decoding/hypothesis.py",
        "/ 6.0) ** alpha",
        "/ 6.0) ** -alpha",
        "tests/decoding/test_search.py",
    ),
    Mutant(
        "gives up too early",
        "decoding/search.py",
        "return best <= self.finished[:, -1]",
        "return best <= self.finished[:, 0]",
        "tests/decoding/test_search.py",
    ),
    Mutant(
        "one token too many",
        "decoding/search.py",
        "at_limit = self.max_lengths <= self.length + 1",
        "at_limit = self.max_lengths < self.length + 1",
        "tests/decoding/test_search.py",
    ),
    Mutant(
        "beams that start alike",
        "decoding/search.py",
        "first_alive = self.options.hypotheses if self.options.sample else 1",
        "first_alive = self.options.hypotheses",
        "tests/decoding/test_search.py",
    ),
    Mutant(
        "unfinished outputs not behind",
        "decoding/trace.py",
        "numpy.where(ended, scores, scores - _BEHIND)",
        "scores",
        "tests/decoding/test_search.py",
    ),
    Mutant(
        "n-gram noticed late",
        "decoding/rules.py",
        "if size and length >= size:",
        "if size and length > size:",
        "tests/decoding/test_rules.py",
    ),
    Mutant(
        "minimum length one short",
        "decoding/rules.py",
        "if length + 1 < options.min_length:",
        "if length + 2 < options.min_length:",
        "tests/decoding/test_rules.py",
    ),
    Mutant(
        "top-p without the token that reaches it",
        "decoding/choosers.py",
        "before = chances.cumsum(-1) - chances",
        "before = chances.cumsum(-1)",
        "tests/decoding/test_choosers.py",
    ),
    Mutant(
        "temperature upside down",
        "decoding/choosers.py",
        "values / self._options.temperature",
        "values * self._options.temperature",
        "tests/decoding/test_choosers.py",
    ),
    Mutant(
        "coverage beyond one",
        "decoding/coverage.py",
        "_LEAST, 1.0)",
        "_LEAST, 9.0)",
        "tests/runtimes/test_torch_runtime.py::test_the_coverage_penalty_by_hand",
    ),
    # The runtimes.
    Mutant(
        "coverage no longer ranks unfinished outputs last",
        "decoding/coverage.py",
        "key=lambda one: (one.finished, one.score)",
        "key=lambda one: one.score",
        "tests/runtimes/test_torch_runtime.py::test_coverage_ranks_unfinished_outputs_last",
    ),
    Mutant(
        "coverage's sign",
        "decoding/coverage.py",
        "one.score + options.coverage * penalty",
        "one.score - options.coverage * penalty",
        "tests/runtimes/test_torch_runtime.py::test_coverage_ranks_anew",
    ),
    Mutant(
        "int8 cuts instead of rounding",
        "runtimes/int8.py",
        "torch.tensor(128.5)",
        "torch.tensor(128.0)",
        "tests/runtimes/test_int8.py",
    ),
    Mutant(
        "one int8 scale for the batch",
        "runtimes/int8.py",
        "largest = x.abs().amax(-1, keepdim=True)",
        "largest = x.abs().amax().expand_as(x[..., :1])",
        "tests/runtimes/test_int8.py",
    ),
    Mutant(
        "shortlist without frequent tokens",
        "runtimes/shortlist.py",
        "chosen[frequent] = True",
        "chosen[frequent] = False",
        "tests/runtimes/test_shortlist.py",
    ),
    # Training.
    Mutant(
        "gradient clipping off",
        "training/stepper.py",
        "if self._options.clip:",
        "if False:",
        "tests/training/test_trainer.py::test_gradients_are_clipped_by_their_norm",
    ),
    Mutant(
        "warm-up exponent",
        "training/optimizer.py",
        "step * warmup**-1.5",
        "step * warmup**-1.0",
        "tests/training/test_optimizer.py",
    ),
    Mutant(
        "running mean the wrong way",
        "training/optimizer.py",
        "1 - min(decay, step / (step + 10))",
        "min(decay, step / (step + 10))",
        "tests/training/test_optimizer.py",
    ),
    Mutant(
        "smoothing without its gradient",
        "training/loss.py",
        "chosen.exp() - confidence",
        "chosen.exp() - 1",
        "tests/training/test_loss.py",
    ),
    Mutant(
        "R-Drop one way",
        "training/loss.py",
        "both_ways = p_to_q + q_to_p",
        "both_ways = p_to_q",
        "tests/training/test_loss.py",
    ),
    Mutant(
        "first checkpoint averaged twice",
        "folder/training_state.py",
        "for path in paths[1:]:",
        "for path in paths:",
        "tests/folder/test_training_state.py",
    ),
    Mutant(
        "patience one longer",
        "training/stopping.py",
        "progress.stale >= options.patience",
        "progress.stale > options.patience",
        "tests/training/test_trainer.py::test_patience",
    ),
    Mutant(
        "a batch done again after a stop",
        "training/trainer.py",
        "batch=work.index + 1,",
        "batch=work.index,",
        "tests/training/test_trainer.py::test_the_window_of_a_line_goes_on_over_a_stop",
    ),
    Mutant(
        "minutes in all instead of more minutes",
        "training/run.py",
        '"minutes": done / 60 + more',
        '"minutes": more',
        "tests/training/test_outlook.py::test_more_minutes_come_on_top_of_those_that_were",
    ),
    # Data.
    Mutant(
        "leak by case",
        "data/check.py",
        "source_key = key(source.casefold())",
        "source_key = key(source)",
        "tests/data/test_check.py",
    ),
    Mutant(
        "held-out sources in training",
        "data/validation_split.py",
        "chosen.append(pairs)",
        "chosen.append(pairs[:1])",
        "tests/data/test_prepare.py::test_the_held_out_part_shares_no_source_with_the_training_part",
    ),
    Mutant(
        "targets shifted the wrong way",
        "data/batches.py",
        "shifted[:, 1:] = target[:, :-1]",
        "shifted[:, 1:] = target[:, 1:]",
        "tests/data/test_batches.py",
    ),
    Mutant(
        "batches beyond their budget",
        "data/batch_plan.py",
        "longest * count > budget:",
        "longest * count > 2 * budget:",
        "tests/data/test_batches.py",
    ),
    # Text and tasks.
    Mutant(
        "text not composed",
        "text/normalise.py",
        'unicodedata.normalize("NFC", text)',
        'unicodedata.normalize("NFD", text)',
        "tests/text/test_normalise.py",
    ),
    Mutant(
        "every term counts as right",
        "text/glossary.py",
        "kept += min(times, present_times)",
        "kept += times",
        "tests/text/test_glossary.py tests/tasks/test_evaluate.py",
    ),
    Mutant(
        "the forced prefix for every sentence",
        "tasks/segment.py",
        'asked.prefix if not segments else ""',
        "asked.prefix",
        "tests/tasks/test_translate.py::test_only_the_first_sentence_of_a_line_begins_as_it_is_told",
    ),
    Mutant(
        "--careful keeps what is no better",
        "tasks/segment_search.py",
        "if len(second.flags) < len(first.flags):",
        "if True:",
        "tests/tasks/test_translate.py::test_care_keeps_a_second_result_only_where_it_is_better",
    ),
]


def mutated(mutant: Mutant, tree: Path) -> str:
    """The file with its bug; empty if the text is not there exactly once."""
    content = (tree / "dragoman" / mutant.file).read_text(encoding="utf-8")
    if content.count(mutant.text) != 1:
        return ""
    return content.replace(mutant.text, mutant.bug)


def fails(tree: Path, tests: Sequence[str], seconds: int = SECONDS) -> bool:
    """Whether any of these tests of a tree fails, or they take too long."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    scratch = tree / "scratch"
    options = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={scratch}"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def copy_of_the_tree(place: Path) -> Path:
    tree = place / f"tree-{time.monotonic_ns()}"
    tree.mkdir()
    for part in PARTS:
        ignored = shutil.ignore_patterns("__pycache__", MODELS.name)
        shutil.copytree(ROOT / part, tree / part, ignore=ignored)
    (tree / MODELS).symlink_to(ROOT / MODELS)
    for file in (*ROOT.glob("*.toml"), *ROOT.glob("*.md"), ROOT / "Makefile"):
        shutil.copy(file, tree / file.name)
    return tree


def judge(mutant: Mutant, place: Path) -> Result:
    begin = time.monotonic()
    tree = copy_of_the_tree(place)
    try:
        content = mutated(mutant, tree)
        outcome = "stale"
        if content:
            (tree / "dragoman" / mutant.file).write_text(content, encoding="utf-8")
            outcome = "caught" if fails(tree, mutant.tests.split()) else "survived"
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    result = Result(mutant, outcome, time.monotonic() - begin)
    print(f"{outcome:<9} {mutant.name} ({mutant.file}, {result.seconds:.0f} s)", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="parts of names, with commas between")
    parser.add_argument("--jobs", type=int, default=2, help="bugs at a time")
    options = parser.parse_args()
    wanted = options.only.split(",")
    mutants = [one for one in MUTANTS if any(part in one.name for part in wanted)]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        place = Path(folder)
        tests = sorted({test for one in mutants for test in one.tests.split()})
        if fails(copy_of_the_tree(place), tests, 4 * SECONDS):
            sys.exit("the tests fail without any bug; mend them first")
        with ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(lambda one: judge(one, place), mutants))
    caught = sum(result.outcome == "caught" for result in results)
    stale = [result for result in results if result.outcome == "stale"]
    minutes = (time.monotonic() - begin) / 60
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = (used.ru_utime + used.ru_stime) / 60
    print(
        f"{caught} of {len(results)} bugs caught in {minutes:.0f} minutes, "
        f"{processor:.0f} minutes of processor time"
    )
    sys.exit(bool(stale) or len(results) - caught > ALLOWED)


if __name__ == "__main__":
    main()
