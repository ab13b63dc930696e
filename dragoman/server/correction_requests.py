"""A reader's translation that comes with a request, saved. Knows what a correction consists of; no
API and no HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from dragoman.server.correction_users import user_of
from dragoman.server.corrections import Correction, Corrections
from dragoman.server.language_pair import LanguagePair


async def save_correction(
    corrections: Corrections, pair: LanguagePair, text: str, better: str
) -> None:
    """Save what a reader would have as the translation of a text."""
    await asyncio.to_thread(corrections.save, _correction(pair, text, better))


async def save_reviewed(
    corrections: Corrections, pair: LanguagePair, reviewed: Sequence[Sequence[str]]
) -> int:
    """Save texts with the translations that a reviewer left; return how many of them are new."""
    found = [_correction(pair, text, better) for text, better in reviewed]
    return await asyncio.to_thread(corrections.save_all, found)


def _correction(pair: LanguagePair, text: str, better: str) -> Correction:
    return Correction(
        pair.source,
        pair.target,
        text.strip(),
        better.strip(),
        pair.model,
        datetime.now(UTC).isoformat(timespec="seconds"),
        user_of(pair.flow.client),
    )
