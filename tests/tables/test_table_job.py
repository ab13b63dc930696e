"""Jobs on tables: every row once, in its place, with all that it had; killed and continued; and
rows that fail. The stage of most tests needs no model: it turns texts round."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import tiny
from pyarrow import parquet

from dragoman.errors import InputError, OptionError
from dragoman.tables.cell_answers import Answers
from dragoman.tables.field_path import FieldPath
from dragoman.tables.row_batch import NewColumn, Values
from dragoman.tables.table_job import Engine, Finished, TableJob, run_job
from dragoman.tables.table_stages import TranslateStage, Work
from dragoman.tasks.bulk import Job
from dragoman.tasks.translation import Translation

ALONE = Engine(["cpu"])


@dataclass(frozen=True)
class Turned:
    """Turns the text at a path round; fails for texts that say so, and may take its time."""

    path: FieldPath
    seconds: float = 0.0

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        return (self.path,)

    def facts(self) -> dict[str, Any]:
        return {"stage": "turn"}

    def load(self, device: str) -> Work:
        def work(values: Sequence[Values]) -> list[NewColumn]:
            time.sleep(self.seconds)
            texts = [text for (text,) in values]
            turned = [text[::-1] if isinstance(text, str) else None for text in texts]
            errors = [None if isinstance(text, str) else "no text" for text in texts]
            return [NewColumn("turned", "text", 0, turned), NewColumn("t_error", "text", 0, errors)]

        return work


def finish(files: Sequence[Path | str], out: Path, column: str = "text", rows: int = 4) -> Finished:
    stage = Turned(FieldPath.parse(column))
    job = TableJob([str(file) for file in files], stage, str(out), rows)
    return list(run_job(job, ALONE))[-1]


def outputs(out: Path) -> list[Path]:
    return sorted(path for path in out.iterdir() if path.name != "_manifest.json")


def json_rows(paths: Sequence[Path]) -> list[dict[str, Any]]:
    found = []
    for path in paths:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        content = lzma.decompress(content) if path.suffix == ".xz" else content
        found += [json.loads(line) for line in content.decode().splitlines()]
    return found


def test_json_lines_keep_what_they_have(tmp_path: Path) -> None:
    lines = [
        '{"id": 1.50, "text": "ab",  "n": {"x": [1, 2]}}',
        "",
        '{"text": "ä\\u00e9", "id": 12345678901234567890}',
        "{ }",
        '{"text": "z"}',
        '{"text": ""}',
    ]
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(lines), encoding="utf-8")
    done = finish([source], tmp_path / "out", rows=2)
    assert done == Finished(rows=5, done=5, failed=1, parts=3)
    files = outputs(tmp_path / "out")
    assert [path.name for path in files] == [f"in.0000{n}.jsonl" for n in range(3)]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert text == (
        '{"id": 1.50, "text": "ab",  "n": {"x": [1, 2]}, "turned": "ba", "t_error": null}\n'
        '{"text": "ä\\u00e9", "id": 12345678901234567890, "turned": "éä", "t_error": null}\n'
        '{"turned": null, "t_error": "no text"}\n'
        '{"text": "z", "turned": "z", "t_error": null}\n'
        '{"text": "", "turned": "", "t_error": null}\n'
    )


def test_csv_keeps_quotes_line_ends_and_order(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes(b'\xef\xbb\xbfid,text\r\n1,"a ""b""\nc"\r\n02,plain\r\n3,"x,y"\r\n')
    finish([source], tmp_path / "out", rows=2)
    first, second = outputs(tmp_path / "out")
    assert first.read_bytes() == (
        b'\xef\xbb\xbfid,text,turned,t_error\r\n1,"a ""b""\nc","c\n""b"" a",\r\n02,plain,nialp,\r\n'
    )
    assert second.read_bytes() == (b'\xef\xbb\xbfid,text,turned,t_error\r\n3,"x,y","y,x",\r\n')
    rows = list(csv.DictReader(first.open(encoding="utf-8-sig", newline="")))
    assert rows[0]["text"] == 'a "b"\nc'
    assert rows[0]["turned"] == 'c\n"b" a'


def test_tsv_and_plain_text(tmp_path: Path) -> None:
    table = tmp_path / "in.tsv"
    table.write_text("text\tid\na b\t1\n", encoding="utf-8")
    plain = tmp_path / "in2.txt"
    plain.write_text("one\n\nthree", encoding="utf-8")
    finish([table, plain], tmp_path / "out")
    first, second = outputs(tmp_path / "out")
    assert first.read_text(encoding="utf-8") == "text\tid\tturned\tt_error\na b\t1\tb a\t\n"
    rows = json_rows([second])
    assert [(row["text"], row["turned"]) for row in rows] == [
        ("one", "eno"),
        ("", ""),
        ("three", "eerht"),
    ]


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_compressed_files_are_read_from_every_part(tmp_path: Path, ending: str) -> None:
    content = "".join(json.dumps({"text": f"row {number}"}) + "\n" for number in range(11))
    source = tmp_path / f"in.jsonl{ending}"
    source.write_bytes(compressed(content.encode(), ending))
    finish([source], tmp_path / "out", rows=3)
    files = outputs(tmp_path / "out")
    assert len(files) == 4
    if ending in ("", ".gz", ".xz"):
        rows = json_rows(files)
        assert [row["turned"] for row in rows] == [f"row {n}"[::-1] for n in range(11)]


def compressed(content: bytes, ending: str) -> bytes:
    import bz2

    import zstandard

    ways: dict[str, Callable[[bytes], bytes]] = {
        "": bytes,
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".bz2": bz2.compress,
        ".zst": zstandard.ZstdCompressor().compress,
    }
    return ways[ending](content)


def test_parquet_keeps_types_and_groups_are_cut(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "id": pyarrow.array(range(10), pyarrow.int16()),
            "text": [f"t{number}" if number != 4 else None for number in range(10)],
            "when": pyarrow.array([0] * 10, pyarrow.timestamp("us")),
        }
    )
    source = tmp_path / "in.parquet"
    parquet.write_table(table, source, row_group_size=7)
    done = finish([source], tmp_path / "out", rows=4)
    assert (done.rows, done.parts) == (10, 3)  # groups of 7 and 3, parts of 4, 3 and 3
    written = pyarrow.concat_tables(parquet.read_table(path) for path in outputs(tmp_path / "out"))
    assert written.drop_columns(["turned", "t_error"]).equals(table)
    assert written["turned"].to_pylist()[:5] == ["0t", "1t", "2t", "3t", None]
    assert written["t_error"].to_pylist()[3:5] == [None, "no text"]


def test_nested_paths() -> None:
    path = FieldPath.parse("messages.*.content")
    row = {"messages": [{"content": "a"}, {"role": "x"}, {"content": "b"}]}
    assert path.of(row) == ["a", None, "b"]
    assert path.of({"messages": "no list"}) is None
    assert FieldPath.parse("a.b").of({"a": {"b": 3}}) == 3
    for wrong in ("", "*", "a..b", ".".join("a" * 20)):
        with pytest.raises(OptionError, match="column"):
            FieldPath.parse(wrong)


def test_a_batch_that_fails_is_tried_row_by_row() -> None:
    stage = TranslateStage(FieldPath.parse("m.*"), Job(Path("model")), add=("score", "flags"))

    def translate(texts: list[str]) -> list[Translation]:
        if "bad" in texts:
            raise RuntimeError("out of luck")
        return [Translation(text.upper(), score=-1.0, flags=("copied",)) for text in texts]

    values: list[tuple[Any, ...]] = [(["a", "bad"],), (None,), (["b", 7, None],)]
    columns = stage._columns(values, Answers(values, translate))
    by_name = {column.name: column for column in columns}
    assert by_name["translation"].depth == 1
    assert list(by_name["translation"].values) == [["A", None], None, ["B", None, None]]
    assert list(by_name["translation_score"].values) == [[-1.0, None], None, [-1.0, None, None]]
    assert by_name["translation_flags"].values[0] == [["copied"], None]
    errors = list(by_name["translation_error"].values)
    assert errors == ["out of luck", None, "a value of type int is not text"]


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(f'{{"text": "{n}"}}\n' for n in range(9)))
    out = tmp_path / "out"
    finish([source], out, rows=3)
    before = {path.name: path.stat().st_mtime_ns for path in outputs(out)}
    (out / "in.00001.jsonl").unlink()
    done = finish([source], out, rows=3)
    assert done == Finished(rows=9, done=9, failed=0, parts=1)
    after = {path.name: path.stat().st_mtime_ns for path in outputs(out)}
    assert before.keys() == after.keys()
    same = [name for name in before if before[name] == after[name]]
    assert same == ["in.00000.jsonl", "in.00002.jsonl"]


def test_another_job_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a"}\n')
    out = tmp_path / "out"
    finish([source], out, rows=3)
    with pytest.raises(OptionError, match="another job"):
        finish([source], out, rows=4)
    source.write_text('{"text": "ab"}\n')
    with pytest.raises(OptionError, match=r"in\.jsonl has changed since the job in .* began"):
        finish([source], out, rows=3)
    (out / "_manifest.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        finish([source], out, rows=3)


def test_a_folder_with_files_of_others_stays_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a"}\n')
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious.txt").write_text("mine")
    with pytest.raises(OptionError, match="not empty"):
        finish([source], out)
    assert [path.name for path in out.iterdir()] == ["precious.txt"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("in.parquet", b"PAR1 no", "not a whole Parquet file"),
        ("in.csv", b'text,b\n1,2\n3,"4\n5,6\n', "missing in or after the row '3,\"4'"),
        ("in.csv", b"other\n1\n", "no column 'text'; it has other"),
        ("in.jsonl.gz", b"\x1f\x8bno", "damaged"),
        ("in.doc", b"x", "not a table"),
        ("in.jsonl", b'{"text": "a", "turned": 1}\n', "'turned' already"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    with pytest.raises(InputError, match=said):
        finish([source], tmp_path / "out")
    written = [path for path in (tmp_path / "out").glob("*") if path.name != "_manifest.json"]
    assert not written


def test_no_file_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        finish([tmp_path / "*.parquet"], tmp_path / "out")
    with pytest.raises(InputError, match="is a folder"):
        finish([tmp_path], tmp_path / "out")


def test_addresses_of_fsspec(tmp_path: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/in/a.jsonl", b'{"text": "ab"}\n{"text": "cd"}\n')
    stage = Turned(FieldPath.parse("text"))
    job = TableJob(["memory://bucket/in/*.jsonl"], stage, "memory://bucket/out", 1)
    done = list(run_job(job, ALONE))[-1]
    assert done.parts == 2
    assert memory.cat("/bucket/out/a.00001.jsonl") == (
        b'{"text": "cd", "turned": "dc", "t_error": null}\n'
    )
    assert list(run_job(job, ALONE))[-1].parts == 0


KILLED = """
import sys
sys.path.insert(0, {here!r})
from test_table_job import Turned
from dragoman.tables.cell_answers import Answers
from dragoman.tables.field_path import FieldPath
from dragoman.tables.table_job import Engine, TableJob, run_job

