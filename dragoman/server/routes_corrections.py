"""Readers' translations: one, or those of a file that somebody has reviewed. Knows HTTP and JSON;
where corrections are kept is known to the language pair."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException

from dragoman.server.admission import admit, guard_of
from dragoman.server.correction_requests import save_correction, save_reviewed
from dragoman.server.described import OF_TEXTS, answers
from dragoman.server.request_schema import CorrectionBody, ReviewedBody

router = APIRouter()


@router.post(
    "/v1/corrections", responses=answers("/v1/corrections", {"saved": True}, (404, *OF_TEXTS))
)
async def correct(request: Request, body: CorrectionBody) -> dict[str, bool]:
    """Save a reader's translation of a text, which is returned for it from now on."""
    guard_of(request).refuse_foreign(request)
    admitted = await admit(request, body, body.text)
    corrections = admitted.pair.corrections
    if corrections is None or len(admitted.texts) != 1:
        raise HTTPException(
            404,
            "corrections are saved one text at a time, by a server that was started with "
            "--corrections FILE",
        )
    await save_correction(corrections, admitted.pair, admitted.texts[0], body.correction)
    return {"saved": True}


@router.post(
    "/v1/corrections/reviewed",
    responses=answers("/v1/corrections/reviewed", {"saved": 1, "of": 1}, (404, *OF_TEXTS)),
)
async def take_reviewed(request: Request, body: ReviewedBody) -> dict[str, int]:
    """Save the translations of a reviewed file, all of them or none.

    `saved` counts those that were not there yet, word for word.
    """
    guard_of(request).refuse_foreign(request)
    admitted = await admit(request, body, [text for text, _ in body.pairs])
    corrections = admitted.pair.corrections
    if corrections is None or body.source == "auto":
        raise HTTPException(
            404,
            "reviewed translations are saved with both languages named, by a server that was "
            "started with --corrections FILE",
        )
    saved = await save_reviewed(corrections, admitted.pair, body.pairs)
    return {"saved": saved, "of": len(body.pairs)}
