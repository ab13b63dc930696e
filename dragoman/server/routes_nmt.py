"""The API by which pipelines of text ask a translation server: lists of texts in, lists out. It is
that of NeMo Curator's NMT backend. Knows HTTP and JSON; how a text is translated is known to the
language pair."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from dragoman.server.admission import admit
from dragoman.server.described import answers
from dragoman.server.gathering import together
from dragoman.server.request_schema import Language, TextList, example
from dragoman.tasks.request import TranslateRequest

router = APIRouter(prefix="/nmt", tags=["NMT"])


class NmtTexts(BaseModel):
    """Texts of one language to translate into another."""

    texts: TextList = Field(description="the texts")
    src_lang: Language = Field(description="language of the texts; auto detects it")
    tgt_lang: Language = Field(description="language to translate into")

    model_config = example(texts=["Good morning."], src_lang="en", tgt_lang="de")

    @property
    def source(self) -> str:
        """The language of the texts."""
        return self.src_lang

    @property
    def target(self) -> str:
        """The language to translate into."""
        return self.tgt_lang


@router.post("/translate", responses=answers("/nmt/translate", {"translations": ["Guten Morgen."]}))
async def translate_list(request: Request, body: NmtTexts) -> dict[str, list[str]]:
    """Translate a list of texts; the answer has as many, in the same order."""
    admitted = await admit(request, body, body.texts)

    async def translate_one(number: int) -> str:
        translation = await admitted.pairs[number].translate(
            admitted.texts[number], TranslateRequest()
        )
        return translation.text

    return {"translations": await together(translate_one, range(len(admitted.texts)))}


@router.get("/health", responses=answers("/nmt/health", {"status": "ok"}, ()))
async def health() -> dict[str, str]:
    """Answer that the service is up."""
    return {"status": "ok"}
