"""How fast is a corpus prepared, and does twice the text take more memory? Reading, checking,
filtering, learning, tokens.

    python benchmarks/prepare_speed.py europarl.en.xz europarl.de.xz

Each run is a fresh process held to two cores. The second run names the files twice and keeps the
duplicates, since otherwise half of its work would be dropped. Peak memory is the sum over the
processes of a run, each at its own peak.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from surroundings import surroundings

CORES = 2


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    # Set in the process that is measured.
    parser.add_argument("--times", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.times:
        print(
            json.dumps(
                measure(arguments.source, arguments.target, arguments.vocab_size, arguments.times)
            )
        )
        return
    print(f"{'text':<8}{'pairs':>12}{'seconds':>10}{'pairs/s':>10}{'peak MiB':>10}")
    figures: dict[str, Any] = {
        "question": "preparing speed and memory",
        "vocab_size": arguments.vocab_size,
    }
    for times, name in ((1, "once"), (2, "twice")):
        answer = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], f"--times={times}"],
            stdout=subprocess.PIPE,
            check=True,
        )
        figures[name] = row = json.loads(answer.stdout)
        print(
            f"{name:<8}{row['pairs']:>12,}{row['seconds']:>10.1f}{row['pairs_per_second']:>10,.0f}{row['peak_mib']:>10,.0f}"
        )
    cores = min(CORES, os.cpu_count() or 1)
    print(json.dumps({**figures, **surroundings(), "cores": cores}))


def measure(source: str, target: str, vocab_size: int, times: int) -> dict[str, float]:
    """Prepares the text in this process."""
    from dragoman.data.data_options import DataOptions
    from dragoman.data.prepare import prepare
    from dragoman.text.tokenizer import TokenizerOptions

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    data = DataOptions(train=(source, target) * times, drop_duplicates=times == 1)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        report = prepare(data, TokenizerOptions(vocab_size=vocab_size), Path(folder), seed=1).report
        seconds = time.perf_counter() - started
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return {
        "pairs": report.pairs,
        "kept": report.kept,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(sum(used.ru_utime + used.ru_stime for used in usage), 2),
        "pairs_per_second": round(report.pairs / seconds),
        "peak_mib": round(sum(used.ru_maxrss for used in usage) / unit),
    }


if __name__ == "__main__":
    main()
