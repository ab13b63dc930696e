"""English-Twi text for recipes/en-twi.toml and recipes/twi-en.toml, from the files as they are
downloaded.

    python recipes/prepare_twi.py downloaded/ data/twi/ downloaded/german/

needs ghananlp_verified.en-twi.tsv.gz, ebible.engbsb-twi-{akuapem,asante}.tsv.gz and
mafand.{train,dev,test}.{en,twi} in the first folder. It writes four corpora for each direction,
NAME.en-twi.tsv and NAME.twi-en.tsv, and dev and test unchanged. A fifth, names.en-twi.tsv, is for
copying: news and everyday sentences in which the names and numbers that stand on both sides are
others, half of the names made of two halves, so that none is learnt in place of the next. The one
sentence of MAFAND's train set that is also in its test set is left out.

The third folder is for recipes/twi-parent.toml: europarl.{en,de}.xz, tatoeba.en-de.tsv.gz and
news/newstest20{08..12}.{en,de}. From it and from the Twi text come corpora of both directions at
once, NAME.both.tsv. English that is to become German has a tag before it, so that English without
one becomes Twi. pieces.tsv is a sample of the German text, as large as the Twi text, so that a
vocabulary learnt from both has pieces for Twi; pieces.de-en.tsv is the same sample turned round.

The news of MAFAND's dev set is Asante Twi; GhanaNLP, one Bible and half of MAFAND's train set are
spelt as Akuapem Twi is (`bere`, `nea`, `kɛse` for `berɛ`, `deɛ`, `kɛseɛ`). The two Bibles are one
translation in both spellings, so the words that stand opposite one another give a table, by which
the target text is respelt. As a source either spelling stays, since either may come. Letters that
only look like Twi ones, marks of tone and nasals (of which dev has none) and zero-width spaces go;
quotes of the target become the curly ones that dev mostly has. `chanced upon` was put for every
`found` in MAFAND's train set, even in `foundation`. Case, brackets, numbers and final stops stay.
"""

from __future__ import annotations

import gzip
import lzma
import random
import re
import shutil
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

Pairs = list[tuple[str, str]]  # English, Twi
ZIPPED = {f"bible-{kind}": f"ebible.engbsb-twi-{kind}.tsv.gz" for kind in ("akuapem", "asante")}
ZIPPED |= {"ghananlp": "ghananlp_verified.en-twi.tsv.gz"}
WORD = re.compile(r"[^\W\d_]+")
NAME_OR_NUMBER = re.compile(r"[^\W\d_]{3,}|\d[\d.,]*\d")
TAG = "» "
LETTERS = str.maketrans({"ɑ": "a", "Ƹ": "Ɛ", "ȼ": "¢", "ʼ": "’", "\u0301": "", "\u0303": ""})


def main(source: Path, out: Path, german: Path | None = None) -> None:
    corpora = {
        name: clean(gzip.decompress((source / file).read_bytes()).decode())
        for name, file in ZIPPED.items()
    }
    sides = (
        (source / f"mafand.train.{side}").read_text(encoding="utf-8").split("\n")[:-1]
        for side in ("en", "twi")
    )
    known = {
        line
        for part in ("dev", "test")
        for line in lines((source / f"mafand.{part}.en").read_bytes())
    }
    news = clean("\n".join("\t".join(pair) for pair in zip(*sides, strict=True)))
    corpora["mafand"] = [(english, twi) for english, twi in news if english not in known]
    spelling = Spelling(corpora["bible-akuapem"], corpora["bible-asante"], corpora["mafand"])
    out.mkdir(parents=True, exist_ok=True)
    respelt = {
        name: [(english, curly(spelling(twi))) for english, twi in pairs]
        for name, pairs in corpora.items()
    }
    for name, pairs in respelt.items():
        there = "".join(f"{english}\t{twi}\n" for english, twi in pairs)
        (out / f"{name}.en-twi.tsv").write_text(there, encoding="utf-8")
        back = "".join(f"{twi}\t{curly(english)}\n" for english, twi in corpora[name])
        (out / f"{name}.twi-en.tsv").write_text(back, encoding="utf-8")
        (out / f"{name}.both.tsv").write_text(there + back, encoding="utf-8")
    renamed = Names(respelt.values()).renamed(respelt["mafand"] * 6 + respelt["ghananlp"] * 2)
    (out / "names.en-twi.tsv").write_text(
        "".join(f"{english}\t{twi}\n" for english, twi in renamed), encoding="utf-8"
    )
    for file in [*source.glob("mafand.dev.*"), *source.glob("mafand.test.*")]:
        shutil.copyfile(file, out / file.name.removeprefix("mafand."))
    if german:
        write_german(german, out)


