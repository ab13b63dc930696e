"""Files of sentences whose words have a label each: columns, one word a line, or treebanks. Knows
files; no tokens and no model.

What is read, by the ending of the name (that of a compression aside):

    .mrg      bracketed trees; a word's label is its part-of-speech tag
    .conllu   Universal Dependencies: the second column is the word, the fourth its label (UPOS);
              comments (#), ranges of words (1-2) and empty words (1.1) are passed over
    any other the first column is the word, the last its label, with tabs between the columns or, in
              a line without a tab, spaces; a line that begins with -DOCSTART- is passed over

An empty line ends a sentence, and so does the end of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.text_lines import COMPRESSED, location, read_lines
from dragoman.data.treebank import read_trees
from dragoman.errors import InputError
from dragoman.text.normalise import normalise

MAX_LABELS = 5000
MAX_WORDS = 10_000  # of one sentence
_DOCUMENT = "-DOCSTART-"
_HARMLESS = ("crlf", "mark", "utf16")  # what a reader of lines has dealt with


@dataclass(frozen=True)
class LabelledWords:
    """A sentence: its words, and a label for each."""

    words: tuple[str, ...]
    labels: tuple[str, ...]


def read_labelled_words(files: Sequence[str]) -> list[LabelledWords]:
    """Return the sentences of the files; whatever cannot be read is refused with its line."""
    sentences: list[LabelledWords] = []
    labels: set[str] = set()
    for file in files:
        before = len(sentences)
        for sentence in _sentences(file):
            sentences.append(sentence)
            labels.update(sentence.labels)
            if len(labels) > MAX_LABELS:
                raise InputError(
                    f"{file} has more than {MAX_LABELS:,} labels; is its last column the label?"
                )
        if len(sentences) == before:
            raise InputError(f"{file} has no words; write a word, a tab and its label on each line")
    return sentences


def _sentences(file: str) -> Iterator[LabelledWords]:
    path = Path(file)
    if not path.is_file():
        problem = "is not a regular file" if path.exists() else "does not exist"
        raise InputError(f"{file} {problem}; name a file with a word and its label on each line")
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    if path.suffix.lower() == ".mrg":
        for tree in read_trees(file):
            yield LabelledWords(tree.words, tree.tags)
        return
    is_universal = path.suffix.lower() == ".conllu"
    words: list[str] = []
    labels: list[str] = []
    for number, line in enumerate(read_lines(file, _refuse), 1):
        line = line or ""
        if not line.strip():
            if words:
                yield LabelledWords(tuple(words), tuple(labels))
            words = []
            labels = []
            continue
        found = _universal(line) if is_universal else _columns(line)
        if found is None:
            continue
        word, label = found
        if not word or not label:
            raise InputError(
                f"{location(file, number)}: '{line.strip()[:60]}' is not a word with a label; "
                "write a word, a tab and its label on each line, and an empty line between "
                "sentences"
            )
        words.append(word)
        labels.append(label)
        if len(words) > MAX_WORDS:
            raise InputError(
                f"{location(file, number)}: the sentence has more than {MAX_WORDS:,} words; "
                "write an empty line between sentences"
            )
    if words:
        yield LabelledWords(tuple(words), tuple(labels))


def _columns(line: str) -> tuple[str, str] | None:
    """The first column and the last, the label empty where there is but one; None for what is
    passed over."""
    if line.startswith(_DOCUMENT):
        return None
    columns = line.split("\t") if "\t" in line else line.split()
    word = normalise(columns[0])
    label = normalise(columns[-1]) if len(columns) > 1 else ""
    return word, label


def _universal(line: str) -> tuple[str, str] | None:
    """The columns FORM and UPOS, empty where there are none; None for what is passed over."""
    if line.startswith("#"):
        return None
    columns = line.split("\t")
    if len(columns) < 4:
        return "", ""
    if not columns[0].isdigit():
        return None
    return normalise(columns[1]), normalise(columns[3])


def _refuse(kind: str, where: str, text: str) -> None:
    """A listener that raises at whatever cannot be read."""
    if kind not in _HARMLESS:
        raise InputError(f"{where} cannot be read as words with labels: {text[:100]}")
