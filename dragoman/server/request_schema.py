"""What the service's routes accept. Knows JSON types and the service's own limits; the options,
their names, types, defaults, help and limits come from `TranslateRequest`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from fastapi import UploadFile
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    FailFast,
    Field,
    create_model,
    model_validator,
)

from dragoman.config import Option, Range, describe
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError
from dragoman.tasks.request import TranslateRequest
from dragoman.text.glossary import Glossary, Term

MAX_LOOK = 2_000  # characters that can be inspected at once
_MAX_CORRECTION = 20_000
_MAX_BEAM = 16
_MAX_TERMS = 1_000
_MAX_TERM_TEXT = 100_000  # characters of terms that are sent with a document
_MAX_FORMS = 20  # of a term, its source counted
_MAX_TERM = 200  # characters of a term or a form
_MAX_FIELDS = 100  # of a request
# Narrower limits than those of a request, since strangers send these.
_OWN_LIMITS: dict[str, dict[str, float]] = {
    "beam": {"le": _MAX_BEAM},
    "alpha": {"le": 10},
    "nbest": {"le": _MAX_BEAM},
    "min_length": {"le": 500},
    "max_length": {"le": 500},
    "no_repeat_ngram": {"le": 100},
    "coverage": {"le": 10},
    "temperature": {"le": 10},
    "top_k": {"le": 1_000_000},
    "seed": {"ge": 0},
}
# What the paper fixes, and what has a route of its own.
_NOT_OFFERED = ("max_extra", "branch")
_SEARCH = {field.name for field in dataclasses.fields(SearchOptions)}


def _offered() -> Iterator[tuple[str, Option]]:
    """Return the options of a request that clients may set, by name."""
    for option in describe(TranslateRequest):
        name = option.name.split(".")[-1]
        if name not in _NOT_OFFERED:
            yield name, option


_OFFERED = dict(_offered())


def _without_surrogates(text: str) -> str:
    """Raise a ValueError for a text that has half of a pair of surrogates."""
    try:
        return text.encode().decode()
    except UnicodeEncodeError:
        raise ValueError("has half of a surrogate pair; send well-formed Unicode") from None


def _few_fields(given: Any) -> Any:
    """Raise a ValueError for more fields than any request has: each one would be an error."""
    if isinstance(given, dict) and len(given) > _MAX_FIELDS:
        raise ValueError(f"has {len(given):,} fields; remove those that are not known")
    return given


def _of_texts(given: Any) -> Any:
    """Raise a ValueError at the first item of a list that is no text: a million errors of their own
    took 10 s and a gigabyte."""
    if isinstance(given, list):
        for number, item in enumerate(given):
            if not isinstance(item, str):
                raise ValueError(f"item {number:,} of the list must be a text")
    return given


Text = Annotated[str, AfterValidator(_without_surrogates)]
TextList = Annotated[list[Text], BeforeValidator(_of_texts)]
Language = Annotated[Text, Field(max_length=40)]
_TermText = Annotated[Text, Field(max_length=_MAX_TERM)]
TermRow = Annotated[list[_TermText], FailFast(), Field(min_length=2, max_length=_MAX_FORMS)]


class Simple(BaseModel):
    """A request as LibreTranslate accepts it."""

    q: Text | TextList
    source: Language = "auto"
    target: Language = ""
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, le=15)
    api_key: str | None = None
    glossary: Annotated[list[TermRow], FailFast()] = Field(
        [],
        max_length=_MAX_TERMS,
        description="not in LibreTranslate: rows of a source term and its target forms",
    )

    def to_request(self) -> TranslateRequest:
        """Return what these fields ask of a translation."""
        nbest = self.alternatives + 1
        options = SearchOptions(beam=max(SearchOptions.beam, nbest), nbest=nbest)
        return TranslateRequest(options, glossary=_glossary(self.glossary))


class Upload(BaseModel):
    """A document to translate."""

    file: UploadFile
    source: Language
    target: Language
    api_key: str | None = None
    glossary: Text = Field(
        "",
        max_length=_MAX_TERM_TEXT,
        description="lines of a source term and its target forms, separated by tabs",
    )

    def terms(self) -> Glossary | None:
        """Return the terms that were sent with the document."""
        rows = [line.split("\t") for line in self.glossary.splitlines() if line.strip()]
        if len(rows) > _MAX_TERMS or any(not 2 <= len(row) <= _MAX_FORMS for row in rows):
            raise InputError(
                f"the glossary has {len(rows):,} lines; send at most {_MAX_TERMS:,}, each with a "
                f"source term, a tab and up to {_MAX_FORMS - 1} target forms separated by tabs"
            )
        return _glossary(rows)


class Texts(BaseModel, extra="forbid"):
    """Texts and what can be asked of their translation; each route uses what it needs."""

    text: Text | TextList
    source: Language = "auto"
    target: Language
    count: int = Field(5, ge=1, le=_MAX_BEAM, description="alternatives to return")
    correction: Text = Field(
        "", max_length=_MAX_CORRECTION, description="the translation as a reader would have it"
    )

    _check_fields = model_validator(mode="before")(_few_fields)

    def to_request(self) -> TranslateRequest:
        """Return what these fields ask of a translation."""
        given = {name: getattr(self, name) for name in _OFFERED if name not in _SEARCH}
        glossary = _glossary(given.pop("glossary"))
        return TranslateRequest(self.search_options(), glossary=glossary, **given)

    def search_options(self, sample: bool | None = None) -> SearchOptions:
        """Return the options of the search, or of sampling; `sample` overrides that field."""
        given = {name: getattr(self, name) for name in _OFFERED if name in _SEARCH}
        beam = given["beam"] or max(SearchOptions.beam, given["nbest"])
        if sample is None:
            sample = given["sample"]
        return SearchOptions(**(given | {"beam": beam, "sample": sample}))


def _glossary(rows: Sequence[Sequence[str]]) -> Glossary | None:
    """Return the terms of rows of a source term and its target forms; None if there are none."""
    terms = [Term(source, tuple(forms)) for source, *forms in rows]
    return Glossary(terms) if terms else None


def _field(name: str, option: Option) -> tuple[Any, Any]:
    """Return the type and the field of an option, with the service's own limits."""
    if Glossary in get_args(option.hint):
        rows = f"{option.help}: rows of a source term and its target forms"
        return Annotated[list[TermRow], FailFast()], Field(
            [], max_length=_MAX_TERMS, description=rows
        )
    if option.hint is str:
        return Text, Field(option.default, max_length=MAX_LOOK, description=option.help)
    limits = _limits(option.range) | _OWN_LIMITS.get(name, {})
    if name == "beam":
        # Omitted, it is as wide as `nbest` needs.
        return int | None, Field(None, description=option.help, **limits)
    return option.hint, Field(option.default, description=option.help, **limits)


def _limits(allowed: Range | None) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    if allowed is not None and allowed.least > -math.inf:
        limits["ge"] = allowed.least
    if allowed is not None and allowed.above > -math.inf:
        limits["gt"] = allowed.above
    if allowed is not None and allowed.most < math.inf:
        limits["le"] = allowed.most
    return limits


if TYPE_CHECKING:

    class Full(Texts):
        """What routes themselves read of the fields that are made below."""

        prefix: str

else:
    Full = create_model(
        "Full",
        __base__=Texts,
        __doc__=Texts.__doc__,
        **{name: _field(name, option) for name, option in _OFFERED.items()},
    )
