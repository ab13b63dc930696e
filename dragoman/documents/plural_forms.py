"""Plural forms: how many a language has, by gettext's rule and by the categories of Unicode's CLDR,
and a number that stands for each. Knows languages by their codes; no file format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragoman.text.languages import canonical

CATEGORIES = ("zero", "one", "two", "few", "many", "other")


@dataclass(frozen=True)
class PluralRule:
    """The plurals of some languages.

    Numbers are strings, each of which takes the form in question: "3 files" tells a translator
    more than "files".
    """

    formula: str  # of gettext
    numbers: tuple[str, ...]  # one for each form of gettext
    categories: dict[str, str]  # of CLDR, each with a number

    @property
    def header(self) -> str:
        """What gettext's header says."""
        return f"nplurals={len(self.numbers)}; plural={self.formula};"


_SLAVIC = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"
_ONE = "n%10==1 && n%100!=11"


def _rule(formula: str, numbers: str, categories: str) -> PluralRule:
    pairs = [pair.split(":") for pair in categories.split()]
    return PluralRule(formula, tuple(numbers.split()), dict(pairs))


_COMMON = _rule("(n != 1)", "1 5", "one:1 other:5")
# Languages and their rule; all others have the rule above.
_RULES = {
    "ja zh ko vi th id ms lo my km bo dz wo yo jv su to sah yue": _rule("0", "5", "other:5"),
    "fr pt-br ak tw am bn fa fil gu hi hy kab kn ln mg nso oc pa si ti wa zu": _rule(
        "(n > 1)", "1 5", "one:1 other:5"
    ),
    "ru uk be": _rule(f"({_ONE} ? 0 : {_SLAVIC}", "1 3 5", "one:1 few:3 many:5 other:1.5"),
    "sr hr bs sh": _rule(f"({_ONE} ? 0 : {_SLAVIC}", "1 3 5", "one:1 few:3 other:5"),
    "pl": _rule(f"(n==1 ? 0 : {_SLAVIC}", "1 3 5", "one:1 few:3 many:5 other:1.5"),
    "cs sk": _rule("(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2", "1 3 5", "one:1 few:3 many:1.5 other:5"),
    "lt": _rule(
        f"({_ONE} ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2)",
        "1 3 10",
        "one:1 few:3 many:1.5 other:10",
    ),
    "lv": _rule(f"({_ONE} ? 0 : n != 0 ? 1 : 2)", "1 5 0", "zero:0 one:1 other:5"),
    "sl hsb dsb": _rule(
        "(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3)",
        "1 2 3 5",
        "one:1 two:2 few:3 other:5",
    ),
    "ro": _rule(
        "(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2)",
        "1 3 20",
        "one:1 few:3 other:20",
    ),
    "ar": _rule(
        "(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5)",
        "0 1 2 3 11 100",
        "zero:0 one:1 two:2 few:3 many:11 other:100",
    ),
    "ga": _rule(
        "n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4",
        "1 2 3 7 11",
        "one:1 two:2 few:3 many:7 other:11",
    ),
    "gd": _rule(
        "(n==1 || n==11) ? 0 : (n==2 || n==12) ? 1 : (n > 2 && n < 20) ? 2 : 3",
        "1 2 3 20",
        "one:1 two:2 few:3 other:20",
    ),
    "cy": _rule(
        "(n==1) ? 0 : (n==2) ? 1 : (n != 8 && n != 11) ? 2 : 3",
        "1 2 3 8",
        "zero:0 one:1 two:2 few:3 many:6 other:5",
    ),
    "mt": _rule(
        "(n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : (n%100>10 && n%100<20) ? 2 : 3)",
        "1 3 11 20",
        "one:1 two:2 few:3 many:11 other:20",
    ),
    "he": _rule("(n != 1)", "1 5", "one:1 two:2 other:5"),
    "mk is": _rule(f"({_ONE} ? 0 : 1)", "1 5", "one:1 other:5"),
}
_BY_LANGUAGE = {code: rule for codes, rule in _RULES.items() for code in codes.split()}


def plural_rule(language: str) -> PluralRule:
    """Return the plurals of a language; of one that is not known, those of English."""
    code = canonical(language).replace("_", "-")
    base, *_ = re.split("-", code)
    return _BY_LANGUAGE.get(code) or _BY_LANGUAGE.get(base) or _COMMON
