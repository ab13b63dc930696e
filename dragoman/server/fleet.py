"""The models that are loaded, and which languages they join, through a third one where a pair is
missing. Knows engines and model folders; nothing of HTTP."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.errors import OptionError
from dragoman.folder.layout import CONFIG
from dragoman.server.cores import Cores
from dragoman.server.engine import Engine
from dragoman.server.language_pair import LanguagePair
from dragoman.server.metrics import log
from dragoman.server.pauses import collect_what_was_replaced
from dragoman.server.turns import Flow
from dragoman.tasks.translate import Translator
from dragoman.text.detection import Detected, Detector
from dragoman.text.languages import canonical, name_of

if TYPE_CHECKING:
    from dragoman.server.corrections import Corrections
    from dragoman.text.glossary import Glossary


class Fleet:
    """One engine for each pair of languages, in the order in which the folders were named."""

    def __init__(
        self,
        folders: Sequence[Path],
        load: Callable[[Path], Translator],
        queue: int,
        corrections: Corrections | None = None,
        glossary: Glossary | None = None,
    ) -> None:
        self.corrections = corrections
        self.glossary = glossary  # for requests that bring none
        self.engines: dict[tuple[str, str], Engine] = {}
        self._folders: dict[tuple[str, str], Path] = {}
        self._load = load
        self._reloading = threading.Lock()
        self._cores = Cores()
        for folder in folders:
            translator = self._cores.submit(partial(load, folder)).result()
            pair = _languages_of(translator)
            _check_languages(folder, pair)
            if pair in self.engines:
                raise OptionError(
                    f"{self._folders[pair]} and {folder} both translate {pair[0]} to {pair[1]}; "
                    "name one of them"
                )
            self.engines[pair] = Engine(folder.resolve().name, translator, queue, self._cores)
            self._folders[pair] = folder
            if glossary is not None:
                glossary.prepare(*pair)
        self.known = sorted({language for pair in self.engines for language in pair})
        self._detector = Detector(self.known)

    def pair(self, source: str, target: str, client: str = "") -> LanguagePair:
        """Return the way from one language to another: through one engine, or through two.

        It is for one request of `client`, which shares the models fairly with others.
        """
        source = self._served(source)
        target = self._served(target)
        engines = self._engines_between(source, target)
        return LanguagePair(source, target, engines, self.corrections, Flow(client), self.glossary)

    def languages(self) -> list[dict[str, Any]]:
        """Return the languages as LibreTranslate lists them, each with those it can become."""
        return [
            {
                "code": language,
                "name": name_of(language),
                "targets": [other for other in self.known if self._joins(language, other)],
            }
            for language in self.known
        ]

    def knows_tones(self, target: str) -> bool:
        """Return whether every model into a language has learnt to be formal or informal."""
        into = [engine for (_, other), engine in self.engines.items() if other == target]
        return bool(into) and all(engine.translator.description.tones for engine in into)

    def detect(self, text: str) -> Detected:
        """Return the language of a text, which may be none of those loaded.

        A language that py3langid does not know is hardly ever returned, and its texts are taken
        for another: name the source with those.
        """
        if not self._detector.knows_any:
            raise OptionError(
                "none of the languages loaded can be detected, since py3langid knows none of "
                "them; name the source"
            )
        return self._detector.detect(text)

    def detected_source(self, text: str) -> Detected:
        """Return the language of a text that is to be translated; raise if no model can."""
        found = self.detect(text)
        if not found.is_loaded:
            raise OptionError(
                f"the text seems to be {name_of(found.language)} ({found.language}), from which "
                "no model here translates; if it is not, name the source"
            )
        return found

    def reload(self, also: Callable[[], list[str]] = list) -> list[str]:
        """Read every folder again, and what `also` reads; return what was wrong.

        What is being translated goes on. A broken folder leaves the old model serving.
        """
        with self._reloading:
            problems = also()
            for pair in self._folders:
                try:
                    self._reload_pair(pair)
                except Exception as error:  # whatever is wrong with a folder, the service goes on
                    problems.append(f"{error}; the old model stays in use")
            collect_what_was_replaced()
        log(event="reload", problems=problems)
        return problems

    def close(self) -> None:
        """Finish what was accepted, and stop."""
        for engine in self.engines.values():
            engine.close()
        self._cores.close()

    def _served(self, code: str) -> str:
        """Return the language that a code means here: itself, or, where only that is served, the
        language without its region, such as en for en-GB."""
        language = canonical(code)
        plain = re.split("[-_]", language)[0]
        return plain if language not in self.known and plain in self.known else language

    def _engines_between(self, source: str, target: str) -> tuple[Engine, ...]:
        if source == target and source in self.known:
            return ()
        direct = self.engines.get((source, target))
        if direct is not None:
            return (direct,)
        for (first, middle), engine in self.engines.items():
            if first == source and (middle, target) in self.engines:
                return engine, self.engines[middle, target]
        pairs = ", ".join(f"{source} to {target}" for source, target in self.engines)
        raise OptionError(
            f"no model here translates from '{source[:40]}' to '{target[:40]}'; "
            f"choose among {pairs}"
        )

    def _joins(self, source: str, target: str) -> bool:
        """Return whether texts can be translated from one language into another one."""
        if source == target:
            return False
        middles = [middle for first, middle in self.engines if first == source]
        return target in middles or any((middle, target) in self.engines for middle in middles)

    def _reload_pair(self, pair: tuple[str, str]) -> None:
        folder = self._folders[pair]
        translator = self._cores.submit(partial(self._load, folder)).result()
        if _languages_of(translator) != pair:
            raise OptionError(
                f"{folder} no longer translates {pair[0]} to {pair[1]}; "
                "restart the server to use it"
            )
        self.engines[pair].translator = translator


def _languages_of(translator: Translator) -> tuple[str, str]:
    description = translator.description
    return canonical(description.source_language), canonical(description.target_language)


def _check_languages(folder: Path, pair: tuple[str, str]) -> None:
    """Refuse a model that does not say what it translates: texts would come back as they are."""
    if not all(pair) or pair[0] == pair[1]:
        raise OptionError(
            f"{folder} does not say from which language into which it translates; train with "
            f"--from and --to, or set source_language and target_language in {folder / CONFIG}"
        )
