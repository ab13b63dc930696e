"""Cells that hold a piece of a page: their text is translated and their tags stay, as in documents.
Knows strings; what is in a page is known to documents/."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import texts_of, with_answers
from dragoman.tasks.translation import Translation
from dragoman.text.markup_transfer import Answer

Translate = Callable[[list[str]], list[Translation]]  # with the alignment
MARKUPS = ("html", "md")


def translate_marked(
    cells: Sequence[str], markup: str, translate: Translate, settings: DocumentSettings
) -> list[Translation]:
    """Return the cells with their text translated; the texts of all cells are translated in one
    call, each once."""
    name = f"cell.{markup}"
    pages = {cell: cell.encode() for cell in cells if cell.strip()}
    texts: dict[str, None] = {}
    for page in pages.values():
        texts.update(dict.fromkeys(texts_of(name, page, settings)))
    answers: dict[str, Answer] = {}
    for text, done in zip(texts, translate(list(texts)) if texts else [], strict=True):
        answers[text] = (done.text, done.alignment)
    translated = []
    for cell in cells:
        text = cell
        if cell in pages:
            text = with_answers(name, pages[cell], answers, settings).decode()
        translated.append(Translation(text))
    return translated
