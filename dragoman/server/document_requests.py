"""A document that was sent, translated in a thread of its own. Knows the event loop and the limit
on documents; what is in one is known to documents/."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException

from dragoman.documents.documents import translate_document
from dragoman.server.gathering import together
from dragoman.server.language_pair import LanguagePair
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translation import Translation


async def translate_sent_document(pair: LanguagePair, name: str, data: bytes, most: int) -> bytes:
    """Translate a document of at most so many characters.

    The thread hands its texts back to the event loop, some at a time, so that other requests get
    their turn.
    """
    loop = asyncio.get_running_loop()
    left = most

    async def translate_one(text: str) -> Translation:
        nonlocal left
        left -= len(text)
        if left < 0:
            raise HTTPException(413, f"a document may have {most:,} characters; send it in parts")
        return await pair.translate(text, TranslateRequest(align=True))

    def translate(texts: list[str]) -> list[Translation]:
        return asyncio.run_coroutine_threadsafe(together(translate_one, texts), loop).result()

    try:
        return await asyncio.to_thread(translate_document, name, data, translate)
    finally:
        left = 0  # nobody waits any longer: the thread ends with its next text
