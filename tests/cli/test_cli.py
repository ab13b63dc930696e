"""The front door: whole commands, most of them as processes, and one sentence for each mistake."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny

from dragoman.cli import main as front_door
from dragoman.cli.main import COMMANDS

STRANGE = [
    "one\ttwo",
    "four",
    "😀👩‍👩‍👧 one",
    "four",
    "one\u2028two\x85three\x0bfour\x1cfive\rsix",
    "four",
    "漢字かな交じり文 \x00\x07 \u202eone é ½ \ud7ff\ufeff\uffff",
    "four",
    ("one two three four five " * 4200)[:100_000],
    "four",
    "y" * 100_000,
    "four",
    "",
    "   ",
    "\t",
    "four",
]


def feed(path: str) -> None:
    """Lets standard input come from a file."""
    os.dup2(os.open(path, os.O_RDONLY), 0)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small corpus, good and bad, and the recipe."""
    folder = tmp_path_factory.mktemp("cli")
    tiny.write_corpus(folder, "a", 200)
    tiny.write_corpus(folder, "valid", 20, seed=3, longest=9)
    (folder / "recipe.toml").write_text(tiny.RECIPE, encoding="utf-8")
    (folder / "misspelt.toml").write_text(
        tiny.RECIPE.replace("warmup", "warm_up"), encoding="utf-8"
    )
    (folder / "broken.toml").write_text("[model\n", encoding="utf-8")
    (folder / "empty.en").touch()
    (folder / "empty.de").touch()
    lines = (folder / "a.de").read_bytes().splitlines(keepends=True)
    (folder / "short.de").write_bytes(b"".join(lines[:-3]))
    (folder / "latin.de").write_bytes(
        b"".join(lines).replace("fünf".encode(), "fünf".encode("latin-1"))
    )
    (folder / "surrogate.en").write_bytes(b"one\n\xed\xa0\x80 two\n")
    (folder / "endless.en").write_bytes(b"one " * 2**19)
    (folder / "full").mkdir()
    (folder / "full" / "thesis.tex").touch()
    return folder


def words(place: Path, text: str) -> list[str]:
    """The words of a command line; those that name a file of the folder, or begin with ./,
    become whole paths."""
    return [
        str(place / word) if word.startswith("./") or (place / word).exists() else word
        for word in text.split()
    ]


def run(place: Path, text: str, *before: Any) -> tiny.Command:
    return tiny.run(words(place, text), place, *before)


@pytest.fixture(scope="module")
def model(trained: Path, place: Path) -> Path:
    """The trained model beside the corpus, with a test set of its own words and a glossary."""
    tiny.write_corpus(place, "test", 40, seed=11, longest=9, turned=False)
    (place / "terms.tsv").write_text("five\tnull null\tfünf\nsix\tsieben\n", encoding="utf-8")
    (place / "strange.en").write_bytes("\n".join(STRANGE).encode())
    return Path(shutil.copytree(trained, place / "model", ignore=shutil.ignore_patterns("state")))


def test_a_model_from_two_files(place: Path) -> None:
    command = run(
        place,
        "train a.en a.de --valid valid.en valid.de --out ./en-de --config recipe.toml "
        "--steps 6 --seed 7",
    )
    assert command.wait() == 0, command.errors
    assert command.output == ""
    assert "200 pairs read" in command.errors
    assert (
        "20 for validation" in command.errors
    )  # both files of --valid were taken, and none of the training text
    assert "6 of 6 steps in " in command.errors
    assert "not trained yet; for a longer run, continue with: " in command.errors
    names = {path.name for path in (place / "en-de").iterdir()}
    assert names == {
        "config.json",
        "learning-curve.svg",
        "metrics.jsonl",
        "model.safetensors",
        "report.md",
        "state",
        "tokenizer.model",
        "training.toml",
    }
    lines = tiny.metrics(place / "en-de")
    assert {"step", "loss", "lr", "tokens_per_second"} <= lines[0].keys()
    assert {"step", "valid_loss", "bleu", "chrf"} <= lines[-1].keys()
    found = run(place, "translate -m en-de", feed, str(place / "valid.en"))
    assert found.wait() == 0
    assert found.output.count("\n") == 20


