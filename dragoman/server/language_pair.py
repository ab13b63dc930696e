"""A text's way from one language into another: sentence by sentence, through one model or two,
with readers' corrections first. Knows engines and corrections; nothing of HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError, OptionError
from dragoman.server.engine import Engine
from dragoman.server.gathering import aside, together
from dragoman.server.metrics import log_once
from dragoman.server.turns import Flow
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translation import Translation, chain_translations, join_translations
from dragoman.text.languages import canonical
from dragoman.text.sentences import split

if TYPE_CHECKING:
    from dragoman.server.corrections import Correction, Corrections
    from dragoman.text.glossary import Glossary

_LONG = 5_000  # characters
CORRECTED = "corrected"  # the flag of a translation that a reader wrote


@dataclass(frozen=True)
class LanguagePair:
    """Two languages, and the engines that a text goes through from one to the other.

    There are two engines where a third language lies between, and none into the same language.
    """

    source: str
    target: str
    engines: tuple[Engine, ...]
    corrections: Corrections | None
    flow: Flow = field(default_factory=Flow)  # of the request that uses the pair
    glossary: Glossary | None = None  # of the service, for requests that bring none

    @property
    def model(self) -> str:
        """The names of the models."""
        return " + ".join(engine.name for engine in self.engines)

    @property
    def via(self) -> str:
        """The language between, where there is one."""
        if len(self.engines) < 2:
            return ""
        return canonical(self.engines[0].translator.description.target_language)

    async def translate(
        self, text: str, request: TranslateRequest, before: Sequence[str] = ()
    ) -> Translation:
        """Translate a text of any length; the white space around it stays.

        `before` are the texts before it, of which the last sentences are read along if the request
        asks for context.
        """
        body = text.strip()
        if not self.engines or not body:
            return Translation(text)
        request = self._with_glossary(request)
        translation = self._corrected(body, request)
        if translation is None:
            self._check_context(request)
            translation = await self._translate_sentences(body, request, before)
        start = text.index(body)
        end = start + len(body)
        return replace(translation, text=text[:start] + translation.text + text[end:])

    async def near_corrections(self, text: str) -> list[tuple[float, Correction]]:
        """Return corrections of similar texts, each with its similarity."""
        if self.corrections is None:
            return []
        try:
            return await asyncio.to_thread(self.corrections.near, self.source, self.target, text)
        except DragomanError as error:
            _tell_log(error)
            return []

    def _with_glossary(self, request: TranslateRequest) -> TranslateRequest:
        """The request with the terms of the service, where it brings none and can have some."""
        options = request.options
        has_own = request.glossary is not None
        if self.glossary is None or has_own or options.sample or options.branch:
            return request
        return replace(request, glossary=self.glossary)

    def _check_context(self, request: TranslateRequest) -> None:
        """Refuse context for a model that reads what another has translated."""
        if request.context and len(self.engines) > 1:
            raise OptionError(
                f"context is {request.context}, and this pair of languages goes through a third; "
                "omit it"
            )

    async def _translate_sentences(
        self, text: str, request: TranslateRequest, before: Sequence[str]
    ) -> Translation:
        language = self.engines[0].translator.description.source_language
        pieces = [(text, "")]
        if request.split:
            pieces = await aside(len(text) >= _LONG, lambda: list(split(text, language)))
        sentences = [sentence for sentence, _ in pieces]
        spaces = [space for _, space in pieces]
        count = request.context
        earlier = _last_sentences(before, count, language)

        async def translate(number: int) -> Translation:
            # Only the first sentence begins with the prefix.
            own = replace(request, prefix="") if number else request
            sentence = sentences[number]
            # A text of one sentence has been looked for already.
            corrected = None if sentence == text else self._corrected(sentence, own)
            if corrected is not None:
                return corrected
            read = [*earlier, *sentences[max(0, number - count) : number]]
            along = tuple(read[-count:]) if count else ()
            return await self._translate_sentence(sentence, own, along)

        parts = await together(translate, range(len(pieces)))
        if len(parts) == 1:
            return parts[0]
        is_long = len(text) >= _LONG
        return await aside(is_long, lambda: join_translations(parts, sentences, spaces))

    async def _translate_sentence(
        self, sentence: str, request: TranslateRequest, before: tuple[str, ...]
    ) -> Translation:
        """Translate a sentence; what is too long for the model waits in parts, each for itself."""
        segmenter = self.engines[0].translator.segmenter
        parts = await aside(len(sentence) >= _LONG, lambda: segmenter.parts(sentence))

        async def translate(number: int) -> Translation:
            own = replace(request, prefix="") if number else request
            return await self._translate_part(parts[number], own, before)

        translations = await together(translate, range(len(parts)))
        if len(parts) == 1:
            return translations[0]
        spaces = [" "] * (len(parts) - 1) + [""]
        return join_translations(translations, parts, spaces)

    async def _translate_part(
        self, text: str, request: TranslateRequest, before: tuple[str, ...]
    ) -> Translation:
        if len(self.engines) == 1:
            return await self._ask(self.engines[0], text, request, before)
        first, second = self.engines
        between = await self._ask(first, text, TranslateRequest(align=request.align))
        final = await self._ask(second, between.text, request)
        return chain_translations(between, final)

    async def _ask(
        self,
        engine: Engine,
        text: str,
        request: TranslateRequest,
        before: tuple[str, ...] = (),
    ) -> Translation:
        return await asyncio.wrap_future(engine.submit(text, request, self.flow, before))

    def _corrected(self, text: str, request: TranslateRequest) -> Translation | None:
        """Return what a reader wrote, unless the request asks for something of its own."""
        if self.corrections is None or request.prefix or request.options.sample:
            return None
        try:
            correction = self.corrections.exact(self.source, self.target, text)
        except DragomanError as error:
            _tell_log(error)
            return None
        if correction is None:
            return None
        return Translation(correction.target, confidence=1.0, flags=(CORRECTED,))


def _last_sentences(texts: Sequence[str], count: int, language: str) -> list[str]:
    """Return the last sentences of texts, at most `count`."""
    found: list[str] = []
    for text in reversed(texts[-count:] if count else ()):
        own = [sentence for sentence, _ in split(text.strip(), language)]
        found = [*own, *found]
        if len(found) >= count:
            break
    return found[-count:] if count else []


def _tell_log(error: DragomanError) -> None:
    """Tell the operator what is wrong with the corrections; clients get their translation."""
    log_once(event="corrections", problem=str(error))
