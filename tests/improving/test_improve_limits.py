"""A training that is slower than it was measured to be ends early, with a model, and stays ended
when it is begun again; a signal is no such end."""

from __future__ import annotations

import _thread
import json
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import tiny

from dragoman.folder.weights import read_tensors
from dragoman.improving.back_translation import BackTranslation
from dragoman.improving.gather_text import write_pairs
from dragoman.improving.improve_journal import Journal
from dragoman.improving.improve_options import ImproveOptions, Inputs
from dragoman.improving.improve_training import Lesson, StoppedError, train
from dragoman.improving.improve_workshop import Workshop, read_tsv
from dragoman.improving.lesson_sizes import batch_tokens
from dragoman.improving.round_text import back_translated, taught
from dragoman.tasks.ray_workers import Cluster

FOREVER = 1_000_000  # steps


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    tiny.write_corpus(tmp_path, "a", 100)
    lines = [(tmp_path / f"a.{side}").read_text().splitlines() for side in ("en", "de")]
    pairs = list(zip(*lines, strict=True))
    tables = tiny.tables(valid_sentences=3)
    inputs = Inputs(
        start="",
        out=str(tmp_path / "out"),
        train=(),
        valid=(),
        test=(),
        options=ImproveOptions(),
        languages=("en", "de"),
        tables=tables,
    )
    found = Workshop(inputs, Journal(inputs.work, {}), print)
    write_pairs(found.valid_file, pairs[:10])
    write_pairs(found.place("text") / "pairs.tsv", pairs[10:])
    return found


def lesson(shop: Workshop) -> Lesson:
    text = shop.place("text") / "pairs.tsv"
    assert len(list(read_tsv(text))) == 90
    return Lesson([(text, 1.0)], FOREVER)


def test_without_pairs_a_step_has_a_size(shop: Workshop) -> None:
    """Where a model improves by text of one language alone."""
    automatic = replace(shop.inputs, tables={})
    empty = Workshop(automatic, shop.journal, print)
    assert batch_tokens(empty, 0) == batch_tokens(empty, 1) > 0


def test_a_training_ends_with_its_time(shop: Workshop) -> None:
    shop.journal.settings("parent", {"steps": FOREVER})
    folder = train(shop, "parent", lesson(shop), seconds=1.0)
    assert read_tensors(folder / "model.safetensors")
    settings = shop.journal.settings("parent", {})
    assert settings["cut"]
    taken = settings["steps"]
    assert 0 < taken < FOREVER
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[-1])["step"] == taken
    # Begun again, as after a kill before its end was noted, it takes no further step.
    before = (folder / "model.safetensors").read_bytes()
    train(shop, "parent", lesson(shop), seconds=60.0)
    assert (folder / "model.safetensors").read_bytes() == before


def test_a_signal_stops_it_and_it_goes_on(shop: Workshop) -> None:
    shop.journal.settings("parent", {"steps": FOREVER})
    over = threading.Event()

    def send() -> None:
        while not over.wait(0.5):
            _thread.interrupt_main(signal.SIGTERM)

    threading.Thread(target=send, daemon=True).start()
    with pytest.raises(StoppedError, match="run the same command again to continue") as stopped:
        train(shop, "parent", lesson(shop))
    over.set()
    assert stopped.value.name == "SIGTERM"
    assert "cut" not in shop.journal.settings("parent", {})


def test_text_goes_through_the_cluster_that_is_named(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who works is no part of what the journal compares, and reaches every passage."""
    asked = []

    def back_translate(model: Path, texts: list[Path], out: Path, options: BackTranslation) -> None:
        asked.append(options.machines.cluster)
        out.write_text("")

    monkeypatch.setattr("dragoman.improving.round_text.back_translate", back_translate)
    monkeypatch.setattr(Workshop, "model", lambda self: self.place("model"))
    monkeypatch.setattr(Journal, "reverse", lambda self: "reverse")
    cluster = Cluster("auto")
    elsewhere = Workshop(replace(shop.inputs, cluster=cluster), shop.journal, print)
    assert elsewhere.inputs.as_dict() == shop.inputs.as_dict()
    for workshop in (shop, elsewhere):
        workshop.place("round").mkdir(parents=True, exist_ok=True)
        back_translated(workshop, "round", 0, sampled=False)
        taught(workshop, "round", 0)
    assert asked == [None, None, cluster, cluster]
