"""Documents: what comes back of an identity, of a translator that changes every word and of one
that swaps them."""

from __future__ import annotations

import io
import re
import struct
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.documents.documents import MAX_BYTES, Translate, translate_document
from dragoman.documents.line_breaks import break_lines
from dragoman.errors import InputError
from dragoman.tasks.translation import Translation

docx = pytest.importorskip("docx")
markdown_it = pytest.importorskip("markdown_it")


def fake(change: Callable[[list[str]], tuple[list[str], list[tuple[int, int]]]]) -> Translate:
    def translate(texts: list[str]) -> list[Translation]:
        made = [change(text.split()) for text in texts]
        return [Translation(" ".join(words), alignment=tuple(pairs)) for words, pairs in made]

    return translate


def identity(texts: list[str]) -> list[Translation]:
    return [
        Translation(text, alignment=tuple((i, i) for i in range(len(text.split()))))
        for text in texts
    ]


def swapped(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    """Every two words change places; a last one without a partner stays."""
    origins = [i ^ 1 if i ^ 1 < len(words) else i for i in range(len(words))]
    return [words[origin] for origin in origins], [(origin, i) for i, origin in enumerate(origins)]


shout = fake(lambda words: ([word.upper() for word in words], [(i, i) for i in range(len(words))]))
swap = fake(swapped)
reverse = fake(lambda words: (words[::-1], [(len(words) - 1 - j, j) for j in range(len(words))]))


def run(name: str, text: str, translate: Translate) -> str:
    return translate_document(name, text.encode(), translate).decode()


PAGE = """<!DOCTYPE html>
<html><head><title>A &amp; B</title><style>b > i {}</style><script>if (a<b) "x"</script></head>
<body class='x'>
  <p id=p1>one <b>two</b> &copy;&nbsp;three<br/>four</p>
  <pre>keep</pre><div translate="no">keep <div>this</div> too</div><p>a < b <unclosed
"""


@pytest.mark.parametrize("name", ["a.html", "a.md", "a.txt"])
def test_identity_of_a_page(name: str) -> None:
    assert run(name, PAGE, identity) == PAGE


@pytest.mark.parametrize(
    ("source", "translate", "expected"),
    [
        ("<b>one</b> two", swap, "two <b>one</b>"),
        ('<p>one <a href="?a=1&b=2">two</a></p>', swap, '<p><a href="?a=1&b=2">two</a> one</p>'),
        ("<b>one</b>, two", swap, "two <b>one</b>,"),
        ("<b>one <i>two</i></b> three", shout, "<b>ONE <i>TWO</i></b> THREE"),
        ("<i>one</i><br>two <img src=x> three", shout, "<i>ONE</i><br>TWO <img src=x> THREE"),
        ("one two<br>three four", swap, "two one<br>four three"),
        ("run <code>ls -l</code> now please", swap, "<code>ls -l</code> run please now"),
        ("one&nbsp;two &lt;three&gt; &copy; 4", shout, "ONE&nbsp;TWO &lt;THREE&gt; &copy; 4"),
        ("one <!-- two --> three", shout, "ONE <!-- two --> THREE"),
        ('<p>one<span id="i"></span> two</p>', shout, '<p>ONE<span id="i"></span> TWO</p>'),
        ("<b>one<p>two</b> three</p>", shout, "<b>ONE<p>TWO</b> THREE</p>"),
        ('<i class="a notranslate">one</i> two', shout, '<i class="a notranslate">one</i> TWO'),
        (
            """<img alt='a "b"' title=x src='alt="y"'>""",
            shout,
            """<img alt="A &quot;B&quot;" title=x src='alt="y"'>""",
        ),
        ("<title>one</title><li>two<li>three", shout, "<title>ONE</title><li>TWO<li>THREE"),
        ("\n  one\n  two\n", shout, "\n  ONE TWO\n"),
        ("<style>p{}</style><script>a</script>b", shout, "<style>p{}</style><script>a</script>B"),
        ("<SCRIPT>alt='one'</SCRIPT>b", shout, "<SCRIPT>alt='one'</SCRIPT>B"),
    ],
)  # fmt: skip
def test_html(source: str, translate: Translate, expected: str) -> None:
    assert run("a.html", source, translate) == expected


def test_marks_without_words_go_to_the_nearest_place() -> None:
    less = fake(lambda words: (["Katze", "sitzt"], [(1, 0), (2, 1)]))
    assert run("a.html", "<b>the</b> cat sits", less) == "<b>Katze</b> sitzt"
    assert run("a.html", "<b>the</b> <i>cat</i> sits", less) == "<b></b><i>Katze</i> sitzt"
    assert run("a.html", "<code>the</code> cat sits", less).split() == [
        "<code>the</code>",
        "Katze",
        "sitzt",
    ]


def test_without_an_alignment_nothing_is_lost() -> None:
    bare = fake(lambda words: ([word.upper() if "(" not in word else word for word in words], []))
    assert (
        run("a.html", "use <code>f()</code> <b>here now</b>", bare)
        == "USE <code>f()</code> <b>HERE NOW</b>"
    )
    assert run("a.html", "use <code>f()</code> now", fake(lambda words: (["nun"], []))).split() == [
        "nun",
        "<code>f()</code>",
    ]


NOTES = """---
author: keep
---
# one *two*

> one **two** three
> [four](http://a.b) five{two}
> six `keep it` seven.

- one
- [two][r] ![three](u.png) snake_case \\* <kbd>Ctrl</kbd>

| one | two |
|-----|:---:|
| one | **two** one |

    keep

```
keep
```

<div>
one <b>two</b>
</div>

[r]: http://keep
""".replace("{two}", "  ")


def test_markdown() -> None:
    expected = NOTES.replace(
        "three\n> [", "three ["
    )  # what a paragraph says is written in one line
    for word in ("one", "two", "three", "four", "five", "six", "seven", "snake_case"):
        expected = expected.replace(word, word.upper())
    assert run("a.md", NOTES, shout) == expected.replace("\\*", "*")  # which needs no escape there
    assert run("a.md", NOTES.replace("\n", "\r\n"), identity) == NOTES.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("source", "translate", "expected"),
    [
        ("*one* two\n", swap, "two *one*\n"),
        ("- [one](a_(b)) two", swap, "- two [one](a_(b))"),
        ("1. 1\n   one", shout, "1. 1 ONE"),
        ("see [the docs] now\n\n[the docs]: x\n", shout, "SEE [the docs] NOW\n\n[the docs]: x\n"),
        ("| a | b\\|c |\n|---|---|\n", shout, "| A | b\\|c |\n|---|---|\n"),
        ("one", fake(lambda words: (["1.", "<b>", "x"], [])), "1\\. \\<b\\> x"),
        ("a", fake(lambda words: (["**A**"], [])), "\\*\\*A\\*\\*"),
        ("<!-- no -->\n\n<div>one</div>\n", shout, "<!-- no -->\n\n<div>ONE</div>\n"),
        ("one\n===\n\n- [x] two\n", shout, "ONE\n===\n\n- [x] TWO\n"),
    ],
)
def test_markdown_inline(source: str, translate: Translate, expected: str) -> None:
    assert run("a.md", source, translate) == expected


