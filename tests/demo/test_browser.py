"""The tokeniser of demo/browser against our own, run by node where there is one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman.folder.description import load_description
from dragoman.folder.shipped import shipped_model
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions, learn

PAGE = Path(__file__).parents[2] / "demo" / "browser"
LINES = [
    "I would like a cup of coffee with milk.",
    "  Der Preis: 12,50 €,   nicht 13!  ",
    "naïve façade Ångström e\u0301t\u00e9",
    "日本語 and 🙂 and <formal> and a<x1>b",
    "Donaudampfschifffahrtsgesellschaft",
    "",
]
SCRIPT = """
import fs from "node:fs";
const { Pieces } = await import(process.argv[2]);
const pieces = new Pieces(fs.readFileSync(process.argv[3]));
for (const line of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const ids = pieces.encode(line);
  console.log(JSON.stringify([ids, pieces.decode(ids)]));
}
"""


def in_node(model: Path, tmp_path: Path) -> list[tuple[list[int], str]]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (tmp_path / "run.mjs").write_text(SCRIPT, encoding="utf-8")
    command = [node, str(tmp_path / "run.mjs"), (PAGE / "pieces.mjs").as_uri(), str(model)]
    given = json.dumps(LINES)
    done = subprocess.run(command, input=given, capture_output=True, encoding="utf-8", check=True)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def check(tokenizer: Tokenizer, model: Path, tmp_path: Path) -> None:
    expected = tokenizer.encode(LINES, "source")
    found = in_node(model, tmp_path)
    assert [ids for ids, _ in found] == expected
    assert [text for _, text in found] == tokenizer.decode(expected, "source")


def test_the_bundled_tokeniser_cuts_alike(tmp_path: Path) -> None:
    folder = Path(shipped_model("en", "de"))
    check(load_description(folder)[1], folder / "tokenizer.model", tmp_path)


def test_tags_are_one_piece(tmp_path: Path) -> None:
    lines = [f"{one} {other}" for one in LINES for other in LINES]
    options = TokenizerOptions(vocab_size=420, tags=("<formal>",), copies=True, coverage=0.98)
    tokenizer = learn(options, lines, lines)[0]
    (tmp_path / "tokenizer.model").write_bytes(tokenizer.serialised()[0])
    check(tokenizer, tmp_path / "tokenizer.model", tmp_path)
