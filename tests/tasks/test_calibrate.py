"""Confidence: the rising line, its honest error, and what is refused."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InputError, ModelFolderError
from dragoman.tasks.calibrate import Calibration, calibrate, certainty, fit


@dataclass(frozen=True)
class Spoken:
    text: str
    token_probabilities: tuple[float, ...]


def stairs() -> Calibration:
    """Five bins of twenty sentences; the first two fall, and so do the next two."""
    return fit(
        np.repeat([0.1, 0.2, 0.3, 0.4, 0.5], 20).tolist(),
        np.repeat([0.2, 0.1, 0.5, 0.4, 0.9], 20).tolist(),
    )


def test_certainty_is_the_mean_probability() -> None:
    assert certainty([math.log(0.5), 0.0]) == pytest.approx(0.75)
    assert certainty([math.log(0.5), 0.0, -math.inf, math.nan]) == pytest.approx(0.375)
    assert certainty([1e-6]) == 1.0  # rounding may lift a log-probability above 0
    assert certainty([]) == 0.0


def test_what_falls_is_pooled() -> None:
    assert stairs().knots == pytest.approx((0, 0.1, 0.2, 0.3, 0.4, 0.5))
    assert stairs().values == pytest.approx((0, 0.15, 0.15, 0.45, 0.45, 0.9))


def test_pools_are_weighed_and_fall_together_all_the_way_back() -> None:
    """100 sentences in five bins; as many as are alike stay in one bin, so the first has 40 of
    them."""
    found = fit(
        np.repeat([0.1, 0.3, 0.4, 0.5], [40, 20, 20, 20]).tolist(),
        np.repeat([0.2, 0.6, 0.5, 0.1], [40, 20, 20, 20]).tolist(),
    )
    assert found.knots == pytest.approx((0, 0.1, 0.3, 0.4, 0.5))
    assert found.values == pytest.approx((0, 0.2, 0.4, 0.4, 0.4))
    falling = fit(
        np.repeat([0.1, 0.3, 0.5], [40, 20, 20]).tolist(),
        np.repeat([0.9, 0.6, 0.3], [40, 20, 20]).tolist(),
    )
    assert falling.values == pytest.approx((0, *[(40 * 0.9 + 20 * 0.6 + 20 * 0.3) / 80] * 3))


@pytest.mark.parametrize(
    ("sure", "expected"),
    [(0.0, 0.0), (0.05, 0.075), (0.1, 0.15), (0.25, 0.3), (0.5, 0.9), (1.0, 0.9)],
)
def test_confidence_follows_the_line_between_the_knots(sure: float, expected: float) -> None:
    assert stairs().confidence([math.log(sure) if sure else -math.inf] * 3) == pytest.approx(
        expected
    )


def test_error_and_correlation_are_measured_on_sentences_not_learnt_from() -> None:
    """Every fifth sentence is perfect: those who learn from the others expect 0 of it, the rest
    expect a quarter."""
    found = fit([0.5] * 100, [1.0, 0.0, 0.0, 0.0, 0.0] * 20)
    assert found.error == pytest.approx(0.2 * 1 + 0.8 * 0.25)
    assert found.correlation == pytest.approx(-1)
    assert found.confidence([math.log(0.5)]) == pytest.approx(0.2)


def test_a_curve_is_found_under_noise() -> None:
    random = np.random.default_rng(2)
    sure = random.random(2000)
    found = fit(sure.tolist(), np.clip(sure**2 + random.normal(0, 0.1, 2000), 0, 1).tolist())
    assert found.error < 0.02
    assert found.correlation > 0.9
    assert found.sentences == 2000
    for x in (0.3, 0.5, 0.7, 0.9):
        assert found.confidence([math.log(x)]) == pytest.approx(x**2, abs=0.03)


@pytest.mark.parametrize("sure", [0.0, 0.3, 1.0])
def test_constant_input_gives_the_mean(sure: float) -> None:
    found = fit([sure] * 70, [0.4] * 70)
    assert found.confidence([math.log(sure) if sure else -math.inf]) == pytest.approx(0.4)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.correlation == 0


def test_certainties_that_rounding_parts_are_one() -> None:
    found = fit([0.3, 0.1 + 0.2] * 30, [0.2, 0.6] * 30)
    assert found.knots == pytest.approx((0, 0.3))
    assert found.values == pytest.approx((0, 0.4))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=50, max_size=700))
def test_any_line_rises_is_short_and_reads_back(pairs: list[tuple[float, float]]) -> None:
    found = fit([x for x, _ in pairs], [y for _, y in pairs])
    assert len(found.knots) <= 21
    assert (np.diff(found.values) >= 0).all()
    assert Calibration.from_dict(json.loads(json.dumps(found.as_dict()))) == found


def test_calibrate_scores_translations_against_references() -> None:
    good = [
        (f"source {i:02}", Spoken(f"das Ziel {i:02}", (0.9, 0.9)), f"das Ziel {i:02}")
        for i in range(40)
    ]
    bad = [(f"source {i:02}", Spoken("~", (0.2, 0.0)), f"das Ziel {i:02}") for i in range(40)]
    empty = [("", Spoken("", ()), "nothing"), ("nothing", Spoken("x", (1.0,)), " ")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = calibrate(*zip(*good, *bad, *empty, strict=True))
    assert found.sentences == 80
    assert found.confidence([math.log(0.9)]) == pytest.approx(1)
    assert found.confidence([math.log(0.1)]) == pytest.approx(0)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.correlation == pytest.approx(1)
    assert found.ratio == pytest.approx((math.log(11 / 9), 0))
    assert found.signature.startswith("nrefs:1|case:mixed|")


def test_ratio_is_of_the_references() -> None:
    rows = [("ab", Spoken("x", (0.5,)), "abcd"), ("abcd", Spoken("x", (0.5,)), "abcd")] * 25
    assert calibrate(*zip(*rows, strict=True)).ratio == pytest.approx(
        (math.log(2) / 2, math.log(2) / 2)
    )


def test_too_little_or_uneven_input_is_refused() -> None:
    with pytest.raises(
        InputError,
        match="there are 49 sentences to calibrate on; a validation set of at least 50 is needed",
    ):
        fit([0.5] * 49, [0.5] * 49)
    with pytest.raises(InputError, match="2 sources, 1 translations and 2 references"):
        calibrate(["a", "b"], [Spoken("a", (1.0,))], ["a", "b"])


def damaged(**changes: Any) -> dict[str, Any]:
    return {**stairs().as_dict(), **changes}


@pytest.mark.parametrize(
    "values",
    [
        damaged(knots=[0.0, 0.1, 0.2, 0.2, 0.4, 0.5]),
        damaged(values=[0.0, 0.1, 0.2, 0.5, 0.4, 0.9]),
        damaged(values=[0.0, 0.1, 0.2]),
        damaged(values=[0.0, 0.1, 0.2, 0.3, 0.4, math.nan]),
        damaged(values=[0.0, 0.1, 0.2, 0.3, 0.4, 1.5]),
        damaged(values=[0.0, 0.1, 0.2, 0.3, 0.4, "much"]),
        damaged(knots=[], values=[]),
        damaged(knots=np.linspace(0, 1, 1001).tolist(), values=np.linspace(0, 1, 1001).tolist()),
        damaged(knots=0.5),
        damaged(ratio=[0.1]),
        damaged(ratio=[0.1, -1.0]),
        damaged(error=None),
        damaged(error=math.inf),
        damaged(sentences=math.inf),
        damaged(surprise=1),
        {"knots": [0.0, 1.0], "values": [0.0, 1.0]},
        [],
        None,
    ],
)
def test_a_damaged_table_is_refused(values: Any) -> None:
    with pytest.raises(ModelFolderError, match=r"is damaged; run `dragoman calibrate` again"):
        Calibration.from_dict(values)
