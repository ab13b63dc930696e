"""Distillation: a teacher's translations become the text of a student, which is trained from its
folder alone; killed anywhere, it goes on; and what does not fit is refused."""

from __future__ import annotations

import functools
import gzip
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import tiny

from dragoman import Translator
from dragoman.config import load_toml
from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import load_description
from dragoman.improving import best_pairs
from dragoman.improving.distillation import Distillation, distil
from dragoman.improving.passage_journal import journal_of
from dragoman.improving.text_through_model import Course, Machines

STUDENT = """preset = "tiny"
[model]
d_model = 16
n_heads = 2
d_ff = 32
encoder_layers = 1
decoder_layers = 1
[training]
steps = 6
save_every = 2
average = 1
batch_tokens = 256
valid_sentences = 0
device = "cpu"
precision = "float32"
"""
HERE = Machines("cpu", 1, "torch")


def recipe() -> dict[str, Any]:
    import tomllib

    return tomllib.loads(STUDENT)


def rows(file: Path) -> list[list[str]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return Path(tiny.write_corpus(tmp_path, "mono", 500, seed=5, longest=6, turned=False)[0])


def test_a_student_learns_what_its_teacher_says(trained: Path, tmp_path: Path) -> None:
    """Of the text in the teacher's folder, with the teacher's vocabulary."""
    student = tmp_path / "student"
    said: list[str] = []
    options = Distillation(student=recipe(), machines=HERE)
    done = distil(trained, student, options, None, said.append)
    assert done.reason == "steps"

    pairs = rows(student / layout.DISTILLED_PAIRS)
    corpus = (trained.parent / "digits.en").read_text(encoding="utf-8").splitlines()
    assert done.pairs == done.counts.pairs == len(pairs)
    assert 0.85 * len(corpus) < len(pairs)
    assert {source for source, _ in pairs} <= {*corpus}
    sources = [source for source, _ in pairs[:50]]
    teacher = Translator.load(trained, "cpu", "torch")
    greedy = teacher.translate(sources, beam_one())
    assert [one.text for one in greedy] == [target for _, target in pairs[:50]]

    teachers = load_description(trained)[1]
    description, tokenizer = load_description(student)
    assert tokenizer.serialised() == teachers.serialised()
    assert description.model.d_model == 16
    assert (description.source_language, description.target_language) == ("en", "de")
    assert load_toml(student / "training.toml")["data"]["valid"][0].endswith(layout.VALID_TEXT)
    assert (student / "shortlist.safetensors").exists()
    assert (student / "model.int8.safetensors").exists()
    assert any("shortlist" in sentence for sentence in said)
    assert Translator.load(student, "cpu", "int8", shortlist=True).translate("one two") is not None

    weights = (student / "model.safetensors").read_bytes()
    again = distil(trained, student, options, None, said.append)
    assert (again.counts, again.pairs) == (done.counts, done.pairs)
    assert (student / "model.safetensors").read_bytes() == weights


def test_a_student_starts_from_its_teacher(trained: Path, tmp_path: Path) -> None:
    """With nothing learnt yet, it already says what its teacher says; one of another width says
    that it starts from random weights."""
    still = recipe()
    still["training"] |= {
        "steps": 1,
        "schedule": "constant",
        "learning_rate": 1e-12,
        "warmup": 1,
        "valid_sentences": 50,
    }
    still["model"] = asdict(load_description(trained)[0].model)
    for name in ("vocab_size", "source_vocab_size"):
        del still["model"][name]
    losses: dict[str, float] = {}
    for name, d_model in (("same", still["model"]["d_model"]), ("wider", 64)):
        tables = {**still, "model": {**still["model"], "d_model": d_model}}
        said: list[str] = []
        options = Distillation(student=tables, machines=HERE)
        distil(trained, tmp_path / name, options, None, said.append)
        losses[name] = tiny.validations(tmp_path / name)[0][1]
        first = next(sentence for sentence in said if sentence.startswith("The student"))
        starts = "starts from its teacher: encoder layer" if name == "same" else "random weights"
        assert starts in first
    best = min(loss for _, loss, _ in tiny.validations(trained))
    assert losses["same"] == pytest.approx(best, rel=0.05)
    assert losses["wider"] > best + 1


def beam_one() -> Any:
    from dragoman.decoding.search_options import SearchOptions

    return SearchOptions(beam=1, max_extra=20)


def test_text_of_ones_own_and_a_vocabulary_of_its_own(
    trained: Path, text: Path, tmp_path: Path
) -> None:
    """From a folder without training text, as the bundled models are."""
    teacher = tmp_path / "teacher"
    shutil.copytree(trained, teacher, ignore=shutil.ignore_patterns("state"))
    with pytest.raises(OptionError, match="holds no training text; name text"):
        distil(teacher, tmp_path / "none", Distillation(student=recipe(), machines=HERE))
    tables = recipe()
    tables["tokenizer"] = {"vocab_size": 320}
    options = Distillation((text,), tables, machines=HERE)
    done = distil(teacher, tmp_path / "student", options)
    assert done.counts.lines == 500
    description, tokenizer = load_description(tmp_path / "student")
    assert tokenizer.target_size == description.model.vocab_size <= 320


def test_the_reverse_model_chooses(
    trained: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that likes short sources keeps the share of pairs with the shortest."""
    reverse = tmp_path / "reverse"
    shutil.copytree(trained, reverse)
    config = json.loads((reverse / "config.json").read_text(encoding="utf-8"))
    config |= {"source_language": "de", "target_language": "en"}
    (reverse / "config.json").write_text(json.dumps(config), encoding="utf-8")

    class ByLength:
        def __init__(self, folder: Path, device: str) -> None:
            assert (folder, device) == (reverse, "cpu")

        def scores(self, pairs: list[tuple[str, str]]) -> list[float]:
            return [-float(len(target.split())) for _, target in pairs]

    monkeypatch.setattr(best_pairs, "ForcedScorer", ByLength)
    student = tmp_path / "student"
    options = Distillation((text,), recipe(), reverse, 0.5, machines=HERE)
    done = distil(trained, student, options)
    everything = rows(student / layout.DISTILLED_PAIRS)
    best = rows(student / layout.DISTILLED_BEST)
    assert done.pairs == len(best) == round(0.5 * len(everything))
    lengths = sorted(len(source.split()) for source, _ in everything)
    assert sorted(len(source.split()) for source, _ in best) == lengths[: len(best)]
    order = {tuple(row): number for number, row in enumerate(everything)}
    places = [order[tuple(row)] for row in best]
    assert places == sorted(places)
    assert load_toml(student / "training.toml")["data"]["train"][0].endswith("best.tsv.gz")


def test_a_reverse_model_gives_scores(trained: Path, text: Path, tmp_path: Path) -> None:
    """The real one: of a model that was trained on it, right pairs score better than wrong."""
    lines = text.read_text(encoding="utf-8").splitlines()[:40]
    translator = Translator.load(trained, "cpu", "torch")
    german = [one.text for one in translator.translate(lines)]
    pairs = tmp_path / "pairs.tsv"
    right = [f"{target}\t{source}" for source, target in zip(lines, german, strict=True)]
    wrong = [f"{target}\t{source}" for source, target in zip(lines[1:], german, strict=False)]
    pairs.write_text("\n".join([*wrong, *right]) + "\n", encoding="utf-8")
    judge = best_pairs.Judge(trained, 0.5, HERE)
    best_pairs.keep_best(pairs, tmp_path / "best.tsv.gz", judge, Course())
    best = {"\t".join(row) for row in rows(tmp_path / "best.tsv.gz")}
    assert len(best & {*right}) > 0.9 * len(best)


def test_kills_anywhere_change_nothing(trained: Path, text: Path, tmp_path: Path) -> None:
    """While the teacher translates, and while the student is trained."""
    (tmp_path / "student.toml").write_text(STUDENT, encoding="utf-8")
    machine = "--device cpu --processes 1 --runtime torch"
    words = f"distil -m {trained} {text} --config {tmp_path}/student.toml {machine} --out".split()
    whole = tmp_path / "whole"
    command = tiny.run([*words, str(whole)], tmp_path)
    assert command.wait() == 0, command.errors

    out = tmp_path / "out"
    journal = journal_of(out / layout.DISTILLED_PAIRS)
    moments = [
        lambda: journal.exists() and journal.read_bytes().count(b"\n") > 2,
        lambda: (out / layout.GIVEN).exists(),
        lambda: any((out / layout.STATE).glob("step-*")),
    ]
    for moment in moments:
        halt = (tiny.halt_after, str(journal), 2) if moment is moments[0] else ()
        command = tiny.Command([*words, str(out)], tmp_path, *halt)
        command.until(functools.partial(moment))
        command.kill()
        command.wait()
    command = tiny.run([*words, str(out), "--json"], tmp_path)
    assert command.wait() == 0, command.errors
    assert json.loads(command.output)["reason"] == "steps"
    same = (layout.DISTILLED_PAIRS, layout.WEIGHTS, layout.SHORTLIST, layout.CONFIG, layout.INT8)
    for name in same:
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    assert tiny.losses(out) == tiny.losses(whole)


def test_minutes_are_shared(
    trained: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The teacher has no more than 30%, and the training what is left."""
    from dragoman.improving import distillation

    shares = []

    def put_through(passage: Any, course: Course) -> Any:
        from dragoman.improving.text_through_model import put_through as real

        shares.append(course.seconds)
        return real(passage, course)

    monkeypatch.setattr(distillation, "put_through", put_through)
    options = Distillation((text,), recipe(), machines=HERE)
    done = distil(trained, tmp_path / "student", options, Course(1000.0))
    assert shares == [300.0]
    given = json.loads((tmp_path / "student" / layout.GIVEN).read_text(encoding="utf-8"))
    assert given["training"]["minutes"] == pytest.approx((1000.0 - done.counts.seconds) / 60)


def test_mistakes(trained: Path, text: Path, tmp_path: Path) -> None:
    options = Distillation((text,), recipe(), machines=HERE)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis").touch()
    with pytest.raises(ModelFolderError, match="exists and is not empty"):
        distil(trained, tmp_path / "used", options)
    with pytest.raises(OptionError, match="translates en to de; name a model that translates de"):
        distil(trained, tmp_path / "new", Distillation((text,), recipe(), trained))
    with pytest.raises(OptionError, match="unknown option 'preset"):
        distil(trained, tmp_path / "new", Distillation((text,), {"preset": "tiny", "presets": 1}))
    with pytest.raises(OptionError, match="keep is 0"):
        Distillation(keep=0.0)
    german = Path(tiny.write_corpus(tmp_path, "wrong", 100, seed=8, longest=12)[1])
    with pytest.raises(InputError, match="is not in en"):
        distil(trained, tmp_path / "german", Distillation((german,), recipe()))
    distil(trained, tmp_path / "student", options)
    other = recipe()
    other["model"]["d_model"] = 32
    with pytest.raises(OptionError, match="was begun with another 'model'"):
        distil(trained, tmp_path / "student", Distillation((text,), other, machines=HERE))
