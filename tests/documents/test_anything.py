"""Any text at all, in a document of every kind, comes back as it was from a translator that changes
nothing."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import KINDS, translate_document
from dragoman.tasks.translation import Translation

pytest.importorskip("markdown_it")
pytest.importorskip("yaml")
polib = pytest.importorskip("polib")
Form = tuple[str, Callable[[str], str]]  # a document, and how a text is written in it
LINES = "{0}\n1\n00:00:00,000 --> 00:00:01,000\nx{0}x"
EVENT = "[Events]\nFormat: Start, Text\nDialogue: 0:00:01.00,x{0}x"
PLURAL = "<key>n</key><dict><key>other</key><string>x{0}x</string></dict>"
ANYTHING: dict[str, Form] = {
    **dict.fromkeys((".txt", ".md", ".html", ".htm", ".srt", ".tex"), (LINES, str)),
    **dict.fromkeys((".csv", ".tsv", ".properties"), (LINES, str)),
    ".vtt": ("WEBVTT\n\n00:00.000 --> 00:01.000\nx{0}x", str),
    **dict.fromkeys((".ass", ".ssa"), (EVENT, str)),
    ".json": ('{{"a":  [{0}, 1.0]}}', json.dumps),
    ".arb": ('{{"a":  {0}}}', json.dumps),
    **dict.fromkeys((".yaml", ".yml"), ("a: {0} # no\n", json.dumps)),
    ".strings": ('"a" = {0}; // no\n', json.dumps),
    ".stringsdict": (f"<plist><dict><key>f</key><dict>{PLURAL}</dict></dict></plist>", escape),
    ".xml": ('<resources><string name="a">x{0}x</string></resources>', escape),
}
UNIT = "<trans-unit><source>x{0}x</source></trans-unit>"
SEGMENT = "<unit><segment><source>x{0}x</source></segment></unit>"
# These hold two languages: the translation stands beside its source.
BILINGUAL: dict[str, Form] = {
    **dict.fromkeys((".po", ".pot"), ('msgid {0}\nmsgstr ""\n', json.dumps)),
    ".xlf": (f"<xliff version='1.2'><file>{UNIT}</file></xliff>", escape),
    ".xliff": (f"<xliff version='2.0' srcLang='en'><file>{SEGMENT}</file></xliff>", escape),
    ".tmx": ("<tmx><body><tu><tuv xml:lang='en'><seg>x{0}x</seg></tuv></tu></body></tmx>", escape),
}
# Their tests of what comes back are those of office files, books and PDF.
OTHERS = {".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub", ".pdf"}
TEXTS = ("source", "target", "seg")
SIGNS = st.text(st.sampled_from("ab *_`[](!)#>-|\\\n\r<&;/b1.~:="), max_size=80)


def identity(texts: list[str]) -> list[Translation]:
    made = []
    for text in texts:
        pairs = tuple((place, place) for place in range(len(text.split())))
        made.append(Translation(text, alignment=pairs))
    return made


def test_every_kind_is_tried() -> None:
    assert {*ANYTHING, *BILINGUAL, *OTHERS} == set(KINDS)


@pytest.mark.parametrize("kind", ANYTHING)
@settings(deadline=None, max_examples=40)
@given(text=SIGNS)
def test_identity_of_anything(kind: str, text: str) -> None:
    form, written = ANYTHING[kind]
    source = form.format(written(text)).encode()
    assert translate_document(f"a{kind}", source, identity) == source


@pytest.mark.parametrize("kind", BILINGUAL)
@settings(deadline=None, max_examples=40)
@given(text=SIGNS)
def test_anything_stands_beside_its_source(kind: str, text: str) -> None:
    form, written = BILINGUAL[kind]
    source = form.format(written(f"x{text}")).encode()
    languages = DocumentSettings("en", "de")
    translated = translate_document(f"a{kind}", source, identity, languages).decode()
    if kind in (".po", ".pot"):
        entry = polib.pofile(translated)[-1]
        assert entry.msgstr == entry.msgid
        return
    read = [one for one in ElementTree.fromstring(translated).iter() if one.tag in TEXTS]
    assert len(read) == 2
    assert read[0].text == read[1].text
    assert read[0].text == ElementTree.fromstring(source).findtext(f".//{read[0].tag}")
