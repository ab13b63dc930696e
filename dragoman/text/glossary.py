"""A glossary: terms of the source and how they must read in the target. Knows strings and its own
file; no model.

A term is found as whole words (in scripts without spaces anywhere). Written in lower case it stands
for any case, with capitals for itself alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dragoman.errors import InputError
from dragoman.text.normalise import normalise
from dragoman.text.words import ATOM

MAX_LINES = 100_000
MAX_CHARACTERS = 500  # of a field
_Atoms = tuple[str, ...]


@dataclass(frozen=True)
class Term:
    """A source term and its forms in the target, one of which must occur in the translation.

    There are several forms where words are inflected.
    """

    source: str
    forms: tuple[str, ...]


@dataclass(frozen=True)
class _Match:
    """A term in a text, from atom `start` up to `end`."""

    start: int
    end: int
    term: Term


class Glossary:
    """Terms, looked up by their atoms: finding them takes the same time for any number of terms."""

    def __init__(self, terms: Iterable[Term] = ()) -> None:
        self._as_written: dict[_Atoms, Term] = {}
        self._in_any_case: dict[_Atoms, Term] = {}
        # The numbers of atoms of the terms that begin with a (case-folded) atom.
        self._sizes: dict[str, set[int]] = defaultdict(set)
        for term in terms:
            self._add(term.source, term.forms)

    @classmethod
    def load(cls, path: str | Path) -> Glossary:
        """Read lines of `source<TAB>target[<TAB>other form]...` in UTF-8.

        Blank lines and lines that start with # are skipped.
        """
        glossary = cls()
        for number, line in _lines(Path(path)):
            try:
                glossary._add_line(line)
            except InputError as error:
                raise InputError(f"{path}, line {number:,}: {error}") from None
        return glossary

    def __len__(self) -> int:
        return len(self._as_written) + len(self._in_any_case)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glossary) and self._terms == other._terms

    def __hash__(self) -> int:
        return hash(self._terms)

    @cached_property
    def _terms(self) -> frozenset[Term]:
        return frozenset([*self._as_written.values(), *self._in_any_case.values()])

    def find(self, text: str) -> list[Term]:
        """Return the distinct terms of a text in order; the longest where several overlap."""
        atoms = ATOM.findall(normalise(text))
        longest_first = sorted(
            self._matches(atoms),
            key=lambda match: (-len(match.term.source), match.start),
        )
        is_free = [True] * len(atoms)
        chosen = []
        for match in longest_first:
            span = slice(match.start, match.end)
            if all(is_free[span]):
                is_free[span] = [False] * (match.end - match.start)
                chosen.append(match)
        chosen.sort(key=lambda match: match.start)
        return list(dict.fromkeys(match.term for match in chosen))

    def _matches(self, atoms: list[str]) -> Iterator[_Match]:
        folded = [atom.casefold() for atom in atoms]
        for start, first in enumerate(folded):
            for size in self._sizes.get(first, ()):
                end = start + size
                term = self._as_written.get(tuple(atoms[start:end]))
                if not term:
                    term = self._in_any_case.get(tuple(folded[start:end]))
                if term and end <= len(atoms):
                    yield _Match(start, end, term)

    def _add_line(self, line: str) -> None:
        if "\t" not in line:
            raise InputError("no tab; write the source term, a tab and the target term")
        source, target, *others = line.split("\t")
        given = [form for form in others if form.strip()]
        self._add(source, (target, *given))

    def _add(self, source: str, forms: Iterable[str]) -> None:
        source = normalise(source)
        forms = [normalise(form) for form in forms]
        _check(source, forms)
        atoms = tuple(ATOM.findall(source))
        folded = tuple(atom.casefold() for atom in atoms)
        is_lower = source == source.lower()
        terms = self._in_any_case if is_lower else self._as_written
        key = folded if is_lower else atoms
        known = terms.get(key, Term(source, ()))
        distinct_forms = dict.fromkeys([*known.forms, *forms])
        terms[key] = Term(known.source, tuple(distinct_forms))
        self._sizes[folded[0]].add(len(atoms))


def present(term: Term, target: str) -> bool:
    """Whether one of the forms occurs as whole words, as written or with a capital first letter."""
    text = _fenced(target)
    for form in term.forms:
        capitalised = form[:1].upper() + form[1:]
        if _fenced(form) in text or _fenced(capitalised) in text:
            return True
    return False


def accuracy(
    glossary: Glossary,
    sources: Iterable[str],
    targets: Iterable[str],
) -> tuple[int, int]:
    """Return how many terms of the sources are present in their targets, and how many there are."""
    kept = 0
    count = 0
    for source, target in zip(sources, targets, strict=True):
        for term in glossary.find(source):
            kept += present(term, target)
            count += 1
    return kept, count


def _check(source: str, forms: list[str]) -> None:
    if not source or not forms or not all(forms):
        side = "target" if source else "source"
        raise InputError(f"an empty {side} term; fill it in or remove the line")
    longest = max(len(field) for field in [source, *forms])
    if longest > MAX_CHARACTERS:
        raise InputError(
            f"a term of {longest:,} characters; the limit is {MAX_CHARACTERS}, shorten it"
        )


def _fenced(text: str) -> str:
    """Put each atom between characters that no normalised text has: only whole ones are found."""
    atoms = ATOM.findall(normalise(text))
    return "".join(f"\0{atom}\0" for atom in atoms)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of the lines that hold a term."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if number > MAX_LINES:
                    raise InputError(
                        f"{path} has over {MAX_LINES:,} lines, more than a glossary may; "
                        "keep the terms that matter"
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
