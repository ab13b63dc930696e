"""The parts of an improvement: the plan and its minutes, the journal, copied names, the nearest
text, averages, forced scores and what is dropped."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dragoman.data.corpus import corpora
from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.folder.description import load_description
from dragoman.folder.weights import load_model
from dragoman.improving.averaged_weights import average, can_average
from dragoman.improving.cleaning_by_models import LANGUAGE, LENGTH, REPEATED, UNLIKELY, judge
from dragoman.improving.copied_names import CopiedNames
from dragoman.improving.forced_scores import ForcedScorer
from dragoman.improving.gather_text import (
    Known,
    apart_from,
    check_valid,
    clean_lines,
    clean_pairs,
    read_set,
)
from dragoman.improving.improve_budget import Allotment, Pace, lines_within, steps_within
from dragoman.improving.improve_journal import Journal, Outcome
from dragoman.improving.improve_options import ImproveOptions, Inputs
from dragoman.improving.improve_plan import Facts, in_words, make_plan
from dragoman.improving.improve_run import plan_of
from dragoman.improving.improve_workshop import Workshop, read_tsv
from dragoman.improving.mixed_text import related, tags
from dragoman.improving.nearest_text import nearest
from dragoman.improving.steps_of_text import Gather
from dragoman.tasks.translate import Translator


def test_the_plan_follows_from_what_there_is() -> None:
    options = ImproveOptions(minutes=25)
    names = [step.name for step in make_plan(Facts(True, 90_000, 1_000_000, 25_000), options)]
    assert names == [
        *["gather", "measure", "parent", "reverse", "clean"],
        *["back-translate-1", "back-translate-2", "nearest", "average"],
    ]
    start = make_plan(Facts(False, target_lines=500, has_reverse=True), options)
    assert [step.name for step in start] == [
        *["gather", "measure", "back-translate-1", "back-translate-2", "average"]
    ]
    with_student = make_plan(Facts(True, 100), replace(options, student=True))
    assert with_student[-1].name == "student"


def test_with_few_passes_the_plan_is_one_long_training() -> None:
    facts = Facts(True, 29_000, passes=20.0)
    names = [step.name for step in make_plan(facts, ImproveOptions())]
    assert names == ["gather", "measure", "parent", "nearest", "average"]
    parent = make_plan(facts, ImproveOptions())[2]
    assert not parent.both
    assert parent.minutes > 40


@pytest.mark.parametrize("minutes", [1.0, 25.0, 60.0])
def test_the_minutes_are_shared_out_with_a_reserve(minutes: float) -> None:
    options = ImproveOptions(minutes=minutes, student=True)
    planned = make_plan(Facts(True, 90_000, 10, 10, 10), options)
    assert sum(step.minutes for step in planned) <= 0.9 * minutes + 1e-9
    text = in_words(planned, options)
    for step in planned:
        assert f"{step.name} " in text
        assert step.reason in text


def test_what_was_spent_until_the_plan_is_taken_off() -> None:
    options = ImproveOptions(minutes=25)
    facts = Facts(True, 90_000, 1_000_000, passes=200.0, spent=4.5)
    planned = make_plan(facts, options)
    assert sum(step.minutes for step in planned[:2]) == pytest.approx(4.5)
    assert sum(step.minutes for step in planned[2:]) == pytest.approx(18.0)


def test_counts_follow_from_the_pace_alone() -> None:
    pace = Pace(token=1e-4, line=0.01, start=10.0)
    # 10 minutes less 10 s: 590 s, of 0.4096 s each.
    assert steps_within(Allotment(10, 4096), pace) == 1440
    assert steps_within(Allotment(10, 4096, r_drop=True), pace) == 720
    # Six validations of 100 sentences take 6 s, the final 500 by beam search 20 s.
    assert steps_within(Allotment(10, 4096, sentences=100, judged=500), pace) == 1376
    # Two passes over 1,000 pairs of 25 tokens.
    assert steps_within(Allotment(10, 4096, pairs=1000, passes=2), pace) == 13
    # Text that takes a millisecond a pair to prepare: 100 s.
    slow = replace(pace, pair=1e-3)
    assert steps_within(Allotment(10, 4096, pairs=100_000), slow) == 1196
    assert steps_within(Allotment(0.1, 4096), pace) == 8
    assert lines_within(1.0, pace) == 6000


def test_the_journal_keeps_what_was_decided(tmp_path: Path) -> None:
    journal = Journal(tmp_path, {"start": "a", "options": {"minutes": 5}})
    assert journal.settings("parent", {"steps": 10}) == {"steps": 10}
    journal.finish(Outcome("gather", text=(("gather/pairs-0.tsv", 2.0),)))
    journal.finish(Outcome("parent", 30.0, after=5.0, model="parent/model"))
    journal.finish(Outcome("clean", 20.0, kept=False, model="clean/model", text=(("x", 1.0),)))
    again = Journal(tmp_path, {"start": "a", "options": {"minutes": 5}})
    assert again.settings("parent", {"steps": 99}) == {"steps": 10}
    assert again.done == journal.done
    assert again.model() == "parent/model"
    assert again.text() == (("gather/pairs-0.tsv", 2.0),)
    assert again.seconds == 50.0
    with pytest.raises(OptionError, match="begun with another 'options'"):
        Journal(tmp_path, {"start": "a", "options": {"minutes": 6}})


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"format": 2}', '{"format": 1, "given": {}, "begun": [], "done": 3}'],
)
def test_a_damaged_journal_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "journal.json").write_text(content, encoding="utf-8")
    with pytest.raises(ModelFolderError, match="damaged") as error:
        Journal(tmp_path, {})
    assert "\n" not in str(error.value)


def test_names_and_numbers_are_exchanged_on_both_sides() -> None:
    pairs = [
        ("Kofi met Ama in Accra in 2016", "Kofi hyiaa Ama wɔ Accra 2016"),
        ("the Market is big", "Market no so"),
        ("a market", "dwa"),
        ("nothing here", "hwee nni ha"),
    ]
    names = CopiedNames(pairs, seed=1)
    assert names.shared(pairs[0]) == {"Kofi", "Ama", "Accra", "2016"}
    assert names.shared(pairs[1]) == set()  # it also stands without a capital
    exchanged = list(names.exchanged(pairs))
    assert len(exchanged) == 1
    source, target = exchanged[0]
    assert source.split()[1::2] == ["met", "in", "in"]
    new_number = source.split()[-1]
    assert new_number != "2016"
    assert len(new_number) == 4
    assert not new_number.startswith("0")
    for word in [*source.split()[::2], new_number]:
        assert word in target
    assert exchanged == list(CopiedNames(pairs, seed=1).exchanged(pairs))


def test_the_nearest_text_shares_rare_words() -> None:
    texts = ["the cat sat", "the stock market fell", "the the the", "stock prices fell today"]
    samples = ["the stock market rose", "prices fell"]
    assert nearest(lambda: iter(texts), samples, 2) == [1, 3]
    assert nearest(lambda: iter(texts), samples, 99) == [0, 1, 2, 3]


def test_an_average_of_one_model_is_the_model(trained: Path, tmp_path: Path) -> None:
    average(tmp_path / "same", [(trained, 1.0)], ("de", "en"))
    description, _ = load_description(tmp_path / "same")
    assert (description.source_language, description.target_language) == ("de", "en")
    assert can_average(trained, tmp_path / "same")
    one = load_model(trained, description.model, torch.device("cpu"))
    other = load_model(tmp_path / "same", description.model, torch.device("cpu"))
    for (name, weight), (_, same) in zip(
        one.named_parameters(), other.named_parameters(), strict=True
    ):
        assert torch.equal(weight, same), name
    average(tmp_path / "halves", [(trained, 0.5), (tmp_path / "same", 0.5)])
    half = load_model(tmp_path / "halves", description.model, torch.device("cpu"))
    for weight, same in zip(one.parameters(), half.parameters(), strict=True):
        torch.testing.assert_close(weight, same)
    with pytest.raises(OptionError, match=r"add up to 0\.9"):
        average(tmp_path / "no", [(trained, 0.9)])
    with pytest.raises(OSError, match="not empty"):  # what is there stays
        average(tmp_path / "halves", [(trained, 1.0)])


def test_forced_scores_are_those_of_the_search(trained: Path) -> None:
    """The mean log-probability of a translation is the same whether it was found or given, alone
    or among longer ones."""
    source = "one two three four"
    translator = Translator.load(trained, "cpu", "torch")
    found = translator.translate(source, split=False)
    expected = sum(map(math.log, found.token_probabilities)) / len(found.token_probabilities)
    scorer = ForcedScorer(trained, "cpu")
    pairs = [(source, found.text), ("five " * 9, "fünf " * 9), (source, "null null null")]
    right, _, wrong = scorer.scores(pairs)
    assert right == pytest.approx(expected, abs=1e-4)
    assert wrong < right - 1


def test_what_the_models_find_unlikely_is_dropped() -> None:
    words = [("one", "eins"), ("two", "zwei"), ("four", "vier"), ("five", "fünf"), ("six", "sechs")]
    pairs = [(f"{a} {b} {c}", f"{x} {y} {z}") for a, x in words for b, y in words for c, z in words]
    scores = [-0.1 - 0.001 * (row % 7) for row in range(len(pairs))]
    scores[3] = -9.0
    pairs[5] = (pairs[5][0], pairs[5][1] + " zwei" * 30)
    pairs[8] = (pairs[8][0], "one two four six five")
    pairs[10] = (f"{pairs[11][0]}!", pairs[11][1])
    scores[10] = -0.05
    reasons = judge(pairs, scores).reasons
    assert reasons[3] == UNLIKELY
    assert reasons[5] == LENGTH
    assert reasons[8] == LANGUAGE
    assert (reasons[10], reasons[11]) == ("", REPEATED)
    assert sum(map(bool, reasons)) == 4


def test_the_valid_and_test_sets_are_kept_out_of_all_text(tmp_path: Path) -> None:
    text = tmp_path / "text.en-de.tsv"
    rows = [f"word {number} here\twort {number} hier" for number in range(40)]
    text.write_text("\n".join([*rows, "A Test Line\tanders", "anything\tder Testsatz"]) + "\n")
    lines = tmp_path / "mono.de"
    lines.write_text("wort 5 hier\nder testsatz\nneu\nneu\n\n", encoding="utf-8")
    known = Known()
    known.add([("a test line", "der Testsatz")])
    kept = list(clean_pairs(corpora([str(text)])[0], ("en", "de"), known))
    assert len(kept) == 40
    assert known.met == 2
    assert list(clean_lines([str(lines)], known)) == ["wort 5 hier", "neu"]
    assert known.met == 3


def test_too_little_valid_text_is_refused(tmp_path: Path) -> None:
    files = [tmp_path / "dev.en", tmp_path / "dev.de"]
    for file in files:
        file.write_text("a line\n" * 12, encoding="utf-8")
    valid = read_set([str(file) for file in files], ("en", "de"))
    with pytest.raises(InputError, match="12 pairs, too few to prove a gain"):
        check_valid(valid, "dev.en")
    alone = read_set([str(files[0])], ("en", "de"))
    assert alone[0] == ("a line", "")
    with pytest.raises(InputError, match="one language alone"):
        check_valid(alone, "dev.en")


def test_a_valid_set_of_one_language_is_refused() -> None:
    with pytest.raises(InputError, match=r"dev\.en has one language alone; name both files"):
        check_valid([("one", ""), ("two", "")], "dev.en")


def test_the_valid_set_is_kept_apart_from_the_test_set() -> None:
    """On either side; too few that are left are refused."""
    valid = [(f"line {number}", f"Zeile {number}") for number in range(60)]
    test = [("line 1", "anders"), ("other", "zeile 2"), ("apart", "")]
    left = apart_from(test, valid, "dev.en")
    assert left == [valid[0], *valid[3:]]
    with pytest.raises(InputError, match=r"15 of the 60 pairs of dev\.en are in the test set too"):
        apart_from(valid[:15], valid, "dev.en")


def test_the_options_have_limits() -> None:
    with pytest.raises(OptionError, match="minutes"):
        ImproveOptions(minutes=0)
    assert json.dumps(ImproveOptions().significance) == "0.05"


def test_related_text_of_several_languages_is_tagged_by_its_target(tmp_path: Path) -> None:
    """English that is to become German or French says so; German and French need not."""
    for name, target in (("one.en-de.tsv", "wort {} hier"), ("two.en-fr.tsv", "mot {} ici")):
        rows = [f"word {number} here\t{target.format(number)}\n" for number in range(60)]
        (tmp_path / name).write_text("".join(rows), encoding="utf-8")
    valid = [f"line {number}\tfa {number}\n" for number in range(50)]
    (tmp_path / "dev.tsv").write_text("".join(valid), encoding="utf-8")
    files = tuple(str(tmp_path / name) for name in ("one.en-de.tsv", "two.en-fr.tsv"))
    inputs = Inputs(
        start="",
        out=str(tmp_path / "out"),
        train=(),
        valid=(str(tmp_path / "dev.tsv"),),
        test=(),
        options=ImproveOptions(related=files),
        languages=("en", "tw"),
    )
    shop = Workshop(inputs, Journal(inputs.work, {}), print)
    shop.journal.finish(Gather("gather", "", 1.0).run(shop, {}))
    assert shop.count("related") == 120
    assert tags(shop) == ["<bt>", "<to-de>", "<to-fr>"]
    german, french = (list(read_tsv(path)) for path, _ in related(shop, "parent"))
    assert ("<to-de> word 7 here", "wort 7 hier") in german
    assert ("wort 7 hier", "word 7 here") in german
    assert ("<to-fr> word 7 here", "mot 7 ici") in french


def test_a_model_whose_text_is_gone_needs_other_text(trained: Path, tmp_path: Path) -> None:
    valid = [f"line {number}\tZeile {number}\n" for number in range(60)]
    (tmp_path / "dev.tsv").write_text("".join(valid), encoding="utf-8")
    inputs = Inputs(
        start=str(trained),
        out=str(tmp_path / "out"),
        train=(),
        valid=(str(tmp_path / "dev.tsv"),),
        test=(),
        options=ImproveOptions(),
        languages=("en", "de"),
    )
    with pytest.raises(InputError, match="was trained on is not where it was; name parallel text"):
        plan_of(inputs)
    options = ImproveOptions(target_text=(str(tmp_path / "dev.tsv"),), reverse=str(trained))
    assert plan_of(replace(inputs, options=options))
