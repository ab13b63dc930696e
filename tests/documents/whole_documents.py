"""Documents that are whole, as the programs that judge them want them: office files of varied
content, a valid book, a catalogue and subtitles."""

from __future__ import annotations

import random
from typing import Any

from office_files import packed, saved

LANGUAGES = ("de", "ru", "ar", "ja")
_SYLLABLES = ("ka", "lo", "mi", "ne", "ru", "sa", "ti", "vo")


class OfficeText:
    """Words that a document holds, each once, and documents of several kinds made of them."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.words: list[str] = []

    def document(self, kind: str) -> bytes:
        makers = {".docx": self._word, ".pptx": self._slides, ".xlsx": self._workbook}
        return makers[kind]()

    def _text(self, count: int) -> str:
        """New words, of which none is part of another."""
        made: list[str] = []
        while len(made) < count:
            word = "".join(self.draw.choice(_SYLLABLES) for _ in range(4)) + "x"
            if word not in self.words:
                self.words.append(word)
                made.append(word)
        return " ".join(made)

    def _word(self) -> bytes:
        import docx

        self.words = []
        document = docx.Document()
        document.add_heading(self._text(2))
        for _ in range(self.draw.randint(1, 4)):
            self._runs(document.add_paragraph())
        document.add_paragraph(self._text(1) + " & <b> “" + self._text(1) + "” € 漢 🙂")
        document.add_paragraph(self._text(2), style="List Bullet")
        rows = self.draw.randint(1, 3)
        table = document.add_table(rows, 2)
        for row in table.rows:
            for cell in row.cells:
                cell.text = self._text(1)
        document.sections[0].header.paragraphs[0].text = self._text(1)
        document.sections[0].footer.paragraphs[0].text = self._text(1)
        return saved(document)

    def _runs(self, paragraph: Any) -> None:
        """Runs of several looks, with tabs and breaks between them."""
        for _ in range(self.draw.randint(1, 5)):
            run = paragraph.add_run(self._text(self.draw.randint(1, 3)) + " ")
            run.bold = self.draw.random() < 0.4
            run.italic = self.draw.random() < 0.3
            if self.draw.random() < 0.2:
                run.add_tab()
            if self.draw.random() < 0.2:
                run.add_break()

    def _slides(self) -> bytes:
        import pptx

        self.words = []
        document = pptx.Presentation()
        for _ in range(self.draw.randint(1, 3)):
            slide = document.slides.add_slide(document.slide_layouts[5])
            slide.shapes.title.text = self._text(1)
            frame = slide.shapes.add_textbox(10**6, 2 * 10**6, 6 * 10**6, 10**6).text_frame
            for _ in range(self.draw.randint(1, 3)):
                run = frame.paragraphs[0].add_run()
                run.text = self._text(1) + " "
                run.font.bold = self.draw.random() < 0.5
            table = slide.shapes.add_table(1, 2, 10**6, 4 * 10**6, 6 * 10**6, 10**6).table
            table.cell(0, 0).text = self._text(1)
            table.cell(0, 1).text = f"{self._text(1)} & <"
        return saved(document)

    def _workbook(self) -> bytes:
        import openpyxl

        self.words = []
        document = openpyxl.Workbook()
        sheet = document.active
        sheet.column_dimensions["A"].width = 40
        for row in range(1, self.draw.randint(3, 8)):
            sheet.cell(row, 1, self._text(2))
            sheet.cell(row, 2, self.draw.choice([42, "=1+1", 2.5, True]))
        return saved(document)


_CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>
"""
_PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">urn:uuid:4b3b2d8e-2f4f-4d39-8f0a-0d5f6f0f3c11</dc:identifier>
<dc:title>A short walk</dc:title><dc:language>en</dc:language><dc:creator>Nobody</dc:creator>
<dc:description>Two people go for a walk.</dc:description>
<meta property="dcterms:modified">2024-01-01T00:00:00Z</meta></metadata>
<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<item id="one" href="one.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine toc="ncx"><itemref idref="one"/></spine></package>
"""
_NCX = """<?xml version="1.0" encoding="utf-8"?>
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1">
<head><meta name="dtb:uid" content="urn:uuid:4b3b2d8e-2f4f-4d39-8f0a-0d5f6f0f3c11"/></head>
<docTitle><text>A short walk</text></docTitle><navMap><navPoint id="p1"><navLabel>
<text>The first mile</text></navLabel><content src="one.xhtml"/></navPoint></navMap></ncx>
"""
_PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en"
 xml:lang="en"><head><title>{title}</title></head><body>{body}</body></html>
"""
_NAVIGATION = """<nav epub:type="toc"><h1>Contents</h1>
<ol><li><a href="one.xhtml">The first mile</a></li></ol></nav>"""
_CHAPTER = """<section><h1>The first mile</h1><p>They went <em>down the <b>long</b></em> road,
past the &lt;old&gt; mill &amp; on.<br/>It rained.</p><ul><li>one thing</li><li>another</li></ul>
<table><tr><th>day</th><td>first</td></tr></table><p>See <a href="#note">the note</a>.</p>
<aside id="note" epub:type="footnote"><p>A note.</p></aside></section>"""


def epub() -> bytes:
    """A book of version 3 in which epubcheck finds nothing wrong."""
    files: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": _CONTAINER,
        "book.opf": _PACKAGE,
        "toc.ncx": _NCX,
        "nav.xhtml": _PAGE.format(title="Contents", body=_NAVIGATION),
        "one.xhtml": _PAGE.format(title="The first mile", body=_CHAPTER),
    }
    return packed(files, stored="mimetype")


MARKED_CATALOGUE = r"""msgid ""
msgstr ""
"Project-Id-Version: demo 1.0\n"
"PO-Revision-Date: 2024-01-01 10:00+0000\n"
"Last-Translator: Nobody <nobody@example.org>\n"
"Language-Team: none\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=CHARSET\n"
"Content-Transfer-Encoding: 8bit\n"

#: a.c:1
#, c-format
msgid "Copied %s to %s\n"
msgstr ""

#, c-format
msgid "%d file in %s"
msgid_plural "%d files in %s"
msgstr[0] ""
msgstr[1] ""

msgctxt "menu"
msgid "Open “it” \"now\""
msgstr ""

#, python-format
msgid "Hello %(name)s, you have %(count)d messages"
msgstr ""

msgid ""
"A long text that was broken "
"for its length."
msgstr ""
"""
SUBTITLES = {
    ".srt": """1
00:00:01,000 --> 00:00:02,500
Good morning to you.

2
00:00:03,500 --> 00:00:05,000
<i>Where have you
been so long?</i>

3
00:00:06,000 --> 00:00:07,000
Nowhere at all.
""",
    ".vtt": """WEBVTT

NOTE kept

00:00:01.000 --> 00:00:02.500 align:start
Good morning to you.

one
00:00:03.500 --> 00:00:05.000
<i>Where have you
been so long?</i>

00:00:06.000 --> 00:00:07.000
Nowhere at all.
""",
    ".ass": """[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, Bold, Italic, Alignment
Style: Default,Arial,20,&H00FFFFFF,0,0,2

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,Good morning to you.
Dialogue: 0,0:00:03.50,0:00:05.00,Default,,0,0,0,,{\\i1}Where have you\\Nbeen so long?{\\i0}
Dialogue: 0,0:00:06.00,0:00:07.00,Default,,0,0,0,,Nowhere at all.
""",
}
