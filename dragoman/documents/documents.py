"""Documents in, the same kind out: .txt, .md, .html, .srt and .docx, their structure as it was and
their text translated.

A paragraph is one text for the translator, whatever marks (tags, emphasis, runs) stand in it; they
are put back around the words that the alignment names. What is not text is copied from the source.
Knows which formats there are; no model and no server.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile
from zlib import error as ZlibError

from dragoman.documents.docx import translate_docx
from dragoman.documents.html import translate_html
from dragoman.documents.markdown import translate_markdown
from dragoman.documents.plain import translate_plain
from dragoman.documents.subtitles import translate_subtitles
from dragoman.errors import InputError, MissingDependencyError
from dragoman.tasks.translation import Translation
from dragoman.text.markup_transfer import Answer, Ask

Translate = Callable[[list[str]], list[Translation]]  # with the alignment

MAX_BYTES = 10 * 2**20
_TEXT_FORMATS: dict[str, Callable[[str, Ask], str]] = {
    ".txt": translate_plain,
    ".md": translate_markdown,
    ".html": translate_html,
    ".srt": translate_subtitles,
}
KINDS: tuple[str, ...] = (*_TEXT_FORMATS, ".docx")
_BYTE_ORDER_MARK = "\ufeff"


def translate_document(name: str, data: bytes, translate: Translate) -> bytes:
    """Return a file with its text translated.

    The ending of `name` tells its kind. Text is UTF-8. All texts are translated in one call.
    """
    kind = PurePath(name).suffix.lower()
    if kind not in KINDS:
        raise InputError(
            f"{name} is not a document that can be translated; "
            f"give one that ends in {', '.join(KINDS)}"
        )
    if not data.strip() or len(data) > MAX_BYTES:
        raise InputError(
            f"{name} has {len(data):,} bytes; "
            f"give a document that has text and at most {MAX_BYTES:,} bytes"
        )
    answers: dict[str, Answer] = {}

    def collect(text: str) -> Answer:
        return answers.setdefault(text, (text, ()))

    _rewrite(name, data, collect)  # only to learn which texts there are
    translations = translate(list(answers)) if answers else []
    for text, translation in zip(answers, translations, strict=True):
        answers[text] = (translation.text, translation.alignment)
    return _rewrite(name, data, answers.__getitem__)


def _rewrite(name: str, data: bytes, ask: Ask) -> bytes:
    kind = PurePath(name).suffix.lower()
    try:
        if kind == ".docx":
            return translate_docx(data, ask)
        return _rewrite_text(data, _TEXT_FORMATS[kind], ask)
    except ImportError:
        raise MissingDependencyError.for_extra(f"reading {kind} files", "serve") from None
    except (ValueError, BadZipFile, ZlibError, ExpatError, EOFError, RuntimeError) as error:
        raise InputError(
            f"{name} cannot be read as {kind} ({error}); save it again, with its text as UTF-8"
        ) from None


def _rewrite_text(data: bytes, rewrite: Callable[[str, Ask], str], ask: Ask) -> bytes:
    text = data.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
    byte_order_mark = data[: len(data) - len(text.encode())]
    return byte_order_mark + rewrite(text, ask).encode("utf-8", "replace")
