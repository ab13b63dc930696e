"""The programs that people open their files with judge what was translated: LibreOffice, epubcheck,
msgfmt, xmllint and ffmpeg. Where a program is absent, its tests skip and say which one."""

from __future__ import annotations

import importlib
import io
import random
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import golden
import pytest
from whole_documents import LANGUAGES, MARKED_CATALOGUE, SUBTITLES, OfficeText, epub

from dragoman.documents.bilingual import write_bilingual
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import translate_document
from dragoman.documents.file_translation import Place, translate_place
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translation import Translation

pypdf = pytest.importorskip("pypdf")
GERMAN = DocumentSettings("en", "de")
OFFICE_KINDS = (".docx", ".odt", ".pptx", ".odp", ".xlsx", ".ods")
MUTATED = 40
# Libraries make the first of each two; LibreOffice makes the second from it.
OPEN_KINDS = {".docx": "odt", ".pptx": "odp", ".xlsx": "ods"}


def program(name: str) -> str:
    """Return where a program is, or skip."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def swap(texts: list[str]) -> list[Translation]:
    """The words in reverse and in capitals, each aligned with where it came from."""
    made = []
    for text in texts:
        words = text.upper().split()
        pairs = tuple((len(words) - 1 - place, place) for place in range(len(words)))
        made.append(Translation(" ".join(words[::-1]), alignment=pairs))
    return made


def shout(texts: list[str]) -> list[Translation]:
    made = []
    for text in texts:
        pairs = tuple((place, place) for place in range(len(text.split())))
        made.append(Translation(text.upper(), alignment=pairs))
    return made


# LibreOffice


class LibreOffice:
    """The program without its windows, with settings of its own."""

    def __init__(self, folder: Path) -> None:
        self.program = program("soffice")
        self.folder = folder

    def convert(self, files: list[Path], kind: str) -> list[Path]:
        """Open files and save them as another kind; all have to be there afterwards."""
        out = self.folder / f"as-{kind}"
        home = f"-env:UserInstallation={(self.folder / 'settings').as_uri()}"
        how = ["--headless", "--convert-to", kind, "--outdir", str(out)]
        said = run(self.program, home, *how, *files)
        made = [out / f"{file.stem}.{kind}" for file in files]
        missing = [path.name for path in made if not path.exists()]
        assert not missing, said.stderr
        return made

    def words(self, files: list[Path]) -> list[list[str]]:
        """Return the words that it prints of each file."""
        printed = []
        for path in self.convert(files, "pdf"):
            pages = pypdf.PdfReader(path).pages
            printed.append(" ".join(page.extract_text() for page in pages).split())
        return printed


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> LibreOffice:
    return LibreOffice(tmp_path_factory.mktemp("office"))


def written(office: LibreOffice, seeds: range) -> dict[Path, OfficeText]:
    """Documents of all six kinds, one for each seed."""
    files: dict[Path, OfficeText] = {}
    for kind, open_kind in OPEN_KINDS.items():
        of_kind: dict[Path, OfficeText] = {}
        for seed in seeds:
            text = OfficeText(random.Random(seed))
            path = office.folder / f"{kind[1:]}-{seed}{kind}"
            path.write_bytes(text.document(kind))
            of_kind[path] = text
        saved = office.convert(list(of_kind), open_kind)
        of_kind |= dict(zip(saved, of_kind.values(), strict=True))
        files |= of_kind
    return files


def opened(office: LibreOffice, files: dict[Path, OfficeText]) -> Iterator[tuple[str, OfficeText]]:
    """Translate documents and yield all that LibreOffice prints of each, in no order of words."""
    translations: dict[Path, OfficeText] = {}
    for path, text in files.items():
        made = translate_document(path.name, path.read_bytes(), shout, GERMAN)
        new = office.folder / "translated" / f"{path.stem}-{path.suffix[1:]}{path.suffix}"
        new.parent.mkdir(exist_ok=True)
        new.write_bytes(made)
        translations[new] = text
    printed = office.words(list(translations))
    for words, text in zip(printed, translations.values(), strict=True):
        yield " ".join(words), text


def test_office_documents_open_and_show_their_translation(office: LibreOffice) -> None:
    files = written(office, range(1))
    assert {path.suffix for path in files} == set(OFFICE_KINDS)
    for printed, text in opened(office, files):
        for word in text.words:
            assert word.upper() in printed
            assert word not in printed


@pytest.mark.slow
def test_varied_office_documents_open(tmp_path: Path) -> None:
    office = LibreOffice(tmp_path)
    files = written(office, range(1, MUTATED + 1))
    assert len(files) == MUTATED * len(OFFICE_KINDS)
    for printed, text in opened(office, files):
        missing = [word for word in text.words if word.upper() not in printed]
        assert missing == []


# Books


def test_epubcheck_finds_nothing_in_a_book(tmp_path: Path) -> None:
    """In Arabic, since then pages get a direction too."""
    checker: list[str | Path] = [program("epubcheck")]
    if Path(checker[0]).read_bytes()[:2] == b"PK":  # Debian's is the archive of Java itself
        checker = [program("java"), "-jar", checker[0]]
    settings = DocumentSettings("en", "ar")
    path = tmp_path / "book.epub"
    path.write_bytes(translate_document("book.epub", epub(), swap, settings))
    said = run(*checker, path)
    assert said.returncode == 0, said.stderr
    assert "No errors or warnings detected" in said.stdout


# Messages of programs


@pytest.mark.parametrize("language", LANGUAGES)
def test_msgfmt_compiles_a_catalogue(tmp_path: Path, language: str) -> None:
    compiler = program("msgfmt")
    settings = DocumentSettings("en", language)
    path = tmp_path / "messages.po"
    path.write_bytes(translate_document("a.pot", MARKED_CATALOGUE.encode(), shout, settings))
    said = run(compiler, "--check", "--statistics", "-o", tmp_path / "messages.mo", path)
    assert (said.returncode, said.stderr) == (0, "5 translated messages.\n")


@pytest.mark.parametrize(
    ("name", "source"),
    [("xliff_1_2.rng", golden.XLIFF_12), ("xliff_2_0.rng", golden.XLIFF_20)],
)
def test_xliff_keeps_to_its_grammar(tmp_path: Path, name: str, source: str) -> None:
    checker = program("xmllint")
    grammar = Path(__file__).with_name(name)
    for number, text in enumerate((source, translated("a.xlf", source))):
        path = tmp_path / f"{number}.xlf"
        path.write_text(text)
        said = run(checker, "--noout", "--relaxng", grammar, path)
        assert said.returncode == 0, said.stderr
    wrong = tmp_path / "wrong.xlf"
    wrong.write_text(translated("a.xlf", source).replace("<target", "<note>x</note><target", 1))
    assert run(checker, "--noout", "--relaxng", grammar, wrong).returncode != 0


@pytest.mark.parametrize("kind", [".xlf", ".tmx", ".xml", ".stringsdict"])
def test_xmllint_reads_every_kind_of_xml(tmp_path: Path, kind: str) -> None:
    checker = program("xmllint")
    path = tmp_path / f"a{kind}"
    path.write_text(translated(path.name, golden.source(kind)))
    said = run(checker, "--noout", "--nonet", path)
    assert (said.returncode, said.stderr) == (0, "")


def translated(name: str, text: str) -> str:
    return translate_document(name, text.encode(), shout, GERMAN).decode()


# Subtitles


@pytest.mark.parametrize("kind", SUBTITLES)
def test_ffmpeg_reads_the_same_times(tmp_path: Path, kind: str) -> None:
    player = program("ffmpeg")
    source = SUBTITLES[kind]

    def read(name: str, text: str) -> list[tuple[str, str]]:
        path = tmp_path / f"{name}{kind}"
        path.write_text(text)
        said = run(player, "-v", "error", "-i", path, "-f", "srt", "-")
        assert (said.returncode, said.stderr) == (0, "")
        cues = [cue.split("\n", 2) for cue in said.stdout.strip().split("\n\n")]
        return [(times, body) for _, times, body in cues]

    before = read("before", source)
    after = read("after", translated(f"a{kind}", source))
    assert len(before) == 3
    assert [times for times, _ in after] == [times for times, _ in before]
    assert [_spoken(body) for _, body in after] == [_spoken(body).upper() for _, body in before]


def _spoken(body: str) -> str:
    """The words of a cue, without its tags and lines."""
    parts = body.replace(">", "<").split("<")[::2]
    return " ".join("".join(parts).split())


OMEGAT_PROJECT = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<omegat><project version="1.0">
<source_dir>__DEFAULT__</source_dir><target_dir>__DEFAULT__</target_dir>
<tm_dir>__DEFAULT__</tm_dir><glossary_dir>__DEFAULT__</glossary_dir>
<glossary_file>__DEFAULT__</glossary_file><dictionary_dir>__DEFAULT__</dictionary_dir>
<source_lang>EN</source_lang><target_lang>DE</target_lang>
<sentence_seg>false</sentence_seg>
<support_default_translations>true</support_default_translations>
<remove_tags>false</remove_tags>
</project></omegat>
"""


