"""The service's schema against the request that it is made from."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from dragoman.config import describe
from dragoman.decoding.search_options import SearchOptions
from dragoman.server.request_schema import Full
from dragoman.tasks.request import TranslateRequest
from dragoman.text.glossary import Glossary, Term

BODY = {"text": "one", "target": "de"}
NUMBERS = [
    option
    for option in describe(SearchOptions)
    if option.range is not None and option.name in Full.model_fields
]


def test_defaults_are_those_of_a_request() -> None:
    assert Full.model_validate(BODY).to_request() == TranslateRequest()


def test_every_field_reaches_the_request() -> None:
    given = {
        "beam": 7,
        "alpha": 0.3,
        "nbest": 2,
        "sample": True,
        "temperature": 0.5,
        "top_k": 9,
        "top_p": 0.8,
        "seed": 5,
        "prefix": "ein",
        "careful": True,
        "glossary": [["one", "eins", "einer"]],
        "align": True,
    }
    options = SearchOptions(7, 0.3, 2, sample=True, temperature=0.5, top_k=9, top_p=0.8, seed=5)
    glossary = Glossary([Term("one", ("eins", "einer"))])
    expected = TranslateRequest(options, "ein", glossary, align=True, careful=True)
    assert Full.model_validate(BODY | given).to_request() == expected
    own = {"text", "source", "target", "count", "correction"}
    assert set(Full.model_fields) == set(given) | own


def test_a_beam_that_is_not_named_is_as_wide_as_needed() -> None:
    assert Full.model_validate(BODY | {"nbest": 9}).to_request().options.beam == 9
    assert Full.model_validate(BODY | {"nbest": 2}).to_request().options.beam == 4


@pytest.mark.parametrize("option", NUMBERS, ids=lambda option: option.name)
def test_what_a_request_refuses_is_refused_with_its_name(option) -> None:  # type: ignore[no-untyped-def]
    assert option.range is not None
    beyond = [option.range.least - 1, option.range.above, option.range.most + 1]
    for value in beyond:
        if math.isfinite(value):
            with pytest.raises(ValidationError) as caught:
                Full.model_validate(BODY | {option.name: type(option.default)(value)})
            assert caught.value.errors()[0]["loc"][0] == option.name


def test_the_document_has_the_help_of_the_options() -> None:
    properties = Full.model_json_schema()["properties"]
    for option in describe(SearchOptions):
        if option.name in properties:
            assert properties[option.name]["description"] == option.help
