"""LaTeX (.tex): paragraphs, headings, captions, list items and cells are translated; commands,
mathematics, verbatim text, labels, citations and comments stay.

Only what stands between \\begin{document} and \\end{document} is read, and \\title before it; a
file without them is read whole. Knows the frame of a document; which commands hold text is known to
latex_scanner.py.
"""

from __future__ import annotations

import re

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.latex_scanner import BLOCK, Scanner
from dragoman.documents.segments import translate_paragraphs
from dragoman.documents.text_bytes import edited, read_text
from dragoman.text.markup_transfer import Ask
from dragoman.text.spans import Span

_BEGIN = re.compile(r"^(?:[^%\n]|\\%)*?(\\begin\s*\{document\})", re.MULTILINE)
_END = re.compile(r"^(?:[^%\n]|\\%)*?(\\end\s*\{document\})", re.MULTILINE)
_TITLE = re.compile(r"^[ \t]*\\(?:title|subtitle)[ \t]*\{", re.MULTILINE)
_SPECIAL = {
    ord("\\"): "\\textbackslash{}",
    ord("~"): "\\textasciitilde{}",
    ord("^"): "\\textasciicircum{}",
} | {ord(sign): f"\\{sign}" for sign in "{}$&#%_"}
# Written as the source writes them, if it does.
_SIGNS = {"“": "``", "”": "''", "–": "--", "—": "---"}


def rewrite_latex(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Translate the text of a document."""
    file = read_text(data)
    text = file.text
    if "\x00" in text:
        raise ValueError("it has nul bytes, which no text has")
    begin = _BEGIN.search(text)
    start = begin.end(1) if begin else 0
    end_mark = _END.search(text, start) if begin else None
    end = end_mark.start(1) if end_mark else len(text)
    signs = {ord(sign): raw for sign, raw in _SIGNS.items() if raw in text}
    translator = _Translator(text, ask, _SPECIAL | signs)
    edits = []
    for title in _TITLE.finditer(text, 0, start):
        closing = translator.scanner.closing(title.end() - 1)
        if closing and closing < start:
            inner = translator.translated(title.end(), closing, 0)
            edits.append((title.end(), closing, inner))
    edits.append((start, end, translator.translated(start, end, 0)))
    return file.encoded(edited(text, edits))


class _Translator:
    """A document and whom to ask."""

    def __init__(self, text: str, ask: Ask, escapes: dict[int, str]) -> None:
        self._ask = ask
        self._escapes = escapes
        self.scanner = Scanner(text, self.translated)

    def translated(self, start: int, end: int, depth: int) -> str:
        """Translate a stretch of the document."""
        spans = self.scanner.spans(start, end, depth)
        return translate_paragraphs(spans, _is_inline, self._ask, self._write)

    def _write(self, span: Span) -> str:
        return span.text.translate(self._escapes)


def _is_inline(span: Span) -> bool:
    return span.name != BLOCK
