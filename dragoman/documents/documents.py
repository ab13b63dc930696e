"""Documents in, the same kind out: their structure as it was and their text translated. Which kinds
there are is one table here.

A paragraph is one text for the translator, whatever marks (tags, emphasis, runs) stand in it; they
are put back around the words that the alignment names. What is not text is copied from the source.
Knows which formats there are; no model and no server.
"""

from __future__ import annotations

import importlib
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile
from zlib import error as ZlibError

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.text_files import Rewrite
from dragoman.errors import InputError, MissingDependencyError
from dragoman.tasks.translation import Translation
from dragoman.text.markup_transfer import Answer, Ask

Translate = Callable[[list[str]], list[Translation]]  # with the alignment

MAX_BYTES = 10 * 2**20
MAX_ARCHIVE = 64 * 2**20  # of a zip, pictures and all


@dataclass(frozen=True)
class Format:
    """A kind of document."""

    # Module and function in this folder. The function takes the bytes of a file, whom to ask for
    # translations, and the settings; it returns the bytes of the translated file.
    rewrite: str
    extra: str = ""  # of the package, if the format needs one
    written_as: str = ""  # the ending of the translated file, if it is another
    most_bytes: int = MAX_BYTES

    def load(self) -> Rewrite:
        """Return the function; only now is its module imported."""
        module, _, function = self.rewrite.partition(".")
        rewrite: Rewrite = getattr(
            importlib.import_module(f"dragoman.documents.{module}"), function
        )
        return rewrite


FORMATS: dict[str, Format] = {
    ".txt": Format("plain.rewrite_plain"),
    ".md": Format("markdown.rewrite_markdown", extra="documents"),
    ".html": Format("html.rewrite_html"),
    ".htm": Format("html.rewrite_html"),
    ".srt": Format("subtitles.rewrite_subtitles"),
    ".vtt": Format("webvtt.rewrite_webvtt"),
    ".ass": Format("substation.rewrite_substation"),
    ".ssa": Format("substation.rewrite_substation"),
    ".docx": Format("docx.rewrite_docx", most_bytes=MAX_ARCHIVE),
    ".pptx": Format("pptx.rewrite_pptx", most_bytes=MAX_ARCHIVE),
    ".xlsx": Format("xlsx.rewrite_xlsx", most_bytes=MAX_ARCHIVE),
    ".odt": Format("opendocument.rewrite_opendocument", most_bytes=MAX_ARCHIVE),
    ".odp": Format("opendocument.rewrite_opendocument", most_bytes=MAX_ARCHIVE),
    ".ods": Format("opendocument.rewrite_opendocument", most_bytes=MAX_ARCHIVE),
    ".epub": Format("epub.rewrite_epub", most_bytes=MAX_ARCHIVE),
    ".po": Format("gettext_catalog.rewrite_gettext"),
    ".pot": Format("gettext_catalog.rewrite_gettext", written_as=".po"),
    ".xlf": Format("xliff.rewrite_xliff"),
    ".xliff": Format("xliff.rewrite_xliff"),
    ".tmx": Format("tmx_units.rewrite_tmx"),
    ".json": Format("json_strings.rewrite_json"),
    ".arb": Format("json_strings.rewrite_json"),
    ".yaml": Format("yaml_scalars.rewrite_yaml", extra="documents"),
    ".yml": Format("yaml_scalars.rewrite_yaml", extra="documents"),
    ".properties": Format("java_properties.rewrite_properties"),
    ".strings": Format("apple_strings.rewrite_strings"),
    ".stringsdict": Format("apple_strings.rewrite_stringsdict"),
    ".xml": Format("android_strings.rewrite_android"),
    ".csv": Format("delimited_tables.rewrite_csv"),
    ".tsv": Format("delimited_tables.rewrite_tsv"),
    ".tex": Format("latex.rewrite_latex"),
    ".pdf": Format("pdf.rewrite_pdf", extra="documents", written_as=".html"),
}
KINDS: tuple[str, ...] = tuple(FORMATS)
_MACROS = "may contain macros"
_OLD = "is in an Office format from before 2007"
# Kinds of documents that are refused, why, and what they can be saved as instead.
REFUSED = {
    ".docm": (_MACROS, ".docx"),
    ".xlsm": (_MACROS, ".xlsx"),
    ".pptm": (_MACROS, ".pptx"),
    ".doc": (_OLD, ".docx"),
    ".xls": (_OLD, ".xlsx"),
    ".ppt": (_OLD, ".pptx"),
    ".rtf": ("is in Rich Text Format, which is not supported", ".docx"),
}
TAGGED = (
    "text.tagged"  # the name of a text with tags, which comes with a request rather than a file
)
_REQUESTS = {".tagged": Format("tagged_text.rewrite_tagged")}
_ALL_FORMATS = ChainMap(FORMATS, _REQUESTS)  # a view: what the table gets later is there too
_NO_SETTINGS = DocumentSettings()
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


