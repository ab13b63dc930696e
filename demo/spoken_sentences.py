"""Has sentences about numbers, dates and places spoken by espeak-ng, for
recipes/spoken-sentences.toml.

    python demo/spoken_sentences.py FOLDER

writes recordings and lists of them: FOLDER/train.tsv, valid.tsv, test.tsv with sentences that the
training text does not have, and test-voice.tsv, where moreover a voice speaks that is heard nowhere
else. Always the same. The speech is synthetic: each voice of espeak-ng says a word in one way.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def _words(text: str) -> list[str]:
    return text.split()


SMALL = _words(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
TENS = _words("twenty thirty forty fifty sixty seventy eighty ninety")
ORDINALS = _words("first second third fourth fifth sixth seventh eighth ninth tenth twelfth")
MONTHS = _words(
    "January February March April May June July August September October November December"
)
DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
PLACES = _words(
    "Oslo Lima Cairo Berlin Lisbon Toronto Dublin Athens Madrid Delhi Tokyo Prague Boston Geneva"
)
PEOPLE = _words("Anna Peter Maria Oliver Sarah Thomas")
GOODS = _words("boxes letters chairs bottles books tickets")

VOICES = _words(
    "en-us+m1 en-us+m3 en-us+m7 en-us+f1 en-us+f2 en-us+f4 en-gb+m2 en-gb+m5 en-gb+f2 en-gb+f5"
)
HELD_OUT_VOICE = "en-gb+f3"
SPEEDS = (160, 220)  # words a minute, drawn for each recording
PITCHES = (35, 65)
TRAIN = 4000
VALID = 100
TEST = 300


def number(draw: random.Random) -> str:
    """A number from 1 to 99, in words."""
    tens = draw.randrange(10)
    if tens < 2:
        return draw.choice(SMALL)
    word = TENS[tens - 2]
    ones = draw.randrange(10)
    return f"{word} {SMALL[ones - 1]}" if ones else word


def sentence(draw: random.Random) -> str:
    """A sentence of four to eight words."""
    place = draw.choice(PLACES)
    person = draw.choice(PEOPLE)
    kind = draw.randrange(5)
    if kind == 0:
        return f"send {number(draw)} {draw.choice(GOODS)} to {place}"
    if kind == 1:
        return f"the train to {place} leaves at {number(draw)}"
    if kind == 2:
        return f"{person} was born on {draw.choice(MONTHS)} {draw.choice(ORDINALS)}"
    if kind == 3:
        return f"we meet {person} in {place} on {draw.choice(DAYS)}"
    return f"{person} has {number(draw)} {draw.choice(GOODS)} from {place}"


def sentences(draw: random.Random, count: int) -> list[str]:
    """Sentences that are all different."""
    found: dict[str, None] = {}
    while len(found) < count:
        found.setdefault(sentence(draw))
    return list(found)


def speak(text: str, voice: str, file: Path, draw: random.Random) -> None:
    """Let espeak-ng say a text at some speed and pitch."""
    speed = draw.randint(*SPEEDS)
    pitch = draw.randint(*PITCHES)
    manner = ["-v", voice, "-s", f"{speed}", "-p", f"{pitch}"]
    subprocess.run(["espeak-ng", *manner, "-w", str(file), text], check=True)


def record(folder: Path, name: str, texts: list[str], voices: list[str]) -> None:
    """Write a recording of each text, and the list NAME.tsv of them."""
    draw = random.Random(name)
    (folder / name).mkdir(parents=True)
    rows = []
    for index, text in enumerate(texts):
        file = f"{name}/{index:05}.wav"
        speak(text, draw.choice(voices), folder / file, draw)
        rows.append(f"{file}\t{text}\n")
    (folder / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")


def parts(texts: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The sentences of each list, none of them in two lists but those of the held-out voice, which
    says the sentences of the test."""
    rest = iter(texts)
    test = [next(rest) for _ in range(TEST)]
    yield "test", test
    yield "test-voice", test
    yield "valid", [next(rest) for _ in range(VALID)]
    yield "train", list(rest)


def main(folder: Path) -> None:
    if shutil.which("espeak-ng") is None:
        sys.exit("espeak-ng is not installed; on Debian or Ubuntu run: apt install espeak-ng")
    if folder.exists():
        sys.exit(f"{folder} exists; name a folder that is new")
    texts = sentences(random.Random(1), TRAIN + VALID + TEST)
    for name, some in parts(texts):
        voices = [HELD_OUT_VOICE] if name == "test-voice" else VOICES
        record(folder, name, some, voices)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
