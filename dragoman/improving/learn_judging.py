"""Whether a model that has learnt is better: on corrections that it has not seen, and no worse on
older text, both by the paired test that `evaluate --against` makes. Knows translations; trains
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.decoding.search_options import SearchOptions
from dragoman.improving.learn_options import LearnOptions
from dragoman.tasks.evaluate import Scoring, compare, score, tokenize_for
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation

Pair = tuple[str, str]
# How near, in chrF, the translations of older sentences must stay to what they were where nobody
# has translated them: the only test there is without an older valid set.
_NEAR = 85.0


@dataclass(frozen=True)
class Trial:
    """Two models on the same sentences."""

    sentences: int
    before: float  # BLEU
    after: float
    p_value: float
    right_before: int = 0  # translations that are word for word as corrected
    right_after: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """Whether a model is kept, and by which tests."""

    kept: bool
    why: str  # in words that follow "kept, since" or "not kept, since"
    held_back: Trial
    older: Trial | None = None
    agreement: float | None = None  # chrF with what the earlier model says


class Judge:
    """Knows what the current model says, and compares others with it."""

    def __init__(
        self, model: Path, held_back: Sequence[Pair], valid: Sequence[Pair], options: LearnOptions
    ) -> None:
        """`valid` pairs whose target is empty are only compared with what the model said."""
        self._options = options
        self._held_back = list(held_back)
        self._valid = list(valid)
        translator = Translator.load(model, options.device)
        language = translator.description.target_language
        self._scoring = Scoring(tokenize_for(language))
        self._before = _translated(translator, self._held_back)
        self._older_before = _translated(translator, self._valid)
        self.said: list[Translation] = []  # by the last model judged: held back, then older text

    def verdict(self, candidate: Path) -> Verdict:
        """Whether a model is better than the current one."""
        translator = Translator.load(candidate, self._options.device)
        after = _translated(translator, self._held_back)
        held_back = self._trial(after, self._before, self._held_back)
        if held_back.after <= held_back.before or held_back.p_value >= self._options.significance:
            return Verdict(False, _no_gain(held_back), held_back)
        older_after = _translated(translator, self._valid)
        self.said = after + older_after
        if not self._valid:
            return Verdict(True, _gain(held_back), held_back)
        if self._valid[0][1]:
            older = self._trial(older_after, self._older_before, self._valid)
            loss = older.before - older.after
            kept = loss <= self._options.most_loss
            why = _gain(held_back) if kept else _loss(older, self._options.most_loss)
            return Verdict(kept, why, held_back, older)
        texts = [one.text for one in self._older_before]
        agreement = score(_texts(older_after), texts, self._scoring).chrf.value
        kept = agreement >= _NEAR
        why = _gain(held_back) if kept else _strayed(agreement)
        return Verdict(kept, why, held_back, agreement=agreement)

    def _trial(
        self, after: list[Translation], before: list[Translation], pairs: list[Pair]
    ) -> Trial:
        references = [target for _, target in pairs]
        bleu = compare(_texts(after), _texts(before), references, self._scoring).bleu
        return Trial(
            len(pairs),
            round(bleu.other, 2),
            round(bleu.value, 2),
            bleu.p_value,
            _right(before, references),
            _right(after, references),
        )


def _translated(translator: Translator, pairs: Sequence[Pair]) -> list[Translation]:
    sources = [source for source, _ in pairs]
    return translator.translate(sources, SearchOptions(), split=False)


def _texts(translations: Sequence[Translation]) -> list[str]:
    return [one.text.replace("\n", " ") for one in translations]


def _right(translations: Sequence[Translation], references: Sequence[str]) -> int:
    return sum(
        one.text == reference for one, reference in zip(translations, references, strict=True)
    )


def _gain(trial: Trial) -> str:
    return (
        f"on {trial.sentences:,} corrections that it had not seen BLEU rose from "
        f"{trial.before:.1f} to {trial.after:.1f} (p = {trial.p_value:.3f})"
    )


def _no_gain(trial: Trial) -> str:
    return (
        f"on {trial.sentences:,} corrections that it had not seen it is not proved better: BLEU "
        f"{trial.before:.1f} before and {trial.after:.1f} after (p = {trial.p_value:.3f})"
    )


def _loss(trial: Trial, most: float) -> str:
    return (
        f"on {trial.sentences:,} older sentences BLEU fell from {trial.before:.2f} to "
        f"{trial.after:.2f}, and at most {most:g} may be lost"
    )


def _strayed(agreement: float) -> str:
    return (
        f"its translations of older sentences have changed too much (chrF {agreement:.0f} with "
        f"what they were, and {_NEAR:.0f} is needed)"
    )
