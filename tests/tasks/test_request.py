"""One request: what it refuses, how a call makes it, and that every keyword is one of its
fields."""

from __future__ import annotations

import pickle
from dataclasses import fields
from typing import Any

import pytest

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import OptionError
from dragoman.tasks.request import RequestFields, TranslateRequest, make_request
from dragoman.text.glossary import Glossary, Term


def glossary(form: str) -> Glossary:
    return Glossary([Term("one", (form,))])


def test_keywords_are_the_fields() -> None:
    names = [field.name for field in fields(TranslateRequest)]
    assert list(RequestFields.__annotations__) == names


def test_a_call_names_a_request_its_options_or_its_fields() -> None:
    wide = SearchOptions(beam=8)
    assert make_request(None, {}) == TranslateRequest()
    assert make_request(wide, {}) == TranslateRequest(wide)
    assert make_request(None, {"options": wide}) == TranslateRequest(wide)
    assert make_request(None, {"options": None, "split": False}) == TranslateRequest(split=False)
    whole = TranslateRequest(wide, prefix="eins", align=True)
    assert make_request(whole, {}) == whole
    changed = make_request(whole, {"prefix": "", "careful": True})
    assert changed == TranslateRequest(wide, align=True, careful=True)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"options": {"beam": 3}}, "options must be SearchOptions, not {'beam': 3}"),
        ({"glossary": "terms.tsv"}, "glossary must be a Glossary, not 'terms.tsv'; Glossary.load"),
    ],
)
def test_what_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError) as caught:
        TranslateRequest(**values)
    assert str(caught.value).startswith(sentence)


def test_equal_requests_are_one_key() -> None:
    """Whoever batches requests groups by them; two glossaries with the same terms are equal."""
    first = TranslateRequest(glossary=glossary("eins"))
    again = TranslateRequest(glossary=glossary("eins"))
    other = TranslateRequest(glossary=glossary("ein"))
    assert first == again != other
    assert len({first, again, other, TranslateRequest()}) == 3


def test_a_request_travels_to_another_process() -> None:
    request = TranslateRequest(SearchOptions(beam=2), "eins", glossary("eins"))
    hash(request)
    assert pickle.loads(pickle.dumps(request)) == request
