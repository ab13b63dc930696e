"""Does a model use the sentence before, and the tone it is told? Documents from a small grammar: a
sentence with a noun, one in which the German pronoun for "it" depends on that noun, and a question
to a reader, who is addressed as Sie in one half of the documents and as du in the other.

    python benchmarks/steering_grammar.py corpus        # train.en, train.de, test.en, test.de
    dragoman train corpus/train.en corpus/train.de --preset tiny --vocab-size 600 --steps 900 \\
        --set data.context=2 --set data.tone=true --set data.held_out=60 \\
        --set data.drop_duplicates=false --set data.drop_shifted=false \\
        --set model.norm_first=true --set training.optimizer=muon \\
        --set training.batch_tokens=2000 --set training.schedule=cosine \\
        --set training.learning_rate=0.003 --set training.warmup=50 \\
        --set training.save_every=900 --set training.average=1 \\
        --set training.valid_sentences=0 --out corpus/model
    python benchmarks/steering_grammar.py corpus --score corpus/model

The pairs of nouns and adjectives of the test set do not occur in the training text. The score is
the share of pronouns with the right gender, with the sentence before and without it; the share of
questions with the tone that was asked for; and, of all sentences without any of it, how many are
right to the letter, where a question may have either tone.
"""

from __future__ import annotations

import argparse
import itertools
import random
from pathlib import Path

Noun = tuple[str, str, str]  # English, German, gender
_PRONOUNS = {"m": "Er", "f": "Sie", "n": "Es"}
_ARTICLES = {"m": "Der", "f": "Die", "n": "Das"}
_NOUNS: list[Noun] = [
    ("table", "Tisch", "m"),
    ("chair", "Stuhl", "m"),
    ("key", "Schlüssel", "m"),
    ("letter", "Brief", "m"),
    ("coat", "Mantel", "m"),
    ("train", "Zug", "m"),
    ("apple", "Apfel", "m"),
    ("mirror", "Spiegel", "m"),
    ("lamp", "Lampe", "f"),
    ("door", "Tür", "f"),
    ("cup", "Tasse", "f"),
    ("clock", "Uhr", "f"),
    ("bridge", "Brücke", "f"),
    ("bag", "Tasche", "f"),
    ("street", "Straße", "f"),
    ("newspaper", "Zeitung", "f"),
    ("book", "Buch", "n"),
    ("house", "Haus", "n"),
    ("window", "Fenster", "n"),
    ("ship", "Schiff", "n"),
    ("glass", "Glas", "n"),
    ("bed", "Bett", "n"),
    ("bicycle", "Fahrrad", "n"),
    ("roof", "Dach", "n"),
]
_ADJECTIVES = [
    ("old", "alt"),
    ("new", "neu"),
    ("red", "rot"),
    ("green", "grün"),
    ("small", "klein"),
    ("large", "groß"),
    ("expensive", "teuer"),
    ("cheap", "billig"),
    ("heavy", "schwer"),
    ("clean", "sauber"),
    ("broken", "kaputt"),
    ("beautiful", "schön"),
]
# English, then German to a Sie and to a du; the noun is in the accusative.
_QUESTIONS = [
    ("Do you see the {}?", "Sehen Sie {} {}?", "Siehst du {} {}?"),
    ("Do you want the {}?", "Wollen Sie {} {}?", "Willst du {} {}?"),
    ("Are you looking for the {}?", "Suchen Sie {} {}?", "Suchst du {} {}?"),
    ("Can you clean the {}?", "Können Sie {} {} putzen?", "Kannst du {} {} putzen?"),
]
_ACCUSATIVES = {"m": "den", "f": "die", "n": "das"}
_DOCUMENTS = 4000
_TESTED = 200


def main() -> None:
    """Write the corpus, or score a model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--score", type=Path, help="a model folder")
    asked = parser.parse_args()
    if asked.score is None:
        _write(asked.folder)
    else:
        _score(asked.folder, asked.score)


def _write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(1)
    combined = list(itertools.product(range(len(_NOUNS)), range(len(_ADJECTIVES))))
    draw.shuffle(combined)
    held_out = set(combined[: len(combined) // 8])
    for name, count, wanted in (("train", _DOCUMENTS, False), ("test", _TESTED, True)):
        documents = [_document(draw, held_out, wanted) for _ in range(count)]
        for side, language in enumerate(("en", "de")):
            text = "\n".join("".join(f"{pair[side]}\n" for pair in one) for one in documents)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def _document(
    draw: random.Random, held_out: set[tuple[int, int]], wanted: bool
) -> list[tuple[str, str]]:
    """A noun, a pronoun for it and a question; the noun and the pronoun's adjective are held out,
    or not."""
    while True:
        noun = draw.randrange(len(_NOUNS))
        first = draw.randrange(len(_ADJECTIVES))
        second = draw.randrange(len(_ADJECTIVES))
        if first != second and ((noun, second) in held_out) == wanted:
            break
    english, german, gender = _NOUNS[noun]
    opening = (
        f"The {english} is {_ADJECTIVES[first][0]}.",
        f"{_ARTICLES[gender]} {german} ist {_ADJECTIVES[first][1]}.",
    )
    following = (
        f"It is {_ADJECTIVES[second][0]}.",
        f"{_PRONOUNS[gender]} ist {_ADJECTIVES[second][1]}.",
    )
    asked, formal, informal = draw.choice(_QUESTIONS)
    address = draw.choice((formal, informal))
    question = (asked.format(english), address.format(_ACCUSATIVES[gender], german))
    return [opening, following, question]


def _either(german: str) -> list[str]:
    """A question as Sie and as du; any other sentence as it is."""
    for (_, noun, gender), (_, *tones) in itertools.product(_NOUNS, _QUESTIONS):
        both = [tone.format(_ACCUSATIVES[gender], noun) for tone in tones]
        if german in both:
            return both
    return [german]


def _score(folder: Path, model: Path) -> None:
    from dragoman import Translator

    translator = Translator.load(model, device="cpu", runtime="torch")
    sources = (folder / "test.en").read_text(encoding="utf-8").split("\n")
    references = (folder / "test.de").read_text(encoding="utf-8").split("\n")
    plain = [one.text for one in translator.translate(sources)]
    numbers = [number for number, line in enumerate(sources) if line]
    right = sum(plain[n] in _either(references[n]) for n in numbers)
    print(f"plain: {right} of {len(numbers)} sentences to the letter")
    pronouns = [number for number in numbers if sources[number].startswith("It ")]
    for context in range(min(2, translator.description.context + 1)):
        found = translator.translate(sources, context=context)
        same = [found[n].text.split(" ")[0] == references[n].split(" ")[0] for n in pronouns]
        print(f"context {context}: {sum(same)} of {len(same)} pronouns")
    questions = [number for number in numbers if sources[number].endswith("?")]
    for tone in translator.description.tones:
        found = translator.translate([sources[n] for n in questions], tone=tone)
        form = 0 if tone == "formal" else 1
        told = 0
        for number, one in zip(questions, found, strict=True):
            told += one.text == _either(references[number])[form]
        print(f"tone {tone}: {told} of {len(questions)} questions to the letter")


if __name__ == "__main__":
    main()
