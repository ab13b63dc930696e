"""Prepares English-German text of many kinds: cleaned, in sensible shares, and with copies of some
pairs as people really write them.

    python recipes/prepare_en_de.py downloaded/en-de/ data/en-de/
    python recipes/prepare_en_de.py downloaded/en-de/ data/de-en/ --source de

Reads europarl.{en,de}.xz, tatoeba.en-de.tsv.gz, news/newstest20NN.{en,de}, more/*.tsv.xz,
valid/wmt21-24.tsv.xz and mono/*.xz. Writes, with the source first in every line of two columns:

    train/NAME.tsv       one file for each kind of text; documentation.tsv is a sample of six
                         collections, dictionary.tsv a sample of single entries
    augmented/NAME.tsv   copies of a quarter of the pairs: UPPER CASE, Title Case, lower case,
                         typos in the source, no final stop
    valid/NAME.tsv       newstest2013 and a sample of WMT 2021 to 2024: choose settings on these
    mono/NAME.LANGUAGE   sentences of one language alone, for back-translation

A pair is dropped if a side occurs in newstest2013, newstest2014 or WMT 2021 to 2024, if a side is
empty, damaged, longer than 100 words or much longer than the other, if one side alone has tags,
entities or a full stop, or if it is a duplicate. Of the pairs whose sides are equal one in twenty
stays. A dash at the beginning of one side alone is removed. Of the dictionary's single words those
are kept whose sides are the usual translation of each other in pairs of sentences.
"""

from __future__ import annotations

import argparse
import gzip
import html
import lzma
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import IO

from dragoman.data.augment import capitalised, recased, with_typos, without_stop
from dragoman.text.normalise import normalise

Pair = tuple[str, str]
DOCUMENTATION = (
    "microsoft-docs",
    "adobe-docs",
    "debian-help",
    "debian-software",
    "debian-packages",
    "manpages",
)
HELD_OUT = ("newstest2013", "newstest2014")
MAX_WORDS = 100  # of a side
RARER = 10  # times as rare as the usual translation of a word, at most
EQUAL_SIDES_KEPT = 0.05  # share of the pairs whose sides are equal
# A dictionary entry with nothing in brackets and no variants.
ENTRY = re.compile(r"[^\W\d_][^][(){}<>|;/+*…~]*")
WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
ABBREVIATED = re.compile(
    r"\b(?:sb|sth|sb's|sth's|jd|jdn|jdm|jds|etw|jmd|jmdn|jmdm|esp|pl|fig|bes)\.|\boneself\b"
)
MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|&[A-Za-z]+;")
DASH = re.compile(r"[-–—‒] ")
# How a list of words has a noun: with an article, whatever the other side has.
GLOSS = re.compile(r"(?:der|die|das) \S+(?: \S+)?")
# Begins with a capital or a number and ends as a sentence does.
WHOLE = re.compile(r"(?!\W*[a-zäöüß])[^\ufffd]*[.!?][\"'“”‘«»)]?")
# Share of the pairs that get a copy of each kind.
SHARES = {"upper": 0.05, "title": 0.04, "lower": 0.03, "typos": 0.05, "stop": 0.10}


def main() -> None:
    given = arguments()
    for name in ("train", "augmented", "valid", "mono"):
        (given.out / name).mkdir(parents=True, exist_ok=True)
    wmt = list(columns(given.corpora / "valid" / "wmt21-24.tsv.xz"))
    tests = {name: list(sides(given.corpora / "news" / name)) for name in HELD_OUT}
    unseen = {side.casefold() for pair in chain(wmt, *tests.values()) for side in pair}
    write(given, "valid", "newstest2013", tests["newstest2013"])
    write(given, "valid", "wmt21-24", random.Random(given.seed).sample(wmt, given.valid))
    write_pairs(given, unseen)
    write_monolingual(given, unseen)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("corpora", type=Path)
    add("out", type=Path)
    add("--source", choices=("en", "de"), default="en")
    add("--europarl", type=float, default=0.7, help="share of Europarl that is kept")
    add("--documentation", type=int, default=450_000, help="pairs, about a third of all")
    add("--dictionary", type=int, default=150_000, help="entries")
    add("--valid", type=int, default=1000, help="pairs of WMT 2021 to 2024")
    add("--seed", type=int, default=1)
    return parser.parse_args()


def write_pairs(given: argparse.Namespace, unseen: set[str]) -> None:
    """Writes train/ and augmented/."""
    seen: set[int] = set()
    order = 1 if given.source == "en" else -1
    for name, pairs in collections(given):
        draw = random.Random(f"{given.seed} {name}")
        mended = (without_dash(pair) for pair in pairs)
        clean = [pair for pair in mended if is_usable(pair, unseen, draw) and is_new(pair, seen)]
        write(given, "train", name, clean)
        copies = []
        for pair in clean:
            source, target = pair[::order]
            copy = augmented(source, target, draw)
            if copy is not None:
                first, second = copy[::order]
                copies.append((first, second))
        write(given, "augmented", name, copies)


