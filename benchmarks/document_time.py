"""How the time to read and rebuild a document grows with its size: CPU seconds for sizes that
double, for every format, of plain text and of what is made to be slow.

    python benchmarks/document_time.py              sizes up to 10 MB of ordinary documents
    python benchmarks/document_time.py --hostile    and of hostile ones, up to --largest
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import time
import zipfile
from collections.abc import Iterator
from pathlib import PurePath

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import MAX_BYTES, translate_document
from dragoman.errors import InputError
from dragoman.tasks.translation import Translation

CUE = "1\n00:00:00,000 --> 00:00:01,000\n"
VTT = "WEBVTT\n\n00:00.000 --> 00:01.000\n"
ASS = "[Events]\nFormat: Start, Text\nDialogue: 0:00:01.00,"
XLIFF = "<xliff version='1.2'><file><trans-unit><source>"
UNIT = "<trans-unit><source>a b</source></trans-unit>"
TUV = '<tuv xml:lang="en"><seg>a b</seg></tuv>'
ITEM = '<item quantity="other">a b</item>'
SETTINGS = DocumentSettings("en", "de")
SENTENCE = "The quick brown fox jumps over the lazy dog, and then it sleeps. "
XLIFF_2 = "<xliff version='2.0' srcLang='en'><file id='f'>"
SEGMENT = f"<segment><source>{SENTENCE}</source></segment>"
FORMAT = "<key>NSStringLocalizedFormatKey</key>"
ENTRY = f"<key>a</key><dict>{FORMAT}<string>{SENTENCE}</string></dict>\n"
PARAGRAPH = f"<text:p>{SENTENCE * 4}</text:p>"
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
DRAWING = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
)
OPEN_DOCUMENT = {"content.xml": f"<office:document-content {OFFICE}>|</office:document-content>"}
# The files in a zip; the text stands for the bar.
ARCHIVES = {
    ".docx": {"word/document.xml": f"<w:document {WORD}><w:body>|</w:body></w:document>"},
    ".pptx": {
        "ppt/presentation.xml": "<p:presentation xmlns:p='urn:p'/>",
        "ppt/slides/slide1.xml": f"<p:sld xmlns:p='urn:p' {DRAWING}>|</p:sld>",
    },
    ".xlsx": {
        "xl/workbook.xml": f"<workbook {SHEET}/>",
        "xl/sharedStrings.xml": f"<sst {SHEET}>|</sst>",
    },
    ".odt": OPEN_DOCUMENT,
    ".odp": OPEN_DOCUMENT,
    ".ods": OPEN_DOCUMENT,
    ".epub": {
        "META-INF/container.xml": "<container/>",
        "a.xhtml": "<html xmlns='http://www.w3.org/1999/xhtml'><body>|</body></html>",
    },
}
# Name of a file, what stands before and behind, and what is repeated between.
ORDINARY = {
    "plain text": ("a.txt", "", SENTENCE + "\n", ""),
    "paragraphs": ("a.md", "# Title\n\n", SENTENCE * 4 + "*really*.\n\n", ""),
    "page": ("a.html", "<html><body>", f"<p>{SENTENCE * 4}<b>really</b></p>\n", "</body></html>"),
    "subtitles": ("a.srt", "", f"{CUE}{SENTENCE}\n\n", ""),
    "WebVTT": ("a.vtt", "WEBVTT\n\n", f"00:00.000 --> 00:01.000\n{SENTENCE}\n\n", ""),
    "SubStation": (
        "a.ass",
        "[Events]\nFormat: Start, Text\n",
        f"Dialogue: 0:00:01.00,{SENTENCE}\n",
        "",
    ),
    "gettext": ("a.po", "", f'#: a.c:1\nmsgid "{SENTENCE}"\nmsgstr ""\n\n', ""),
    "XLIFF": ("a.xlf", "<xliff version='1.2'><file>", f"{UNIT}\n", "</file></xliff>"),
    "TMX": ("a.tmx", "<tmx><body>", f"<tu>{TUV}</tu>\n", "</body></tmx>"),
    "JSON": ("a.json", '{"a": [', f'"{SENTENCE}",\n', '""]}'),
    "YAML": ("a.yaml", "", f"- {SENTENCE}\n", ""),
    "properties": ("a.properties", "", f"key={SENTENCE}\n", ""),
    "Apple": ("a.strings", "", f'"key" = "{SENTENCE}";\n', ""),
    "Android": ("a.xml", "<resources>", f'<string name="a">{SENTENCE}</string>\n', "</resources>"),
    "table": ("a.csv", "id,text\n", f'1,"{SENTENCE}"\n', ""),
    "LaTeX": ("a.tex", "", f"\\section{{One}}\n{SENTENCE}\\emph{{really}} $x$.\n\n", ""),
    "XLIFF 2": ("a.xliff", XLIFF_2, f"<unit id='u'>{SEGMENT}</unit>\n", "</file></xliff>"),
    "Flutter": ("a.arb", "{", f'"key": "{SENTENCE}",\n', '"a": ""}'),
    "plurals of Apple": ("a.stringsdict", "<plist><dict>", ENTRY, "</dict></plist>"),
    "table with tabs": ("a.tsv", "id\ttext\n", f"1\t{SENTENCE}\n", ""),
    "Word": ("a.docx", "", f"<w:p><w:r><w:t>{SENTENCE * 4}</w:t></w:r></w:p>", ""),
    "PowerPoint": ("a.pptx", "", f"<a:p><a:r><a:t>{SENTENCE * 4}</a:t></a:r></a:p>", ""),
    "Excel": ("a.xlsx", "", f"<si><t>{SENTENCE * 4}</t></si>", ""),
    "OpenDocument text": ("a.odt", "", PARAGRAPH, ""),
    "OpenDocument slides": ("a.odp", "", PARAGRAPH, ""),
    "OpenDocument table": ("a.ods", "", PARAGRAPH, ""),
    "book": ("a.epub", "", f"<p>{SENTENCE * 4}<b>really</b></p>\n", ""),
    "PDF": ("a.pdf", "", f"({SENTENCE}) Tj T*\n", ""),
}
HOSTILE = {
    "cues of one sentence": ("a.srt", "", f"{CUE}one two\n\n", ""),
    "one cue of WebVTT": ("a.vtt", VTT, "a b ", ""),
    "tags of WebVTT": ("a.vtt", VTT, "<c>a", ""),
    "sounds": ("a.vtt", VTT, "[a] ", ""),
    "brackets of a sound": ("a.vtt", VTT, "[", ""),
    "dashes": ("a.vtt", VTT, "- a\n", ""),
    "overrides": ("a.ass", ASS, "{\\i1}a", ""),
    "braces of an override": ("a.ass", ASS, "{", ""),
    "breaks of a script": ("a.ass", ASS, "a\\N", ""),
    "one message": ("a.po", 'msgid ""\n', '"a b"\n', 'msgstr ""\n'),
    "a message of one line": ("a.po", 'msgid "', "a b ", '"\nmsgstr ""\n'),
    "backslashes": ("a.po", 'msgid "a', "\\\\", '"\nmsgstr ""\n'),
    "placeholders": ("a.po", 'msgid "a', "%s ", '"\nmsgstr ""\n'),
    "percent signs": ("a.po", 'msgid "a', "%", '"\nmsgstr ""\n'),
    "braces": ("a.json", '["a ', "{", '"]'),
    "choices": ("a.json", '["a ', "{n, plural, ", '"]'),
    "choices with branches": ("a.json", '["', "{n, plural, other {a}} b ", '"]'),
    "brackets of JSON": ("a.json", "", "[", ""),
    "strings": ("a.json", "[", '"a b",', '"c"]'),
    "a string that does not end": ("a.json", '["', "\\n", ""),
    "elements in elements": ("a.xlf", XLIFF, "<g>", ""),
    "codes": ("a.xlf", XLIFF, '<x id="1"/>a ', "</source></trans-unit></file></xliff>"),
    "units": ("a.xlf", "<xliff version='1.2'><file>", UNIT, "</file></xliff>"),
    "a tag of XML that does not end": ("a.xlf", "<xliff ", "a", ""),
    "variants": ("a.tmx", "<tmx><body><tu>", TUV, "</tu></body></tmx>"),
    "items": ("a.xml", "<resources><plurals>", ITEM, "</plurals></resources>"),
    "flow of YAML": ("a.yaml", "", "[", ""),
    "keys of YAML": ("a.yaml", "", "a: b c\n", ""),
    "a scalar of many lines": ("a.yaml", "a: b\n", "  c d\n", ""),
    "a block": ("a.yaml", "a: >\n", "  c d\n", ""),
    "anchors": ("a.yaml", "a: ", "&a ", "b"),
    "a key without an end": ("a.properties", "", "a", ""),
    "continued lines": ("a.properties", "a=", "b \\\n", "c"),
    "escapes": ("a.properties", "a=", "\\u0041", "c"),
    "pairs": ("a.strings", "", '"a"="b c";', ""),
    "comments of Apple": ("a.strings", '"a"="b";', "/*", ""),
    "quotes": ("a.csv", "a,b\n", '"', ""),
    "separators": ("a.csv", "a b", ",", ""),
    "rows": ("a.csv", "", "a b,c d\n", ""),
    "backslashes of LaTeX": ("a.tex", "", "\\a", ""),
    "braces of LaTeX": ("a.tex", "", "{a", ""),
    "footnotes": ("a.tex", "", "\\footnote{a", ""),
    "formulas": ("a.tex", "", "$a", ""),
    "formulas that do not end": ("a.tex", "", "\\(a", ""),
    "environments": ("a.tex", "", "\\begin{verbatim}a", ""),
    "options": ("a.tex", "", "\\a[", ""),
    "comments of LaTeX": ("a.tex", "a", "%\n", ""),
    "no PDF": ("a.pdf", "%PDF-1.7\n", "a", ""),
    "objects": ("a.pdf", "%PDF-1.7\n", "1 0 obj\n<< >>\nendobj\n", ""),
    "one line": ("a.txt", "", "a b ", ""),
    "lines of a letter": ("a.txt", "", "a\n", ""),
    "a tag that does not end": ("a.html", "x <", "a", ""),
    "an attribute without a value": ("a.html", "<p ", "a", ">x</p>"),
    "tags that never close": ("a.html", "", "<b>x", ""),
    "breaks": ("a.html", "", "x <br> ", ""),
    "code that does not end": ("a.html", "", "<code>", ""),
    "quotations": ("a.html", "x ", '<a "', ""),
    "entities": ("a.html", "", "&amp; x", ""),
    "underscores in a word": ("a.md", "x", "_", "y"),
    "emphasis": ("a.md", "x ", "**a* ", ""),
    "brackets": ("a.md", "x ", "[", ""),
    "links": ("a.md", "x ", "[a](", ""),
    "images": ("a.md", "x ", "![", ""),
    "comments": ("a.md", "x ", "<!-- ", ""),
    "backticks": ("a.md", "", "`a ``b ", ""),
    "references": ("a.md", "x\n\n", "[a]: b\n", ""),
    "quoted lines": ("a.md", "", "> x\n", ""),
    "list": ("a.md", "", "- x\n", ""),
    "table of many columns": ("a.md", "|a|\n|-|\n", "|a", ""),
    "table of many rows": ("a.md", "|a|b|\n|-|-|\n", "|x|\n", ""),
    "one cue": ("a.srt", CUE, "a b ", ""),
    "nested tags": ("a.srt", CUE, "<i>a", ""),
    "numbers": ("a.srt", f"{CUE}x\n", "1\n", ""),
    "runs": ("a.docx", "<w:p>", "<w:r><w:t>a</w:t></w:r>", "</w:p>"),
    "fields": ("a.docx", "<w:p>", '<w:r><w:fldChar w:fldCharType="begin"/></w:r>', "</w:p>"),
    "paragraphs of Word": ("a.docx", "", "<w:p><w:r><w:t>a b</w:t></w:r></w:p>", ""),
}
Form = tuple[str, str, str, str]


def document(form: Form, size: int) -> bytes:
    """Return a document whose text, or the XML that holds it, has about so many bytes."""
    name, before, unit, after = form
    count = (size - len(before.encode()) - len(after.encode())) // len(unit.encode())
    if SENTENCE in unit:  # no two are the same, or one translation would do for all
        units = [unit.replace("quick", letters(number)) for number in range(count)]
    else:
        units = [unit] * count
    text = before + "".join(units) + after
    ending = PurePath(name).suffix
    if ending == ".pdf" and not before:
        return pages(text)
    if ending not in ARCHIVES:
        return text.encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in ARCHIVES[ending].items():
            archive.writestr(member, content.replace("|", text))
    return out.getvalue()


def letters(number: int) -> str:
    """Return a number as a word of five letters."""
    word = ""
    for _ in range(5):
        number, digit = divmod(number, 26)
        word += chr(ord("a") + digit)
    return word


def pages(text: str) -> bytes:
    """Return a PDF of pages with 50 of these lines each."""
    import pypdf
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = pypdf.PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    fonts = DictionaryObject({NameObject("/F1"): font})
    lines = text.splitlines(keepends=True)
    for start in range(0, len(lines), 50):
        page = writer.add_blank_page(612, 792)
        content = DecodedStreamObject()
        body = "".join(lines[start : start + 50])
        content.set_data(f"BT /F1 10 Tf 12 TL 40 750 Td\n{body}ET".encode())
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        page[NameObject("/Contents")] = writer._add_object(content)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def shout(texts: list[str]) -> list[Translation]:
    """Every word in capitals, aligned with itself."""
    translations = []
    for text in texts:
        words = text.upper().split()
        alignment = tuple((place, place) for place in range(len(words)))
        translations.append(Translation(" ".join(words), alignment=alignment))
    return translations


def seconds(form: Form, size: int) -> float:
    """Return the CPU time for a document of this size; only a hostile one may be refused, which
    takes time too."""
    data = document(form, size)
    may_be_refused = form not in ORDINARY.values()
    start = time.process_time()
    with contextlib.suppress(*[InputError] * may_be_refused):
        translate_document(form[0], data, shout, SETTINGS)
    return time.process_time() - start


def growth(form: Form, given: argparse.Namespace) -> Iterator[tuple[int, float]]:
    """Yield sizes that grow and their times, until one takes longer than there is patience."""
    size = given.smallest
    while size <= given.largest:
        taken = seconds(form, size)
        yield size, taken
        if taken > given.patience:
            return
        size *= given.factor


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="the name of one kind, such as Word")
    parser.add_argument("--hostile", action="store_true", help="hostile documents too")
    parser.add_argument("--smallest", type=int, default=MAX_BYTES // 64, help="bytes")
    parser.add_argument("--largest", type=int, default=MAX_BYTES, help="bytes")
    parser.add_argument("--factor", type=int, default=2, help="by which a size follows another")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds for one document")
    given = parser.parse_args()
    forms = ORDINARY | (HOSTILE if given.hostile else {})
    for name, form in forms.items():
        if given.only not in (None, name):
            continue
        times = list(growth(form, given))
        row = "  ".join(f"{size / 2**20:.2f} MB {taken:.2f} s" for size, taken in times)
        doublings = max(1.0, math.log2(times[-1][0] / times[0][0]))
        rate = (times[-1][1] / max(times[0][1], 0.001)) ** (1 / doublings)
        print(f"{form[0][1:]:6} {name:30} {row}  (x{rate:.2f} for each doubling)", flush=True)


if __name__ == "__main__":
    main()
