"""Corrections: kept whatever happens, found again exactly or nearly, and written as text that
training reads."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny

from dragoman.data.corpus import corpora, ignore, languages, read_pairs
from dragoman.errors import InputError, OptionError
from dragoman.server import metrics
from dragoman.server.corrections import Correction, Corrections
from dragoman.server.corrections_export import export

pytest.importorskip("rapidfuzz", reason="rapidfuzz is missing: pip install 'dragoman[serve]'")

SAVER = """
import sys
from pathlib import Path
from dragoman.server.corrections import Correction, Corrections
store, first = Corrections(Path(sys.argv[1])), int(sys.argv[2])
for number in range(first, first + 100_000):
    texts = f"source {number}", f"Ziel {number}"
    store.save(Correction("en", "de", *texts, "m", "2026-01-01T00:00:00+00:00"))
    print(number, flush=True)
"""


def made(source: str, target: str, languages: tuple[str, str] = ("en", "de")) -> Correction:
    return Correction(*languages, source, target, "en-de", "2026-03-01T12:00:00+00:00")


@pytest.fixture
def store(tmp_path: Path) -> Corrections:
    return Corrections(tmp_path / "corrections.sqlite")


def test_the_newest_of_the_same_source_wins(store: Corrections, tmp_path: Path) -> None:
    store.save(made("Good day.", "Guten Tag."))
    store.save(made("Good day.", "Schönen Tag.", ("en", "at")))
    store.save(made("A cup.", "Eine Tasse."))
    store.save(made(" Good day.\n", "Guten Tag!"))
    assert store.exact("en", "de", "Good day. ") == made("Good day.", "Guten Tag!")
    assert store.exact("en", "at", "Good day.") == made("Good day.", "Schönen Tag.", ("en", "at"))
    assert store.exact("de", "en", "Good day.") is None
    assert store.exact("en", "de", "good day.") is None
    assert [one.target for one in store.all()] == ["Schönen Tag.", "Eine Tasse.", "Guten Tag!"]
    again = Corrections(tmp_path / "corrections.sqlite")
    assert list(again.all()) == list(store.all())
    store.close()
    with pytest.raises(InputError, match=r"corrections\.sqlite cannot be used for corrections"):
        store.save(made("a", "b"))


def test_what_is_near(store: Corrections, tmp_path: Path) -> None:
    store.save(made("The cat sat on the mat.", "Die Katze saß auf der Matte."))
    store.save(made("The cat sat on the hat.", "alt"))
    store.save(made("The cat sat on the hat.", "Die Katze saß auf dem Hut."))
    store.save(made("The cat sat on the mat!", "anderswo", ("en", "nl")))
    store.save(made("Something else entirely.", "Etwas ganz anderes."))
    near = store.near("en", "de", "The cat sat on the mat")
    assert [likeness for likeness, _ in near] == pytest.approx([44 / 45, 42 / 45])
    assert [one for _, one in near] == [
        made("The cat sat on the mat.", "Die Katze saß auf der Matte."),
        made("The cat sat on the hat.", "Die Katze saß auf dem Hut."),
    ]
    assert [one.target for _, one in store.near("en", "de", "The cat sat on the mat.")] == [
        "Die Katze saß auf dem Hut."
    ]
    assert len(store.near("en", "de", "The cat sat on the mat", 1)) == 1
    assert store.near("fr", "de", "The cat sat on the mat") == []
    assert store.near("en", "de", "") == store.near("en", "de", "x" * 100_000) == []
    other = Corrections(tmp_path / "corrections.sqlite")  # as another process has it
    other.save(made("The bat sat on the mat.", "Die Fledermaus …"))
    assert len(store.near("en", "de", "The cat sat on the mat")) == 3


def test_odd_text(store: Corrections, tmp_path: Path) -> None:
    store.save(made("half \ud800 a\x00b", "ein\tTab\nund\x0b<&>\"'\x00\uffff ]]>"))
    assert store.exact("en", "de", "half \ud800 a\x00b") is not None
    assert store.near("en", "de", "half \ud801 a\x00c")
    for blank in (made(" ", "b"), made("a", "\n")):
        with pytest.raises(InputError, match="a source and a target, and one of them is empty"):
            store.save(blank)
    for name in ("en-de.tsv", "en-de.tmx"):
        export(tmp_path / "corrections.sqlite", tmp_path / name)
        assert len(read(tmp_path / name)) == 1
    assert read(tmp_path / "en-de.tmx")[0][1] == "ein Tab und <&>\"'   ]]>"


def read(file: Path) -> list[tuple[str | None, str | None]]:
    """As `train` reads it."""
    found = corpora([str(file)])
    assert languages(found) == ("en", "de")
    return list(read_pairs(found[0], "en", "de", ignore))


@pytest.mark.parametrize("kind", [".tsv", ".tmx"])
def test_export_is_what_training_reads(store: Corrections, tmp_path: Path, kind: str) -> None:
    database = tmp_path / "corrections.sqlite"
    out = tmp_path / f"en-de{kind}"
    assert export(database, out) == 0
    for source, target in (("one", "ein"), ("two & <three>", "zwei & <drei>"), ("one", "eins")):
        store.save(made(source, target))
    done = tiny.run(["corrections", "export", str(database), str(out)], tmp_path)
    assert (done.process.exitcode, done.output) == (0, f"2 corrections are in {out}\n"), done.errors
    assert read(out) == [("two & <three>", "zwei & <drei>"), ("one", "eins")]


def test_export_of_both_ways(store: Corrections, tmp_path: Path) -> None:
    """A memory holds both, and training in one direction reads both."""
    store.save(made("one", "eins"))
    store.save(made("zwei", "two", ("de", "en")))
    assert export(tmp_path / "corrections.sqlite", tmp_path / "both.tmx") == 2
    assert read(tmp_path / "both.tmx") == [("one", "eins"), ("two", "zwei")]
    with pytest.raises(
        OptionError, match=r"has de-en and en-de, which a \.tsv cannot tell apart; write a \.tmx"
    ):
        export(tmp_path / "corrections.sqlite", tmp_path / "both.tsv")
    with pytest.raises(OptionError, match=r"its name must end in \.tmx, \.tsv or \.sqlite"):
        export(tmp_path / "corrections.sqlite", tmp_path / "both.csv")
    with pytest.raises(InputError, match="nowhere does not exist"):
        export(tmp_path / "nowhere", tmp_path / "both.tmx")
    (tmp_path / "letter").write_text("Dear Sir, " * 200, encoding="utf-8")
    with pytest.raises(InputError, match="letter cannot be used for corrections"):
        export(tmp_path / "letter", tmp_path / "both.tmx")


def test_many_threads(store: Corrections) -> None:
    def work(worker: int) -> None:
        for number in range(25):
            store.save(made(f"worker {worker} says {number}", f"Arbeiter {worker}: {number}"))
            found = store.exact("en", "de", f"worker {worker} says {number}")
            assert found is not None
            assert found.target == f"Arbeiter {worker}: {number}"
            done.append(len(store.near("en", "de", f"worker {worker} said {number}")))

    done: list[int] = []
    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(store.all())) == len(done) == 200


def test_killed_twenty_times(tmp_path: Path) -> None:
    """Whatever was acknowledged is there, and the file is whole, though its writer never got to
    say goodbye."""
    database = tmp_path / "corrections.sqlite"
    draw = random.Random(1)
    acknowledged = set()
    for turn in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(database), str(turn * 100_000)],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        said = process.stdout.readline()  # it has begun
        time.sleep(draw.uniform(0.0, 0.05))
        process.kill()
        said += process.stdout.read()
        process.wait()
        acknowledged |= {int(line) for line in said.split(b"\n")[:-1]}
        with sqlite3.connect(database) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    kept = {one.source: one.target for one in Corrections(database).all()}
    assert len(acknowledged) >= 20
    assert {f"source {number}": f"Ziel {number}" for number in acknowledged}.items() <= kept.items()
    assert all(target == source.replace("source", "Ziel") for source, target in kept.items())


def test_a_hundred_thousand_are_searched_at_once(tmp_path: Path) -> None:
    """The bound is generous, as machines differ; some 30 ms were measured."""
    draw = random.Random(1)
    words = [
        "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 10)))
        for _ in range(8000)
    ]
    sources = [" ".join(draw.choices(words, k=draw.randint(4, 30))) for _ in range(100_000)]
    store = Corrections(tmp_path / "corrections.sqlite")
    with sqlite3.connect(tmp_path / "corrections.sqlite") as connection:
        rows = [("en", "de", source, "Ziel", "m", "2026") for source in sources]
        columns = "source_language, target_language, source, target, model, time"
        connection.executemany(
            f"INSERT INTO corrections ({columns}) VALUES (?, ?, ?, ?, ?, ?)", rows
        )
    store.near("en", "de", "what is kept is read the first time")
    took = []
    for source in sources[:5]:
        start = time.process_time()
        found = store.near("en", "de", source + " more")
        took.append(time.process_time() - start)
        assert found[0][1].source == source
    assert sorted(took)[2] < 0.25, took


def test_a_copy_of_the_file_is_whole(tmp_path: Path) -> None:
    """While it is open and after it was closed: the log beside it need not be copied."""
    path = tmp_path / "corrections.sqlite"
    store = Corrections(path)
    store.save(made("one", "eins"))
    shutil.copy(path, tmp_path / "open.sqlite")
    store.save(made("two", "zwei"))
    store.close()
    store.close()  # a stop may close it more than once
    assert not path.with_name("corrections.sqlite-wal").exists()
    shutil.copy(path, tmp_path / "closed.sqlite")
    for name, count in (("open", 1), ("closed", 2)):
        copy = Corrections(tmp_path / f"{name}.sqlite")
        assert len(list(copy.all())) == count
        copy.close()


def test_a_backup_is_a_file_of_the_same_kind(store: Corrections, tmp_path: Path) -> None:
    for number in range(50):
        store.save(made(f"source {number % 40}", f"Ziel {number}"))
    backup = tmp_path / "backup.sqlite"
    assert export(tmp_path / "corrections.sqlite", backup) == 40
    assert not backup.with_name("backup.sqlite-wal").exists()
    again = Corrections(backup)
    assert list(again.all()) == list(store.all())
    rows = again._rows("SELECT target FROM corrections")
    assert len(rows) == 50  # the older ones too
    again.close()
    assert backup.stat().st_mode & 0o777 == 0o600
    with pytest.raises(OptionError, match="is the file itself; name another"):
        export(backup, tmp_path / "." / "backup.sqlite")
    store.save(made("later", "später"))  # the one that was copied is in use still


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "corrections.sqlite"
    before = os.umask(0o022)
    try:
        store = Corrections(path)
        store.save(made("one", "eins"))
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(before)
    assert set(modes.values()) == {0o600}
    assert "corrections.sqlite" in modes


def test_a_damaged_file_is_told_to_the_log_alone(
    client_of: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "secret-place.sqlite"
    store = Corrections(path)
    for number in range(500):
        store.save(made(f"source {number}", "x" * 100))
    store.close()
    store = Corrections(path)  # which has read none of it yet
    client = client_of(corrections=store)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))
    metrics._logged.clear()
    for source in ("one", "two", "source 7"):
        answer = client.post("/v1/translate", json={"text": source, "source": "en", "target": "de"})
        assert answer.status_code == 200, answer.text
        assert "secret-place" not in answer.text
    said = capsys.readouterr().err
    assert said.count('"event": "corrections"') in (1, 2)  # not at every request
    assert "secret-place" in said
    body = {"text": "one", "source": "en", "target": "de", "correction": "uno"}
    answer = client.post("/v1/corrections", json=body)
    assert answer.status_code == 503
    assert "secret-place" not in answer.text
    assert "the log says why" in answer.text.replace("its log", "the log")
    assert "secret-place" in capsys.readouterr().err


def test_a_text_is_looked_for_once_and_then_each_of_its_sentences(
    client_of: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of one sentence is that sentence, and each look asks the file."""
    store = Corrections(tmp_path / "corrections.sqlite")
    asked: list[str] = []
    find = store.exact

    def noted(source_language: str, target_language: str, source: str) -> Any:
        asked.append(source)
        return find(source_language, target_language, source)

    monkeypatch.setattr(store, "exact", noted)
    client = client_of(corrections=store)
    for text in ("one two.", "One two. Three four."):
        client.post("/translate", json={"q": text, "source": "en", "target": "de"})
    assert asked == ["one two.", "One two. Three four.", "One two.", "Three four."]


