"""recipes/bundled_models.py with tiny models on a CPU: every stage, and again after a kill."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from dragoman.data.batches import Pairs
from dragoman.folder import layout
from dragoman.folder.description import load_description

RECIPE = Path(__file__).parents[2] / "recipes" / "bundled_models.py"
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
    'valid_sentences = 0\naverage = 1\nschedule = "cosine"\ncompile = "off"\ndevice = "cpu"\n'
)
TOKENIZER = 'tokenizer = { vocab_size = 320, tags = ["<bt>", "<2en>", "<2de>"] }\n'
PLAN = f"""
device = "cpu"
processes = 1
back = 1.0
student_back = 0.5
own_weight = 1.0
own_mono = 1.0
[teacher]
people = 1.0
absent = 1.0
[people]
people = 1.0
[own]
people = 1.0
[first]
preset = "tiny"
{TOKENIZER}
model = {{ norm_first = true, d_model = 64, d_ff = 64, n_heads = 2, decoder_layers = 2 }}
[first.training]
{TRAINING.format(500)}
[second]
preset = "tiny"
{TOKENIZER}
model = {{ norm_first = true, d_model = 64, d_ff = 64, n_heads = 2, decoder_layers = 2 }}
[second.training]
{TRAINING.format(2)}
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
{TRAINING.format(2)}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of models, from numbers in words."""
    folder = tmp_path_factory.mktemp("bundled")
    for name in ("train", "valid", "mono"):
        (folder / "text" / name).mkdir(parents=True)
    rows = [
        f"{english} {first}\t{german} {second}"
        for english, german in WORDS
        for first, second in WORDS
    ]
    for out, some in (("train/people", rows), ("valid/newstest2013", rows[::9])):
        text = "".join(f"{row}\n" for row in some)
        (folder / "text" / f"{out}.tsv").write_text(text, encoding="utf-8")
    for column, language in enumerate(("en", "de")):
        lines = "".join(f"{row.split(chr(9))[column]}\n" for row in rows[::3])
        (folder / "text" / "mono" / f"news.{language}").write_text(lines, encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    call(folder)
    return folder / "models"


def call(folder: Path) -> str:
    words = [sys.executable, str(RECIPE), str(folder / "text"), str(folder / "models")]
    words += ["--plan", str(folder / "plan.toml")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_every_stage_is_made(made: Path) -> None:
    for name in ("first", "second", "en-de", "de-en"):
        assert (made / name / layout.REPORT).exists(), name
    description, _ = load_description(made / "de-en")
    assert (description.source_language, description.target_language) == ("de", "en")
    assert description.model.decoder_layers == 1


@pytest.mark.slow
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


@pytest.mark.slow
def test_both_directions_have_their_tags(made: Path) -> None:
    manifest = json.loads((made / "first" / layout.DATA / layout.MANIFEST).read_text())
    assert manifest["train"][0]["pairs"] == 2 * len(WORDS) ** 2
    assert manifest["train"][1]["pairs"] == 0  # a kind for which there is no file
    _, tokenizer = load_description(made / "first")
    tags = [tokenizer.encode_normalised([tag], "source")[0] for tag in ("<2de>", "<2en>")]
    pairs = Pairs(made / "first" / layout.DATA / layout.TRAIN, "uint16")
    sources = pairs.batch(np.array([0, len(pairs) - 1])).source
    assert sources[:, :1].tolist() == tags


@pytest.mark.slow
def test_all_may_start_from_models_that_there_are(made: Path, tmp_path: Path) -> None:
    """Each begins as the model of the plan, and two small steps leave the students near it."""
    again = tmp_path / "bundled"
    again.mkdir()
    (again / "text").symlink_to(made.parent / "text")
    plan = PLAN.replace("[teacher]", f"start = '{made}'\n[teacher]")
    (again / "plan.toml").write_text(plan, encoding="utf-8")
    call(again)
    models = again / "models"
    assert (models / layout.TOKENIZER).read_bytes() == (made / layout.TOKENIZER).read_bytes()
    for name, origin in (("first", "en-de"), ("en-de", "en-de"), ("de-en", "de-en")):
        before = load_file(made / origin / layout.WEIGHTS)
        start = load_file(models / name / layout.START / layout.WEIGHTS)
        assert start.keys() == before.keys()
        assert all(start[key].equal(before[key]) for key in start), name
    for name in ("en-de", "de-en"):
        before = load_file(made / name / layout.WEIGHTS)
        after = load_file(models / name / layout.WEIGHTS)
        for key in before:
            if key.endswith("inner.weight"):
                distance = (after[key] - before[key]).norm() / before[key].norm()
                assert distance < 0.5, (name, key)


@pytest.mark.slow
def test_what_is_done_is_not_done_again(made: Path) -> None:
    weights = made / "second" / layout.WEIGHTS
    before = weights.stat().st_mtime_ns
    call(made.parent)
    assert weights.stat().st_mtime_ns == before
