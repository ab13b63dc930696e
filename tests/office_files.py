"""Small documents of the office formats, made by the libraries that read them or by hand."""

from __future__ import annotations

import io
import zipfile
from typing import Any

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
WORDS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
OFFICE = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" '
    'xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" '
    'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" '
    'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.3"'
)
ODT_BODY = """<text:h>one title</text:h>
<text:p>two <text:span text:style-name="B">three</text:span><text:s text:c="2"/>four<text:note>
<text:note-citation>1</text:note-citation>
<text:note-body><text:p>five note</text:p></text:note-body>
</text:note> page <text:page-number>7 keep</text:page-number></text:p>
<text:p><draw:frame><draw:text-box><text:p>six box</text:p></draw:text-box>
<svg:desc>seven picture</svg:desc></draw:frame></text:p>
<text:tracked-changes><text:p>deleted keep</text:p></text:tracked-changes>
<table:table><table:table-row><table:table-cell office:value-type="string">
<text:p>eight cell</text:p></table:table-cell>
<table:table-cell office:value-type="date"><text:p>May keep</text:p>
</table:table-cell></table:table-row></table:table>"""
STYLES = (
    '<style:default-style style:family="paragraph"><style:paragraph-properties fo:margin="0"/>'
    '<style:text-properties fo:language="en" fo:country="US" fo:font-size="12pt"/>'
    "</style:default-style>"
)
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en" xml:lang="en"><head><title>one</title></head>
<body><p>two <em>three</em><br/>four &amp; five</p><pre>keep</pre>
<img src="a.png" alt="six"/></body>
</html>
"""
OPF = """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>seven</dc:title>
<dc:language>en-GB</dc:language><dc:creator>Keep Name</dc:creator></metadata></package>"""
NCX = """<ncx><docTitle><text>seven</text></docTitle><navMap><navPoint id="keep">
<navLabel><text>eight</text></navLabel><content src="a.xhtml"/></navPoint></navMap></ncx>"""


def packed(files: dict[str, str | bytes], stored: str = "") -> bytes:
    """A zip of some files in their order; one of them may be stored."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name == stored else None)
    return out.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def changed(data: bytes, name: str, old: str, new: str) -> bytes:
    """A document with something in one of its files replaced."""
    files: dict[str, str | bytes] = dict(unpacked(data))
    text = unpacked(data)[name].decode()
    assert old in text
    files[name] = text.replace(old, new)
    return packed(files)


def saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def slides() -> bytes:
    import pptx

    document = pptx.Presentation()
    slide = document.slides.add_slide(document.slide_layouts[5])
    slide.shapes.title.text = "one title"
    box = slide.shapes.add_textbox(0, 0, 10**6, 10**6).text_frame
    run = box.paragraphs[0].add_run()
    run.text = "two "
    bold = box.paragraphs[0].add_run()
    bold.text = "three"
    bold.font.bold = True
    table = slide.shapes.add_table(1, 2, 0, 0, 10**6, 10**6).table
    table.cell(0, 0).text = "four cell"
    picture = slide.shapes.add_picture(io.BytesIO(PICTURE), 0, 0)
    picture._element.nvPicPr.cNvPr.set("descr", 'five "picture"')
    slide.notes_slide.notes_text_frame.text = "six note"
    document.core_properties.title = "seven title"
    return saved(document)


def workbook() -> bytes:
    import openpyxl
    from openpyxl.comments import Comment

    document = openpyxl.Workbook()
    sheet = document.active
    sheet.title = "one sheet"
    sheet["A1"] = "two words"
    sheet["A2"] = 42
    sheet["A3"] = '=IF(A2>1,"three yes","no")'
    sheet["A4"] = "two words"
    sheet["A1"].comment = Comment("four remark", "five author")
    document.properties.title = "six title"
    return saved(document)


def open_document(body: str = ODT_BODY, kind: str = "text") -> bytes:
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    content = f"<office:document-content {OFFICE}><office:body>{body}</office:body>"
    styles = f"<office:document-styles {OFFICE}><office:styles>{STYLES}</office:styles>"
    header = "<style:header><text:p>nine header</text:p></style:header>"
    meta = f"<office:document-meta {OFFICE}><office:meta><dc:title>ten title</dc:title>"
    files: dict[str, str | bytes] = {
        "mimetype": mimetype,
        "content.xml": f"{content}</office:document-content>",
        "styles.xml": f"{styles}{header}</office:document-styles>",
        "meta.xml": f"{meta}</office:meta></office:document-meta>",
        "Pictures/a.png": PICTURE,
        "META-INF/manifest.xml": "<manifest/>",
    }
    return packed(files, stored="mimetype")


def book() -> bytes:
    files: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": "<container><rootfiles/></container>",
        "book.opf": OPF,
        "toc.ncx": NCX,
        "a.xhtml": PAGE,
        "a.png": PICTURE,
    }
    return packed(files, stored="mimetype")
