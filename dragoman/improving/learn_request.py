"""What is to be learnt, by which model and where the result goes; whether that can work, and what
came of it. Knows folders and options; learns nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.errors import InputError, OptionError
from dragoman.folder import files, history
from dragoman.folder.description import Description, load_description
from dragoman.improving.learn_judging import Verdict
from dragoman.improving.learn_options import Given, LearnOptions
from dragoman.improving.older_text import Named, older_text


@dataclass(frozen=True)
class LearnRequest:
    """What is to be learnt, by which model, and where the result goes."""

    model: Path
    given: Sequence[Given]
    named: Named = field(default_factory=Named)
    out: Path | None = None  # None: the model folder itself
    options: LearnOptions = field(default_factory=LearnOptions)

    @property
    def folder(self) -> Path:
        """The folder that is to have the better model."""
        return self.out or self.model


@dataclass(frozen=True)
class Learnt:
    """What became of it."""

    folder: str
    kept: bool
    why: str  # one sentence
    given: int
    refused: dict[str, int]
    learnt: int = 0  # corrections that were trained on
    number: int = 0  # of the model, if one was kept
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


def intention(request: LearnRequest) -> str:
    """What will be done, in a sentence or two, before anything is done; an error if it cannot."""
    description = check(request)
    languages = f"{description.source_language} to {description.target_language}"
    older = older_text(request.model, with_languages(request, description), request.options.judged)
    text = (
        f"{len(older.sources):,} older sentences to practise"
        if older.sources
        else ("no older text, so parts of the corrected sentences are practised")
    )
    valid = f"{len(older.valid):,} older pairs" if older.valid else "what the model says now"
    return (
        f"{request.model} ({languages}) learns from {len(request.given):,} corrections, with "
        f"{text}; the result is tested on corrections held back and against {valid}, and becomes "
        f"{request.folder} only if it is better; at most {request.options.minutes:g} minutes"
    )


def check(request: LearnRequest) -> Description:
    """Refuse what cannot work before anything is done."""
    description, _ = load_description(request.model)
    if description.task != "translate":
        raise OptionError(
            f"{request.model} holds a model for the task {description.task}; "
            "name one that translates"
        )
    if history.is_bundled(request.folder):
        raise OptionError(
            f"{request.folder} is a bundled model, which is never changed; name a folder for the "
            f"result with --out, such as --out models/{request.folder.resolve().name}"
        )
    if request.out is not None and request.out.exists():
        raise OptionError(
            f"{request.out} exists already; name another --out, or let it learn itself: "
            f"dragoman learn {request.out}"
        )
    if not request.given:
        raise InputError("there are no corrections for this pair of languages; nothing was learnt")
    files.check_place(history.history_of(request.folder))
    return description


def with_languages(request: LearnRequest, description: Description) -> Named:
    """The files that the user named, and the languages of the model."""
    named = request.named
    languages = (description.source_language, description.target_language)
    return Named(named.text, named.valid, languages)
