"""How many of 200 everyday phrases, interface words, greetings and fragments come out right?

    python benchmarks/everyday_phrases.py models/en-de

phrases/LANGUAGES.tsv has a phrase and the answers that a native speaker would accept, `|` between
them. A translation is right if it is one of them; the case of its first letter and a final stop do
not count. Every second phrase is held back: choose models and text on the others (--chosen), and
look at all of them only in the end. --wrong prints what was not right.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman import Translator

PHRASES = Path(__file__).parent / "phrases"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--chosen", action="store_true", help="only those not held back")
    parser.add_argument("--wrong", action="store_true", help="print what was not right")
    given = parser.parse_args()
    translator = Translator.load(given.model)
    description = translator.description
    languages = f"{description.source_language}-{description.target_language}"
    phrases = read(PHRASES / f"{languages}.tsv")
    if given.chosen:
        phrases = phrases[::2]
    outputs = [one.text for one in translator.translate([source for source, _ in phrases])]
    right = 0
    for (source, answers), output in zip(phrases, outputs, strict=True):
        if is_right(output, answers):
            right += 1
        elif given.wrong:
            print(f"{source}\t{output}\t{answers[0]}")
    print(f"{right} of {len(phrases)} right")


def read(file: Path) -> list[tuple[str, list[str]]]:
    """The phrases with their answers."""
    phrases = []
    for line in file.read_text(encoding="utf-8").splitlines():
        source, answers = line.split("\t")
        phrases.append((source, answers.split("|")))
    return phrases


def is_right(output: str, answers: list[str]) -> bool:
    """Whether the output is one of the answers, but for its first letter and a final stop."""
    return plain(output) in {plain(answer) for answer in answers}


def plain(text: str) -> str:
    text = text.replace("…", "...").replace("’", "'").replace(" ...", "...")
    text = text.strip().rstrip(".!?").strip()
    return text[:1].lower() + text[1:]


if __name__ == "__main__":
    main()
