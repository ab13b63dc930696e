"""Mutated documents of every format: none may raise anything but a sentence, hang or take much
memory, and a translator that changes nothing may lose no byte of one.

    python benchmarks/fuzz_documents.py --count 1000

Where nearly any mutation breaks a format's grammar, as many documents again are mutated in their
texts alone, since the others are mostly refused before a text is read.

The documents follow from the seed, so that what fails can be had again: --seed N --only KIND.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import resource
import signal
import sys
import time
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from fuzzing import Tally, mutated_bytes, translator, unchanged

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import texts_of, translate_document

MOST_SECONDS = 20  # for one document
MOST_MEMORY = 2**20  # KiB of the whole run
_SETTINGS = DocumentSettings("en", "ru")
_XML_KINDS = (".xlf", ".xliff", ".tmx", ".xml", ".stringsdict")
_SCHEMA = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_GOOD = {
    ".txt": "One line.\n\nAnother line, é 漢.\r\nThe last\n",
    ".md": """---
title: keep
---
# one *two* `three`

> quoted **text** with [a link](http://a.b "t") and ![picture](u.png)

- one
- two <kbd>Ctrl</kbd> &amp; \\* _three_

| a | b |
|---|:-:|
| c | **d** e |

<div>
one <b>two</b>
</div>

[r]: http://keep
""",
    ".html": """<!DOCTYPE html><html><head><title>A &amp; B</title><style>b {}</style>
<script>if (a<b) "x"</script></head><body class='x'><p id=p1>one <b>two <i>three</i></b>
&copy;&nbsp;four<br/>five</p><pre>keep</pre><div translate="no">keep</div><!-- no -->
<img alt="some text" title='more' src=x><a href="?a=1&b=2">six</a></body></html>
""",
    ".srt": """1
00:00:01,000 --> 00:00:02,500
<i>Hello there,</i>
my good friend.

2
00:00:03,000 --> 00:00:04,000
{\\an8}- Hi.
- Who?
""",
    ".vtt": """WEBVTT - x

NOTE no

STYLE
::cue { color: red }

one
00:01.000 --> 00:02.000 align:start
<v Fred>Hello &amp; <c.yellow>welcome</c>, dear

00:02.000 --> 00:03.000
friends of <00:02.500>the house. [sighs] ♪ la ♪
""",
    ".ass": """[Script Info]
Title: x

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\\pos(1,2)}One, {\\i1}two{\\i0}\\Nthree and
Dialogue: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,- four.\\N- five {\\k20}x
""",
    ".po": """# c
#, fuzzy
msgid ""
msgstr ""
"Language: \\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"

#: a.c:1
#, c-format
#| msgid "x"
msgid "Hello %s, \\"%d\\"\\n"
msgstr ""

msgctxt "m"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#~ msgid "gone"
#~ msgstr "weg"
""",
    ".xlf": """<?xml version="1.0"?><xliff version="1.2"><file source-language="en"><body>
<trans-unit id="1"><source>Click <g id="1">the <x id="2"/>button</g> &amp; %s</source>
</trans-unit><trans-unit id="2" translate="no"><source>one</source><target/></trans-unit>
<trans-unit id="3"><source>a <bpt id="1">b</bpt>c<ept id="1">e</ept></source><target>x</target>
</trans-unit></body></file></xliff>""",
    ".xliff": """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
<file id="f"><unit id="u"><segment><source>Hello <pc id="1">dear</pc> <ph id="2"/>world</source>
</segment><ignorable><source> </source></ignorable></unit></file></xliff>""",
    ".tmx": """<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en-US">
<seg>Hello <hi>big</hi> <ph x="1">{1}</ph>world</seg></tuv></tu><tu><tuv xml:lang="en"><seg>One
</seg></tuv><tuv xml:lang="de"><seg/></tuv></tu></body></tmx>""",
    ".json": """{"a": "Hello {name}", "b": ["One two", "x_y", 3, true, null, ""], "c": {
 "d": "You have {n, plural, =0 {no files} one {# file} other {# files}} in %s"}}""",
    ".yaml": """en:
  a: &x Hello world # c
  b: 'It''s'
  c: "Tab\\t"
  d: |
    One line
      two
  e: >-
    Folded text
    here.

    More.
  f: [one thing, {g: two}, 3, ~]
  h: *x
""",
    ".properties": """# c
a=Hello {0}, it''s
b : Some\\n\\
   more
c\\ d e\\u00e9 f
""",
    ".strings": """/* c */
"key" = "Hello \\"%@\\"\\n";
k = "Text"; // x
""",
    ".stringsdict": """<plist><dict><key>f</key><dict><key>NSStringLocalizedFormatKey</key>
<string>Found %#@n@</string><key>n</key><dict><key>one</key><string>%d file</string>
<key>other</key><string>%d files</string></dict></dict></dict></plist>""",
    ".xml": """<resources xmlns:xliff="x"><string name="a">Don\\'t <b>stop</b> %1$s\\n</string>
