"""Sentences whose words have labels, from columns and from treebanks: what is read, what is passed
over, and the line of whatever cannot be read."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dragoman.data import labelled_words
from dragoman.data.labelled_words import LabelledWords, read_labelled_words
from dragoman.errors import InputError


def written(place: Path, name: str, content: str) -> str:
    (place / name).write_text(content, encoding="utf-8")
    return str(place / name)


def test_two_columns_and_an_empty_line(tmp_path: Path) -> None:
    file = written(tmp_path, "a.tsv", "Ada\tB-PER\nLovelace\tI-PER\n\n\nRain\tO\nfalls\tO")
    assert read_labelled_words([file]) == [
        LabelledWords(("Ada", "Lovelace"), ("B-PER", "I-PER")),
        LabelledWords(("Rain", "falls"), ("O", "O")),
    ]


def test_the_last_of_several_columns_is_the_label(tmp_path: Path) -> None:
    """As in CoNLL-2003, with its lines between documents; # is a word like others."""
    file = written(
        tmp_path,
        "b.conll",
        "-DOCSTART- -X- -X- O\n\nU.N. NNP I-NP I-ORG\n# SYM B-NP O\n \n1 CD I-NP O\r\n",
    )
    assert read_labelled_words([file]) == [
        LabelledWords(("U.N.", "#"), ("I-ORG", "O")),
        LabelledWords(("1",), ("O",)),
    ]


def test_a_word_with_a_space_between_tabs(tmp_path: Path) -> None:
    file = written(tmp_path, "c.txt", "10 000\tNUM\nNew York\tPROPN\n")
    (one,) = read_labelled_words([file])
    assert one.words == ("10 000", "New York")


def test_universal_dependencies(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "d.conllu",
        "# text = Vámonos\n1-2\tVámonos\t_\t_\t_\t_\t0\troot\t_\t_\n1\tVamos\tir\tVERB\t_\t_\t0\t"
        "root\t_\t_\n2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_\n2.1\t_\t_\t_\t_\t_\t_\t_\t_\t_\n",
    )
    assert read_labelled_words([file]) == [LabelledWords(("Vamos", "nos"), ("VERB", "PRON"))]


def test_a_treebank_and_a_compressed_file(tmp_path: Path) -> None:
    trees = written(tmp_path, "e.mrg", "(S (NP (NN Rain)) (VP (VBZ falls)) (-LRB- -LRB-))\n")
    columns = tmp_path / "f.tsv.gz"
    columns.write_bytes(gzip.compress(b"Rain\tNN\n"))
    assert read_labelled_words([trees, str(columns)]) == [
        LabelledWords(("Rain", "falls", "("), ("NN", "VBZ", "-LRB-")),
        LabelledWords(("Rain",), ("NN",)),
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.tsv", "Ada\tB\nLovelace\n", r"x\.tsv, line 2: 'Lovelace' is not a word with a label"),
        ("x.tsv", "Ada\tB\n\tO\n", r"x\.tsv, line 2: 'O' is not a word"),
        ("x.tsv", "Ada\tB\nLovelace\t\n", r"x\.tsv, line 2: 'Lovelace' is not a word"),
        ("x.conllu", "1\tRain\n", r"x\.conllu, line 1: '1\tRain' is not a word"),
        ("x.tsv", "\n\n", r"x\.tsv has no words; write a word, a tab and its label"),
        ("x.mrg", "(S (NP", r"x\.mrg, line 1: "),
        ("x.tsv", "a\tb\n\xff", r"x\.tsv, line 2 cannot be read as words with labels: not UTF-8"),
    ],
)
def test_a_line_that_cannot_be_read(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=said) as caught:
        read_labelled_words([str(tmp_path / name)])
    assert "\n" not in str(caught.value)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.tsv does not exist; name a file"):
        read_labelled_words([str(tmp_path / "gone.tsv")])
    with pytest.raises(InputError, match="is not a regular file"):
        read_labelled_words([str(tmp_path)])


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of labels, where the last column is the text; and of a sentence that nothing ends."""
    many = written(tmp_path, "many.tsv", "".join(f"w\tl{number}\n\n" for number in range(5002)))
    with pytest.raises(InputError, match="more than 5,000 labels; is its last column the label"):
        read_labelled_words([many])
    monkeypatch.setattr(labelled_words, "MAX_WORDS", 3)
    long = written(tmp_path, "long.tsv", "w\tO\n" * 4)
    with pytest.raises(InputError, match=r"long\.tsv, line 4: the sentence has more than 3 words"):
        read_labelled_words([long])
