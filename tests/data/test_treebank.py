"""Files of trees: on one line or several, compressed, broken, huge."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dragoman.data.treebank import read_all_trees, read_trees
from dragoman.errors import InputError


def test_trees_over_several_lines(tmp_path: Path) -> None:
    file = tmp_path / "some.mrg"
    file.write_bytes(
        b"\r\n( (S\r\n  (NP (NN Rain))\r\n  (VP (VBZ falls)) ))\r\n(S (VB go))(S (VB on))"
    )
    assert [tree.bracketed() for tree in read_trees(str(file))] == [
        "(S (NP (NN Rain)) (VP (VBZ falls)))",
        "(S (VB go))",
        "(S (VB on))",
    ]
    assert len(read_all_trees([str(file), str(file)])) == 6


def test_a_compressed_file(tmp_path: Path) -> None:
    file = tmp_path / "some.mrg.gz"
    file.write_bytes(gzip.compress("(S (NN Fluß))\n".encode()))
    assert [tree.words for tree in read_trees(str(file))] == [("Fluß",)]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "has no trees"),
        (b"\n \n", "has no trees"),
        (b"(S (-NONE- *))\n", "has no trees"),
        (b"(S (NN a))\n\n(S (NN a)\n", "line 3: the last tree is not finished"),
        (b"(S (NN a))\nA plain sentence.\n", "line 2: 'A' stands outside"),
        (b"(S (NN a)))\n", "line 1: a bracket is closed"),
        (b"\n" + b"(" * 300_000, "line 2: a tree is more than 200 brackets deep"),
        (b"(S (NN \xff\xfe))\n", "cannot be read as trees"),
        (b"(S (NN a))\n" * 3 + b" " * 3_000_000 + b"\n", "cannot be read as trees"),
    ],
)
def test_what_is_no_treebank(tmp_path: Path, content: bytes, complaint: str) -> None:
    file = tmp_path / "broken.mrg"
    file.write_bytes(content)
    with pytest.raises(InputError, match=complaint) as error:
        list(read_trees(str(file)))
    assert "\n" not in str(error.value)


def test_a_damaged_archive(tmp_path: Path) -> None:
    file = tmp_path / "broken.mrg.gz"
    file.write_bytes(gzip.compress(b"(S (NN a))\n" * 1000)[:-20])
    with pytest.raises(InputError, match="cannot be read"):
        list(read_trees(str(file)))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        list(read_trees(str(tmp_path / "none.mrg")))
    with pytest.raises(InputError, match="not a regular file"):
        list(read_trees(str(tmp_path)))
