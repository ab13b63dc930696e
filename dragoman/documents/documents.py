"""Documents in, the same kind out: .txt, .md, .html, .srt and .docx, their structure as it was and
their text translated.

A paragraph is one text for the translator, whatever marks (tags, emphasis, runs) stand in it; they
are put back around the words that the alignment names. What is not text is copied from the source,
never written anew. Knows no model and no server.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from html import unescape
from io import BytesIO
from itertools import accumulate, groupby
from pathlib import PurePath
from typing import Any
from xml.parsers import expat

from dragoman.errors import InputError, MissingDependencyError
from dragoman.tasks.translation import Translation
from dragoman.text.markup import rewritten
from dragoman.text.markup_transfer import MOST, Answer, Ask
from dragoman.text.spans import Span

Translate = Callable[[list[str]], list[Translation]]  # with the alignment

KINDS: tuple[str, ...] = (".txt", ".md", ".html", ".srt", ".docx")
MAX_BYTES = 10 * 2**20
MAX_UNPACKED = 50 * 2**20  # of a .docx, which is a zip

_INLINE = "<!-- &nbsp; a abbr b bdi bdo big br cite code data del dfn em font i img ins kbd mark q s samp small span strike"
_INLINE_TAGS = {*_INLINE.split(), "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"}
_EMPTY_TAGS = {
    "area",
    "base",
    "br",
    "col",
    "embed",
    "hr",
    "img",
    "input",
    "link",
    "meta",
    "source",
    "track",
    "wbr",
}
_BREAKS = {"br", "w:br", "w:cr", "w:tab"}
# What is in these is not translated: HTML's, and Word's. In the raw ones no tags are looked for.
_KEPT = "code kbd math pre samp svg tt var w:ppr w:rpr w:del w:drawing w:pict w:object w:fldsimple mc:alternatecontent m:omath"
_KEPT_TAGS = {*_KEPT.split(), "m:omathpara"}
_RAW_TAGS = {"script", "style", "textarea"}
_WORD_TEXT = '<w:t xml:space="preserve">'
_NO = re.compile(
    r"""\s(?:translate\s*=\s*["']?no\b|class\s*=\s*(?:["'][^"'>]*)?\bnotranslate\b)""",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(\s*=\s*)(?:(["'])(.*?)\3|[^\s"'>]+)""", re.DOTALL)
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|\w+);")
# A tag that does not end is no text either; and as something always matches, no search is begun
# again and again.
_TAG = re.compile(
    r"(&nbsp;)|<!--.*?(?:-->|\Z)|<(script|style|textarea)\b.*?(?:</\2\s*>|\Z)"
    r"""|<(/?[a-z][^\s/<>]*)(?:[^<>"']|"[^"]*"|'[^']*')*>|<[a-z/!?][^<>]*(?:>|(?=<)|\Z)""",
    re.DOTALL | re.IGNORECASE,
)
_SUBTITLE_MARK = re.compile(r"()()<(/?[a-zA-Z]\w*)[^<>]*>|\{[^{}]*\}")
_MARKDOWN_MARK = re.compile(
    r"()<!--.*?-->|(`+)(?!`).{1,999}?(?<!`)\2(?!`)|<(/?[a-zA-Z][\w-]*)(?:[\s/][^<>]*)?>|<[^<>\s]+>|\\[!-/:-@\[-`{-~]"
    r"|!\[[^\[\]]*\]\([^()]*\)|\[[^\[\]]*\](?:\[\])?(?![\[(])|\[|\]\((?:[^()]|\([^()]*\))*\)|\](?:\[[^\[\]]*\])?"
    r"|\*+|(?<!\w)_+|_+(?!\w)|~~|(?: {2,}|\\)\n",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(?=[!-/:-@\[-`{-~])|&(?=#?\w+;)")
_SPECIAL = re.compile(r"[\\`*_{}\[\]()#+\-.!<>|~&]")
_TIMES = r"[ \t]*\d+:\d\d:\d\d[,.]\d+[ \t]*-->[^\r\n]*(?:\r\n|\r|\n)"
_CUE = re.compile(
    rf"^({_TIMES})((?:(?!\d+\s*[\r\n]+{_TIMES})[ \t]*[^\s][^\r\n]*(?:\r\n|\r|\n|\Z))+)",
    re.MULTILINE,
)
_LINE_END = re.compile(r"(\r\n|\r|\n)")
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*?\n)??(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_WORD_PART = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")


def translate_document(name: str, data: bytes, translate: Translate) -> bytes:
    """The file with its text translated. `name` tells its kind; text is UTF-8. All texts are
    translated in one call."""
    kind = PurePath(name).suffix.lower()
    if kind not in KINDS:
        raise InputError(
            f"{name} is no document that can be translated; give one that ends in {', '.join(KINDS)}"
        )
    if not data.strip() or len(data) > MAX_BYTES:
        raise InputError(
            f"{name} has {len(data):,} bytes; give a document that has text and at most {MAX_BYTES:,} bytes"
        )
    found: dict[str, Answer] = {}
    _rewrite(
        name, kind, data, lambda text: found.setdefault(text, (text, ()))
    )  # only to learn which texts there are
    for text, translation in zip(found, translate(list(found)) if found else [], strict=True):
        found[text] = translation.text, translation.alignment
    return _rewrite(name, kind, data, found.__getitem__)


def _rewrite(name: str, kind: str, data: bytes, ask: Ask) -> bytes:
    try:
        if kind == ".docx":
            return _docx(data, ask)
        text = data.decode("utf-8").removeprefix("\ufeff")
        write = {".txt": _plain, ".md": _markdown, ".html": _html, ".srt": _subtitles}[kind]
        return data[: len(data) - len(text.encode())] + write(text, ask).encode("utf-8", "replace")
    except ImportError as error:
        raise MissingDependencyError(
            f'{kind} needs {error.name}: pip install "dragoman[serve]"'
        ) from None
    except (
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
        expat.ExpatError,
        EOFError,
        RuntimeError,
    ) as error:
        raise InputError(
            f"{name} is no {kind} that can be read ({error}); save it anew, text as UTF-8"
        ) from None


def _spans(source: str, pattern: re.Pattern[str], read: Callable[[str], str]) -> Iterator[Span]:
    """The source in spans, with each element that is not translated as one void."""
    at, depth = 0, 0
    held: list[Span] = []
    for found in [*pattern.finditer(source), None]:
        text = source[at : found.start() if found else None]
        at = found.end() if found else at
        for span in [Span("text", read(text), text)] * bool(text) + (
            [_mark(found)] if found else []
        ):
            held.append(span)
            depth += ((span.kind == "open") - (span.kind == "close")) * (
                held[0].keep and span.name == held[0].name
            )
            if not depth:
                yield _joined(held) if held[0].keep else span
                held = []
    if held:
        yield _joined(held)


def _joined(held: Sequence[Span]) -> Span:
    # As one word, which is aligned as one; what is in an element of Word's is not to be read.
    text = "_".join("".join(span.text for span in held if span.kind == "text").split())
    return Span(
        "kept",
        "" if ":" in held[0].name else text,
        "".join(span.raw for span in held),
        name=held[0].name,
    )


def _mark(found: re.Match[str]) -> Span:
    raw = found[0]
    if found[3]:
        name = found[3].lower().lstrip("/")
        kind = (
            "close"
            if raw[1] == "/"
            else "void"
            if name in _EMPTY_TAGS or raw.endswith("/>")
            else "open"
        )
        keep = kind == "open" and (name in _KEPT_TAGS or bool(_NO.search(raw)))
        return Span(kind, " " if name in _BREAKS else "", raw, name=name, keep=keep)
    if raw[0] == "\\" and raw[1] != "\n":
        return Span("text", raw[1], raw)
    if raw == "[" or raw[0] in "]*_~":
        return Span(
            "open" if raw == "[" else "close" if raw[0] == "]" else "turn",
            raw=raw,
            name="[" if raw[0] in "[]" else raw,
        )
    seen = (
        raw.strip("`[]")
        if raw[0] == "`" or (raw[0] == "[" and len(raw) > 3 and raw[1] != "^")
        else ""
    )
    text = " " if raw[-1] == "\n" or raw == "&nbsp;" else "_".join(seen.split())
    return Span("void", text, raw, name=found[1] or found[2] or raw[:4])


def _said(text: str, ask: Ask) -> str:
    body = text.strip()
    return (
        text.replace(body, ask(body)[0]) if any(character.isalpha() for character in body) else text
    )


def _plain(source: str, ask: Ask) -> str:
    return "".join(_said(part, ask) for part in _LINE_END.split(source))


def _html(source: str, ask: Ask) -> str:
    escapes = _escapes(source)

    def attribute(found: re.Match[str]) -> str:
        text = unescape(found[4] or "")
        made = _said(text, ask) if found[1].lower() in ("alt", "title") else text
        written = found[1] + found[2] + '"' + made.translate(escapes | {34: "&quot;"}) + '"'
        return found[0] if made == text else written

    def spans() -> Iterator[Span]:
        for span in _spans(source, _TAG, unescape):
            tag = (
                span.kind in ("open", "void")
                and span.raw[1:2].isalpha()
                and span.name not in _RAW_TAGS
            )
            yield replace(span, raw=_ATTRIBUTE.sub(attribute, span.raw)) if tag else span

    return _blocks(
        spans(),
        lambda s: s.kind == "text" or s.name in _INLINE_TAGS,
        ask,
        lambda s: s.text.translate(escapes),
    )


def _escapes(source: str) -> dict[int, str | None]:
    """How characters are written: as the source's own entities, where it has some; those of
    control not at all."""
    entities = {unescape(entity): entity for entity in sorted({*_ENTITY.findall(source)})}
    own = {ord(character): entity for character, entity in entities.items() if len(character) == 1}
    return {**dict.fromkeys(range(32)), 38: "&amp;", 60: "&lt;", 62: "&gt;", **own}


def _blocks(
    spans: Iterable[Span], inline: Callable[[Span], bool], ask: Ask, write: Callable[[Span], str]
) -> str:
    """What is inline and stands together is a paragraph."""
    out: list[str] = []
    for _, group in groupby(spans, inline):
        paragraph = list(group)
        parts = [paragraph[start : start + MOST] for start in range(0, len(paragraph), MOST)]
        out += [
            rewritten(part, ask, write) if inline(part[0]) else "".join(span.raw for span in part)
            for part in parts
        ]
    return "".join(out)


def _subtitles(source: str, ask: Ask) -> str:
    if not _CUE.search(source):
        raise ValueError("it has no cue with times and text")

    def cue(found: re.Match[str]) -> str:
        body = found[2].rstrip("\r\n")
        made = rewritten([*_spans(body, _SUBTITLE_MARK, str)], ask, lambda span: span.text)
        lines, end = _LINE_END.split(body)[::2], _LINE_END.search(found[0])
        broken = body if made == body else (end[0] if end else "\n").join(_broken(made, lines))
        return found[1] + broken + found[2][len(body) :]

    return _CUE.sub(cue, source)


def _broken(text: str, lines: Sequence[str]) -> list[str]:
    """In as many lines, each about as large a part as it was, if possible cut at punctuation;
    fewer for want of words."""
    cuts = [
        found.start() for found in re.finditer(r"<[^<>]*>|\{[^{}]*\}| ", text) if found[0] == " "
    ]
    chosen = [0]
    for left, size in zip(range(len(lines) - 1, 0, -1), accumulate(map(len, lines)), strict=False):
        room = [cut for cut in cuts if cut > chosen[-1]]
        wanted = size / sum(map(len, lines)) * len(text)
        costs = {
            cut: abs(cut - wanted) - 6 * (text[cut - 1] in ".,;:!?…" or text[cut + 1] in "-–")
            for cut in room
        }
        chosen += (
            [min(room[: max(1, len(room) - left + 1)], key=lambda cut: costs[cut])] if room else []
        )
    return [text[a:b].strip() for a, b in zip(chosen, [*chosen[1:], None], strict=True)]


def _markdown(source: str, ask: Ask) -> str:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    front = _FRONT_MATTER.match(source)
    start = front.end() if front else 0
    env: dict[str, Any] = {}
    parts = _LINE_END.split(source[start:])  # line, end, line, ...
    before, done = "", (0, 0)  # the last row and column of a cell
    for token in parser.parse(source[start:], env):
        row, end = (2 * line for line in token.map or (0, 0))
        if token.type == "html_block" and not token.level:
            made = _html("".join(parts[row:end]), ask)
            if [block.type for block in parser.parse(made)] == ["html_block"]:
                parts[row:end] = [made] + [""] * (len(parts[row:end]) - 1)
        elif token.type == "inline":
            cell = before in ("td_open", "th_open")
            lines = token.content.split("\n")
            rows = parts[row : row + 2 * len(lines) : 2]
            column = (
                rows[0].find(lines[0], done[1] * (done[0] == row))
                if cell
                else rows[0].rfind(lines[0])
            )
            if column >= 0 and all(
                a.rstrip().endswith(b.rstrip()) for a, b in zip(rows[1:], lines[1:], strict=False)
            ):
                made = _markdown_text(token.content, cell, parser, env, ask)
                done = (row, column + len(made))
                if made != token.content:
                    last = rows[-1]
                    tail = (
                        last[len(last.rstrip()) :] if rows[1:] else last[column + len(lines[0]) :]
                    )
                    joint = (
                        parts[row + 1] + rows[1][: len(rows[1].rstrip()) - len(lines[1].rstrip())]
                        if rows[1:]
                        else ""
                    )
                    new = rows[0][:column] + made.replace("\n", joint) + tail
                    parts[row : row + 2 * len(lines) - 1] = [new] + [""] * (2 * len(lines) - 2)
        before = token.type
    return source[:start] + "".join(parts)


def _markdown_text(content: str, cell: bool, parser: Any, env: Any, ask: Ask) -> str:
    """Checked by parsing it: what would change the form of the document, even if escaped, is
    left as it was."""

    def shape(text: str) -> tuple[list[str], set[str]]:
        blocks = parser.parse(text, env)
        inner = [
            (one.type, one.attrs, one.type != "image" and one.content)
            for block in blocks
            for one in block.children or []
        ]
        return [block.type for block in blocks], {
            str(one) for one in inner if one[0] not in ("text", "softbreak")
        }

    spans = [*_spans(content, _MARKDOWN_MARK, unescape)]
    for n, span in enumerate(spans):
        if span.raw.startswith("!["):
            alt, bracket, rest = span.raw[2:].partition("]")
            spans[n] = replace(span, raw="![" + _said(alt, ask) + bracket + rest)
    for special in (_ESCAPED, _SPECIAL):
        made = rewritten(spans, ask, partial(_escaped, special))
        if made == content or (
            shape(made) == shape(content) and not (cell and "|" in made.replace("\\|", ""))
        ):
            return made
    return content


def _escaped(special: re.Pattern[str], span: Span) -> str:
    return special.sub(r"\\\g<0>", span.text)


def _docx(data: bytes, ask: Ask) -> bytes:
    out = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(data)) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        if sum(item.file_size for item in old.infolist()) > MAX_UNPACKED:
            raise ValueError(f"it unpacks to more than {MAX_UNPACKED:,} bytes")
        if "word/document.xml" not in old.namelist():
            raise ValueError("it has no word/document.xml")
        for item in old.infolist():
            content = old.read(item)
            new.writestr(
                item, _word(content, ask) if _WORD_PART.fullmatch(item.filename) else content
            )
    return out.getvalue()


def _word(data: bytes, ask: Ask) -> bytes:
    def refuse(*_: object) -> None:
        raise ValueError("it declares entities")

    checker = expat.ParserCreate()
    checker.StartDoctypeDeclHandler = refuse
    checker.Parse(data, True)
    source = data.decode("utf-8")
    escapes = _escapes(source)

    def write(span: Span) -> str:
        text, opened = span.text.translate(escapes), [mark[0] for mark in span.marks]
        if _WORD_TEXT in opened:
            return text
        text = f"{_WORD_TEXT}{text}</w:t>"
        return text if any(one.startswith("<w:r") for one in opened) else f"<w:r>{text}</w:r>"

    spans = _runs(_spans(source, _TAG, unescape))
    return _blocks(
        spans, lambda span: span.name not in ("w:p", "w:sdt", "w:sdtcontent"), ask, write
    ).encode("utf-8", "replace")


def _runs(spans: Iterable[Span]) -> Iterator[Span]:
    """Text is only what stands in w:t. A run opens with its properties. A field, of several
    runs, is kept as it is."""
    held: list[Span] = []
    last, depth = "", 0
    for span in spans:
        if span.kind == "text" and last != "w:t":
            span = replace(span, kind="void", text="")
        last = span.name if span.kind == "open" else ""
        held.append(replace(span, text=_WORD_TEXT) if last == "w:t" else span)
        if span.name == "w:rpr" and len(held) == 2:
            held = [replace(held[0], raw=held[0].raw + span.raw)]
        depth += ('"begin"' in span.raw) - ('"end"' in span.raw) if span.name == "w:fldchar" else 0
        whole = (
            held[0].name != "w:r"
            or held[0].kind != "open"
            or (span.name == "w:r" and span.kind == "close")
        )
        if span.name == "w:p" or (whole and depth <= 0):
            field = any(one.name == "w:fldchar" for one in held)
            yield from [replace(_joined(held), name="")] if field else held
            held, depth = [], 0
    yield from held