def test_auto_says_what_it_picks(place: Path) -> None:
    """Nothing named but two files and a folder, and a limit so that the test ends; no vocabulary
    of 2,000 is in this text."""
    command = run(place, "train a.en a.de --out ./auto --steps 1")
    assert command.wait() == 0, command.errors
    assert "auto preset for 190 pairs on a CPU: the tiny shape, 2,000 pieces" in command.errors
    size = json.loads((place / "auto" / "config.json").read_text(encoding="utf-8"))["model"][
        "vocab_size"
    ]
    assert size < 500
    assert (
        command.errors.count(
            f"The text supports a vocabulary of {size:,}, not 2,000; {size:,} is used."
        )
        == 1
    )
    assert "what you named yourself comes first" in command.errors


def test_translating(model: Path, place: Path) -> None:
    """From standard input and from a file, with the line ends of Windows, a byte order mark and
    no end of the last line."""
    (place / "in.en").write_bytes(b"\xef\xbb\xbfone two\r\n\r\nthree\n   \nfour five")
    wanted = "eins zwei\n\ndrei\n\nvier fünf\n"
    assert run(place, "translate -m model", feed, str(place / "in.en")).output == wanted
    command = run(place, "translate -m model in.en --out ./out.de --beam 1")
    assert (command.output, command.errors) == ("", "")
    assert (place / "out.de").read_text(encoding="utf-8") == wanted


def test_translating_whatever_the_terminal_says(model: Path, place: Path) -> None:
    """A real command, in a terminal that knows no umlauts; its reader goes away after a line."""
    (place / "many.en").write_text("five\n" * 5000, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "OMP_NUM_THREADS": "1"}
    translate = f"{sys.executable} -m dragoman translate -m {model} --beam 1"
    line = f"{translate} {place / 'many.en'} | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, env=environment, timeout=300
    )
    assert done.stdout == "fünf\n".encode()
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.parametrize(
    "flags", ["", "--alignments", "--jsonl", "--nbest 2", "--whole-lines --careful"]
)
def test_strange_lines_stay_in_their_places(model: Path, place: Path, flags: str) -> None:
    """Each line gives one record, whatever stands in it, and its neighbours are translated as
    ever."""
    command = run(place, f"translate -m model strange.en --beam 2 --runtime int8 {flags}")
    assert (command.wait(), command.errors) == (0, "")
    lines = command.output.split("\n")
    assert lines.pop() == ""
    if "nbest" in flags:
        rows = [line.split("\t") for line in lines]
        assert {len(row) for row in rows} == {3}
        assert sorted({int(row[0]) for row in rows}) == list(range(1, len(STRANGE) + 1))
        lines = [
            next(row[2] for row in rows if row[0] == str(number))
            for number in range(1, len(STRANGE) + 1)
        ]
    elif "jsonl" in flags:
        records = [json.loads(line) for line in lines]
        assert [record["source"] for record in records] == STRANGE
        lines = [record["text"] for record in records]
    elif "alignments" in flags:
        assert {line.count("\t") for line in lines} == {1}
        assert lines[1] == "vier\t0-0"
        lines = [line.split("\t")[0] for line in lines]
    assert len(lines) == len(STRANGE)
    assert [line for line, source in zip(lines, STRANGE, strict=True) if source == "four"] == [
        "vier"
    ] * 7
    assert [line.strip() for line in lines[12:15]] == ["", "", ""]
    assert lines[8].count(" ") > 3000  # of 20,000 words; the model has never seen so many in a row


