"""BLEU as the papers of 2014 to 2020 computed it, to be read beside their tables.

    python benchmarks/paper_bleu.py hyp.de ref.de --lang de --lowercase

Both files are plain, detokenised text, a sentence a line. Both are cut into words by the tokeniser
of Moses (as `tokenizer.perl -l de` does), lower-cased with --lowercase, and split at hyphens with
--split-compounds (`well-known` becomes `well ##AT##-##AT## known`, which the paper of 2017 was
scored by); then BLEU of up to four words in a row, over the whole file and without smoothing, which
is what multi-bleu.perl computes. Such a figure is not sacreBLEU's and stands only beside figures
that were made in the same way. Knows no model.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesTokenizer


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("hypotheses", type=Path, help="translations, a sentence a line")
    parser.add_argument("references", type=Path, help="what they should be")
    parser.add_argument(
        "--lang", default="en", help="language of both, for the tokeniser's abbreviations"
    )
    parser.add_argument("--lowercase", action="store_true", help="score without regard to case")
    parser.add_argument(
        "--split-compounds",
        action="store_true",
        help="split words at hyphens, as the paper of 2017 did",
    )
    options = parser.parse_args()
    files = options.hypotheses, options.references
    hypotheses, references = (
        file.read_text(encoding="utf-8").removesuffix("\n").split("\n") for file in files
    )
    if len(hypotheses) != len(references):
        parser.error(
            f"{files[0]} has {len(hypotheses):,} lines and {files[1]} has {len(references):,}; "
            "give aligned files"
        )
    how = options.lang, options.lowercase, options.split_compounds
    print(f"BLEU {bleu(words(hypotheses, *how), words(references, *how)):.2f}  {signature(*how)}")


def words(
    lines: Sequence[str], lang: str, lowercase: bool = False, split_compounds: bool = False
) -> list[str]:
    """The lines with a space between any two words."""
    tokenizer = MosesTokenizer(lang)
    # Without Moses' escapes (`&apos;` for an apostrophe): they rename words on both sides alike.
    cut = [tokenizer.tokenize(line, return_str=True, escape=False) for line in lines]
    cut = [line.lower() for line in cut] if lowercase else cut
    return (
        [re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line) for line in cut]
        if split_compounds
        else cut
    )


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Of lines with a space between any two words; 0 where no four words in a row are right
    anywhere."""
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    return float(metric.corpus_score(list(hypotheses), [list(references)]).score)


def signature(lang: str, lowercase: bool, split_compounds: bool) -> str:
    """Every choice that changes the value."""
    case = "lc" if lowercase else "mixed"
    compounds = "split" if split_compounds else "whole"
    tool = f"tok:moses-{lang}|sacremoses:{version('sacremoses')}|version:{version('sacrebleu')}"
    return f"nrefs:1|case:{case}|eff:no|compounds:{compounds}|smooth:none|{tool}"


if __name__ == "__main__":
    main()
