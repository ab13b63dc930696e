"""Back-translation: the pairs it writes and leaves out, kills in the middle, time that is over, and
every mistake of its user in one sentence."""

from __future__ import annotations

import functools
import gzip
import json
import lzma
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import tiny

from dragoman.data.corpus import corpora, ignore, read_pairs
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.improving import text_through_model
from dragoman.improving.back_translation import BackTranslation, back_translate
from dragoman.improving.machine_pairs import (
    COPIES,
    ENDLESS,
    LENGTH,
    LONG,
    LOST,
    REPEATS,
    PairsJob,
    fault,
    make_pairs,
)
from dragoman.improving.passage_journal import journal_of, part_of
from dragoman.improving.text_through_model import Course, Machines, Place, Progress
from dragoman.runtimes import int8
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Draft

HERE = Machines("cpu", 1, "torch")
ALONE = BackTranslation(machines=HERE)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return Path(tiny.write_corpus(tmp_path, "mono", 700, seed=5, longest=6, turned=False)[0])


def in_german(line: str) -> str:
    """What the trained model ought to say."""
    return " ".join(tiny.GERMAN[tiny.ENGLISH.index(word)] for word in line.split())


def test_the_pairs_are_what_training_of_the_other_direction_takes(
    trained: Path, text: Path, tmp_path: Path
) -> None:
    lines = text.read_text(encoding="utf-8").splitlines()
    dirty = [*lines[:100], "", "one\ttwo", "  ", *lines[100:]]
    text.write_text("\n".join(dirty), encoding="utf-8")
    out = tmp_path / "bt.tsv"
    counts = back_translate(trained, [text], out, ALONE)
    pairs = list(read_pairs(corpora([str(out)])[0], "de", "en", ignore))
    assert counts.lines == len(dirty)
    assert counts.pairs == len(pairs)
    assert counts.dropped["empty"] == 2
    assert counts.pairs + sum(counts.dropped.values()) == counts.lines
    assert counts.complete
    assert {target for _, target in pairs} <= {*lines, "one two"}
    right = sum(source == f"<bt> {in_german(str(target))}" for source, target in pairs)
    assert right > 0.9 * len(lines)