class Shouting:
    """Stands for a `Translator`."""

    def stream(self, lines: Iterable[str], request: TranslateRequest) -> Iterator[Translation]:
        yield from shout(list(lines))


def test_omegat_fills_a_project_from_the_side_file(tmp_path: Path) -> None:
    omegat = program("omegat")
    project = tmp_path / "project"
    for name in ("source", "target", "omegat", "tm/auto", "glossary", "dictionary"):
        (project / name).mkdir(parents=True)
    (project / "omegat.project").write_text(OMEGAT_PROJECT, encoding="utf-8")
    texts = {"a.txt": "One & two <three>.\n\nFour, é five\n", "b.txt": 'Six "seven"\n'}
    done = []
    for name, text in texts.items():
        source = project / "source" / name
        source.write_text(text, encoding="utf-8")
        place = Place(source, tmp_path / name)
        done.append(translate_place(place, Shouting, TranslateRequest(), GERMAN))
    write_bilingual(project / "tm" / "auto" / "dragoman.tmx", done, GERMAN)
    settings = f"--config-dir={tmp_path / 'settings'}"
    said = run(omegat, project, "--mode=console-translate", "--quiet", settings)
    assert said.returncode == 0, said.stdout + said.stderr
    made = {name: (project / "target" / name).read_text(encoding="utf-8") for name in texts}
    assert made == {
        "a.txt": "ONE & TWO <THREE>.\n\nFOUR, É FIVE\n",
        "b.txt": 'SIX "SEVEN"\n',
    }