def translate_document(
    name: str, data: bytes, translate: Translate, settings: DocumentSettings = _NO_SETTINGS
) -> bytes:
    """Return a file with its text translated.

    The ending of `name` tells its kind. Text is UTF-8. All texts are translated in one call.
    """
    texts = texts_of(name, data, settings)
    translations = translate(texts) if texts else []
    answers: dict[str, Answer] = {}
    for text, translation in zip(texts, translations, strict=True):
        answers[text] = (translation.text, translation.alignment)
    return with_answers(name, data, answers, settings)


def texts_of(name: str, data: bytes, settings: DocumentSettings = _NO_SETTINGS) -> list[str]:
    """Return the texts of a file that are to be translated, each once."""
    check_kind(name)
    check_size(name, len(data.strip()) and len(data))
    texts: dict[str, Answer] = {}

    def collect(text: str) -> Answer:
        return texts.setdefault(text, (text, ()))

    _rewritten(name, data, collect, settings)
    return list(texts)


def with_answers(
    name: str,
    data: bytes,
    answers: Mapping[str, Answer],
    settings: DocumentSettings = _NO_SETTINGS,
) -> bytes:
    """Return a file with the translations of its texts in their place."""
    return _rewritten(name, data, answers.__getitem__, settings)


def written_name(name: str) -> str:
    """Return the name of the translated file: another ending where a format is written as one."""
    known = _ALL_FORMATS.get(kind_of(name))
    if known is None or not known.written_as:
        return name
    return str(PurePath(name).with_suffix(known.written_as))


def kind_of(name: str) -> str:
    """Return the ending that tells the kind of a file."""
    return PurePath(name).suffix.lower()


def check_kind(name: str) -> None:
    """Raise an error for a file that no format knows."""
    kind = kind_of(name)
    if kind in REFUSED:
        reason, other = REFUSED[kind]
        raise InputError(f"{name} {reason}; open it and save it as {other}")
    if kind not in _ALL_FORMATS:
        raise InputError(
            f"{name} is not a document that can be translated; "
            f"give one that ends in {', '.join(FORMATS)}"
        )


def check_size(name: str, size: int) -> None:
    """Raise an error for a file of no bytes or of too many."""
    most = _ALL_FORMATS[kind_of(name)].most_bytes
    if not 0 < size <= most:
        raise InputError(
            f"{name} has {size:,} bytes; give a document that has text and at most {most:,} bytes"
        )


def _rewritten(name: str, data: bytes, ask: Ask, settings: DocumentSettings) -> bytes:
    """Rewrite a file that may be damaged; whatever is wrong with it is one sentence."""
    kind = kind_of(name)
    try:
        rewrite = _ALL_FORMATS[kind].load()
        return rewrite(data, ask, settings)
    except ImportError:
        raise MissingDependencyError.for_extra(kind, _ALL_FORMATS[kind].extra) from None
    except _FAULTS as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        advice = "save it again"
        if isinstance(error, UnicodeError):
            advice += ", with its text as UTF-8"
        raise InputError(f"{name} cannot be read as {kind} ({reason}); {advice}") from None
