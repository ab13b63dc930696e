"""recipes/bundled_models.py with tiny models on a CPU: every stage, and again after kills."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import Tensor

from dragoman.folder import layout
from dragoman.folder.description import load_description

RECIPES = Path(__file__).parents[2] / "recipes"
WORDS = (
    ("one", "eins"),
    ("two", "zwei"),
    ("three", "drei"),
    ("four", "vier"),
    ("five", "fünf"),
    ("six", "sechs"),
    ("seven", "sieben"),
    ("eight", "acht"),
)
TRAINING = (
    "steps = {}\nbatch_tokens = 600\nlearning_rate = 0.003\nwarmup = 20\nsave_every = 1000\n"
    'valid_sentences = 0\naverage = 1\nschedule = "{}"\ncompile = "off"\ndevice = "cpu"\n'
)
TOKENIZER = 'tokenizer = { vocab_size = 320, tags = ["<bt>", "<2en>", "<2de>"], copies = true }\n'
SHAPE = "norm_first = true, d_model = 64, d_ff = 64, n_heads = 2, decoder_layers = 2"
PLAN = f"""
device = "cpu"
processes = 2
beam = 1
back = 1.0
student_back = 0.5
own_weight = 1.0
[minutes]
back = 0
teachers = 20
own = 20
students = 20
finish = 20
scores = 20
[people.teacher]
numbers = 1.0
absent = 1.0
[people.student]
numbers = 1.0
[own]
numbers = 1.0
[teacher]
preset = "tiny"
{TOKENIZER}
model = {{ {SHAPE} }}
[teacher.training]
{TRAINING.format(500, "inverse_sqrt")}
[student]
preset = "student"
{TOKENIZER}
data = {{ augment = true }}
[student.model]
norm_first = true
d_model = 64
d_ff = 64
n_heads = 2
encoder_layers = 2
decoder_layers = 1
[student.training]
select = "loss"
{TRAINING.format(300, "cosine")}
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with packed text, from numbers in words, and a plan."""
    folder = tmp_path_factory.mktemp("bundled")
    for name in ("train", "valid", "mono"):
        (folder / "text" / name).mkdir(parents=True)
    rows = [
        f"{english} {first}\t{german} {second}"
        for english, german in WORDS
        for first, second in WORDS
    ]
    for out, some in (("train/numbers", rows), ("valid/newstest2013", rows[::9])):
        text = "".join(f"{row}\n" for row in some)
        (folder / "text" / f"{out}.tsv").write_text(text, encoding="utf-8")
    for side, language in enumerate(("en", "de")):
        lines = "".join(f"{row.split(chr(9))[side]}\n" for row in rows[::3])
        (folder / "text" / "mono" / f"news.{language}").write_text(lines, encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    further = f'before = "{folder / "models"}"\n{PLAN}'
    further = further.replace("back = 0\n", "back = 20\n").replace("steps = 500", "steps = 2")
    further = further.replace("steps = 300", "steps = 2")
    (folder / "further.toml").write_text(further, encoding="utf-8")
    short = PLAN.replace("steps = 300", "steps = 2")
    (folder / "short.toml").write_text(short, encoding="utf-8")
    words = [RECIPES / "packed_text.py", folder / "text", folder / "packed"]
    called([*words, "--plan", folder / "plan.toml"])
    return folder


@pytest.fixture(scope="module")
def made(prepared: Path) -> Path:
    """The folder of models of a first run, which has none of before."""
    called(command(prepared, "models"))
    return prepared / "models"


@pytest.fixture(scope="module")
def again(made: Path, prepared: Path) -> Path:
    """The folder of models of a run that is given the pieces of the teachers of the first."""
    folder = prepared / "again"
    folder.mkdir()
    for name in ("teacher.en-de", "teacher.de-en"):
        pieces = f"cat {made}.kept/{name}.tar.*"
        subprocess.run(f"{pieces} | tar -x -C {folder}", shell=True, check=True)
    called(command(prepared, "again", "short.toml"))
    return folder


@pytest.fixture(scope="module")
def further(made: Path, prepared: Path) -> Path:
    """The folder of models of a run that goes on from there."""
    called(command(prepared, "further", "further.toml"))
    return prepared / "further"


def command(folder: Path, models: str, plan: str = "plan.toml") -> list[str | Path]:
    words = [RECIPES / "bundled_models.py", folder / "packed", folder / models]
    return [*words, "--plan", folder / plan, "--keep", folder / f"{models}.kept"]


def called(words: list[str | Path]) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def notes(models: Path) -> list[dict[str, object]]:
    text = (models / "stages.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def own_pairs(models: Path, direction: str) -> list[tuple[str, ...]]:
    """What a teacher wrote: sources and translations."""
    lines = (models / f"own.{direction}.tsv").read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines]


def student_rows(models: Path, direction: str) -> list[str]:
    """The text that a student learnt from."""
    text = models / direction / layout.DATA / layout.TRAIN / layout.TEXT
    return text.read_text(encoding="utf-8").splitlines()


def test_every_stage_is_made(made: Path, further: Path) -> None:
    for models in (made, further):
        assert not [note for note in notes(models) if "failed" in note]
        for name in ("teacher.en-de", "teacher.de-en", "en-de", "de-en"):
            assert (models / name / layout.REPORT).exists(), name
        scored = {str(note["model"]) for note in notes(models) if "said" in note}
        assert scored == {"en-de", "de-en", "teacher.en-de", "teacher.de-en"}
    begun = [note["stage"] for note in notes(made) if "begins" in note]
    assert begun == ["teachers", "own", "students", "finish", "scores"]
    begun = [note["stage"] for note in notes(further) if "begins" in note]
    assert begun == ["back", "teachers", "own", "students", "finish", "scores"]
    description, _ = load_description(further / "de-en")
    assert (description.source_language, description.target_language) == ("de", "en")
    assert description.model.decoder_layers == 1


def test_the_models_translate(made: Path) -> None:
    """The teacher knows the numbers; its student is whole, with 8-bit integers."""
    text = made / "two.txt"
    text.write_text("one two\n", encoding="utf-8")
    for name in ("teacher.en-de", "en-de"):
        words: list[str | Path] = ["-m", "dragoman", "translate", "-m", made / name, text]
        called([*words, "--out", made / f"{name}.out.txt"])
    out = (made / "teacher.en-de.out.txt").read_text(encoding="utf-8")
    assert out == "eins zwei\n"
    assert (made / "en-de" / layout.INT8).exists()


def test_a_student_starts_from_its_teacher(again: Path) -> None:
    """Two small steps leave it near the teacher's weights, and its layer is the teacher's last."""
    teacher = load_file(again / "teacher.en-de" / layout.WEIGHTS)
    student = load_file(again / "en-de" / layout.WEIGHTS)
    matching = [key for key in teacher if key.startswith("decoder.layers.1.")]
    assert matching
    for key in matching:
        own = student[key.replace("layers.1.", "layers.0.")]
        assert distance(own, teacher[key]) < 0.5, key


def test_a_teacher_goes_on_from_the_model_of_before(made: Path, further: Path) -> None:
    """Two small steps leave it near the student of the first run, whose decoder has one layer; the
    second layer has hardly begun to say anything."""
    before = load_file(made / "de-en" / layout.WEIGHTS)
    teacher = load_file(further / "teacher.de-en" / layout.WEIGHTS)
    for key in before:
        assert distance(teacher[key], before[key]) < 0.5, key
    silent = teacher["decoder.layers.1.feedforward.outer.weight"]
    speaking = teacher["decoder.layers.0.feedforward.outer.weight"]
    assert silent.norm() < speaking.norm() / 2


def distance(own: Tensor, origin: Tensor) -> float:
    return float((own - origin).norm() / origin.norm().clamp(min=1e-6))


def test_teachers_read_what_was_translated_back(further: Path) -> None:
    manifest = json.loads((further / "teacher.en-de" / layout.DATA / layout.MANIFEST).read_text())
    counts = {row["files"][0]: row["pairs"] for row in manifest["train"]}
    lines = (further / "back.en-de.tsv").read_text(encoding="utf-8").splitlines()
    assert lines
    # "absent" is a kind for which there is no file.
    assert counts == {"numbers": len(WORDS) ** 2, "absent": 0, "back": len(lines)}
    assert all(line.startswith("<bt> ") for line in lines)


def test_text_for_students_is_whole(made: Path) -> None:
    """People's pairs stand in it as they were written. What the teacher of the other direction
    wrote is reversed and has the tag of back-translations."""
    rows = student_rows(made, "de-en")
    for german, english in [(pair[1], pair[0]) for pair in WORDS]:
        assert f"{german} {german}\t{english} {english}" in rows
    own = {f"{source}\t{target}" for source, target in own_pairs(made, "de-en")}
    assert own <= set(rows)
    back = sorted(row for row in rows if row.startswith("<bt> "))
    written = own_pairs(made, "en-de")
    assert back == sorted(f"<bt> {german}\t{english}" for english, german in written)


def test_what_is_done_is_not_done_again(made: Path, prepared: Path) -> None:
    weights = made / "teacher.en-de" / layout.WEIGHTS
    before = weights.stat().st_mtime_ns
    called(command(prepared, "models"))
    assert weights.stat().st_mtime_ns == before


def test_it_goes_on_after_kills(further: Path, prepared: Path) -> None:
    """A second folder of models is made by calls that are killed as soon as a stage has begun."""
    models = prepared / "killed"
    words: list[str | Path] = [sys.executable]
    words += command(prepared, "killed", "further.toml")
    for stage in ("back", "teachers", "own", "students"):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            note = json.loads(line) if line.startswith("{") else {}
            if note.get("begins") and note["stage"] == stage:
                break
        time.sleep(1)  # in the midst of it, or just behind it: both must go on
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    called(words[1:])
    done = [note["stage"] for note in notes(models) if "seconds" in note]
    assert done[-2:] == ["finish", "scores"]
    lines = (further / "back.en-de.tsv").read_text(encoding="utf-8").splitlines()
    again = (models / "back.en-de.tsv").read_text(encoding="utf-8").splitlines()
    assert len(again) == len(lines)
    assert {line.split("\t")[1] for line in again} == {line.split("\t")[1] for line in lines}


def test_kept_teachers_spare_their_training(again: Path) -> None:
    """The pieces of both are enough to go on."""
    assert not [note for note in notes(again) if "failed" in note]
    assert not (again / "teacher.en-de" / layout.STATE).exists()  # nothing was trained
    assert {row for row in student_rows(again, "en-de") if row.startswith("<bt> ")}
    assert (again / "en-de" / layout.INT8).exists()


def test_a_failing_teacher_leaves_students_to_people(prepared: Path) -> None:
    wrong = PLAN.replace("[teacher.training]", '[teacher.training]\noptimizer = "none"')
    (prepared / "wrong.toml").write_text(wrong, encoding="utf-8")
    called(command(prepared, "alone", "wrong.toml"))
    models = prepared / "alone"
    failed = {note["stage"] for note in notes(models) if "failed" in note}
    assert failed == {"teachers", "own"}
    for name in ("en-de", "de-en"):
        assert (models / name / layout.WEIGHTS).exists(), name
        assert not (models / name / layout.START).exists()


def test_minutes_for_what_is_no_stage_are_a_mistake(prepared: Path) -> None:
    wrong = PLAN.replace("[minutes]", "[minutes]\nthird = 20")
    (prepared / "third.toml").write_text(wrong, encoding="utf-8")
    words = [str(word) for word in command(prepared, "none", "third.toml")]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=900)
    assert done.returncode == 2
    assert "third.toml has minutes for third; the stages are back, " in done.stderr
    assert not (prepared / "none").exists()
