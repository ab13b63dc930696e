"""The models that come with the package: found by language, used like any other folder, listed;
and those that really do."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
import torch

import dragoman
from dragoman import SearchOptions, Translator
from dragoman.errors import OptionError
from dragoman.folder import quantised, shipped
from dragoman.folder.description import load_description
from dragoman.folder.extras import save_int8
from dragoman.folder.weights import load_model
from dragoman.runtimes import int8

ROOT = Path(__file__).parents[2]
FOLDERS = shipped.shipped_folders()
ALLOWED = {
    "config.json",
    "tokenizer.model",
    "model.int8.safetensors",
    "calibration.json",
    "shortlist.safetensors",
    "report.md",
    "training.toml",
}
SIMPLE = {"en": "I have a dog.", "de": "Ich habe einen Hund."}
LINES = "one two three\nfive\n"
WANTED = "eins zwei drei\nfünf\n"


@pytest.fixture(scope="module")
def home(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where en-de would ship, with nothing in it but what a shipped folder has, and with a
    shortlist; `lines` beside it."""
    top = tmp_path_factory.mktemp("shipped")
    whole = Path(shutil.copytree(trained, top / "whole"))
    assert tiny.run(["shortlist", "-m", str(whole)], top).wait() == 0
    save_int8(
        whole,
        quantised.quantise(
            load_model(whole, load_description(whole)[0].model, torch.device("cpu"))
        ),
    )
    (top / "home" / "en-de").mkdir(parents=True)
    for path in whole.iterdir():
        if path.name in ALLOWED:
            shutil.copy(path, top / "home" / "en-de")
    (top / "lines").write_text(LINES, encoding="utf-8")
    return top / "home"


@pytest.fixture
def ours(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shipped, "SHIPPED", home)
    return home


def ships(home: str, eight_bits: bool = True) -> None:
    """In a command's process, before it runs."""
    shipped.SHIPPED = Path(home)
    if not eight_bits:
        int8.available = lambda: False


def run(home: Path, line: str, eight_bits: bool = True) -> tiny.Command:
    return tiny.run(line.split(), home.parent, ships, str(home), eight_bits)


@pytest.mark.parametrize(
    "flags", ["", "--runtime torch", "--shortlist", "--shortlist --runtime torch"]
)
def test_translating_by_language(home: Path, flags: str) -> None:
    command = run(home, f"translate --to de {home.parent / 'lines'} {flags}")
    assert (command.output, command.errors) == (WANTED, "")
    assert not (home / "en-de" / "model.safetensors").exists()


def test_a_machine_without_8_bit_kernels(home: Path) -> None:
    assert run(home, f"translate --from en --to DE {home.parent / 'lines'}", False).output == WANTED


def test_all_else_that_a_folder_can_do(home: Path) -> None:
    lines, top = home.parent / "lines", home.parent
    records = [
        json.loads(line)
        for line in run(home, f"translate --to de --jsonl --alignments {lines}").output.splitlines()
    ]
    assert [record["text"] for record in records] == WANTED.splitlines()
    assert records[0]["alignment"] == [[0, 0], [1, 1], [2, 2]]
    (top / "terms.tsv").write_text("five\tneun\n", encoding="utf-8")
    assert (
        "neun"
        in run(
            home, f"translate --to de --glossary {top / 'terms.tsv'} {lines}"
        ).output.splitlines()[1]
    )
    (top / "lines.de").write_text(WANTED, encoding="utf-8")
    result = json.loads(run(home, f"evaluate --to de {lines} {top / 'lines.de'} --json").output)
    assert result["chrf"]["value"] == pytest.approx(100)
    assert result["model"] == str(home / "en-de")


def test_by_language_from_python(ours: Path) -> None:
    assert (
        dragoman.shipped_model("en", "de") == dragoman.shipped_model(None, "de") == ours / "en-de"
    )
    assert Translator.load(dragoman.shipped_model("EN", "De")).translate(["four"])[0].text == "vier"
    with pytest.raises(
        OptionError,
        match=r"translates from 'fr' into 'de' \(bundled: en-de\); name a model folder with -m",
    ):
        dragoman.shipped_model("fr", "de")


def test_two_models_for_one_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("en-de", "fr-de", "de-en"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").touch()
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path)
    with pytest.raises(
        OptionError,
        match="en-de and fr-de both translate into 'de'; name the source language with --from",
    ):
        shipped.choose(None, None, "de")
    assert shipped.choose(None, "fr", "de") == tmp_path / "fr-de"
    assert shipped.choose(None, None, "en") == tmp_path / "de-en"
    with pytest.raises(OptionError, match=r"into 'nl' \(bundled: de-en, en-de, fr-de\)"):
        shipped.choose(None, None, "nl")
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path / "nowhere")
    with pytest.raises(OptionError, match=r"\(bundled: none\)"):
        shipped.choose(None, None, "de")


def test_languages_beside_a_model(trained: Path) -> None:
    assert shipped.choose(trained, "en", "DE") == trained
    assert shipped.choose(Path("anything"), None, None) == Path("anything")


def listed(home: Path, models: Path) -> dict[str, dict[str, object]]:
    return {one["name"]: one for one in json.loads(shipped.listing(models, as_json=True))}


