"""From lines to training pairs, one side of which a model wrote: what each process of a passage
does, and which pairs it leaves out. Knows a translator and its text; nothing of files that grow."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.data.swapped import Sides
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError, ModelFolderError
from dragoman.folder import layout
from dragoman.folder.description import load_description
from dragoman.improving.source_texts import SourceText, TextChunk
from dragoman.improving.text_through_model import Place, Records, Work, packed
from dragoman.runtimes import int8
from dragoman.tasks.device_shares import is_gpu
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.shared_gpu import take_smaller_batches
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Draft
from dragoman.text.flags import repeats
from dragoman.text.scripts import outside, scripts_of

# Why lines are left out.
EMPTY = "empty"
LONG = "too long"
ENDLESS = "unfinished"
LENGTH = "unlikely length"
REPEATS = "repeats itself"
COPIES = "copied"
LOST = "lost a placeholder"

_TIMES = 3  # how many times as long as the other a side may be
_MORE = 3  # and so many tokens
_CHARACTERS_PER_TOKEN = 16  # no line of that many characters is short enough to be trained on
_JUDGED_BY = 5000  # pairs of the validation text
_WRONG_SCRIPT = 0.8  # share of lines


@dataclass(frozen=True)
class PairsJob:
    """Which model writes one side, how, and in which order the sides stand."""

    model: Path
    search: SearchOptions
    runtime: str
    kind: str  # of the output, see `packed`
    tag: str = ""  # before what the model wrote
    reversed: bool = False  # whether the model's side comes first

    def facts(self) -> dict[str, Any]:
        """What decides the pairs."""
        return {
            "model": fingerprint(self.model),
            "search": asdict(self.search),
            "tag": self.tag,
            "reversed": self.reversed,
        }


def make_pairs(job: PairsJob, place: Place) -> Work:
    """What one process does with a chunk."""
    translator = Translator.load(job.model, place.device, _steady(job.runtime, place.device))
    if place.processes > 1 and is_gpu(place.device):
        take_smaller_batches(translator.runtime)
    longest = translator.description.longest

    def work(chunk: TextChunk) -> Records:
        kept: list[str] = []
        reasons: Counter[str] = Counter()
        lines = [line.replace("\t", " ").strip() for line in chunk.lines]
        usable = [line for line in lines if _is_usable(line, longest, reasons)]
        drafts = translator.drafts(usable, _request(job, chunk))
        for line, draft in zip(usable, drafts, strict=True):
            reason = fault(line, draft, longest)
            if reason:
                reasons[reason] += 1
            else:
                kept.append(_record(job, line, draft.text.replace("\t", " ")))
        return Records(packed("".join(kept), job.kind), len(lines), len(kept), dict(reasons))

    return work


def fault(line: str, draft: Draft, longest: int) -> str:
    """Why a line and its draft are no training pair; empty if they are one."""
    if not draft.finished:
        return ENDLESS
    if draft.source_tokens >= longest:
        return LONG
    shorter = min(draft.source_tokens, draft.target_tokens)
    longer = max(draft.source_tokens, draft.target_tokens)
    if not draft.text or longer > _TIMES * shorter + _MORE:
        return LENGTH
    if draft.text == line:
        return COPIES
    if not draft.whole:
        return LOST
    return REPEATS if repeats(line, draft.text) else ""


def check_model(model: Path) -> None:
    """Refuse a model that does not translate."""
    description, _ = load_description(model)
    if description.task != "translate":
        raise ModelFolderError(
            f"{model} holds a model for the task {description.task}; name one that translates"
        )


def check_language(model: Path, texts: Sequence[SourceText]) -> None:
    """Refuse text that is clearly not in the language from which the model translates, as far as
    its validation text can tell."""
    description, _ = load_description(model)
    pairs = _valid_pairs(model)
    if not pairs:
        return
    sides = Sides(pairs)
    is_outside = outside(scripts_of([source for source, _ in pairs]))
    for text in texts:
        strange = sum(map(is_outside, text.sample))
        if strange > _WRONG_SCRIPT * len(text.sample) or sides.resemble_targets(text.sample):
            raise InputError(
                f"{text.path} is not in {description.source_language or 'the language'}, from "
                f"which {model} translates; name other text, or the model of the other direction"
            )


def fingerprint(model: Path) -> str:
    """What changes when the weights of a model do."""
    names = (layout.WEIGHTS, layout.INT8, layout.CTRANSLATE2_WEIGHTS)
    weights = next((model / name for name in names if (model / name).exists()), None)
    if weights is None:
        raise ModelFolderError(f"{model} has no {layout.WEIGHTS}; train it first")
    with open(weights, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _valid_pairs(model: Path) -> list[tuple[str, str]]:
    """The validation text that a model was trained with, if its folder still has it."""
    path = model / layout.VALID_TEXT
    if not path.exists():
        return []
    pairs = []
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in islice(lines, _JUDGED_BY):
            source, _, target = line.rstrip("\n").partition("\t")
            pairs.append((source, target))
    return pairs


def _is_usable(line: str, longest: int, reasons: Counter[str]) -> bool:
    """Whether a line is worth translating; if not, the reason is counted."""
    if not line:
        reasons[EMPTY] += 1
    elif len(line) > _CHARACTERS_PER_TOKEN * longest:
        reasons[LONG] += 1
    else:
        return True
    return False


def _steady(runtime: str, device: str) -> str:
    """The runtime of every process and every attempt: `auto` may find another one the fastest each
    time, where a folder has several."""
    if runtime == "auto" and not is_gpu(device):
        return "int8" if int8.available() else "torch"
    return runtime


def _request(job: PairsJob, chunk: TextChunk) -> TranslateRequest:
    """Each chunk is sampled with a seed of its own, whichever process has it."""
    search = job.search
    if search.sample:
        search = replace(search, seed=search.seed + chunk.number)
    return TranslateRequest(search)


def _record(job: PairsJob, line: str, written: str) -> str:
    written = f"{job.tag} {written}" if job.tag else written
    first, second = (written, line) if job.reversed else (line, written)
    return f"{first}\t{second}\n"
