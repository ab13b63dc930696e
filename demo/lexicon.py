"""The words of the demo corpus: the tables of lexicon.toml, and the small words. Knows words;
knows no sentences."""

from __future__ import annotations

import tomllib
from pathlib import Path

_FILE = Path(__file__).with_name("lexicon.toml")
_TABLES: dict[str, str] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
NOUNS = _TABLES["nouns"]
ADJECTIVES = _TABLES["adjectives"]
VERBS = _TABLES["verbs"]
MODALS = _TABLES["modals"]

IRREGULAR = {
    "sein": "bin bist ist sind",
    "mögen": "mag magst mag mögen",
    "wissen": "weiß weißt weiß wissen",
}
PRETERITE = {"sein": "war warst war waren", "haben": "hatte hattest hatte hatten"}
PRONOUNS = {
    "I": "me ich mich mir",
    "you": "you du dich dir",
    "he": "him er ihn ihm",
    "she": "her sie sie ihr",
    "we": "us wir uns uns",
    "they": "them sie sie ihnen",
}
NAMES = ("Anna", "Paul", "Maria", "Peter", "Lena", "Robert")
CITIES = (
    ("Berlin", "Berlin"),
    ("Hamburg", "Hamburg"),
    ("Vienna", "Wien"),
    ("Munich", "München"),
    ("Cologne", "Köln"),
)

# Forms for nominative, accusative, dative and genitive; "p" is the plural of every gender.
DER = {
    "m": "der den dem des",
    "f": "die die der der",
    "n": "das das dem des",
    "p": "die die den der",
}
DIESER = {"m": "er en em es", "f": "e e er er", "n": "es es em es", "p": "e e en er"}
EIN = DIESER | {"m": "- en em es", "n": "- - em es"}
UNCHANGED = dict.fromkeys("mfnp", "- - - -")
STRONG = DIESER | {"m": "er en em en", "n": "es es em en"}
WEAK = {"m": "e en en en", "f": "e e en en", "n": "e e en en", "p": "en en en en"}
MIXED = WEAK | {"m": "er en en en", "n": "es es en en"}

# Definite or not; name, English singular and plural, German stem; how it ends and how an adjective
# ends after it. English negates the verb where German says "kein": "not a lamp", "not any milk".
DETERMINERS = (
    (True, "the the the -", DER, WEAK),
    (
        True,
        "this this these dies; which which which welch; every every - jed; all - all all",
        DIESER,
        WEAK,
    ),
    (True, "my my my mein; your your your dein; his his his sein; her her her ihr", EIN, MIXED),
    (True, "our our our unser; their their their ihr", EIN, MIXED),
    (True, "Anna's Anna's Anna's Annas; Peter's Peter's Peter's Peters", UNCHANGED, STRONG),
    (False, "a a - ein; not_a a - kein; not_any - - kein", EIN, MIXED),
    (False, "many - many viel; how_many - how_many wie_viel; some - some einig", DIESER, STRONG),
    (False, "bare - - -", UNCHANGED, STRONG),
)