def test_a_file_of_an_earlier_version_is_opened(tmp_path: Path) -> None:
    """As it was made before corrections had users; and such a version can still save to it."""
    path = tmp_path / "old.sqlite"
    columns = "source_language, target_language, source, target, model, time"
    types = columns.replace(",", " TEXT NOT NULL,") + " TEXT NOT NULL"
    values = "('en', 'de', 'Good day.', 'Guten Tag.', 'en-de', '2026-03-01T12:00:00+00:00')"
    before = sqlite3.connect(path, isolation_level=None)
    before.execute(f"CREATE TABLE corrections (id INTEGER PRIMARY KEY, {types})")
    before.execute(f"INSERT INTO corrections ({columns}) VALUES {values}")
    store = Corrections(path)
    assert store.exact("en", "de", "Good day.") == made("Good day.", "Guten Tag.")
    before.execute(
        f"INSERT INTO corrections ({columns}) VALUES {values.replace('Guten', 'Schönen')}"
    )
    assert [one.target for one in store.of_each_user("en", "de")] == ["Schönen Tag."]
    before.close()
    again = Corrections(path)
    assert [one.user for one in again.all()] == [""]


def test_every_user_has_a_say(store: Corrections) -> None:
    for user, target in [("a", "eins"), ("b", "ein"), ("a", "einer"), ("c", "ein")]:
        store.save(replace(made("one", target), user=user))
    store.save(replace(made("one", "un", ("en", "fr")), user="a"))
    found = [(one.user, one.target) for one in store.of_each_user("en", "de")]
    assert found == [("b", "ein"), ("a", "einer"), ("c", "ein")]
    assert [one.target for one in store.all()] == ["ein", "un"]
    assert store.newest() == 5


