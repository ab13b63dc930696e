"""Samples English-German text of several kinds, none of which the bundled models were trained on,
to calibrate their confidence on.

    python benchmarks/calibration_text.py downloaded/ data/calibration/ --trained data/en-de/train
    python benchmarks/calibration_text.py downloaded/ data/calibration/ --command en-de | sh

Reads en-de/news/newstest2013.{en,de}, en-de/valid/wmt21-24.tsv.xz, multi30k/val.{en,de}.gz,
en-de/europarl.{en,de}.xz and en-de/more/NAME.tsv.xz. Writes NAME.en and NAME.de for each kind, 600
pairs by default. Pairs whose English side stands in the first column of a .tsv file in the folder
--trained are left out. With --command it prints the `dragoman calibrate` that names the pairs in
the right order for a direction.

Result: docs/lab/confidence.md.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import random
from itertools import islice
from pathlib import Path

from dragoman.text.normalise import normalise

Pair = tuple[str, str]
KINDS = ("newstest2013", "wmt21-24", "multi30k", "microsoft-docs", "adobe-docs", "europarl")
ALIGNED = {
    "newstest2013": "en-de/news/newstest2013.{}",
    "multi30k": "multi30k/val.{}.gz",
    "europarl": "en-de/europarl.{}.xz",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--trained", type=Path, help="folder of English-German .tsv files")
    parser.add_argument("--count", type=int, default=600, help="pairs of each kind")
    parser.add_argument("--command", choices=("en-de", "de-en"), help="print the command")
    given = parser.parse_args()
    if given.command:
        print(command(given.out, given.command))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    known = trained_sources(given.trained) if given.trained else set()
    for kind in KINDS:
        chosen = sample(read(given.corpora, kind), given.count, kind, known)
        for number, language in enumerate(("en", "de")):
            text = "".join(f"{pair[number]}\n" for pair in chosen)
            (given.out / f"{kind}.{language}").write_text(text, encoding="utf-8")
        print(f"{kind}: {len(chosen)} pairs")


def command(folder: Path, direction: str) -> str:
    """The command that calibrates the bundled model of a direction."""
    source, target = direction.split("-")
    files = [f"{folder}/{kind}.{side}" for kind in KINDS for side in (source, target)]
    return f"dragoman calibrate -m dragoman/shipped-models/{direction} {' '.join(files)}"


def trained_sources(folder: Path) -> set[int]:
    """The English sides that a model was trained on, as hashes."""
    known: set[int] = set()
    for path in folder.glob("*.tsv"):
        with path.open(encoding="utf-8", newline="\n") as rows:
            known.update(hash(row.split("\t")[0]) for row in rows)
    return known


def sample(pairs: list[Pair], count: int, kind: str, known: set[int]) -> list[Pair]:
    """Pairs with text on both sides that are not known, always the same ones."""
    usable = [pair for pair in pairs if pair[0].strip() and pair[1].strip()]
    random.Random(f"1 {kind}").shuffle(usable)
    unknown = (pair for pair in usable if hash(normalise(pair[0])) not in known)
    return list(islice(unknown, count))


def read(corpora: Path, kind: str) -> list[Pair]:
    if kind in ALIGNED:
        sides = [lines(corpora / ALIGNED[kind].format(side)) for side in ("en", "de")]
        return list(zip(*sides, strict=True))
    folder = "valid" if kind == "wmt21-24" else "more"
    rows = [line.split("\t") for line in lines(corpora / f"en-de/{folder}/{kind}.tsv.xz")]
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
