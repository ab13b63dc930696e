"""What `dragoman check` finds in parallel text that is thought to be clean, and how many of the
faults that are put into it.

    python benchmarks/check_alarms.py train.en train.de --pairs 10000 --skip 0

Prints every alarm of the kinds below on the text as it is, to be judged by eye; then the share of
50 faults of each kind that is found, and of blocks of lines shifted by one; then the time for
growing sizes.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from dragoman.data.check import check
from dragoman.data.check_report import Report
from dragoman.data.corpus import corpora, ignore, read_pairs
from dragoman.data.data_options import DataOptions

KINDS = ("garbled", "markup", "swapped", "shifted")
FAULTS = 50
Pairs = list[tuple[str, str]]


def read(files: list[str], skip: int, count: int) -> Pairs:
    corpus = corpora(files)[0]
    lines = read_pairs(corpus, "", "", ignore)
    return [(s, t) for s, t in islice(lines, skip, skip + count) if s and t]


def checked(pairs: Pairs, clean: Path | None = None) -> Report:
    """The check of some pairs, written to two files."""
    with tempfile.TemporaryDirectory() as place:
        files = [Path(place) / "text.en", Path(place) / "text.xx"]
        for side, file in enumerate(files):
            file.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
        return check(DataOptions(train=tuple(map(str, files)), drop_duplicates=False), clean)


def mojibake(source: str, target: str) -> tuple[str, str]:
    return source, target.encode("utf-8").decode("cp1252", "surrogateescape")


def latin(source: str, target: str) -> tuple[str, str]:
    return source, target.encode("utf-8").decode("latin-1")


def tagged(source: str, target: str) -> tuple[str, str]:
    return source, f"<p>{target}</p>"


def entities(source: str, target: str) -> tuple[str, str]:
    return source, f"{target} &amp; &quot;"


def swapped(source: str, target: str) -> tuple[str, str]:
    return target, source


def found(pairs: Pairs, kind: str, fault: Callable[[str, str], tuple[str, str]]) -> str:
    """How many of some faults are found."""
    draw = random.Random(kind)
    places = [place for place, (_, target) in enumerate(pairs) if not target.isascii()]
    if len(places) < FAULTS:
        places = list(range(len(pairs)))
    spoilt = list(pairs)
    for place in draw.sample(places, FAULTS):
        source, target = fault(*pairs[place])
        spoilt[place] = (source, target.encode("utf-8", "ignore").decode("utf-8"))
    finding = checked(spoilt).findings.get(kind)
    before = checked(pairs).findings.get(kind)
    count = (finding.count if finding else 0) - (before.count if before else 0)
    return f"{fault.__name__:<10} {count} of {FAULTS}"


def blocks(pairs: Pairs, lines: int) -> str:
    """How many lines of five shifted blocks are found."""
    spoilt = list(pairs)
    for number in range(5):
        first = (number + 1) * len(pairs) // 6
        targets = [target for _, target in pairs[first : first + lines]]
        targets = [*targets[1:], targets[0]]
        for place, target in enumerate(targets, first):
            spoilt[place] = (pairs[place][0], target)
    finding = checked(spoilt).findings.get("shifted")
    before = checked(pairs).findings.get("shifted")
    count = (finding.count if finding else 0) - (before.count if before else 0)
    return f"five blocks of {lines} lines: {count} of {5 * lines} lines"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--skip", type=int, default=0)
    options = parser.parse_args()
    pairs = read(options.files, options.skip, options.pairs)
    with tempfile.TemporaryDirectory() as place:
        report = checked(pairs, Path(place) / "clean")
        dropped = (Path(place) / "clean.dropped.tsv").read_text(encoding="utf-8").splitlines()
    alarms = [line for line in dropped if line.split("\t")[1] in KINDS]
    print(f"{len(pairs):,} pairs as they are: {len(alarms)} alarms")
    for line in alarms[:40]:
        print("   ", line.partition("\t")[2][:300])
    for example in report.findings["shifted"].examples if "shifted" in report.findings else ():
        print("   ", example)
    print(found(pairs, "garbled", mojibake))
    print(found(pairs, "garbled", latin))
    print(found(pairs, "markup", tagged))
    print(found(pairs, "markup", entities))
    print(found(pairs, "swapped", swapped))
    for lines in (10, 20, 60):
        print(blocks(pairs, lines))
    for size in (len(pairs) // 4, len(pairs) // 2, len(pairs)):
        begin = time.process_time()
        checked(pairs[:size])
        print(f"{size:,} pairs: {time.process_time() - begin:.2f} s of processor time")


if __name__ == "__main__":
    main()
