"""Texts with a label each, and pairs of texts that mean the same: what classifiers and the vectors
of texts are learnt from. Knows files; no tokens and no model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman.data.check_report import Report
from dragoman.data.corpus import corpora, read_pairs
from dragoman.data.text_lines import location, read_lines
from dragoman.errors import InputError
from dragoman.text.normalise import normalise

Texts = tuple[str, ...]  # one text, or the two of a pair


def read_labelled(files: Sequence[str]) -> list[tuple[str, Texts]]:
    """Return label and text of each "label<TAB>text" line, or label and both texts where the lines
    have a third column; lines with an empty column are skipped."""
    found = []
    texts = 0
    for file in files:
        if corpora([file], lone_source=True)[0].kind != ".tsv":
            raise InputError(
                f"{file} is not a .tsv file; write label, tab, text on each line of one"
            )
        for number, columns in _rows(file):
            texts = texts or len(columns) - 1
            if len(columns) != texts + 1:
                raise InputError(
                    f"{location(file, number)}: it has {len(columns)} columns, and the lines "
                    f"before it have {texts + 1}; write a label and one text on each line, or a "
                    "label and two texts, with tabs between"
                )
            label, *rest = columns
            if all(columns):
                found.append((label, tuple(rest)))
    return found


def read_text_pairs(files: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of aligned files or of .tsv, .tmx and .jsonl files, each once; those with an
    empty side are skipped."""
    pairs: dict[tuple[str, str], None] = {}
    for corpus in corpora(files):
        for source, target in read_pairs(corpus, "", "", Report().add):
            one = normalise(source or "")
            other = normalise(target or "")
            if one and other:
                pairs[one, other] = None
    return list(pairs)


def _rows(file: str) -> Iterator[tuple[int, list[str]]]:
    """The number and the columns of each line that is not empty: two or three."""
    report = Report()
    for number, line in enumerate(read_lines(file, report.add), 1):
        columns = [normalise(column) for column in (line or "").split("\t")]
        if len(columns) in (2, 3):
            yield number, columns
        elif len(columns) == 1 and line is not None:
            report.add("columns", location(file, number), line or "an empty line")
        elif line is not None:
            raise InputError(
                f"{location(file, number)}: it has {len(columns)} columns; write label, tab, text, "
                "or label, tab, text, tab, text on each line"
            )
