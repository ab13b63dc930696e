"""What the service's routes accept. Knows JSON types and the service's own limits; the options,
their defaults, help and limits come from `TranslateRequest`."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from fastapi import UploadFile
from pydantic import AfterValidator, BaseModel, Field

from dragoman.config import Range, describe
from dragoman.decoding.search_options import SearchOptions
from dragoman.tasks.request import TranslateRequest
from dragoman.text.glossary import Glossary, Term

MAX_LOOK = 2_000  # characters that can be inspected at once
_MAX_CORRECTION = 20_000
_MAX_BEAM = 16
_MAX_TERMS = 1_000
_MAX_FORMS = 20  # of a term, its source counted
_OPTIONS = {option.name: option for option in describe(TranslateRequest)}


def _without_surrogates(text: str) -> str:
    """Raise a ValueError for a text that has half of a pair of surrogates."""
    return text.encode().decode()


Text = Annotated[str, AfterValidator(_without_surrogates)]
Language = Annotated[Text, Field(max_length=40)]
TermRow = Annotated[list[Text], Field(min_length=2, max_length=_MAX_FORMS)]


def _option(name: str, **limits: Any) -> Any:
    """Return the field of an option of a request; `limits` are the service's own."""
    option = _OPTIONS[name]
    settings = {"default": option.default, "description": option.help}
    return Field(**(settings | _limits(option.range) | limits))


def _limits(allowed: Range | None) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    if allowed is not None and allowed.least > -math.inf:
        limits["ge"] = allowed.least
    if allowed is not None and allowed.above > -math.inf:
        limits["gt"] = allowed.above
    if allowed is not None and allowed.most < math.inf:
        limits["le"] = allowed.most
    return limits


class Simple(BaseModel):
    """A request as LibreTranslate accepts it."""

    q: Text | list[Text]
    source: Language = "auto"
    target: Language = ""
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, le=15)
    api_key: str | None = None


class Upload(BaseModel):
    """A document to translate."""

    file: UploadFile
    source: Language
    target: Language
    api_key: str | None = None


class Full(BaseModel, extra="forbid"):
    """Texts and what can be asked of their translation; each route uses what it needs."""

    text: Text | list[Text]
    source: Language = "auto"
    target: Language
    # Omitted, it is as wide as `nbest` needs.
    beam: int | None = _option("options.beam", default=None, le=_MAX_BEAM)
    alpha: float = _option("options.alpha", le=10)
    nbest: int = _option("options.nbest", le=_MAX_BEAM)
    sample: bool = _option("options.sample")
    temperature: float = _option("options.temperature", le=10)
    top_k: int = _option("options.top_k", le=1_000_000)
    top_p: float = _option("options.top_p")
    seed: int = _option("options.seed", ge=0)
    prefix: Text = _option("prefix", max_length=MAX_LOOK)
    careful: bool = _option("careful")
    glossary: list[TermRow] = _option("glossary", default=[], max_length=_MAX_TERMS)
    align: bool = _option("align")
    count: int = Field(5, ge=1, le=_MAX_BEAM, description="alternatives to return")
    correction: Text = Field(
        "", max_length=_MAX_CORRECTION, description="the translation as a reader would have it"
    )

    def to_request(self) -> TranslateRequest:
        """Return what these fields ask of a translation."""
        terms = [Term(row[0], tuple(row[1:])) for row in self.glossary]
        return TranslateRequest(
            self.search_options(self.sample),
            prefix=self.prefix,
            glossary=Glossary(terms) if terms else None,
            align=self.align,
            careful=self.careful,
        )

    def search_options(self, sample: bool) -> SearchOptions:
        """Return the options of the search, or of sampling."""
        return SearchOptions(
            beam=self.beam or max(SearchOptions.beam, self.nbest),
            alpha=self.alpha,
            nbest=self.nbest,
            sample=sample,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            seed=self.seed,
        )
