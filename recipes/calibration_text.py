"""Samples English-German text of several kinds, none of which the bundled models were trained on,
to calibrate their confidence on.

    python recipes/calibration_text.py downloaded/ data/calibration/
    python recipes/calibration_text.py downloaded/ data/calibration/ --command en-de | sh

Reads en-de/news/newstest2013.{en,de}, multi30k/val.{en,de}.gz and en-de/more/NAME.tsv.xz. Writes
NAME.en and NAME.de for each kind, 200 pairs by default. With --command it prints the `dragoman
calibrate` that names the pairs in the right order for a direction.

Result, one thread of an AMD EPYC: docs/lab/confidence.md.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import random
from pathlib import Path

Pair = tuple[str, str]
KINDS = (
    "newstest2013",
    "multi30k",
    "dialogue",
    "customer-chat",
    "microsoft-docs",
    "wiki-and-talks",
    "home-assistant",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=200, help="pairs of each kind")
    parser.add_argument("--command", choices=("en-de", "de-en"), help="print the command")
    given = parser.parse_args()
    if given.command:
        print(command(given.out, given.command))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        chosen = sample(read(given.corpora, kind), given.count, kind)
        for number, language in enumerate(("en", "de")):
            text = "".join(f"{pair[number]}\n" for pair in chosen)
            (given.out / f"{kind}.{language}").write_text(text, encoding="utf-8")
        print(f"{kind}: {len(chosen)} pairs")


def command(folder: Path, direction: str) -> str:
    """The command that calibrates the bundled model of a direction."""
    source, target = direction.split("-")
    files = [f"{folder}/{kind}.{side}" for kind in KINDS for side in (source, target)]
    return f"dragoman calibrate -m dragoman/shipped-models/{direction} {' '.join(files)}"


def sample(pairs: list[Pair], count: int, kind: str) -> list[Pair]:
    """Pairs with text on both sides, always the same ones."""
    usable = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
    random.Random(f"1 {kind}").shuffle(usable)
    return usable[:count]


def read(corpora: Path, kind: str) -> list[Pair]:
    if kind == "newstest2013":
        sides = [lines(corpora / f"en-de/news/{kind}.{side}") for side in ("en", "de")]
        return list(zip(*sides, strict=True))
    if kind == "multi30k":
        sides = [lines(corpora / f"multi30k/val.{side}.gz") for side in ("en", "de")]
        return list(zip(*sides, strict=True))
    rows = [line.split("\t") for line in lines(corpora / f"en-de/more/{kind}.tsv.xz")]
    return [(row[0], row[1]) for row in rows if len(row) > 1]


def lines(path: Path) -> list[str]:
    """The lines of a file, unpacked; only a line feed ends a line."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    elif path.suffix == ".xz":
        content = lzma.decompress(content)
    return content.decode("utf-8").split("\n")


if __name__ == "__main__":
    main()