def test_json_lines(model: Path, place: Path) -> None:
    command = run(place, "translate -m model --jsonl --alignments --nbest 2 test.en --runtime int8")
    records = [json.loads(line, parse_constant=pytest.fail) for line in command.output.splitlines()]
    assert len(records) == 40
    for record in records:
        keys = [
            "source",
            "text",
            "score",
            "tokens",
            "token_probabilities",
            "confidence",
            "flags",
            "alignment",
            "alternatives",
        ]
        assert list(record) == keys
        assert "".join(record["tokens"]).replace("▁", " ").strip() == record["text"]
        assert len(record["token_probabilities"]) == len(record["tokens"]) + 1
        assert all(
            0 <= value <= 1 and value == round(value, 6) for value in record["token_probabilities"]
        )
        assert record["confidence"] is None
        assert len(record["alternatives"]) == 1
        assert record["alternatives"][0]["score"] <= record["score"]
    assert "fünf" in command.output


def test_the_glossary_is_kept_to(model: Path, place: Path) -> None:
    (place / "terms.en").write_text("five six\none\nsix five six\n", encoding="utf-8")
    lines = run(place, "translate -m model terms.en --glossary terms.tsv").output.splitlines()
    assert ["sieben" in line.split() for line in lines] == [True, False, True]
    assert ["fünf" in line.split() for line in lines] == [True, False, True]
    assert lines[1] == "eins"


def test_a_prefix_and_draws(model: Path, place: Path) -> None:
    lines = run(place, "translate -m model test.en --prefix neun").output.splitlines()
    assert len(lines) == 40
    assert all(line.startswith("neun") for line in lines)
    drawn = [
        run(place, f"translate -m model test.en --sample --top-k 5 --temperature 3 --seed {seed}")
        for seed in (1, 1, 2)
    ]
    assert drawn[0].output.count("\n") == 40
    assert drawn[0].output == drawn[1].output != drawn[2].output


def test_evaluating(model: Path, place: Path) -> None:
    command = run(place, "evaluate -m model test.en test.de")
    assert command.wait() == 0, command.errors
    bleu, chrf, words = command.output.splitlines()
    assert words.endswith("means: very good, close to the references.")
    assert bleu.startswith("BLEU ")
    assert float(bleu.split()[1]) > 90
    assert "(95%: " in bleu
    assert "tok:13a" in bleu
    assert "version:" in bleu
    assert chrf.startswith("chrF ")


def test_evaluating_as_json(model: Path, place: Path) -> None:
    command = run(place, "evaluate -m model test.en test.de --json --beam 1")
    found = json.loads(command.output)
    assert found["sentences"] == 40
    assert 90 < found["bleu"]["value"] < 100.01
    assert found["bleu"]["low"] <= found["bleu"]["value"] <= found["bleu"]["high"] + 1e-9
    assert "bs:1000" in found["chrf"]["signature"]


def test_evaluating_against_others(model: Path, place: Path) -> None:
    """Itself in another folder cannot be told apart; a file of nonsense is worse."""
    shutil.copytree(model, place / "same", dirs_exist_ok=True)
    command = run(place, "evaluate -m model test.en test.de --against same")
    assert command.wait() == 0, command.errors
    assert command.output.count("cannot tell") == 2
    (place / "nonsense.de").write_text("null acht neun\n" * 40, encoding="utf-8")
    command = run(place, "evaluate -m model test.en test.de --against nonsense.de --json")
    found = json.loads(command.output)["against"]
    assert "better" in found["bleu"]["verdict"]
    assert found["bleu"]["p_value"] < 0.01
    assert found["name"] == str(place / "nonsense.de")


