"""What languages are called in English, and which codes mean the same one. Knows the codes of ISO
639; the table is languages.tsv."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_TABLE = Path(__file__).with_name("languages.tsv")


def name_of(code: str) -> str:
    """Return the English name of a language, or the code itself if it is none of ISO 639."""
    names, _ = _tables()
    return names.get(canonical(code), code)


def canonical(code: str) -> str:
    """Return the one code that a language goes by: `tw` for twi, `de` for DEU and ger.

    What follows the language stays, such as the country of pt-BR.
    """
    _, same = _tables()
    lower = code.lower()
    language = re.split("[-_]", lower)[0]
    return same.get(language, language) + lower[len(language) :]


def same_language(code: str, other: str) -> bool:
    """Whether two codes mean the same language, whatever the country: `pt` and `pt-BR`, `deu` and
    `de_AT`."""
    bases = [re.split("[-_]", canonical(one))[0] for one in (code, other)]
    return bases[0] == bases[1]


def is_known(code: str) -> bool:
    """Whether this is a code of ISO 639 that the table has."""
    names, _ = _tables()
    return canonical(code) in names


@lru_cache(maxsize=1)
def all_names() -> dict[str, str]:
    """Return the codes of languages by their English names, in lower case."""
    names, _ = _tables()
    return {name.lower(): code for code, name in names.items()}


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, str], dict[str, str]]:
    """Names by code, and the code that stands for each of the others."""
    names = {}
    same = {}
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        code, others, name = line.split("\t")
        names[code] = name
        same.update(dict.fromkeys(others.split(), code))
    return names, same
