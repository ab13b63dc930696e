"""Parallel files to pairs of strings, one pair at a time. Knows formats; does not judge what it
reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dragoman.data.text_lines import (
    COMPRESSED,
    MAX_LINE,
    Listener,
    location,
    read_chunks,
    read_lines,
)
from dragoman.data.tmx import units
from dragoman.data.xml_units import MalformedError
from dragoman.errors import InputError, OptionError

# None: a line that cannot be used, of which the listener was notified.
Pair = tuple[str | None, str | None]
_UNUSABLE: Pair = (None, None)
_SELF_CONTAINED = (".tsv", ".tmx", ".jsonl")
# Common endings that look like a language.
_NO_LANGUAGES = ("txt", "src", "tgt", "trg", "ref", "raw", "tok", "bpe", "out")


@dataclass(frozen=True)
class Corpus:
    """One self-contained file, or a source file and its target file.

    A source file stands alone where only sources matter.
    """

    files: tuple[str, ...]
    weight: float = 1.0
    prefix: str = ""  # text before every source

    @property
    def kind(self) -> str:
        """.tsv, .tmx, .jsonl, or anything else for plain lines."""
        return _plain_name(self.files[0]).suffix.lower()

    def location(self, number: int) -> str:
        """Return where the pair of this number stands."""
        unit = "unit" if self.kind == ".tmx" else "line"
        return location(self.files[0], number, unit)


def corpora(
    files: Sequence[str],
    weights: Sequence[float] = (),
    lone_source: bool = False,
) -> list[Corpus]:
    """Return the files of a command line as corpora: plain files go in twos, source then target."""
    groups = _grouped(files, lone_source)
    if weights and len(weights) != len(groups):
        raise OptionError(
            f"data.weights has {len(weights)} numbers for {len(groups)} corpora; give one for each"
        )
    for file in files:
        if not Path(file).is_file():
            raise InputError(f"{file} {_problem(Path(file))}; name a text file")
    if not weights:
        return [Corpus(group) for group in groups]
    return [Corpus(group, weight) for group, weight in zip(groups, weights, strict=True)]


def with_prefixes(all_corpora: Sequence[Corpus], prefixes: Sequence[str]) -> list[Corpus]:
    """Return the corpora, each with the text that stands before its sources."""
    if not prefixes or not all_corpora:
        return list(all_corpora)
    if len(prefixes) != len(all_corpora):
        names = ", ".join(corpus.files[0] for corpus in all_corpora)
        raise OptionError(
            f"data.prefixes has {len(prefixes)} texts for {len(all_corpora)} corpora ({names}); "
            "give one for each corpus, and validation files for each in the same order"
        )
    return [
        replace(corpus, prefix=prefix) for corpus, prefix in zip(all_corpora, prefixes, strict=True)
    ]


def languages(
    all_corpora: Sequence[Corpus],
    source: str = "",
    target: str = "",
) -> tuple[str, str]:
    """Return the two languages: as given, or from the first corpus that names them.

    A corpus names them by its file names or its contents. They are empty if none does.
    """
    named = [_languages_of(corpus) for corpus in all_corpora]
    first_source, first_target = next((pair for pair in named if all(pair)), ("", ""))
    source = source or first_source
    target = target or first_target
    for corpus, pair in zip(all_corpora, named, strict=True):
        if source != target and pair == (target, source):
            raise InputError(
                f"{corpus.files[0]} is read as the {source} side but is named as {target}; "
                "give source files first"
            )
    return source, target


def ignore(
    kind: str,
    location: str,
    text: str,
) -> None:
    """A listener that ignores what it hears, for a first look."""


def read_pairs(
    corpus: Corpus,
    source: str,
    target: str,
    notify: Listener,
) -> Iterator[Pair]:
    """Yield the pairs of a corpus in order.

    Whatever is wrong goes to `notify`, which may raise; if it does not, reading goes on.
    """
    pairs = _pairs(corpus, source, target, notify)
    if not corpus.prefix:
        return pairs
    return ((_behind(corpus.prefix, text), other) for text, other in pairs)


def _behind(prefix: str, source: str | None) -> str | None:
    """A source with the text before it; an empty one stays empty."""
    return f"{prefix} {source}" if source and source.strip() else source


def _pairs(
    corpus: Corpus,
    source: str,
    target: str,
    notify: Listener,
) -> Iterator[Pair]:
    file = corpus.files[0]
    if corpus.kind == ".tmx":
        return _read_tmx(file, source, target, notify)
    if corpus.kind == ".tsv":
        return _read_tsv(file, notify)
    if corpus.kind == ".jsonl":
        return _read_jsonl(file, source, target, notify)
    if len(corpus.files) == 1:
        return ((line, line) for line in read_lines(file, notify))
    return _read_aligned(file, corpus.files[1], notify)


def _problem(path: Path) -> str:
    """Say why a path is not a regular file, which can be read from its start more than once."""
    if path.is_dir():
        return "is a folder"
    if path.exists():
        return "is not a regular file but a pipe or a device, and is read more than once"
    return "does not exist"


def _grouped(files: Sequence[str], lone_source: bool) -> list[tuple[str, ...]]:
    groups: list[tuple[str, ...]] = []
    remaining = iter(files)
    for file in remaining:
        if _plain_name(file).suffix.lower() in _SELF_CONTAINED:
            groups.append((file,))
            continue
        target = next(remaining, None)
        if target is not None:
            groups.append((file, target))
        elif lone_source:
            groups.append((file,))
        else:
            raise InputError(
                f"{file} has no partner; give the source file and then the target file, "
                "or a .tsv, .tmx or .jsonl file"
            )
    return groups


def _read_aligned(
    source: str,
    target: str,
    notify: Listener,
) -> Iterator[Pair]:
    end = object()
    lines = zip_longest(
        read_lines(source, notify),
        read_lines(target, notify),
        fillvalue=end,
    )
    for number, (left, right) in enumerate(lines):
        if left is end or right is end:
            longer = number + 1 + sum(1 for _ in lines)
            source_count = number if left is end else longer
            target_count = longer if left is end else number
            text = f"{source_count:,} lines, but {target} has {target_count:,}"
            notify("unequal", source, text)
            return
        yield left, right  # type: ignore[misc]


def _read_tsv(file: str, notify: Listener) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(file, notify), 1):
        if line is None:
            yield _UNUSABLE
            continue
        columns = line.split("\t", 2)
        if len(columns) < 2:
            notify("columns", location(file, number), line or "an empty line")
            yield _UNUSABLE
        else:
            yield columns[0], columns[1]


def _read_jsonl(
    file: str,
    source: str,
    target: str,
    notify: Listener,
) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(file, notify), 1):
        if line is None:
            yield _UNUSABLE
            continue
        record = _json_record(line)
        keys = ("source", "target")
        if not all(key in record for key in keys):
            keys = (source, target)
        left = record.get(keys[0])
        right = record.get(keys[1])
        if isinstance(left, str) and isinstance(right, str):
            yield left, right
        else:
            notify("json", location(file, number), line or "an empty line")
            yield _UNUSABLE


def _json_record(line: str) -> dict[str, Any]:
    """Return the object that holds the two sides; empty if there is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    inner = record.get("translation", record) if isinstance(record, dict) else {}
    return inner if isinstance(inner, dict) else {}


