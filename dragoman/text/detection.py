"""Which language a text is in: one of those loaded, another that is known by name, or one that
cannot be told. Knows py3langid and codes of languages; no models and no HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.text.languages import canonical

_ENOUGH = 2_000  # characters to detect a language by
# A language that is not loaded is believed if it is that probable, and so many times as probable as
# any that is loaded. Single words are too short to tell: they are taken for a loaded language.
_PROBABLE = 0.4
_TIMES = 5.0
# A language that the detector does not know is assumed where no other is that probable.
_CERTAIN = 0.9
# What the detector tells apart, but people and models rarely do.
_SAME = {"nb": "no", "nn": "no", "ary": "ar", "arz": "ar"}


@dataclass(frozen=True)
class Detected:
    """A language, a confidence from 0 to 1, and whether it is one of those loaded."""

    language: str
    confidence: float
    is_loaded: bool = True


class Detector:
    """Tells languages apart, all that py3langid knows; those loaded come first in doubt."""

    def __init__(self, loaded: Sequence[str]) -> None:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        labels = {str(label) for label in self._identifier.labels}
        by_label = {_label(language): language for language in loaded}
        self._loaded = {label: code for label, code in by_label.items() if label in labels}
        self._unknown = [code for label, code in by_label.items() if label not in labels]

    @property
    def knows_any(self) -> bool:
        """Whether any of the languages loaded can be detected."""
        return bool(self._loaded)

    def detect(self, text: str) -> Detected:
        """Return the language of a text."""
        own = 0.0
        best = ""
        foreign = 0.0
        other = ""
        for label, value in self._identifier.rank(text[:_ENOUGH]):
            probability = float(value)
            if _label(label) in self._loaded:
                if probability > own or not best:
                    own = probability
                    best = self._loaded[_label(label)]
            elif probability > foreign:
                foreign = probability
                other = _label(label)
        is_foreign = foreign >= _PROBABLE and foreign >= _TIMES * own
        if is_foreign and self._unknown and foreign < _CERTAIN:
            return Detected(self._unknown[0], 0.5)
        if is_foreign:
            return Detected(other, foreign, is_loaded=False)
        return Detected(best, own / max(own + foreign, 1e-9))


def _label(language: str) -> str:
    """The code by which py3langid knows a language, with its varieties as one."""
    code = canonical(language).split("-")[0].split("_")[0]
    return _SAME.get(code, code)
