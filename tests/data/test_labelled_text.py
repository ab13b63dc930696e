"""Texts with labels and pairs of texts, from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.data.labelled_text import read_labelled, read_text_pairs
from dragoman.errors import InputError


def written(place: Path, name: str, content: str) -> str:
    (place / name).write_text(content, encoding="utf-8")
    return str(place / name)


def test_single_texts_and_pairs(tmp_path: Path) -> None:
    single = written(tmp_path, "a.tsv", "good\tall  well\nbad\t\n\tnobody knows\nbad\tno\n")
    assert read_labelled([single]) == [("good", ("all well",)), ("bad", ("no",))]
    pairs = written(tmp_path, "b.tsv", "yes\tit rains\tit is wet\nno\tit rains\tit is dry\n")
    assert read_labelled([pairs]) == [
        ("yes", ("it rains", "it is wet")),
        ("no", ("it rains", "it is dry")),
    ]
    with pytest.raises(InputError, match=r"b\.tsv, line 1: it has 3 columns, and .* have 2"):
        read_labelled([single, pairs])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a\tb\nno tab\n", r"x\.tsv, line 2: no tab; write .* label, tab, text"),
        ("a\tb\n\na\tb\n", r"x\.tsv, line 2: an empty line"),
        ("a\tb\na\tb\tc\n", r"x\.tsv, line 2: it has 3 columns, and the lines before it have 2"),
        ("a\tb\tc\td\n", r"x\.tsv, line 1: it has 4 columns; write label, tab, text"),
    ],
)
def test_lines_that_differ(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_labelled([written(tmp_path, "x.tsv", content)])


def test_pairs_of_texts(tmp_path: Path) -> None:
    """Each once, in their order, from a table or two aligned files."""
    table = written(tmp_path, "a.tsv", "Hi.\tHallo!\nHi.\tHallo!\nHi.\t\nRun!\tLauf!\n")
    written(tmp_path, "b.en", "Wow!\nHi.\n")
    written(tmp_path, "b.de", "Donnerwetter!\nGrüß Gott!\n")
    aligned = [str(tmp_path / f"b.{side}") for side in ("en", "de")]
    assert read_text_pairs([table, *aligned]) == [
        ("Hi.", "Hallo!"),
        ("Run!", "Lauf!"),
        ("Wow!", "Donnerwetter!"),
        ("Hi.", "Grüß Gott!"),
    ]
    with pytest.raises(InputError, match="has no partner"):
        read_text_pairs([aligned[0]])
    with pytest.raises(InputError, match=r"c\.tsv, line 1: one column"):
        read_text_pairs([written(tmp_path, "c.tsv", "one column\n")])
