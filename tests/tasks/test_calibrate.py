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
from dragoman.tasks.calibrate import calibrate, fit
from dragoman.tasks.calibration import Calibration
from dragoman.tasks.logistic import fit_logistic
from dragoman.tasks.signs import SIGNS, Evidence, certainty, signs


@dataclass(frozen=True)
class Spoken:
    text: str
    token_probabilities: tuple[float, ...]
    tokens: tuple[str, ...] = ()


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
    assert stairs().confidence(
        Evidence([math.log(sure) if sure else -math.inf] * 3)
    ) == pytest.approx(expected)


def test_error_and_correlation_are_measured_on_sentences_not_learnt_from() -> None:
    """Every fifth sentence is perfect: those who learn from the others expect 0 of it, the rest
    expect a quarter."""
    found = fit([0.5] * 100, [1.0, 0.0, 0.0, 0.0, 0.0] * 20)
    assert found.error == pytest.approx(0.2 * 1 + 0.8 * 0.25)
    assert found.correlation == pytest.approx(-1)
    assert found.confidence(Evidence([math.log(0.5)])) == pytest.approx(0.2)


def test_a_curve_is_found_under_noise() -> None:
    random = np.random.default_rng(2)
    sure = random.random(2000)
    found = fit(sure.tolist(), np.clip(sure**2 + random.normal(0, 0.1, 2000), 0, 1).tolist())
    assert found.error < 0.02
    assert found.correlation > 0.9
    assert found.sentences == 2000
    for x in (0.3, 0.5, 0.7, 0.9):
        assert found.confidence(Evidence([math.log(x)])) == pytest.approx(x**2, abs=0.03)


@pytest.mark.parametrize("sure", [0.0, 0.3, 1.0])
def test_constant_input_gives_the_mean(sure: float) -> None:
    found = fit([sure] * 70, [0.4] * 70)
    assert found.confidence(Evidence([math.log(sure) if sure else -math.inf])) == pytest.approx(0.4)
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
    sure = Evidence([math.log(0.9)] * 2, "source 07", "das Ziel 07")
    unsure = Evidence([math.log(0.2), -math.inf], "source 07", "~")
    assert found.confidence(sure) == pytest.approx(1, abs=0.05)
    assert found.confidence(unsure) == pytest.approx(0, abs=0.05)
    assert found.confidence(sure, has_serious_flag=True) == pytest.approx(found.flagged)
    assert found.error == pytest.approx(0, abs=0.05)
    assert found.correlation == pytest.approx(1, abs=0.01)
    assert found.version == 3
    assert Calibration.from_dict(json.loads(json.dumps(found.as_dict()))) == found
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


def spoken(kind: int, count: int) -> list[tuple[str, Spoken, str]]:
    """Translations whose quality follows from the weakest token and the copied words alone, while
    the mean probability says nothing: texts of three kinds, of different lengths."""
    draw = np.random.default_rng(kind)
    rows = []
    for _ in range(count):
        length = int(draw.integers(8, 12 + 4 * kind))
        words = [f"w{draw.integers(10**6)}" for _ in range(length)]
        wrong = int(draw.integers(0, length + 1))
        target = [f"x{word}" for word in words[wrong:]] + words[:wrong]
        weakest = 0.9 - 0.8 * wrong / length
        others = (0.8 * (length + 1) - weakest) / length
        probabilities = (*[min(1.0, others)] * length, weakest)
        reference = " ".join(f"x{word}" for word in words)
        rows.append((" ".join(words), Spoken(" ".join(target), probabilities), reference))
    return rows


def test_signs_beside_certainty_are_learnt_and_carry_to_other_text() -> None:
    rows = [row for kind in range(3) for row in spoken(kind, 80)]
    names = [f"kind {kind}" for kind in range(3) for _ in range(80)]
    sources, translations, references = zip(*rows, strict=True)
    found = calibrate(sources, translations, references, names)
    assert found.texts == "kind 0\nkind 1\nkind 2"
    assert found.text_sentences == (80, 80, 80)
    assert min(found.text_correlations) > 0.8
    assert max(found.text_errors) < 0.1
    one_sign = fit([certainty(np.log(row[1].token_probabilities)) for row in rows], [0.5] * 240)
    assert abs(one_sign.correlation) < 0.3
    other = spoken(7, 100)  # a kind that nothing was learnt from
    values = [
        found.confidence(Evidence(np.log(one.token_probabilities).tolist(), source, one.text))
        for source, one, _ in other
    ]
    wrong = [one.text.split()[0].startswith("x") for _, one, _ in other]
    assert np.mean(np.array(values)[wrong]) > np.mean(np.array(values)[~np.array(wrong)])
    lines = found.lines()
    assert "  kind 1: 80 sentences" in lines[3]


def test_errors_of_several_kinds_are_of_kinds_not_learnt_from() -> None:
    """Two kinds that contradict each other: what one teaches is wrong for the other."""
    draw = np.random.default_rng(1)
    rows, names = [], []
    for kind in range(2):
        for number in range(60):
            sure = float(draw.uniform(0.2, 0.9))
            good = sure > 0.55 if kind == 0 else sure < 0.55
            text = "das ist ein Ziel" if good else "qvw jkl pyx Qwzz"
            rows.append((f"a source {number}", Spoken(text, (sure, sure)), "das ist ein Ziel"))
            names.append(str(kind))
    sources, translations, references = zip(*rows, strict=True)
    assert calibrate(sources, translations, references, names).text_correlations[0] < 0
    assert calibrate(sources, translations, references).texts == ""


