"""Bad files, from the front door: each is refused in one sentence, nothing is written and nothing
is fetched. A document with a macro or a link to elsewhere is translated, and neither is touched."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from office_files import WORDS, book, open_document, packed, slides, unpacked, workbook
from whole_documents import epub

from dragoman import translate_file
from dragoman.cli.document_files import is_for_lines
from dragoman.documents.documents import FORMATS
from dragoman.errors import DragomanError
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation

OLE = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(
    2_000
)  # what Office makes of a file with a password
ENTITIES = '<?xml version="1.0"?><!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd" [{}]>{}'
LAUGHS = "".join(
    f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' if number else '<!ENTITY l0 "ha">'
    for number in range(10)
)
OUTSIDE = '<!ENTITY x SYSTEM "http://127.0.0.1:9/secret">'
ARCHIVES = (".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub")
XML_KINDS = {
    ".xlf": "<xliff version='1.2'><trans-unit><source>{}</source></trans-unit></xliff>",
    ".tmx": "<tmx><body><tu><tuv xml:lang='en'><seg>{}</seg></tuv></tu></body></tmx>",
    ".xml": "<resources><string name='a'>{}</string></resources>",
    ".stringsdict": "<plist><dict><key>a</key><string>{}</string></dict></plist>",
}
# Bytes that no reader of the kind can make sense of; kinds of free text accept what is UTF-8.
BROKEN = {
    **dict.fromkeys(ARCHIVES, b"PK\3\4 not a zip"),
    **dict.fromkeys(XML_KINDS, b"<a><b></a>"),
    ".json": b'{"a": ',
    ".arb": b'{"a": "b"',
    ".yaml": b"a: [1, 2\nb: }",
    ".pdf": b"%PDF-1.7\nnothing",
    ".po": b'msgid "a\nmsgstr',
    ".strings": b'"a" = "b',
}


class Shouting:
    def stream(self, lines: Iterable[str], request: TranslateRequest) -> Iterator[Translation]:
        for line in lines:
            pairs = tuple((place, place) for place in range(len(line.split())))
            yield Translation(line.upper(), alignment=pairs)


@pytest.fixture(autouse=True)
def _nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise AssertionError("something was to be fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(Translator, "load", lambda *_: Shouting())


def refused(folder: Path, name: str, data: bytes) -> str:
    """Return the sentence in which a file is refused; the folder is as it was."""
    (folder / name).write_bytes(data)
    with pytest.raises(DragomanError) as caught:
        translate_file(folder / name, to="de")
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_bytes() == data
    sentence = str(caught.value)
    assert name in sentence
    assert "\n" not in sentence
    assert len(sentence) < 400 + len(str(folder))
    return sentence


@pytest.mark.parametrize("kind", BROKEN)
def test_broken(tmp_path: Path, kind: str) -> None:
    assert "cannot be read as" in refused(tmp_path, f"a{kind}", BROKEN[kind])


@pytest.mark.parametrize("kind", FORMATS)
def test_empty_or_no_text_of_any_kind(tmp_path: Path, kind: str) -> None:
    assert "0 bytes" in refused(tmp_path, f"a{kind}", b" \n")
    (tmp_path / f"a{kind}").unlink()
    refused(tmp_path, f"b{kind}", bytes(range(256)) * 9)


@pytest.mark.parametrize("kind", ARCHIVES[:6])
def test_passwords_of_office(tmp_path: Path, kind: str) -> None:
    assert "password" in refused(tmp_path, f"a{kind}", OLE)


def test_passwords_of_pdf(tmp_path: Path) -> None:
    import pypdf

    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    assert "password" in refused(tmp_path, "a.pdf", out.getvalue())


@pytest.mark.parametrize("ending", ["docm", "xlsm", "pptm", "doc", "exe", ""])
def test_kinds_that_are_none(tmp_path: Path, ending: str) -> None:
    refused(tmp_path, f"a.{ending}" if ending else "a", b"x")


@pytest.mark.parametrize(("ending", "other"), [("docm", "docx"), ("xls", "xlsx"), ("rtf", "docx")])
def test_what_an_unknown_kind_can_be_saved_as(tmp_path: Path, ending: str, other: str) -> None:
    """The command took such a file for lines of text that are not UTF-8."""
    assert f"save it as .{other}" in refused(tmp_path, f"a.{ending}", b"\xff\xfe")
    assert not is_for_lines([tmp_path / f"a.{ending}"], None)
    assert is_for_lines([tmp_path / "a.en"], None)


@pytest.mark.parametrize("entity", [LAUGHS, OUTSIDE])
@pytest.mark.parametrize("kind", XML_KINDS)
def test_entities(tmp_path: Path, kind: str, entity: str) -> None:
    name = "&x;" if entity is OUTSIDE else "&l9;"
    text = ENTITIES.format(entity, XML_KINDS[kind].format(name))
    refused(tmp_path, f"a{kind}", text.encode())


@pytest.mark.parametrize("kind", FORMATS)
def test_200_megabytes_are_not_even_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a{kind}"
    with path.open("wb") as file:
        file.truncate(200 * 2**20)
    with pytest.raises(DragomanError, match="209,715,200 bytes; give a document"):
        translate_file(path, to="de")
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_bomb_in_a_zip(tmp_path: Path) -> None:
    for kind, made in ((".odt", open_document()), (".epub", book())):
        files: dict[str, str | bytes] = {**unpacked(made)}
        name = "content.xml" if kind == ".odt" else "a.xhtml"
        files[name] = b" " * (50 * 2**20 + 1)
        assert "unpacks to more than" in refused(tmp_path, f"a{kind}", packed(files))
        (tmp_path / f"a{kind}").unlink()


LINKED = f"""<w:document {WORDS} xmlns:r="urn:r"><w:body><w:p><w:hyperlink r:id="rId1"><w:r>
<w:t>one</w:t></w:r></w:hyperlink></w:p></w:body></w:document>"""
RELATIONS = """<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="rId1" Type="urn:hyperlink" Target="http://127.0.0.1:9/x" TargetMode="External"/>
<Relationship Id="rId2" Type="urn:template" Target="http://127.0.0.1:9/t" TargetMode="External"/>
</Relationships>"""


def test_links_to_elsewhere_stay_and_are_not_followed(tmp_path: Path) -> None:
    data = packed(
        {
            "word/document.xml": LINKED,
            "word/_rels/document.xml.rels": RELATIONS,
            "word/vbaProject.bin": b"a macro",
        }
    )
    (tmp_path / "a.docx").write_bytes(data)
    made = unpacked(translate_file(tmp_path / "a.docx", to="de").out.read_bytes())
    assert b">ONE</w:t>" in made["word/document.xml"]
    assert made["word/_rels/document.xml.rels"].decode() == RELATIONS
    assert made["word/vbaProject.bin"] == b"a macro"
    page = '<img src="http://127.0.0.1:9/a.png"><iframe src="http://127.0.0.1:9/"></iframe>one'
    (tmp_path / "a.html").write_text(page)
    assert translate_file(tmp_path / "a.html", to="de").out.read_text() == page[:-3] + "ONE"


@pytest.mark.parametrize("kind", [".pptx", ".xlsx", ".epub"])
def test_a_cut_file_is_refused_wherever_it_is_cut(tmp_path: Path, kind: str) -> None:
    data = {".pptx": slides, ".xlsx": workbook, ".epub": epub}[kind]()
    for share in (0.1, 0.5, 0.9, 0.99):
        refused(tmp_path, f"a{kind}", data[: int(len(data) * share)])
        (tmp_path / f"a{kind}").unlink()


def test_a_member_that_lies_about_itself(tmp_path: Path) -> None:
    data = bytearray(workbook())
    name = b"xl/workbook.xml"
    data[data.index(name) + len(name) + 40] ^= 0xFF
    refused(tmp_path, "a.xlsx", bytes(data))
