"""Localisation formats: golden files, plurals, placeholders, bad input, and programs that read the
results."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden
import pytest

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import texts_of, translate_document, written_name
from dragoman.errors import InputError
from dragoman.tasks.translation import Translation

yaml = pytest.importorskip("yaml")
polib = pytest.importorskip("polib")
GERMAN = DocumentSettings("en", "de")
RUSSIAN = DocumentSettings("en", "ru")
Change = Callable[[list[str]], tuple[list[str], list[tuple[int, int]]]]


def run(
    name: str, text: str, change: Change | None = None, settings: DocumentSettings = GERMAN
) -> str:
    def translate(texts: list[str]) -> list[Translation]:
        made = [(change or shout)(text.split()) for text in texts]
        return [Translation(" ".join(words), alignment=tuple(pairs)) for words, pairs in made]

    return translate_document(name, text.encode(), translate, settings).decode()


def shout(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    """Capitals; what is protected stays, as a translator keeps it."""
    made = [word if set(word) & set("{}%<&\\$") else word.upper() for word in words]
    return made, [(place, place) for place in range(len(words))]


def turned(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    last = len(words) - 1
    return words[::-1], [(last - place, place) for place in range(len(words))]


def same(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    return words, [(place, place) for place in range(len(words))]


KINDS = sorted(set(golden.MARKED) - {".po"})


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_translated_and_all_else_is_the_same(kind: str) -> None:
    assert run(f"a{kind}", golden.source(kind)) == golden.shouted(kind)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {".xlf", ".tmx", ".arb", ".yaml"}))
def test_a_translator_that_changes_nothing_changes_nothing(kind: str) -> None:
    assert run(f"a{kind}", golden.source(kind), same) == golden.source(kind)


def test_xliff_2() -> None:
    assert run("a.xliff", golden.XLIFF_20) == golden.XLIFF_20_DONE


@pytest.mark.parametrize("text", [golden.XLIFF_12, golden.XLIFF_20])
def test_codes_of_xliff_come_back_once_whatever_the_order(text: str) -> None:
    translated = run("a.xlf", text, turned)
    root = ElementTree.fromstring(translated)
    pairs = 0
    for unit in root.iter():
        children = {child.tag.rpartition("}")[2]: child for child in unit}
        if not {"source", "target"} <= children.keys():
            continue
        pairs += 1
        codes = [
            sorted((code.tag, code.get("id")) for code in children[name].iter() if code.get("id"))
            for name in ("source", "target")
        ]
        assert codes[0] == codes[1] or children["target"].text in ("Gut", "Hallo", None)
    assert pairs >= 2


def test_a_file_for_another_language_is_refused() -> None:
    text = golden.XLIFF_12.replace('original="a.txt"', 'original="a.txt" target-language="fr"')
    with pytest.raises(InputError, match="its targets are in fr, and the translation is to de"):
        run("a.xlf", text)


CATALOGUE = """# A template
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: demo 1.0\\n"
"PO-Revision-Date: 2024-01-01 12:00+0000\\n"
"Last-Translator: Nobody <nobody@example.org>\\n"
"Language-Team: none\\n"
"MIME-Version: 1.0\\n"
"Language: \\n"
"Content-Type: text/plain; charset=CHARSET\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"

#: main.c:12
#, c-format
msgid "Hello %s, you are \\"%d\\"\\n"
msgstr ""

msgctxt "menu"
msgid "Open"
msgstr "Öffnen"

#. A note
#, fuzzy, python-format
#| msgid "Old"
msgid "New %(name)s"
msgstr "Alt"

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid ""
"A long text that is broken into lines because it is so long "
"that it does not fit.\\n"
"Second\\n"
msgstr ""

#~ msgid "Gone"
#~ msgstr "Weg"
"""
CATALOGUE_DONE = """# A template
msgid ""
msgstr ""
"Project-Id-Version: demo 1.0\\n"
"PO-Revision-Date: 2024-01-01 12:00+0000\\n"
"Last-Translator: Nobody <nobody@example.org>\\n"
"Language-Team: none\\n"
"MIME-Version: 1.0\\n"
"Language: ru\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && "
"n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);\\n"

#: main.c:12
#, c-format
msgid "Hello %s, you are \\"%d\\"\\n"
msgstr "HELLO %s, YOU ARE \\"%d\\"\\n"

msgctxt "menu"
msgid "Open"
msgstr "Öffnen"

#. A note
#, python-format
msgid "New %(name)s"
msgstr "NEW %(name)s"

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d FILE"
msgstr[1] "%d FILES"
msgstr[2] "%d FILES"

