"""Readers' corrections as training text, .tmx or .tsv, or as a copy to keep, .sqlite. Knows
corrections and these formats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from dragoman.errors import InputError, OptionError
from dragoman.folder.files import output
from dragoman.server.corrections import Correction, Corrections

_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_TOOL = (
    'creationtool="dragoman" creationtoolversion="1" o-tmf="dragoman" segtype="sentence" '
    'adminlang="en" datatype="text"'
)


def export(database: Path, out: Path) -> int:
    """Write what `dragoman train` reads, as .tmx or .tsv by the ending of the name, or a copy that
    `dragoman serve` reads, as .sqlite.

    Returns the number of corrections: of those with the same source, the newest.
    """
    kind = out.suffix.lower()
    if kind not in (".tmx", ".tsv", ".sqlite"):
        raise OptionError(f"the file is {out}; its name must end in .tmx, .tsv or .sqlite")
    if not database.is_file():
        raise InputError(
            f"{database} does not exist; name the file in which `dragoman serve` keeps corrections"
        )
    if out.resolve() == database.resolve():
        raise OptionError(f"{out} is the file itself; name another")
    store = Corrections(database)
    try:
        if kind == ".sqlite":
            with output(out) as new:
                return store.copy_to(new)
        corrections = list(store.all())
    finally:
        store.close()
    return _write_text(database, out, corrections)


def _write_text(database: Path, out: Path, corrections: list[Correction]) -> int:
    kind = out.suffix.lower()
    pairs = sorted({(one.source_language, one.target_language) for one in corrections})
    if kind == ".tsv" and len(pairs) > 1:
        names = " and ".join("-".join(pair) for pair in pairs)
        raise OptionError(f"{database} has {names}, which a .tsv cannot tell apart; write a .tmx")
    lines = _tmx(corrections, pairs) if kind == ".tmx" else _tsv(corrections)
    with output(out) as new, open(new, "w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
    return len(corrections)


def _tsv(corrections: list[Correction]) -> Iterator[str]:
    for one in corrections:
        yield f"{_flat(one.source)}\t{_flat(one.target)}\n"


def _tmx(corrections: list[Correction], pairs: list[tuple[str, str]]) -> Iterator[str]:
    sources = {source for source, _ in pairs}
    language = quoteattr(sources.pop() if len(sources) == 1 else "*all*")
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
    yield f"<header {_TOOL} srclang={language}/>\n<body>\n"
    for one in corrections:
        source = _variant(one.source_language, one.source)
        target = _variant(one.target_language, one.target)
        yield f"<tu>{source}{target}</tu>\n"
    yield "</body>\n</tmx>\n"


def _variant(language: str, text: str) -> str:
    segment = escape(_NO_XML.sub(" ", _flat(text)))
    return f"<tuv xml:lang={quoteattr(language)}><seg>{segment}</seg></tuv>"


def _flat(text: str) -> str:
    """Return a text on one line and in one column."""
    return re.sub(r"[\t\r\n]+", " ", text)
