"""The side file for a reviewer: each text of some documents with its translation, its flags and its
confidence, as TMX, XLIFF 1.2 or a page. Knows these three formats; no document and no model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape as escape_html
from pathlib import Path

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.file_translation import TranslatedFile
from dragoman.errors import OptionError
from dragoman.folder.files import check_place, output
from dragoman.tasks.translation import Translation

Write = Callable[[Sequence[TranslatedFile], DocumentSettings], Iterator[str]]
_UNKNOWN = "und"  # ISO 639 for a language that is not known
_RIGHT_TO_LEFT = ' dir="rtl"'
_STYLE = """
body { font: 16px/1.5 sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; }
td, th { border: 1px solid #999; padding: .4em .6em; text-align: start; vertical-align: top; }
tr.look td { background: #fff3c4; color: #000; }
"""


def check_bilingual(path: Path, overwrite: bool) -> None:
    """Raise an error where no side file can be written."""
    if path.suffix.lower() not in _WRITERS:
        raise OptionError(f"--bilingual is {path}; name a file that ends in {', '.join(_WRITERS)}")
    if path.exists() and not overwrite:
        raise OptionError(f"{path} exists already; add --overwrite to replace it")
    check_place(path)


def write_bilingual(
    path: Path, translated: Sequence[TranslatedFile], settings: DocumentSettings
) -> None:
    """Write the pairs of all files; the ending of `path` tells the format."""
    lines = _WRITERS[path.suffix.lower()](translated, settings)
    with output(path) as new, open(new, "w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(line + "\n")


def _tmx(translated: Sequence[TranslatedFile], settings: DocumentSettings) -> Iterator[str]:
    source_language, target_language = _languages(settings)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<tmx version="1.4">'
    yield (
        '<header creationtool="dragoman" creationtoolversion="1" segtype="paragraph" '
        f'o-tmf="dragoman" adminlang="en" srclang={_quoted(source_language)} datatype="plaintext"/>'
    )
    yield "<body>"
    for one in translated:
        for text, translation in one.pairs:
            yield "<tu>"
            yield f'<prop type="x-file">{_escaped(one.source.name)}</prop>'
            for name, value in _remarks(translation):
                yield f'<prop type="x-{name}">{_escaped(value)}</prop>'
            yield f"<tuv xml:lang={_quoted(source_language)}><seg>{_escaped(text)}</seg></tuv>"
            target = _escaped(translation.text)
            yield f"<tuv xml:lang={_quoted(target_language)}><seg>{target}</seg></tuv>"
            yield "</tu>"
    yield "</body>"
    yield "</tmx>"


def _xliff(translated: Sequence[TranslatedFile], settings: DocumentSettings) -> Iterator[str]:
    source_language, target_language = _languages(settings)
    languages = (
        f"source-language={_quoted(source_language)} target-language={_quoted(target_language)}"
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    for one in translated:
        yield f'<file original={_quoted(one.source.name)} {languages} datatype="plaintext">'
        yield "<body>"
        for number, (text, translation) in enumerate(one.pairs, 1):
            state = "needs-review-translation" if translation.flags else "translated"
            yield f'<trans-unit id="{number}" xml:space="preserve">'
            yield f"<source>{_escaped(text)}</source>"
            yield f'<target state="{state}">{_escaped(translation.text)}</target>'
            for name, value in _remarks(translation):
                yield f'<note from="dragoman">{name}: {_escaped(value)}</note>'
            yield "</trans-unit>"
        yield "</body>"
        yield "</file>"
    yield "</xliff>"


def _page(translated: Sequence[TranslatedFile], settings: DocumentSettings) -> Iterator[str]:
    source_language, target_language = _languages(settings)
    target = f"lang={_quoted(target_language)}"
    if settings.is_right_to_left:
        target += _RIGHT_TO_LEFT
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8"><title>Translations to review</title>'
    yield f"<style>{_STYLE}</style></head><body>"
    for one in translated:
        yield f"<h1>{_escaped(one.source.name)}</h1>"
        yield "<table><tr><th>Source<th>Translation<th>Confidence<th>Look at</tr>"
        for text, translation in one.pairs:
            remarks = dict(_remarks(translation))
            row = '<tr class="look">' if translation.flags else "<tr>"
            yield f"{row}<td lang={_quoted(source_language)}>{_escaped(text)}"
            yield f"<td {target}>{_escaped(translation.text)}"
            confidence = remarks.get("confidence", "")
            yield f"<td>{confidence}<td>{_escaped(remarks.get('flags', ''))}</tr>"
        yield "</table>"
    yield "</body></html>"


_WRITERS: dict[str, Write] = {
    ".tmx": _tmx,
    ".xliff": _xliff,
    ".xlf": _xliff,
    ".html": _page,
}


def _languages(settings: DocumentSettings) -> tuple[str, str]:
    return settings.source_language or _UNKNOWN, settings.target_language or _UNKNOWN


def _remarks(translation: Translation) -> Iterator[tuple[str, str]]:
    if translation.confidence is not None:
        yield "confidence", f"{translation.confidence:.2f}"
    if translation.flags:
        yield "flags", ", ".join(translation.flags)


def _escaped(text: str) -> str:
    return escape_html(_clean(text), quote=False)


def _quoted(text: str) -> str:
    return f'"{escape_html(_clean(text))}"'


def _clean(text: str) -> str:
    """Return a text without the characters that XML has no way to write."""
    return "".join(character for character in text if _is_allowed(character))


def _is_allowed(character: str) -> bool:
    code = ord(character)
    is_control = code < 0x20 and character not in "\t\n\r"
    is_surrogate = 0xD800 <= code <= 0xDFFF
    return not is_control and not is_surrogate and code not in (0xFFFE, 0xFFFF)
