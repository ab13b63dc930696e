"""Formats that are text: decoded before a format sees them and encoded after it. Knows UTF-8 and
its byte order mark; no format."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.documents.document_settings import DocumentSettings
from dragoman.text.markup_transfer import Ask

Rewrite = Callable[[bytes, Ask, DocumentSettings], bytes]
RewriteText = Callable[[str, Ask, DocumentSettings], str]
_BYTE_ORDER_MARK = "\ufeff"


def of_text(rewrite_text: RewriteText) -> Rewrite:
    """Return how a file is rewritten, given how its text is; a byte order mark stays."""

    def rewrite(data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
        text = data.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
        byte_order_mark = data[: len(data) - len(text.encode())]
        rewritten = rewrite_text(text, ask, settings)
        return byte_order_mark + rewritten.encode("utf-8", "replace")

    return rewrite
