"""How much of what a translation should copy it has: names and numbers that source and reference
share.

    python benchmarks/copied.py dev.en dev.twi translated.twi

A name is a word of three letters or more with a capital; each counts once a sentence. Without a
translation it tells how many of the names and numbers of the source the reference has.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

KINDS = {"names": re.compile(r"[^\W\d_]{3,}"), "numbers": re.compile(r"\d(?:[\d.,]*\d)?")}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="source, reference and, if there is one, translation",
    )
    given = parser.parse_args()
    texts = [
        file.read_text(encoding="utf-8").removesuffix("\n").split("\n") for file in given.files
    ]
    if len(texts) not in (2, 3) or len({len(text) for text in texts}) > 1:
        raise SystemExit("name two or three files with equally many lines")
    for kind, pattern in KINDS.items():
        wanted = had = 0
        for sentences in zip(*texts, strict=True):
            *shared, last = (
                {word for word in pattern.findall(one) if not word[0].islower()}
                for one in sentences
            )
            wanted += len(asked := set.intersection(*shared))
            had += len(asked & last)
        print(f"{kind}: {had:,} of {wanted:,} ({had / max(1, wanted):.1%})")


if __name__ == "__main__":
    main()