def write_monolingual(given: argparse.Namespace, unseen: set[str]) -> None:
    """Writes mono/."""
    for path in sorted((given.corpora / "mono").glob("*.xz")):
        lines = dict.fromkeys(normalise(line) for line in read(path))
        kept = [line for line in lines if is_sentence(line) and line.casefold() not in unseen]
        text = "".join(f"{line}\n" for line in kept)
        (given.out / "mono" / path.stem).write_text(text, encoding="utf-8")
        print(f"mono {path.stem}: {len(kept):,}", flush=True)


def is_sentence(line: str) -> bool:
    """Whether a line is a whole sentence of 5 to 60 words."""
    return 5 <= line.count(" ") + 1 <= 60 and WHOLE.fullmatch(line) is not None


def collections(given: argparse.Namespace) -> Iterator[tuple[str, Iterable[Pair]]]:
    """Every kind of text by name, the rarest first, so that a pair in two of them stays in the
    smaller one."""
    draw = random.Random(given.seed)
    corpora: Path = given.corpora
    files = sorted((corpora / "more").glob("*.tsv.xz"))
    more = {path.name.removesuffix(".tsv.xz"): path for path in files}
    entries = dictionary(more)
    together = Together(entries)
    years = range(2008, 2013)
    yield "news", chain.from_iterable(sides(corpora / "news" / f"newstest{y}") for y in years)
    for name in sorted(more.keys() - {*DOCUMENTATION, "dictionary", "wiki-postedits"}):
        pairs = columns(more[name])
        yield name, together.counted(pair for pair in pairs if not is_gloss(*pair))
    if path := more.get("wiki-postedits"):
        yield "wiki-postedits", ((detokenised(en), detokenised(de)) for en, de in columns(path))
    yield "tatoeba", together.counted(columns(corpora / "tatoeba.en-de.tsv.gz"))
    manuals = chain.from_iterable(columns(more[name]) for name in DOCUMENTATION if name in more)
    texts = [pair for pair in manuals if is_wordy(pair)]
    yield "documentation", sampled(texts, given.documentation, draw)
    if entries:
        words = together.usual()
        phrases = [pair for pair in entries if " " in "".join(pair)]
        yield "dictionary", words + sampled(phrases, max(0, given.dictionary - len(words)), draw)
    english, german = (
        map(normalise, read(corpora / f"europarl.{side}.xz")) for side in ("en", "de")
    )
    debates = zip(english, german, strict=True)
    yield "europarl", (pair for pair in debates if draw.random() < given.europarl)


def dictionary(more: Mapping[str, Path]) -> list[Pair]:
    """The entries that are just words or short phrases."""
    path = more.get("dictionary")
    pairs = columns(path) if path else iter(())
    return [(en, de) for en, de in pairs if is_entry(en) and is_entry(de)]


def is_usable(pair: Pair, unseen: set[str], draw: random.Random) -> bool:
    """Whether a pair is worth learning from."""
    english, german = pair
    short, long = sorted((len(english), len(german)))
    if not short or long > 2.5 * short + 15 or "\ufffd" in english + german:
        return False
    if max(english.count(" "), german.count(" ")) >= MAX_WORDS:
        return False
    if bool(MARKUP.search(english)) != bool(MARKUP.search(german)):
        return False
    if stops_alone(english, german) or stops_alone(german, english):
        return False
    if english == german and draw.random() > EQUAL_SIDES_KEPT:
        return False
    return english.casefold() not in unseen and german.casefold() not in unseen


def without_dash(pair: Pair) -> Pair:
    """The pair without the dash that begins a turn, where only one side has it."""
    dashes = [DASH.match(side) for side in pair]
    if all(dashes) or not any(dashes):
        return pair
    english, german = (
        side[found.end() :] if found else side for side, found in zip(pair, dashes, strict=True)
    )
    return english, german


def stops_alone(one: str, other: str) -> bool:
    """Whether one side ends with a full stop and the other with a letter."""
    return one.endswith(".") and other[-1:].isalpha() and not one.endswith("...")


def is_gloss(english: str, german: str) -> bool:
    """Whether this is an entry of a list of words, whose German noun alone has its article."""
    return GLOSS.fullmatch(german) is not None and not english.lower().startswith("the ")