def write_german(source: Path, out: Path) -> None:
    """Every second pair of the parliament's text: the recipe's time is enough for three passes."""
    sides = [
        lines(lzma.decompress((source / f"europarl.{side}.xz").read_bytes()))[::2]
        for side in ("en", "de")
    ]
    europarl = list(zip(*sides, strict=True))
    tatoeba = [
        line.split("\t")[:2]
        for line in lines(gzip.decompress((source / "tatoeba.en-de.tsv.gz").read_bytes()))
    ]
    years = [source / "news" / f"newstest{year}" for year in range(2008, 2013)]
    sides = [
        [line for year in years for line in lines(year.with_suffix(f".{side}").read_bytes())]
        for side in ("en", "de")
    ]
    corpora: dict[str, tuple[Sequence[Sequence[str]], int]] = {
        "europarl": (europarl, 16),
        "tatoeba": (tatoeba, 4),
        "news": (list(zip(*sides, strict=True)), 1),
    }
    with (
        open(out / "pieces.tsv", "w", encoding="utf-8", newline="\n") as pieces,
        open(out / "pieces.de-en.tsv", "w", encoding="utf-8", newline="\n") as turned,
    ):
        for name, (pairs, every) in corpora.items():
            there = [f"{TAG}{english}\t{german}\n" for english, german in pairs]
            back = [f"{german}\t{english}\n" for english, german in pairs]
            pieces.writelines(there[::every])
            turned.writelines(back[::every])
            (out / f"{name}.both.tsv").write_text(
                "".join(there + back), encoding="utf-8", newline="\n"
            )


def lines(content: bytes) -> list[str]:
    return content.decode().removesuffix("\n").split("\n")


def clean(text: str) -> Pairs:
    text = unicodedata.normalize("NFD", text).replace("\u200b", "").replace("chanced upon", "found")
    pairs = (line.split("\t") for line in text.removesuffix("\n").split("\n"))
    return [(nfc(english), nfc(twi.translate(LETTERS))) for english, twi in pairs]


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def curly(text: str) -> str:
    return re.sub(r'"([^"]*)"', r"“\1”", text.replace("'", "’"))


class Names:
    """Words with a capital that stand in a sentence and in its translation, and never without
    the capital."""

    def __init__(self, corpora: Iterable[Pairs]) -> None:
        pairs = [pair for corpus in corpora for pair in corpus]
        self.common = {
            word for english, _ in pairs for word in WORD.findall(english) if word[0].islower()
        }
        self.known = sorted(
            {word for pair in pairs for word in self.shared(pair) if word[0].isupper()}
        )
        self.draw = random.Random(1)

    def shared(self, pair: tuple[str, str]) -> set[str]:
        both = set.intersection(*(set(NAME_OR_NUMBER.findall(side)) for side in pair))
        return {
            word
            for word in both
            if word[0].isdigit() or (word[0].isupper() and word.lower() not in self.common)
        }

    def renamed(self, pairs: Pairs) -> Iterator[tuple[str, str]]:
        for english, twi in pairs:
            new = {word: self.another(word) for word in sorted(self.shared((english, twi)))}
            if new:
                yield replaced(new, english), replaced(new, twi)

    def another(self, word: str) -> str:
        if word[0].isdigit():
            return "".join(
                str(self.draw.randint(not at, 9)) if sign.isdigit() else sign
                for at, sign in enumerate(word)
            )
        one, other = self.draw.sample(self.known, 2) if len(self.known) > 1 else (word, word)
        return (
            one
            if self.draw.random() < 0.5
            else one[: len(one) // 2 + 1] + other[len(other) // 2 :].lower()
        )


def replaced(new: dict[str, str], text: str) -> str:
    return NAME_OR_NUMBER.sub(lambda word: new.get(word[0], word[0]), text)


class Spelling:
    """Akuapem words as Asante ones, and of two Asante forms (`ɛberɛ` in the Bible, `berɛ`) the
    one that is in the news."""

    def __init__(self, akuapem: Pairs, asante: Pairs, news: Pairs) -> None:
        seen: dict[str, Counter[str]] = defaultdict(Counter)
        for (_, one), (_, other) in zip(akuapem, asante, strict=True):
            left = WORD.findall(one.lower())
            right = WORD.findall(other.lower())
            for _, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
                for word, form in zip(left[a:b], right[c:d], strict=True) if b - a == d - c else ():
                    seen[word][form] += 1
        best = {word: forms.most_common(1)[0] for word, forms in seen.items()}
        sure = {
            word: form
            for word, (form, count) in best.items()
            if count >= 3 and count > seen[word].total() / 2
        }
        ours, theirs = (
            Counter(WORD.findall(" ".join(twi for _, twi in pairs).lower()))
            for pairs in (akuapem, asante)
        )
        self.marks = dict.fromkeys(theirs.keys() - ours.keys(), 1) | dict.fromkeys(
            ours.keys() - theirs.keys(), -1
        )
        heard = Counter(
            word for _, twi in news if self.leaning(twi) > 0 for word in WORD.findall(twi.lower())
        )
        longer = {
            form for word, form in sure.items() if form[0] in "ɛe" and word[0] not in "aeiouɛɔ"
        }
        self.short = {form: form[1:] for form in longer if heard[form[1:]] > heard[form]}
        self.table = {
            word: max(self.short.get(form, form), word, key=heard.__getitem__)
            for word, form in sure.items()
        }

    def leaning(self, twi: str) -> int:
        """Above 0 for Asante, below for Akuapem: words that only one of the two Bibles has."""
        return sum(self.marks.get(word, 0) for word in set(WORD.findall(twi.lower())))

    def __call__(self, twi: str) -> str:
        table = self.table if self.leaning(twi) < 0 else self.short

        def respelt(word: re.Match[str]) -> str:
            new = table.get(word[0].lower(), word[0].lower())
            return new if word[0].islower() else new.capitalize() if word[0].istitle() else word[0]

        return WORD.sub(respelt, twi)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
