"""The search options refuse what makes no sense, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.decoding.options import SearchOptions
from dragoman.errors import OptionError


def test_the_defaults_are_the_papers() -> None:
    assert SearchOptions() == SearchOptions(beam=4, alpha=0.6, nbest=1, max_extra=50)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"beam": 0}, "beam is 0; it must be at least 1"),
        ({"alpha": -0.1}, "alpha is -0.1; it must be 0"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"beam": 4, "nbest": 5}, "nbest is 5; it must lie between 1 and the beam, 4"),
        ({"nbest": 0}, "nbest is 0"),
        ({"max_extra": 0}, "max_extra is 0; it must be at least 1"),
    ],
)
def test_options_are_checked(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        SearchOptions(**wanted)
