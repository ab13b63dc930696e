"""The models that are loaded: which languages they join, by a third one where a pair is missing,
and how a text goes through them sentence by sentence. Knows engines and corrections; nothing of
HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.errors import OptionError
from dragoman.server.engine import Engine
from dragoman.server.metrics import log
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation, join_translations
from dragoman.text.languages import NAMES
from dragoman.text.sentences import split

if TYPE_CHECKING:
    from dragoman.server.corrections import Corrections

AT_ONCE = 64  # sentences of one text that wait together, so that others come in between
CORRECTED = "corrected"  # flag of what a reader wrote
_Thing = TypeVar("_Thing")
_Result = TypeVar("_Result")


class Fleet:
    """One engine for each pair of languages, in the order in which the folders were named."""

    def __init__(
        self,
        folders: Sequence[Path],
        load: Callable[[Path], Translator],
        queue: int,
        corrections: Corrections | None = None,
    ) -> None:
        self.corrections, self._load, self._reloading = corrections, load, threading.Lock()
        self._folders: dict[tuple[str, str], Path] = {}
        self.engines: dict[tuple[str, str], Engine] = {}
        self._cores = ThreadPoolExecutor(1, "cores")
        for folder in folders:
            translator = self._cores.submit(load, folder).result()
            pair = _pair(translator)
            if pair in self.engines:
                raise OptionError(
                    f"{self._folders[pair]} and {folder} both translate {pair[0]} to {pair[1]}; name one of them"
                )
            self.engines[pair] = Engine(folder.resolve().name, translator, queue, self._cores)
            self._folders[pair] = folder
        self.known = sorted({language for pair in self.engines for language in pair})
        self._classify = _classifier(self.known)

    def path(self, source: str, target: str) -> list[Engine]:
        """The engines that a text goes through: one, or two where a third language lies between;
        none into its own."""
        if source == target and source in self.known:
            return []
        if direct := self.engines.get((source, target)):
            return [direct]
        for (first, middle), engine in self.engines.items():
            if first == source and (middle, target) in self.engines:
                return [engine, self.engines[middle, target]]
        pairs = ", ".join(f"{a} to {b}" for a, b in self.engines)
        raise OptionError(
            f"no model here translates from '{source[:40]}' to '{target[:40]}'; choose among {pairs}"
        )

    def languages(self) -> list[dict[str, Any]]:
        """As LibreTranslate lists them, each with what it can become."""
        direct = set(self.engines)
        ways = direct | {(a, d) for a, b in direct for c, d in direct if b == c != a != d}
        return [
            {
                "code": a,
                "name": NAMES.get(a, a),
                "targets": [b for b in self.known if (a, b) in ways],
            }
            for a in self.known
        ]

    def detect(self, text: str) -> tuple[str, float]:
        """(language, how sure from 0 to 1) by py3langid, among the languages that are loaded.
        One that it does not know is never guessed, and its texts are taken for another: name the
        source with those."""
        if self._classify is None:
            raise OptionError(
                "no language that is loaded can be detected, since py3langid knows none of them; name the source"
            )
        return self._classify(text[:2000])

    async def translate(
        self, text: str, source: str, target: str, ask: TranslateRequest
    ) -> Translation:
        """A text of any length, its white space kept; what a reader has corrected comes back so."""
        path, body = self.path(source, target), text.strip()
        if not path or not body:
            return Translation(text)
        whole = self._corrected(body, source, target, ask)
        pieces = (
            [(body, "")] if whole else split(body, path[0].translator.description.source_language)
        )

        async def one(place: int) -> Translation:
            how = replace(ask, prefix="") if place else ask
            known = whole or self._corrected(pieces[place][0], source, target, how)
            return known or await _through(path, pieces[place][0], how)

        found = _joined(await together(one, range(len(pieces))), pieces)
        start = text.index(body)
        return replace(found, text=text[:start] + found.text + text[start + len(body) :])

    def _corrected(
        self, text: str, source: str, target: str, ask: TranslateRequest
    ) -> Translation | None:
        """What a reader wrote, unless the request asks for something of its own."""
        if self.corrections is None or ask.prefix or ask.options.sample:
            return None
        known = self.corrections.exact(source, target, text)
        return Translation(known.target, confidence=1.0, flags=(CORRECTED,)) if known else None

    def reload(self, also: Callable[[], list[str]] = list) -> list[str]:
        """Every folder is read again, and what `also` reads. What is being translated goes on,
        and a broken folder leaves the old model serving; what was wrong, a sentence each."""
        with self._reloading:
            problems = also()
            for pair, folder in self._folders.items():
                try:
                    translator = self._cores.submit(self._load, folder).result()
                    if _pair(translator) != pair:
                        raise OptionError(
                            f"{folder} is not for {pair[0]} to {pair[1]} any more; restart the server to have it"
                        )
                    self.engines[pair].translator = translator
                except Exception as error:  # whatever is wrong with a folder, the service goes on
                    problems.append(f"{error}; the old model goes on")
        log(event="reload", problems=problems)
        return problems

    def close(self) -> None:
        """Finishes what was accepted."""
        for engine in self.engines.values():
            engine.close()
        self._cores.shutdown()


async def together(
    work: Callable[[_Thing], Coroutine[Any, Any, _Result]], things: Sequence[_Thing]
) -> list[_Result]:
    """All results in order, some at a time. Where one fails or nobody waits any more, the others
    are given up."""
    found: list[_Result] = []
    for start in range(0, len(things), AT_ONCE):
        tasks = [asyncio.ensure_future(work(thing)) for thing in things[start : start + AT_ONCE]]
        try:
            found += await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
    return found


async def _through(path: Sequence[Engine], text: str, ask: TranslateRequest) -> Translation:
    """By one model, or by two: then aligned where both are, as sure as the less sure, with the
    flags of both."""
    first = await asyncio.wrap_future(
        path[0].submit(text, ask if len(path) == 1 else TranslateRequest(align=ask.align))
    )
    if len(path) == 1:
        return first
    then = await asyncio.wrap_future(path[1].submit(first.text, ask))
    links = {(a, c) for a, b in first.alignment for again, c in then.alignment if b == again}
    sure = min(
        (one.confidence for one in (first, then) if one.confidence is not None), default=None
    )
    return replace(
        then,
        alignment=tuple(sorted(links)),
        confidence=sure,
        flags=tuple({*first.flags, *then.flags}),
    )


def _joined(parts: Sequence[Translation], pieces: Sequence[tuple[str, str]]) -> Translation:
    """One translation of the sentences of a text, with the white space between them."""
    if len(parts) == 1:
        return parts[0]
    sources = [sentence for sentence, _ in pieces]
    spaces = [space for _, space in pieces]
    return join_translations(parts, sources, spaces)


def _pair(translator: Translator) -> tuple[str, str]:
    return (
        translator.description.source_language.lower(),
        translator.description.target_language.lower(),
    )


def _classifier(languages: Sequence[str]) -> Callable[[str], tuple[str, float]] | None:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(known := set(languages) & set(identifier.labels))
    return identifier.classify if known else None
