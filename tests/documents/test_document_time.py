"""Documents made to be slow: the time grows with the size and not with its square, for every
format; benchmarks/document_time.py measures larger ones."""

from __future__ import annotations

import contextlib
import io
import zipfile

import pytest
from processor_time import processor_seconds

from dragoman.documents.documents import translate_document
from dragoman.errors import InputError
from dragoman.tasks.translation import Translation

pytest.importorskip("markdown_it")
CUE = "1\n00:00:00,000 --> 00:00:01,000\n"
VTT = "WEBVTT\n\n00:00.000 --> 00:01.000\n"
UNIT = "<trans-unit><source>a b</source></trans-unit>"
SCHEMA = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
FIELD = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'


def shout(texts: list[str]) -> list[Translation]:
    """Every word in capitals, aligned with itself."""
    translations = []
    for text in texts:
        words = text.upper().split()
        pairs = tuple((place, place) for place in range(len(words)))
        translations.append(Translation(" ".join(words), alignment=pairs))
    return translations


def packed(text: str) -> bytes:
    """A Word file whose body is this text."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        body = f"<w:document {SCHEMA}><w:body>{text}</w:body></w:document>"
        archive.writestr("word/document.xml", body)
    return out.getvalue()


LONG = {
    "an attribute without a value": ("a.html", "<p {}>x</p>", "a"),
    "an attribute before much space": ("a.html", "<p a{}>x</p>", " "),
    "a name that does not end": ("a.html", "x {}", "<a"),
    "a tag that does not end": ("a.html", "x <{}", "a"),
    "a quotation that does not end": ("a.html", 'x <a "{}', "<a"),
    "comments that do not end": ("a.md", "x {}", "<!-- "),
    "comments that do not end, after one": ("a.md", "x --> {}", "<!-- "),
    "a run of backticks": ("a.md", "x {} y", "`"),
    "spaces before no line end": ("a.md", "x{}y", " "),
    "underscores in a word": ("a.md", "x{}y", "_"),
    "escaped underscores": ("a.md", "x{}y", "\\_"),
    "links in links": ("a.md", "x{}y", "]("),
    "a number before empty lines": ("a.srt", CUE + "x\n1{}y", "\n"),
    "a tag of a subtitle": ("a.srt", CUE + "x<{}", "a"),
    "a cue of many lines": ("a.srt", CUE + "{}", "a b\n"),
    "marks in marks": ("a.srt", CUE + "{}", "<i>a|</i>"),
    "marks in marks of Markdown": ("a.md", "{}", "<i>a|</i>"),
    "marks that others close": ("a.md", "{}", "[x |</b> "),
    "tags in tags": ("a.html", "{}", "<b>x|</b>"),
    "tags that others close": ("a.html", "{}", "<b>x|</i>"),
    "comments of a page": ("a.html", "x {}", "<!-- "),
    "entities without an end": ("a.html", "x {}", "&amp"),
    "a list": ("a.md", "{}", "- x\n"),
    "references": ("a.md", "x\n\n{}", "[a]: b\n"),
    "columns of a table": ("a.md", "{}", "|a|\n|-"),
    "angle brackets": ("a.md", "x {}", "<"),
    "spaces in a title": ("a.md", "---\ntitle: a{}#x:\n---\n", " "),
    "lines": ("a.txt", "{}", "a b\n"),
    "one line": ("a.txt", "{}", "a b "),
    "cues": ("a.srt", "{}", CUE + "x\n\n"),
    "cues of one sentence": ("a.srt", "{}", CUE + "a b\n\n"),
    "sounds": ("a.vtt", VTT + "{}", "[a] "),
    "overrides": ("a.ass", "[Events]\nFormat: Text\nDialogue: {}", "\\i1a"),
    "lines of a message": ("a.po", 'msgid ""\n{}msgstr ""\n', '"a b"\n'),
    "placeholders": ("a.po", 'msgid "a {}"\nmsgstr ""\n', "%s "),
    "choices that do not end": ("a.json", '["a {}"]', "{n, plural, "),
    "continued lines": ("a.properties", "a={}c", "b \\\n"),
    "anchors": ("a.yaml", "{}", "- &a b c\n"),
    "anchors without a name": ("a.yaml", "a: {}b", "&"),
    "quotes": ("a.csv", "a,b\n{}", '"'),
    "footnotes": ("a.tex", "{}", "\\footnote{a"),
    "formulas that do not end": ("a.tex", "{}", "\\(a"),
    "units": ("a.xlf", "<xliff version='1.2'><file>{}</file></xliff>", UNIT),
    "runs": ("a.docx", "<w:p>{}</w:p>", "<w:r><w:t>a</w:t></w:r>"),
    "fields that do not end": ("a.docx", "<w:p>{}</w:p>", FIELD),
    "paragraphs": ("a.docx", "{}", "<w:p><w:r><w:t>a b</w:t></w:r></w:p>"),
    "elements in elements": ("a.docx", "{}", "<w:r>|</w:r>"),
}

REFUSED = {"anchors without a name"}  # to refuse one takes time too


def document(name: str, form: str, unit: str, size: int) -> bytes:
    """A document in which a unit is repeated; of a unit in two halves, first the one, then the
    other."""
    count = size // len(unit)
    text = form.replace("{}", "".join(half * count for half in unit.split("|")))
    if unit.count("|") > 1:  # a table's own bars
        text = form.replace("{}", "|a" * count + "\n" + "|-" * count)
    return packed(text) if name.endswith(".docx") else text.encode()


@pytest.mark.parametrize("case", LONG)
def test_time_grows_with_the_size_and_not_with_its_square(case: str) -> None:
    name, form, unit = LONG[case]

    def seconds(size: int) -> float:
        data = document(name, form, unit, size)

        def work() -> None:
            ending = pytest.raises(InputError) if case in REFUSED else contextlib.nullcontext()
            with ending:
                translate_document(name, data, shout)

        return processor_seconds(work)

    small = max(seconds(3_000), 0.02)
    large = seconds(24_000)
    if large > 24 * small:  # a busy machine slows one down now and then
        small = max(seconds(3_000), small)
        large = min(seconds(24_000), large)
    assert large < 24 * small  # 8 times as large; a square would be 64 times


def test_time_grows_with_the_number_of_files_in_a_document() -> None:
    part = f"<w:hdr {SCHEMA}><w:p><w:r><w:t>a b</w:t></w:r></w:p></w:hdr>"

    def seconds(count: int) -> float:
        out = io.BytesIO(packed(""))
        with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
            for number in range(count):
                archive.writestr(f"word/header{number}.xml", part)
        data = out.getvalue()
        return processor_seconds(lambda: translate_document("a.docx", data, shout))

    small = min(seconds(250), seconds(250))
    large = seconds(2_000)
    if large >= 24 * small:  # a busy machine slows one down now and then
        large = min(seconds(2_000), large)
    assert large < 24 * small  # 8 times as many; a square would be 64 times
