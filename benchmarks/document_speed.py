"""How much longer does a Word file take than its text alone?

    python benchmarks/document_speed.py --pages 100

Writes a .docx of so many pages of 300 words, with bold and italic phrases and tables, and the same
paragraphs as lines of text; translates both with the bundled model from English to German, in
turns, and prints the seconds of each, the model loaded before: by the clock, and those that the
processor worked, which others on the machine disturb least (set OMP_NUM_THREADS=1 for them). The
lines are translated as `dragoman translate < text` does it, without alignments; the document as
`dragoman translate FILE`.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import docx

from dragoman import Translator, shipped_model
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.file_translation import Place, translate_place
from dragoman.tasks.request import TranslateRequest

WORDS_A_PAGE = 300
SETTINGS = DocumentSettings("en", "de")
WHO = ("The committee", "A young engineer", "Our neighbour", "The old captain", "The city council")
WHEN = ("last week", "in the morning", "after the meeting", "every year", "before the war")
DID = (
    "decided to build a new bridge over the river",
    "wrote a long report about the price of bread",
    "found {} letters in the cellar of the house",
    "asked whether the school could open {} days earlier",
    "explained why the train from the north was late",
    "bought {} boxes of apples at the market",
)
THEN = (
    "and nobody said a word",
    "because the weather was better than expected",
    "although it had been forbidden",
    "so that the children could go home",
    "which surprised all of us",
)


def sentence(draw: random.Random) -> str:
    deed = draw.choice(DID).format(draw.randint(2, 900))
    parts = [draw.choice(WHO), draw.choice(WHEN), deed, draw.choice(THEN)]
    return f"{' '.join(parts)}."


def paragraphs(pages: int) -> list[str]:
    """Return paragraphs of one to five sentences; all follow from one seed."""
    draw = random.Random(1)
    made: list[str] = []
    words = 0
    while words < pages * WORDS_A_PAGE:
        made.append(" ".join(sentence(draw) for _ in range(draw.randint(1, 5))))
        words += len(made[-1].split())
    return made


def write_docx(texts: list[str], path: Path) -> None:
    """Write paragraphs with emphasis on some words, every tenth as the cell of a table."""
    draw = random.Random(2)
    document = docx.Document()
    for number, text in enumerate(texts):
        if number % 10 == 9:
            document.add_table(1, 1).cell(0, 0).text = text
            continue
        paragraph = document.add_paragraph()
        words = text.split()
        place = 0
        while place < len(words):  # runs of several words, as Word has them
            end = place + draw.randint(4, 40)
            run = paragraph.add_run(" ".join(words[place:end]) + " ")
            run.bold = draw.random() < 0.2
            run.italic = draw.random() < 0.2
            place = end
    document.save(str(path))


@dataclass(frozen=True)
class Taken:
    """The seconds of some work, by the clock and of the processor."""

    clock: float
    processor: float


def taken(work: Callable[[], object]) -> Taken:
    start = (time.perf_counter(), time.process_time())
    work()
    return Taken(time.perf_counter() - start[0], time.process_time() - start[1])


def ratio(document: list[Taken], text: list[Taken], name: str) -> float:
    middle = [statistics.median(getattr(one, name) for one in both) for both in (document, text)]
    return middle[0] / middle[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    texts = paragraphs(given.pages)
    translator = Translator.load(shipped_model("en", "de"))
    request = TranslateRequest()
    list(translator.stream(texts[:20], request))
    plain: list[Taken] = []
    word: list[Taken] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder) / "a.docx", Path(folder) / "b.docx", overwrite=True)
        write_docx(texts, place.source)
        for _ in range(given.rounds):
            plain.append(taken(lambda: list(translator.stream(texts, request))))
            word.append(
                taken(lambda: translate_place(place, lambda: translator, request, SETTINGS))
            )
            print(f"text {plain[-1]}, .docx {word[-1]}", flush=True)
    print(f"{given.pages} pages, {sum(len(text.split()) for text in texts):,} words, ", end="")
    print(f"{len(texts):,} paragraphs: the .docx takes ", end="")
    print(f"{ratio(word, plain, 'clock'):.2f} times as long as its text, and ", end="")
    print(f"{ratio(word, plain, 'processor'):.2f} times the processor's seconds")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
