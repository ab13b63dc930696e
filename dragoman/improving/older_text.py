"""The older text of a model that learns something new: sentences to practise, so that nothing is
forgotten, and pairs to test it on. Knows files and model folders; trains nothing.

What is practised is what the model says already: its own translations of older sources. They
differ less from what it knows than any text by people, and sources alone are enough.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dragoman.config import load_toml
from dragoman.data.check_report import Report
from dragoman.data.corpus import Corpus, corpora, ignore, read_pairs
from dragoman.data.prepare import is_prepared
from dragoman.data.text_lines import read_lines
from dragoman.errors import InputError
from dragoman.folder import layout
from dragoman.improving.teacher_text import sample_sources
from dragoman.text.normalise import normalise

Pair = tuple[str, str]
_SAMPLED = 20_000  # sources of a model's own training text
_READ = 200_000  # lines of a text that are looked at
_SPARED = 0.3  # of parallel text, at most, that is tested on rather than practised
_LONGEST = 400  # characters of a sentence that is practised
_FEWEST_WORDS = 4  # of a part of a sentence
_PART = re.compile(r"(?<=[,;:–—])\s+")
_WORD = re.compile(r"\w+(?:[-'’.]\w+)*")
_OFTEN = 3  # times that corrections must take a word away
_MOSTLY = 0.5  # of the times that the model says it


@dataclass(frozen=True)
class OlderText:
    """Sources to practise, and pairs to test on; either may be missing."""

    sources: list[str]
    valid: list[Pair]


@dataclass(frozen=True)
class Named:
    """The files that a user has named, and the languages of the model."""

    text: tuple[str, ...] = ()  # parallel, or in the source language alone
    valid: tuple[str, ...] = ()
    languages: tuple[str, str] = ("", "")


def older_text(model: Path, named: Named, judged: int) -> OlderText:
    """What the user named, or else what the folder still holds."""
    parallel: list[Pair] = []
    sources: list[str] = []
    for corpus in corpora(named.text, lone_source=True):
        if len(corpus.files) == 1 and corpus.kind not in (".tsv", ".tmx", ".jsonl"):
            lines = read_lines(corpus.files[0], Report().add)
            sources += [normalise(line or "") for line in islice(lines, _READ)]
        else:
            parallel += _pairs(corpus, named.languages)
    valid = _named_valid(named) or _own_valid(model, named.languages)
    if not valid and parallel:
        spared = min(judged, int(_SPARED * len(parallel)))
        valid = _spread(parallel, spared)
    held = {source for source, _ in valid}
    sources += [source for source, _ in parallel]
    sources = sources or list(_own_sources(model))
    usable = (one for one in sources if one not in held and 0 < len(one) <= _LONGEST)
    return OlderText(list(dict.fromkeys(usable)), _spread(valid, judged))


def sample(sources: Sequence[str], count: int) -> list[str]:
    """So many of the sources, from everywhere among them."""
    return _spread(sources, count)


def parts(sources: Iterable[str]) -> list[str]:
    """Parts of sentences, for a model of which there is no older text at all."""
    found = (part.strip() for source in sources for part in _PART.split(source))
    long = (part for part in found if len(part.split()) >= _FEWEST_WORDS)
    return list(dict.fromkeys(long))


def words_taken_away(said: Sequence[str], corrected: Sequence[str]) -> set[str]:
    """The words that the model says and that corrections mostly replace."""
    says: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for own, correction in zip(said, corrected, strict=True):
        words = _words(own)
        says.update(words)
        taken.update(words - _words(correction))
    return {
        word for word, count in taken.items() if count >= _OFTEN and count > _MOSTLY * says[word]
    }


def holds_any(text: str, words: set[str]) -> bool:
    """Whether a text has one of the words."""
    return not words.isdisjoint(_words(text))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _spread(items: Sequence, count: int) -> list:  # type: ignore[type-arg]
    """So many items at equal distances."""
    if count >= len(items):
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]


def _named_valid(named: Named) -> list[Pair]:
    found: list[Pair] = []
    for corpus in corpora(named.valid):
        found += _pairs(corpus, named.languages)
    if named.valid and not found:
        raise InputError(f"{named.valid[0]} has no pairs; name another file with --valid")
    return found


def _own_valid(model: Path, languages: tuple[str, str]) -> list[Pair]:
    """The valid set that the folder holds, or that of its training if the files are there."""
    for name in (layout.OLD_VALID, layout.VALID_TEXT):
        if (model / name).exists():
            return _pairs(Corpus((str(model / name),)), languages)
    files = _known(model, "valid")
    return [pair for corpus in corpora(files) for pair in _pairs(corpus, languages)]


def _own_sources(model: Path) -> Iterator[str]:
    """The sources that the folder holds, or those of its training if the files are there."""
    if (model / layout.OLD_SOURCES).exists():
        lines = read_lines(str(model / layout.OLD_SOURCES), ignore)
        yield from (normalise(line or "") for line in islice(lines, _READ))
    elif is_prepared(model / layout.DATA):
        yield from (normalise(line) for line in sample_sources(model, _SAMPLED))
    else:
        for corpus in corpora(_known(model, "train")):
            yield from (source for source, _ in _pairs(corpus, ("", "")))


def _known(model: Path, name: str) -> list[str]:
    """The files that a model was trained or validated on, if all are still there."""
    path = model / layout.OPTIONS
    data = load_toml(path).get("data", {}) if path.exists() else {}
    files = [str(file) for file in data.get(name, [])]
    return files if all(Path(file).is_file() for file in files) else []


def _pairs(corpus: Corpus, languages: tuple[str, str]) -> list[Pair]:
    """The first pairs of a corpus that have text on both sides."""
    found = []
    for source, target in islice(read_pairs(corpus, *languages, Report().add), _READ):
        if source and target and source.strip() and target.strip():
            found.append((normalise(source), normalise(target)))
    return found
