"""recipes/distil.py: a teacher's translations become the text of a student, which then trains
from its folder alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from dragoman import Translator
from dragoman.config import load_toml
from dragoman.data.batches import Pairs
from dragoman.folder.description import load_description
from dragoman.training import run

DISTIL = Path(__file__).parents[2] / "recipes" / "distil.py"
STUDENT = """preset = "tiny"
[model]
d_model = 16
n_heads = 2
d_ff = 32
encoder_layers = 1
decoder_layers = 1
[training]
steps = 3
batch_tokens = 256
valid_sentences = 0
"""


def test_a_student_learns_what_its_teacher_says(trained: Path, tmp_path: Path) -> None:
    """Also of a teacher whose own text was cut anew in each epoch: the student has tokens alone."""
    teacher, student = tmp_path / "teacher", tmp_path / "student"
    shutil.copytree(trained, teacher)
    options = (teacher / "training.toml").read_text(encoding="utf-8")
    (teacher / "training.toml").write_text(
        options.replace("sampling = 0.0", "sampling = 0.1"), encoding="utf-8"
    )
    (tmp_path / "student.toml").write_text(STUDENT, encoding="utf-8")
    words = [
        sys.executable,
        str(DISTIL),
        str(teacher),
        str(student),
        "--config",
        str(tmp_path / "student.toml"),
    ]
    done = subprocess.run(
        [*words, "--workers", "2"], capture_output=True, text=True, check=True, timeout=300
    )
    manifest = json.loads(
        (student / "state" / "data" / "manifest.json").read_text(encoding="utf-8")
    )
    count = manifest["train"][0]["pairs"]
    assert done.stdout.startswith(f"{count:,} pairs, ")

    before = Pairs(teacher / "state" / "data" / "train", manifest["dtype"])
    after = Pairs(student / "state" / "data" / "train", manifest["dtype"])
    assert 0.9 * len(before) < count == len(after) <= len(before)
    known = {tuple(before.row(0, row).tolist()) for row in range(len(before))}
    rows = np.random.default_rng(1).choice(count, 20, replace=False)
    assert {tuple(after.row(0, int(row)).tolist()) for row in rows} <= known
    description, tokenizer = load_description(teacher)
    sources, targets = (
        tokenizer.decode([after.row(side, int(row)).tolist() for row in rows]) for side in (0, 1)
    )
    said = Translator.load(teacher, "cpu", "torch").translate(sources, split=False)
    assert (
        sum(one.text == target for one, target in zip(said, targets, strict=True)) >= 18
    )  # those are of a beam, these greedy

    assert load_toml(student / "training.toml")["tokenizer"]["sampling"] == 0.0
    assert load_description(student)[0].model.vocab_size == description.model.vocab_size
    assert run.resume(student, {}, print) == "steps"