def test_other_readers_of_subtitles_agree(tmp_path: Path) -> None:
    pysubs2: Any = pytest.importorskip("pysubs2")
    webvtt: Any = pytest.importorskip("webvtt")
    for kind in (".srt", ".ass"):
        before = pysubs2.SSAFile.from_string(SUBTITLES[kind])
        after = pysubs2.SSAFile.from_string(translated(f"a{kind}", SUBTITLES[kind]))
        times = [(event.start, event.end, event.style) for event in before]
        assert [(event.start, event.end, event.style) for event in after] == times
        heard = [" ".join(event.plaintext.split()).upper() for event in before]
        assert [" ".join(event.plaintext.split()) for event in after] == heard
    cues = webvtt.from_buffer(io.StringIO(translated("a.vtt", SUBTITLES[".vtt"])))
    assert [cue.start for cue in cues] == ["00:00:01.000", "00:00:03.500", "00:00:06.000"]
    assert [" ".join(cue.text.split()) for cue in cues] == [
        "GOOD MORNING TO YOU.",
        "WHERE HAVE YOU BEEN SO LONG?",
        "NOWHERE AT ALL.",
    ]
    assert [cue.identifier for cue in cues] == [None, "one", None]


# By which Weblate, Pootle and others read these files. Where it has one text for a message, that is
# its source.
TOOLKIT = {
    ".tmx": ("tmx.tmxfile", golden.TMX, ["HELLO BIG WORLD", "ONE", "Zwei"]),
    ".xlf": (
        "xliff.Xliff1File",
        golden.XLIFF_12,
        ["CLICK THE BIG BUTTON & GO, %s", "DONE", "Gut", "ONE bTWOe\nTHREE"],
    ),
    ".xliff": ("xliff2.Xliff2File", golden.XLIFF_20, ["HELLO DEAR WORLD", "Hallo"]),
    ".properties": (
        "properties.javafile",
        golden.source(".properties"),
        ["HELLO {0}", "SOME TEXT", "ONE LINE\nTHE NEXT", "VALUE HERE", "some_id"],
    ),
    ".strings": (
        "properties.stringsutf8file",
        golden.source(".strings"),
        ['HELLO "%@"\nNEXT LINE'],  # keys without quotes are beyond it
    ),
    ".arb": ("jsonl10n.ARBJsonFile", golden.source(".arb"), ["HELLO {name}!"]),
    ".xml": (
        "aresource.AndroidResourceFile",
        golden.source(".xml"),
        [
            "DON'T <b>STOP</b> %1$s &amp; GO\nNEXT",
            "@string/a",
            "<p>HELLO <b>YOU</b></p>",
            "IT'S",
            'HI <xliff:g id="x" example="Bob">%s</xliff:g>!',
            "%d FILE",
        ],
    ),
}


@pytest.mark.parametrize("kind", TOOLKIT)
def test_the_translate_toolkit_reads_the_translations(kind: str) -> None:
    pytest.importorskip("translate.storage.base")
    name, source, expected = TOOLKIT[kind]
    module, _, reader = name.partition(".")
    read = getattr(importlib.import_module(f"translate.storage.{module}"), reader).parsestring
    units = read(translate_document(f"a{kind}", source.encode(), shout, GERMAN)).units
    found = [str(unit.target or unit.source) for unit in units if unit.istranslatable()]
    assert [text for text in found if text in expected] == expected
    assert len(found) <= len(expected) + 3  # those that are to stay without a translation
