"""Plain text: every line is a paragraph. Knows line ends."""

from __future__ import annotations

import re

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.segments import translate_text
from dragoman.documents.text_files import of_text
from dragoman.text.markup_transfer import Ask

LINE_END = re.compile(r"(\r\n|\r|\n)")


def translate_plain(source: str, ask: Ask, settings: DocumentSettings) -> str:
    """Translate each line."""
    parts = LINE_END.split(source)
    return "".join(translate_text(part, ask) for part in parts)


rewrite_plain = of_text(translate_plain)
