"""Short English-German texts of interfaces, from the message catalogues that programs ship with.

    python recipes/interface_text.py catalogues/ data/en-de/train/interface.tsv
    python recipes/interface_text.py catalogues/ data/de-en/train/interface.tsv --source de

interface-packages.txt lists packages whose catalogues are worth it. In an empty folder, with
LIST=recipes/interface-packages.txt (570 MB come, 473 files of 30 MB stay):

    apt-get download $(sed -n 's/^debian //p' $LIST)
    pip download --no-deps $(sed -n 's/^pypi //p' $LIST)
    for deb in *.deb; do mkdir -p catalogues/$deb; dpkg-deb --fsys-tarfile $deb \\
      | tar -x -C catalogues/$deb --wildcards '*/de/LC_MESSAGES/*.mo'; done
    for whl in *.whl; do unzip -q $whl '*/de/LC_MESSAGES/*.mo' -d catalogues/$whl; done

Reads every de/LC_MESSAGES/*.mo below the first folder, as Debian's packages have them, and writes
lines of two columns, the source first. A message is kept if it has at most 12 words, is mostly
letters, and holds no placeholder, code or address; its access key (_Save, &Save, ~Save) is removed.
Of several translations of a message the one that most catalogues have is kept, and the second if it
is nearly as frequent. A message that four catalogues agree on is written twice, and so on up to six
times: "Cancel" is to weigh more than what a single program says.
"""

from __future__ import annotations

import argparse
import gettext
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

MOST_WORDS = 12
SAID_FOR_A_COPY = 4  # catalogues that agree
MOST_COPIES = 5
CODE = re.compile(r"[_|<>\\{}%$#@=`~\[\]^*/\n]|[A-Za-z]\.[A-Za-z]|--")
ACCESS_KEYS = "_&~"
ENDS = (".", ":", "!", "?")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("catalogues", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--source", choices=("en", "de"), default="en")
    given = parser.parse_args()
    if given.out.exists():
        parser.error(f"{given.out} exists; name another file")
    pairs = chosen(votes(given.catalogues))
    random.Random(1).shuffle(pairs)
    order = slice(None, None, 1 if given.source == "en" else -1)
    with given.out.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines("\t".join(pair[order]) + "\n" for pair in pairs)
    print(f"{len(pairs):,} pairs")


def votes(folder: Path) -> dict[str, Counter[str]]:
    """How many catalogues translate a message in each way."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted(folder.rglob("de/LC_MESSAGES/*.mo")):
        for english, german in set(messages(path)):
            if is_usable(english, german):
                found[english][german] += 1
    return found


def messages(path: Path) -> Iterator[tuple[str, str]]:
    """The messages of a catalogue that have one form, without access keys."""
    with path.open("rb") as file:
        catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    for message, translation in catalogue.items():
        if isinstance(message, str) and message:
            english = message.split("\x04")[-1]  # behind its context
            yield without_access_key(english), without_access_key(translation)


def without_access_key(text: str) -> str:
    for key in ACCESS_KEYS:
        if len(re.findall(rf"{key}(?=\w)", text)) == 1 and text.count(key) == 1:
            text = text.replace(key, "")
    return " ".join(text.split())


def is_usable(english: str, german: str) -> bool:
    """Whether a message and its translation are a short text in two languages."""
    if not english or not german or english == german or CODE.search(english + german):
        return False
    words = max(len(english.split()), len(german.split()))
    letters = sum(map(str.isalpha, english))
    short, long = sorted((len(english), len(german)))
    is_text = words <= MOST_WORDS and letters >= 0.6 * len(english) and len(english) > 1
    same_end = english.endswith(ENDS) == german.endswith(ENDS)
    return is_text and same_end and long <= 2.5 * short + 15


def chosen(found: dict[str, Counter[str]]) -> list[tuple[str, str]]:
    """The pairs to be written, the frequent ones several times."""
    pairs: list[tuple[str, str]] = []
    for english, translations in found.items():
        ranked = translations.most_common(2)
        first_count = ranked[0][1]
        for german, count in ranked:
            if count == first_count or (count > 1 and 2 * count > first_count):
                copies = 1 + min(MOST_COPIES, count // SAID_FOR_A_COPY)
                pairs += [(english, german)] * copies
    return pairs


if __name__ == "__main__":
    main()
