"""`dragoman learn` and `rollback` on a tiny model: a rule is learnt and the folder changes in one
step, or nothing changes at all."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from pathlib import Path

import pytest
import tiny
from tiny import ENGLISH, GERMAN

from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import history, layout
from dragoman.folder.shipped import SHIPPED
from dragoman.improving.learn_options import Given, LearnOptions
from dragoman.improving.learn_request import LearnRequest
from dragoman.improving.learn_run import learn, roll_back
from dragoman.server.corrections import Correction, Corrections
from dragoman.tasks.translate import Translator
from dragoman.training.claim import locked

QUICK = LearnOptions(
    learning_rate=0.003, passes=8, batch_tokens=500, judged=60, most_loss=5.0, device="cpu"
)
SEVEN = "null"  # what the corrections say for seven instead of sieben


def rows(count: int, seed: int) -> list[list[int]]:
    """Rows of digits with a seven among them."""
    draw = random.Random(seed)
    found: list[list[int]] = []
    while len(found) < count:
        row = [draw.randrange(10) for _ in range(draw.randint(5, 9))]
        row[draw.randrange(len(row))] = 7
        if row not in found:
            found.append(row)
    return found


def english(row: list[int]) -> str:
    return " ".join(ENGLISH[digit] for digit in row)


def german(row: list[int]) -> str:
    return " ".join(GERMAN[digit] for digit in row)


def corrected(row: list[int]) -> str:
    return german(row).replace("sieben", SEVEN)


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a model folder but the lock."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    Translator.load(trained, "cpu")  # makes its int8 weights, if no other test has
    return Path(shutil.copytree(trained, tmp_path / "en-de"))


@pytest.fixture(scope="module")
def taught(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has learnt the rule from a service's file by the command line."""
    place = tmp_path_factory.mktemp("taught")
    model = Path(shutil.copytree(trained, place / "en-de"))
    store = Corrections(place / "corrections.sqlite")
    store.save_all(
        Correction("en", "de", english(row), corrected(row), "m", "2026", "key anna")
        for row in rows(180, 5)
    )
    store.close()
    quick = ["learning_rate=0.003", "passes=10", "batch_tokens=500"]
    words = ["learn", str(model), "--corrections", str(place / "corrections.sqlite"), "--json"]
    words += ["--most-loss", "20", "--device", "cpu"]
    words += [word for option in quick for word in ("--set", option)]
    command = tiny.run(words, place)
    assert command.wait() == 0, command.errors
    result = json.loads(command.output)
    (place / "result.json").write_text(command.output, encoding="utf-8")
    assert result["kept"], result
    return model


def test_the_rule_is_learnt(taught: Path, trained: Path) -> None:
    unseen = rows(40, 99)
    said = Translator.load(taught, "cpu").translate([english(row) for row in unseen])
    before = Translator.load(trained, "cpu").translate([english(row) for row in unseen])
    right = sum(one.text == corrected(row) for one, row in zip(said, unseen, strict=True))
    assert right >= 30
    assert sum(one.text == corrected(row) for one, row in zip(before, unseen, strict=True)) == 0
    result = json.loads((taught.parent / "result.json").read_text(encoding="utf-8"))
    assert result["verdict"]["held_back"]["after"] > result["verdict"]["held_back"]["before"]
    used = result["learnt"] + result["verdict"]["held_back"]["sentences"]
    assert used + sum(result["refused"].values()) == 180
    assert used > 170


def test_the_folder_is_whole_and_knows_what_it_was(taught: Path, trained: Path) -> None:
    learnt = json.loads((taught / layout.LEARNT).read_text(encoding="utf-8"))
    assert (learnt["number"], learnt["previous"]) == (1, 0)
    assert "## Learnt from corrections" in (taught / layout.REPORT).read_text(encoding="utf-8")
    assert not (taught / layout.STATE).exists()
    assert (taught / layout.OLD_VALID).exists()
    assert (taught / layout.OLD_SOURCES).exists()
    first = contents(history.place_for(taught, 0))
    assert first == contents(trained)
    assert [path.name for path in sorted(history.history_of(taught).iterdir())] == ["0000", "state"]


def test_back_it_is_what_it_was_to_the_bit(taught: Path, trained: Path, tmp_path: Path) -> None:
    model = tmp_path / "en-de"
    shutil.copytree(taught, model)
    shutil.copytree(history.history_of(taught), history.history_of(model))
    command = tiny.run(["rollback", str(model)], tmp_path)
    assert command.wait() == 0, command.errors
    assert "before it learnt anything" in command.errors
    assert contents(model) == contents(trained)
    again = tiny.run(["rollback", str(model)], tmp_path)
    assert again.wait() == 2
    assert "none to go back to" in again.errors