def _read_tmx(
    file: str,
    source: str,
    target: str,
    notify: Listener,
) -> Iterator[Pair]:
    try:
        for line, texts in units(read_chunks(file, notify), MAX_LINE):
            left = _matching(texts, source)
            right = _matching(texts, target)
            if left is None or right is None:
                notify("huge", location(file, line), "")
            yield left, right
    except MalformedError as error:
        notify("tmx", location(file, error.line), str(error))


def _matching(texts: dict[str, str | None], language: str) -> str | None:
    """Return the text in a language; en also finds en-gb if there is no exact match."""
    language = language.lower().replace("_", "-")
    if language in texts:
        return texts[language]
    for name, text in texts.items():
        if name.split("-")[0] == language.split("-")[0]:
            return text
    return ""


def _languages_of(corpus: Corpus) -> tuple[str, str]:
    """Return what the names of the files, or else the first record, say; empty if nothing."""
    names = [_plain_name(file) for file in corpus.files]
    if len(names) == 2:
        return _language_pair([name.suffix.lstrip(".") for name in names])
    keys = _first_keys(corpus)
    if len(keys) > 1:
        return keys[0], keys[1]
    last_part = names[0].stem.rpartition(".")[2]
    return _language_pair(re.split(r"[-_]", last_part))


def _language_pair(names: Sequence[str]) -> tuple[str, str]:
    """Return two names if both are languages, or else empty strings."""
    if len(names) == 2 and all(_is_language(name) for name in names):
        return names[0], names[1]
    return "", ""


def _first_keys(corpus: Corpus) -> list[str]:
    """Return the languages that the first record of a self-contained file names."""
    file = corpus.files[0]
    if corpus.kind == ".jsonl":
        line = next(read_lines(file, ignore), None)
        record = _json_record(line or "")
        if "source" in record:
            return []
        return [key for key, value in record.items() if isinstance(value, str)]
    if corpus.kind == ".tmx":
        try:
            for _, texts in units(read_chunks(file, ignore), MAX_LINE):
                if len(texts) > 1:
                    return list(texts)
        except MalformedError:
            return []
    return []


def _is_language(name: str) -> bool:
    is_code = re.fullmatch(r"[a-z]{2,3}([-_][A-Za-z]{2,4})?", name)
    return is_code is not None and name not in _NO_LANGUAGES


def _plain_name(file: str) -> Path:
    """Return the file's name without the ending of its compression."""
    path = Path(file)
    return Path(path.stem) if path.suffix.lower() in COMPRESSED else Path(path.name)