CUES = (
    "\ufeff1\r\n00:00:01,000 --> 00:00:02,500 X1:0\r\n"
    "<i>Hello there,</i>\r\nmy good friend.\r\n\r\n"
    "2\r\n00:00:03,000 --> 00:00:04,000\r\n{\\an8}- Hi.\r\n- Who?\r\n"
)


def test_subtitles() -> None:
    assert run("a.srt", CUES, identity) == CUES
    expected = CUES
    for words in ("Hello there", "my good friend", "Hi.", "Who?"):
        expected = expected.replace(words, words.upper())
    assert run("a.srt", CUES, shout) == expected
    assert "\r\ngood my <i>" not in run("a.srt", CUES, reverse)
    assert re.findall(r"\d\d:.*", run("a.srt", CUES, reverse)) == re.findall(r"\d\d:.*", CUES)
    assert len(run("a.srt", CUES, reverse).splitlines()) == len(CUES.splitlines())


def test_subtitles_with_white_space_at_the_end() -> None:
    cue = "1\n00:00:03,000 --> 00:00:04,000\none two\nthree \n"
    assert run("a.srt", cue, shout) == cue.replace("one two", "ONE TWO").replace("three ", "THREE")


def test_lines_break_where_they_broke_or_at_punctuation() -> None:
    assert break_lines("aa bb cc dd", ["xxxx", "xxxx"]) == ["aa bb", "cc dd"]
    assert break_lines("aaa bbb, ccc ddd", ["xxxx", "xxxx"]) == ["aaa bbb,", "ccc ddd"]
    assert break_lines("one two", ["xxx"] * 4) == ["one", "two"]


