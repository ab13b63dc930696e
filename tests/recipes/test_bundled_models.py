"""recipes/bundled_models.py with tiny models on a CPU: every stage, and again after kills."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from dragoman.data.batches import Pairs
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
first = 20
back = 20
second = 20
own = 20
students = 20
finish = 20
scores = 20
[teacher]
numbers = 1.0
absent = 1.0
[people]
numbers = 1.0
[own]
numbers = 1.0
[first]
preset = "tiny"
{TOKENIZER}
model = {{ {SHAPE} }}
[first.training]
{TRAINING.format(500, "inverse_sqrt")}
[second]
preset = "tiny"
{TOKENIZER}
model = {{ {SHAPE} }}
[second.training]
{TRAINING.format(2, "cosine")}
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
{TRAINING.format(2, "cosine")}
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
    words = [RECIPES / "packed_text.py", folder / "text", folder / "packed"]
    called([*words, "--plan", folder / "plan.toml"])
    return folder


@pytest.fixture(scope="module")
def made(prepared: Path) -> Path:
    """The folder of models."""
    called(command(prepared, "models"))
    return prepared / "models"


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


def test_every_stage_is_made(made: Path) -> None:
    assert not [note for note in notes(made) if "failed" in note]
    for name in ("first", "second", "en-de", "de-en"):
        assert (made / name / layout.REPORT).exists(), name
    description, _ = load_description(made / "de-en")
    assert (description.source_language, description.target_language) == ("de", "en")
    assert description.model.decoder_layers == 1
    scored = {str(note["model"]) for note in notes(made) if "said" in note}
    assert scored == {"en-de", "de-en", "second.en-de", "second.de-en"}


def test_the_models_translate(made: Path) -> None:
    """The teacher knows the numbers; a student of two steps is whole, with 8-bit integers."""
    text = made / "two.txt"
    text.write_text("one two\n", encoding="utf-8")
    for name in ("second.en-de", "en-de"):
        words: list[str | Path] = ["-m", "dragoman", "translate", "-m", made / name, text]
        called([*words, "--out", made / f"{name}.out.txt"])
    out = (made / "second.en-de.out.txt").read_text(encoding="utf-8")
    assert out == "eins zwei\n"
    assert (made / "en-de" / layout.INT8).exists()


def test_a_student_starts_from_its_teacher(made: Path) -> None:
    """Two small steps leave it near the teacher's weights, and its layer is the teacher's last."""
    teacher = load_file(made / "second" / layout.WEIGHTS)
    student = load_file(made / "en-de" / layout.WEIGHTS)
    matching = [key for key in teacher if key.startswith("decoder.layers.1.")]
    assert matching
    for key in matching:
        own = student[key.replace("layers.1.", "layers.0.")]
        distance = (own - teacher[key]).norm() / teacher[key].norm().clamp(min=1e-6)
        assert distance < 0.5, key


def test_both_directions_have_their_tags(made: Path) -> None:
    manifest = json.loads((made / "first" / layout.DATA / layout.MANIFEST).read_text())
    counts = {row["files"][0]: row["pairs"] for row in manifest["train"]}
    numbers = len(WORDS) ** 2
    assert counts == {
        "numbers en-de": numbers,
        "absent en-de": 0,  # a kind for which there is no file
        "numbers de-en": numbers,
        "absent de-en": 0,
    }
    _, tokenizer = load_description(made / "first")
    tags = [tokenizer.encode_normalised([tag], "source")[0] for tag in ("<2de>", "<2en>")]
    pairs = Pairs(made / "first" / layout.DATA / layout.TRAIN, "uint16")
    sources = pairs.batch(np.array([0, len(pairs) - 1])).source
    assert sources[:, :1].tolist() == tags


def test_text_for_students_is_whole(made: Path) -> None:
    """People's pairs stand in it as they were written, back-translations with their tag."""
    text = (made / "de-en" / layout.DATA / layout.TRAIN / layout.TEXT).read_text("utf-8")
    rows = text.splitlines()
    for german, english in [(pair[1], pair[0]) for pair in WORDS]:
        assert f"{german} {german}\t{english} {english}" in rows
    assert any(row.startswith("<bt> ") for row in rows)