class Together:
    """How often the sides of each single-word entry of the dictionary stand in one pair of
    sentences."""

    def __init__(self, entries: Iterable[Pair]) -> None:
        self.entries = [pair for pair in entries if " " not in "".join(pair)]
        self.counts: Counter[Pair] = Counter()
        self._translations: dict[str, set[str]] = defaultdict(set)
        for english, german in self.entries:
            self._translations[english].add(german)

    def counted(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The same pairs; what they have of the dictionary is counted."""
        for pair in pairs:
            english, german = (set(WORD.findall(side)) for side in pair)
            for word in english & self._translations.keys():
                for translation in self._translations[word] & german:
                    self.counts[word, translation] += 1
            yield pair

    def usual(self) -> list[Pair]:
        """The entries whose sides are the most frequent translation of each other, the first of
        equals; and those of which one side is that, where the other is not much rarer."""
        best: tuple[dict[str, Pair], dict[str, Pair]] = ({}, {})
        for pair in self.entries:
            for side in (0, 1):
                before = best[side].get(pair[side])
                if before is None or self.counts[pair] > self.counts[before]:
                    best[side][pair[side]] = pair
        kept = []
        for pair in self.entries:
            firsts = [best[side][pair[side]] for side in (0, 1)]
            is_usual = all(RARER * self.counts[pair] >= self.counts[one] for one in firsts)
            if pair in firsts and is_usual:
                kept.append(pair)
        return kept


def is_new(pair: Pair, seen: set[int]) -> bool:
    """Whether a pair has not come before; it is remembered."""
    number = hash(pair)
    if number in seen:
        return False
    seen.add(number)
    return True


def is_entry(side: str) -> bool:
    """Whether a side of the dictionary is just a word or a short phrase."""
    if side.count(" ") >= 5 or ABBREVIATED.search(side):
        return False
    return ENTRY.fullmatch(side) is not None


def is_wordy(pair: Pair) -> bool:
    """Whether both sides are mostly words, not code."""
    return all(sum(map(str.isalpha, side)) > 0.6 * len(side) for side in pair)


def augmented(source: str, target: str, draw: random.Random) -> Pair | None:
    """A copy of the pair as people also write it; None for most pairs."""
    drawn = draw.random()
    for kind, share in SHARES.items():
        if drawn < share:
            return changed(kind, source, target, draw)
        drawn -= share
    return None


def changed(kind: str, source: str, target: str, draw: random.Random) -> Pair | None:
    """The pair changed in one way; None where that would change nothing."""
    if kind == "stop":
        pair = without_stop(source, target)
    elif kind == "typos":
        pair = (with_typos(source, draw), target)
    else:
        change = {"upper": str.upper, "lower": str.lower, "title": capitalised}[kind]
        pair = (recased(source, change), recased(target, change))
    return pair if pair != (source, target) else None


def detokenised(text: str) -> str:
    """Text without the spaces around punctuation and inside quotation marks."""
    opening, closing = ("„", "“") if "„" in text else ("“", "”")
    text = re.sub(rf" ([.,;:!?%)\]{closing}])|([(\[{opening}]) ", r"\1\2", text)
    text = re.sub(r"(\w) '(s|t|re|ve|ll|d|m)\b", r"\1'\2", text)
    parts = re.split(r'( ?" ?)', text)
    for number, i in enumerate(range(1, len(parts), 2)):
        opens = number % 2 == 0
        parts[i] = parts[i].rstrip(" ") if opens else parts[i].lstrip(" ")
    return "".join(parts)


def sampled(pairs: list[Pair], count: int, draw: random.Random) -> list[Pair]:
    """At most `count` of the pairs, in their old order."""
    chosen = sorted(draw.sample(range(len(pairs)), min(count, len(pairs))))
    return [pairs[i] for i in chosen]


def sides(stem: Path) -> Iterator[Pair]:
    """The pairs of two aligned files."""
    english, german = (map(normalise, read(stem.with_suffix(f".{side}"))) for side in ("en", "de"))
    return zip(english, german, strict=True)


def columns(path: Path) -> Iterator[Pair]:
    for line in read(path):
        english, german = line.rstrip("\n").split("\t")[:2]
        yield plain(english), plain(german)


def plain(text: str) -> str:
    """Normalised text in which entities of characters are those characters."""
    return normalise(html.unescape(text)) if "&" in text else normalise(text)


def read(path: Path) -> Iterator[str]:
    openers: dict[str, Callable[..., IO[str]]] = {".xz": lzma.open, ".gz": gzip.open}
    opener = openers.get(path.suffix, open)
    with opener(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from file


def write(given: argparse.Namespace, folder: str, name: str, pairs: list[Pair]) -> None:
    order = slice(None, None, 1 if given.source == "en" else -1)
    with open(given.out / folder / f"{name}.tsv", "w", encoding="utf-8", newline="\n") as file:
        file.writelines("\t".join(pair[order]) + "\n" for pair in pairs)
    print(f"{folder} {name}: {len(pairs):,}", flush=True)


if __name__ == "__main__":
    main()