@settings(deadline=None, max_examples=200)
@given(
    st.text(st.sampled_from("ab ,-"), min_size=1, max_size=60),
    st.lists(st.integers(1, 30), min_size=1, max_size=8),
)
def test_lines_break_at_the_cheapest_space(text: str, sizes: list[int]) -> None:
    """Compared with a search of all spaces."""
    spaces = [index for index, letter in enumerate(text) if letter == " " and index]
    breaks = [0]
    for number in range(1, len(sizes)):
        left = [space for space in spaces if space > breaks[-1]]
        if not left:
            break
        wanted = sum(sizes[:number]) / sum(sizes) * len(text)
        costs = []
        for space in left[: max(1, len(left) - (len(sizes) - number) + 1)]:
            pause = text[space - 1] in ".,;:!?…" or text[space + 1 : space + 2] in ("-", "–")
            costs.append((abs(space - wanted) - 6 * pause, space))
        breaks.append(min(costs)[1])
    ends = [*breaks[1:], len(text)]
    expected = [text[start:end].strip() for start, end in zip(breaks, ends, strict=True)]
    assert break_lines(text, ["x" * size for size in sizes]) == expected


def word_file() -> bytes:
    document = docx.Document()
    document.add_heading("title", 1)
    paragraph = document.add_paragraph("one ")
    paragraph.add_run("two").bold = True
    paragraph.add_run(", three & ")
    paragraph.add_run("four").italic = True
    paragraph.add_run().add_break()
    paragraph.add_run("five\tsix")
    document.add_table(1, 2).cell(0, 1).text = "cell"
    document.sections[0].header.paragraphs[0].text = "head"
    document.sections[0].footer.paragraphs[0].text = "foot"
    return saved(document)


def saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def patched(body: str) -> bytes:
    """A Word file with this paragraph alone."""
    files = unzipped(saved(docx.Document()))
    text = files["word/document.xml"].decode()
    files["word/document.xml"] = re.sub("<w:body>", f"<w:body>{body}", text).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in files.items():
            file.writestr(name, data)
    return out.getvalue()


def test_word_identity() -> None:
    assert unzipped(translate_document("a.docx", word_file(), identity)) == unzipped(word_file())


def test_word() -> None:
    made = docx.Document(io.BytesIO(translate_document("a.DOCX", word_file(), shout)))
    assert [paragraph.text for paragraph in made.paragraphs] == [
        "TITLE",
        "ONE TWO, THREE & FOUR\nFIVE\tSIX",
    ]
    assert made.paragraphs[0].style.name == "Heading 1"
    assert [run.text for run in made.paragraphs[1].runs if run.bold] == ["TWO"]
    assert [run.text for run in made.paragraphs[1].runs if run.italic] == ["FOUR"]
    section = made.sections[0]
    assert made.tables[0].cell(0, 1).text == "CELL"
    assert [section.header.paragraphs[0].text, section.footer.paragraphs[0].text] == [
        "HEAD",
        "FOOT",
    ]
    swapped = docx.Document(io.BytesIO(translate_document("a.docx", word_file(), swap)))
    assert swapped.paragraphs[1].text.split() == [
        "two,",
        "one",
        "&",
        "three",
        "five",
        "four",
        "six",
    ]
    assert [run.text for run in swapped.paragraphs[1].runs if run.bold or run.italic] == [
        "two",
        "four",
    ]


