"""LaTeX to spans: text, the marks around it, and what is copied. Time is linear: braces are paired
once, and each place is read once.

Knows commands and environments by name; nothing of how they are translated.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dragoman.text.spans import Span

BLOCK = "block"  # the name of a span that ends a paragraph
MAX_DEPTH = 5  # of footnotes in footnotes

_MARKS_TEXT = """
    emph textbf textit textsl textsc textsf textrm textup textmd textnormal underline uline sout
    enquote hl mbox text textsuperscript textsubscript alert structure
"""
_MARKS = frozenset(_MARKS_TEXT.split())
_MARKS_WITH_ARGUMENT_TEXT = "href textcolor colorbox foreignlanguage hyperref hypertarget hyperlink"
_MARKS_WITH_ARGUMENT = frozenset(_MARKS_WITH_ARGUMENT_TEXT.split())
_HEADINGS_TEXT = """
    part chapter section subsection subsubsection paragraph subparagraph caption title subtitle
    frametitle framesubtitle captionof subcaption abstract item texorpdfstring
"""
_HEADINGS = frozenset(_HEADINGS_TEXT.split())
_NOTES = ("footnote", "footnotetext", "marginpar", "sidenote", "thanks")
# These stand for words, and the translator has to know that there is something.
_WORDS_TEXT = """
    ref eqref cref Cref autoref nameref pageref vref cite citet citep citeauthor citeyear parencite
    textcite footcite autocite gls Gls glspl ac acs acl SI si num qty unit url path nolinkurl
    lstinline texttt code ce ensuremath LaTeX TeX today
"""
_WORDS = frozenset(_WORDS_TEXT.split())
_BLOCKS_TEXT = """
    maketitle tableofcontents listoffigures listoftables newpage clearpage pagebreak centering
    hline toprule midrule bottomrule cmidrule cline input include includegraphics usepackage
    documentclass newcommand renewcommand def let bibliography bibliographystyle printbibliography
    appendix par bigskip medskip smallskip vspace hspace noindent setlength addtocounter
    setcounter pagestyle thispagestyle graphicspath newtheorem frontmatter mainmatter backmatter
"""
_BLOCKS = frozenset(_BLOCKS_TEXT.split())
_KEPT_ENVIRONMENTS_TEXT = """
    equation align gather multline eqnarray displaymath math flalign alignat split tikzpicture
    pgfpicture verbatim Verbatim lstlisting minted comment filecontents algorithmic algorithm2e
    thebibliography luacode forest tikzcd dmath subequations
