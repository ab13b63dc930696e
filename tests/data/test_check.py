"""The check: every kind of finding is counted, shown by place, and treated as the options say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.data.check import check
from dragoman.data.check_report import KINDS, Report
from dragoman.data.data_options import DataOptions
from dragoman.errors import InputError, OptionError
from dragoman.text.scripts import outside, scripts_of

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
GOOD = [
    (f"The {a} {b} houses are green.", f"Die {a} {b} Häuser sind grün.")
    for a in NUMBERS
    for b in NUMBERS
]


def write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> tuple[str, str]:
    for place, language in enumerate(("en", "de")):
        (folder / f"{name}.{language}").write_text(
            "".join(f"{pair[place]}\n" for pair in pairs), encoding="utf-8"
        )
    return str(folder / f"{name}.en"), str(folder / f"{name}.de")


def found(report: Report) -> dict[str, tuple[int, int]]:
    return {finding.kind: (finding.count, finding.dropped) for finding in report}


@pytest.mark.parametrize(
    ("kind", "pair", "option"),
    [
        ("empty", ("Nothing here.", " \u200b"), {}),
        ("long", ("word " * 300, "Wort " * 300), {}),
        ("long", ("x" * 5000, "y" * 5000), {}),
        (
            "ratio",
            ("Yes.", "Ja, aber nur wenn es morgen früh nicht regnet und der Bus auch fährt."),
            {"max_ratio": 0.0},
        ),
        ("copy", ("The same text.", "The\u2003same text. "), {"drop_copies": False}),
        (
            "script",
            ("A sentence in English.", "Предложение на русском."),
            {"drop_wrong_script": False},
        ),
        ("overlap", ("the cat sat ON the mat.", "Die Katze sitzt da."), {"drop_overlap": False}),
        ("duplicate", (GOOD[6][0].upper(), GOOD[6][1]), {"drop_duplicates": False}),
    ],
)
def test_each_fault_is_found_once_and_kept_on_request(
    kind: str, pair: tuple[str, str], option: dict[str, bool], tmp_path: Path
) -> None:
    train = write(tmp_path, "train", [*GOOD[:50], pair, *GOOD[50:]])
    test = write(tmp_path, "test", [("The cat sat on the mat.", "Die Katze saß auf der Matte.")])
    report = check(DataOptions(train=train, test=test))
    assert found(report) == {kind: (1, 1)}
    assert report.kept + report.valid == 100
    assert f"{train[0]}, line 51" in report.findings[kind].examples[0]
    assert report.findings[kind].action == "dropped"
    assert not report.problems
    if option:
        report = check(DataOptions(train=train, test=test, **option))  # type: ignore[arg-type]
        assert found(report) == {kind: (1, 0)}
        assert report.kept + report.valid == 101
        assert report.findings[kind].action == "kept"


def test_duplicates_and_several_targets_over_corpora(tmp_path: Path) -> None:
    first = write(tmp_path, "a", GOOD)
    second = write(
        tmp_path,
        "b",
        [
            (GOOD[3][0], "Ganz anders übersetzt."),
            *GOOD[3:5],
            *GOOD[3:5],
            (GOOD[9][0], "Noch etwas anderes."),
        ],
    )
    report = check(DataOptions(train=(*first, *second)))
    assert found(report) == {"duplicate": (4, 4), "many": (2, 0)}
    assert report.kept + report.valid == 102
    assert (
        report.findings["duplicate"].examples[0]
        == f"{second[0]}, line 2 and {first[0]}, line 4: {' | '.join(GOOD[3])}"
    )
    assert [row["pairs"] for row in report.corpora] == [100, 6]


def test_good_text_has_nothing_to_report(tmp_path: Path) -> None:
    report = check(
        DataOptions(
            train=write(tmp_path, "train", GOOD),
            valid=write(tmp_path, "valid", [("Other.", "Anderes.")]),
        )
    )
    assert (report.pairs, report.kept, report.valid) == (100, 100, 1)
    assert (report.source_language, report.target_language) == ("en", "de")
    assert found(report) == {}
    assert "nothing suspicious" in report.text()


def test_the_check_goes_on_after_what_stops_training(tmp_path: Path) -> None:
    source, target = write(tmp_path, "train", GOOD)
    lines = Path(target).read_bytes().split(b"\n")
    lines[1] = b"B\xe4r"
    lines[7] = b"\xff"
    Path(target).write_bytes(b"\n".join(lines[:-4]))
    report = check(DataOptions(train=(source, target)))
    assert [(problem.kind, problem.count) for problem in report.problems] == [
        ("unequal", 1),
        ("encoding", 2),
    ]
    assert (report.pairs, report.kept + report.valid) == (97, 95)
    assert report.findings["unequal"].examples == [f"{source}: 100 lines, but {target} has 97"]
    assert (
        report.findings["encoding"]
        .examples[1]
        .startswith(f"{target}, line 8: not UTF-8 (byte 0xff)")
    )


def test_a_corpus_without_a_usable_pair_is_a_problem(tmp_path: Path) -> None:
    report = check(DataOptions(train=write(tmp_path, "train", [])))
    assert [problem.kind for problem in report.problems] == ["nothing"]
    report = check(DataOptions(train=write(tmp_path, "train", [("a b", "a b")] * 3)))
    assert "none of 3 pairs can be used (3 source copied to target)" in report.text()
    with pytest.raises(InputError, match="no training files"):
        check(DataOptions())


def test_test_files_may_be_sources_alone(tmp_path: Path) -> None:
    train = write(tmp_path, "train", GOOD)
    test = write(tmp_path, "test", GOOD[:5])
    report = check(DataOptions(train=train, test=test[:1]))
    assert found(report) == {"overlap": (5, 5)}
    report = check(DataOptions(train=train, valid=test))
    assert found(report) == {"overlap": (5, 5)}
    assert (report.kept, report.valid) == (95, 5)
    assert check(DataOptions(train=train, valid=test, test=test)).valid == 5


def test_usual_lengths_and_scripts_are_those_of_the_text(tmp_path: Path) -> None:
    """Chinese is three times shorter than English and in another script; neither is suspicious
    where all pairs are so."""
    pairs = [
        (f"There are {number} small red houses in the village.", f"村里有{number}座红色小房子。")
        for number in range(9)
    ]
    report = check(
        DataOptions(
            train=write(tmp_path, "train", [*pairs, ("A longer line of English.", "Eine Zeile.")])
        )
    )
    assert found(report) == {"script": (1, 1)}


def test_renderings_agree_and_are_safe(tmp_path: Path) -> None:
    train = write(
        tmp_path, "train", [*GOOD, ("<b>|\x1b[31m*", "<b>|\x1b[31m*"), ("x" * 300, "x" * 300)]
    )
    report = check(DataOptions(train=train))
    plain = report.text()
    markdown = report.markdown()
    values = report.as_dict()
    assert "\x1b" not in plain + markdown
    assert "source copied to target" in plain
    assert "| source copied to target | 2 | dropped |" in markdown
    assert "\\<b\\>\\|" in markdown
    assert "x" * 79 + "…" in plain
    assert "x" * 80 not in plain
    assert json.loads(json.dumps(values))["findings"][0]["kind"] == "copy"
    assert values["kept"] == report.kept
    assert set(KINDS) >= {finding["kind"] for finding in values["findings"]}


def test_scripts() -> None:
    assert scripts_of(["Привет, world"]) == {"Cyrillic", "Latin"}
    assert scripts_of(["これは日本語の文です OK", "漢字だけ"]) == {"CJK"}
    assert scripts_of(["123 …"]) == frozenset()
    latin = outside(frozenset({"Latin"}))
    lines = [
        "plain",
        "Grüße",
        "Ɛyɛ papa",
        "ΑΒΓ αβγ",
        "Москва",
        "abc где",
        "π = 3.14",
        "日本語です",
        "",
    ]
    assert [latin(line) for line in lines] == [
        False,
        False,
        False,
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    cyrillic = outside(frozenset({"Cyrillic"}))
    assert [cyrillic(line) for line in ["Москва", "English text", "BMW", "Москва BMW и Audi"]] == [
        False,
        True,
        False,
        False,
    ]
    assert not outside(frozenset())("anything")


def test_options_are_checked() -> None:
    for wrong in (
        {"held_out": -1},
        {"max_length": 1},
        {"max_ratio": 0.5},
        {"weights": (1.0, -2.0)},
    ):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            DataOptions(**wrong)
