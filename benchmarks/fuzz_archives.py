"""Mutated documents of the kinds that are zips of XML: each gives a sound document, or a sentence,
and a translator that changes nothing loses no byte of one.

    python benchmarks/fuzz_archives.py --count 40

The documents follow from the seed, so that what fails can be had again: --seed N --only KIND.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.parsers import expat

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import office_files
from fuzzing import Tally, mutated_bytes, translator, unchanged

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import translate_document

MOST_SECONDS = 20  # of CPU, for one document
_TOKENS = """
    < > & </w:t> <w:t> <w:p> </w:p> <a:t> <text:p> </text:p> <si> <t> <b> &#0; &nbsp; &x; ]]>
    <![CDATA[ <!-- --> <!DOCTYPE <?x " ' w:x="" descr="x" é 漢 \u202e \x00 \x1b w:p />
    <w:p/> <text:p/>
"""
_PIECES = [*_TOKENS.split(), " ", "", "a" * 500, "<w:r>" * 50]
# What leaves a file sound, behind the end of any tag.
_SOUND = (
    "<!-- one -->",
    "x &lt; y &amp; z",
    "<![CDATA[one < two]]>",
    "<?one two?>",
    "<w:r><w:t>one two</w:t></w:r>",
    "<w:p><w:r><w:t/></w:r></w:p>",
    "<a:r><a:t>one</a:t></a:r>",
    "<text:p>one <text:span>two</text:span></text:p>",
    "<si><t>one</t></si>",
    "<b/>",
    "<em>one</em>",
)
_SETTINGS = (DocumentSettings(), DocumentSettings("en", "de"), DocumentSettings("en", "ar"))


def word_file() -> bytes:
    """A Word document with runs, a field, a text box and a table."""
    field = "".join(
        f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")
    )
    body = (
        '<w:p><w:pPr><w:jc w:val="left"/></w:pPr><w:r><w:rPr><w:b/><w:lang w:val="en-US"/></w:rPr>'
        f"<w:t>one </w:t></w:r><w:r><w:t>two &amp; three</w:t></w:r>{field}<w:r><w:pict>"
        "<w:txbxContent><w:p><w:r><w:t>four</w:t></w:r></w:p></w:txbxContent></w:pict></w:r></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>five</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    )
    source = f"<w:document {office_files.WORDS}><w:body>{body}</w:body></w:document>"
    return office_files.packed({"word/document.xml": source, "a.png": office_files.PICTURE})


GOOD: dict[str, Callable[[], bytes]] = {
    ".docx": word_file,
    ".pptx": office_files.slides,
    ".xlsx": office_files.workbook,
    ".odt": office_files.open_document,
    ".odp": lambda: office_files.open_document(kind="presentation"),
    ".ods": lambda: office_files.open_document(kind="spreadsheet"),
    ".epub": office_files.book,
}


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return a document with some bytes of the zip changed, or some text of a file in it."""
    if draw.random() < 0.3:
        return mutated_bytes(data, draw)
    files: dict[str, str | bytes] = dict(office_files.unpacked(data))
    names = [name for name in files if name.endswith((".xml", ".xhtml", ".opf", ".ncx"))]
    for _ in range(draw.choice((1, 1, 3))):
        name = draw.choice(names)
        content = files[name]
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
        files[name] = _with_more(text, draw) if draw.random() < 0.6 else _mutated_text(text, draw)
    return office_files.packed(files, stored="mimetype")


def _with_more(text: str, draw: random.Random) -> str:
    """Put something sound behind some tags of the second half, inside of the outermost element."""
    ends = [place + 1 for place, character in enumerate(text) if character == ">"][:-1]
    inner = ends[len(ends) // 2 :]
    for place in sorted(draw.sample(inner, min(len(inner), draw.choice((1, 3, 10)))), reverse=True):
        text = text[:place] + draw.choice(_SOUND) + text[place:]
    return text


def _mutated_text(text: str, draw: random.Random) -> str:
    for _ in range(draw.choice((1, 1, 2, 10))):
        place = draw.randrange(len(text) + 1)
        end = min(len(text), place + draw.choice((0, 0, 1, 5, 40)))
        piece = draw.choice((draw.choice(_PIECES), draw.choice(("x y", "one", " ")), ""))
        text = text[:place] + piece + text[end:]
    return text


TRANSLATORS = (
    translator(lambda words: [word.upper() for word in words]),
    translator(lambda words: words[::-1]),
    translator(lambda words: []),
    translator(lambda words: ["<b>", "&", "]]>", '"', "\x01", *words], bounded=False),
)


def check_sound(before: bytes, after: bytes) -> None:
    """Raise an error if a translation is no zip of the same files, or has XML that was sound before
    and is so no more."""
    for changed in _changed_files(before, after).values():
        _parse(changed)


def check_whole(before: bytes, after: bytes) -> None:
    """Raise an error if a translator that changes nothing has changed a file."""
    changed = _changed_files(before, after)
    if changed:
        raise AssertionError(f"bytes of {list(changed)} are lost")


def _changed_files(before: bytes, after: bytes) -> dict[str, bytes]:
    """Return the files of a zip that are others than before, as they are now."""
    changed: dict[str, bytes] = {}
    if after == before:
        return changed
    with zipfile.ZipFile(io.BytesIO(before)) as old, zipfile.ZipFile(io.BytesIO(after)) as new:
        assert new.namelist() == old.namelist()
        for item in old.infolist():
            try:
                content = old.read(item)
            except Exception:
                continue  # damaged, and copied so
            now = new.read(item.filename)
            if now != content:
                changed[item.filename] = now
    return changed


def _parse(content: bytes) -> None:
    parser = expat.ParserCreate()
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        if error.code != expat.errors.codes[expat.errors.XML_ERROR_UNDEFINED_ENTITY]:
            raise


def run(kind: str, count: int, seed: int) -> int:
    """Translate mutated documents of a kind; return how many did what they must not."""
    draw = random.Random(f"{kind} {seed}")
    good = GOOD[kind]()
    tally = Tally(kind, seed, time.process_time)
    for number in range(count):
        data = mutated(good, draw)
        translate = TRANSLATORS[number % len(TRANSLATORS)]
        settings = _SETTINGS[number % len(_SETTINGS)]
        with tally.document():
            check_sound(data, translate_document(f"a{kind}", data, translate, settings))
            check_whole(data, translate_document(f"a{kind}", data, unchanged))
    tally.failures += tally.slowest > MOST_SECONDS
    tally.report()
    return tally.failures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=40, help="documents of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=GOOD, help="one kind alone")
    given = parser.parse_args()
    kinds = [given.only] if given.only else list(GOOD)
    failures = sum(run(kind, given.count, given.seed) for kind in kinds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"at most {memory / 1024:.0f} MB of memory")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
