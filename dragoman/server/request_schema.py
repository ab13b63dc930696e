"""What the service's routes accept. Knows JSON types and the service's own limits; the options,
their names, types, defaults, help and limits come from `TranslateRequest`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, get_args

from fastapi import UploadFile
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
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
MAX_CORRECTION = 20_000
MAX_REVIEWED = 1_000  # corrections that are sent at once
_MAX_BEAM = 16
MAX_TERMS = 1_000
MAX_TERM_TEXT = 100_000  # characters of terms that are sent with a document
MAX_FORMS = 20  # of a term, its source counted
_MAX_TERM = 200  # characters of a term or a form
_MAX_CONTEXT = 10  # sentences that are read along
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
    "context": {"le": _MAX_CONTEXT},
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


def example(**fields: Any) -> ConfigDict:
    """Return the settings of a body whose documentation has this example."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


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
TermRow = Annotated[list[_TermText], FailFast(), Field(min_length=2, max_length=MAX_FORMS)]
_ReviewedText = Annotated[Text, Field(max_length=MAX_CORRECTION, pattern=r"\S")]
Reviewed = Annotated[list[_ReviewedText], FailFast(), Field(min_length=2, max_length=2)]
TermRows = Annotated[list[TermRow], FailFast(), Field(max_length=MAX_TERMS)]


class Upload(BaseModel):
    """A document to translate."""

    file: UploadFile = Field(description="the document; the ending of its name tells its kind")
    source: Language = Field(description="language of the document; auto detects it")
    target: Language = Field(description="language to translate into")
    api_key: str | None = Field(None, description="a key, where the server asks for one")
    glossary: Text = Field(
        "",
        max_length=MAX_TERM_TEXT,
        description="lines of a source term and its target forms, separated by tabs",
    )

    context: int = Field(0, ge=0, le=_MAX_CONTEXT, description=_OFFERED["context"].help)
    tone: Annotated[Text, Field(max_length=40)] = Field("", description=_OFFERED["tone"].help)
    variant: Annotated[Text, Field(max_length=40)] = Field("", description=_OFFERED["variant"].help)

    model_config = example(file="@report.docx", source="en", target="de")

    def to_request(self) -> TranslateRequest:
        """Return what these fields ask of a translation."""
        return TranslateRequest(
            glossary=self.terms(), context=self.context, tone=self.tone, variant=self.variant
        )

    def terms(self) -> Glossary | None:
        """Return the terms that were sent with the document."""
        rows = [line.split("\t") for line in self.glossary.splitlines() if line.strip()]
        if len(rows) > MAX_TERMS or any(not 2 <= len(row) <= MAX_FORMS for row in rows):
            raise InputError(
                f"the glossary has {len(rows):,} lines; send at most {MAX_TERMS:,}, each with a "
                f"source term, a tab and up to {MAX_FORMS - 1} target forms separated by tabs"
            )
        return glossary_of(rows)


class Texts(BaseModel, extra="forbid"):
    """Texts and their languages: what every route of texts asks for."""

    text: Text | TextList = Field(description="one text, or a list of texts")
    source: Language = Field("auto", description="language of the texts; auto detects it")
    target: Language = Field(description="language to translate into")

    _check_fields = model_validator(mode="before")(_few_fields)


class _Translated(Texts):
    """Texts and all that can be asked of their translation."""

    model_config = example(text=["Good morning.", "Thank you."], source="en", target="de", nbest=2)

    def to_request(self) -> TranslateRequest:
        """Return what these fields ask of a translation."""
        given = {name: getattr(self, name) for name in _OFFERED if name not in _SEARCH}
        glossary = glossary_of(given.pop("glossary"))
        return TranslateRequest(_search_options(self), glossary=glossary, **given)


class _Inspected(Texts):
    """A sentence, and how to search for its translation."""

    correction: Text = Field(
        "", max_length=MAX_LOOK, description="a translation to look at in place of the one found"
    )

    model_config = example(text="Good morning.", source="en", target="de", beam=4)

    def search_options(self) -> SearchOptions:
        """Return the options of the search, or of sampling where a temperature was given."""
        return _search_options(self, sample="temperature" in self.model_fields_set)


class AlternativesBody(Texts):
    """A sentence, and how the translations of it begin."""

    prefix: Text = Field(
        _OFFERED["prefix"].default, max_length=MAX_LOOK, description=_OFFERED["prefix"].help
    )
    count: int = Field(5, ge=1, le=_MAX_BEAM, description="alternatives to return")

    model_config = example(text="Good morning.", source="en", target="de", prefix="Einen", count=3)


class CorrectionBody(Texts):
    """A text, and its translation as a reader would have it."""

    correction: Text = Field(
        "", max_length=MAX_CORRECTION, description="the translation as a reader would have it"
    )

    model_config = example(
        text="Good morning.", source="en", target="de", correction="Guten Morgen!"
    )


class ReviewedBody(BaseModel):
    """Texts with their translations as a reviewer left them."""

    source: Language = Field(description="language of the texts")
    target: Language = Field(description="language of the translations")
    api_key: str | None = Field(None, description="a key, where the server asks for one")
    pairs: Annotated[list[Reviewed], FailFast()] = Field(
        min_length=1,
        max_length=MAX_REVIEWED,
        description="lists of two: a text, and its translation",
    )

    model_config = example(source="en", target="de", pairs=[["Good morning.", "Guten Morgen!"]])


def _search_options(body: Texts, sample: bool | None = None) -> SearchOptions:
    """Return the options of a search, or of sampling; `sample` overrides that field."""
    given = {name: getattr(body, name) for name in _OFFERED if name in _SEARCH}
    beam = given["beam"] or max(SearchOptions.beam, given["nbest"])
    if sample is None:
        sample = given["sample"]
    return SearchOptions(**(given | {"beam": beam, "sample": sample}))


def glossary_of(rows: Sequence[Sequence[str]]) -> Glossary | None:
    """Return the terms of rows of a source term and its target forms; None if there are none."""
    terms = [Term(source, tuple(forms)) for source, *forms in rows]
    return Glossary(terms) if terms else None


def _field(name: str, option: Option) -> tuple[Any, Any]:
    """Return the type and the field of an option, with the service's own limits."""
    if Glossary in get_args(option.hint):
        rows = f"{option.help}: rows of a source term and its target forms"
        return TermRows, Field([], description=rows)
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


def _with_options(base: type[BaseModel], name: str, names: Iterable[str]) -> Any:
    """Return a body with a field for each of these options of a request."""
    fields: dict[str, Any] = {option: _field(option, _OFFERED[option]) for option in names}
    return create_model(name, __base__=base, __doc__=base.__doc__, **fields)


if TYPE_CHECKING:

    class TranslateBody(_Translated):
        """What routes themselves read of the fields that are made below."""

        glossary: list[list[str]]

    class InspectBody(_Inspected):
        """What routes themselves read of the fields that are made below."""

else:
    TranslateBody = _with_options(_Translated, "TranslateBody", _OFFERED)
    InspectBody = _with_options(
        _Inspected, "InspectBody", [name for name in _OFFERED if name in _SEARCH]
    )