def test_a_regression_finds_its_weights() -> None:
    draw = np.random.default_rng(3)
    rows = draw.normal(size=(4000, 3)) * [1.0, 5.0, 0.1] + [0.0, 2.0, -1.0]
    sums = 0.4 + rows[:, 0] - 0.2 * (rows[:, 1] - 2.0)
    found = fit_logistic(rows, 1.0 / (1.0 + np.exp(-sums)))
    assert found.weights == pytest.approx((1.0, -1.0, 0.0), abs=0.15)
    assert found.bias == pytest.approx(0.4, abs=0.1)
    assert found(rows[:5]) == pytest.approx([found(row) for row in rows[:5]])
    constant = fit_logistic(np.ones((60, 2)), np.full(60, 0.3))
    assert float(constant(np.ones(2))) == pytest.approx(0.3, abs=1e-3)


@given(st.lists(st.floats(max_value=1e-6) | st.just(math.nan), max_size=9), st.text(), st.text())
def test_signs_are_finite(log_probs: list[float], source: str, target: str) -> None:
    found = signs(Evidence(log_probs, source, target))
    assert found.shape == (len(SIGNS),)
    assert np.isfinite(found).all()


def logs(*probabilities: float) -> list[float]:
    return [math.log(one) for one in probabilities]


def test_runs_are_of_six_characters_whose_tokens_are_all_right() -> None:
    """Of the eight characters in tokens of 2, 2 and 4, six in a row begin at three places: twice
    they need all three tokens, once the last two."""
    probabilities = (0.5, 0.8, 0.9, 0.1)  # the last one is the end's
    one = Evidence(logs(*probabilities), "a b c", "ab cdefgh", ("▁ab", "▁cd", "efgh"))
    found = dict(zip(SIGNS, signs(one), strict=True))
    assert found["runs"] == pytest.approx((0.36 + 0.36 + 0.72) / 3)
    assert found["spread"] == pytest.approx(np.std(probabilities))
    assert found["words"] == pytest.approx(math.log(4))


def test_a_short_output_is_one_run() -> None:
    one = Evidence(logs(0.5, 0.8, 0.1), "a", "abc", ("▁ab", "c"))
    assert signs(one)[SIGNS.index("runs")] == pytest.approx(0.4)
    nothing = Evidence(logs(0.5, 0.1), "a", "", ("▁",))
    assert signs(nothing)[SIGNS.index("runs")] == 0.0


@pytest.mark.parametrize("pieces", [(), ("▁abcdef",), ("▁abc", "def", "▁ghi", "j")])
def test_tokens_are_equally_long_where_it_is_not_known_which_is_which(
    pieces: tuple[str, ...],
) -> None:
    """Nine characters by three probabilities: six in a row need two tokens or three."""
    one = Evidence(logs(0.5, 0.5, 0.5), "a", "abcdef ghi", pieces)
    expected = (0.25 + 0.125 + 0.125 + 0.25) / 4
    assert signs(one)[SIGNS.index("runs")] == pytest.approx(expected)


def test_runs_are_learnt_from_the_tokens_of_translations() -> None:
    """The probabilities are the same in every line: only how long the unsure token is tells the
    good from the bad."""
    rows = []
    for number in range(120):
        good = number % 2 == 0
        tokens = ("▁abcdefghijkl", "m") if good else ("▁a", "bcdefghijklm")
        said = Spoken("abcdefghijklm", (0.9, 0.2, 0.9), tokens)
        rows.append(("a source", said, said.text if good else "nopqrstuvwxyz"))
    found = calibrate(*zip(*rows, strict=True))
    assert found.rank_correlation > 0.9


def weighed(**changes: Any) -> dict[str, Any]:
    rows = spoken(0, 60)
    return {**calibrate(*zip(*rows, strict=True)).as_dict(), **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 4},
        {"version": 2},
        {"version": 1},
        {"weights": [1.0]},
        {"means": [0.0] * 4},
        {"scales": [0.0] * len(SIGNS)},
        {"weights": [math.nan] * (len(SIGNS) + 1)},
        {"flagged": 2.0},
        {"texts": "a\nb"},
        {"text_errors": []},
        {"texts": "\n" * 5000},
    ],
)
def test_damaged_weights_are_refused(changes: dict[str, Any]) -> None:
    Calibration.from_dict(weighed())
    with pytest.raises(ModelFolderError, match=r"is damaged; run `dragoman calibrate` again"):
        Calibration.from_dict(weighed(**changes))


def test_a_calibration_of_version_1_is_read() -> None:
    old = {
        name: stairs().as_dict()[name]
        for name in ("knots", "values", "ratio", "error", "correlation", "sentences", "signature")
    }
    found = Calibration.from_dict(old)
    assert found.confidence(Evidence([math.log(0.45)])) == pytest.approx(0.675)


def test_a_calibration_of_version_2_is_read_with_its_eleven_signs() -> None:
    new = weighed()
    *weights, bias = new["weights"]
    old = {
        **new,
        "version": 2,
        "means": new["means"][:11],
        "scales": new["scales"][:11],
        "weights": [*weights[:11], bias],
    }
    one = Evidence([math.log(0.6), math.log(0.9)], "a source", "ein Ziel", ("▁ein", "▁Ziel"))
    total = bias
    for number in range(11):
        standard = (signs(one)[number] - new["means"][number]) / new["scales"][number]
        total += weights[number] * standard
    expected = 1 / (1 + math.exp(-total))
    assert Calibration.from_dict(old).confidence(one) == pytest.approx(expected)
    assert Calibration.from_dict(new).confidence(one) != pytest.approx(expected)
