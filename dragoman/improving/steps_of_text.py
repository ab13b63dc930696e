"""The steps that only deal with text: gathering it. Knows files; no model is trained here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.data.corpus import corpora
from dragoman.errors import InputError
from dragoman.folder.files import aside
from dragoman.improving.gather_text import (
    Known,
    apart_from,
    check_valid,
    clean_lines,
    clean_pairs,
    languages_of,
    read_set,
    split_pairs,
    write_pairs,
)
from dragoman.improving.improve_journal import Outcome
from dragoman.improving.improve_workshop import Workshop

TARGET_TEXT = "target-text.txt"
SOURCE_TEXT = "source-text.txt"


@dataclass(frozen=True)
class Gather:
    """All text becomes files of checked pairs and lines, apart from the valid and test sets."""

    name: str
    reason: str
    minutes: float

    def settings(self, shop: Workshop) -> Mapping[str, Any]:
        """Nothing needs to be decided."""
        return {}

    def run(self, shop: Workshop, settings: Mapping[str, Any]) -> Outcome:
        """Write everything that later steps read."""
        place = shop.place(self.name)
        place.mkdir(parents=True, exist_ok=True)
        known = Known()
        text = []
        numbers: dict[str, float] = {"mixed": _write_sets(shop, known)}
        for number, corpus in enumerate(corpora(shop.inputs.train, shop.inputs.weights)):
            path = place / f"pairs-{number}.tsv"
            count = write_pairs(path, clean_pairs(corpus, shop.languages, known))
            numbers["pairs"] = numbers.get("pairs", 0) + count
            if count:
                text.append((shop.relative(path), corpus.weight))
        if shop.inputs.train and not text:
            raise InputError(
                f"no pair of {shop.inputs.train[0]} can be used: {known.met:,} repeat the valid or "
                "test set, and the others have faults; look at them with `dragoman check`"
            )
        numbers |= _write_others(shop, known)
        numbers["met"] = known.met
        return Outcome(self.name, note=_note(numbers), text=tuple(text), numbers=numbers)


def _write_sets(shop: Workshop, known: Known) -> int:
    """The valid set in both directions, and the test set; how many valid pairs were left out since
    the test set has them."""
    inputs = shop.inputs
    if inputs.valid:
        valid = read_set(inputs.valid, shop.languages)
        named = inputs.valid[0]
    else:
        valid = split_pairs(corpora(inputs.train)[0], shop.languages, inputs.seed)
        named = f"what can be set aside of {inputs.train[0]}"
    check_valid(valid, named)
    test = read_set(inputs.test, shop.languages) if inputs.test else []
    there_were = len(valid)
    valid = apart_from(test, valid, named)
    write_pairs(shop.valid_file, valid)
    write_pairs(shop.turned_valid_file, [(target, source) for source, target in valid])
    write_pairs(shop.test_file, test)
    known.add(valid)
    known.add(test)
    return there_were - len(valid)


def _write_others(shop: Workshop, known: Known) -> dict[str, float]:
    """Related languages and text of one language; the number of pairs and lines of each."""
    place = shop.place("gather")
    options = shop.inputs.options
    numbers: dict[str, float] = {}
    for number, corpus in enumerate(corpora(options.related)):
        sides = languages_of(corpus.files, ("", ""))
        if not all(sides):
            raise InputError(
                f"{corpus.files[0]} does not say its languages; name it like text.en-de.tsv"
            )
        path = place / f"related-{number}.{sides[0]}-{sides[1]}.tsv"
        count = write_pairs(path, clean_pairs(corpus, sides, known))
        numbers["related"] = numbers.get("related", 0) + count
    texts = {TARGET_TEXT: options.target_text, SOURCE_TEXT: options.source_text}
    for name, files in texts.items():
        count = 0
        with aside(place / name) as new, open(new, "w", encoding="utf-8", newline="\n") as file:
            for line in clean_lines(files, known):
                file.write(f"{line}\n")
                count += 1
        numbers[name] = count
    return numbers


def _note(numbers: Mapping[str, float]) -> str:
    parts = [f"{numbers.get('pairs', 0):,.0f} pairs"]
    if numbers.get("related"):
        parts.append(f"{numbers['related']:,.0f} of related languages")
    for name, words in ((TARGET_TEXT, "target"), (SOURCE_TEXT, "source")):
        if numbers[name]:
            parts.append(f"{numbers[name]:,.0f} lines of {words} text")
    if numbers["met"]:
        parts.append(f"{numbers['met']:,.0f} that repeat the valid or test set dropped")
    if numbers.get("mixed"):
        parts.append(f"{numbers['mixed']:,.0f} valid pairs that are in the test set left out")
    return ", ".join(parts)
