"""A glossary: terms of the source and how they must read in the target. Knows strings and its own
file; no model.

A term is found as whole words (in scripts without spaces anywhere). Written in lower case it stands
for any case, with capitals for itself alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import InputError
from dragoman.text.normalise import normalise
from dragoman.text.words import ATOM

MAX_LINES = 100_000
MAX_CHARACTERS = 500  # of a field


@dataclass(frozen=True)
class Term:
    """A source term and the forms, of which one must occur in the target; a choice of several
    where words are inflected."""

    source: str
    forms: tuple[str, ...]


class Glossary:
    """Terms that are looked up by their atoms, so that the time to find some does not grow with
    the number of all."""

    def __init__(self, terms: Iterable[Term] = ()) -> None:
        self._as_written: dict[tuple[str, ...], Term] = {}
        self._in_any_case: dict[tuple[str, ...], Term] = {}
        self._sizes: dict[str, set[int]] = defaultdict(
            set
        )  # of the terms that begin with an atom, its case folded
        for term in terms:
            self._add(term.source, term.forms)

    @classmethod
    def load(cls, path: str | Path) -> Glossary:
        """From lines of `source<TAB>target[<TAB>other form]...` in UTF-8; blank lines and those
        with # first are skipped."""
        glossary = cls()
        for number, line in _lines(Path(path)):
            try:
                if "\t" not in line:
                    raise InputError("no tab; write the source term, a tab and the target term")
                source, target, *others = line.split("\t")
                glossary._add(source, (target, *filter(str.strip, others)))
            except InputError as error:
                raise InputError(f"{path}, line {number:,}: {error}") from None
        return glossary

    def __len__(self) -> int:
        return len(self._as_written) + len(self._in_any_case)

    def find(self, text: str) -> list[Term]:
        """The distinct terms in a text, in order of appearance; where some overlap, the longest."""
        atoms = ATOM.findall(normalise(text))
        found = sorted(self._matches(atoms), key=lambda match: (-len(match[2].source), match[0]))
        free, kept = [True] * len(atoms), []
        for start, end, term in found:
            if all(free[start:end]):
                free[start:end] = [False] * (end - start)
                kept.append((start, term))
        return list(dict.fromkeys(term for _, term in sorted(kept, key=lambda match: match[0])))

    def _matches(self, atoms: list[str]) -> Iterator[tuple[int, int, Term]]:
        folded = [atom.casefold() for atom in atoms]
        for start, first in enumerate(folded):
            for size in self._sizes.get(first, ()):
                end = start + size
                term = self._as_written.get(tuple(atoms[start:end])) or self._in_any_case.get(
                    tuple(folded[start:end])
                )
                if term and end <= len(atoms):
                    yield start, end, term

    def _add(self, source: str, forms: Iterable[str]) -> None:
        source, *forms = fields = [normalise(field) for field in (source, *forms)]
        if not forms or not all(fields):
            raise InputError(
                f"an empty {'target' if source else 'source'} term; fill it in or take it out"
            )
        if (longest := max(map(len, fields))) > MAX_CHARACTERS:
            raise InputError(
                f"a term of {longest:,} characters; it may have {MAX_CHARACTERS}, shorten it"
            )
        atoms = tuple(ATOM.findall(source))
        folded = tuple(atom.casefold() for atom in atoms)
        terms, key = (
            (self._in_any_case, folded) if source == source.lower() else (self._as_written, atoms)
        )
        known = terms.get(key, Term(source, ()))
        terms[key] = Term(known.source, tuple(dict.fromkeys([*known.forms, *forms])))
        self._sizes[folded[0]].add(len(atoms))


def present(term: Term, target: str) -> bool:
    """Whether one of the forms occurs as whole words, as it is written or with its first letter
    capitalised."""
    text = _fenced(target)
    return any(
        _fenced(form) in text or _fenced(form[:1].upper() + form[1:]) in text for form in term.forms
    )


def accuracy(glossary: Glossary, sources: Iterable[str], targets: Iterable[str]) -> tuple[int, int]:
    """(terms of the sources that are present in their targets, terms of the sources)."""
    pairs = (
        (term, target)
        for source, target in zip(sources, targets, strict=True)
        for term in glossary.find(source)
    )
    kept = [present(term, target) for term, target in pairs]
    return sum(kept), len(kept)


def _fenced(text: str) -> str:
    """The atoms between characters that no normalised text has, so that only whole ones are
    found in it."""
    return "".join(f"\0{atom}\0" for atom in ATOM.findall(normalise(text)))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, text) of the lines that hold a term."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if number > MAX_LINES:
                    raise InputError(
                        f"{path} has over {MAX_LINES:,} lines, more than a glossary may; keep the terms that matter"
                    )
                line = raw.decode("utf-8").removeprefix("\ufeff")
                if line.strip() and not line.startswith("#"):
                    yield number, line
    except UnicodeDecodeError:
        raise InputError(
            f"{path}, line {number:,}: not UTF-8; save the glossary as UTF-8"
        ) from None
    except OSError as error:
        raise InputError(
            f"the glossary {path} cannot be read: {error.strerror}; name a text file"
        ) from None
