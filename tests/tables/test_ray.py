"""The same work by Ray: datasets of Ray Data, and jobs whose workers are killed. Ray is started
once, on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from light_actors import doubling, dying, refusing

from dragoman import Translator
from dragoman.errors import InputError, OptionError
from dragoman.tables.field_path import FieldPath
from dragoman.tables.table_job import Engine, TableJob, run_job
from dragoman.tables.table_stages import TranslateStage
from dragoman.tasks.bulk import Job
from dragoman.tasks.ray_workers import Cluster, by_actors, connected

pytest.importorskip("ray", reason="Ray is not installed")

TEXTS = ["one two", "nine three eight", "", "six seven one", "zero"]


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray

    here = Path(__file__)
    path = [str(here.parent), str(here.parents[2])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Actors import what the tests import. As a part of the environment of all workers it keeps
        # those that Ray has ready; as a runtime_env it would have each of them replaced.
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        patch.setenv("RAY_idle_worker_killing_time_threshold_ms", "600000")  # the next test's
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
            object_store_memory=100 * 2**20,
        )
        yield ray
        ray.shutdown()


def test_results_come_in_order_and_a_dead_actor_is_replaced(ray: Any, tmp_path: Path) -> None:
    import functools

    make_work = functools.partial(dying, str(tmp_path))
    results = list(by_actors(make_work, ["cpu"], iter(range(12)), Cluster(num_cpus=0.5)))
    assert [value for value, _ in results] == [2 * number for number in range(12)]
    assert len({process for _, process in results}) == 2


@pytest.mark.parametrize("in_order", [True, False])
def test_actors_without_room_are_not_waited_for(ray: Any, in_order: bool) -> None:
    """As with `--workers 4` where Ray has two CPUs."""
    found = by_actors(doubling, ["cpu"] * 4, iter(range(9)), Cluster(num_cpus=1), in_order)
    assert sorted(found) == [2 * number for number in range(9)]


def test_nothing_to_do_is_soon_done(ray: Any) -> None:
    assert list(by_actors(doubling, ["cpu"], iter([]), Cluster(num_cpus=0.5))) == []


def test_an_error_of_an_actor_is_the_users(ray: Any) -> None:
    with pytest.raises(InputError, match="no such model"):
        list(by_actors(refusing, ["cpu"], iter([1]), Cluster(num_cpus=0.5)))


def test_a_dataset_is_translated(ray: Any, trained: Path) -> None:
    import dragoman.ray as here

    table = pyarrow.table({"id": range(len(TEXTS)), "text": TEXTS})
    rows = ray.data.from_arrow(table)
    asked = here.Asked(add=("score", "flags"))
    translated = here.translate(rows, "text", trained, asked, num_cpus=0.5, batch_size=2)
    found = sorted(translated.take_all(), key=lambda row: row["id"])
    expected = Translator.load(trained, "cpu").translate(TEXTS)
    assert [row["text"] for row in found] == TEXTS
    assert [row["translation"] for row in found] == [one.text for one in expected]
    assert [row["translation_error"] for row in found] == [None] * len(TEXTS)
    scores = [row["translation_score"] for row in found]
    assert scores == pytest.approx([one.score for one in expected], abs=1e-4)


def test_actors_leave_room_for_reading_and_writing(ray: Any, trained: Path, tmp_path: Path) -> None:
    """Four are asked for, and Ray has two CPUs."""
    import dragoman.ray as here

    source = tmp_path / "in"
    source.mkdir()
    for name in "ab":
        table = pyarrow.table({"name": [name] * len(TEXTS), "text": TEXTS})
        pyarrow.parquet.write_table(table, source / f"{name}.parquet")
    rows = here.detect(ray.data.read_parquet(str(source)), "text", concurrency=4)
    rows.write_parquet(str(tmp_path / "out"))
    found = pyarrow.parquet.read_table(tmp_path / "out").to_pylist()
    assert [row["text"] for row in found if row["name"] == "b"] == TEXTS
    assert [row["text"] for row in found if row["name"] == "a"] == TEXTS


def test_a_job_gives_the_same_files_by_ray_and_alone(
    ray: Any, trained: Path, tmp_path: Path
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("\n".join(TEXTS * 3), encoding="utf-8")
    stage = TranslateStage(FieldPath.parse("text"), Job(trained))
    alone = TableJob([str(source)], stage, str(tmp_path / "alone"), 4)
    shared = TableJob([str(source)], stage, str(tmp_path / "shared"), 4)
    list(run_job(alone, Engine(["cpu"])))
    *_, last = run_job(shared, Engine(["cpu"], Cluster(num_cpus=0.5)))
    assert (last.rows, last.done, last.parts) == (15, 15, 4)
    for number in range(4):
        name = f"in.{number:05d}.jsonl"
        by_ray = (tmp_path / "shared" / name).read_bytes()
        assert by_ray == (tmp_path / "alone" / name).read_bytes()


def test_stages_detect_and_score(ray: Any, trained: Path) -> None:
    import dragoman.ray as here

    rows = ray.data.from_items(
        [
            {"en": "one two", "de": "eins zwei"},
            {"en": "one two", "de": "neun neun neun null"},
            {"en": "one two", "de": None},
        ]
    )
    scored = here.score(rows, ("en", "de"), trained, num_cpus=0.5).take_all()
    gap, right, wrong = sorted(scored, key=lambda row: len(row["de"] or ""))
    assert right["score"] > wrong["score"] + 1
    assert gap["score"] is None
    assert {row["score_error"] for row in scored} == {None}
    text = "Die Sitzung wurde gestern um neun Uhr eröffnet und dauerte drei Stunden."
    found = here.detect(ray.data.from_items([{"t": text}]), "t", num_cpus=0.5).take_all()
    assert found[0]["language"] == "de"
    assert found[0]["language_confidence"] > 0.9


def test_no_cluster_at_an_address(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: Any) -> None:
        assert options["address"] == "10.0.0.1:6379"
        raise ConnectionError("could not connect\nmore lines")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(
        OptionError, match=r"no Ray answers at 10\.0\.0\.1:6379: could not connect$"
    ):
        connected(Cluster(address="10.0.0.1:6379"))