def test_evaluating_terms(model: Path, place: Path) -> None:
    """The model keeps to all of them; the references, taken as another system, only by chance to
    the false one for six."""
    sources, references = (
        (place / name).read_text(encoding="utf-8").splitlines() for name in ("test.en", "test.de")
    )
    pairs = [
        (source.split(), reference.split())
        for source, reference in zip(sources, references, strict=True)
    ]
    count = sum(source.count(word) for source, _ in pairs for word in ("five", "six"))
    right = sum(source.count("five") for source, _ in pairs)
    right += sum(min(source.count("six"), reference.count("sieben")) for source, reference in pairs)
    assert 0 < right < count
    command = run(place, "evaluate -m model test.en test.de --glossary terms.tsv --against test.de")
    assert f"\nterms 100.0% ({count} of {count})\n" in command.output, command.errors
    assert command.output.endswith(f"\nthe other: terms {right / count:.1%} ({right} of {count})\n")
    command = run(
        place,
        "evaluate -m model test.en test.de --glossary terms.tsv --against test.de --json "
        "--runtime torch",
    )
    result = json.loads(command.output)
    assert result["terms"] == {"accuracy": 1.0, "present": count, "found": count}
    assert result["against"]["terms"]["accuracy"] == pytest.approx(right / count)


def test_calibrating(model: Path, place: Path) -> None:
    """Afterwards every translation has a confidence, and --jsonl tells it."""
    tiny.write_corpus(place, "many", 120, seed=5, longest=9, turned=False)
    shutil.copytree(model, place / "sure")
    command = run(place, "calibrate -m sure many.en many.de")
    assert command.wait() == 0, command.errors
    first, second = command.output.splitlines()
    assert first.startswith("expected calibration error 0.")
    assert first.endswith(" on 120 sentences")
    assert "chrF of 60" in second
    records = [
        json.loads(line)
        for line in run(place, "translate -m sure test.en --jsonl").output.splitlines()
    ]
    assert all(0 <= record["confidence"] <= 1 for record in records)
    assert sum(record["confidence"] for record in records) / 40 > 0.8  # nearly all are right


def test_a_shortlist(trained: Path, model: Path, place: Path) -> None:
    """From the folder's own text and from files; what is translated with it stays as it is."""
    from safetensors.numpy import load_file

    shutil.copytree(trained, place / "whole")
    command = run(place, "shortlist -m whole")
    assert command.wait() == 0, command.errors
    said, covered = command.output.splitlines()
    assert " source tokens, learnt from 1," in said
    assert covered.startswith("100.00% of the target tokens of ")
    found = load_file(place / "whole" / "shortlist.safetensors")
    assert set(range(260)) <= set(found["frequent"].tolist())
    assert found["frequent"].dtype == "int64"
    assert found["table"].dtype == "int32"
    assert (
        len(found["table"])
        == json.loads((place / "whole" / "config.json").read_text(encoding="utf-8"))["model"][
            "vocab_size"
        ]
    )
    plain, short = (
        run(place, f"translate -m whole test.en --runtime int8 {flag}")
        for flag in ("", "--shortlist")
    )
    assert short.output == plain.output
    assert short.output.count("\n") == 40
    assert "holds no training text" in run(place, "shortlist -m model").errors
    shutil.copytree(model, place / "bare")
    command = run(place, "shortlist -m bare test.en test.de")
    assert command.wait() == 0, command.errors
    assert (place / "bare" / "shortlist.safetensors").exists()


def test_converting(model: Path, place: Path) -> None:
    pytest.importorskip("ctranslate2")
    command = run(place, "convert model ct2:" + str(place / "ct2") + " --compute-type float32")
    assert command.wait() == 0, command.errors
    assert (place / "ct2" / "model.bin").exists()
    assert "translations have the same tokens as ours" in command.errors


def test_checking(place: Path) -> None:
    """Exit code 1 where training would refuse the text, and no torch for it."""
    command = run(place, "check a.en a.de --valid valid.en valid.de --test valid.en")
    assert command.wait() == 0
    assert "200 pairs read" in command.output
    command = run(place, "check a.en short.de --json")
    assert command.wait() == 1
    (problem,) = [
        found for found in json.loads(command.output)["findings"] if found["kind"] == "unequal"
    ]
    assert "200 lines" in problem["examples"][0]
    assert "197" in problem["examples"][0]
    code = (
        "import sys; from dragoman.cli.main import app; "
        "app(sys.argv[1:], standalone_mode=False); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words(place, "check a.en a.de")],
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1] == "False", done.stderr


