"""Every command that writes leaves alone what it did not make, whatever that is called and even
when the disk is full, and its advice for a full disk fits the command."""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import tiny

from dragoman.errors import FullDiskError

AGAIN = "free some space, then run the command again"
ENDINGS = (".old", ".new", ".tmp", ".bak", ".partial", ".converting", "~")


@dataclass(frozen=True)
class Case:
    """A command, run in a folder where `in` holds its inputs and `m` the model; it writes `out`.

    A file larger than `limit` bytes does not fit on the disk.
    """

    words: str
    out: str
    limit: int
    advice: str = AGAIN
    stays: bool = False  # whether a full disk leaves what was written until then
    besides: tuple[str, ...] = ()  # what the command writes with it


RESUME = "what was saved before is intact: free some space, then continue with --resume run"
CASES = {
    "train": Case(
        "train in/a.en in/a.de --config in/recipe.toml --steps 6 --out run",
        "run",
        15_000,
        RESUME,
        stays=True,
    ),
    "train, too little for the text": Case(
        "train in/a.en in/a.de --config in/recipe.toml --steps 6 --out run",
        "run",
        2_000,
        RESUME,
        stays=True,
    ),
    "train --continue": Case(
        "train in/a.en in/a.de --continue m --steps 6 --device cpu --out run",
        "run",
        15_000,
        AGAIN,
    ),
    "convert hf:": Case("convert hf:in/marian conv --from en --to de", "conv", 15_000),
    "convert ct2:": Case("convert m ct2:ct2", "ct2", 15_000),
    "convert ct2: over an older one": Case("convert m ct2:in/ct2", "in/ct2", 15_000),
    "convert marian:": Case("convert m marian:marian", "marian", 15_000),
    "convert argos:": Case("convert m argos:en-de.argosmodel", "en-de.argosmodel", 15_000),
    "add-key": Case("add-key keys.txt anna", "keys.txt", 1_000),
    "translate --out": Case(
        "translate -m m in/a.en --out a.txt --device cpu --runtime torch",
        "a.txt",
        1_000,
        f"{AGAIN} with --resume",
        stays=True,
    ),
    "backtranslate": Case(
        "backtranslate -m m in/a.en --out bt.tsv --device cpu --processes 1 --runtime torch",
        "bt.tsv",
        6_000,
        stays=True,
        besides=("bt.tsv.part", "bt.tsv.journal"),
    ),
    "distil": Case(
        "distil -m m in/a.en --config in/recipe.toml --out small --device cpu --processes 1 "
        "--runtime torch",
        "small",
        1_500,
        stays=True,
    ),
    "translate --runtime ctranslate2": Case(
        "translate -m m in/a.en --runtime ctranslate2", "m/ctranslate2", 15_000
    ),
    "shortlist": Case("shortlist -m m in/a.en in/a.de", "m/shortlist.safetensors", 20_000),
    "calibrate": Case("calibrate -m m in/a.en in/a.de --runtime torch", "m/calibration.json", 300),
    "inspect --out": Case(
        "inspect one -m m --runtime torch --device cpu --out view.html", "view.html", 15_000
    ),
    "embed --out": Case("embed -m m in/a.en --device cpu --out rows.npy", "rows.npy", 2_000),
    "corrections export": Case(
        "corrections export in/corrections.sqlite pairs.tmx", "pairs.tmx", 40_000
    ),
}