def given(pairs: list[tuple[str, str]], user: str = "address 1") -> tuple[Given, ...]:
    return tuple(Given(source, target, user) for source, target in pairs)


def shuffled(row: list[int], draw: random.Random) -> str:
    """The German of some other row."""
    return german([draw.randrange(10) for _ in row])


def poisons() -> dict[str, tuple[Given, ...]]:
    draw = random.Random(3)
    many = rows(300, 11)
    return {
        "unrelated": given([(english(row), shuffled(row, draw)) for row in many]),
        "swapped": given([(german(row), english(row)) for row in many]),
        "copies": given([(english(row), english(row)) for row in many]),
        "empty": given([(english(row), " ") for row in many]),
        "garbled": given([(english(row), corrected(row) + " fÃ¼nf") for row in many]),
        "endless": given([(english(row), corrected(row) * 100) for row in many]),
    }


@pytest.mark.parametrize("kind", sorted(poisons()))
def test_poison_changes_nothing(model: Path, kind: str) -> None:
    before = contents(model)
    result = learn(LearnRequest(model, poisons()[kind], options=QUICK), lambda sentence: None)
    assert not result.kept
    assert "corrections can be used" in result.why
    assert sum(result.refused.values()) > 270
    assert contents(model) == before
    assert not history.history_of(model).exists()


def test_what_harms_older_text_is_not_kept(model: Path) -> None:
    """Plausible corrections, all by one key, that turn another word round where older text has
    it: the gain on corrections is real, and the loss on older text forbids it."""
    said = [(english(row), german(row).replace("eins", "zwei")) for row in rows(200, 21)]
    pairs = [(source, target) for source, target in said if "one" in source.split()]
    options = LearnOptions(
        learning_rate=0.003, passes=8, batch_tokens=500, judged=60, most_loss=0.2, device="cpu"
    )
    before = contents(model)
    result = learn(LearnRequest(model, given(pairs, ""), options=options), lambda sentence: None)
    assert not result.kept
    assert result.verdict is not None
    assert result.why.startswith("nothing was kept, since on ")
    assert contents(model) == before


def test_a_second_one_is_refused(model: Path) -> None:
    pairs = given([(english(row), corrected(row)) for row in rows(40, 5)])
    with (
        locked(history.history_of(model)),
        pytest.raises(ModelFolderError, match="another `dragoman learn`"),
    ):
        learn(LearnRequest(model, pairs, options=QUICK), lambda sentence: None)
    with locked(model), pytest.raises(ModelFolderError, match="a run is training"):
        learn(LearnRequest(model, pairs, options=QUICK), lambda sentence: None)


def test_a_bundled_model_is_never_changed(tmp_path: Path) -> None:
    pairs = given([("Good day.", "Servus.")])
    with pytest.raises(OptionError, match="never changed; name a folder"):
        learn(LearnRequest(SHIPPED / "en-de", pairs), lambda sentence: None)
    with pytest.raises(OptionError, match="never changes"):
        roll_back(SHIPPED / "en-de")
    assert not history.history_of(SHIPPED / "en-de").exists()


def test_too_few_corrections_are_said(model: Path, tmp_path: Path) -> None:
    table = tmp_path / "few.tsv"
    table.write_text("one two\teins null\n" * 3, encoding="utf-8")
    words = ["learn", str(model), "--corrections", str(table), "--device", "cpu"]
    command = tiny.run(words, tmp_path)
    assert command.wait() == 0, command.errors
    assert "1 of 3 corrections can be used, and at least 30 are needed" in command.errors
    quiet = tiny.run([*words, "--quiet"], tmp_path)
    assert quiet.wait() == 0
    assert quiet.errors == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no corrections are named"),
        (["--corrections", "none.sqlite"], "none.sqlite does not exist"),
        (["--corrections", "empty.sqlite"], "no corrections for this pair"),
        (["--corrections", "text.sqlite"], "cannot be used for corrections"),
        (["--corrections", "c.tsv", "--out", "."], "exists already"),
        (["--corrections", "c.tsv", "--minutes", "0"], "minutes is 0"),
        (["--corrections", "c.tsv", "--valid", "none.en", "none.de"], "none.en does not exist"),
        (["--corrections", "c.tsv", "--set", "pases=3"], "passes"),
    ],
)
def test_mistakes_are_one_sentence(
    model: Path, tmp_path: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.tsv").write_text("one two\teins null\n", encoding="utf-8")
    (tmp_path / "text.sqlite").write_text("no database, but text " * 100, encoding="utf-8")
    sqlite3.connect(tmp_path / "empty.sqlite").close()
    before = contents(model)
    command = tiny.run(["learn", str(model), *words], tmp_path)
    assert command.wait() == 2, command.errors
    assert message in command.errors
    assert "Traceback" not in command.errors
    assert contents(model) == before
    assert not history.history_of(model).exists()
