"""The block for datatrove, run by datatrove's own executor, reader and writer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Translator

pytest.importorskip(
    "datatrove", reason="datatrove is not installed (pip install 'dragoman[datatrove]')"
)

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

from dragoman.datatrove import Asked, TranslateBlock

TEXTS = ["one two", "nine three eight", "six seven one", "zero", "five"]


@pytest.fixture(scope="module")
def expected(trained: Path) -> dict[str, str]:
    found = Translator.load(trained, "cpu").translate(TEXTS)
    return dict(zip(TEXTS, [one.text for one in found], strict=True))


def run(place: Path, block: TranslateBlock, tasks: int = 1) -> list[dict[str, Any]]:
    """The documents that a pipeline with the block writes."""
    source = place / "in"
    source.mkdir()
    for name, texts in (("a", TEXTS[:3]), ("b", TEXTS[3:])):
        rows = [{"id": f"{name}{n}", "text": text, "title": "four"} for n, text in enumerate(texts)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (source / f"{name}.jsonl").write_text(lines)
    steps = [JsonlReader(str(source)), block, JsonlWriter(str(place / "out"))]
    LocalPipelineExecutor(steps, tasks=tasks, logging_dir=str(place / "logs")).run()
    documents = []
    for path in sorted((place / "out").glob("*.jsonl.gz")):
        content = gzip.decompress(path.read_bytes()).decode()
        documents += [json.loads(line) for line in content.splitlines()]
    return documents


def test_documents_get_their_translation(
    trained: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    block = TranslateBlock(trained, asked=Asked(add=("score",)), batch=2)
    found = run(tmp_path, block, tasks=2)
    assert [one["text"] for one in found] == TEXTS
    assert [one["metadata"]["translation"] for one in found] == list(expected.values())
    assert all(one["metadata"]["translation_score"] < 0 for one in found)
    assert not any("translation_error" in one["metadata"] for one in found)


def test_the_translation_takes_the_place_of_the_text(
    trained: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    found = run(tmp_path, TranslateBlock(trained, asked=Asked(into="text")))
    assert [one["text"] for one in found] == list(expected.values())
    assert [one["metadata"]["source_text"] for one in found] == TEXTS


def test_a_field_of_the_metadata_and_what_fails(trained: Path, tmp_path: Path) -> None:
    found = run(tmp_path, TranslateBlock(trained, "metadata.title"))
    title = Translator.load(trained, "cpu").translate(["four"])[0].text
    assert {one["metadata"]["translation"] for one in found} == {title}

    from datatrove.data import Document

    block = TranslateBlock(trained, "metadata.number")
    (document,) = block.run([Document("one", "x", metadata={"number": 4})])
    assert document.metadata["translation"] is None
    assert document.metadata["translation_error"] == "a value of type int is not text"
