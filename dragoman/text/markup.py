"""A paragraph's marks (tags, emphasis, runs) around the right words of its translation, by the
alignment of the words.

Knows strings, spans and alignments; no file format, no translator.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

Answer = tuple[
    str, Sequence[tuple[int, int]]
]  # a translation, and its pairs of source word and target word
Ask = Callable[[str], Answer]
MOST = 500  # spans of a paragraph: the time for each word grows with the marks around it


@dataclass(frozen=True)
class Span:
    """A stretch of a paragraph: text, a mark that opens, closes or does either (turn), or what
    is put back as it is (void)."""

    kind: str
    # as the translator reads it; of a mark, what is written where the text around it changes
    text: str = ""
    raw: str = ""  # as it is in the source
    marks: tuple[
        tuple[str, str, int], ...
    ] = ()  # outermost first: how it opens, how it closes, its number
    name: str = ""
    keep: bool = False  # it opens what is not translated


_SPACE = Span("text", " ")


def rewritten(spans: Sequence[Span], ask: Ask, write: Callable[[Span], str]) -> str:
    """A paragraph translated; as it was where the text does not change."""
    raw = "".join(span.raw for span in spans)
    made = transfer(_nested(spans), ask)
    lead, tail = raw[: len(raw) - len(raw.lstrip())], raw[len(raw.rstrip()) :]
    return raw if made is None else lead + _written(made, write).strip() + tail


def _nested(spans: Sequence[Span]) -> list[Span]:
    """Texts and voids. What opens and closes among the spans is a mark of those between; what
    only does one of both is void."""
    inner: list[Span] = []
    opened: list[tuple[int, Span]] = []
    for i, span in enumerate(spans):
        closes = reversed(range(len(opened))) if span.kind in ("close", "turn") else ()
        match = next((k for k in closes if opened[k][1].name == span.name), None)
        if match is None:
            opened += [(len(inner), span)] * (span.kind in ("open", "turn"))
            inner.append(
                span if span.kind in ("text", "void", "kept") else Span("void", raw=span.raw)
            )
        else:
            start, first = opened[match]
            del opened[match:]
            mark = (first.text or first.raw, span.text or span.raw, 0 if ":" in span.name else i)
            inner[start:] = [replace(s, marks=(mark, *s.marks)) for s in inner[start + 1 :]] or [
                Span("void", marks=(mark,))
            ]
    return inner


def _written(spans: Sequence[Span], write: Callable[[Span], str]) -> str:
    """All in a row; a space is in the marks that both its neighbours are in."""
    out: list[str] = []
    marks: tuple[tuple[str, str, int], ...] = ()
    for span, after in zip(
        [*spans, Span("void")], [*spans[1:], Span("void"), Span("void")], strict=True
    ):
        wanted = after.marks if span is _SPACE else span.marks
        same = next(
            (i for i, (a, b) in enumerate(zip(marks, wanted, strict=False)) if a != b),
            min(len(marks), len(wanted)),
        )
        now = replace(span, marks=wanted[:same]) if span is _SPACE else span
        out += [mark[1] for mark in reversed(marks[same:])] + [mark[0] for mark in now.marks[same:]]
        out.append(write(now) if now.kind == "text" else now.raw)
        marks = now.marks
    return "".join(out)


def transfer(spans: Sequence[Span], ask: Ask) -> list[Span] | None:
    """The texts and voids of a paragraph's translation; None where the text does not change.

    A target word has the marks of the source word that it comes from. What has no words stands
    where the fewest words change sides. A mark that lost its words takes the nearest word if that
    has no marks, else it stays there, empty.
    """
    if len(spans) > MOST or not any(
        c.isalpha() for span in spans if span.kind == "text" for c in span.text
    ):
        return None
    plain = "".join(span.text for span in spans)
    owners = [span for span in spans for _ in span.text]
    places = [slice(*found.span()) for found in re.finditer(r"\S+", plain)]
    source = [plain[place] for place in places]
    answer, alignment = ask(" ".join(source))
    target = answer.split()
    if target == source:
        return None
    cores = (_core(_parts(word, owners[place])) for word, place in zip(source, places, strict=True))
    kept = {source[i]: i for i, core in enumerate(cores) if core[1].kind != "text"}
    origins, linked = _origins(source, target, alignment, kept)
    said: list[list[Span]] = [[] for _ in target]
    put: set[int] = set()
    for j, i in enumerate(origins):
        for text, span in _cut(target[j], _parts(source[i], owners[places[i]])):
            if span.kind == "text" or not (j in linked or target[j] in kept):
                said[j].append(Span("text", text, marks=span.marks))
            elif id(span) not in put:
                said[j].append(span)
                put.add(id(span))
    gaps: list[list[Span]] = [[] for _ in range(len(target) + 1)]
    there = {mark for row in said for span in row for mark in span.marks}
    for span, end in zip(spans, accumulate(len(span.text) for span in spans), strict=True):
        if id(span) in put or (span.kind == "text" and there.issuperset(span.marks)):
            continue
        start = end - len(span.text)
        place = _place(origins, bisect_left(places, start, key=lambda place: place.start))
        if span.kind != "text":
            before, after = (
                bool(span.text.strip()) or plain[at : at + 1].isspace()
                for at in (max(start - 1, 0), end)
            )
            gaps[place] += [_SPACE] * before + [span] + [_SPACE] * after
        elif (
            place < len(said)
            and said[place]
            and not any(s.marks or s.kind != "text" for s in said[place])
        ):
            said[place] = [replace(s, marks=span.marks) for s in said[place]]
        else:
            gaps[place].append(Span("void", marks=span.marks))
        there.update(span.marks)
    row = gaps[0] + [span for word in said[:1] for span in word]
    for gap, word in zip(gaps[1:], [*said[1:], []], strict=True):
        row += [*gap, *([_SPACE] if word and not any(s.text.isspace() for s in gap) else []), *word]
    return row


def _parts(word: str, owners: Sequence[Span]) -> list[tuple[str, Span]]:
    groups = [list(group) for _, group in groupby(range(len(word)), key=lambda at: id(owners[at]))]
    return [(word[group[0] : group[-1] + 1], owners[group[0]]) for group in groups]


def _core(parts: Sequence[tuple[str, Span]]) -> tuple[str, Span]:
    return max(parts, key=lambda part: sum(character.isalnum() for character in part[0]))


def _cut(word: str, parts: list[tuple[str, Span]]) -> list[tuple[str, Span]]:
    """A target word in parts like its source word's: punctuation at the ends for what stood
    there, the rest for the core."""
    if word == "".join(text for text, _ in parts):
        return parts
    core = _core(parts)
    at = parts.index(core)
    before, after = (sum(len(text) for text, _ in side) for side in (parts[:at], parts[at + 1 :]))
    cut = re.fullmatch(rf"(\W{{0,{before}}})(.*?)(\W{{0,{after}}})", word)
    assert cut
    return [
        (text, part[1])
        for text, part in zip(cut.groups(), (parts[0], core, parts[-1]), strict=True)
        if text
    ]


def _origins(
    source: list[str], target: list[str], alignment: Sequence[tuple[int, int]], kept: dict[str, int]
) -> tuple[list[int], dict[int, list[int]]]:
    """For each target word the source word that it comes from, and its links; without one it
    goes with the word before it."""
    links: dict[int, list[int]] = {}
    for i, j in alignment:
        if i < len(source) and j < len(target):
            links.setdefault(j, []).append(i)
    first = next(iter(links.values()), [])
    origins: list[int] = []
    for j, word in enumerate(target):
        here = j * len(source) // len(target)
        choices = links.get(j) or (
            [kept[word]] if word in kept else (first and (origins[-1:] or first)) or [here]
        )
        origins.append(
            min(choices, key=lambda i: (source[i] != word, source[i] in kept, abs(i - here)))
        )
    return origins, links


def _place(origins: Sequence[int], number: int) -> int:
    """The target word before which to put what stood before source word `number`, so that the
    fewest words change sides. It never falls as `number` grows, so what has no words keeps its
    order."""
    costs = accumulate((1 if i >= number else -1 for i in origins), initial=0)
    return min(enumerate(costs), key=lambda pair: pair[1])[0]