def test_word_fields_links_and_properties() -> None:
    field = "".join(
        f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate")
    )
    field += '<w:r><w:t>keep 3</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
    link = '<w:hyperlink w:anchor="m"><w:r><w:rPr><w:b/></w:rPr>'
    link += '<w:t xml:space="preserve">{}</w:t></w:r></w:hyperlink>'
    body = '<w:p>\n <w:bookmarkStart w:id="0" w:name="m"/><w:r><w:t>see </w:t></w:r>'
    body += f"{field}<w:r><w:t> and</w:t></w:r>{link.format(' this')}</w:p>"
    made = unzipped(translate_document("a.docx", patched(body), shout))[
        "word/document.xml"
    ].decode()
    assert field in made
    assert link.format("THIS") in made
    said = (
        docx.Document(io.BytesIO(translate_document("a.docx", patched(body), shout)))
        .paragraphs[0]
        .text
    )
    assert said.split() == ["SEE", "keep", "3", "AND", "THIS"]


def bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("word/document.xml", b" " * (50 * 2**20 + 1))
    return out.getvalue()


def test_a_word_file_that_lies_about_its_size_is_not_unpacked_whole() -> None:
    content = zlib.compress(b" " * (60 * 2**20), wbits=-15)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        file.writestr("word/document.xml", content)
    data = out.getvalue()
    # In the header of the file and in the directory: deflated, to 100 bytes.
    directory = data.rindex(b"PK\x01\x02")
    patched = bytearray(data)
    for method, size in ((8, 22), (directory + 10, directory + 24)):
        patched[method : method + 2] = struct.pack("<H", zipfile.ZIP_DEFLATED)
        patched[size : size + 4] = struct.pack("<I", 100)
    tracemalloc.start()
    with pytest.raises(InputError, match="Bad CRC-32"):
        translate_document("a.docx", bytes(patched), identity)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * 2**20


def declared() -> bytes:
    files = io.BytesIO()
    with zipfile.ZipFile(files, "w") as file:
        file.writestr(
            "word/document.xml", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'
        )
    return files.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pdf", b"x"),
        ("a", b"x"),
        ("a.txt", b""),
        ("a.md", b" \n"),
        ("a.txt", b"x" * (MAX_BYTES + 1)),
        ("a.html", "é".encode("latin-1")),
        ("a.txt", "x".encode("utf-16")),
        ("a.srt", b"no times"),
        ("a.docx", b"no zip"),
        ("a.docx", word_file()[:-100]),
        ("a.docx", bomb()),
        ("a.docx", declared()),
        ("a.docx", patched("<w:p>")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(InputError, match=re.escape(name)) as caught:
        translate_document(name, data, identity)
    assert "\n" not in str(caught.value)


WORDS = "ab **a** *b c* `a` - # > 1. | \\* [a](b) ![a](b) <b> </b> <br> _a_ ~~b~~ & &amp;"
BITS = [*WORDS.split(), "\n", "\n\n", "  \n", "    "]


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(BITS), max_size=25))
def test_markdown_keeps_its_form(parts: list[str]) -> None:
    source = "".join(part if part.isspace() else part + " " for part in parts) + "x"
    parser = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])

    def form(text: str) -> list[str]:
        return [
            token.type + token.markup for token in parser.parse(text) if token.type != "html_block"
        ]

    for translate in (shout, swap):
        assert form(run("a.md", source, translate)) == form(source)


@settings(deadline=None, max_examples=100)
@given(st.text(st.sampled_from("ab \t\n\r"), min_size=1, max_size=40))
def test_plain_lines(text: str) -> None:
    loud: Translate = lambda texts: [Translation(one.upper()) for one in texts]  # noqa: E731
    assert run("a.txt", text + "b", loud) == (text + "b").upper()


@pytest.mark.parametrize(
    "text",
    [
        "<a ",
        "<!--",
        "<b>x",
        "<a \"'",
        "[",
        "`a ",
        "**a ",
        "](",
        "x<br>",
        "<code>",
        "&nbsp;",
        "![a",
        "<i>a</i>",
    ],
)
@pytest.mark.parametrize("name", ["a.html", "a.md", "a.srt"])
def test_hostile_repetition_takes_little_time(name: str, text: str) -> None:
    start = time.process_time()
    run(name, "1\n00:00:00,000 --> 00:00:01,000\n" + text * 4000 + "end", shout)
    assert time.process_time() - start < 5.0
