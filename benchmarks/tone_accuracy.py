"""Does a model address its reader as it is told, and what does that cost?

    python benchmarks/tone_accuracy.py models/en-de test.en test.de

The sentences whose reference shows its tone, by the rule that training uses too, are translated
without a tone, as formal and as informal. The rule then says of each output whether it is formal,
informal or neither. BLEU is that of the same sentences without a tone, with that of the reference
and with the other one.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import sacrebleu

from dragoman import Translator
from dragoman.text.formality import TONES, Formality, rules_for


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--runtime", default="auto")
    given = parser.parse_args()
    translator = Translator.load(given.model, runtime=given.runtime)
    language = translator.description.target_language
    rule = rules_for(language)
    if rule is None:
        parser.error(f"no rule tells the tone of {language}; dragoman/text/formality.toml has them")
    sources = given.source.read_text(encoding="utf-8").splitlines()
    references = given.reference.read_text(encoding="utf-8").splitlines()
    chosen = with_tone(references, rule)
    sources = [sources[index] for index in chosen]
    references = [references[index] for index in chosen]
    wanted = [rule.tone_of(line) for line in references]
    outputs = {"": [one.text for one in translator.translate(sources)]}
    for tone in translator.description.tones:
        outputs[tone] = [one.text for one in translator.translate(sources, tone=tone)]
    print(f"{len(chosen)} sentences, of whose references {told(references, rule)}")
    for tone, lines in outputs.items():
        print(f"{tone or 'without a tone'}: {told(lines, rule)}, BLEU {bleu(lines, references)}")
    if len(outputs) == 1:
        return
    for name, tones in (("the reference's", wanted), ("the other", [other(one) for one in wanted])):
        lines = [outputs[tone][number] for number, tone in enumerate(tones)]
        print(f"{name} tone: BLEU {bleu(lines, references)}")


def with_tone(references: Sequence[str], rule: Formality) -> list[int]:
    """The lines that show a tone."""
    return [index for index, line in enumerate(references) if rule.tone_of(line)]


def told(lines: Sequence[str], rule: Formality) -> str:
    """How many lines show each tone, and how many show none."""
    counts = Counter(rule.tone_of(line) or "neither" for line in lines)
    return ", ".join(f"{counts[name]} {name}" for name in (*TONES, "neither"))


def other(tone: str) -> str:
    """The tone that this one is not."""
    return next(one for one in TONES if one != tone)


def bleu(lines: Sequence[str], references: Sequence[str]) -> str:
    """sacreBLEU with its default settings, as a number of two digits."""
    return f"{sacrebleu.corpus_bleu(list(lines), [list(references)]).score:.2f}"


if __name__ == "__main__":
    main()
