"""Reading: every format and compression gives the same pairs, and what is wrong is named by file
and line."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.data.check_report import Report
from dragoman.data.corpus import Pair, corpora, languages, read_pairs
from dragoman.data.text_lines import MAX_LINE
from dragoman.errors import InputError, MissingDependencyError, OptionError

PAIRS = [
    ("The cat.", "Die Katze."),
    ("Tea\u2028and\x0ccoffee", "Tee\x85und Kaffee"),
    ("", "leer"),
    ("日本語 🙂", "naïve"),
]


def zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    halves = data[: len(data) // 2], data[len(data) // 2 :]
    # Two frames, as pzstd writes them.
    return b"".join(zstandard.ZstdCompressor().compress(half) for half in halves)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}


def contents(kind: str) -> dict[str, str]:
    if kind == "plain":
        return {
            ".en": "".join(f"{source}\n" for source, _ in PAIRS),
            ".de": "".join(f"{target}\n" for _, target in PAIRS),
        }
    if kind == ".tsv":
        return {kind: "".join(f"{source}\t{target}\n" for source, target in PAIRS)}
    if kind == ".jsonl":
        return {
            kind: "".join(
                json.dumps({"translation": {"en": source, "de": target}}) + "\n"
                for source, target in PAIRS
            )
        }
    units = "".join(
        f'<tu><tuv xml:lang="de-DE"><seg>{target}</seg></tuv>\n'
        f'<tuv xml:lang="EN"><seg>{source}</seg></tuv></tu>\n'
        for source, target in PAIRS
    ).replace("\x0c", "&#32;")
    return {
        kind: '<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx><header srclang="en"/>'
        f"<body>{units}</body></tmx>"
    }


def read(files: list[str], tell: Callable[[str, str, str], None] | None = None) -> list[Pair]:
    found = corpora(files)
    names = languages(found)
    return [pair for corpus in found for pair in read_pairs(corpus, *names, tell or Report().add)]


def write(folder: Path, name: str, data: bytes | str) -> str:
    path = folder / name
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return str(path)


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("kind", ["plain", ".tsv", ".jsonl", ".tmx"])
def test_every_format_in_every_compression(kind: str, compression: str, tmp_path: Path) -> None:
    files = [
        write(tmp_path, f"a{name}{compression}", COMPRESS[compression](text.encode("utf-8")))
        for name, text in contents(kind).items()
    ]
    expected = [(s.replace("\x0c", " "), t) for s, t in PAIRS] if kind == ".tmx" else PAIRS
    assert read(files) == expected
    if kind != ".tsv":
        names = [name.lower()[:2] for name in languages(corpora(files))]
        assert names == ["en", "de"]


def test_a_list_of_files_is_read_in_order(tmp_path: Path) -> None:
    files = [
        write(tmp_path, "a.en", "1\n"),
        write(tmp_path, "a.de", "eins\n"),
        write(tmp_path, "b.tsv", "2\tzwei\textra\n"),
    ]
    assert read(files) == [("1", "eins"), ("2", "zwei")]
    assert [corpus.weight for corpus in corpora(files, [2, 0.5])] == [2, 0.5]
    with pytest.raises(OptionError, match="3 numbers for 2 corpora"):
        corpora(files, [1, 2, 3])


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark(ending: str, mark: str, tmp_path: Path) -> None:
    lines = ["a", "", "b\rc", "d\x0b\x0c\x1c\x85\u2028\u2029e"]
    source = write(tmp_path, "a.en", mark + ending.join(lines))
    target = write(tmp_path, "a.de", ending.join(lines) + ending)
    assert read([source, target]) == [(line, line) for line in lines]


def test_lines_longer_than_a_chunk_are_whole_and_huge_ones_are_passed_over(tmp_path: Path) -> None:
    long = "ä" * (MAX_LINE // 2)  # the longest that is allowed, over the edge of a chunk
    source = write(tmp_path, "a.en", f"one\n{long}\n{long}x\nfour\n{long}yy")
    target = write(tmp_path, "a.de", "1\n2\n3\n4\n5\n")
    report = Report()
    assert read([source, target], report.add) == [
        ("one", "1"),
        (long, "2"),
        (None, "3"),
        ("four", "4"),
        (None, "5"),
    ]
    assert report.findings["huge"].count == 2
    assert f"{source}, line 3: ää" in report.findings["huge"].examples[0]
    assert not report.problems


def test_a_file_without_line_ends_costs_little_memory(tmp_path: Path) -> None:
    source = write(tmp_path, "a.tsv.xz", lzma.compress(bytes(64 * MAX_LINE), preset=0))
    tracemalloc.start()
    assert read([source], lambda *finding: None) == [(None, None)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * MAX_LINE


BAD: dict[str, tuple[dict[str, str | bytes], list[str]]] = {
    "unequal": ({"a.en": "1\n2\n3\n", "a.de": "eins\n"}, ["a.en: 3 lines, but", "a.de has 1"]),
    "unequal, target longer": (
        {"a.en": "", "a.de": "eins\n"},
        ["a.en: 0 lines, but", "a.de has 1"],
    ),
    "encoding": (
        {"a.en": "1\n2\n", "a.de": b"eins\nB\xe4r\n"},
        ["a.de, line 2: not UTF-8 (byte 0xe4)", "B\\xe4r", "iconv"],
    ),
    "columns": ({"a.tsv": "1\teins\n2 zwei\n"}, ["a.tsv, line 2: 2 zwei", "tab"]),
    "an empty TSV line": ({"a.tsv": "1\teins\n\n"}, ["a.tsv, line 2: an empty line", "tab"]),
    "json": (
        {"a.jsonl": '{"source": "1", "target": "eins"}\n{"source": "2"\n'},
        ["a.jsonl, line 2", '{"source"'],
    ),
    "json of numbers": ({"a.jsonl": '{"source": 1, "target": "eins"}\n'}, ["a.jsonl, line 1"]),
    "json list": ({"a.jsonl": '["a", "b"]\n'}, ["a.jsonl, line 1"]),
    "deep json": ({"a.jsonl": "[" * 100_000 + "\n"}, ["a.jsonl, line 1"]),
    "tmx": ({"a.tmx": "<tmx><body>\n<tu></body>"}, ["a.tmx, line 2", "mismatched tag"]),
    "not tmx": ({"a.tmx": "<html></html>"}, ["a.tmx, line 1", "<html>"]),
    "an empty tmx": ({"a.tmx": ""}, ["a.tmx, line 1", "no element found"]),
    "entities": (
        {"a.tmx": '<!DOCTYPE tmx [\n<!ENTITY a "b">]><tmx>&a;</tmx>'},
        ["a.tmx, line 2", "entity (a)"],
    ),
    "a tag without end": (
        {"a.tmx.gz": gzip.compress(b"<tmx><header x='" + b"y" * (8 * MAX_LINE))},
        ["a tag of more than"],
    ),
    "gzip cut short": (
        {"a.tsv.gz": gzip.compress(b"1\teins\n" * 99)[:-9]},
        ["a.tsv.gz: cannot be read to its end"],
    ),
    "no gzip": ({"a.tsv.gz": b"1\teins\n"}, ["a.tsv.gz: cannot be read to its end"]),
    "no xz": ({"a.tsv.xz": b"1\teins\n"}, ["a.tsv.xz: cannot be read to its end"]),
    "no bz2": ({"a.tsv.bz2": b"1\teins\n"}, ["a.tsv.bz2: cannot be read to its end"]),
    "no zstd": ({"a.tsv.zst": b"1\teins\n"}, ["a.tsv.zst: cannot be read to its end"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_lenient_reading_goes_on(case: str, tmp_path: Path) -> None:
    texts, expected = BAD[case]
    files = [write(tmp_path, name, data) for name, data in texts.items()]
    with pytest.raises(InputError) as error:
        read(files)
    message = str(error.value)
    assert all(part in message for part in expected)
    assert message.count("\n") == 0
    report = Report(strict=False)
    read(files, report.add)
    assert len(report.problems) == 1


def test_after_a_bad_line_the_rest_is_read(tmp_path: Path) -> None:
    files = [
        write(tmp_path, "a.en", b"one\n\xff\xfe\nthree\n"),
        write(tmp_path, "a.de", "1\n2\n3\n"),
    ]
    assert read(files, Report(strict=False).add) == [("one", "1"), (None, "2"), ("three", "3")]


def test_missing_files_and_partners(tmp_path: Path) -> None:
    there = write(tmp_path, "a.en", "1\n")
    with pytest.raises(InputError, match=r"no\.de does not exist"):
        corpora([there, str(tmp_path / "no.de")])
    with pytest.raises(InputError, match="is a folder"):
        corpora([there, str(tmp_path)])
    os.mkfifo(tmp_path / "pipe.de")
    for special in (str(tmp_path / "pipe.de"), "/dev/null"):
        with pytest.raises(InputError, match=f"{special} is not a regular file but a pipe or a"):
            corpora([there, special])
    with pytest.raises(InputError, match="no partner"):
        corpora([there])
    assert corpora([there], lone_source=True)[0].files == (there,)
    assert read_alone(there) == [("1", "1")]


def read_alone(file: str) -> list[Pair]:
    return list(read_pairs(corpora([file], lone_source=True)[0], "", "", Report().add))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["train.en", "train.de.gz"], ("en", "de")),
        (["x.pt_BR", "x.zh-Hant"], ("pt_BR", "zh-Hant")),
        (["train.src", "train.tgt"], ("", "")),
        (["a.txt", "b.txt"], ("", "")),
        (["tatoeba.en-twi.tsv.gz"], ("en", "twi")),
        (["pairs.tsv"], ("", "")),
    ],
)
def test_languages_from_names(names: list[str], expected: tuple[str, str], tmp_path: Path) -> None:
    found = corpora([write(tmp_path, name, b"") for name in names])
    assert languages(found) == expected
    assert languages(found, "aa", "bb") == ("aa", "bb")


def test_swapped_sides_are_refused(tmp_path: Path) -> None:
    names = [write(tmp_path, name, "1\n") for name in ("a.en", "a.de", "v.de", "v.en")]
    with pytest.raises(InputError, match=r"v\.de is read as the en side but is named as de"):
        languages(corpora(names))


def test_json_keys(tmp_path: Path) -> None:
    text = (
        '{"id": 7, "en": "a", "de": "b"}\n{"de": "d", "en": "c"}\n{"source": "e", "target": "f"}\n'
    )
    file = write(tmp_path, "a.jsonl", text)
    assert read([file]) == [("a", "b"), ("c", "d"), ("e", "f")]
    assert languages(corpora([file])) == ("en", "de")


def test_tmx_inline_tags_entities_and_missing_languages(tmp_path: Path) -> None:
    text = """<?xml version="1.0" encoding="UTF-16"?>
    <tmx version="1.4"><header srclang="en-GB"/><body>
    <tu><tuv xml:lang="fr"><seg>un</seg></tuv>
        <tuv xml:lang="en-GB"><seg>one &lt;1&gt;</seg></tuv></tu>
    <tu><note>no seg</note>
        <tuv xml:lang="en-US"><seg>a <bpt>&lt;b&gt;<sub>x</sub></bpt><hi>bold</hi><ept>/</ept>
        word<ph/></seg></tuv>
        <tuv xml:lang="FR_ca"><seg>un mot</seg></tuv></tu>
    <tu><tuv xml:lang="en-GB"><seg>alone</seg></tuv></tu></body></tmx>"""
    file = write(tmp_path, "a.tmx", text.encode("utf-16"))
    assert languages(corpora([file])) == ("en-gb", "fr")
    assert read([file]) == [("one <1>", "un"), ("a bold\n        word", "un mot"), ("alone", "")]


def test_a_zst_that_was_cut_off_is_damaged(tmp_path: Path) -> None:
    """In its second frame; the package by itself would say nothing."""
    file = write(tmp_path, "a.tsv.zst", zstd(b"1\teins\n" * 999)[:-5])
    with pytest.raises(InputError, match=r"a\.tsv\.zst: cannot be read to its end"):
        read([file])


def test_zst_without_a_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, "a.tsv.zst", zstd(b"1\teins\n"))
    for name in ("compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match="pip install zstandard"):
        read([file])
