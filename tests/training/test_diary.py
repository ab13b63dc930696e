"""metrics.jsonl, the lines for people, report.md and its picture."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from dragoman.training.diary import Diary, Stopwatch
from dragoman.training.report import learning_curve, write_report
from dragoman.training.training_options import TrainingOptions
from dragoman.training.validation import Sample

TRAIN = {
    "loss": 3.5,
    "nll": 3.0,
    "lr": 0.00071,
    "tokens_per_second": 12_345.6,
    "memory_gib": 1.25,
    "seconds": 1800.0,
}
VALID = {"valid_loss": 2.0, "bleu": 25.0, "chrf": 50.0}


def diary(folder: Path, first: int = 0, quiet: bool = False, **options: Any) -> Diary:
    return Diary(folder, TrainingOptions(**{"steps": 3000, **options}), first, quiet)


def read(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def test_lines_for_machines_and_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with diary(tmp_path) as book:
        book.record({"step": 1000, **TRAIN})
        book.record({"step": 1000, **VALID, "best": True})
        book.advance(1000, 1800.0)
        assert book.history() == read(tmp_path)
    assert read(tmp_path) == [{"step": 1000, **TRAIN}, {"step": 1000, **VALID, "best": True}]
    assert capsys.readouterr().err.splitlines() == [
        "step 1,000: loss 3.500, 1:00:00 left, 12,346 tokens/s, rate 7.10e-04, 1.2 GiB",
        "step 1,000: valid loss 2.0000, BLEU 25.0, chrF 50.0 (best so far)",
    ]


@pytest.mark.parametrize(
    ("minutes", "left"), [(40.0, "0:10:00"), (500.0, "1:00:00"), (1.0, "0:00:00")]
)
def test_the_time_left_knows_of_the_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], minutes: float, left: str
) -> None:
    """Half an hour for a third of the steps leaves an hour, or what is left of the minutes."""
    with diary(tmp_path, minutes=minutes) as book:
        book.record({"step": 1000, **TRAIN})
    assert f", {left} left, " in capsys.readouterr().err


def test_the_pace_of_the_first_steps_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first step took a minute, the next ones two seconds each; three of them are enough."""
    with diary(tmp_path, steps=1754, minutes=3.0) as book:
        for number in range(1, 10):
            book.advance(number, 60.0 + 2.0 * (number - 1))
    assert capsys.readouterr().err.splitlines() == [
        "at 2.00 s a step on this machine, the 3 minutes end near step 61 of 1,754 (3%); it would "
        "take about 58 minutes more for all 1,754 steps, without validations"
    ]


def test_the_bar_shows_the_time_left_from_the_second_step_on(tmp_path: Path) -> None:
    book = diary(tmp_path, steps=100)
    columns = []
    for number, seconds in ((1, 50.0), (2, 51.0)):
        book.advance(number, seconds)
        columns.append(book._bar.tasks[0].fields["left"])
    assert columns == ["measuring", "0:01:38 left"]


def test_samples_are_shown_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = {"source": "A dog.", "reference": "Ein Hund.", "output": "Eine\x1b[31m Katze."}
    with diary(tmp_path) as book:
        book.record({"step": 10, **VALID, "best": False, "samples": [sample]})
    assert capsys.readouterr().err.splitlines()[1:] == [
        "    source     A dog.",
        "    reference  Ein Hund.",
        "    output     Eine[31m Katze.",
        "",
    ]
    assert read(tmp_path)[0]["samples"] == [sample]


def test_what_came_after_the_checkpoint_is_forgotten(tmp_path: Path) -> None:
    """Steps up to 20 were saved; the last line was cut by the kill."""
    lines = [json.dumps({"step": step, **TRAIN}) for step in (10, 20, 30)] + ['{"step": 40, "lo']
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with diary(tmp_path, first=20) as book:
        book.record({"step": 30, **TRAIN})
    assert [line["step"] for line in read(tmp_path)] == [10, 20, 30]


def test_a_quiet_diary_touches_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 30}\n', encoding="utf-8")
    with diary(tmp_path, quiet=True) as book:
        book.record({"step": 40, **TRAIN})
        book.say("nothing")
    assert read(tmp_path) == [{"step": 30}]
    assert capsys.readouterr() == ("", "")


