"""One small file of each localisation format with all that a format has, and by hand what a
translator that shouts makes of it: the texts between the signs «…» are those to be translated."""

from __future__ import annotations

import re

_MARKED = re.compile("«([^«»]*)»", re.DOTALL)

# Texts that are to be translated stand in «»; what a target language adds is in ADDED.
MARKED = {
    ".po": """# Translators, keep this.
msgid ""
msgstr ""
"Project-Id-Version: demo 1.0\\n"
"Language: de\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

#: main.c:12
msgctxt "menu"
msgid "Open"
msgstr "Öffnen"

#~ msgid "Gone"
#~ msgstr "Weg"
""",
    ".json": r"""{
    "title" :  "«Hello there»",
    "nested": { "a": ["«One»", 2, true, null, "«It's caf\u00e9»"],   "Key name": "«two\nlines»" },
    "id": "some_id", "link": "https://example.org/x", "empty": "", "n": -1.5e3,
    "icu": "{n, plural, one {# «file»} other {# «files»}}",
    "named": "«Hi» {name}, {{count}} «of» $t(key)"
}
""",
    ".arb": """{
  "@@locale": "en",
  "hello": "«Hello» {name}!",
  "@hello": {"description": "A greeting", "placeholders": {"name": {"example": "Bob"}}}
}
""",
    ".yaml": """# keep this comment
en:  # the language
  title: &anchor «Hello world»   # a comment
  "quoted key": "«A tab» \\" «and»: «colon»"
  single: 'It''s fine'
  numbers: [1, 2.5, true, ~, 2020-01-01]
  flow: {a: «one thing», b: "«two»"}
  literal: |
    «First line»
      indented code stays
    «second line»

  folded: >-
    «A folded text.»

    «Another one.»
  alias: *anchor
  tagged: !ruby/symbol stays
""",
    ".properties": """# a comment
! another
greeting=«Hello» {0}
spaced : «Some text»
long = «one line»\\n\\
       «the next»
key\\ with\\ space «value here»
empty=
flag=some_id
""",
    ".strings": """/* A comment with "quotes" */
"key" = "«Hello» \\"%@\\"\\n«next line»";
unquoted.key = "«Text»"; // behind
""",
    ".stringsdict": """<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0">
<dict>
  <key>files</key>
  <dict>
    <key>NSStringLocalizedFormatKey</key>
    <string>«Found» %#@n@</string>
    <key>n</key>
    <dict>
      <key>NSStringFormatSpecTypeKey</key>
      <string>NSStringPluralRuleType</string>
      <key>one</key>
      <string>%d «file»</string>
      <key>other</key>
      <string>%d «files»</string>
    </dict>
  </dict>
</dict>
</plist>
""",
    ".xml": """<?xml version="1.0" encoding="utf-8"?>
<!-- a comment -->
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <string name="app" translatable="false">App</string>
    <string name="a">«Don\\'t» <b>«stop»</b> %1$s &amp; «go»\\n«Next»</string>
    <string name="b">@string/a</string>
    <string name="c"><![CDATA[<p>«Hello» <b>«you»</b></p>]]></string>
    <string name="d">"«It's»"</string>
    <string name="e">«Hi» <xliff:g id="x" example="Bob">%s</xliff:g>!</string>
    <plurals name="n">
        <item quantity="one">%d «file»</item>
        <item quantity="other">%d «files»</item>
    </plurals>
    <string-array name="arr"><item>«One»</item><item>«Two»</item></string-array>
    <color name="red">#ff0000</color>
</resources>
""",
    ".csv": """id,name,text,"long text",url
1,bob_1,«Hello there»,"«He said» ""«no»"", «then left»",https://a.b
2,ann_2,«Good bye»,"«Two»
«lines»",https://c.d
""",
    ".tsv": 'id\ttext\r\n1\t«Hello there»\r\n2\t«So "long" then»\r\n',
    ".tex": r"""\documentclass{article} % keep
\title{«A» \emph{«great»} «paper»}
\author{Nobody Special}
\begin{document}
\maketitle
\section*{«The first»\label{sec:a}}
«We show that» $E=mc^2$ «holds»~\cite{a,b} «for» 50\% «of» ``«cases»'' % a comment
«in» \textbf{«all of» \emph{«them»}}, «see»~\ref{fig:x}.\footnote{«A note».}

\begin{itemize}
  \item «First thing»
  \item[b)] «Second thing»
\end{itemize}
\begin{equation}
  a = b \text{not this}
\end{equation}
\begin{tabular}{ll}
«Name» & «Value» \\ \hline
\end{tabular}
\begin{figure}[ht]
\includegraphics[width=3cm]{picture.png}
\caption[short]{«A caption»}
\end{figure}
\begin{verbatim}
keep \this
\end{verbatim}
\end{document}
trailing text
""",
    ".xlf": "",
    ".tmx": "",
}

