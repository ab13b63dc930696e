"""The text of a round of back-translation: lines of the target language, what a model makes of
them, and pairs with exchanged names. Knows files; the model's work is back_translation.py's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from dragoman.decoding.search_options import SearchOptions
from dragoman.folder.files import aside
from dragoman.improving.back_translation import BackTranslation, back_translate
from dragoman.improving.copied_names import CopiedNames
from dragoman.improving.gather_text import write_pairs
from dragoman.improving.improve_plan import GATHER
from dragoman.improving.improve_workshop import Pair, Workshop
from dragoman.improving.mixed_text import BACK, own, pairs_of
from dragoman.improving.steps_of_text import SOURCE_TEXT, TARGET_TEXT
from dragoman.improving.text_through_model import Machines

_EXTRA = 20  # tokens beyond its source that a translation may have
_MOST_RENAMED = 200_000  # pairs from which names are exchanged
_LINES = "lines.txt"
_BACK_TRANSLATED = "back-translated.tsv"
_FORWARD_LINES = "forward-lines.txt"
_FORWARD = "translated.tsv"
_RENAMED = "renamed.tsv"


def lines_there_are(shop: Workshop) -> int:
    """How many lines a round could translate back."""
    return shop.count(TARGET_TEXT) + shop.count("pairs")


def back_translated(shop: Workshop, name: str, lines: int, sampled: bool) -> Path:
    """The pairs that the model of the opposite direction makes of as many lines; text of the target
    language alone comes first, then the targets of the pairs."""
    place = shop.place(name)
    text = place / _LINES
    if not text.exists():
        _write_lines(text, islice(_target_lines(shop), lines))
    out = place / _BACK_TRANSLATED
    search = SearchOptions(beam=1, max_extra=_EXTRA)
    if sampled:
        search = SearchOptions(
            beam=1, sample=True, top_k=10, seed=shop.inputs.seed, max_extra=_EXTRA
        )
    options = BackTranslation(BACK, search, _machines(shop))
    back_translate(shop.path(shop.journal.reverse()), [text], out, options)
    return out


def forward_translated(shop: Workshop, name: str, lines: int) -> Path | None:
    """Text of the source language with the best model's own translations; None if there is no such
    text."""
    if not shop.count(SOURCE_TEXT):
        return None
    return _translated(shop, name, islice(_read_lines(shop.place(GATHER) / SOURCE_TEXT), lines))


def taught(shop: Workshop, name: str, lines: int) -> Path:
    """What a student learns: our own sources, and text of the source language alone, as the best
    model translates them."""
    sources = (source for source, _ in _spread(shop))
    alone = _read_lines(shop.place(GATHER) / SOURCE_TEXT)
    return _translated(shop, name, islice(chain(sources, alone), lines))


def _translated(shop: Workshop, name: str, lines: Iterator[str]) -> Path:
    """Pairs of the lines and the best model's translations."""
    place = shop.place(name)
    text = place / _FORWARD_LINES
    if not text.exists():
        _write_lines(text, lines)
    model = shop.model()
    assert model is not None
    turned = place / f"turned.{_FORWARD}"
    options = BackTranslation("", SearchOptions(max_extra=_EXTRA), _machines(shop))
    back_translate(model, [text], turned, options)
    out = place / _FORWARD
    if not out.exists():
        write_pairs(out, ((source, target) for target, source in pairs_of([(turned, 1.0)])))
    return out


def renamed(shop: Workshop, name: str) -> Path:
    """Our own pairs with other names and numbers on both sides."""
    out = shop.place(name) / _RENAMED
    if not out.exists():
        pairs = list(islice(pairs_of(own(shop)), _MOST_RENAMED))
        write_pairs(out, CopiedNames(pairs, shop.inputs.seed).exchanged(pairs))
    return out


def _machines(shop: Workshop) -> Machines:
    return Machines(shop.inputs.device, cluster=shop.inputs.cluster)


def _target_lines(shop: Workshop) -> Iterator[str]:
    alone = _read_lines(shop.place(GATHER) / TARGET_TEXT)
    return chain(alone, (target for _, target in _spread(shop)))


def _spread(shop: Workshop) -> Iterator[Pair]:
    """Our own pairs, from each corpus in turn, so that a part of them has some of each."""
    readers = [pairs_of([one]) for one in own(shop)]
    while readers:
        for reader in list(readers):
            pair = next(reader, None)
            if pair is None:
                readers.remove(reader)
            else:
                yield pair


def _read_lines(path: Path) -> Iterator[str]:
    with open(path, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield line.rstrip("\n")


def _write_lines(path: Path, lines: Iterator[str]) -> None:
    with aside(path) as new, open(new, "w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(f"{line}\n")
