"""Scores against values worked out on paper; sacreBLEU itself is trusted, our use of it is not."""

from __future__ import annotations

import json
import math
import random

import pytest

from dragoman.errors import InputError, MissingDependencyError, OptionError
from dragoman.tasks.evaluate import (
    Comparison,
    Scoring,
    compare,
    score,
    term_accuracy,
    tokenize_for,
)
from dragoman.text.glossary import Glossary

REFERENCES = ["the cat sat on the mat", "a dog ran home quickly now"]
HYPOTHESES = ["the cat sat on a mat", "a dog ran home"]


def noisy(lines: list[str], share: float, seed: int) -> list[str]:
    """Lines with a share of their words replaced."""
    draw = random.Random(seed)
    return [
        " ".join("wrong" if draw.random() < share else word for word in line.split())
        for line in lines
    ]


def many(count: int = 150) -> list[str]:
    draw = random.Random(3)
    return [
        " ".join(draw.choice("abcdefghij") * draw.randint(1, 4) for _ in range(12))
        for _ in range(count)
    ]


def test_bleu_by_hand() -> None:
    # The first line has 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3 fours; the second has
    # all of 4, 3, 2 and 1.
    precisions = [9 / 10, 6 / 8, 4 / 6, 2 / 4]
    brevity = math.exp(1 - 12 / 10)  # 10 words against 12
    expected = 100 * brevity * math.prod(precisions) ** 0.25
    assert score(HYPOTHESES, REFERENCES, Scoring(bootstrap=0)).bleu.value == pytest.approx(expected)


def test_chrf_by_hand() -> None:
    # "abc" against "abd": 1-grams 2 of 3, 2-grams 1 of 2, 3-grams 0 of 1, both ways; longer ones do
    # not exist and do not count. With precision equal to recall, F2 is the same number.
    mean = (2 / 3 + 1 / 2 + 0) / 3
    assert score(["abc"], ["abd"], Scoring(bootstrap=0)).chrf.value == pytest.approx(100 * mean)


@pytest.mark.parametrize("bootstrap", [0, 50])
def test_perfect_and_hopeless(bootstrap: int) -> None:
    perfect, hopeless = (
        score(REFERENCES, REFERENCES, Scoring(bootstrap=bootstrap)),
        score(["", ""], REFERENCES, Scoring(bootstrap=bootstrap)),
    )
    assert (perfect.bleu.value, perfect.chrf.value) == pytest.approx((100, 100))
    assert (hopeless.bleu.value, hopeless.chrf.value) == (0, 0)


def test_signatures_say_what_was_done() -> None:
    scores = score(HYPOTHESES, REFERENCES, Scoring("char", lowercase=True, bootstrap=30))
    assert {"nrefs:1", "bs:30", "case:lc", "tok:char"} <= set(scores.bleu.signature.split("|"))
    assert {"nrefs:1", "bs:30", "case:lc", "nc:6", "nw:0"} <= set(scores.chrf.signature.split("|"))
    plain = score(HYPOTHESES, REFERENCES, Scoring(bootstrap=0))
    assert "bs:" not in plain.bleu.signature
    assert {"case:mixed", "tok:13a"} <= set(plain.bleu.signature.split("|"))


def test_lower_case_forgives_case() -> None:
    upper = [line.upper() for line in REFERENCES]
    assert score(upper, REFERENCES, Scoring(bootstrap=0)).chrf.value < 1
    assert score(
        upper, REFERENCES, Scoring(lowercase=True, bootstrap=0)
    ).chrf.value == pytest.approx(100)


def test_the_interval_holds_the_value_and_narrows_with_more_lines() -> None:
    references = many()
    hypotheses = noisy(references, 0.3, seed=1)
    widths = []
    for count in (30, 150):
        scores = score(hypotheses[:count], references[:count], Scoring(bootstrap=300))
        assert (
            scores.bleu.value
            == score(hypotheses[:count], references[:count], Scoring(bootstrap=0)).bleu.value
        )
        for metric in (scores.bleu, scores.chrf):
            assert metric.low is not None
            assert metric.high is not None
            assert 0 < metric.low < metric.value < metric.high < 100
        widths.append(scores.bleu.high - scores.bleu.low)  # type: ignore[operator]
    assert widths[1] < widths[0]


def test_a_large_test_set_draws_fewer_resamplings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.tasks.evaluate._MOST_DRAWN", 50)
    assert "bs:25" in score(HYPOTHESES, REFERENCES).bleu.signature.split("|")