XLIFF_12 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file source-language="en" datatype="plaintext" original="a.txt">
    <body>
      <trans-unit id="1">
        <source>Click <g id="1">the big <x id="2"/>button</g> &amp; go, %s</source>
      </trans-unit>
      <trans-unit id="2"><source>Done</source><target state="new">Done</target></trans-unit>
      <trans-unit id="3"><source>Fine</source><target>Gut</target></trans-unit>
      <trans-unit id="4" translate="no"><source>Keep</source></trans-unit>
      <trans-unit id="5" approved="yes"><source>Old</source><target/></trans-unit>
      <group translate="no"><trans-unit id="6"><source>Keep too</source></trans-unit></group>
      <trans-unit id="7" xml:space="preserve"><source>one <bpt id="1">b</bpt>two<ept id="1">e</ept>
three</source><target/><note>a note</note></trans-unit>
    </body>
  </file>
</xliff>
"""
_STATE = 'state="needs-review-translation" state-qualifier="mt-suggestion"'
XLIFF_12_DONE = (
    XLIFF_12.replace('original="a.txt"', 'original="a.txt" target-language="de"')
    .replace(
        "go, %s</source>",
        "go, %s</source>\n        "
        f'<target {_STATE}>CLICK <g id="1">THE BIG <x id="2"/>BUTTON</g> &amp; GO, %s</target>',
    )
    .replace('<target state="new">Done', f"<target {_STATE}>DONE")
    .replace(
        "three</source><target/>",
        f'three</source><target {_STATE}>ONE <bpt id="1">b</bpt>TWO<ept id="1">e</ept>\n'
        "THREE</target>",
    )
)
XLIFF_20 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
 <file id="f1"><unit id="u1"><originalData><data id="d1">&lt;br></data></originalData>
   <segment id="s1">
     <source>Hello <pc id="1">dear</pc> <ph id="2" dataRef="d1"/>world</source>
   </segment><ignorable><source> </source></ignorable>
   <segment state="final"><source>Hi</source><target>Hallo</target></segment>
 </unit></file>
</xliff>
"""
XLIFF_20_DONE = (
    XLIFF_20.replace('srcLang="en"', 'srcLang="en" trgLang="de"')
    .replace('<segment id="s1">', '<segment id="s1" state="translated">')
    .replace(
        "world</source>",
        "world</source>\n     "
        '<target>HELLO <pc id="1">DEAR</pc> <ph id="2" dataRef="d1"/>WORLD</target>',
    )
)
TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
  <tu><prop type="x">p</prop>
    <tuv xml:lang="en-US"><seg>Hello <hi>big</hi> world</seg></tuv>
  </tu>
  <tu><tuv xml:lang="en"><seg>One</seg></tuv><tuv xml:lang="de"><seg/></tuv></tu>
  <tu><tuv xml:lang="en"><seg>Two</seg></tuv><tuv xml:lang="de-AT"><seg>Zwei</seg></tuv></tu>
  <tu><tuv xml:lang="fr"><seg>Trois</seg></tuv></tu>
</body></tmx>
"""
TMX_DONE = TMX.replace(
    "world</seg></tuv>",
    'world</seg></tuv>\n    <tuv xml:lang="de"><seg>HELLO <hi>BIG</hi> WORLD</seg></tuv>',
).replace("<seg/>", "<seg>ONE</seg>")


def source(kind: str) -> str:
    """Return the file of a kind as it is given."""
    others = {".xlf": XLIFF_12, ".tmx": TMX}
    return others.get(kind) or _MARKED.sub(r"\1", MARKED[kind])


def shouted(kind: str) -> str:
    """Return the file of a kind as it must come out, in German, of a translator that shouts."""
    done = {".xlf": XLIFF_12_DONE, ".tmx": TMX_DONE}
    text = done.get(kind) or _MARKED.sub(lambda match: _upper(match[1]), MARKED[kind])
    if kind == ".arb":
        text = text.replace('"@@locale": "en"', '"@@locale": "de"')
    if kind == ".yaml":
        text = text.replace("\nen:", "\nde:").replace("It''s fine", "IT''S FINE")
    return text


def _upper(text: str) -> str:
    """Capitals, but the letters of escapes as they are."""
    pieces = re.split(r"(\\u[0-9a-f]{4}|\\.)", text)
    return "".join(
        piece if number % 2 else piece.upper() for number, piece in enumerate(pieces)
    ).replace("\\u00e9", "\\u00c9")