def test_the_watch_goes_on_from_what_was(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    watch = Stopwatch(before=30.0)
    assert watch.seconds() == 30.0
    now[0] = 107.5
    assert watch.seconds() == 37.5


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    with diary(tmp_path, tensorboard=True) as book:
        book.record({"step": 5, **TRAIN})
    assert list((tmp_path / "tensorboard").iterdir())


HISTORY: list[dict[str, Any]] = [
    {"step": 50, **TRAIN, "nll": 4.0},
    {"step": 100, **TRAIN, "nll": 2.0},
    {"step": 100, **VALID, "best": True},
]


def lines_of(svg: str) -> list[list[tuple[float, float]]]:
    root = ElementTree.fromstring(svg)
    return [
        [
            (float(x), float(y))
            for x, y in (point.split(",") for point in line.attrib["points"].split())
        ]
        for line in root.iter("{http://www.w3.org/2000/svg}polyline")
    ]


def test_the_curve_is_where_it_should_be() -> None:
    """The frame goes from x 60 to 700 and from y 280 up to 30: loss 4 is the top, half of it the
    middle; BLEU 25 a quarter."""
    train, valid, bleu = lines_of(learning_curve(HISTORY))
    assert train == [(380.0, 30.0), (700.0, 155.0)]
    assert valid == [(700.0, 155.0)]
    assert bleu == [(700.0, 217.5)]


def test_the_curve_without_validations() -> None:
    train, valid = lines_of(learning_curve(HISTORY[:1]))
    assert train == [(700.0, 30.0)]
    assert valid == []


def test_the_report(tmp_path: Path) -> None:
    folder = tmp_path / "en-de"
    folder.mkdir()
    write_report(folder, {"Data": "some\n", "Result": "good"}, HISTORY)
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# en-de\n\n## Data\n\nsome\n\n## Result\n\ngood\n\n## Validations\n")
    assert "| 100 (best) | 2.0000 | 25.00 | 50.00 |" in text
    assert (folder / "learning-curve.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "](learning-curve.svg)" in text


def test_the_report_shows_how_translations_grew(tmp_path: Path) -> None:
    history: list[dict[str, Any]] = []
    for step in range(100, 2100, 100):
        sample = {"source": "A *dog*.", "reference": "Ein Hund.", "output": f"Hund {step}."}
        history.append({"step": step, **VALID, "samples": [sample]})
    final = Sample("A *dog*.", "Ein Hund.", "Ein Hund, beam.")
    write_report(tmp_path, {"Data": "some"}, history, [final])
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "## Sample translations\n\n> A \\*dog\\*.\n\n- reference: Ein Hund.\n- step 100:" in text
    assert "- step 2,000: Hund 2000.\n- the final model, beam 4: Ein Hund, beam.\n" in text
    assert 5 <= text.count("- step ") <= 9


def test_a_report_of_nothing_yet(tmp_path: Path) -> None:
    write_report(tmp_path, {"Data": "some"}, [])
    assert "## Validations" not in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert not (tmp_path / "learning-curve.svg").exists()


def test_many_validations_are_thinned_out(tmp_path: Path) -> None:
    """Each of 400 was the best in its turn up to step 333: the table has some 40, from the first
    to the last, and the best."""
    history = [{"step": step, **VALID, "best": step <= 333} for step in range(1, 401)]
    write_report(tmp_path, {}, history)
    rows = [
        line
        for line in (tmp_path / "report.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ][1:]
    steps = [int(row.split("|")[1].split()[0]) for row in rows]
    assert len(steps) <= 42
    assert steps == sorted(steps)
    assert {1, 333, 400} <= set(steps)
    assert [row for row in rows if "(best)" in row] == [
        row for row in rows if row.startswith("| 333 ")
    ]


def test_scores_that_some_validations_lack_are_left_out(tmp_path: Path) -> None:
    history = [
        {"step": 1, "valid_loss": 2.0, "bleu": 1.0, "chrf": 3.0},
        {"step": 2, "valid_loss": 1.0, "best": True},
    ]
    write_report(tmp_path, {"Data": "some"}, history)
    assert "| step | valid loss |\n" in (tmp_path / "report.md").read_text(encoding="utf-8")
