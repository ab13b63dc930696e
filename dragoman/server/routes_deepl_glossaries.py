"""DeepL's API of glossaries: those of one pair of languages (v2), and those of several (v3). Knows
HTTP and JSON; where glossaries are is known to the store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from dragoman.server.admission import admit_client, fleet_of, guard_of
from dragoman.server.deepl_schema import (
    DictionaryBody,
    GlossaryBody,
    MultilingualBody,
    MultilingualChange,
)
from dragoman.server.described import OF_READING, Other, answers
from dragoman.server.glossary_store import (
    GlossaryStore,
    StoredGlossary,
    pair_name,
    read_entries,
    write_entries,
)
from dragoman.server.request_schema import Language
from dragoman.server.sent_fields import either_way, read_fields

router = APIRouter(tags=["DeepL"])

_OF_ONE = {"source_lang": "en", "target_lang": "de", "entry_count": 1}
_V2 = {
    "glossary_id": "5c0f…",
    "name": "Pets",
    "ready": True,
    "creation_time": "2026-01-01T12:00:00.000000Z",
    **_OF_ONE,
}
_V3 = {
    "glossary_id": "5c0f…",
    "name": "Pets",
    "creation_time": "2026-01-01T12:00:00.000000Z",
    "dictionaries": [_OF_ONE],
}
_CHANGING = (400, 403, 404, 422, 429)
_READING = (*OF_READING, 404)
_LINES = Other("text/tab-separated-values", "cat\tKater\n")
_V2_PATH = "/v2/glossaries"
_V3_PATH = "/v3/glossaries"
_Dictionaries = dict[str, dict[str, str]]


async def _read_glossary(request: Request) -> GlossaryBody:
    return await read_fields(request, GlossaryBody)


def _store(request: Request) -> GlossaryStore:
    store: GlossaryStore = request.app.state.glossaries
    return store


async def _own(request: Request, glossary_id: str) -> StoredGlossary:
    return _store(request).get(admit_client(request), glossary_id)


async def _refuse_foreign(request: Request) -> None:
    guard_of(request).refuse_foreign(request)


_Own = Annotated[StoredGlossary, Depends(_own)]
_CHANGES = [Depends(_refuse_foreign)]


# Of one pair


@router.post(
    _V2_PATH,
    dependencies=_CHANGES,
    status_code=201,
    openapi_extra=either_way(GlossaryBody),
    responses=answers(_V2_PATH, _V2, _CHANGING, 201),
)
async def create(
    request: Request, body: Annotated[GlossaryBody, Depends(_read_glossary)]
) -> dict[str, Any]:
    """DeepL: store a glossary of one pair of languages."""
    client = admit_client(request)
    made = await _create(request, client, body.name, [body])
    return _as_v2(made)


@router.get(_V2_PATH, responses=answers(_V2_PATH, {"glossaries": [_V2]}, OF_READING))
async def list_all(request: Request) -> dict[str, Any]:
    """DeepL: the glossaries of the key or address that have one pair of languages."""
    found = _store(request).all_of(admit_client(request))
    return {"glossaries": [_as_v2(one) for one in found if len(one.dictionaries) == 1]}


@router.get(_V2_PATH + "/{glossary_id}", responses=answers(_V2_PATH, _V2, _READING))
async def get(glossary: _Own) -> dict[str, Any]:
    """DeepL: what is known of a glossary."""
    return _as_v2(glossary)


@router.get(
    _V2_PATH + "/{glossary_id}/entries",
    response_class=Response,
    responses=answers(_V2_PATH, _LINES, _READING),
)
async def entries(glossary: _Own) -> Response:
    """DeepL: the terms of a glossary, each a line with a tab."""
    terms = next(iter(glossary.dictionaries.values()), {})
    return Response(write_entries(terms), media_type="text/tab-separated-values")


@router.delete(
    _V2_PATH + "/{glossary_id}",
    dependencies=_CHANGES,
    status_code=204,
    responses=answers(_V2_PATH, None, _CHANGING, 204),
)
async def delete(request: Request, glossary: _Own) -> Response:
    """DeepL: delete a glossary."""
    await asyncio.to_thread(_store(request).delete, glossary)
    return Response(status_code=204)


# Of several pairs


@router.post(
    _V3_PATH,
    dependencies=_CHANGES,
    status_code=201,
    responses=answers(_V3_PATH, _V3, _CHANGING, 201),
)
async def create_multilingual(request: Request, body: MultilingualBody) -> dict[str, Any]:
    """DeepL: store a glossary of several pairs of languages."""
    client = admit_client(request)
    return _as_v3(await _create(request, client, body.name, body.dictionaries))


@router.get(_V3_PATH, responses=answers(_V3_PATH, {"glossaries": [_V3]}, OF_READING))
async def list_multilingual(request: Request) -> dict[str, Any]:
    """DeepL: all glossaries of the key or address."""
    found = _store(request).all_of(admit_client(request))
    return {"glossaries": [_as_v3(one) for one in found]}


@router.get(_V3_PATH + "/{glossary_id}", responses=answers(_V3_PATH, _V3, _READING))
async def get_multilingual(glossary: _Own) -> dict[str, Any]:
    """DeepL: what is known of a glossary."""
    return _as_v3(glossary)


@router.patch(
    _V3_PATH + "/{glossary_id}", dependencies=_CHANGES, responses=answers(_V3_PATH, _V3, _CHANGING)
)
async def change(request: Request, glossary: _Own, body: MultilingualChange) -> dict[str, Any]:
    """DeepL: rename a glossary, or add terms to its dictionaries."""
    new = await asyncio.to_thread(_dictionaries, request, body.dictionaries)

    def with_more(now: StoredGlossary) -> StoredGlossary:
        merged = dict(now.dictionaries)
        for name, terms in new.items():
            merged[name] = {**merged.get(name, {}), **terms}
        return replace(now, name=body.name or now.name, dictionaries=merged)

    changed = await asyncio.to_thread(_store(request).change, glossary, with_more)
    return _as_v3(changed)


@router.delete(
    _V3_PATH + "/{glossary_id}",
    dependencies=_CHANGES,
    status_code=204,
    responses=answers(_V3_PATH, None, _CHANGING, 204),
)
async def delete_multilingual(request: Request, glossary: _Own) -> Response:
    """DeepL: delete a glossary."""
    await asyncio.to_thread(_store(request).delete, glossary)
    return Response(status_code=204)


@router.get(
    _V3_PATH + "/{glossary_id}/entries",
    responses=answers(
        _V3_PATH,
        {"dictionaries": [{"source_lang": "en", "target_lang": "de", "entries": "cat\tKater"}]},
        _READING,
    ),
)
async def multilingual_entries(
    glossary: _Own,
    source_lang: Annotated[Language, Query(description="language of the source terms")],
    target_lang: Annotated[Language, Query(description="language of the target terms")],
) -> dict[str, Any]:
    """DeepL: the terms of a pair of languages."""
    terms = glossary.terms(source_lang, target_lang)
    name = pair_name(source_lang, target_lang)
    row = {**_languages(name), "entries": write_entries(terms), "entries_format": "tsv"}
    return {"dictionaries": [row]}


@router.put(
    _V3_PATH + "/{glossary_id}/dictionaries",
    dependencies=_CHANGES,
    responses=answers(_V3_PATH, _OF_ONE, _CHANGING),
)
async def replace_dictionary(
    request: Request, glossary: _Own, body: DictionaryBody
) -> dict[str, Any]:
    """DeepL: replace the terms of a pair of languages, or add a pair."""
    new = await asyncio.to_thread(_dictionaries, request, [body])

    def with_new(now: StoredGlossary) -> StoredGlossary:
        return replace(now, dictionaries={**now.dictionaries, **new})

    await asyncio.to_thread(_store(request).change, glossary, with_new)
    ((name, terms),) = new.items()
    return _info(name, terms)


@router.delete(
    _V3_PATH + "/{glossary_id}/dictionaries",
    dependencies=_CHANGES,
    status_code=204,
    responses=answers(_V3_PATH, None, _CHANGING, 204),
)
async def delete_dictionary(
    request: Request,
    glossary: _Own,
    source_lang: Annotated[Language, Query(description="language of the source terms")],
    target_lang: Annotated[Language, Query(description="language of the target terms")],
) -> Response:
    """DeepL: delete the terms of a pair of languages."""
    glossary.terms(source_lang, target_lang)  # or there is nothing to delete
    name = pair_name(source_lang, target_lang)

    def without(now: StoredGlossary) -> StoredGlossary:
        left = {other: terms for other, terms in now.dictionaries.items() if other != name}
        return replace(now, dictionaries=left)

    await asyncio.to_thread(_store(request).change, glossary, without)
    return Response(status_code=204)


async def _create(
    request: Request, client: str, name: str, given: Iterable[DictionaryBody]
) -> StoredGlossary:
    dictionaries = await asyncio.to_thread(_dictionaries, request, given)
    return await asyncio.to_thread(_store(request).create, client, name, dictionaries)


def _dictionaries(request: Request, given: Iterable[DictionaryBody]) -> _Dictionaries:
    """Return the terms by pairs of languages, each of which a model here translates."""
    dictionaries: _Dictionaries = {}
    for body in given:
        fleet_of(request).pair(body.source_lang, body.target_lang)
        name = pair_name(body.source_lang, body.target_lang)
        dictionaries[name] = read_entries(body.entries, body.entries_format)
    return dictionaries


def _as_v2(glossary: StoredGlossary) -> dict[str, Any]:
    name, terms = next(iter(glossary.dictionaries.items()), ("-", {}))
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "ready": True,
        "creation_time": glossary.created,
        **_info(name, terms),
    }


def _as_v3(glossary: StoredGlossary) -> dict[str, Any]:
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "creation_time": glossary.created,
        "dictionaries": [_info(name, terms) for name, terms in glossary.dictionaries.items()],
    }


def _info(name: str, terms: Mapping[str, str]) -> dict[str, Any]:
    return {**_languages(name), "entry_count": len(terms)}


def _languages(name: str) -> dict[str, str]:
    source, _, target = name.partition("-")
    return {"source_lang": source, "target_lang": target}
