"""PDF: lines to paragraphs, words that a line end divides, and what is refused."""

from __future__ import annotations

import io

import pytest

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import texts_of, translate_document, written_name
from dragoman.errors import InputError
from dragoman.tasks.translation import Translation

pypdf = pytest.importorskip("pypdf")
GERMAN = DocumentSettings("en", "de")


def paper(*pages: list[str]) -> bytes:
    """A file with these lines of text on its pages."""
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = pypdf.PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    fonts = DictionaryObject({NameObject("/F"): font})
    for lines in pages:
        page = writer.add_blank_page(600, 800)
        shown = "".join(f"({line}) Tj 0 -14 Td\n" for line in lines)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F 12 Tf 50 700 Td\n{shown}ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def shout(texts: list[str]) -> list[Translation]:
    return [Translation(text.upper()) for text in texts]


PAGES = (
    [
        "A short heading",
        "The first paragraph is a long one, whose lines are trans-",
        "lated together, and it ends here.",
        "Another begins on a line of its own and goes on over the",
    ],
    ["next page, where it ends.", "- an item & more"],
)
PARAGRAPHS = [
    "A short heading",
    "The first paragraph is a long one, whose lines are translated together, and it ends here.",
    "Another begins on a line of its own and goes on over the next page, where it ends.",
    "- an item & more",
]


def test_lines_become_paragraphs_of_a_page() -> None:
    data = paper(*PAGES)
    assert texts_of("a.pdf", data, GERMAN) == PARAGRAPHS
    page = translate_document("a.pdf", data, shout, GERMAN).decode()
    body = "".join(f"<p>{text.upper()}</p>\n" for text in PARAGRAPHS).replace("&", "&amp;")
    assert page == (
        '<!DOCTYPE html>\n<html lang="de">\n<head>\n<meta charset="utf-8">\n<title></title>\n'
        f"</head>\n<body>\n{body}</body>\n</html>\n"
    )
    assert written_name("a.pdf") == "a.html"


def test_the_direction_of_the_language() -> None:
    page = translate_document("a.pdf", paper(*PAGES), shout, DocumentSettings("en", "ar"))
    assert b'<html lang="ar" dir="rtl">' in page


def test_an_encrypted_file_is_refused() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(paper(*PAGES)))
    writer.encrypt("secret", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    with pytest.raises(InputError, match="it is encrypted; save it without a password"):
        translate_document("a.pdf", out.getvalue(), shout, GERMAN)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no such file", "does not begin as a PDF does"),
        (paper([]), "it has no text"),
        (b"%PDF-1.7\n" + b"a" * 1_000, "damaged"),
    ],
    ids=["text", "picture", "damaged"],
)
def test_what_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        translate_document("a.pdf", data, shout, GERMAN)


def test_a_truncated_file_is_read_or_refused_in_one_sentence() -> None:
    whole = paper(*PAGES)
    for size in range(50, len(whole), 150):
        sentence = ""
        try:
            translate_document("a.pdf", whole[:size], shout, GERMAN)
        except InputError as error:
            sentence = str(error)
        assert "\n" not in sentence