def test_many_are_saved_at_once_or_none(store: Corrections) -> None:
    assert store.newest() == 0
    many = [made(f"source {number}", f"Ziel {number}") for number in range(50)]
    assert store.save_all(many) == 50
    assert store.save_all([*many, made("source 3", "anders"), made("source 3", "anders")]) == 1
    assert store.newest() == 51
    with pytest.raises(InputError, match="empty"):
        store.save_all([made("new", "neu"), made("bad", " ")])
    assert store.exact("en", "de", "new") is None


def test_a_memory_is_imported(tmp_path: Path) -> None:
    table = tmp_path / "a.en-de.tsv"
    table.write_text("Good day.\tGrüß Gott.\nYes.\tJa.\n", encoding="utf-8")
    database = tmp_path / "corrections.sqlite"
    words = ["corrections", "import", str(table), "--corrections", str(database)]
    command = tiny.run(words, tmp_path)
    assert command.wait() == 0, command.errors
    assert command.output == f"2 of 2 corrections are new in {database}\n"
    found = Corrections(database).exact("en", "de", "Good day.")
    assert found is not None
    assert (found.target, found.user) == ("Grüß Gott.", "")
    again = tiny.run(words, tmp_path)
    assert again.wait() == 0
    assert again.output.startswith("0 of 2 ")
    bad = tiny.run(["corrections", "import", "none.tmx", *words[3:]], tmp_path)
    assert bad.wait() == 2
    assert "none.tmx does not exist" in bad.errors
