"""Documents in, the same kind out: .txt, .md, .html, .srt and .docx, their structure as it was and
their text translated.

A paragraph is one text for the translator, whatever marks (tags, emphasis, runs) stand in it; they
are put back around the words that the alignment names. What is not text is copied from the source.
Knows which formats there are; no model and no server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile
from zlib import error as ZlibError

from dragoman.documents.docx import read_docx, translate_docx
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
_WORD = ".docx"
KINDS: tuple[str, ...] = (*_TEXT_FORMATS, _WORD)
_BYTE_ORDER_MARK = "\ufeff"
# What reading a damaged document may raise.
_FAULTS = (
    ValueError,
    LookupError,
    BadZipFile,
    ZlibError,
    ExpatError,
    EOFError,
    OSError,
    RuntimeError,  # also of too deep a recursion
)


def translate_document(name: str, data: bytes, translate: Translate) -> bytes:
    """Return a file with its text translated.

    The ending of `name` tells its kind. Text is UTF-8. All texts are translated in one call.
    """
    texts = texts_of(name, data)
    translations = translate(texts) if texts else []
    answers: dict[str, Answer] = {}
    for text, translation in zip(texts, translations, strict=True):
        answers[text] = (translation.text, translation.alignment)
    return with_answers(name, data, answers)


def texts_of(name: str, data: bytes) -> list[str]:
    """Return the texts of a file that are to be translated, each once."""
    _check(name, data)
    texts: dict[str, Answer] = {}

    def collect(text: str) -> Answer:
        return texts.setdefault(text, (text, ()))

    if _kind(name) == _WORD:
        _guarded(name, lambda: read_docx(data, collect))
    else:
        _guarded(name, lambda: _rewrite_text(name, data, collect))
    return list(texts)


def with_answers(name: str, data: bytes, answers: Mapping[str, Answer]) -> bytes:
    """Return a file with the translations of its texts in their place."""
    ask = answers.__getitem__
    if _kind(name) == _WORD:
        return _guarded(name, lambda: translate_docx(data, ask))
    return _guarded(name, lambda: _rewrite_text(name, data, ask))


def _kind(name: str) -> str:
    return PurePath(name).suffix.lower()


def _check(name: str, data: bytes) -> None:
    if _kind(name) not in KINDS:
        raise InputError(
            f"{name} is not a document that can be translated; "
            f"give one that ends in {', '.join(KINDS)}"
        )
    if not data.strip() or len(data) > MAX_BYTES:
        raise InputError(
            f"{name} has {len(data):,} bytes; "
            f"give a document that has text and at most {MAX_BYTES:,} bytes"
        )


def _guarded(name: str, work: Callable[[], bytes]) -> bytes:
    """Do some work on a file that may be damaged; whatever is wrong with it is one sentence."""
    try:
        return work()
    except ImportError as error:
        raise MissingDependencyError(
            f'{_kind(name)} needs {error.name}: pip install "dragoman[serve]"'
        ) from None
    except _FAULTS as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"{name} cannot be read as {_kind(name)} ({reason}); "
            "save it again, with its text as UTF-8"
        ) from None


def _rewrite_text(name: str, data: bytes, ask: Ask) -> bytes:
    text = data.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
    byte_order_mark = data[: len(data) - len(text.encode())]
    rewritten = _TEXT_FORMATS[_kind(name)](text, ask)
    return byte_order_mark + rewritten.encode("utf-8", "replace")
