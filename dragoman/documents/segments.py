"""The one representation of a document: paragraphs of spans, which are texts and the marks among
them. A format reads into it and writes from it.

Knows spans and what is asked of a translator; no file format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from dragoman.documents.formulas import as_one_word
from dragoman.text.markup import rewritten
from dragoman.text.markup_transfer import MOST, Answer, Ask
from dragoman.text.spans import Span

SpanAt = tuple[int, Span]  # where a mark starts in its source, and the mark


def read_spans(
    source: str, marks: Iterable[SpanAt], decode: Callable[[str], str] = str
) -> Iterator[Span]:
    """Yield the marks of a source and the texts between them.

    `decode` turns a text as it is written into the text that a reader sees. An element whose first
    mark says `keep` becomes one span, which is not translated.
    """
    return _join_kept(_texts_and_marks(source, marks, decode))


def join(spans: Sequence[Span]) -> Span:
    """Make one span of several; it is put back as it was."""
    name = spans[0].name
    # What Word's elements hold is not read at all.
    words = "".join(span.text for span in spans if span.kind == "text").split()
    text = "" if ":" in name else " ".join(words)
    return Span("kept", as_one_word(text), written(spans), name=name)


def written(spans: Iterable[Span]) -> str:
    """Return spans as their source has them."""
    return "".join(span.raw for span in spans)


def translate_paragraphs(
    spans: Iterable[Span],
    is_inline: Callable[[Span], bool],
    ask: Ask,
    write: Callable[[Span], str],
) -> str:
    """Translate each stretch of inline spans as one paragraph; copy what is between them.

    `write` turns a text of the translation into what the format has for it.
    """
    out: list[str] = []
    for inline, group in groupby(spans, is_inline):
        paragraph = list(group)
        if not inline:
            out.append(written(paragraph))
            continue
        for start in range(0, len(paragraph), MOST):
            part = paragraph[start : start + MOST]
            out.append(rewritten(part, ask, write))
    return "".join(out)


def translate_text(text: str, ask: Ask) -> str:
    """Translate a text without marks; the white space around it stays."""
    body = text.strip()
    if not any(character.isalpha() for character in body):
        return text
    translation, _ = ask(body)
    return text.replace(body, translation)


def without_added_stop(ask: Ask) -> Ask:
    """Ask for translations that end with a full stop only where the text ends with a mark.

    Translators tend to end what is no sentence, such as a label or a sound, as if it were one.
    """

    def asked(text: str) -> Answer:
        translation, alignment = ask(text)
        is_open = text[-1:].isalnum() or text.endswith(("}", "%", ")"))
        if is_open and translation.endswith((".", "。")) and not translation.endswith(".."):
            return translation[:-1].rstrip(), alignment
        return translation, alignment

    return asked


def _texts_and_marks(
    source: str, marks: Iterable[SpanAt], decode: Callable[[str], str]
) -> Iterator[Span]:
    end = 0
    for start, mark in marks:
        text = source[end:start]
        if text:
            yield Span("text", decode(text), text)
        yield mark
        end = start + len(mark.raw)
    text = source[end:]
    if text:
        yield Span("text", decode(text), text)


def _join_kept(spans: Iterable[Span]) -> Iterator[Span]:
    held: list[Span] = []
    depth = 0
    for span in spans:
        if not held and not span.keep:
            yield span
            continue
        held.append(span)
        if span.name == held[0].name:
            depth += (span.kind == "open") - (span.kind == "close")
        if depth == 0:
            yield join(held)
            held = []
    if held:
        yield join(held)