def test_the_list(ours: Path, trained: Path) -> None:
    found = listed(ours, trained.parent)
    assert list(found) == ["en-de", "digits-model"]
    one, other = found.values()
    model = load_description(trained)[0].model
    layer = 4 * (32 * 32 + 32) + 32 * 64 + 64 + 64 * 32 + 32 + 2 * 2 * 32
    # The decoder has another attention and a norm for it; with the norm first there is one at the
    # end of each stack.
    assert (
        one["weights"]
        == other["weights"]
        == model.vocab_size * 32 + 2 * layer + 4 * (32 * 32 + 32) + 2 * 32 + 2 * 2 * 32
    )
    assert (one["kinds"], one["shipped"], other["shipped"]) == (["int8"], True, False)
    assert "float32" in other["kinds"]  # type: ignore[operator]
    assert (one["source_language"], one["target_language"], one["problem"]) == ("en", "de", None)
    assert str(one["trained_on"]).startswith(
        "1 corpus, en to de: 1,200 pairs read, 1,140 kept for training, 60 for valid"
    )
    assert one["bytes"] == sum(path.stat().st_size for path in (ours / "en-de").iterdir())
    text = shipped.listing(trained.parent, as_json=False)
    assert text.startswith("en-de: en to de, 0.0M weights (int8), 0.")
    assert f"\n    {ours / 'en-de'}, bundled with dragoman\n" in text
    assert "\n    trained on: 1 corpus, en to de: 1,200 pairs" in text
    assert "\ndigits-model: en to de, 0.0M weights (float32" in text


def cut(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-9])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "config.json").write_bytes(b"\xff{"), "it is not JSON"),
        (lambda folder: (folder / "config.json").write_text("{}"), "it has no format number"),
        (lambda folder: (folder / "tokenizer.model").unlink(), "tokenizer.model is missing"),
        (lambda folder: (folder / "tokenizer.model").write_bytes(b"?"), "tokenizer.model"),
        (lambda folder: (folder / "model.safetensors").unlink(), "holds no weights"),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(b""),
            "model.safetensors is damaged",
        ),
        (cut("model.safetensors"), "model.safetensors is damaged"),
        (
            lambda folder: ((folder / "config.json").unlink(), (folder / "config.json").mkdir()),
            "config.json",
        ),
    ],
)
def test_a_damaged_folder_is_named_and_the_others_listed(
    damage: Callable[[Path], None],
    said: str,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path / "nowhere")
    leave = shutil.ignore_patterns("state", "*int8*", "ctranslate2*")
    for name in ("a", "b"):
        shutil.copytree(trained, tmp_path / name, ignore=leave)
    (tmp_path / "notes").mkdir()
    damage(tmp_path / "a")
    (tmp_path / "b" / "report.md").write_bytes(b"\xff\n## Data\n\nEuro\x1b[2Jparl\x07")
    found = listed(tmp_path, tmp_path)
    assert list(found) == ["a", "b"]
    assert said in str(found["a"]["problem"])
    assert (found["b"]["problem"], found["b"]["trained_on"]) == (
        None,
        "Euro[2Jparl",
    )  # nothing that moves a cursor
    assert f"a: damaged or unfinished\n    {tmp_path / 'a'}\n    " in shipped.listing(
        tmp_path, as_json=False
    )


def test_a_list_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert shipped.listing(Path("models"), as_json=True) == "[]"
    assert (
        shipped.listing(Path("models"), as_json=False)
        == "no model is bundled with dragoman, and models/ holds none"
    )


def test_the_command(home: Path) -> None:
    command = run(home, "models")
    assert (command.wait(), command.errors) == (0, "")
    assert command.output.startswith("en-de: en to de, ")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_ships(folder: Path) -> None:
    files = {path.name: path for path in folder.iterdir() if path.is_file()}
    assert (
        {"config.json", "tokenizer.model", "model.int8.safetensors", "report.md", "training.toml"}
        <= set(files)
        <= ALLOWED
    )
    assert sum(path.stat().st_size for path in files.values()) <= 25e6
    about, _ = load_description(folder)
    assert folder.name == f"{about.source_language}-{about.target_language}"
    report, options = (
        files[name].read_text(encoding="utf-8") for name in ("report.md", "training.toml")
    )
    assert '"/' not in options  # a path of the machine that it was trained on
    assert shipped.listing(Path("nowhere"), as_json=False).count("trained on: ") == len(FOLDERS)
    texts = [name for name in ("Europarl", "Tatoeba") if name in report]
    assert texts
    assert all(name in (ROOT / "NOTICE").read_text(encoding="utf-8") for name in texts)
    (found,) = Translator.load(folder, "cpu").translate(
        [SIMPLE[about.source_language]], SearchOptions()
    )
    assert found.text.strip()
    assert not found.flags


def test_the_wheel_holds_what_ships() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "setuptools"
    ]["package-data"]
    packed = {
        path for pattern in patterns["dragoman"] for path in (ROOT / "dragoman").glob(pattern)
    }
    assert {path for folder in FOLDERS for path in folder.iterdir()} <= packed
