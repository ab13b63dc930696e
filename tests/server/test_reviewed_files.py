"""Side files for a reviewer and their way back: what `--bilingual` writes is read again whole, and
the page saves what a reviewed file holds as corrections."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser_page import asked, expect, translated
from starlette.testclient import TestClient

from dragoman.data.correction_files import read_corrected
from dragoman.documents.bilingual import write_bilingual
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.file_translation import TranslatedFile
from dragoman.errors import InputError
from dragoman.server.corrections import Corrections
from dragoman.tasks.translation import Translation

Clients = Callable[..., TestClient]
GERMAN = DocumentSettings("en", "de")
PAIRS = [
    ("one two", "eins zwei"),
    ('five <b> & "six" \x0b', "fünf <b> & »sechs«"),
    ("seven", "sieben"),
]


def written(path: Path) -> Path:
    """A side file of three texts, of which one may need review."""
    pairs = []
    for text, target in PAIRS:
        flags = ("numbers",) if text == "seven" else ()
        pairs.append((text, Translation(target, confidence=0.5, flags=flags)))
    source = Path("report & plan.docx")
    write_bilingual(path, [TranslatedFile(source, Path("out.docx"), pairs)], GERMAN)
    return path


def clean(text: str) -> str:
    return " ".join(text.replace("\x0b", "").split())


class Cells(HTMLParser):
    """The texts of the cells of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_a_memory_comes_back_whole(tmp_path: Path) -> None:
    found = read_corrected(written(tmp_path / "side.tmx"))
    assert [(one.source, one.target) for one in found] == [
        (clean(text), target) for text, target in PAIRS
    ]
    assert {(one.source_language, one.target_language) for one in found} == {("en", "de")}


def test_xliff_comes_back_once_it_is_reviewed(tmp_path: Path) -> None:
    side = written(tmp_path / "side.xliff")
    with pytest.raises(InputError, match="none of which is marked as reviewed"):
        read_corrected(side)
    reviewed = side.read_text().replace(
        'state="needs-review-translation">sieben', 'state="final">7'
    )
    side.write_text(reviewed)
    (found,) = read_corrected(side)
    assert (found.source, found.target) == ("seven", "7")
    assert len(read_corrected(side, unreviewed=True)) == len(PAIRS)


def test_the_page_for_a_reviewer_has_every_pair(tmp_path: Path) -> None:
    cells = Cells(written(tmp_path / "side.html").read_text()).cells
    rows = [cells[start : start + 4] for start in range(0, len(cells), 4)]
    assert [(clean(row[0]), clean(row[1])) for row in rows] == [
        (clean(text), target) for text, target in PAIRS
    ]
    assert [clean(row[3]) for row in rows] == ["", "", "numbers"]


# Through the service


def test_reviewed_translations_are_saved_all_or_none(client_of: Clients, tmp_path: Path) -> None:
    client = client_of(corrections=Corrections(tmp_path / "corrections.sqlite"))

    def send(pairs: Any, **other: Any) -> Any:
        body = {"source": "en", "target": "de", "pairs": pairs} | other
        return client.post("/v1/corrections/reviewed", json=body)

    pairs = [["one two", "Eins und zwei"], ["three", "Drei!"]]
    assert send(pairs).json() == {"saved": 2, "of": 2}
    assert send(pairs).json() == {"saved": 0, "of": 2}
    question = {"text": "three", "source": "en", "target": "de"}
    found = client.post("/v1/translate", json=question).json()["translations"][0]
    assert (found["text"], found["corrected"]) == ("Drei!", True)
    for wrong in ([], [["one"]], [["one", " "]], [["", "eins"]], [["one", "x" * 20_001]]):
        assert send(wrong).status_code == 422
    assert send([["one", "eins"]] * 1_001).status_code == 422
    assert send(pairs, source="auto").status_code == 404
    assert send(pairs, target="xx").status_code == 400
    foreign = {"Origin": "http://elsewhere.example"}
    body = {"source": "en", "target": "de", "pairs": pairs}
    assert client.post("/v1/corrections/reviewed", json=body, headers=foreign).status_code == 403
    without = client_of().post("/v1/corrections/reviewed", json=body)
    assert without.status_code == 404


def test_the_page_takes_a_reviewed_file(page: Any, tmp_path: Path, errors: list[str]) -> None:
    translated(page, "seven", "sieben")
    page.locator("#more summary").click()
    side = written(tmp_path / "side.xliff")
    message = page.locator("#message")
    with page.expect_file_chooser() as chooser:
        page.locator("#reviewed").click()
    chooser.value.set_files(side)
    expect(message).to_contain_text("no reviewed translation")
    reviewed = side.read_text().replace(
        'state="needs-review-translation">sieben', 'state="final">7'
    )
    side.write_text(reviewed)
    page.locator("#reviewed-file").set_input_files(side)
    expect(message).to_have_text("1 correction was new and is saved.")
    expect(page.locator("#target")).to_contain_text("7")
    page.locator("#reviewed-file").set_input_files(written(tmp_path / "side.tmx"))
    expect(message).to_have_text("3 corrections were new and are saved.")
    found = asked(page, "v1/translate", text="one two")["translations"][0]
    assert (found["text"], found["corrected"]) == ("eins zwei", True)
    (tmp_path / "broken.tmx").write_text("<tmx><body>")
    page.locator("#reviewed-file").set_input_files(tmp_path / "broken.tmx")
    expect(message).to_contain_text("no reviewed translation")
    errors.clear()  # a browser styles its report of broken XML, which the page's policy forbids
