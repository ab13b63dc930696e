"""Learning from corrections: from what readers wrote to a better model folder, or to a sentence
that says why there is none. Joins the parts; the loop of training is the trainer's.

All work is done in the folder's history, under its lock. The folder itself changes in one step, at
the very end; whatever happens before leaves it as it was.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import files, history, layout
from dragoman.folder.description import Description
from dragoman.improving.correction_checks import (
    RARE,
    UNLIKELY,
    Checked,
    Checks,
    is_unlikely,
    plain_reason,
    settled,
)
from dragoman.improving.forced_scores import ForcedScorer
from dragoman.improving.learn_judging import Judge, Verdict
from dragoman.improving.learn_options import Given
from dragoman.improving.learn_request import LearnRequest, Learnt, check, with_languages
from dragoman.improving.learn_tuning import Tuning, tune
from dragoman.improving.learnt_folder import LearntFacts, complete, publish, write_candidate
from dragoman.improving.older_text import (
    OlderText,
    holds_any,
    older_text,
    parts,
    sample,
    words_taken_away,
)
from dragoman.tasks.translate import Translator
from dragoman.text.normalise import normalise
from dragoman.training.claim import locked

Say = Callable[[str], None]
Pair = tuple[str, str]
FEWEST = 30  # corrections, below which nothing is learnt: a gain could not be proved
_HELD_BACK = 0.15  # of the corrections
_FEWEST_HELD_BACK = 15
_MOST_HELD_BACK = 200
_LEAST_REPLAY = 200  # sentences
_MOST_REPLAY = 2_000
_SHARES = (1.0, 0.7, 0.5)  # of the new weights, the rest being the old ones; the first that passes
_LEAST_TIME = 20.0  # seconds that a training must have
_WORK = "work"
_CANDIDATE = "candidate"


def learn(request: LearnRequest, say: Say) -> Learnt:
    """Make a model folder better by corrections, or leave it as it is and say why."""
    description = check(request)
    place = history.history_of(request.folder)
    with _alone(request, place):
        history.put_right(request.folder)
        work = place / _WORK
        files.remove_folder(work)  # of a process that was killed
        try:
            return _Learning(request, description, work, say).run()
        finally:
            files.remove_folder(work)
            if not history.earlier(request.folder):
                files.remove_folder(place)


def roll_back(folder: Path) -> int:
    """Go back to the model from which that of a folder has learnt; return its number."""
    if history.is_bundled(folder):
        raise OptionError(f"{folder} is a bundled model, which never changes")
    place = history.history_of(folder)
    if not place.is_dir():
        raise ModelFolderError(
            f"{folder} has no earlier models: {place} does not exist"
            if folder.is_dir()
            else f"{folder} does not exist; name a model folder"
        )
    with locked(place, _busy(folder)):
        return history.go_back(folder)


class _Learning:
    """One attempt, step by step."""

    def __init__(
        self, request: LearnRequest, description: Description, work: Path, say: Say
    ) -> None:
        self._request = request
        self._options = request.options
        self._named = with_languages(request, description)
        self._work = work
        self._say = say
        self._began = time.monotonic()
        self._notes: list[str] = []
        self._refused: dict[str, int] = {}
        self._learnt = 0

    def run(self) -> Learnt:
        """All steps; each may be the last."""
        older = older_text(self._request.model, self._named, self._options.judged)
        self._step(1, "checks the corrections")
        translator = Translator.load(self._request.model, self._options.device)
        checked, said = self._checked(translator, older)
        self._refused = checked.refused
        usable = checked.usable
        if checked.refused:
            self._say(f"not used: {checked.in_words()}")
        if len(usable) < FEWEST:
            return self._nothing(
                f"{len(usable):,} of {len(self._request.given):,} corrections can be used, and at "
                f"least {FEWEST} are needed"
            )
        learnt, held_back = _divided(usable)
        self._learnt = len(learnt)
        self._step(2, f"translates older text, to practise it beside {len(learnt):,} corrections")
        replay, valid = self._replay(translator, older, usable, said)
        judge = Judge(self._request.model, _pairs(held_back), valid, self._options)
        left = self._left() - len(_SHARES) * (time.monotonic() - self._judging_began)
        if left < _LEAST_TIME:
            return self._nothing("the minutes are over before anything could be learnt")
        self._step(3, "tunes the model")
        tuning = Tuning(_pairs(learnt), replay, _pairs(held_back), self._named.languages, left)
        self._work.mkdir(parents=True, exist_ok=True)
        trained = tune(self._request.model, self._work, tuning, self._options)
        self._step(4, "tests it on corrections that it has not seen, and on older text")
        verdict = self._first_kept(trained, judge)
        if not verdict.kept:
            return self._nothing(verdict.why, verdict)
        return self._publish(verdict, judge, older, tuning)

    def _checked(self, translator: Translator, older: OlderText) -> tuple[Checked, dict[str, str]]:
        """The corrections that may be learnt from, and what the model says of their sources."""
        given = list(self._request.given)
        reasons = [plain_reason(one) for one in given]
        sources = [one.source for one, reason in zip(given, reasons, strict=True) if not reason]
        sources = list(dict.fromkeys(sources))
        trusted = sample(older.sources, _LEAST_REPLAY) or sources
        lines = sources + trusted
        said = dict(zip(lines, _greedy(translator, lines), strict=True))
        checks = Checks([(source, said[source]) for source in trusted])
        for row, one in enumerate(given):
            reasons[row] = reasons[row] or checks.reason(one)
        rows = [row for row, reason in enumerate(reasons) if not reason]
        scorer = ForcedScorer(self._request.model, self._options.device)
        rare = scorer.surprises([(given[row].source, given[row].target) for row in rows], RARE)
        for row, share in zip(rows, rare, strict=True):
            if is_unlikely(share):
                reasons[row] = UNLIKELY
        return settled(given, reasons, self._options.per_user, self._options.most), said

    def _replay(
        self,
        translator: Translator,
        older: OlderText,
        usable: Sequence[Given],
        said: dict[str, str],
    ) -> tuple[list[Pair], list[Pair]]:
        """What is practised: the model's own translations of older sources, without those that
        corrections contradict; and the pairs that the model is tested on."""
        corrected = [one.target for one in usable]
        taken = words_taken_away([said[one.source] for one in usable], corrected)
        wanted = int(self._options.replay * len(usable))
        wanted = max(_LEAST_REPLAY, min(_MOST_REPLAY, wanted))
        valid = older.valid
        sources = sample(older.sources, wanted)
        if not sources:
            sources = sample(parts(one.source for one in usable), wanted + self._options.judged)
        pairs = list(zip(sources, _greedy(translator, sources), strict=True))
        pairs = [pair for pair in pairs if pair[1] and not holds_any(pair[1], taken)]
        if not valid:
            apart = min(self._options.judged, len(pairs) // 4)
            valid = [(source, "") for source, _ in pairs[:apart]]
            pairs = pairs[apart:]
        self._judging_began = time.monotonic()
        return pairs, valid

    def _first_kept(self, trained: Path, judge: Judge) -> Verdict:
        """The model itself or, where it has lost too much, its average with the old one."""
        candidate = self._work / _CANDIDATE
        verdict: Verdict | None = None
        for share in _SHARES:
            if verdict is not None:
                if self._left() < 0:
                    break
                self._say(f"not kept: {verdict.why}; tried with less of what was learnt")
            files.remove_folder(candidate)
            write_candidate(candidate, self._request.model, trained, share)
            verdict = judge.verdict(candidate)
            gained = verdict.older is not None or verdict.agreement is not None
            if verdict.kept or not gained:
                break
        assert verdict is not None
        return verdict

    def _publish(self, verdict: Verdict, judge: Judge, older: OlderText, tuning: Tuning) -> Learnt:
        self._step(5, "puts the new model in its place")
        candidate = self._work / _CANDIDATE
        facts = LearntFacts(verdict, len(tuning.corrections), len(self._request.given))
        tested = [*tuning.held_back, *older.valid] if older.valid else []
        self._notes += complete(candidate, self._request.model, tuning, tested, judge.said)
        number = publish(self._request.folder, self._request.model, candidate, older, facts)
        forgotten = history.forget(self._request.folder, self._options.keep)
        if forgotten:
            names = ", ".join(map(str, forgotten))
            self._notes.append(f"earlier models removed from the history: number {names}")
        return self._result(True, f"kept, since {verdict.why}", verdict, number)

    def _nothing(self, why: str, verdict: Verdict | None = None) -> Learnt:
        return self._result(False, f"nothing was kept, since {why}", verdict)

    def _result(
        self, kept: bool, why: str, verdict: Verdict | None = None, number: int = 0
    ) -> Learnt:
        return Learnt(
            folder=str(self._request.folder),
            kept=kept,
            why=why,
            given=len(self._request.given),
            refused=self._refused,
            learnt=self._learnt,
            number=number,
            verdict=verdict,
            notes=tuple(self._notes),
            seconds=round(time.monotonic() - self._began, 1),
        )

    def _left(self) -> float:
        """Seconds."""
        return 60 * self._options.minutes - (time.monotonic() - self._began)

    def _step(self, number: int, what: str) -> None:
        minutes = max(0.0, self._left()) / 60
        self._say(f"{number} of 5: {what} (at most {minutes:.1f} minutes left)")


@contextmanager
def _alone(request: LearnRequest, place: Path) -> Iterator[None]:
    """Hold the locks of the history and, where a run has been in the folder, of that run."""
    with ExitStack() as held:
        held.enter_context(locked(place, _busy(request.folder)))
        if request.out is None and (request.model / layout.STATE).is_dir():
            training = f"a run is training in {request.model}; learn when it has ended"
            held.enter_context(locked(request.model, training))
        yield


def _busy(folder: Path) -> str:
    return f"{folder} is being changed by another `dragoman learn`; wait until that has ended"


def _divided(usable: Sequence[Given]) -> tuple[list[Given], list[Given]]:
    """What is learnt and what is held back. Which it is follows from the source alone, so that
    what was held back once is not learnt later either, unless there were very few."""
    order = sorted(usable, key=lambda one: _share(one.source))
    count = sum(_share(one.source) < _HELD_BACK for one in order)
    held_back = order[: max(_FEWEST_HELD_BACK, count)]
    apart = set(held_back)
    return [one for one in usable if one not in apart], held_back[:_MOST_HELD_BACK]


def _share(source: str) -> float:
    """A number from 0 to 1 that follows from a text and looks random."""
    digest = hashlib.sha256(source.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8]) / 2**64


def _pairs(given: Sequence[Given]) -> list[Pair]:
    return [(normalise(one.source), normalise(one.target)) for one in given]


def _greedy(translator: Translator, sources: Sequence[str]) -> list[str]:
    options = SearchOptions(beam=1)
    found: list[Any] = translator.translate(list(sources), options, split=False)
    return [one.text.replace("\n", " ").replace("\t", " ") for one in found]
