"""Two translators one after the other, so that a text reaches a language by way of a third. Knows
translators and what is asked of each; nothing of folders and commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from dragoman.errors import OptionError
from dragoman.tasks.lines import CHUNK, growing
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation, chain_translations
from dragoman.text.languages import canonical


class ChainedTranslator:
    """Translates by way of the language between; the glossary, the search and all else that is
    asked for are the second translator's business."""

    def __init__(self, first: Translator, second: Translator) -> None:
        between = first.description.target_language
        needed = second.description.source_language
        if canonical(between) != canonical(needed):
            raise OptionError(
                f"the first model translates into '{between}' and the second from '{needed}'; name "
                "two models that meet in one language"
            )
        self.parts = (first, second)
        self.via = canonical(between)

    def translate(
        self, lines: Sequence[str], request: TranslateRequest, before: Sequence[str] = ()
    ) -> list[Translation]:
        """Translate lines; each has the lower confidence and the flags of both translations.

        Context cannot be read along, since the second translator has another language before it.
        """
        if request.context:
            raise OptionError(
                f"context is {request.context}, and this text goes by way of '{self.via}'; omit it"
            )
        first, second = self.parts
        plain = TranslateRequest(align=request.align, split=request.split, protect=request.protect)
        between = first.translate(lines, plain)
        final = second.translate([one.text for one in between], request)
        return [chain_translations(*both) for both in zip(between, final, strict=True)]

    def stream(self, lines: Iterable[str], request: TranslateRequest) -> Iterator[Translation]:
        """Translate any number of lines in constant memory."""
        remaining = iter(lines)
        for size in growing(CHUNK):
            chunk = list(islice(remaining, size))
            if not chunk:
                return
            yield from self.translate(chunk, request)
