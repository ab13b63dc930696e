"""DeepL's API of texts, so that its clients work with another address. Knows HTTP, JSON and DeepL's
names of languages; how a text is translated is known to the language pair."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from dragoman.documents.documents import TAGGED
from dragoman.server.admission import Admitted, admit, admit_client, fleet_of, guard_of
from dragoman.server.deepl_schema import DeeplLanguages, DeeplText, LanguageQuestion
from dragoman.server.described import OF_READING, answers
from dragoman.server.document_requests import SentWith
from dragoman.server.gathering import together
from dragoman.server.glossary_store import GlossaryStore
from dragoman.server.language_pair import LanguagePair
from dragoman.server.page_texts import HTML, translate_pages
from dragoman.server.ready_glossaries import ReadyGlossaries
from dragoman.server.sent_fields import either_way, read_fields
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translation import Translation

router = APIRouter(tags=["DeepL"])

_NO_LIMIT = 1_000_000_000_000  # what DeepL answers where there is none
# DeepL's clients ask for a variant of these; all variants are one language here.
_VARIANTS = {
    "en": {"EN-GB": "English (British)", "EN-US": "English (American)"},
    "pt": {"PT-BR": "Portuguese (Brazilian)", "PT-PT": "Portuguese (European)"},
}
_TRANSLATION = {"detected_source_language": "EN", "text": "Guten Morgen."}


async def _read_texts(request: Request) -> DeeplText:
    return await read_fields(request, DeeplText, _REPEATED)


async def _read_question(request: Request) -> LanguageQuestion:
    return await read_fields(request, LanguageQuestion)


_REPEATED = ("text", "ignore_tags", "splitting_tags", "non_splitting_tags", "glossary_ids")
_Texts = Annotated[DeeplText, Depends(_read_texts)]


@router.get("/v2/translate", include_in_schema=False)  # as older clients ask
@router.post(
    "/v2/translate",
    openapi_extra=either_way(DeeplText),
    responses=answers("/v2/translate", {"translations": [_TRANSLATION]}),
)
async def translate(request: Request, body: _Texts) -> dict[str, Any]:
    """DeepL: translate texts, as plain text, XML or HTML.

    Where a third language lies between, `via` names it.
    """
    body.check()
    admitted = await admit(request, body, body.texts)
    asked = await asked_of(request, body, admitted.pair)
    translations = await _translate_all(request, body, admitted, asked)
    rows = zip(admitted.texts, admitted.pairs, translations, strict=False)
    answered = []
    for text, pair, translation in rows:
        row: dict[str, Any] = {
            "detected_source_language": pair.source.upper(),
            "text": translation.text,
        }
        if body.show_billed_characters:
            row["billed_characters"] = len(text)
        if pair.via:
            row["via"] = pair.via.upper()
        answered.append(row)
    return {"translations": answered}


async def _translate_all(
    request: Request, body: DeeplText, admitted: Admitted, asked: TranslateRequest
) -> list[Translation]:
    asked = replace(asked, split=body.split_sentences != "0")
    if body.tag_handling:
        name = HTML if body.tag_handling == "html" else TAGGED
        return await translate_pages(request, admitted, SentWith(asked, body.tag_settings()), name)

    async def translate_one(number: int) -> Translation:
        return await admitted.pairs[number].translate(admitted.texts[number], asked)

    return await together(translate_one, range(len(admitted.texts)))


async def asked_of(request: Request, body: DeeplLanguages, pair: LanguagePair) -> TranslateRequest:
    """Return what a request asks of its translation: a client's own glossary, and the formality
    and the variant of the language where the model has learnt them."""
    glossary = None
    if body.glossaries:
        store: GlossaryStore = request.app.state.glossaries
        stored = [store.get(pair.flow.client, number) for number in body.glossaries]
        ready: ReadyGlossaries = request.app.state.ready_glossaries
        glossary = await ready.get(stored, body.source, body.target)
    tone = ""
    variant = ""
    if pair.engines:
        learnt = pair.engines[-1].translator.description
        tone = body.tone(learnt.tones)
        named = [one for one in learnt.variants if one.lower() == body.target]
        variant = named[0] if named else ""
    return TranslateRequest(glossary=glossary, tone=tone, variant=variant)


@router.get(
    "/v2/usage",
    responses=answers(
        "/v2/usage", {"character_count": 1200, "character_limit": 500_000}, OF_READING
    ),
)
async def usage(request: Request) -> dict[str, int]:
    """DeepL: the characters that the key or address has had translated today, and may have."""
    client = admit_client(request)
    quota = guard_of(request).quota
    return {"character_count": quota.used(client), "character_limit": quota.most or _NO_LIMIT}


@router.get(
    "/v2/languages",
    responses=answers("/v2/languages", [{"language": "DE", "name": "German"}], OF_READING),
)
async def languages(
    request: Request, question: Annotated[LanguageQuestion, Depends(_read_question)]
) -> list[dict[str, Any]]:
    """DeepL: the languages that texts may be in (`type=source`), or become (`type=target`)."""
    admit_client(request)
    fleet = fleet_of(request)
    known = fleet.languages()
    if question.type == "source":
        sources = [one for one in known if one["targets"]]
        return [{"language": one["code"].upper(), "name": one["name"]} for one in sources]
    reached = {code for one in known for code in one["targets"]}
    rows = []
    for one in known:
        plain = {one["code"].upper(): one["name"]}
        variants = _VARIANTS.get(one["code"], plain) if one["code"] in reached else {}
        for code, name in variants.items():
            formal = fleet.knows_tones(one["code"])
            rows.append({"language": code, "name": name, "supports_formality": formal})
    return rows


@router.get(
    "/v2/glossary-language-pairs",
    responses=answers(
        "/v2/glossary-language-pairs",
        {"supported_languages": [{"source_lang": "en", "target_lang": "de"}]},
        OF_READING,
    ),
)
async def glossary_pairs(request: Request) -> dict[str, list[dict[str, str]]]:
    """DeepL: the pairs of languages that a glossary may have."""
    admit_client(request)
    pairs = []
    for one in fleet_of(request).languages():
        source = one["code"]
        pairs += [{"source_lang": source, "target_lang": target} for target in one["targets"]]
    return {"supported_languages": pairs}
