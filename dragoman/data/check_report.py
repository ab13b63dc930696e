"""What was found in the text: counts, examples, and what training does about each. Reads no
files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from dragoman.errors import InputError
from dragoman.text.normalise import normalise

EXAMPLES = 3
EXCERPT = 80


class Kind(NamedTuple):
    """One kind of finding: what it is called, and what the user can do about it."""

    title: str
    advice: str
    stops: bool = False  # training refuses such text
    shorten: bool = True  # its text is a line of a file, not a message
    mended: str = ""  # what is done about it as the text is read, without dropping anything


KINDS = {
    "nothing": Kind(
        "no usable pairs",
        "give files with text in them",
        stops=True,
        shorten=False,
    ),
    "unequal": Kind(
        "unequal line counts",
        "line N of one file must translate line N of the other",
        stops=True,
        shorten=False,
    ),
    "damaged": Kind(
        "damaged files",
        "fetch or compress the file again",
        stops=True,
        shorten=False,
    ),
    "encoding": Kind(
        "lines that are not UTF-8",
        "convert the file: iconv -f LATIN1 (or UTF-16) -t UTF-8",
        stops=True,
    ),
    "columns": Kind(
        "TSV lines without a tab",
        "write source, tab, target on each line, or label, tab, text",
        stops=True,
    ),
    "json": Kind(
        "lines that are not a JSON pair",
        'write {"source": "…", "target": "…"} on each line',
        stops=True,
    ),
    "tmx": Kind("malformed TMX", "export the file again", stops=True, shorten=False),
    "utf16": Kind(
        "files in UTF-16",
        "nothing to do; UTF-8 is what other programs expect",
        shorten=False,
        mended="read as UTF-16",
    ),
    "mark": Kind(
        "files that begin with a byte order mark",
        "nothing to do",
        shorten=False,
        mended="removed",
    ),
    "crlf": Kind(
        "files with Windows line ends (CR LF)",
        "nothing to do",
        shorten=False,
        mended="read as line ends",
    ),
    "tab": Kind("pairs with a tab inside a line", "nothing to do", mended="become spaces"),
    "garbled": Kind(
        "garbled characters (mojibake)",
        "convert the text again from its source; data.drop_garbled",
    ),
    "markup": Kind("HTML on one side only", "data.drop_markup"),
    "swapped": Kind("source and target swapped", "data.drop_swapped"),
    "shifted": Kind(
        "lines shifted against the other side",
        "find the missing or extra line where the block begins; data.drop_shifted",
        shorten=False,
    ),
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
    """How often one kind was found, how many pairs were dropped for it, and some examples."""

    kind: str
    count: int = 0
    dropped: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def stops(self) -> bool:
        """Whether training refuses such text."""
        return KINDS[self.kind].stops

    @property
    def action(self) -> str:
        """What training does with it."""
        if self.stops:
            return "stops training"
        if KINDS[self.kind].mended:
            return KINDS[self.kind].mended
        if not self.dropped:
            return "kept"
        return "dropped" if self.dropped == self.count else f"{self.dropped:,} dropped"


@dataclass
class Report:
    """The data check, filled while the text is read.

    It is rendered for a terminal, as Markdown and as plain values.
    """

    source_language: str = ""
    target_language: str = ""
    # Files, weight, pairs read and pairs kept of each.
    corpora: list[dict[str, Any]] = field(default_factory=list)
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

    def add(
        self,
        kind: str,
        location: str,
        text: str,
        dropped: bool = False,
    ) -> None:
        """Count one finding; raise if it stops training and the report is strict."""
        shown = excerpt(text) if KINDS[kind].shorten else text
        if self.strict and KINDS[kind].stops:
            raise InputError(f"{location}: {shown}; {KINDS[kind].advice}")
        finding = self.tally(kind, 1, int(dropped))
        if len(finding.examples) < EXAMPLES:
            finding.examples.append(f"{location}: {shown}")

    def tally(
        self,
        kind: str,
        count: int,
        dropped: int,
    ) -> Finding:
        """Add to the counts of a kind of finding, and return it."""
        finding = self.findings.setdefault(kind, Finding(kind))
        finding.count += count
        finding.dropped += dropped
        return finding

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain = asdict(self)
        del plain["strict"]
        plain["findings"] = [{**asdict(finding), "action": finding.action} for finding in self]
        return plain

    def text(self) -> str:
        """Return the report for a terminal."""
        lines = [self._summary()]
        titles = [KINDS[finding.kind].title for finding in self]
        width = max(map(len, titles), default=0)
        for finding, title in zip(self, titles, strict=True):
            lines.append(f"  {title:<{width}}  {finding.count:>11,}  {finding.action}")
            lines += [f"      {example}" for example in finding.examples]
        return "\n".join(lines + self.notes) + "\n"

    def markdown(self) -> str:
        """Return the report for report.md, without a heading of its own."""
        lines = [self._summary(), "", "| corpus | weight | pairs | kept |", "|---|---|---|---|"]
        for corpus in self.corpora:
            names = ", ".join(escaped(name) for name in corpus["files"])
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
                f"| {kind.title} | {finding.count:,} | {finding.action} | {escaped(kind.advice)} |"
            )
        for finding in self:
            title = KINDS[finding.kind].title.capitalize()
            lines += ["", f"{title}, for example:", ""]
            lines += [f"- {escaped(example)}" for example in finding.examples]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines) + "\n"

    def _summary(self) -> str:
        source = self.source_language or "source"
        target = self.target_language or "target"
        count = len(self.corpora)
        corpora = f"{count} corpora" if count > 1 else "1 corpus"
        summary = (
            f"{corpora}, {source} to {target}: {self.pairs:,} pairs read, "
            f"{self.kept:,} kept for training, {self.valid:,} for validation"
        )
        return f"{summary}." if self.findings else f"{summary}; nothing suspicious found."


def both_places(location: str, other: str) -> str:
    """Return two locations in words; their file is named once where it is the same."""
    file, _, _ = location.rpartition(", ")
    other_file, _, other_line = other.rpartition(", ")
    if file == other_file:
        return f"{location} and {other_line}"
    return f"{location} and {other}"


def shift_in_words(first: str, last: str, shift: int) -> str:
    """Return where a shifted block begins and ends, and which way it is shifted."""
    _, _, end = last.rpartition(" ")
    lines = abs(shift)
    distance = "one line" if lines == 1 else f"{lines} lines"
    direction = "later" if shift > 0 else "earlier"
    return f"{first} to {end}: the target of each source stands {distance} {direction}"


def excerpt(text: str) -> str:
    """Return the beginning of a text, on one line and without control characters."""
    text = normalise(text[: 4 * EXCERPT])
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"


def escaped(text: str) -> str:
    """Escape a text so that Markdown and HTML show it as it is."""
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return text
