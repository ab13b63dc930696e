"""Learning once a day: when it is due, and that whatever happens there leaves the service alone."""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC, datetime, time
from pathlib import Path

import pytest
import tiny
from patience import LONG, wait_for

pytest.importorskip("fastapi", reason="fastapi is missing: pip install 'dragoman[serve]'")

from dragoman.errors import OptionError
from dragoman.folder.shipped import SHIPPED
from dragoman.server.correction_users import user_of
from dragoman.server.corrections import Correction, Corrections
from dragoman.server.learning_schedule import (
    LearnSchedule,
    learn_command,
    seconds_until,
    time_of_day,
)


def test_the_time_of_day() -> None:
    assert time_of_day("daily") == time(3, 0)
    assert time_of_day("22:30") == time(22, 30)
    for wrong in ("24:00", "3:00", "hourly", "", "03:60", "03:00:00"):
        with pytest.raises(OptionError, match="daily"):
            time_of_day(wrong)


def test_the_seconds_until_then() -> None:
    now = datetime(2026, 3, 1, 2, 59, 30, tzinfo=UTC)
    assert seconds_until(time(3, 0), now) == 30
    assert seconds_until(time(2, 59), now) == 24 * 3600 - 30
    assert seconds_until(time(3, 0), datetime(2026, 3, 1, 3, 0, tzinfo=UTC)) == 24 * 3600


class Place:
    """A folder, corrections, and a command that says what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.model = folder / "en-de"
        self.model.mkdir()
        self.corrections = folder / "corrections.sqlite"
        self.reloads = 0
        self.script = ""
        self.correct("one")

    def correct(self, source: str) -> None:
        store = Corrections(self.corrections)
        store.save(Correction("en", "de", source, "eins", "m", "2026"))
        store.close()

    def command(self, folder: Path, corrections: Path) -> list[str]:
        assert (folder, corrections) == (self.model, self.corrections)
        return [sys.executable, "-c", self.script]

    def reload(self) -> None:
        self.reloads += 1

    def schedule(self) -> LearnSchedule:
        folders = [SHIPPED / "en-de", self.model]
        return LearnSchedule(folders, self.corrections, time(3, 0), self.reload, self.command)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def logged(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    found: dict[str, str] = json.loads(capsys.readouterr().err.strip().splitlines()[-1])
    return found


def said(kept: bool) -> str:
    return f"import json; print(json.dumps({{'kept': {kept}, 'why': 'because'}}))"


def test_a_better_model_is_loaded_and_another_is_not(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule = place.schedule()
    place.script = said(True)
    schedule.learn_now()
    assert place.reloads == 1
    assert logged(capsys)["result"] == "because"
    schedule.learn_now()
    assert logged(capsys)["result"] == "no new corrections"
    place.correct("two")
    place.script = said(False)
    schedule.learn_now()
    assert place.reloads == 1
    assert logged(capsys)["folder"] == "en-de"


def test_a_failure_is_one_sentence_in_the_log(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule = place.schedule()
    place.script = "import sys; sys.exit('a warning\\nerror: the disk is full')"
    schedule.learn_now()
    assert place.reloads == 0
    assert logged(capsys)["error"] == "error: the disk is full"


def test_closing_ends_the_process_that_learns(place: Place) -> None:
    schedule = place.schedule()
    started = place.corrections.with_name("started")
    place.script = f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(600)"
    thread = threading.Thread(target=schedule.learn_now)
    thread.start()
    wait_for(started.exists)
    schedule.close()
    thread.join(LONG)
    assert not thread.is_alive()


def test_the_command_is_for_the_background(tmp_path: Path) -> None:
    words = learn_command(tmp_path / "en-de", tmp_path / "c.sqlite")
    assert words[1:4] == ["-m", "dragoman", "learn"]
    assert "--background" in words


def test_bundled_models_alone_cannot_learn(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="bundled ones are never changed"):
        LearnSchedule([SHIPPED / "en-de"], tmp_path / "c", time(3, 0), lambda: None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--learn", "daily"], "add --corrections with a file"),
        (["--learn", "noon", "--corrections", "c.sqlite"], "give `daily` or a time"),
    ],
)
def test_a_schedule_that_cannot_be_kept_is_refused(
    tmp_path: Path, words: list[str], message: str
) -> None:
    command = tiny.run(["serve", *words], tmp_path)
    assert command.wait() == 2
    assert message in command.errors


def test_users_are_keys_or_hashes_that_nobody_can_turn_back() -> None:
    assert user_of("key anna") == "key anna"
    one = user_of("203.0.113.9")
    assert "203.0.113" not in one
    assert len(one) == len("address ") + 16
    assert one == user_of("203.0.113.9")
    assert one != user_of("203.0.113.10")
    # Another process has another secret.
    assert user_of("203.0.113.9", b"one secret") != user_of("203.0.113.9", b"another")
    # A network of IPv6 is one user.
    assert user_of("2001:db8::1") == user_of("2001:db8::ffff:2")
    assert user_of("2001:db8::1") != user_of("2001:db8:0:1::1")
    assert user_of("testclient").startswith("address ")