@pytest.mark.parametrize(("ending", "opened"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_compressed_text_gives_the_same_pairs(
    trained: Path, text: Path, tmp_path: Path, ending: str, opened: object
) -> None:
    packed = tmp_path / f"mono.txt{ending}"
    with opened(packed, "wb") as file:  # type: ignore[operator]
        file.write(text.read_bytes())
    plain = tmp_path / "bt.tsv"
    back_translate(trained, [text], plain, ALONE)
    out = tmp_path / f"bt.tsv{ending}"
    back_translate(trained, [packed], out, ALONE)
    with opened(out, "rb") as file:  # type: ignore[operator]
        assert file.read() == plain.read_bytes()


def test_several_texts_are_read_in_turn(
    trained: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that what fits into a limit of time is of all of them."""
    monkeypatch.setattr(text_through_model, "_CHUNK_ON_CPU", (20, 20))
    lines = text.read_text(encoding="utf-8").splitlines()
    parts = [tmp_path / "first", tmp_path / "second"]
    parts[0].write_text("\n".join(lines[:400]), encoding="utf-8")
    parts[1].write_text("\n".join(lines[400:600]), encoding="utf-8")
    out = tmp_path / "bt.tsv"
    back_translate(trained, parts, out, BackTranslation(tag="", machines=HERE))
    targets = [line.split("\t")[1] for line in out.read_text(encoding="utf-8").splitlines()]
    ahead = Counter("second" if target in lines[400:600] else "first" for target in targets[:300])
    assert 80 < ahead["second"] < 120


def test_sampling_follows_from_the_seed(trained: Path, text: Path, tmp_path: Path) -> None:
    found = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        search = SearchOptions(sample=True, beam=1, seed=seed, temperature=2.0)
        out = tmp_path / f"{name}.tsv"
        back_translate(trained, [text], out, BackTranslation("<bt>", search, HERE))
        found.append(out.read_bytes())
    assert found[0] == found[1] != found[2]


@pytest.mark.usefixtures("quick_processes")
def test_several_processes_write_what_one_does(trained: Path, text: Path, tmp_path: Path) -> None:
    back_translate(trained, [text], tmp_path / "one.tsv.xz", ALONE)
    two = BackTranslation(machines=Machines("cpu", 2, "torch"))
    back_translate(trained, [text], tmp_path / "two.tsv.xz", two)
    assert (tmp_path / "one.tsv.xz").read_bytes() == (tmp_path / "two.tsv.xz").read_bytes()


def words(model: Path, text: Path, out: Path) -> list[str]:
    machine = "--device cpu --processes 1 --runtime torch"
    return f"backtranslate -m {model} {text} --out {out} {machine}".split()


def test_a_kill_loses_nothing_and_changes_nothing(
    trained: Path, text: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.tsv.xz"
    command = tiny.run(words(trained, text, whole), tmp_path)
    assert command.wait() == 0, command.errors
    assert "pairs from 700 lines" in command.errors

    out = tmp_path / "out.tsv.xz"
    journal = journal_of(out)

    def chunks_are_done(count: int) -> bool:
        return journal.exists() and journal.read_bytes().count(b"\n") > count

    for chunks in (1, 3):
        halt = (tiny.halt_after, str(journal), chunks)
        command = tiny.Command(words(trained, text, out), tmp_path, *halt)
        command.until(functools.partial(chunks_are_done, chunks))
        command.kill()
        command.wait()
        assert not out.exists()
        with open(part_of(out), "ab") as file:
            file.write(b"half a chunk")  # what was written but not noted
        with open(journal, "ab") as file:
            file.write(b'{"chunks": 9')  # what was cut off
    done = json.loads(journal.read_bytes().splitlines()[-2])
    assert 3 <= done["chunks"] < 6

    reports: list[Progress] = []
    counts = back_translate(trained, [text], out, ALONE, Course(report=reports.append))
    assert len(reports) == 6 - done["chunks"]  # nothing is done twice
    assert reports[-1].done == reports[-1].total == 700
    assert reports[-1].seconds_left == 0
    assert out.read_bytes() == whole.read_bytes()
    assert not part_of(out).exists()
    assert counts.lines == 700

    before = out.stat().st_mtime_ns
    assert back_translate(trained, [text], out, ALONE) == counts
    assert out.stat().st_mtime_ns == before


def test_what_is_finished_when_the_time_is_over(
    trained: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_through_model, "_CHUNK_ON_CPU", (50, 50))
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def later(progress: Progress) -> None:
        now[0] += 10.0
        lefts.append(progress.seconds_left)

    lefts: list[float] = []
    out = tmp_path / "bt.tsv"
    counts = back_translate(trained, [text], out, ALONE, Course(45.0, later))
    assert not counts.complete
    assert 100 <= counts.lines <= 300
    assert len(out.read_bytes().splitlines()) == counts.pairs
    assert lefts[1] <= 35.0


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (Draft("eins zwei", 2, 2), ""),
        (Draft("eins zwei", 2, 2, finished=False), ENDLESS),
        (Draft("eins zwei", 2, 10), LENGTH),
        (Draft("eins zwei", 10, 2), LENGTH),
        (Draft("", 2, 0), LENGTH),
        (Draft("one two three", 3, 3), COPIES),
        (Draft("eins zwei", 100, 90), LONG),
        (Draft("eins zwei", 2, 2, whole=False), LOST),
        (Draft("so so so so so so so", 7, 7), REPEATS),
    ],
)
def test_what_is_left_out(draft: Draft, reason: str) -> None:
    assert fault("one two three", draft, 64) == reason


def test_text_in_the_wrong_language(trained: Path, tmp_path: Path) -> None:
    german = tiny.write_corpus(tmp_path, "wrong", 100, seed=8, longest=12)[1]
    greek = tmp_path / "greek.txt"
    greek.write_text("Η γάτα κάθισε στο χαλί.\n" * 30, encoding="utf-8")
    for text in (german, greek):
        with pytest.raises(InputError, match="is not in en, from which"):
            back_translate(trained, [Path(text)], tmp_path / "bt.tsv", ALONE)
    assert not journal_of(tmp_path / "bt.tsv").exists()


def test_mistakes(trained: Path, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "bt.tsv"
    with pytest.raises(OptionError, match="which is also the input"):
        back_translate(trained, [text], text, ALONE)
    with pytest.raises(OptionError, match=r"ends in .tsv, .tsv.gz or .tsv.xz"):
        back_translate(trained, [text], tmp_path / "bt.tsv.zst", ALONE)
    with pytest.raises(OptionError, match="a tag is one word"):
        BackTranslation(tag="two words")
    with pytest.raises(ModelFolderError):
        back_translate(tmp_path, [text], out, ALONE)
    out.write_text("somebody's", encoding="utf-8")
    with pytest.raises(OptionError, match="exists already; name another --out"):
        back_translate(trained, [text], out, ALONE)
    assert out.read_text(encoding="utf-8") == "somebody's"
    out.unlink()
    back_translate(trained, [text], out, ALONE)
    with pytest.raises(OptionError, match="is of another run: tag was <bt> and is <other>"):
        back_translate(trained, [text], out, BackTranslation(tag="<other>", machines=HERE))


def test_a_model_that_has_learnt_nothing(trained: Path, text: Path, tmp_path: Path) -> None:
    """No pair is left, and neither is a file."""
    from safetensors.torch import load_file, save_file

    model = tmp_path / "model"
    shutil.copytree(trained, model)
    weights = load_file(model / "model.safetensors")
    save_file({name: value * 0 for name, value in weights.items()}, model / "model.safetensors")
    with pytest.raises(InputError, match="gave no usable translation of 700 lines"):
        back_translate(model, [text], tmp_path / "bt.tsv", ALONE)
    assert not list(tmp_path.glob("bt.tsv*"))


def test_the_runtime_is_the_same_in_every_process_and_attempt(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with a conversion for CTranslate2 could have another each time."""
    chosen = []
    load = Translator.load

    def noted(folder: Path, device: str, runtime: str) -> Translator:
        chosen.append(runtime)
        return load(folder, device, runtime)

    monkeypatch.setattr(Translator, "load", noted)
    job = PairsJob(trained, SearchOptions(beam=1), "auto", "plain")
    make_pairs(job, Place("cpu", 1))
    make_pairs(replace(job, runtime="torch"), Place("cpu", 1))
    assert chosen == ["int8" if int8.available() else "torch", "torch"]