def cut_weights(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def newer_format(folder: Path) -> None:
    text = (folder / "config.json").read_text(encoding="utf-8")
    (folder / "config.json").write_text(
        text.replace('"format": 1', '"format": 99'), encoding="utf-8"
    )


TRAIN = "train a.en a.de --out ./bad"
MISTAKES = [
    # files
    ("train a.en nothing.de --out ./bad", "nothing.de does not exist"),
    ("train a.en short.de --out ./bad", "a.en: 200 lines, but {place}/short.de has 197"),
    ("train a.en latin.de --out ./bad", "latin.de, line "),
    ("train a.en latin.de --out ./bad", "not UTF-8"),
    ("train empty.en empty.de --out ./bad", "empty.en"),
    ("train a.en --out ./bad", "a.en has no partner"),
    ("train a.en full --out ./bad", "full is a folder; name a text file"),
    ("train --out ./bad", "no training files were named"),
    ("train a.en a.de --valid valid.en nothing.de --out ./bad", "nothing.de does not exist"),
    ("check a.en nothing.de", "nothing.de does not exist"),
    # options
    (
        f"{TRAIN} --set model.d_modle=3",
        "unknown option 'model.d_modle'; did you mean 'model.d_model'?",
    ),
    (f"{TRAIN} --set dropuot=0.3", "unknown option 'dropuot'; did you mean 'dropout'?"),
    (
        f"{TRAIN} --set vocab_size=300",
        "'vocab_size' could be tokenizer.vocab_size or model.vocab_size",
    ),
    (f"{TRAIN} --set dropout=big", "'model.dropout' must be a number, not 'big'"),
    (f"{TRAIN} --set dropout", "'dropout' is not an assignment"),
    (
        f"{TRAIN} --config misspelt.toml",
        "unknown option 'training.warm_up'; did you mean 'warmup'?",
    ),
    (f"{TRAIN} --config broken.toml", "broken.toml is not a TOML file"),
    (f"{TRAIN} --config nothing.toml", "nothing.toml does not exist"),
    (f"{TRAIN} --stepz 3", "--steps"),
    (f"{TRAIN} --steps many", "--steps"),
    (f"{TRAIN} --steps 0", "training.steps is 0; it must be at least 1"),
    (f"{TRAIN} --preset bsae", "did you mean 'base'?"),
    (f"{TRAIN} --device gpu", "device is 'gpu'; it must be auto, cpu, cuda or cuda:N"),
    (f"{TRAIN} --vocab-size 100", "tokenizer.vocab_size is 100; 260 pieces are reserved"),
    (
        f"{TRAIN} --set data.max_length=1000",
        "model.max_length is 1024; it must be at least data.max_length + 50",
    ),
    (f"{TRAIN} --set weights=[1.0,2.0]", "data.weights has 2 numbers for 1 corpora"),
    (f"{TRAIN} --valid", "--valid needs one or two files after it"),
    (f"{TRAIN} --valid --steps 3", "--valid needs one or two files after it"),
    ("train a.en a.de", "--out is missing"),
    ("train a.en a.de --out full", "full exists and is not empty; name another --out"),
    ("trian a.en a.de", "'train'"),
    ("check", "files"),
    (
        "translate",
        "no model is named; name a language with --to, such as --to de, or a model folder with -m",
    ),
    ("evaluate test.en test.de --from en", "no model is named; name a language with --to"),
    ("translate --to xx", "no bundled model translates into 'xx' ("),
    (
        "translate --from xx --to de",
        "no bundled model translates from 'xx' into 'de' (",
    ),
    (
        "translate -m model --to fr",
        "--to is 'fr', but {place}/model has 'de' there; omit --to or -m",
    ),
    (
        "evaluate test.en test.de -m model --from de --to de",
        "--from is 'de', but {place}/model has 'en' there",
    ),
    ("translate -m model --beam 0", "beam is 0; it must be at least 1"),
    ("translate -m model nothing.en", "nothing.en"),
    ("translate -m model --nbest 9", "nbest is 9; it must be at most the beam, which is 4"),
    ("translate -m model --nbest 0", "nbest is 0; it must be at least 1"),
    ("translate -m model --top-k 3", "add sample or omit them"),
    ("translate -m model --sample --top-p 1.5", "top_p is 1.5"),
    ("translate -m model --min-length 9 --max-length 3", "min_length is 9 and max_length 3"),
    ("translate -m model --sample --coverage 0.2", "coverage ranks the outputs of a search"),
    ("translate -m model --nbest 2 --alignments", "add --jsonl to get both"),
    ("translate -m model --glossary nothing.tsv", "nothing.tsv"),
    ("translate -m model --glossary a.en", "a.en, line 1: no tab"),
    (
        "translate -m model --runtime fast",
        "runtime is 'fast'; it must be one of auto, torch, int8, ctranslate2",
    ),
    ("translate -m model --device tpu", "device is 'tpu'"),
    ("translate -m model --shortlist --runtime int8", "shortlist"),
    ("translate -m model --resume", "--resume needs --out"),
    ("translate -m model a.en --out a.en", "which is also the input"),
    ("translate -m model surrogate.en", "surrogate.en, line 2 is not UTF-8"),
    ("translate -m model endless.en", "endless.en, line 1 has over 1,048,576 bytes"),
    ("calibrate -m model empty.en empty.de", "there are 0 sentences to calibrate on"),
    ("calibrate -m full a.en a.de", "is not a model folder"),
    ("convert model tflite:x", "'tflite:x'; it must be ct2:FOLDER"),
    ("convert model ct2:", "it must be ct2:FOLDER"),
    ("convert model ct2:x --compute-type int4", "compute_type is 'int4'; it must be one of int8, "),
    ("shortlist -m full", "is not a model folder"),
    # model folders
    ("translate -m full", "config.json is missing, so {place}/full is not a model folder"),
    ("translate -m nowhere", "nowhere is not a folder"),
    ("translate -m cut", "cut/model.safetensors is damaged"),
    (
        "translate -m newer",
        "newer has format 99, and this dragoman reads up to 1; install a newer dragoman",
    ),
    ("evaluate -m full test.en test.de", "is not a model folder"),
    ("train --resume full", "full holds no run to resume"),
    # test sets
    ("evaluate -m model a.en short.de", "a.en: 200 lines, but {place}/short.de has 197"),
    ("evaluate -m model a.en latin.de", "latin.de, line "),
    ("evaluate -m model empty.en empty.de", "there are no lines to score"),
    ("evaluate -m model test.en test.de --against short.de", "197 lines"),
    ("evaluate -m model test.en test.de --against nothing.de", "nothing.de"),
    ("translate -m model latin.de", "latin.de, line "),
]


@pytest.fixture(scope="module")
def damaged(model: Path, place: Path) -> None:
    for name, damage in (("cut", cut_weights), ("newer", newer_format)):
        damage(
            Path(shutil.copytree(model, place / name, ignore=shutil.ignore_patterns("model.int8*")))
        )


@pytest.mark.parametrize(("line", "said"), MISTAKES)
def test_a_mistake_gets_one_sentence(
    place: Path,
    damaged: None,
    line: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process, through the real front door."""
    monkeypatch.setattr(sys, "argv", ["dragoman", *words(place, line)])
    with open(os.devnull, encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(SystemExit) as stopped:
            front_door.main()
    errors = capsys.readouterr().err
    assert stopped.value.code == 2, errors
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert errors.endswith("\n")
    assert said.format(place=place) in errors
    assert not (place / "bad" / "state").exists()


def test_a_bad_line_is_named(place: Path) -> None:
    """The first line with the umlaut that is not UTF-8."""
    lines = (place / "latin.de").read_bytes().split(b"\n")
    first = next(number for number, line in enumerate(lines, 1) if b"\xfc" in line)
    assert (
        f"{place / 'latin.de'}, line {first}: not UTF-8"
        in run(place, "train a.en latin.de --out ./bad").errors
    )


def test_after_a_mistake_the_same_folder_will_do(place: Path) -> None:
    for line, code in (
        ("train a.en latin.de --out ./again --config recipe.toml --steps 1", 2),
        ("train a.en a.de --out ./again --config recipe.toml --steps 1", 0),
    ):
        assert run(place, line).wait() == code


def test_compressed_and_tabbed(place: Path) -> None:
    """Two corpora in other formats, named by a recipe alone."""
    english, german = (
        (place / f"a.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "de")
    )
    pairs = [f"{source}\t{target}\n" for source, target in zip(english, german, strict=True)]
    with gzip.open(place / "half.en-de.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(pairs[:100])
    with open(place / "rest.jsonl", "w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"en": a, "de": b}) + "\n"
            for a, b in zip(english[100:], german[100:], strict=True)
        )
    recipe = f"{tiny.RECIPE}\n[data]\ntrain = ['{place}/half.en-de.tsv.gz', '{place}/rest.jsonl']\n"
    (place / "formats.toml").write_text(recipe, encoding="utf-8")
    command = run(place, "train --out ./formats --config formats.toml --steps 2")
    assert command.wait() == 0, command.errors
    assert "2 corpora, en to de: 200 pairs read" in command.errors


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"corrections"}))
def test_help_has_an_example(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["dragoman", command, "--help"])
    with pytest.raises(SystemExit) as stopped:
        front_door.main()
    assert not stopped.value.code
    assert f"Example: dragoman {command}" in " ".join(capsys.readouterr().out.split())


def test_help_is_quick_and_light() -> None:
    """Processor time, the best of up to five: what the clock would say on a machine with nothing
    else to do. On a slow one, as many times what Typer alone takes as on a fast one."""
    code = (
        "import sys; from dragoman.cli.main import app; "
        "app(['--help'], standalone_mode=False); print(*sys.modules)"
    )
    help_times = []
    typer_times = []
    for _ in range(5):
        seconds, modules = processor_time(code)
        assert not {"torch", "numpy", "sentencepiece", "sacrebleu"} & set(modules.split())
        help_times.append(seconds)
        if seconds < 0.5:
            return
        seconds, _ = processor_time("import typer, typer.rich_utils")
        typer_times.append(seconds)
    assert min(help_times) < 2.5 * min(typer_times)


def processor_time(code: str) -> tuple[float, str]:
    """Seconds of processor time that Python takes for this code, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    system = after.ru_stime - before.ru_stime
    return user + system, found.stdout


def test_every_option_is_listed(place: Path) -> None:
    from dragoman.config import describe
    from dragoman.training.training_options import Options

    output = run(place, "train --options").output
    for option in describe(Options):
        assert any(line.startswith(f"{option.name} ") for line in output.splitlines())
        assert option.help in output


def test_version_and_bare_command(place: Path) -> None:
    import dragoman

    assert run(place, "--version").output == f"{dragoman.__version__}\n"
    bare = run(place, "")
    assert "Usage" in bare.output + bare.errors
    assert "error" not in bare.errors


def interrupt(module: str, name: str) -> None:
    def raise_it(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    setattr(importlib.import_module(module), name, raise_it)


def test_ctrl_c_outside_of_the_loop(place: Path) -> None:
    line = "train a.en a.de --out ./interrupted --config recipe.toml"
    command = run(place, line, interrupt, "dragoman.data.prepare", "learn")
    assert command.wait() == 130
    assert "Traceback" not in command.errors


def test_valid_takes_all_words_up_to_the_next_option() -> None:
    from dragoman.cli.main import _spread

    spread: Callable[[str], str] = lambda line: " ".join(_spread(line.split()))  # noqa: E731
    assert spread("train a b --valid c d --out m") == "train a b --valid c --valid d --out m"
    assert spread("check a b --test c --valid d") == "check a b --test c --valid d"
    assert spread("train a b --valid=c --out m") == "train a b --valid=c --out m"
    assert spread("") == ""
