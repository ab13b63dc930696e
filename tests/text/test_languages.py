"""Codes and names of languages."""

from __future__ import annotations

import string

import pytest

from dragoman.text.languages import _tables, canonical, is_known, name_of


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("tw", "Twi"),
        ("twi", "Twi"),
        ("TWI", "Twi"),
        ("de", "German"),
        ("deu", "German"),
        ("ger", "German"),
        ("yo", "Yoruba"),
        ("eus", "Basque"),
        ("vi", "Vietnamese"),
        ("gaa", "Ga"),
        ("zz", "zz"),
        ("", ""),
    ],
)
def test_names(code: str, name: str) -> None:
    assert name_of(code) == name


def test_codes_that_mean_the_same() -> None:
    assert canonical("twi") == canonical("tw") == "tw"
    assert canonical("por-BR") == canonical("pt-br") == "pt-br"
    assert canonical("xx") == "xx"
    assert is_known("fra")
    assert not is_known("zz")


def test_the_table_is_sound() -> None:
    """No code stands for two languages, and every language of two letters has one of three."""
    names, same = _tables()
    assert not set(names) & set(same)
    two = [code for code in names if len(code) == 2]
    assert len(two) == 183  # ISO 639-1 without the code sh, which is withdrawn
    for code in two:
        assert any(three for three, of in same.items() if of == code and len(three) == 3)
    for code in [*names, *same]:
        assert set(code) <= set(string.ascii_lowercase)
        assert len(code) in (2, 3)
    assert len(set(names.values())) == len(names)