stage = Turned(FieldPath.parse("text"), 0.02)
job = TableJob([{source!r}], stage, {out!r}, 5)
for _ in run_job(job, Engine(["cpu"])):
    print("part", flush=True)
"""


def test_killed_again_and_again_it_gives_the_same_bytes(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(f'{{"text": "row {n}"}}\n' for n in range(60)))
    finish([source], tmp_path / "whole", rows=5)
    out = tmp_path / "killed"
    kills = 0
    for _ in range(30):
        process = start(source, out, tmp_path)
        if wait_for_parts(process, 3):
            process.kill()
            kills += 1
        code = process.wait(60)
        if code == 0:
            break
    assert kills >= 3
    assert code == 0
    for path in outputs(tmp_path / "whole"):
        assert (out / path.name).read_bytes() == path.read_bytes()
    assert len(list(out.glob("*.jsonl"))) == 12


def start(source: Path, out: Path, folder: Path) -> tiny.Script:
    here = str(Path(__file__).parent)
    return tiny.Script(KILLED.format(here=here, source=str(source), out=str(out)), folder)


def wait_for_parts(script: tiny.Script, count: int) -> bool:
    """Whether the process has done so many parts before it ended by itself."""
    while script.process.is_alive():
        if script.output.count("part\n") > count:
            return True
        time.sleep(0.002)
    return False
