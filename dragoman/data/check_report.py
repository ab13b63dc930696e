"""What was found in the text: counts, examples, and what training does about each. Knows no
files and reads none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from dragoman.errors import InputError
from dragoman.text.normalise import normalise

EXAMPLES = 3
EXCERPT = 80


class Kind(NamedTuple):
    title: str
    advice: str
    stops: bool = False  # training refuses such text
    shorten: bool = True  # what is told of it is a line of the text, not a message


KINDS = {
    "nothing": Kind("no usable pairs", "give files with text in them", True, False),
    "unequal": Kind(
        "unequal line counts", "line N of one file must translate line N of the other", True, False
    ),
    "damaged": Kind("damaged files", "fetch or compress the file again", True, False),
    "encoding": Kind(
        "lines that are not UTF-8", "convert the file: iconv -f LATIN1 (or UTF-16) -t UTF-8", True
    ),
    "columns": Kind(
        "TSV lines without a tab",
        "write source, tab, target on each line, or label, tab, text",
        True,
    ),
    "json": Kind(
        "lines that are not a JSON pair", 'write {"source": "…", "target": "…"} on each line', True
    ),
    "tmx": Kind("malformed TMX", "export the file again", True, False),
    "huge": Kind("lines over 1 MiB", "is this a text file?"),
    "empty": Kind("pairs with an empty side", "translate them, or leave them out"),
    "long": Kind("over-long pairs", "data.max_length sets the limit"),
    "ratio": Kind("suspicious length ratios", "data.max_ratio sets the limit, 0 keeps them"),
    "copy": Kind("source copied to target", "data.drop_copies"),
    "script": Kind("a side in the wrong script", "data.drop_wrong_script"),
    "overlap": Kind("training sources that stand in valid or test", "data.drop_overlap"),
    "duplicate": Kind("duplicate pairs", "data.drop_duplicates"),
    "many": Kind("sources with several targets", "nothing to do unless they are mistakes"),
}


@dataclass
class Finding:
    """One kind of thing found, how often, how many pairs were dropped for it, and where to look."""

    kind: str
    count: int = 0
    dropped: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def stops(self) -> bool:
        return KINDS[self.kind].stops

    @property
    def action(self) -> str:
        """What training does with it."""
        if self.stops:
            return "stops training"
        if not self.dropped:
            return "kept"
        return "dropped" if self.dropped == self.count else f"{self.dropped:,} dropped"


@dataclass
class Report:
    """The data check. Filled while the text is read; rendered for a terminal, as Markdown and as
    plain values."""

    source_language: str = ""
    target_language: str = ""
    corpora: list[dict[str, Any]] = field(
        default_factory=list
    )  # files, weight, pairs read and kept
    pairs: int = 0  # read for training
    kept: int = 0  # of these, kept for training
    valid: int = 0  # kept for validation
    findings: dict[str, Finding] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    strict: bool = True  # the first thing that would stop training raises

    @property
    def problems(self) -> list[Finding]:
        """The findings that would stop training."""
        return [finding for finding in self if finding.stops]

    def __iter__(self) -> Iterator[Finding]:
        return (self.findings[kind] for kind in KINDS if kind in self.findings)

    def add(self, kind: str, place: str, text: str, dropped: bool = False) -> None:
        """Counts one finding; raises if it stops training and the report is strict."""
        if self.strict and KINDS[kind].stops:
            raise InputError(f"{place}: {_shown(kind, text)}; {KINDS[kind].advice}")
        finding = self.tally(kind, 1, int(dropped))
        if len(finding.examples) < EXAMPLES:
            finding.examples.append(f"{place}: {_shown(kind, text)}")

    def tally(self, kind: str, count: int, dropped: int) -> Finding:
        """Adds to the counts of a kind of finding, and returns it."""
        finding = self.findings.setdefault(kind, Finding(kind))
        finding.count += count
        finding.dropped += dropped
        return finding

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = asdict(self)
        del plain["strict"]
        plain["findings"] = [{**asdict(finding), "action": finding.action} for finding in self]
        return plain

    def text(self) -> str:
        """For a terminal."""
        lines = [self._summary()]
        width = max((len(KINDS[finding.kind].title) for finding in self), default=0)
        for finding in self:
            lines.append(
                f"  {KINDS[finding.kind].title:<{width}}  {finding.count:>11,}  {finding.action}"
            )
            lines += [f"      {example}" for example in finding.examples]
        return "\n".join(lines + self.notes) + "\n"

    def markdown(self) -> str:
        """For report.md, without a heading of its own."""
        lines = [self._summary(), "", "| corpus | weight | pairs | kept |", "|---|---|---|---|"]
        for corpus in self.corpora:
            names = ", ".join(_cell(name) for name in corpus["files"])
            lines.append(
                f"| {names} | {corpus['weight']:g} | {corpus['pairs']:,} | {corpus['kept']:,} |"
            )
        if self.findings:
            lines += [
                "",
                "| found | pairs | what training does | option or remedy |",
                "|---|---|---|---|",
            ]
        for finding in self:
            kind = KINDS[finding.kind]
            lines.append(
                f"| {kind.title} | {finding.count:,} | {finding.action} | {_cell(kind.advice)} |"
            )
        for finding in self:
            lines += ["", f"{KINDS[finding.kind].title.capitalize()}, for example:", ""]
            lines += [f"- {_cell(example)}" for example in finding.examples]
        return "\n".join(lines + [""] * bool(self.notes) + self.notes) + "\n"

    def _summary(self) -> str:
        languages = f"{self.source_language or 'source'} to {self.target_language or 'target'}"
        corpora = f"{len(self.corpora)} corpora" if len(self.corpora) > 1 else "1 corpus"
        summary = (
            f"{corpora}, {languages}: {self.pairs:,} pairs read, {self.kept:,} kept for training"
        )
        if not self.findings:
            return f"{summary}, {self.valid:,} for validation; nothing suspicious found."
        return f"{summary}, {self.valid:,} for validation."


def excerpt(text: str) -> str:
    """The beginning of a text, on one line and without anything that a terminal would obey."""
    text = normalise(text[: 4 * EXCERPT])
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"


def _shown(kind: str, text: str) -> str:
    return excerpt(text) if KINDS[kind].shorten else text


def _cell(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return text
