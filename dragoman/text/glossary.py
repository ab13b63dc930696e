"""A glossary: terms of the source and how they must read in the target. Knows strings; no model.
How a file is read is known to glossary_files.py.

A term is found as whole words (in scripts without spaces anywhere), in the plural and the cases of
languages that inflection.py knows, every time that it occurs, and the longest where several
overlap. It stands for any case, with two exceptions: one word with a capital letter (`May`) needs
the capital, and an abbreviation in capitals (`IT`) stands for itself alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import InputError
from dragoman.text.inflection import is_form, key_of, language_of
from dragoman.text.normalise import normalise
from dragoman.text.words import ATOM

MAX_TERMS = 100_000
MAX_CHARACTERS = 500  # of a term
_Atoms = tuple[str, ...]
_Pair = tuple[str, str]


@dataclass(frozen=True)
class Term:
    """A source term and its forms in the target, one of which must occur in the translation.

    There are several forms where words are inflected. A term with `languages`, source and target,
    is for models of that pair only.
    """

    source: str
    forms: tuple[str, ...]
    languages: _Pair | None = None

    def __post_init__(self) -> None:
        if isinstance(self.forms, str):
            raise InputError(
                f"the forms of '{self.source[:40]}' are one string; write ('{self.forms[:40]}',)"
            )


@dataclass(frozen=True)
class Occurrence:
    """A term in a normalised text, from character `start` up to `end`."""

    term: Term
    start: int
    end: int


@dataclass(frozen=True)
class _Match:
    """A term in a text, from atom `first` up to `end`; the lower the rank, the more exact."""

    first: int
    end: int
    rank: int
    term: Term


class Glossary:
    """Terms, looked up by their atoms: finding them takes the same time for any number of terms."""

    def __init__(self, terms: Iterable[Term] = ()) -> None:
        known: dict[tuple[str, _Pair | None], list[str]] = defaultdict(list)
        for term in terms:
            source = normalise(term.source)
            forms = [normalise(form) for form in term.forms]
            check_term(source, forms)
            known[source, term.languages] += forms
        merged = []
        for (source, languages), forms in known.items():
            different = tuple(dict.fromkeys(forms))
            merged.append(Term(source, different, languages))
        self._terms = frozenset(merged)
        self._indices: dict[_Pair, _Index] = {}

    @classmethod
    def load(cls, path: str | Path) -> Glossary:
        """Read a .tsv, .csv or .tbx file; any other name is read as .tsv."""
        from dragoman.text.glossary_files import read_terms

        return cls(read_terms(Path(path)))

    def __len__(self) -> int:
        return len(self._terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glossary) and self._terms == other._terms

    def __hash__(self) -> int:
        return hash(self._terms)

    def __repr__(self) -> str:
        """Say how many terms there are."""
        return f"<Glossary: {len(self):,} terms>"

    def find(self, text: str, source: str = "", target: str = "") -> list[Term]:
        """Return the term of every occurrence in a text, in order.

        `source` and `target` are the languages: the first tells how words are inflected, both
        which terms are meant.
        """
        return [found.term for found in self.occurrences(text, source, target)]

    def occurrences(self, text: str, source: str = "", target: str = "") -> list[Occurrence]:
        """Return where each term occurs in the normalised text, in order."""
        return self._index(source, target).occurrences(normalise(text))

    def prepare(self, source: str, target: str) -> None:
        """Do now what the first search for terms of these languages would do: with 100,000 terms
        it takes seconds."""
        self._index(source, target)

    def _index(self, source: str, target: str) -> _Index:
        pair = (language_of(source), language_of(target))
        if pair not in self._indices:
            self._indices[pair] = _Index(self._terms, pair)
        return self._indices[pair]


class _Index:
    """The terms for a pair of languages, by what the forms of their atoms have in common."""

    def __init__(self, terms: Iterable[Term], pair: _Pair) -> None:
        self._language = pair[0]
        self._by_keys: dict[_Atoms, list[tuple[_Atoms, Term]]] = defaultdict(list)
        # The numbers of atoms of the terms that begin with a key.
        self._sizes: dict[str, set[int]] = defaultdict(set)
        in_order = sorted(terms, key=lambda term: (term.source, term.forms))
        for term in in_order:
            if term.languages is not None and not _is_of(term.languages, pair):
                continue
            atoms = tuple(ATOM.findall(term.source))
            keys = self._keys(atoms)
            first_key = keys[0]
            self._by_keys[keys].append((atoms, term))
            self._sizes[first_key].add(len(atoms))

    def occurrences(self, text: str) -> list[Occurrence]:
        spans = [match.span() for match in ATOM.finditer(text)]
        atoms = [text[start:end] for start, end in spans]
        longest_first = sorted(
            self._matches(atoms),
            key=lambda match: (-len(match.term.source), match.rank, match.first),
        )
        is_free = [True] * len(atoms)
        chosen = []
        for match in longest_first:
            part = slice(match.first, match.end)
            if all(is_free[part]):
                size = match.end - match.first
                is_free[part] = [False] * size
                chosen.append(match)
        chosen.sort(key=lambda match: match.first)
        occurrences = []
        for match in chosen:
            start, _ = spans[match.first]
            _, end = spans[match.end - 1]
            occurrences.append(Occurrence(match.term, start, end))
        return occurrences

    def _matches(self, atoms: list[str]) -> Iterator[_Match]:
        keys = self._keys(atoms)
        for first, beginning in enumerate(keys):
            for size in self._sizes.get(beginning, ()):
                end = first + size
                found = tuple(atoms[first:end])
                entries = self._by_keys.get(keys[first:end], ())
                if entries and end <= len(atoms):
                    yield from self._best(found, entries, first)

    def _best(
        self, atoms: _Atoms, entries: Iterable[tuple[_Atoms, Term]], first: int
    ) -> Iterator[_Match]:
        """Yield the most exact of the terms that have the keys of these atoms."""
        ranked = []
        end = first + len(atoms)
        for wanted, term in entries:
            rank = _rank(atoms, wanted, self._language)
            if rank is not None:
                ranked.append(_Match(first, end, rank, term))
        if ranked:
            yield min(ranked, key=lambda match: match.rank)

    def _keys(self, atoms: Iterable[str]) -> _Atoms:
        return tuple(key_of(atom, self._language) for atom in atoms)


def present(term: Term, target: str) -> bool:
    """Whether one of the forms occurs as whole words, as written or with a capital first letter."""
    return count_present(term.forms, target) > 0


def count_present(forms: Iterable[str], target: str) -> int:
    """Return how often the forms occur as whole words, as written or with a capital first letter;
    one that lies in another does not count by itself."""
    text = _fenced(target)
    spellings = set()
    for form in forms:
        capital = form[:1].upper()
        spellings |= {form, capital + form[1:]}
    count = 0
    for spelling in sorted(spellings, key=len, reverse=True):
        fenced = _fenced(spelling)
        count += text.count(fenced)
        text = text.replace(fenced, "\n")
    return count


def accuracy(
    glossary: Glossary,
    sources: Iterable[str],
    targets: Iterable[str],
    languages: _Pair = ("", ""),
) -> tuple[int, int]:
    """Return how many occurrences of terms in the sources are present in their targets, and how
    many there are. A term that occurs twice is wanted twice."""
    kept = 0
    count = 0
    for source, target in zip(sources, targets, strict=True):
        terms = glossary.find(source, *languages)
        wanted = Counter(frozenset(term.forms) for term in terms)
        for forms, times in wanted.items():
            present_times = count_present(forms, target)
            kept += min(times, present_times)
            count += times
    return kept, count


def check_term(source: str, forms: list[str]) -> None:
    """Raise an InputError for a term that is empty or too long."""
    if not source or not forms or not all(forms):
        side = "target" if source else "source"
        raise InputError(f"an empty {side} term; fill it in or remove the line")
    longest = max(len(field) for field in [source, *forms])
    if longest > MAX_CHARACTERS:
        raise InputError(
            f"a term of {longest:,} characters; the limit is {MAX_CHARACTERS}, shorten it"
        )


def _rank(atoms: _Atoms, wanted: _Atoms, language: str) -> int | None:
    """How exactly a text has a term whose keys it has: 0 as written, 1 in another case, 2
    inflected; None where it is not the term."""
    if atoms == wanted:
        return 0
    is_word = len(wanted) == 1
    first = atoms[0]
    wanted_first = wanted[0]
    if is_word and wanted_first.isupper() and len(wanted_first) > 1:
        # An abbreviation; only its plural is written otherwise.
        is_plural = first == f"{wanted_first}s"
        return 2 if is_plural and language else None
    if is_word and wanted_first[:1].isupper() and not first[:1].isupper():
        return None
    pairs = list(zip(atoms, wanted, strict=True))
    if all(atom.casefold() == other.casefold() for atom, other in pairs):
        return 1
    if all(is_form(atom, other, language) for atom, other in pairs):
        return 2
    return None


def _is_of(languages: _Pair, pair: _Pair) -> bool:
    """Whether a term's languages are those of a model; a model without languages takes any."""
    of_term = map(language_of, languages)
    pairs = zip(of_term, pair, strict=True)
    return all(one == other or not other for one, other in pairs)


def _fenced(text: str) -> str:
    """Put each atom between characters that no normalised text has: only whole ones are found."""
    atoms = ATOM.findall(normalise(text))
    return "".join(f"\0{atom}\0" for atom in atoms)
