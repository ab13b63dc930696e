"""Texts with tags, as some APIs send them: each a piece of a page, translated as one. Knows which
of them can be read together; what is in a page is known to documents/."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request

from dragoman.server.admission import Admitted
from dragoman.server.document_requests import SentWith, translate_sent
from dragoman.server.document_workers import Sent
from dragoman.tasks.translation import Translation

HTML = "text.html"


async def translate_pages(
    request: Request, admitted: Admitted, given: SentWith, name: str = HTML
) -> list[Translation]:
    """Translate pieces of pages, those of one language together; `name` has their ending."""
    given = replace(given, is_charged=True)
    translations = [Translation(text) for text in admitted.texts]
    numbers = [number for number, text in enumerate(admitted.texts) if text.strip()]
    for source in dict.fromkeys(admitted.pairs[number].source for number in numbers):
        own = [number for number in numbers if admitted.pairs[number].source == source]
        pages = [Sent(name, admitted.texts[number].encode()) for number in own]
        pair = admitted.pairs[own[0]]
        done = await translate_sent(request, pair, pages, given)
        for number, page in zip(own, done, strict=True):
            translations[number] = Translation(page.decode())
    return translations
