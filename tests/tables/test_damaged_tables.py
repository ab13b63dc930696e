"""What a job of a billion rows meets: rows and files that are damaged, inputs that change while it
runs, disks that are full, and a second command that writes to the same folder."""

from __future__ import annotations

import gzip
import json
import os
import resource
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet
from test_table_job import ALONE, Turned, finish, json_rows, outputs

from dragoman.errors import FullDiskError, InputError, OptionError
from dragoman.folder import layout
from dragoman.tables.cell_answers import attempted
from dragoman.tables.field_path import FieldPath
from dragoman.tables.row_batch import Piece
from dragoman.tables.table_job import TableJob, run_job
from dragoman.tables.table_parts import kind_of
from dragoman.tables.table_stages import DetectStage, TranslateStage, _each
from dragoman.tasks.bulk import Job

TEXT = FieldPath.parse("text")


def test_a_damaged_row_of_json_is_kept_with_its_error(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(b'{"text": "ab"}\n{"text": "c\n[4]\n{"text": "\xff"}\n{"text": "d"}\n')
    done = finish([source], tmp_path / "out")
    assert (done.rows, done.failed) == (5, 3)
    rows = json_rows(outputs(tmp_path / "out"))
    assert [row.get("turned") for row in rows] == ["ba", None, None, None, "d"]
    assert [row.get("unreadable") for row in rows[1:4]] == [
        '{"text": "c',
        "[4]",
        '{"text": "\\xff"}',
    ]


def test_a_row_of_json_that_is_too_deep_is_kept_with_its_error(tmp_path: Path) -> None:
    deep = "[" * 100_000
    source = tmp_path / "in.jsonl"
    source.write_text(f'{{"text": "ab"}}\n{deep}\n{{"text": "d"}}\n', encoding="utf-8")
    done = finish([source], tmp_path / "out")
    assert (done.rows, done.failed) == (3, 1)
    rows = json_rows(outputs(tmp_path / "out"))
    assert [row.get("turned") for row in rows] == ["ba", None, "d"]
    assert rows[1]["unreadable"] == deep


def test_a_stage_tells_why_a_row_cannot_be_read(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes(b'id,text\n1,\n2\n3,"x, y",z\n4,"caf\xe9"\n5,7" tape\n6,\n')
    job = TableJob([str(source)], DetectStage(TEXT), str(tmp_path / "out"))
    *_, last = run_job(job, ALONE)
    assert (last.rows, last.failed) == (6, 3)
    (written,) = outputs(tmp_path / "out")
    lines = written.read_bytes().splitlines()
    assert lines[0] == b"id,text,language,language_confidence,language_error"
    assert lines[1] == b"1,,,,"
    assert lines[2] == b'2,,,,"the row cannot be read: the number of its values is 1, not 2"'
    assert lines[3].startswith(b'3,"x, y",,,"the row cannot be read')
    assert lines[3].endswith(b'is 3, not 2 (z)"')
    assert lines[4].startswith(b'4,"caf\xe9",,,the row cannot be read: ')
    assert lines[5].startswith(b'5,7" tape,')  # a mark within a value is a character
    assert lines[6] == b"6,,,,"


def test_a_long_value_of_csv_is_read(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    long = "long " * 40_000
    source.write_text(f'\ufeff"text, and more",text\n"{long}",ab\n"say ""c""","c ""d"""\n')
    done = finish([source], tmp_path / "out")
    assert (done.rows, done.failed) == (2, 0)
    (written,) = outputs(tmp_path / "out")
    lines = written.read_text(encoding="utf-8").splitlines()
    assert lines[0] == '\ufeff"text, and more",text,turned,t_error'
    assert lines[1].endswith('",ab,ba,')
    assert lines[2] == '"say ""c""","c ""d""","""d"" c",'


def test_a_quotation_mark_that_is_missing_is_told_with_its_file(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text('id,text\n1,"ab\n2,cd\n')
    with pytest.raises(InputError, match=r"in\.csv: a quotation mark is missing .* '1,\"ab'"):
        finish([source], tmp_path / "out")


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_text_that_was_cut_off_is_not_taken_for_all(tmp_path: Path, ending: str) -> None:
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    ways = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}
    content = b"".join(b'{"text": "row %d"}\n' % number for number in range(999))
    source = tmp_path / f"in.jsonl{ending}"
    source.write_bytes(ways[ending](content)[:-9])
    with pytest.raises(InputError, match="is damaged"):
        finish([source], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_damaged_file_does_not_keep_others_from_being_done(tmp_path: Path) -> None:
    texts = pyarrow.table({"text": [f"text {number}" for number in range(2000)]})
    for name in "abc":
        parquet.write_table(texts, tmp_path / f"{name}.parquet", compression="NONE")
    damaged = bytearray((tmp_path / "b.parquet").read_bytes())
    damaged[4:60] = b"\xff" * 56
    (tmp_path / "b.parquet").write_bytes(damaged)
    files = [tmp_path / f"{name}.parquet" for name in "abc"]
    with pytest.raises(InputError, match=r"b\.parquet is damaged .*copy it again$") as error:
        finish(files, tmp_path / "out", rows=2000)
    assert "\n" not in str(error.value)
    names = [path.name for path in outputs(tmp_path / "out")]
    assert names == ["a.00000.parquet", "c.00000.parquet"]
    # The folder is a table for whoever reads Parquet.
    assert parquet.read_table(tmp_path / "out").num_rows == 4000


def test_an_input_that_becomes_shorter_while_the_job_runs(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl.gz"
    source.write_bytes(gzip.compress(b'{"text": "a"}\n' * 9))
    job = TableJob([str(source)], Turned(TEXT), str(tmp_path / "out"), 3)
    states = run_job(job, ALONE)
    next(states)
    source.write_bytes(gzip.compress(b'{"text": "a"}\n' * 4))
    with pytest.raises(
        InputError, match=r"changed since the job began: .* needs 3 rows of it and found 1"
    ):
        list(states)
    assert [path.name for path in outputs(tmp_path / "out")] == ["in.00000.jsonl.gz"]


def test_an_input_with_other_content_of_the_same_size(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a"}\n')
    finish([source], tmp_path / "out")
    source.write_text('{"text": "b"}\n')
    os.utime(source, ns=(1, 1))
    with pytest.raises(OptionError, match="has changed since"):
        finish([source], tmp_path / "out")


def test_a_second_command_is_told_that_the_folder_is_in_use(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a"}\n' * 4)
    out = tmp_path / "out"
    states = run_job(TableJob([str(source)], Turned(TEXT), str(out), 1), ALONE)
    next(states)
    with pytest.raises(OptionError, match="another command is writing to"):
        finish([source], out, rows=1)
    assert list(states)[-1].parts == 4
    assert finish([source], out, rows=1).parts == 0
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / ("long-" * 12 + "name.jsonl")
    source.write_text('{"text": "a"}\n')
    out = tmp_path / "out"
    begun = out / f".{source.stem[:40]}.abcd1234.partial"
    manifest = out / "._manifest.json.abcd1234.partial"  # killed before the job had one
    for path in (begun, manifest):
        path.mkdir(parents=True)
        (path / "half").write_text("x")
    (out / ".lock").touch()
    assert finish([source], out).parts == 1
    hidden = [path.name for path in out.iterdir() if path.name.startswith(".")]
    assert hidden == []
    theirs = out / ".notes.abcd1234.partial"
    theirs.mkdir()
    finish([source], out)
    assert theirs.exists()


def test_files_of_like_names_become_files_of_their_own(tmp_path: Path) -> None:
    names = ["x/a.jsonl", "y/a.jsonl", "0000-a.jsonl"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"text": name}) + "\n")
    finish([tmp_path / name for name in names], tmp_path / "out")
    texts = [row["text"] for row in json_rows(outputs(tmp_path / "out"))]
    assert sorted(texts) == sorted(names)


def test_a_full_disk_is_one_sentence_and_the_job_goes_on_later(tmp_path: Path) -> None:
    rows = ['{"text": "' + "x" * 3000 + '"}\n'] * 4
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a"}\n' + "".join(rows))
    out = tmp_path / "out"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (9000, before[1]))
        with pytest.raises(FullDiskError, match="no space is left to write"):
            finish([source], out, rows=3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not outputs(out)
    assert finish([source], out, rows=3).done == 5


def test_a_part_is_not_held_in_memory_until_it_is_written(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "ab"}\n' * 3000)
    kind = kind_of(str(source))
    piece = Piece(3000, 0, 0)
    sizes = []
    with (
        open(tmp_path / "out", "wb") as file,
        kind.writer(file, str(source), piece) as writer,
    ):
        for batch in kind.batches(str(source), piece, [TEXT]):
            writer.write(batch, [])
            sizes.append(file.tell())
    assert sizes == sorted(set(sizes))
    assert sizes[0] > 0


def test_another_runtime_or_tokeniser_is_another_job(trained: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for path in trained.iterdir():
        if path.is_file():
            (model / path.name).write_bytes(path.read_bytes())

    def facts(runtime: str = "auto") -> object:
        return TranslateStage(TEXT, Job(model, runtime=runtime)).facts()

    assert facts() == facts()
    assert facts("int8") != facts()
    before = facts()
    with open(model / layout.TOKENIZER, "ab") as file:
        file.write(b" ")
    assert facts() != before
    (model / layout.CTRANSLATE2_WEIGHTS).parent.mkdir(exist_ok=True)
    (model / layout.CTRANSLATE2_WEIGHTS).write_bytes(b"x")
    with pytest.raises(OptionError, match="add --runtime"):
        facts()
    assert facts("torch")


def test_a_row_without_text_has_an_error_and_a_gap_has_none() -> None:
    """As in scores, vectors and languages."""
    rows = [("a", "b"), ("a", 5), ("a", None), ("bad", "b")]

    def work(pairs: Sequence[tuple[str, str]]) -> list[str]:
        if ("bad", "b") in pairs:
            raise RuntimeError("out of luck")
        return ["".join(pair) for pair in pairs]

    made, errors = _each(rows, work)
    assert made == ["ab", None, None, None]
    assert errors == [None, "a value of type int is not text", None, "out of luck"]


def test_a_batch_that_fails_is_halved() -> None:
    sizes = []

    def work(items: Sequence[int]) -> list[int]:
        sizes.append(len(items))
        if 5 in items:
            raise ValueError("no\nfives")
        return [2 * item for item in items]

    made = attempted(range(8), work)
    assert made == [(None, "no fives") if n == 5 else (2 * n, "") for n in range(8)]
    assert sizes == [8, 4, 4, 2, 1, 1, 2]
