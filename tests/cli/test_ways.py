"""From one language into another by way of a third: which models are chosen, and what comes out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.errors import OptionError
from dragoman.folder import shipped
from dragoman.folder.ways import choose_way, find_way
from dragoman.tasks.chained import ChainedTranslator
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation, chain_translations
from dragoman.text.glossary import Glossary, Term


def model_of(trained: Path, place: Path, source: str, target: str) -> Path:
    """The trained model under other languages."""
    folder = place / f"{source}-{target}"
    folder.mkdir(parents=True)
    for path in trained.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"source_language": source, "target_language": target}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def home(tmp_path: Path, trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with models of its own, and none bundled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path / "none")
    for pair in ("tw-en", "en-de"):
        model_of(trained, tmp_path / "models", *pair.split("-"))
    return tmp_path


def test_the_command_goes_by_way_of_a_third_language(home: Path) -> None:
    first, second = (
        Translator.load(home / "models" / pair, "cpu", "torch") for pair in ("tw-en", "en-de")
    )
    lines = ["one two three", "", "four. five"]
    between = [one.text for one in first.translate(lines)]
    expected = [one.text for one in second.translate(between)]
    runner = CliRunner()
    machine = ["--device", "cpu", "--runtime", "torch"]
    Path("in.tw").write_text("\n".join(lines) + "\n")
    languages = ["translate", "--from", "twi", "--to", "de", *machine]
    found = runner.invoke(app, [*languages, "in.tw", "--out", "out.de"])
    assert found.exit_code == 0, found.output
    assert Path("out.de").read_text().split("\n")[:3] == expected
    assert "tw-en, then en-de" in found.stderr
    models = ["-m", "models/tw-en", "-m", "models/en-de"]
    named = ["translate", *models, "--jsonl", *machine, "in.tw", "--out", "out.jsonl"]
    assert runner.invoke(app, named).exit_code == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == expected
    assert [row["via"] for row in rows] == ["en"] * 3
    Path("in.html").write_text("<p>one <b>two</b></p>")
    page = runner.invoke(app, ["translate", *models, *machine, "in.html"])
    assert page.exit_code == 0, page.output
    assert Path("in.de.html").read_text().startswith("<p>")


def test_which_way_is_chosen(home: Path, trained: Path) -> None:
    models = home / "models"
    assert choose_way([], "tw", "de") == [Path("models/tw-en"), Path("models/en-de")]
    assert choose_way([], "en", "de") == [Path("models/en-de")]
    for nowhere in (("de", "tw"), ("tw", "fr"), (None, "fr"), ("tw", None)):
        with pytest.raises(OptionError):
            choose_way([], *nowhere)
    direct = model_of(trained, models, "tw", "de")
    assert choose_way([], "tw", "de") == [Path("models/tw-de")]  # one is better than two
    (models / "tw-de" / "config.json").write_text("damaged")
    assert len(choose_way([], "tw", "de")) == 2
    assert find_way("tw", "de", [models / "en-de", direct]) == []


@pytest.mark.parametrize(
    ("folders", "source", "target", "told"),
    [
        (["en-de", "tw-en"], None, None, "the first model translates into 'de'"),
        (["tw-en", "en-de"], "fr", None, "--from is 'fr'"),
        (["tw-en", "en-de"], None, "fr", "--to is 'fr'"),
        (["tw-en", "en-de", "en-de"], None, None, "-m names 3 models"),
        (["tw-en", "nothing"], None, None, "nothing"),
    ],
)
def test_models_that_do_not_meet(
    home: Path, folders: list[str], source: str | None, target: str | None, told: str
) -> None:
    words = ["translate"]
    for folder in folders:
        words += ["-m", f"models/{folder}"]
    words += ["--from", source] if source else []
    words += ["--to", target] if target else []
    Path("in.txt").write_text("one\n")
    found = CliRunner().invoke(app, [*words, "in.txt", "--out", "out.txt"])
    assert found.exit_code != 0
    assert told in f"{found.output} {found.exception}"


def test_the_glossary_counts_for_the_second_and_context_for_none(home: Path) -> None:
    first, second = (
        Translator.load(home / "models" / pair, "cpu", "torch") for pair in ("tw-en", "en-de")
    )
    chained = ChainedTranslator(first, second)
    between = first.translate("one two").text
    glossary = Glossary([Term(between.split()[0], ("neunzig",))])
    (found,) = chained.translate(["one two"], TranslateRequest(glossary=glossary))
    assert "neunzig" in found.text
    with pytest.raises(OptionError, match="by way of 'en'"):
        chained.translate(["one"], TranslateRequest(context=1))


def test_the_worse_leg_counts() -> None:
    first = Translation("b", confidence=0.4, flags=("numbers",), alignment=((0, 1), (1, 0)))
    second = Translation("c", confidence=0.9, flags=("copied", "numbers"), alignment=((0, 0),))
    both = chain_translations(first, second)
    assert (both.text, both.confidence, both.flags) == ("c", 0.4, ("numbers", "copied"))
    assert both.alignment == ((1, 0),)
