"""`dragoman improve` from end to end on tiny text: what it writes, and that a run which was killed
and begun again is the same to the bit."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
from pathlib import Path

import pytest
import tiny
from improve_kills import digests, journal, kill_and_go_on, outcomes, prepare, words

from dragoman.folder.description import load_description


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("improve")
    prepare(folder)
    return folder


@pytest.fixture(scope="module")
def unbroken(place: Path, trained: Path) -> Path:
    """A run that was never killed."""
    command = tiny.run(words(place, trained, "whole"), place)
    assert command.wait() == 0, command.errors
    return place / "whole"


def test_every_step_is_told(unbroken: Path, trained: Path) -> None:
    done = {one["name"]: one for one in journal(unbroken)["done"]}
    assert list(done) == ["gather", "measure", "reverse", "back-translate-1", "average"]
    report = (unbroken / "report.md").read_text(encoding="utf-8")
    for name in done:
        assert f"| {name} |" in report
    assert "<svg" in (unbroken / "improvement.svg").read_text(encoding="utf-8")
    assert done["back-translate-1"]["p_value"] is not None
    # Nothing of the run is left in the result, and the model that was given is as it was.
    assert not (unbroken / "state").exists()
    assert (trained / "state").exists()


def test_what_is_not_proved_is_not_kept(unbroken: Path, trained: Path) -> None:
    """Four steps at a tiny rate change hardly a translation: the result is the model as it was."""
    outcomes = journal(unbroken)["done"]
    kept = [one["model"] for one in outcomes if one["kept"] and one["model"]]
    result = (unbroken / "model.safetensors").read_bytes()
    last = unbroken.with_name("whole.work") / kept[-1] / "model.safetensors"
    assert result == last.read_bytes()
    for one in outcomes:
        if one["p_value"] is not None and one["name"] != "reverse":
            assert one["kept"] == (one["after"] > one["before"] and one["p_value"] < 0.05)


@pytest.mark.parametrize("seed", [1, 3])
def test_killed_and_begun_again_it_is_the_same_to_the_bit(
    unbroken: Path, place: Path, trained: Path, seed: int
) -> None:
    draw = random.Random(seed)
    events = [draw.randrange(5, 150) for _ in range(2)]
    assert kill_and_go_on(place, trained, f"killed-{seed}", events)
    out = place / f"killed-{seed}"
    assert digests(out) == digests(unbroken)
    assert outcomes(out) == outcomes(unbroken)


def test_with_ray_it_is_the_same_to_the_bit(unbroken: Path, place: Path, trained: Path) -> None:
    pytest.importorskip("ray")
    command = tiny.run([*words(place, trained, "by-ray"), "--engine", "ray"], place)
    assert command.wait() == 0, command.errors
    assert digests(place / "by-ray") == digests(unbroken)
    assert outcomes(place / "by-ray") == outcomes(unbroken)


def test_other_inputs_are_refused(unbroken: Path, place: Path, trained: Path) -> None:
    other = [*words(place, trained, "whole"), "--seed", "5"]
    command = tiny.run(other, place)
    assert command.wait() == 2
    assert "was begun with another 'tables'" in command.errors
    assert os.path.exists(unbroken / "report.md")


def test_what_is_finished_is_left_alone(unbroken: Path, place: Path, trained: Path) -> None:
    before = digests(unbroken)
    command = tiny.run([*words(place, trained, "whole")[:-1], "--json"], place)
    assert command.wait() == 0, command.errors
    found = json.loads(command.output)
    assert [one["name"] for one in found["steps"]][-1] == "average"
    assert command.errors == ""
    assert digests(unbroken) == before


def test_a_full_disk_is_one_sentence_and_then_it_goes_on(
    unbroken: Path, place: Path, trained: Path
) -> None:
    line = words(place, trained, "full")
    command = tiny.run(line, place, _limit_files, 20_000)
    assert command.wait() == 2
    assert command.errors.startswith("error: no space is left ")
    assert command.errors.endswith("; free some space, then run the command again\n")
    assert command.errors.count("\n") == 1
    again = tiny.run(line, place)
    assert again.wait() == 0, again.errors
    assert digests(place / "full") == digests(unbroken)


def test_what_is_there_stays(place: Path, trained: Path) -> None:
    """Neither a folder in the place of the result nor one in the place of the work is touched."""
    for name in ("taken", "taken-too.work"):
        (place / name).mkdir()
        (place / name / "thesis").write_text("years of work", encoding="utf-8")
    for name in ("taken", "taken-too"):
        command = tiny.run(words(place, trained, name), place)
        assert command.wait() == 2
        assert "exists already; name another --out" in command.errors
    assert not (place / "taken.work").exists()
    assert not (place / "taken-too").exists()
    assert [path.name for path in (place / "taken-too.work").iterdir()] == ["thesis"]


def test_text_of_the_test_set_is_dropped_and_said(place: Path, trained: Path) -> None:
    """A corpus that is nothing but the valid set leaves nothing to train on."""
    line = words(place, trained, "repeated")
    valid = [str(place / f"dev.{side}") for side in ("en", "de")]
    line[line.index("--text") + 1 : line.index("--valid")] = valid
    command = tiny.run(line, place)
    assert command.wait() == 2
    assert "60 repeat the valid or test set" in command.errors
    assert not (place / "repeated.work").exists()


def test_a_student_as_wide_as_its_teacher_starts_from_it(place: Path, trained: Path) -> None:
    """After four small steps it still says most of what the teacher says."""
    told = [word for word in words(place, trained, "taught") if word != "--quiet"]
    command = tiny.run([*told, "--student"], place)
    assert command.wait() == 0, command.errors
    assert "The student starts from its teacher: encoder layer 1 of 1" in command.errors
    student = outcomes(place / "taught")[-1]
    assert student["name"] == "student"
    assert student["after"] > 0.8 * student["before"] > 40
    folder = place / "taught-student"
    of_teacher = load_description(trained)[0].model
    shape = load_description(folder)[0].model
    assert (shape.d_model, shape.decoder_layers) == (of_teacher.d_model, 1)
    assert (folder / "shortlist.safetensors").exists()


def test_no_reverse_direction(place: Path, trained: Path) -> None:
    model = place / "bare"
    shutil.copytree(trained, model, ignore=shutil.ignore_patterns("state", "training.toml"))
    line = words(place, model, "one-way")
    start = line.index("--text")
    del line[start : start + 3]
    command = tiny.run(line, place)
    assert command.wait() == 2
    assert "without a model of the opposite direction" in command.errors


def _limit_files(most: int) -> None:
    """As if the disk had no space for a file of more bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
