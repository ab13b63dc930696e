"""`dragoman translate` with documents: what is written where, what is said and the exit code. The
translator is one that shouts; the languages are those of the bundled model."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import dragoman
from dragoman.cli import main as front_door
from dragoman.documents.documents import MAX_BYTES
from dragoman.errors import OptionError
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation

Said = tuple[int, str, str]  # the exit code, standard output and standard error
Run = Callable[..., Said]
PAGE = "<p>one <b>two</b></p>"
SHOUTED = "<p>ONE <b>TWO</b></p>"


class Shouting:
    """Translates into capitals; what has a digit may need review."""

    requests: list[TranslateRequest]

    def __init__(self) -> None:
        self.requests = []

    def stream(self, lines: Iterable[str], request: TranslateRequest) -> Iterator[Translation]:
        self.requests.append(request)
        for line in lines:
            if "interrupt" in line:
                raise KeyboardInterrupt
            pairs = tuple((place, place) for place in range(len(line.split())))
            flags = ("numbers",) if any(map(str.isdigit, line)) else ()
            yield Translation(line.upper(), alignment=pairs, confidence=0.5, flags=flags)


@pytest.fixture
def shouting(monkeypatch: pytest.MonkeyPatch) -> Shouting:
    translator = Shouting()
    monkeypatch.setattr(Translator, "load", lambda *_: translator)
    return translator


@pytest.fixture
def run(
    shouting: Shouting,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*words: str, to: str = "de") -> Said:
        monkeypatch.setattr(sys, "argv", ["dragoman", "translate", *words, "--to", to])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        with pytest.raises(SystemExit) as stopped:
            front_door.main()
        said = capsys.readouterr()
        return int(stopped.value.code or 0), said.out, said.err

    return call


def write(**files: str) -> None:
    """Write files; in a keyword, __ is a dot."""
    for name, text in files.items():
        path = Path(name.replace("__", "."))
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def written() -> set[str]:
    return {str(path) for path in Path().rglob("*") if path.is_file()}


def test_a_document_is_translated_beside_itself(run: Run) -> None:
    write(a__html="<p>one <b>two</b></p><p>three 3</p>")
    code, out, errors = run("a.html")
    assert (code, out) == (0, "")
    assert errors == "a.html -> a.de.html: 2 texts, 1 may need review (numbers 1)\n"
    assert Path("a.de.html").read_text() == f"{SHOUTED}<p>THREE 3</p>"
    assert written() == {"a.html", "a.de.html"}


def test_one_is_said_in_the_singular(run: Run) -> None:
    write(a__txt="one\n", b__txt="one\ntwo\n")
    lines = run("a.txt", "b.txt")[2].splitlines()
    assert lines[0].endswith("a.de.txt: 1 text")
    assert lines[1].endswith("b.de.txt: 2 texts")
    assert lines[-1] == "2 files translated; 0 translations may need review"
    lines = run("a.txt", "b.txt", "--resume")[2].splitlines()
    assert lines[-1].startswith("0 files translated, 2 skipped")
    Path("a.de.txt").unlink()
    lines = run("a.txt", "b.txt", "--resume")[2].splitlines()
    assert lines[-1].startswith("1 file translated, 1 skipped")


def test_the_source_language_leaves_the_name(run: Run) -> None:
    write(page__en__html=PAGE)
    assert run("page.en.html")[0] == 0
    assert Path("page.de.html").read_text() == SHOUTED


def test_nothing_is_overwritten_unasked(run: Run, shouting: Shouting) -> None:
    write(a__html=PAGE, a__de__html="mine")
    code, _, errors = run("a.html")
    assert code == 2
    assert errors == (
        "error: a.de.html exists already; add --overwrite to replace it, or --resume to skip it\n"
    )
    assert Path("a.de.html").read_text() == "mine"
    assert run("a.html", "--resume")[::2] == (0, "a.html: skipped, since a.de.html exists\n")
    assert Path("a.de.html").read_text() == "mine"
    assert not shouting.requests
    assert run("a.html", "--overwrite")[0] == 0
    assert Path("a.de.html").read_text() == SHOUTED
    assert run("a.html", "--out", "a.html", "--overwrite")[0] == 2
    assert Path("a.html").read_text() == PAGE


def test_out_names_a_file_or_a_folder(run: Run) -> None:
    write(a__html=PAGE)
    Path("there").mkdir()
    assert run("a.html", "--out", "new.html")[0] == 0
    assert run("a.html", "--out", "there")[0] == 0
    assert run("a.html", "--out", "new.docx")[0] == 2
    assert written() == {"a.html", "new.html", "there/a.html"}
    assert Path("there/a.html").read_text() == Path("new.html").read_text() == SHOUTED


def test_folders_patterns_and_several_kinds(run: Run) -> None:
    write(a__html=PAGE, b__txt="one\n\ntwo\n", c__srt="1\n00:00:00,000 --> 00:00:01,000\none\n")
    Path("in").mkdir()
    for name in ("x.html", "y.md", "z.png", ".hidden.html", "w.de.html"):
        Path("in", name).write_text("# one\n" if name == "y.md" else PAGE)
    code, _, errors = run("*.html", "b.txt", "c.srt", "in")
    assert code == 0
    assert errors.splitlines()[-1] == "5 files translated; 0 translations may need review"
    assert Path("b.de.txt").read_text() == "ONE\n\nTWO\n"
    assert Path("c.de.srt").read_text() == "1\n00:00:00,000 --> 00:00:01,000\nONE\n"
    assert Path("in/y.de.md").read_text() == "# ONE\n"
    assert not {"in/z.de.png", "in/.hidden.de.html", "in/w.de.de.html"} & written()


def test_settings_and_data_in_a_folder_are_left_alone(run: Run) -> None:
    """Unless their paths say that they are texts, or they are named."""
    texts = [
        "app/locales/de-or-so.json",
        "app/en.yaml",
        "app/src/Messages_en.properties",
        "app/res/values/strings.xml",
        "app/i18n.json",
    ]
    others = ["app/package.json", "app/ci.yml", "app/pom.xml", "app/tokens.json"]
    others += ["app/a.properties"]
    for name in (*texts, *others, "app/read.txt"):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        contents = {".json": '{"a": "one"}', ".txt": "one\n", ".properties": "a=one\n"}
        contents |= {".xml": '<resources><string name="a">one</string></resources>'}
        path.write_text(contents.get(path.suffix, "a: one\n"))
    code, _, errors = run("app")
    assert code == 0, errors
    done = {str(Path(name).with_suffix(f".de{Path(name).suffix}")) for name in texts}
    made = {name for name in written() if ".de." in name}
    assert made == {*done, "app/read.de.txt"}
    left = [line.split(":")[0] for line in errors.splitlines() if "settings or data" in line]
    assert sorted(left) == sorted(others)
    assert run("app/package.json")[0] == 0
    assert run("app/*.yml")[0] == 0
    assert {"app/package.de.json", "app/ci.de.yml"} <= written()


def test_a_folder_of_nothing_but_settings_is_an_error(run: Run) -> None:
    write(package__json='{"a": "one"}')
    Path("settings").mkdir()
    Path("package.json").rename("settings/package.json")
    code, _, errors = run("settings")
    assert code == 2
    assert errors == (
        "error: settings contains only package.json, which may be settings or data; "
        "name the files to translate\n"
    )


def test_a_folder_into_another_keeps_names_and_places(run: Run) -> None:
    Path("in/deep").mkdir(parents=True)
    Path("in/deep/a.html").write_text(PAGE)
    Path("in/b.html").write_text(PAGE)
    code, _, errors = run("in", "--out", "in/out")
    assert code == 0
    assert errors.splitlines()[-1] == "2 files translated; 0 translations may need review"
    assert Path("in/out/deep/a.html").read_text() == SHOUTED
    code, _, errors = run("in", "--out", "in/out", "--resume")
    assert code == 0
    assert "0 files translated, 2 skipped, since their translations exist" in errors


def test_a_name_of_no_file_is_told_from_text(run: Run) -> None:
    _, _, errors = run("report.docx")
    assert "error: there is no file report.docx; check its name" in errors
    _, _, errors = run("Good morning.")
    assert (
        "there is no file 'Good morning.'; to translate text rather than a file, pipe it" in errors
    )


def test_one_of_several_fails_and_the_others_are_done(run: Run) -> None:
    write(a__html=PAGE, broken__srt="no times", c__html=PAGE)
    Path("false.docx").write_bytes(b"no zip")
    code, _, errors = run("a.html", "broken.srt", "false.docx", "missing.html", "x.xyz", "c.html")
    assert code == 1
    assert written() >= {"a.de.html", "c.de.html"}
    assert not any(".de." in name for name in written() if "html" not in name)
    complaints = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert [line.split()[1] for line in complaints[:2]] == ["broken.srt", "false.docx"]
    assert complaints[2] == "error: there is no file missing.html; check its name"
    assert len(complaints) == 4
    assert errors.splitlines()[-1] == (
        "2 files translated, 4 failed; 0 translations may need review"
    )


def test_one_alone_fails_with_a_sentence_and_nothing_is_written(
    run: Run, shouting: Shouting
) -> None:
    Path("large.html").touch()
    os.truncate("large.html", 200 * 2**20)
    Path("empty.html").touch()
    Path("false.docx").write_bytes(b"no zip")
    before = written()
    for name, said in {
        "large.html": f"large.html has 209,715,200 bytes; give a document that has text and at "
        f"most {MAX_BYTES:,} bytes",
        "empty.html": "empty.html has 0 bytes",
        "false.docx": "false.docx cannot be read as .docx",
    }.items():
        code, _, errors = run(name)
        assert code == 2
        assert errors.startswith(f"error: {said}")
        assert errors.count("\n") == 1
    assert written() == before
    assert not shouting.requests


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.html", "--jsonl"], "--jsonl is for lines of text and not for documents"),
        (["a.html", "--nbest", "2"], "--nbest is for lines"),
        (["a.html", "--alignments"], "--alignments is for lines"),
        (["a.html", "--bilingual", "x.doc"], "name a file that ends in .tmx, .xliff, .xlf, .html"),
        (["plain.txt", "--columns", "a"], "--columns is for documents"),
        (["*.nothing"], "no file matches '*.nothing'"),
        (["empty"], "empty contains no document that can be translated; these end in .txt"),
        (["one/a.html", "two/a.html", "--out", "new"], "would both become new/a.html"),
        (["a.html", "--out", "no/such/place.xyz"], "is written as .html"),
    ],
)
def test_wrong_use(run: Run, words: list[str], said: str) -> None:
    write(a__html=PAGE, plain__txt="one\n")
    for folder in ("empty", "one", "two"):
        Path(folder).mkdir()
    Path("one/a.html").write_text(PAGE)
    Path("two/a.html").write_text(PAGE)
    before = written()
    code, _, errors = run(*words)
    assert code == 2
    assert said in errors
    assert written() == before


def test_what_is_asked_for_reaches_the_translator(run: Run, shouting: Shouting) -> None:
    write(a__html=PAGE, terms__tsv="one\teins\n")
    assert (
        run("a.html", "--glossary", "terms.tsv", "--careful", "--beam", "2", "--unprotected")[0]
        == 0
    )
    (request,) = shouting.requests
    assert request.glossary is not None
    assert (request.careful, request.options.beam, request.protect) == (True, 2, False)
    assert request.align


def test_an_interrupt_keeps_what_is_done(run: Run) -> None:
    write(a__html=PAGE, b__html="<p>interrupt</p>", c__html=PAGE)
    code, _, errors = run("a.html", "b.html", "c.html")
    assert code == 130
    assert errors.splitlines()[-1] == (
        "stopped: 1 of 3 files are translated; continue with the same command and --resume"
    )
    assert written() == {"a.html", "b.html", "c.html", "a.de.html"}


def elements(path: str, name: str) -> list[Any]:
    return [one for one in ElementTree.parse(path).iter() if one.tag.split("}")[-1] == name]


def test_pairs_for_a_reviewer(run: Run) -> None:
    write(a__html="<p>one &lt; <b>two</b></p><p>three 3</p>", b__md='# "four" & five\n')
    for side in ("side.tmx", "side.xliff", "side.html"):
        assert run("a.html", "b.md", "--overwrite", "--bilingual", side)[0] == 0
    units = elements("side.xliff", "trans-unit")
    assert [[part.text for part in unit] for unit in units] == [
        ["one < two", "ONE < TWO", "confidence: 0.50"],
        ["three 3", "THREE 3", "confidence: 0.50", "flags: numbers"],
        ['"four" & five', '"FOUR" & FIVE', "confidence: 0.50"],
    ]
    assert [one.get("state") for one in elements("side.xliff", "target")] == [
        "translated",
        "needs-review-translation",
        "translated",
    ]
    files = elements("side.xliff", "file")
    assert [file.get("original") for file in files] == ["a.html", "b.md"]
    assert {(file.get("source-language"), file.get("target-language")) for file in files} == {
        ("en", "de")
    }
    segments = [one.text for one in elements("side.tmx", "seg")]
    assert segments[:4] == ["one < two", "ONE < TWO", "three 3", "THREE 3"]
    page = Path("side.html").read_text()
    assert '<td lang="en">one &lt; two' in page
    assert page.count('<tr class="look">') == 1
    code, _, errors = run("a.html", "--resume", "--bilingual", "side.tmx")
    assert (code, errors) == (2, "error: side.tmx exists already; add --overwrite to replace it\n")


def test_from_python(shouting: Shouting, tmp_path: Path) -> None:
    source = tmp_path / "a.html"
    source.write_text("<p>one 1</p><p>two</p>")
    done = dragoman.translate_file(source, to="de", careful=True)
    assert done.out == tmp_path / "a.de.html"
    assert done.out.read_text() == "<p>ONE 1</p><p>TWO</p>"
    assert [text for text, _ in done.flagged] == ["one 1"]
    assert done.flag_counts == {"numbers": 1}
    assert shouting.requests[0].careful
    with pytest.raises(OptionError, match="exists already"):
        dragoman.translate_file(source, to="de")
    again = dragoman.translate_file(source, to="de", out=tmp_path / "new.html")
    assert again.out.read_text() == done.out.read_text()
