"""recipes/bundled/packed_readings.py: the same pairs from packed files and from lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.folder import layout
from dragoman.text.tokenizer import EOS, Tokenizer

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "dragoman" / "shipped-models" / "en-de" / layout.TOKENIZER
PAIRS = (("A cat.", "Eine Katze."), ("Two dogs sleep.", "Zwei Hunde schlafen."))


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules, as the recipe imports them."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT / "recipes"))
    import bundled.packed_readings as packed_readings
    import packed_text

    packed_text.begin_tokenising(str(MODEL))
    yield packed_readings
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("bundled", "packed_text", "stage_times"):
            del sys.modules[name]


def portion(recipe: Any, path: Path, rows: list[str]) -> Any:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return recipe.Portion(path, 0, len(rows))


def test_packed_files_and_lines_are_the_same_pairs(recipe: Any, tmp_path: Path) -> None:
    """German to English: once from files by language, once from lines with the source first."""
    import packed_text

    english_first = portion(recipe, tmp_path / "people.tsv", ["\t".join(pair) for pair in PAIRS])
    outs = {one: tmp_path / f"people.some-00.{one}.xz" for one in ("en", "de")}
    packed_text.pack(packed_text.Packing(english_first, outs))
    german_first = portion(
        recipe, tmp_path / "own.tsv", ["\t".join(reversed(pair)) for pair in PAIRS]
    )
    direction = recipe.Direction("de", "en")
    for text in (packed_text.Packed("people", "some-00", outs), german_first):
        found = recipe.read(recipe.Reading(text, direction), with_text=True)
        expect_pairs(found, [(german, english) for english, german in PAIRS])


def test_lines_of_the_other_direction_are_reversed_and_tagged(recipe: Any, tmp_path: Path) -> None:
    """What was written from English to German becomes text from German to English."""
    english_first = portion(recipe, tmp_path / "own.tsv", ["\t".join(pair) for pair in PAIRS])
    reading = recipe.Reading(english_first, recipe.Direction("de", "en"), is_back=True)
    found = recipe.read(reading, with_text=True)
    expect_pairs(found, [(f"<bt> {german}", english) for english, german in PAIRS])


def expect_pairs(found: Any, pairs: list[tuple[str, str]]) -> None:
    """They are these pairs, as lines and as tokens, each side with its end."""
    tokenizer = Tokenizer(MODEL.read_bytes())
    assert found.lines == [f"{source}\t{target}\n".encode() for source, target in pairs]
    sources = tokenizer.encode([source for source, _ in pairs], "source")
    targets = tokenizer.encode([target for _, target in pairs], "target")
    for number, lines in enumerate((sources, targets)):
        expected = [[*ids, EOS] for ids in lines]
        assert found.tokens[number].tolist() == [token for line in expected for token in line]
        assert found.lengths[number].tolist() == [len(line) for line in expected]


def test_damaged_lines_are_left_out(recipe: Any, tmp_path: Path) -> None:
    rows = [
        "one\teins",
        "no tab",
        "three\tcolumns\there",
        "\tno source",
        "no target\t",
        "two\tzwei",
    ]
    text = portion(recipe, tmp_path / "own.tsv", rows)
    found = recipe.read(recipe.Reading(text, recipe.Direction("en", "de")), with_text=False)
    assert found.lines == [b"one\teins\n", b"two\tzwei\n"]
    assert [len(one) for one in found.lengths] == [2, 2]