def test_scores_are_shown_to_people_and_programs() -> None:
    scores = score(REFERENCES, REFERENCES, Scoring(bootstrap=40))
    assert scores.lines()[0].startswith("BLEU 100.0 (95%: 100.0 to 100.0)  nrefs:1|bs:40|")
    assert (
        score(["abc"], ["abd"], Scoring(bootstrap=0))
        .lines()[1]
        .startswith("chrF 38.9  nrefs:1|case:mixed|")
    )
    assert json.loads(json.dumps(scores.as_dict()))["chrf"]["value"] == pytest.approx(100)


def better_and_worse() -> Comparison:
    references = many()
    return compare(
        noisy(references, 0.1, 1),
        noisy(references, 0.4, 2),
        references,
        Scoring(bootstrap=200),
        names=("new", "old"),
    )


def test_a_clearly_better_system_is_found() -> None:
    found = better_and_worse()
    assert found.bleu.value > found.bleu.other
    assert found.bleu.p_value == pytest.approx(
        1 / 201
    )  # none of 200 resamplings parts them as far by chance
    assert found.bleu.verdict.startswith("BLEU finds new better than old: ")
    assert found.chrf.verdict.endswith("(p = 0.005).")
    assert "bs:200" in found.lines()[0]
    assert json.loads(json.dumps(found.as_dict()))["bleu"]["verdict"] == found.bleu.verdict


def test_the_worse_system_is_called_worse() -> None:
    references = many()
    found = compare(
        noisy(references, 0.4, 2),
        noisy(references, 0.1, 1),
        references,
        Scoring(bootstrap=100),
        names=("new", "old"),
    )
    assert found.chrf.verdict.startswith("chrF finds new worse than old: ")


def test_equal_systems_are_not_told_apart() -> None:
    references = many()
    same = compare(
        noisy(references, 0.3, 1), noisy(references, 0.3, 1), references, Scoring(bootstrap=100)
    )
    assert (same.bleu.p_value, same.chrf.p_value) == (1, 1)
    alike = compare(
        noisy(references, 0.3, 1), noisy(references, 0.3, 2), references, Scoring(bootstrap=200)
    )
    assert alike.bleu.value != alike.bleu.other
    assert alike.bleu.p_value > 0.05
    assert alike.bleu.verdict.startswith("BLEU cannot tell this system from the other: ")


def test_unequal_or_missing_lines_are_refused() -> None:
    with pytest.raises(InputError, match="there are 1 lines to score but 2 references"):
        score(HYPOTHESES[:1], REFERENCES)
    with pytest.raises(InputError, match="there are 3 lines to score but 2 references"):
        compare(HYPOTHESES, [*HYPOTHESES, ""], REFERENCES)
    with pytest.raises(InputError, match="no lines"):
        score([], [])


def test_a_string_is_not_taken_for_lines() -> None:
    for call in (
        lambda: score("a cat", "a dog"),
        lambda: compare(["a cat"], "a dog", ["a cow"]),
        lambda: term_accuracy(Glossary(), "a cat", "a dog"),
    ):
        with pytest.raises(InputError, match="is one string, and a score needs lists of lines"):
            call()


def test_tokenisers() -> None:
    languages = ["de", "zh", "zh-Hans", "zho_Hant", "ja", "jpn_Jpan", "th", "TH", "", "ko"]
    assert [tokenize_for(x) for x in languages] == [
        "13a",
        "zh",
        "zh",
        "zh",
        "char",
        "char",
        "char",
        "char",
        "13a",
        "13a",
    ]
    assert score(
        ["我爱北京天安门"], ["我爱北京天安门"], Scoring("zh", bootstrap=0)
    ).bleu.value == pytest.approx(100)
    assert score(
        ["私は猫が好き"], ["私は猫が好き"], Scoring("char", bootstrap=0)
    ).bleu.value == pytest.approx(100)
    with pytest.raises(OptionError, match="tokenize is 'words'; sacreBLEU has"):
        score(HYPOTHESES, REFERENCES, Scoring("words"))


def test_a_tokeniser_whose_package_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(
        MissingDependencyError,
        match="'ja-mecab' cannot be used, use 'char' instead: Japanese tokenization",
    ):
        score(HYPOTHESES, REFERENCES, Scoring("ja-mecab"))


def test_sacrebleu_keeps_quiet(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    detached = ["it is late ."] * 200
    with caplog.at_level("WARNING"):
        compare(detached, detached, detached, Scoring(bootstrap=5))
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
