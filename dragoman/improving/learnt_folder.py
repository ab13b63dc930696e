"""The folder of a model that has learnt: its weights, what was made for the old ones and must fit
the new, and its way into the place of the old model. Knows folders; trains and judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from dragoman.errors import InputError
from dragoman.folder import files, history, layout
from dragoman.folder.description import load_description
from dragoman.folder.extras import (
    load_calibration,
    load_shortlist,
    save_calibration,
    save_shortlist,
)
from dragoman.improving.averaged_weights import average
from dragoman.improving.gather_text import write_pairs
from dragoman.improving.learn_judging import Verdict
from dragoman.improving.learn_tuning import Tuning
from dragoman.improving.older_text import OlderText
from dragoman.runtimes.load import load
from dragoman.runtimes.runtime import INT8, abilities
from dragoman.tasks.calibrate import calibrate
from dragoman.tasks.translation import Translation

Pair = tuple[str, str]
_CPU = torch.device("cpu")
_SOURCES = 5_000  # older sources that are kept for the next time


@dataclass(frozen=True)
class LearntFacts:
    """What is written down about a model that was kept."""

    verdict: Verdict
    learnt: int
    given: int


def write_candidate(out: Path, model: Path, trained: Path, share: float) -> None:
    """A model folder with `share` of what was learnt, and of the old model the rest."""
    average(out, [(model, 1 - share), (trained, share)])


def complete(
    candidate: Path,
    model: Path,
    tuning: Tuning,
    tested: Sequence[Pair],
    said: Sequence[Translation],
) -> list[str]:
    """Make for the new weights what the old ones had: int8, shortlist, calibration. Returns what a
    user should know about them."""
    description, _ = load_description(model)
    if (model / layout.INT8).exists() and INT8 in abilities(description.model, _CPU):
        load(candidate, "cpu", "int8")
    _extend_shortlist(candidate, model, tuning)
    notes = _calibrate(candidate, model, tested, said)
    if (model / layout.CTRANSLATE2_WEIGHTS).exists():
        notes.append(
            "the copy for CTranslate2 was of the earlier model and is left out; run `dragoman "
            "convert` again"
        )
    return notes


def publish(
    folder: Path, model: Path, candidate: Path, older: OlderText, facts: LearntFacts
) -> int:
    """Let the candidate become the model of a folder, in one step, and return its number. The
    caller holds the lock of the history."""
    exists = folder.exists()
    number = history.next_number(folder) if exists else history.number_of(model) + 1
    previous = history.number_of(model)
    _write_older(candidate, older)
    history.write_learnt(candidate, _facts(number, previous, facts))
    report = _report(model, candidate, facts)
    files.write_file(candidate / layout.REPORT, report.encode("utf-8", "replace"))
    if exists:
        files.move(candidate, history.place_for(folder, number))
        history.make_current(folder, number)
    else:
        with files.aside(history.place_for(folder, previous)) as kept:
            files.copy_folder(model, kept, (layout.STATE,))
        files.move(candidate, folder.absolute())
    return number


def _extend_shortlist(candidate: Path, model: Path, tuning: Tuning) -> None:
    """The old shortlist and every token of the corrections, none of which it may rule out."""
    tensors = load_shortlist(model)
    if tensors is None:
        return
    _, tokenizer = load_description(model)
    targets = [target for _, target in tuning.corrections]
    tokens = {token for line in tokenizer.encode(targets, "target") for token in line}
    frequent = tensors["frequent"]
    new = torch.tensor(sorted({*frequent.tolist(), *tokens}), dtype=frequent.dtype)
    save_shortlist(candidate, {**tensors, "frequent": new})


def _calibrate(
    candidate: Path, model: Path, tested: Sequence[Pair], said: Sequence[Translation]
) -> list[str]:
    """A calibration for the new model, if the old one had any."""
    values = load_calibration(model)
    if values is None:
        return []
    try:
        if not tested:
            raise InputError("there are no references")
        sources = [source for source, _ in tested]
        references = [target for _, target in tested]
        save_calibration(candidate, calibrate(sources, said, references).as_dict())
    except InputError:  # too little text to learn from
        save_calibration(candidate, values)
        return [
            "confidences are still those calibrated for the earlier model, since there is too "
            "little older text with references; run `dragoman calibrate`"
        ]
    return []


def _write_older(candidate: Path, older: OlderText) -> None:
    """Keep the text that the next time needs: the old folder, which has it, goes to the history."""
    (candidate / layout.LEARNING).mkdir(exist_ok=True)
    if older.valid:
        write_pairs(candidate / layout.OLD_VALID, older.valid)
    if older.sources:
        lines = "".join(f"{source}\n" for source in older.sources[:_SOURCES])
        files.write_file(candidate / layout.OLD_SOURCES, lines.encode("utf-8", "replace"))


def _facts(number: int, previous: int, facts: LearntFacts) -> dict[str, Any]:
    verdict = facts.verdict
    return {
        "format": 1,
        "number": number,
        "previous": previous,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "given": facts.given,
        "learnt": facts.learnt,
        "held_back": verdict.held_back.as_dict(),
        "older": verdict.older.as_dict() if verdict.older else None,
        "agreement": verdict.agreement,
    }


def _report(model: Path, candidate: Path, facts: LearntFacts) -> str:
    """The report of the model before, below what was learnt since."""
    old = ""
    if (model / layout.REPORT).is_file():
        old = files.read_bounded(model / layout.REPORT).decode("utf-8", "replace")
    held_back = facts.verdict.held_back
    rows = [f"| corrections held back | {held_back.sentences:,} | {_scores(held_back)} |"]
    if facts.verdict.older:
        older = facts.verdict.older
        rows.append(f"| older valid set | {older.sentences:,} | {_scores(older)} |")
    table = "\n".join(rows)
    return (
        f"## Learnt from corrections\n\n{facts.learnt:,} of {facts.given:,} corrections.\n\n"
        f"| tested on | sentences | BLEU before | after | p |\n|---|---|---|---|---|\n{table}\n\n"
        f"{old}"
    )


def _scores(trial: Any) -> str:
    return f"{trial.before:.2f} | {trial.after:.2f} | {trial.p_value:.3f}"
