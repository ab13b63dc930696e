"""How large the trainings of an improvement are: the shape that the minutes are enough for, found
by measuring, and the model that begins from what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny

from dragoman.folder.description import load_description
from dragoman.improving import steps_of_training
from dragoman.improving.gather_text import write_pairs
from dragoman.improving.improve_journal import Journal, Outcome
from dragoman.improving.improve_options import ImproveOptions, Inputs
from dragoman.improving.improve_workshop import Workshop
from dragoman.improving.lesson_sizes import (
    is_worth_a_trial,
    is_worth_its_width,
    shapes_by_width,
)
from dragoman.improving.steps_of_training import Measure, Parent

CAPTIONS = 29_000  # pairs


def shop_of(folder: Path, pairs: int, **tables: Any) -> Workshop:
    inputs = Inputs(
        start="",
        out=str(folder / "out"),
        train=(),
        valid=(),
        test=(),
        options=ImproveOptions(minutes=60),
        languages=("en", "de"),
        tables={"training": {"device": "cpu"}, **tables},
    )
    journal = Journal(inputs.work, {})
    journal.finish(Outcome("gather", numbers={"pairs": pairs}, text=(("text/pairs.tsv", 1.0),)))
    return Workshop(inputs, journal, print)


def with_options(shop: Workshop, **changes: Any) -> Workshop:
    options = replace(shop.inputs.options, **changes)
    return Workshop(replace(shop.inputs, options=options), shop.journal, print)


def test_minutes_may_be_enough_for_a_wider_model(tmp_path: Path) -> None:
    shapes = shapes_by_width(shop_of(tmp_path, CAPTIONS))
    assert [shape["d_model"] for shape in shapes] == [128, 192, 256]
    assert [shape["encoder_layers"] for shape in shapes] == [2, 3, 4]
    assert [shape["d_model"] / shape["n_heads"] for shape in shapes[:2]] == [32, 32]
    assert {shape["dropout"] for shape in shapes} == {0.3}


def test_there_is_one_shape_where_more_is_to_be_read_or_the_user_chose(tmp_path: Path) -> None:
    shop = shop_of(tmp_path, CAPTIONS)
    assert len(shapes_by_width(with_options(shop, target_text=("mono.de",)))) == 1
    assert len(shapes_by_width(with_options(shop, related=("a.en", "a.nl")))) == 1
    assert len(shapes_by_width(with_options(shop, steps=100))) == 1
    assert len(shapes_by_width(shop_of(tmp_path / "few", 5_000))) == 1
    assert len(shapes_by_width(shop_of(tmp_path / "own", CAPTIONS, model={"d_model": 64}))) == 1
    assert len(shapes_by_width(shop_of(tmp_path / "named", CAPTIONS, preset="tiny"))) == 1


def test_a_wide_model_has_to_read_the_text_often_enough(tmp_path: Path) -> None:
    shop = shop_of(tmp_path, CAPTIONS)
    seconds = 3600 / (25 * 25 * CAPTIONS)  # a token, for 25 passes of 25 tokens a pair in an hour
    assert is_worth_its_width(shop, 0.99 * seconds)
    assert not is_worth_its_width(shop, 1.01 * seconds)


def test_a_shape_is_tried_if_it_may_be_worth_it(tmp_path: Path) -> None:
    shop = shop_of(tmp_path, CAPTIONS)
    narrow, _, wide = shapes_by_width(shop)  # 0.9 and 7.3 million weights
    seconds = 3600 / (25 * 25 * CAPTIONS)
    assert is_worth_a_trial(shop, seconds / 5, narrow, wide)
    assert not is_worth_a_trial(shop, seconds / 3, narrow, wide)
    assert not is_worth_a_trial(shop, 1.01 * seconds, narrow, narrow)


@pytest.mark.parametrize(("minutes", "width"), [(60.0, 32), (1e-6, 16)])
def test_the_first_model_has_the_widest_shape_that_the_minutes_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, width: int
) -> None:
    given = tiny.tables(valid_sentences=3, device="cpu")
    narrow = {**given.pop("model"), "d_model": 16, "d_ff": 32}
    wide = {**narrow, "d_model": 32, "d_ff": 64}
    given.pop("preset", None)
    monkeypatch.setattr(steps_of_training, "shapes_by_width", lambda shop: [narrow, wide])
    shop = with_options(shop_of(tmp_path, 90, **given), minutes=minutes)
    tiny.write_corpus(tmp_path, "a", 100)
    lines = [(tmp_path / f"a.{side}").read_text().splitlines() for side in ("en", "de")]
    pairs = list(zip(*lines, strict=True))
    write_pairs(shop.valid_file, pairs[:10])
    write_pairs(shop.place("text") / "pairs.tsv", pairs[10:])
    measured = Measure("measure", "", 0.0).run(shop, {"steps": 2})
    shop.journal.finish(measured)
    assert shop.model() is None  # what was measured is no result
    assert f"layers of {width};" in measured.note
    parent = Parent("parent", "", 1.0, both=False)
    outcome = parent.run(shop, {"batch": 256, "steps": 2, "both": False})
    description, _ = load_description(shop.path(outcome.model))
    assert description.model.d_model == width
