"""Learns the shortlist of a model from its training text, and measures how much of the validation
text it covers. Knows prepared text; how a shortlist is learnt and used is a runtime's business."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from dragoman.data.batches import Pairs
from dragoman.data.data_options import DataOptions
from dragoman.data.prepare import is_prepared, prepare
from dragoman.errors import OptionError
from dragoman.folder import layout
from dragoman.folder.description import load_description
from dragoman.folder.extras import save_shortlist
from dragoman.folder.files import space_for
from dragoman.runtimes.runtime import SHORTLIST, abilities
from dragoman.runtimes.shortlist import Learning, Side, candidates, learn
from dragoman.text.tokenizer import RESERVED, Tokenizer, TokenizerOptions

_CHECKED = 2000  # pairs of the validation text


@dataclass(frozen=True)
class Shortlist:
    """Which target tokens a translation may need."""

    frequent: np.ndarray  # tokens that any sentence may need
    table: np.ndarray  # for each source token, the target tokens that it may call for


@dataclass(frozen=True)
class ShortlistReport:
    """What was learnt, from how much text, and what it is worth."""

    shortlist: Shortlist
    pairs: int
    seconds: float
    checked: int  # pairs of the validation text
    covered: float  # the share of their target tokens that the shortlist holds

    def text(self) -> str:
        """For people to read."""
        sources, tokens = self.shortlist.table.shape
        learnt = (
            f"{len(self.shortlist.frequent):,} frequent tokens and {tokens} for each of "
            f"{sources:,} source tokens, learnt from {self.pairs:,} pairs in {self.seconds:.0f} s"
        )
        if not self.checked:
            return learnt
        covered = f"{self.covered:.2%} of the target tokens of {self.checked:,} validation pairs"
        return f"{learnt}\n{covered} are among them"


def learn_shortlist(folder: Path, files: Sequence[str]) -> ShortlistReport:
    """Learns a shortlist from training files, or from the text that the model folder holds, and
    saves it in the folder."""
    description, tokenizer = load_description(folder)
    if SHORTLIST not in abilities(description.model, torch.device("cpu")):
        raise OptionError(f"{folder} is not a model of the paper's kind, which a shortlist needs")
    if not files:
        data = folder / layout.DATA
        if not is_prepared(data):
            raise OptionError(
                f"{folder} holds no training text; name the files that it was trained on"
            )
        with space_for(folder):
            return _learn(folder, data, tokenizer)
    with TemporaryDirectory() as temporary, space_for(Path(temporary)):
        data = Path(temporary)
        prepare(DataOptions(tuple(files)), TokenizerOptions(), data, seed=1, known=tokenizer)
        return _learn(folder, data, tokenizer)


def _learn(folder: Path, data: Path, tokenizer: Tokenizer) -> ShortlistReport:
    start = time.monotonic()
    token_type = json.loads((data / layout.MANIFEST).read_text(encoding="utf-8"))["dtype"]

    def column(name: str, kind: Any) -> np.ndarray:
        return np.memmap(data / layout.TRAIN / name, kind, "r")

    def side(name: str, size: int) -> Side:
        return Side(column(f"{name}.bin", token_type), column(f"{name}.idx", "int64"), size)

    source = side("source", tokenizer.source_size)
    target = side("target", tokenizer.target_size)
    frequent, table = learn(source, target, Learning(tokenizer.joint))
    reserved = np.arange(RESERVED)
    shortlist = Shortlist(np.union1d(frequent, reserved), table)
    tensors = {
        "frequent": torch.from_numpy(shortlist.frequent),
        "table": torch.from_numpy(shortlist.table),
    }
    save_shortlist(folder, tensors)
    seconds = time.monotonic() - start
    valid = Pairs(data / layout.VALID, token_type)
    checked = min(len(valid), _CHECKED)
    covered = _covered(shortlist, valid, checked, tokenizer.target_size)
    return ShortlistReport(shortlist, len(source.offsets) - 1, seconds, checked, covered)


def _covered(shortlist: Shortlist, valid: Pairs, checked: int, target_size: int) -> float:
    """The share of target tokens of the first pairs that the shortlist holds."""
    kept: list[np.ndarray] = []
    for row in range(checked):
        pair = valid.batch(np.array([row]))
        tokens = pair.source.tolist()
        held = candidates(shortlist.table, shortlist.frequent, tokens, target_size)
        kept.append(np.isin(pair.labels, held))
    return float(np.concatenate(kept).mean()) if kept else 0.0
