"""The search options refuse what makes no sense, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import OptionError


def test_the_defaults_are_the_papers() -> None:
    assert SearchOptions() == SearchOptions(beam=4, alpha=0.6, nbest=1, max_extra=50)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"beam": 0}, "beam is 0; it must be at least 1"),
        ({"alpha": -0.1}, "alpha is -0.1; it must be at least 0"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"beam": 4, "nbest": 5}, "nbest is 5; it must be at most the beam, which is 4"),
        ({"nbest": 0}, "nbest is 0"),
        ({"seed": 2**63}, "seed is 9223372036854775808; it must be at least"),
        ({"alpha": float("inf")}, "alpha is inf"),
        ({"max_extra": 0}, "max_extra is 0; it must be at least 1"),
        ({"min_length": 0}, "min_length is 0; it must be at least 1"),
        (
            {"min_length": 9, "max_length": 8},
            "min_length is 9 and max_length 8; max_length must be 0 or at least min_length",
        ),
        ({"max_length": -1}, "max_length is -1; it must be at least 0"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram is -1; it must be at least 0"),
        ({"coverage": -0.1}, "coverage is -0.1; it must be at least 0"),
        ({"coverage": float("nan")}, "coverage is nan"),
        (
            {"sample": True, "temperature": 0.0},
            "temperature is 0.0; it must be above 0",
        ),
        ({"sample": True, "temperature": float("nan")}, "temperature is nan"),
        ({"sample": True, "top_k": -1}, "top_k is -1"),
        ({"sample": True, "top_p": 0.0}, "top_p is 0.0; it must be above 0 and at most 1"),
        ({"sample": True, "top_p": 1.1}, "top_p is 1.1;"),
        ({"temperature": 0.7}, "temperature, top_k and top_p apply to sampling; add sample"),
        ({"top_k": 5}, "add sample or omit them"),
        ({"top_p": 0.9}, "add sample or omit them"),
        ({"sample": True, "branch": True}, "sample and branch exclude each other"),
        ({"sample": True, "coverage": 0.2}, "coverage ranks the outputs of a search"),
        ({"branch": True, "coverage": 0.2}, "coverage ranks the outputs of a search"),
    ],
)
def test_options_are_checked(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message) as error:
        SearchOptions(**wanted)
    assert "\n" not in str(error.value)
    assert ". " not in str(error.value)  # one sentence


@pytest.mark.parametrize("way", ["sample", "branch"])
def test_each_draw_and_each_branch_is_a_hypothesis_of_its_own(way: str) -> None:
    assert SearchOptions(nbest=9, **{way: True}).hypotheses == 9
    assert SearchOptions(beam=4, **{way: True}).hypotheses == 1
