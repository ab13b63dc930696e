"""The service's schema against the request that it is made from."""

from __future__ import annotations

import math

import pytest
from pydantic import BaseModel, ValidationError

from dragoman.config import describe
from dragoman.decoding.search_options import SearchOptions
from dragoman.server.request_schema import (
    AlternativesBody,
    CorrectionBody,
    InspectBody,
    TranslateBody,
)
from dragoman.tasks.request import TranslateRequest
from dragoman.text.glossary import Glossary, Term

BODY = {"text": "one", "target": "de"}
NUMBERS = [
    option
    for option in describe(SearchOptions)
    if option.range is not None and option.name in TranslateBody.model_fields
]


def test_defaults_are_those_of_a_request() -> None:
    assert TranslateBody.model_validate(BODY).to_request() == TranslateRequest()


def test_every_field_reaches_the_request() -> None:
    given = {
        "beam": 7,
        "alpha": 0.3,
        "nbest": 2,
        "min_length": 2,
        "max_length": 30,
        "no_repeat_ngram": 4,
        "coverage": 0.0,
        "sample": True,
        "temperature": 0.5,
        "top_k": 9,
        "top_p": 0.8,
        "seed": 5,
        "prefix": "ein",
        "careful": True,
        "glossary": [["one", "eins", "einer"]],
        "align": True,
        "split": False,
        "context": 2,
        "tone": "formal",
        "variant": "de-AT",
        "protect": False,
    }
    drawn = {"sample": True, "temperature": 0.5, "top_k": 9, "top_p": 0.8, "seed": 5}
    options = SearchOptions(7, 0.3, 2, 2, 30, no_repeat_ngram=4, **drawn)  # type: ignore[arg-type]
    glossary = Glossary([Term("one", ("eins", "einer"))])
    expected = TranslateRequest(
        options,
        "ein",
        glossary,
        align=True,
        careful=True,
        split=False,
        context=2,
        tone="formal",
        variant="de-AT",
        protect=False,
    )
    assert TranslateBody.model_validate(BODY | given).to_request() == expected
    own = {"text", "source", "target"}
    assert set(TranslateBody.model_fields) == set(given) | own


def test_every_option_of_a_request_is_a_field() -> None:
    names = {option.name.split(".")[-1] for option in describe(TranslateRequest)}
    assert names - set(TranslateBody.model_fields) == {"max_extra", "branch"}


# What clients of the first release send: names, kinds, limits and defaults.
FIRST_RELEASE: dict[str, dict[str, object]] = {
    "alpha": {"type": "number", "minimum": 0, "maximum": 10, "default": 0.6},
    "nbest": {"type": "integer", "minimum": 1, "maximum": 16, "default": 1},
    "sample": {"type": "boolean", "default": False},
    "temperature": {"type": "number", "exclusiveMinimum": 0, "maximum": 10, "default": 1.0},
    "top_k": {"type": "integer", "minimum": 0, "maximum": 1_000_000, "default": 0},
    "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1.0},
    "prefix": {"type": "string", "maxLength": 2000, "default": ""},
    "careful": {"type": "boolean", "default": False},
    "align": {"type": "boolean", "default": False},
    "count": {"type": "integer", "minimum": 1, "maximum": 16, "default": 5},
    "correction": {"type": "string", "maxLength": 20_000, "default": ""},
    "source": {"type": "string", "maxLength": 40, "default": "auto"},
    "target": {"type": "string", "maxLength": 40},
}


@pytest.mark.parametrize("name", FIRST_RELEASE)
def test_what_was_once_accepted_is_accepted(name: str) -> None:
    others: dict[str, type[BaseModel]] = {"count": AlternativesBody, "correction": CorrectionBody}
    route = others.get(name, TranslateBody)
    found = route.model_json_schema()["properties"][name]
    assert {key: found.get(key) for key in FIRST_RELEASE[name]} == FIRST_RELEASE[name]


def test_each_route_has_its_own_fields() -> None:
    texts = {"text", "source", "target"}
    search = {option.name for option in describe(SearchOptions)} - {"max_extra", "branch"}
    assert set(InspectBody.model_fields) == texts | search | {"correction"}
    assert set(AlternativesBody.model_fields) == texts | {"prefix", "count"}
    assert set(CorrectionBody.model_fields) == texts | {"correction"}
    with pytest.raises(ValidationError):
        CorrectionBody.model_validate(BODY | {"beam": 4})
    drawn = InspectBody.model_validate(BODY | {"temperature": 0.5}).search_options()
    assert (drawn.sample, drawn.temperature) == (True, 0.5)
    assert InspectBody.model_validate(BODY).search_options() == SearchOptions()


def test_a_beam_that_is_not_named_is_as_wide_as_needed() -> None:
    assert TranslateBody.model_validate(BODY | {"nbest": 9}).to_request().options.beam == 9
    assert TranslateBody.model_validate(BODY | {"nbest": 2}).to_request().options.beam == 4


@pytest.mark.parametrize("option", NUMBERS, ids=lambda option: option.name)
def test_what_a_request_refuses_is_refused_with_its_name(option) -> None:  # type: ignore[no-untyped-def]
    assert option.range is not None
    beyond = [option.range.least - 1, option.range.above, option.range.most + 1]
    for value in beyond:
        if math.isfinite(value):
            with pytest.raises(ValidationError) as caught:
                TranslateBody.model_validate(BODY | {option.name: type(option.default)(value)})
            assert caught.value.errors()[0]["loc"][0] == option.name


def test_the_document_has_the_help_of_the_options() -> None:
    properties = TranslateBody.model_json_schema()["properties"]
    for option in describe(SearchOptions):
        if option.name in properties:
            assert properties[option.name]["description"] == option.help