<string name="c"><![CDATA[<p>Hello <b>you</b></p>]]></string><string name="d">"It's"</string>
<plurals name="n"><item quantity="one">%d file</item><item quantity="other">%d files</item>
</plurals><string-array name="x"><item>One <xliff:g id="x">%s</xliff:g></item></string-array>
</resources>""",
    ".csv": """id,name,text
1,x_y,"He said ""no"", then"
2,z,Good bye now
""",
    ".tsv": "id\ttext\r\n1\tHello there\r\n2\tGood bye\r\n",
    ".tex": r"""\title{A \emph{b}}
\begin{document}
\section*{One\label{a}}
We $E=mc^2$~\cite{a} 50\% ``x'' % c
in \textbf{all \emph{of}} it.\footnote{A note.} Caf\'e

\begin{itemize}\item One \item[b)] Two \end{itemize}
\begin{tabular}{ll} a & b \\ \hline \end{tabular}
\begin{verbatim} keep \end{verbatim} \href{u}{link} {\bf x} \verb|a|
\end{document}
""",
    ".pdf": """%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /Contents 4 0 R /Resources <</Font <</F 5 0 R>>>>>> endobj
4 0 obj <</Length 44>> stream
BT /F 12 Tf 10 100 Td (Hello there, you) Tj ET
endstream endobj
5 0 obj <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> endobj
trailer <</Root 1 0 R /Size 6>>
startxref
0
%%EOF
""",
    ".docx": f"""<?xml version="1.0"?><w:document {_SCHEMA}><w:body><w:p><w:pPr><w:b/></w:pPr>
<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">one </w:t></w:r><w:r><w:t>two &amp; 3</w:t>
</w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:t>4</w:t></w:r><w:r>
<w:fldChar w:fldCharType="end"/></w:r><w:hyperlink><w:r><w:t>five</w:t><w:br/></w:r></w:hyperlink>
</w:p></w:body></w:document>""",
}
KINDS = tuple(_GOOD)
# Kinds in which nearly any mutation breaks the grammar: their texts alone are mutated too.
STRICT = frozenset((".ass", ".po", ".json", ".yaml", ".strings", ".pdf", *_XML_KINDS))
_TARGET = (
    r"""(?s)\s*<target\b(?:[^>]*/>|.*?</target>)|\s(?:state|target-language|trgLang)="[^"]*\""""
)
# Where the translation stands in a file, and what is said of it.
_TRANSLATION = {
    ".po": r"""(?m)^msgstr(?:\[\d+\])?[ \t]*".*\n(?:[ \t]*".*\n)*|^#,[ \t]*fuzzy\n|^#\|.*\n""",
    ".xlf": _TARGET,
    ".xliff": _TARGET,
    ".tmx": r"""(?s)\s*<tuv xml:lang="ru">.*?</tuv>""",
    ".json": r'''"(?:[^"\\]|\\.)*"''',
    ".stringsdict": r"\s+(?=>)",  # the forms of a plural are written anew, with their keys
}
_HARMLESS = (" %s", " {0}", " %1$s é 漢", "\u202e", " a.b.c", "!?", " 1.", " 3 ", "a" * 500, "")
_TOKEN_TEXT = """
< > </ <b> </b> <!-- --> <script> </script> <code> <a "' = &#0; &#xd800; &nbsp; & &#99999999999;
" ' { } {n, plural, other {# %s %1$s \\n \\N [x] : , ; = <g> </g> <x/> msgid msgstr
$ $$ \\[ \\begin{verbatim} \\end{document} \\footnote{ obj endobj << >> stream
[ ]( ) ![ ** _ ` ``` ~~ | --- # > - 1. \\ <div> --> 00:00:00,000 {\\an8} w:p </w:t> <w:t> <w:p/>
<w:fldChar> ]]> <![CDATA[ <!DOCTYPE <?x é 漢 \u202e \ud7ff \ufeff \x00 \x1b \u2028
"""
_TOKENS = _TOKEN_TEXT.split()
_ELEMENTS = ("w:p", "w:r", "w:t", "w:rPr", "w:hyperlink", "w:del", "w:sdt", "w:fldSimple", "w:x")
_EXTRA = [" ", "\n", "\r", "\t", "\n\n", "a" * 500, "<b>" * 50, "[" * 50, "- " * 30, "9" * 5_000]


def documents(kind: str, count: int, seed: int) -> list[bytes]:
    """Return documents of a kind, mutated a little or much."""
    draw = random.Random(f"{kind} {seed}")
    return [_document(kind, draw) for _ in range(count)]


def readable_documents(kind: str, count: int, seed: int) -> list[bytes]:
    """Return documents of a kind that are mutated in their texts alone."""
    draw = random.Random(f"texts of {kind} {seed}")
    return [_mutated_texts(kind, draw) for _ in range(count)]


def _document(kind: str, draw: random.Random) -> bytes:
    text = _GOOD[kind]
    if kind != ".docx":
        return _mutated(text, draw)
    if draw.random() < 0.3:
        return mutated_bytes(_packed(text.encode()), draw)
    if draw.random() < 0.3:
        return _packed(_mutated(text, draw))
    body = "".join(_element(draw, 0) for _ in range(draw.randrange(30)))
    return _packed(f"<w:document {_SCHEMA}>{body}</w:document>".encode())