msgid ""
"A long text that is broken into lines because it is so long "
"that it does not fit.\\n"
"Second\\n"
msgstr ""
"A LONG TEXT THAT IS BROKEN INTO LINES BECAUSE IT IS SO LONG THAT IT DOES NOT "
"FIT.\\n"
"SECOND\\n"

#~ msgid "Gone"
#~ msgstr "Weg"
"""


def test_gettext() -> None:
    assert run("a.po", CATALOGUE, settings=RUSSIAN) == CATALOGUE_DONE
    assert run("a.po", golden.source(".po")) == golden.source(".po")
    assert written_name("a.pot") == "a.po"


def test_each_plural_is_asked_with_a_number_that_takes_it() -> None:
    asked = texts_of("a.po", CATALOGUE.encode(), RUSSIAN)
    assert [text for text in asked if "file" in text] == ["1 file", "3 files", "5 files"]


def test_polib_and_msgfmt_read_the_catalogue(tmp_path: Path) -> None:
    for change in (shout, turned):
        text = run("a.po", CATALOGUE, change, RUSSIAN)
        catalogue = polib.pofile(text)
        assert len(catalogue.translated_entries()) == 5
        program = shutil.which("msgfmt")
        if not program:
            pytest.skip("msgfmt of gettext is not installed")
        path = tmp_path / "a.po"
        path.write_text(text, encoding="utf-8")
        command = [program, "-c", "-o", str(tmp_path / "a.mo"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("flag", "expected"),
    [("c-format", "%2$d are you %1$s"), ("python-format", "%s you are %d")],
)
def test_placeholders_without_a_name_keep_their_order(flag: str, expected: str) -> None:
    text = f'#, {flag}\nmsgid "%s you are %d"\nmsgstr ""\n'
    assert f'msgstr "{expected}"' in run("a.po", text, turned)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "{n, plural, one {# file} other {# files}}",
            "{n, plural, one {# FILE} few {# FILES} many {# FILES} other {# FILES}}",
        ),
        (
            "You have {n, plural, =0 {no files} other {# files}}.",
            "{n, plural, =0 {YOU HAVE NO FILES.} one {YOU HAVE # FILES.} few {YOU HAVE # FILES.}"
            " many {YOU HAVE # FILES.} other {YOU HAVE # FILES.}}",
        ),
        (
            "{g, select, female {her {n, number} car} other {their car}}",
            "{g, select, female {HER {n, number} CAR} other {THEIR CAR}}",
        ),
        (
            "{n, selectordinal, one {#st day} other {#th day}}",
            "{n, selectordinal, one {#ST DAY} other {#TH DAY}}",
        ),
        ("{n, plural, one {broken}", "{n, plural, one {broken}"),
        ("{n, plural, one {no other}}", "{n, plural, one {no other}}"),
        ("It is '{quoted}' {x}", "IT IS '{quoted}' {x}"),
    ],
)
def test_icu(source: str, expected: str) -> None:
    translated = json.loads(run("a.json", json.dumps([source]), settings=RUSSIAN))
    assert translated == [expected]


def test_a_message_of_very_many_choices_stays() -> None:
    source = json.dumps(["{n, plural, other {a}} b " * 2_000])
    assert run("a.json", source) == source


def test_icu_asks_for_whole_sentences() -> None:
    source = json.dumps(["In {a}: {n, plural, one {# file} other {# files}}."])
    assert texts_of("a.json", source.encode(), GERMAN) == ["In {a}: 1 file.", "In {a}: 5 files."]


def test_a_quote_before_an_argument_is_doubled() -> None:
    source = json.dumps(["{n, plural, one {of {x} file} other {of {x} files}}"])
    change: Change = lambda words: (["l'{x}", words[2]], [(1, 0), (2, 1)])  # noqa: E731
    assert json.loads(run("a.json", source, change)) == [
        "{n, plural, one {l''{x} file} other {l''{x} files}}"
    ]


def test_android_and_apple_get_the_plurals_of_the_language() -> None:
    android = run("strings.xml", golden.source(".xml"), settings=RUSSIAN)
    quantities = [item.get("quantity") for item in ElementTree.fromstring(android).iter("item")]
    assert quantities[:4] == ["one", "few", "many", "other"]
    apple = run("a.stringsdict", golden.source(".stringsdict"), settings=RUSSIAN)
    keys = [key.text for key in ElementTree.fromstring(apple).iter("key")]
    assert keys[-4:] == ["one", "few", "many", "other"]
    japanese = run("strings.xml", golden.source(".xml"), settings=DocumentSettings("en", "ja"))
    items = list(ElementTree.fromstring(japanese).iter("item"))
    assert [item.get("quantity") for item in items] == ["other", None, None]


_CONTROLS = "one&#13;two&#xD;&#10;three&#x85;four"
_READ_AGAIN = "ONE\rTWO\r\nTHREE FOUR"  # the character between the last two is a space to Python


@pytest.mark.parametrize(
    ("name", "before", "after", "found"),
    [
        ("a.stringsdict", "<string>", "</string>", "string"),
        ("a.xlf", '<source xml:space="preserve">', "</source>", "target"),
        ("a.xliff", '<source xml:space="preserve">', "</source>", "target"),
        ("a.tmx", '<tu><tuv xml:lang="en"><seg>', "</seg></tuv></tu>", "tuv[2]/seg"),
    ],
)
def test_a_carriage_return_is_the_same_after_it_has_been_read(
    name: str, before: str, after: str, found: str
) -> None:
    around = {
        "a.stringsdict": "<plist><dict><key>NSStringLocalizedFormatKey</key>|</dict></plist>",
        "a.xlf": '<xliff version="1.2"><file><trans-unit>|</trans-unit></file></xliff>',
        "a.xliff": '<xliff version="2.0"><file><unit><segment>|</segment></unit></file></xliff>',
        "a.tmx": "<tmx><header/><body>|</body></tmx>",
    }
    source = around[name].replace("|", before + _CONTROLS + after)
    read = ElementTree.fromstring(run(name, source)).find(f".//{found}")
    assert read is not None
    assert read.text == _READ_AGAIN


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_those_of_the_source(end: str) -> None:
    text = f"<string>one{end}two</string>"
    source = f"<plist><dict><key>NSStringLocalizedFormatKey</key>{end}{text}</dict></plist>"
    assert run("a.stringsdict", source) == source.replace("one", "ONE").replace("two", "TWO")


def test_cdata_of_apple_is_read() -> None:
    source = (
        "<plist><dict><key>NSStringLocalizedFormatKey</key>"
        "<string><![CDATA[one & two]]> &amp; three</string></dict></plist>"
    )
    assert run("a.stringsdict", source, same) == source
    made = ElementTree.fromstring(run("a.stringsdict", source)).findtext(".//string")
    assert made == "ONE & TWO & THREE"


def test_comments_of_apple_stay() -> None:
    key = "<key>NSStringLocalizedFormatKey</key>"
    between = f"<plist><dict>{key}<!-- a --><string>one</string></dict></plist>"
    assert run("a.stringsdict", between) == between.replace("one", "ONE")
    inside = f"<plist><dict>{key}<string>one <!-- a --> two</string></dict></plist>"
    assert run("a.stringsdict", inside) == inside


def test_white_space_in_quotes_of_android_stays() -> None:
    source = '<resources><string name="a">"one&#13;two&#10;three\nfour"</string></resources>'
    made = run("strings.xml", source)
    assert made == source.replace("one&#13;two&#10;three\nfour", "ONE&#13;TWO\\nTHREE\\nFOUR")


def test_white_space_behind_a_line_of_a_literal_block_stays() -> None:
    assert run("a.yaml", "a: |\n  one two  \n  three\t\n") == "a: |\n  ONE TWO  \n  THREE\t\n"


def test_a_label_gets_no_full_stop() -> None:
    change: Change = lambda words: (["Sichern."], [])  # noqa: E731
    assert run("a.json", '["Save it", "Save it."]', change) == '["Sichern", "Sichern."]'


def test_chrome_messages() -> None:
    text = '{"a": {"message": "Hello $NAME$", "placeholders": {"name": {"content": "the $1"}}}}'
    assert run("messages.json", text) == text.replace("Hello", "HELLO")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("text",), "id,text\n1,ONE TWO\n"),
        (("1",), "id,text\n1,one two\n"),
        (("2",), "id,text\n1,ONE TWO\n"),
    ],
)
def test_columns_of_a_table_by_name_and_number(columns: tuple[str, ...], expected: str) -> None:
    settings = DocumentSettings("en", "de", columns)
    assert run("a.csv", "id,text\n1,one two\n", settings=settings) == expected


def test_an_attribute_that_is_added_leaves_the_white_space_of_its_tag() -> None:
    unit = '<file id="f"><unit id="u"><segment><source/></segment></unit></file></xliff>'
    head = '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"'
    assert run("a.xliff", f"{head} \n>{unit}") == f'{head} trgLang="de" \n>{unit}'


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="it has no column title; its columns are id, text"):
        run("a.csv", "id,text\n1,a\n", settings=DocumentSettings("en", "de", ("title",)))


def test_a_cell_is_quoted_when_it_needs_to_be() -> None:
    change: Change = lambda words: (["Ja,", "und"], [(0, 0), (1, 1)])  # noqa: E731
    assert run("a.csv", "id;text\n1;yes sir\n", change) == "id;text\n1;Ja, und\n"
    assert run("a.csv", "id,text\n1,yes sir\n", change) == 'id,text\n1,"Ja, und"\n'


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_a_cell_that_is_not_translated_keeps_the_ends_of_its_lines(end: str) -> None:
    """A line of such a length goes on in the next, so that both are one text."""
    cell = f"a line of a cell that is long enough to have been wrapped{end}goes on here"
    table = f'id,text\n1,"{cell}"\n'
    assert run("a.csv", table, same) == table
    assert run("a.csv", table) == table.replace(cell, cell.upper())


@pytest.mark.parametrize(
    ("translation", "expected"),
    [
        ("nein", "nein"),
        ("no", '"no"'),
        ("a: b", '"a: b"'),
        ("- x", '"- x"'),
        ("a #b", '"a #b"'),
        ("1", '"1"'),
        ("a\\b", "a\\b"),
        ("", "some text"),
    ],
)
def test_a_plain_scalar_is_quoted_when_it_needs_to_be(translation: str, expected: str) -> None:
    text = "a: some text\n"
    translated = run("a.yaml", text, lambda words: (translation.split(), []))
    assert translated == f"a: {expected}\n"
    assert yaml.safe_load(translated) == {"a": translation or "some text"}


def test_properties_in_both_encodings() -> None:
    settings = DocumentSettings("en", "de")

    def translate(texts: list[str]) -> list[Translation]:
        return [Translation("Größe €") for _ in texts]

    ascii_file = translate_document("a.properties", b"a=some size\n", translate, settings)
    assert ascii_file == b"a=Gr\\u00f6\\u00dfe \\u20ac\n"
    utf8 = translate_document("a.properties", "a=größe da\n".encode(), translate, settings)
    assert utf8 == "a=Größe €\n".encode()
    latin = translate_document(
        "a.properties", "a=größe da\n".encode("latin-1"), translate, settings
    )
    assert latin == "a=Größe \\u20ac\n".encode("latin-1")


def test_quotes_of_message_format_are_doubled() -> None:
    text = "a=It''s {0}\nb=It's fine\n"
    assert texts_of("a.properties", text.encode(), GERMAN) == ["It's {0}", "It's fine"]
    assert run("a.properties", text) == "a=IT''S {0}\nb=IT'S FINE\n"


def test_apple_strings_in_utf_16() -> None:
    text = golden.source(".strings")

    def translate(texts: list[str]) -> list[Translation]:
        return [Translation(" ".join(shout(text.split())[0])) for text in texts]

    data = translate_document("a.strings", text.encode("utf-16"), translate, GERMAN)
    assert data.decode("utf-16") == golden.shouted(".strings")


def test_json_and_yaml_are_read_as_what_they_say() -> None:
    for change in (shout, turned):
        before = json.loads(golden.source(".json"))
        after = json.loads(run("a.json", golden.source(".json"), change))
        assert _shape(before) == _shape(after)
        tree = yaml.load(run("a.yaml", golden.source(".yaml"), change), Loader=yaml.BaseLoader)
        source = yaml.load(golden.source(".yaml"), Loader=yaml.BaseLoader)
        assert _shape(tree["de"]) == _shape(source["en"])


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shape(inner) for inner in value]
    return type(value).__name__


@pytest.mark.parametrize("kind", [".xlf", ".tmx", ".xml", ".stringsdict"])
def test_xmllint_reads_what_is_written(kind: str, tmp_path: Path) -> None:
    program = shutil.which("xmllint")
    if not program:
        pytest.skip("xmllint of libxml2 is not installed")
    path = tmp_path / f"a{kind}"
    path.write_text(run(f"a{kind}", golden.source(kind), turned), encoding="utf-8")
    command = [program, "--noout", "--nonet", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_latex_escapes_what_a_translation_brings() -> None:
    translated = run("a.tex", "Some text.\n", lambda words: (["50%", "&", "a_b", "{x}"], []))
    assert translated == "50\\% \\& a\\_b \\{x\\}\n"


@pytest.mark.parametrize("kind", [*KINDS, ".po", ".pdf"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 64,
        b"\xff\xfe\x00",
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        "ä ö ü".encode("latin-1") * 20,
        b"[" * 100_000,
        b"<a>" * 100_000,
        b"{" * 100_000,
    ],
    ids=["empty", "nul", "utf16", "picture", "latin", "brackets", "elements", "braces"],
)
def test_what_is_no_such_file_is_one_sentence_or_comes_back(kind: str, data: bytes) -> None:
    def translate(texts: list[str]) -> list[Translation]:
        return [Translation(text) for text in texts]

    sentence = ""
    translated = data
    try:
        translated = translate_document(f"a{kind}", data, translate, GERMAN)
    except InputError as error:
        sentence = str(error)
    assert translated == data
    assert not sentence or f"a{kind}" in sentence
    assert "\n" not in sentence


READERS: dict[str, Callable[[str], object]] = {
    ".json": json.loads,
    ".arb": json.loads,
    ".yaml": lambda text: list(yaml.parse(text)),
    ".xlf": ElementTree.fromstring,
    ".tmx": ElementTree.fromstring,
    ".xml": ElementTree.fromstring,
    ".stringsdict": ElementTree.fromstring,
}


@pytest.mark.parametrize("kind", [*KINDS, ".po"])
def test_mutated_files_are_read_or_refused(kind: str) -> None:
    draw = random.Random(kind)
    source = golden.source(kind) if kind != ".po" else CATALOGUE
    for number in range(12):
        text = source
        for _ in range(draw.choice((1, 3, 9))):
            place = draw.randrange(len(text))
            piece = draw.choice(('"', "<", ">", "{", "}", "\\", "\n", "", "&", ":", "x" * 99))
            text = text[:place] + piece + text[place + draw.choice((0, 1, 5)) :]
        sentence = ""
        try:
            translated = run(f"a{kind}", text, (shout, turned)[number % 2])
        except InputError as error:
            sentence = str(error)
        assert "\n" not in sentence
        if not sentence and kind in READERS:
            READERS[kind](translated)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("_File", "_FILE"),
        ("Save _as", "SAVE _AS"),
        ("E_xit", "E_XIT"),
        ("&Copy to %s", "&COPY TO %s"),
        ("Pre&view", "PRE&VIEW"),
        ("~Open", "~OPEN"),
        ("AT&T is here", "AT&T IS HERE"),
        ("&amp; so on", "&amp; SO ON"),
        ("the user_id is wrong", "THE USER_ID IS WRONG"),
        ("_one _two", "_ONE _TWO"),
    ],
)
def test_access_keys_of_labels(label: str, expected: str) -> None:
    """The letter behind the sign is read without it."""
    text = f'msgid ""\nmsgstr "charset=UTF-8\\n"\n\nmsgid "{label}"\nmsgstr ""\n'
    assert f'msgstr "{expected}"' in run("a.po", text)
    is_label = expected.replace("%s", "").count("_") + expected.count("~") == 1
    if is_label and "USER" not in expected:
        assert texts_of("a.po", text.encode()) == [label.replace("_", "").replace("~", "")]


@pytest.mark.parametrize(
    ("label", "translation", "expected"),
    [
        ("_Save", ["Speichern", "alles"], "_Speichern alles"),
        ("_Quit", ["Beenden"], "_Beenden"),
        ("Save _as", ["Speichern", "als"], "Speichern _als"),
    ],
)
def test_an_access_key_is_put_before_its_letter(
    label: str, translation: list[str], expected: str
) -> None:
    def change(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
        return translation, []

    text = f'msgid ""\nmsgstr "charset=UTF-8\\n"\n\nmsgid "{label}"\nmsgstr ""\n'
    assert f'msgstr "{expected}"' in run("a.po", text, change)


def test_sentences_that_an_xliff_file_marks_are_marked_in_its_target() -> None:
    unit = (
        '<trans-unit id="1"><source>One. Two <g id="1">three</g>.</source><seg-source>'
        '<mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two <g id="1">three</g>.'
        "</mrk></seg-source></trans-unit>"
    )
    text = (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        '<file source-language="en" original="a" datatype="plaintext">'
        f"<body>{unit}</body></file></xliff>"
    )
    assert texts_of("a.xlf", text.encode()) == ["One.", "Two three."]
    target = run("a.xlf", text).partition('mt-suggestion">')[2].partition("</target>")[0]
    assert target == (
        '<mrk mtype="seg" mid="1">ONE.</mrk> '
        '<mrk mtype="seg" mid="2">TWO <g id="1">THREE</g>.</mrk>'
    )