@pytest.fixture(scope="module")
def inputs(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read: `in` and `m`."""
    from dragoman.formats import export_ctranslate2, export_marian
    from dragoman.server.corrections import Correction, Corrections

    pytest.importorskip("ctranslate2")
    folder = tmp_path_factory.mktemp("inputs")
    model = Path(shutil.copytree(trained, folder / "m", ignore=shutil.ignore_patterns("state")))
    place = folder / "in"
    place.mkdir()
    tiny.write_corpus(place, "a", 300, turned=False)
    (place / "recipe.toml").write_text(tiny.RECIPE, encoding="utf-8")
    export_marian.export(model, place / "marian", print)
    export_ctranslate2.export(model, place / "ct2")
    store = Corrections(place / "corrections.sqlite")
    for number in range(500):
        store.save(Correction("en", "de", f"{number} and more " * 5, "und mehr", "m", "2024"))
    store.close()
    return folder


@pytest.fixture
def place(inputs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(inputs, tmp_path / "place"))


def everything(folder: Path) -> dict[str, bytes | None]:
    """What lies in a folder, hidden or not; None for folders."""
    found: dict[str, bytes | None] = {}
    for path in folder.rglob("*"):
        found[str(path.relative_to(folder))] = path.read_bytes() if path.is_file() else None
    return found


def write_neighbours(place: Path, out: str) -> None:
    """Beside the output and in the current folder: what people, editors and older versions of
    this program call things."""
    path = place / out
    for ending in ENDINGS:
        neighbour = path.with_name(path.name + ending)
        neighbour.mkdir()
        (neighbour / "thesis").write_text("years of work", encoding="utf-8")
        path.with_name(f".{path.name}{ending}").write_text("more of it", encoding="utf-8")
    (place / "notes.tmp").write_text("notes", encoding="utf-8")
    for name in ("state", "writing", "state/writing", "scratch"):
        (place / name).mkdir()
        (place / name / "chapter").write_text("one", encoding="utf-8")


def prepare(case: Case, place: Path) -> dict[str, bytes | None]:
    write_neighbours(place, case.out)
    if case.out == "keys.txt":  # which is so large that not a line more fits
        hashes = "".join(f"name{number} {'0' * 64} 0\n" for number in range(14))
        (place / case.out).write_text(hashes[: case.limit], encoding="utf-8")
    return everything(place)


def enter(folder: str, limit: int | None = None) -> None:
    """Lets a command run in a folder, with an end to the size of files."""
    os.chdir(folder)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def is_output(case: Case, name: str) -> bool:
    if name in case.besides:
        return True
    return Path(name) == Path(case.out) or Path(case.out) in Path(name).parents


@pytest.mark.parametrize("name", CASES)
def test_what_was_there_stays(place: Path, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    before = prepare(case, place)
    command = tiny.run(case.words.split(), tmp_path, enter, str(place))
    assert command.wait() == 0, command.errors
    after = everything(place)
    assert (place / case.out).exists()
    kept = {path: content for path, content in before.items() if not is_output(case, path)}
    new = {path for path in after.keys() - kept.keys() if not is_output(case, path)}
    assert {path: after.get(path, b"gone") for path in kept} == kept
    assert new <= made_besides(case)


def made_besides(case: Case) -> set[str]:
    """The int8 weights that a CPU is faster with, once they have been used."""
    return {"m/model.int8.safetensors"} if "-m m" in case.words else set()


@pytest.mark.parametrize("name", CASES)
def test_a_full_disk(place: Path, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    before = prepare(case, place)
    command = tiny.run(case.words.split(), tmp_path, enter, str(place), case.limit)
    assert command.wait() == 2, command.errors
    sentence = command.errors.splitlines()[-1]
    assert sentence.startswith("error: no space is left ")
    assert sentence.endswith(f"; {case.advice}")
    assert Path(case.out).name in sentence
    assert "Traceback" not in command.errors
    after = everything(place)
    if case.stays:
        after = {path: content for path, content in after.items() if not is_output(case, path)}
    assert after == before


def test_a_full_disk_for_temporary_files(place: Path, tmp_path: Path) -> None:
    words = CASES["shortlist"].words.split()
    command = tiny.run(words, tmp_path, enter, str(place), 1_000)
    assert command.wait() == 2
    assert command.errors.startswith("error: no space is left to write /")
    assert command.errors.endswith(f"; {AGAIN}\n")


def test_a_translation_goes_on_after_a_full_disk(place: Path, tmp_path: Path) -> None:
    case = CASES["translate --out"]
    words = case.words.split()
    assert tiny.run(words, tmp_path, enter, str(place)).wait() == 0
    whole = (place / case.out).read_bytes()
    (place / case.out).unlink()
    assert tiny.run(words, tmp_path, enter, str(place), case.limit).wait() == 2
    assert len((place / case.out).read_bytes()) <= case.limit
    assert tiny.run([*words, "--resume"], tmp_path, enter, str(place)).wait() == 0
    assert (place / case.out).read_bytes() == whole


def test_a_run_goes_on_after_a_full_disk(place: Path, tmp_path: Path) -> None:
    for name in ("train", "train, too little for the text"):
        case = CASES[name]
        words = case.words.split()
        assert tiny.run(words, tmp_path, enter, str(place), case.limit).wait() == 2
        command = tiny.run(["train", "--resume", "run"], tmp_path, enter, str(place))
        assert command.wait() == 0, command.errors
        assert not list((place / "run").rglob(".*"))
        shutil.rmtree(place / "run")


@pytest.mark.parametrize("inside", ["state/thesis", "state/start/thesis", "thesis"])
@pytest.mark.parametrize("files", ["in/a.en in/a.de", "in/a.en in/recipe.toml"])
def test_a_folder_with_anything_in_it_is_not_trained_in(
    place: Path, tmp_path: Path, inside: str, files: str
) -> None:
    """Also where it looks like what an older version left of a killed run."""
    (place / "run" / inside).parent.mkdir(parents=True)
    (place / "run" / inside).write_text("years of work", encoding="utf-8")
    before = everything(place)
    words = f"train {files} --config in/recipe.toml --out run".split()
    command = tiny.run(words, tmp_path, enter, str(place))
    assert command.wait() == 2
    assert command.errors == "error: run exists and is not empty; name another --out\n"
    assert everything(place) == before


def test_a_mistake_leaves_an_empty_folder_empty(place: Path, tmp_path: Path) -> None:
    (place / "run").mkdir()
    before = everything(place)
    case = CASES["train"]
    words = case.words.replace("in/a.de", "in/recipe.toml").split()
    assert tiny.run(words, tmp_path, enter, str(place)).wait() == 2
    assert everything(place) == before


def test_notes_in_an_older_conversion_are_not_replaced(place: Path, tmp_path: Path) -> None:
    (place / "in" / "ct2" / "notes.txt").write_text("what I tried", encoding="utf-8")
    before = everything(place)
    command = tiny.run(["convert", "m", "ct2:in/ct2"], tmp_path, enter, str(place))
    assert command.wait() == 2
    assert command.errors == (
        "error: in/ct2 holds notes.txt, which is no part of a CTranslate2 model; "
        "name a folder that is new or empty\n"
    )
    assert everything(place) == before


def test_corrections_of_a_service(tmp_path: Path) -> None:
    """What `dragoman serve --corrections` writes is SQLite's own business."""
    from dragoman.server.corrections import Correction, Corrections

    write_neighbours(tmp_path, "corrections.sqlite")
    before = everything(tmp_path)
    store = Corrections(tmp_path / "corrections.sqlite")

    def save(*numbers: int) -> None:
        for number in numbers:
            store.save(Correction("en", "de", f"{number} " * 400, "viel", "m", "2024"))

    save(0)
    store._database.execute("PRAGMA max_page_count = 6")
    with pytest.raises(FullDiskError, match="the corrections before are kept: free some space"):
        save(*range(1, 100))
    assert store.exact("en", "de", "0 " * 400) is not None
    store.close()
    after = everything(tmp_path)
    assert {name: after.get(name) for name in before} == before
    assert after.keys() - before.keys() == {"corrections.sqlite"}