"""
_KEPT_ENVIRONMENTS = frozenset(_KEPT_ENVIRONMENTS_TEXT.split())
# Environments with one argument in braces, and with two.
_ARGUMENTS = {"tabular": 1, "longtable": 1, "array": 1, "minipage": 1, "multicols": 1} | {
    "tabularx": 2, "tabulary": 2, "tabular*": 2, "wrapfigure": 2, "subfigure": 1, "adjustbox": 1,
}  # fmt: skip
_LETTERS = {"ss": "ß", "o": "ø", "O": "Ø", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "l": "ł"}
_LETTERS |= {"L": "Ł", "aa": "å", "AA": "Å", "i": "ı", "ldots": "…", "dots": "…"}
_ACCENTS = {'"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303"}
_ACCENTS |= {"=": "\u0304", ".": "\u0307", "c": "\u0327", "v": "\u030c", "u": "\u0306"}
_ACCENTS |= {"H": "\u030b", "k": "\u0328", "r": "\u030a"}
_TOKEN = re.compile(
    r"""
    (?P<blank>\n[ \t]*\n\s*)
    |(?P<comment>%[^\n]*(?:\n[ \t]*|\Z))
    |(?P<accent>\\(?:["'`^~=.]\s?(?:\{\\?[a-zA-Z]\}|\\?[a-zA-Z])|[cvuHkr]\{[a-zA-Z]\}))
    |(?P<escape>\\[%&_\#${}])
    |(?P<row>\\\\\*?(?:\[[^\[\]\n]{0,40}\])?|(?<!\\)&)
    |(?P<command>\\[a-zA-Z@]+\*?)
    |(?P<display>\$\$|\\\[)
    |(?P<math>\$|\\\()
    |(?P<other>\\.|\\\n|~)
    |(?P<brace>[{}])
    |(?P<sign>``|''|---?)
    """,
    re.VERBOSE | re.DOTALL,
)
_VERB = re.compile(r"\\(?:verb|lstinline)\*?(?P<sign>[^\sa-zA-Z*{\[])[^\n]{0,500}?(?P=sign)")
_ENVIRONMENT = re.compile(r"\s*\{([a-zA-Z@]{1,40}\*?)\}")
_SPACE = re.compile(r"[ \t]*(?:\n(?![ \t]*\n)[ \t]*)?")
_OPTION = re.compile(r"\s{0,9}\[[^\[\]]{0,500}\]")
_SIGNS = {"``": "“", "''": "”", "--": "–", "---": "—"}
_CLOSERS = {"$": "$", "\\(": "\\)", "$$": "$$", "\\[": "\\]"}
# What a brace belongs to is only looked for where braces are.
_BRACE = re.compile(r"\\.|%[^\n]*|[{}]", re.DOTALL)
_LONGEST_MATH = 5_000
_WORD = "{}"  # the text of what stands for words, before it gets a number
Translated = Callable[[int, int, int], str]


class Scanner:
    """A document, whose footnotes are given to `translated` as places of their own."""

    def __init__(self, text: str, translated: Translated) -> None:
        self._text = text
        self._translated = translated
        self._closing = _pairs(text)
        self._ends: dict[str, list[int]] = {}

    def closing(self, place: int) -> int:
        """Return where the brace that is opened at a place is closed, or 0."""
        return self._closing.get(place, 0)

    def spans(self, start: int, end: int, depth: int) -> Iterator[Span]:
        """Yield the spans of a stretch."""
        return _numbered(self._read(start, end, depth))

    def _read(self, start: int, end: int, depth: int) -> Iterator[Span]:
        text = self._text
        block_ends: set[int] = set()  # braces that close a heading
        position = start
        while position < end:
            match = _TOKEN.search(text, position, end)
            if match is None:
                break
            if match.start() > position:
                yield _text_span(text[position : match.start()])
            position = match.end()
            kind = match.lastgroup
            raw = match[0]
            if kind == "brace":
                is_block = match.start() in block_ends
                name = BLOCK if is_block else "{"
                shape = "open" if raw == "{" else "close"
                yield Span("void" if is_block else shape, raw=raw, name=name)
            elif kind == "command":
                span, position, closing = self._command(match, end, depth)
                if closing:
                    block_ends.add(closing)
                yield span
            elif kind in ("math", "display"):
                position = min(self._math_end(raw, position), end)
                name = BLOCK if kind == "display" else "math"
                yield Span("void", _WORD, text[match.start() : position], name=name)
            else:
                yield _simple(kind or "", raw)
        if position < end:
            yield _text_span(text[position:end])

    def _command(self, match: re.Match[str], end: int, depth: int) -> tuple[Span, int, int]:
        """Return the span of a command, where it ends, and the brace that ends a heading."""
        text = self._text
        name = match[0][1:].rstrip("*")
        start, after = match.span()
        verb = _VERB.match(text, start, end)
        if verb:
            return Span("void", _WORD, verb[0], name="verb"), verb.end(), 0
        if name in ("begin", "end"):
            position = self._environment(match, end)
            return Span("void", raw=text[start:position], name=BLOCK), position, 0
        if name in _LETTERS and text[after : after + 1] not in ("{", "["):
            space = _SPACE.match(text, after, end)
            position = space.end() if space and name not in ("ldots", "dots") else after
            return Span("text", _LETTERS[name], text[start:position]), position, 0
        opening = self._opening(after, end, name in _MARKS_WITH_ARGUMENT)
        closing = self.closing(opening) if opening >= 0 else 0
        is_whole = bool(closing) and closing < end
        if is_whole and (name in _MARKS or name in _MARKS_WITH_ARGUMENT):
            return Span("open", raw=text[start : opening + 1], name="{"), opening + 1, 0
        if is_whole and name in _HEADINGS and name != "item":
            return Span("void", raw=text[start : opening + 1], name=BLOCK), opening + 1, closing
        if is_whole and name in _NOTES and depth < MAX_DEPTH:
            inner = self._translated(opening + 1, closing, depth + 1)
            raw = text[start : opening + 1] + inner + "}"
            # Its source and not its translation says where it ends.
            return Span("void", "", raw, name="note"), closing + 1, 0
        position = self._arguments(after, end, name)
        word = _WORD if name in _WORDS else ""
        kind = BLOCK if name in _BLOCKS or name in _HEADINGS else "command"
        return Span("void", word, text[start:position], name=kind), position, 0

    def _opening(self, position: int, end: int, skips_one: bool) -> int:
        """Return where the brace of a command's text is opened, or -1."""
        option = _OPTION.match(self._text, position, end)
        position = option.end() if option else position
        if skips_one and self._text[position : position + 1] == "{":
            closing = self.closing(position)
            position = closing + 1 if closing else position
        return position if self._text[position : position + 1] == "{" and position < end else -1

    def _arguments(self, position: int, end: int, name: str) -> int:
        """Return where the arguments of a command end, and the space behind one without any."""
        first = position
        while position < end:
            option = _OPTION.match(self._text, position, end)
            if option and (name != "item" or position == first):
                position = option.end()
                continue
            closing = self.closing(position) if self._text[position] == "{" else 0
            if not closing or closing >= end or name == "item":
                break
            position = closing + 1
        if position == first:
            space = _SPACE.match(self._text, position, end)
            position = space.end() if space else position
        return position

    def _environment(self, match: re.Match[str], end: int) -> int:
        """Return where the tag of an environment ends, or the whole of one that is kept."""
        text = self._text
        name = _ENVIRONMENT.match(text, match.end(), end)
        if name is None:
            return match.end()
        if match[0] == "\\end":
            return name.end()
        if name[1].rstrip("*") in _KEPT_ENVIRONMENTS:
            closing = self._next(f"\\end{{{name[1]}}}", name.end())
            return min(closing, end)
        position = name.end()
        option = _OPTION.match(text, position, end)
        position = option.end() if option else position
        for _ in range(_ARGUMENTS.get(name[1], 0)):
            closing = self.closing(position)
            if text[position : position + 1] == "{" and closing and closing < end:
                position = closing + 1
        return position

    def _math_end(self, opening: str, position: int) -> int:
        """Return where a formula ends; a formula that does not end is only its sign."""
        closer = _CLOSERS[opening]
        text = self._text
        place = position
        limit = min(len(text), position + _LONGEST_MATH)
        while (place := text.find(closer, place, limit)) >= 0:
            if closer == "$" and text[place - 1] == "\\":
                place += 1
                continue
            return place + len(closer)
        return position

    def _next(self, mark: str, position: int) -> int:
        """Return where a mark ends next, or the end of the text; each is searched for once."""
        if mark not in self._ends:
            self._ends[mark] = [found.start() for found in re.finditer(re.escape(mark), self._text)]
        places = self._ends[mark]
        index = bisect_left(places, position)
        return places[index] + len(mark) if index < len(places) else len(self._text)


def _pairs(text: str) -> dict[int, int]:
    """Return where each brace that is opened is closed."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            opened.append(match.start())
        elif match[0] == "}" and opened:
            closing[opened.pop()] = match.start()
    return closing


def _text_span(raw: str) -> Span:
    return Span("text", raw, raw)


def _simple(kind: str, raw: str) -> Span:
    """Return the span of what is no command, no formula and no brace."""
    if kind == "blank" or kind == "row":
        return Span("void", raw=raw, name=BLOCK)
    if kind == "comment":
        # Behind one without a line end, anything that follows would be a comment too.
        return Span("void", "", raw, name="comment" if "\n" in raw else BLOCK)
    if kind == "accent":
        letter = re.sub(r"[\\{}\s]", "", raw[2:])
        text = unicodedata.normalize("NFC", letter + _ACCENTS[raw[1]])
        return Span("text", text, raw)
    if kind == "escape":
        return Span("text", raw[1], raw)
    if kind == "sign":
        return Span("text", _SIGNS[raw], raw)
    is_space = raw in ("~", "\\ ", "\\,", "\\;", "\\\n")
    return Span("void", " " if is_space else "", raw, name=raw)


def _numbered(spans: Iterable[Span]) -> Iterator[Span]:
    """Give a text of its own to each that stands for words, in each paragraph."""
    number = 0
    for span in spans:
        if span.name == BLOCK:
            number = 0
        elif span.text == _WORD and span.kind == "void":
            number += 1
            span = replace(span, text=f"{{{number}}}")
        yield span
