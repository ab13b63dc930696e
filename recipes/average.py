"""Several models as one: the average of their weights, for models that started from the same one
(Wortsman et al. 2022).

    python recipes/average.py models/twi-en-first models/twi-en-tuned:0.8 models/twi-parent:0.2

A model that was fine-tuned on little text forgets some of what it knew; a share of the model that
it started from brings that back. The shares are chosen on the valid set. The description and the
tokeniser are those of the first; a model of both directions becomes one of the other by
`--languages twi en`, under which commands and pages name it.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from dragoman.errors import DragomanError
from dragoman.folder import layout
from dragoman.folder.description import load_description, save_description
from dragoman.folder.weights import load_model, save_weights


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument(
        "parts", nargs="+", type=part, metavar="FOLDER:SHARE", help="the shares add up to 1"
    )
    parser.add_argument(
        "--languages",
        nargs=2,
        metavar=("FROM", "TO"),
        help="of the folder to make, instead of the first's",
    )
    given = parser.parse_args()
    folders, shares = zip(*given.parts, strict=True)
    if abs(sum(shares) - 1) > 1e-6:
        raise SystemExit(f"the shares add up to {sum(shares):g}; they must add up to 1")
    if given.out.exists():
        raise SystemExit(f"{given.out} is there already; name another folder")
    first, tokenizer = load_description(folders[0])
    total: dict[str, Tensor] = {}
    for folder, share in zip(folders, shares, strict=True):
        about, other = load_description(folder)
        if (
            replace(about.model, dropout=first.model.dropout) != first.model
            or other.serialised() != tokenizer.serialised()
        ):
            raise SystemExit(
                f"{folder} has another shape or vocabulary than {folders[0]}; "
                "average what began as one model"
            )
        model = load_model(folder, about.model, torch.device("cpu"))
        for name, weight in model.named_parameters():
            total[name] = total.get(name, 0) + share * weight.detach().float()
    if given.languages:
        first = replace(
            first, source_language=given.languages[0], target_language=given.languages[1]
        )
    save_description(given.out, first, tokenizer)
    save_weights(given.out, total)
    for name in (layout.OPTIONS, layout.REPORT):
        if (folders[0] / name).exists():
            shutil.copyfile(folders[0] / name, given.out / name)
    with open(given.out / layout.REPORT, "a", encoding="utf-8") as report:
        parts = ", ".join(f"{share:g} of {folder}" for folder, share in given.parts)
        report.write(f"\n## Average\n\n{parts}; what stands above is about the first.\n")


def part(words: str) -> tuple[Path, float]:
    folder, _, share = words.rpartition(":")
    return Path(folder), float(share)


if __name__ == "__main__":
    try:
        main()
    except DragomanError as error:
        raise SystemExit(f"error: {error}") from None
