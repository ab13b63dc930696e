"""How many terms of a glossary come out right, and what does it cost?

    python benchmarks/term_accuracy.py models/en-de test.en test.de

For each of the first 200 sentences that have them, five random words of the source are to become
five random words of the reference: harder than any real glossary, since the words do not belong
together. Each sentence has a glossary of its own.
"""

from __future__ import annotations

import argparse
import random
import re
import time

from dragoman import Glossary, Translator
from dragoman.text.glossary import Term, accuracy

_TERMS = 5
_SENTENCES = 200


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("source")
    parser.add_argument("reference")
    arguments = parser.parse_args()
    translator = Translator.load(arguments.model)
    described = translator.description
    languages = (described.source_language, described.target_language)
    with (
        open(arguments.source, encoding="utf-8") as sources,
        open(arguments.reference, encoding="utf-8") as references,
    ):
        tasks = _tasks(list(sources), list(references))
    right = wanted = 0
    start = time.perf_counter()
    for line, glossary in tasks:
        output = translator.translate([line], glossary=glossary, split=False)[0].text
        found, terms = accuracy(glossary, [line], [output], languages)
        right = right + found
        wanted = wanted + terms
    middle = time.perf_counter()
    for line, _ in tasks:
        translator.translate([line], split=False)
    seconds = middle - start
    plain = time.perf_counter() - middle
    print(
        f"{right} of {wanted} terms in {len(tasks)} sentences; "
        f"{seconds / plain:.2f}x the time of plain search, one by one"
    )


def _tasks(sources: list[str], references: list[str]) -> list[tuple[str, Glossary]]:
    draw = random.Random(1)
    tasks = []
    for source, reference in zip(sources, references, strict=True):
        words = [
            list(dict.fromkeys(re.findall(r"[^\W\d_]{3,}", line))) for line in (source, reference)
        ]
        if min(map(len, words)) >= _TERMS:
            pairs = zip(*(draw.sample(side, _TERMS) for side in words), strict=True)
            tasks.append((source.strip(), Glossary([Term(one, (other,)) for one, other in pairs])))
    return tasks[:_SENTENCES]


if __name__ == "__main__":
    main()