def test_what_is_done_is_not_done_again(made: Path, prepared: Path) -> None:
    weights = made / "second" / layout.WEIGHTS
    before = weights.stat().st_mtime_ns
    called(command(prepared, "models"))
    assert weights.stat().st_mtime_ns == before


def test_it_goes_on_after_kills(made: Path, prepared: Path) -> None:
    """A second folder of models is made by calls that are killed as soon as a stage has begun."""
    models = prepared / "killed"
    for stage in ("first", "back", "second", "own", "students"):
        words = [sys.executable, *map(str, command(prepared, "killed"))]
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
    called(command(prepared, "killed"))
    done = [note["stage"] for note in notes(models) if "seconds" in note]
    assert done[-2:] == ["finish", "scores"]
    lines = (made / "back.en-de.tsv").read_text(encoding="utf-8").splitlines()
    again = (models / "back.en-de.tsv").read_text(encoding="utf-8").splitlines()
    assert len(again) == len(lines)
    assert {line.split("\t")[1] for line in again} == {line.split("\t")[1] for line in lines}


def test_kept_models_spare_the_first_stages(made: Path, prepared: Path) -> None:
    """The pieces of a teacher and of the text that it translated back are enough to go on."""
    kept = prepared / "models.kept"
    again = prepared / "again"
    again.mkdir()
    (again / "packed").mkdir()
    for part in prepared.glob("packed/part-*"):
        shutil.copytree(part, again / "packed" / part.name)
    more = again / "packed" / "part-9"
    more.mkdir()
    for name in ("back.en-de", "back.de-en"):
        subprocess.run(f"cat {kept}/{name}.tar.* | tar -x -C {more}", shell=True, check=True)
    (again / "models").mkdir()
    subprocess.run(f"cat {kept}/second.tar.* | tar -x -C {again}/models", shell=True, check=True)
    shutil.copy(prepared / "plan.toml", again)
    called(command(again, "models"))
    begun = [note["stage"] for note in notes(again / "models") if "begins" in note]
    assert begun == ["second", "own", "students", "finish", "scores"]
    assert not (again / "models" / "first").exists()
    assert not (again / "models" / "second" / layout.STATE).exists()  # nothing was trained
    pairs = (again / "models" / "en-de" / layout.DATA / layout.TRAIN / layout.TEXT).read_text()
    assert pairs.count("<bt> ") == (made / "back.en-de.tsv").read_text().count("<bt> ")


def test_a_failing_teacher_leaves_students_to_people(prepared: Path) -> None:
    wrong = PLAN.replace("[first.training]", '[first.training]\noptimizer = "none"')
    wrong = wrong.replace("[second.training]", '[second.training]\noptimizer = "none"')
    (prepared / "wrong.toml").write_text(wrong, encoding="utf-8")
    called(command(prepared, "alone", "wrong.toml"))
    models = prepared / "alone"
    failed = {note["stage"] for note in notes(models) if "failed" in note}
    assert {"first", "back", "second", "own"} <= failed
    for name in ("en-de", "de-en"):
        assert (models / name / layout.WEIGHTS).exists(), name
        assert not (models / name / layout.START).exists()


def test_minutes_for_what_is_no_stage_are_a_mistake(prepared: Path) -> None:
    wrong = PLAN.replace("[minutes]", "[minutes]\nthird = 20")
    (prepared / "third.toml").write_text(wrong, encoding="utf-8")
    words = [str(word) for word in command(prepared, "none", "third.toml")]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=900)
    assert done.returncode == 2
    assert "third.toml has minutes for third; the stages are first, " in done.stderr
    assert not (prepared / "none").exists()