def _element(draw: random.Random, depth: int) -> str:
    """An element that holds others, text, or the start or the end of a field."""
    if depth > 8 or draw.random() < 0.3:
        kind = draw.choice(("begin", "separate", "end"))
        field = f'<w:fldChar w:fldCharType="{kind}"/>'
        return draw.choice((" one two", "3 &lt; é", "<w:br/>", "<w:tab/>", "<!-- x -->", field))
    name = draw.choice(_ELEMENTS)
    inner = "".join(_element(draw, depth + 1) for _ in range(draw.randrange(5)))
    return f"<{name}>{inner}</{name}>"


def _mutated(text: str, draw: random.Random) -> bytes:
    for _ in range(draw.choice((1, 2, 5, 20, 80))):
        place = draw.randrange(len(text) + 1)
        end = min(len(text), place + draw.choice((0, 1, 5, 40)))
        piece = draw.choice((draw.choice(_TOKENS), draw.choice(_EXTRA), text[place:end] * 3, ""))
        text = text[:place] + piece + text[end:]
    data = text.encode()
    return mutated_bytes(data, draw) if draw.random() < 0.1 else data


def _mutated_texts(kind: str, draw: random.Random) -> bytes:
    """A document that can still be read: more stands behind some words of its texts."""
    text = _GOOD[kind]
    texts = " ".join(texts_of(f"a{kind}", text.encode(), _SETTINGS))
    words = sorted(set(re.findall(r"[A-Za-z]{3,}", texts)))
    for _ in range(draw.choice((1, 2, 5, 20))):
        whole = rf"""(?<=[\s>"(]){draw.choice(words)}(?=[\s<",.)])"""
        ends = [match.end() for match in re.finditer(whole, text)]
        if ends:
            place = draw.choice(ends)
            text = text[:place] + draw.choice(_HARMLESS) + text[place:]
    return text.encode()


def _packed(body: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", body)
    return out.getvalue()


_TRANSLATORS = (
    translator(lambda words: [word.upper() for word in words]),
    translator(lambda words: words[::-1]),
    translator(lambda words: []),
    translator(lambda words: ["<b>", "&", "*x*", "1.", "|", *words]),
    translator(lambda words: words * 3),
)


def _read_again(kind: str, data: bytes) -> None:
    """Raise an error if what was written is not of its kind."""
    if kind in _XML_KINDS:
        ElementTree.fromstring(data)
    elif kind == ".json":
        json.loads(data)


@contextmanager
def _limited() -> Iterator[None]:
    """End what takes too long."""
    signal.alarm(MOST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def _late(*_: object) -> None:
    raise TimeoutError(f"not done within {MOST_SECONDS} seconds")


def run(name: str, kind: str, made: list[bytes], seed: int) -> int:
    """Translate documents of a kind; return how many did what they must not."""
    tally = Tally(name, seed, time.monotonic)
    for number, data in enumerate(made):
        translate = _TRANSLATORS[number % len(_TRANSLATORS)]
        with tally.document(), _limited():
            translated = translate_document(f"a{kind}", data, translate, _SETTINGS)
            _read_again(kind, translated)
            _check_structure(kind, data)
    tally.report()
    return tally.failures


def _check_structure(kind: str, data: bytes) -> None:
    """Raise an error if a translator that changes nothing changes more than what is a translation's
    own: its places in a file of two languages, and the branches of a JSON message."""
    if kind == ".pdf":  # becomes a page
        return
    is_bilingual = kind in _TRANSLATION and kind != ".stringsdict"
    languages = DocumentSettings("en", "ru" if is_bilingual else "")
    before = _structure(kind, data)
    after = _structure(kind, translate_document(f"a{kind}", data, unchanged, languages))
    if before != after:
        place = 0
        while before[place : place + 1] == after[place : place + 1]:
            place += 1
        was, now = (text[max(place - 30, 0) : place + 30] for text in (before, after))
        raise AssertionError(f"bytes are lost at {place}: {was!r} became {now!r}")


def _structure(kind: str, data: bytes) -> bytes:
    """Return a document without what a translation may change."""
    if kind == ".docx":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read("word/document.xml")
    return re.sub(_TRANSLATION.get(kind, "$^").encode(), b"", data)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1_000, help="documents of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=KINDS, help="one kind alone")
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, _late)
    kinds = [given.only] if given.only else KINDS
    failures = 0
    for kind in kinds:
        failures += run(kind, kind, documents(kind, given.count, given.seed), given.seed)
        if kind in STRICT:
            texts = readable_documents(kind, given.count, given.seed)
            failures += run(f"{kind}, its texts", kind, texts, given.seed)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"at most {memory / 1024:.0f} MB of memory")
    sys.exit(failures > 0 or memory > MOST_MEMORY)


if __name__ == "__main__":
    main()
