"""What a run says of itself: what to expect, how long it takes, and the truth at its end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tiny

from dragoman.tasks.evaluate import Metric, Scores
from dragoman.training import run
from dragoman.training.outlook import Ended, Pace, duration, estimate, expected, verdict
from dragoman.training.training_options import TrainingOptions

ENDED = Ended(
    folder=Path("models/en-tw"),
    reason="minutes",
    step=38,
    steps=1754,
    seconds=180.0,
    improving=True,
    trained=True,
    bleu=0.0,
)


def test_more_text_promises_more() -> None:
    sentences = [expected(pairs) for pairs in (100, 5000, 30_000, 100_000, 500_000, 4_000_000)]
    assert len(set(sentences)) == 6
    assert sentences[2].startswith("As a rule, 30,000 pairs give: sentences much like those in")


def measured(seconds_a_step: float, steps: int = 4) -> Pace:
    pace = Pace()
    for number in range(1, steps + 2):
        pace.note(number, 100.0 + seconds_a_step * (number - 1))
    return pace


def test_the_pace_leaves_out_the_first_step() -> None:
    assert measured(2.0).seconds_a_step == 2.0
    assert measured(2.0).known
    assert not measured(0.1).known
    assert measured(0.1, steps=20).known


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            TrainingOptions(steps=905, patience=8),
            "at 2.00 s a step on this machine, it takes about 30 minutes more for all 905 steps, "
            "without validations; it stops before that if validations no longer improve",
        ),
        (
            TrainingOptions(steps=905, minutes=600.0),
            "at 2.00 s a step on this machine, it takes about 30 minutes more for all 905 steps, "
            "without validations",
        ),
        (
            # 100 s and four steps of 2 s have passed; 5 minutes leave 192 s.
            TrainingOptions(steps=905, minutes=5.0),
            "at 2.00 s a step on this machine, the 5 minutes end near step 101 of 905 (11%); it "
            "would take about 30 minutes more for all 905 steps, without validations",
        ),
        (
            TrainingOptions(steps=905, minutes=1.0),
            "at 2.00 s a step on this machine, the minute ends near step 5 of 905 (1%); it "
            "would take about 30 minutes more for all 905 steps, without validations",
        ),
        (TrainingOptions(steps=9), ""),
    ],
)
def test_the_estimate(options: TrainingOptions, sentence: str) -> None:
    assert estimate(measured(2.0), options) == sentence


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 second"),
        (75, "75 seconds"),
        (180, "3 minutes"),
        (3600, "60 minutes"),
        (7800, "2 hours 10 minutes"),
        (36_000, "10 hours"),
        (300_000, "3 days"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (
            ENDED,
            "38 of 1,754 steps in 3 minutes: not trained yet; continue with: "
            "dragoman train --resume models/en-tw --minutes 150",
        ),
        (
            replace(ENDED, step=1000, seconds=3000.0, bleu=15.0),
            "1,000 of 1,754 steps in 50 minutes: still improving; continue with: "
            "dragoman train --resume models/en-tw --minutes 40",
        ),
        (
            replace(ENDED, trained=False),
            "nothing was left to do in this run; 38 of 1,754 steps in 3 minutes: not trained yet; "
            "continue with: dragoman train --resume models/en-tw --minutes 150",
        ),
        (
            replace(ENDED, reason="steps", step=1754, seconds=9000.0, bleu=20.0),
            "1,754 of 1,754 steps in 2 hours 30 minutes: still improving at the last validation; "
            "for a longer run, continue with: dragoman train --resume models/en-tw --steps 3508",
        ),
        (
            replace(ENDED, reason="patience", step=900, seconds=900.0, improving=False, bleu=2.0),
            "900 of 1,754 steps in 15 minutes: no longer improving, and hardly anything is right; "
            "look at the sample translations and the data check, and add text",
        ),
        (replace(ENDED, reason="patience", step=900, improving=False, bleu=25.0), ""),
        (replace(ENDED, reason="patience", step=900, improving=False, bleu=None), ""),
    ],
)
def test_the_verdict(ended: Ended, words: str) -> None:
    assert verdict(ended) == words


@pytest.mark.parametrize(
    ("bleu", "words"),
    [
        (0.7, "nothing can be used"),
        (8.0, "not usable"),
        (15.0, "hard to get the gist"),
        (22.0, "the gist is clear"),
        (33.0, "understandable, with errors"),
        (44.0, ": good."),
        (99.0, "very good"),
    ],
)
def test_a_score_in_plain_words(bleu: float, words: str) -> None:
    score = Metric(bleu, None, None, "")
    assert words in Scores(score, score).in_words()


def test_a_run_that_learnt_nothing_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through the front door: 0.006 seconds are over after the first step."""
    said: list[str] = []
    given = tiny.tables(minutes=0.0001)
    given["data"] = {"train": tiny.write_corpus(tmp_path, "a", 150)}
    assert run.start(tmp_path / "model", given, said.append) == "minutes"
    assert any(line.endswith("The time is estimated after the first steps.") for line in said)
    errors = capsys.readouterr().err
    go_on = f"continue with: dragoman train --resume {tmp_path / 'model'} --minutes 1"
    assert f"1 of 24 steps in 1 second: not trained yet; {go_on}" in said
    assert "means: nothing can be used." in errors
    assert errors.count("    reference  ") == 3
    report = (tmp_path / "model" / "report.md").read_text(encoding="utf-8")
    assert "not trained yet" in report
    assert report.count("- the final model, beam 4: ") == 3
    assert run.resume(tmp_path / "model", {}, said.append) == "minutes"
    assert any("Nothing was left to do in this run; 1 of 24 steps" in line for line in said)
    assert run.resume(tmp_path / "model", {"training": {"minutes": 2.0}}, said.append) == "steps"
    assert any("continuing from step 1 of 24, for 2 more minutes" in line for line in said)


def test_more_minutes_come_on_top_of_those_that_were(tmp_path: Path) -> None:
    """The run has had ten minutes; two more make twelve."""
    folder = tmp_path / "model"
    given = tiny.tables(steps=2, save_every=2)
    given["data"] = {"train": tiny.write_corpus(tmp_path, "a", 60)}
    assert run.start(folder, given, print) == "steps"
    progress = folder / "state" / "step-00000002" / "progress.json"
    values = json.loads(progress.read_text(encoding="utf-8"))
    progress.write_text(json.dumps({**values, "seconds": 600.0}), encoding="utf-8")
    changes = {"training": {"minutes": 2.0, "steps": 4}}
    assert run.resume(folder, changes, print) == "steps"
    toml = (folder / "training.toml").read_text(encoding="utf-8")
    assert "\nminutes = 12.0 " in toml
