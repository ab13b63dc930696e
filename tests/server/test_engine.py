"""Batching: what shares a batch, what is refused, what is given up, and that every answer
belongs to its question."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import pytest
import tiny
from patience import LONG

from dragoman.decoding.search_options import SearchOptions
from dragoman.server.cores import Cores
from dragoman.server.engine import BusyError, Engine
from dragoman.server.turns import Flow
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation
from dragoman.text.glossary import Glossary, Term


class Recorder:
    """Stands in for a translator: remembers what it was asked for and waits until it may go on."""

    def __init__(self) -> None:
        self.batches: list[tuple[list[str], TranslateRequest]] = []
        self.runtime = self
        self.go = threading.Event()
        self.entered = threading.Event()
        self.go.set()

    def batch_rows(self, width: int, beam: int) -> int:
        return 1  # so that a batch has 128 characters

    def translate_following(
        self, texts: list[str], before: list[tuple[str, ...]], request: TranslateRequest
    ) -> list[Translation]:
        self.entered.set()
        assert self.go.wait(LONG)
        self.batches.append((texts, request))
        if "bad" in texts:
            raise ValueError("a sentence that breaks the model")
        return [Translation(text.upper()) for text in texts]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def engine(recorder: Recorder) -> Iterator[Engine]:
    engine = Engine("en-de", recorder, 1000, Cores())  # type: ignore[arg-type]
    yield engine
    recorder.go.set()
    engine.close()


def hold(engine: Engine, recorder: Recorder, client: str = "") -> Future[Any]:
    """The thread is busy with a first sentence until `go` is set."""
    recorder.go.clear()
    first = engine.submit("first", TranslateRequest(), Flow(client))
    assert recorder.entered.wait(LONG)
    return first


def test_what_is_asked_for_alike_is_translated_together(engine: Engine, recorder: Recorder) -> None:
    hold(engine, recorder)
    plain = TranslateRequest()
    wide = TranslateRequest(SearchOptions(beam=8))
    asked = [plain, wide, plain, wide, plain]
    futures = [engine.submit(text, one) for text, one in zip("abcde", asked, strict=True)]
    recorder.go.set()
    assert [future.result(LONG).text for future in futures] == ["A", "B", "C", "D", "E"]
    assert [texts for texts, _ in recorder.batches] == [["first"], ["a", "c", "e"], ["b", "d"]]
    assert [request.options.beam for _, request in recorder.batches] == [4, 4, 8]
    assert not any(request.split for _, request in recorder.batches)


def test_a_sample_is_drawn_alone(engine: Engine, recorder: Recorder) -> None:
    hold(engine, recorder)
    drawn = TranslateRequest(SearchOptions(sample=True))
    futures = [engine.submit(text, drawn) for text in "ab"]
    recorder.go.set()
    assert [future.result(LONG).text for future in futures] == ["A", "B"]
    assert [texts for texts, _ in recorder.batches] == [["first"], ["a"], ["b"]]


def test_a_batch_has_a_size(engine: Engine, recorder: Recorder) -> None:
    hold(engine, recorder)
    futures = [
        engine.submit("x" * 59, TranslateRequest()) for _ in range(7)
    ]  # 60 characters each, the end counted; 128 fill a batch
    recorder.go.set()
    for future in futures:
        future.result(LONG)
    assert [len(texts) for texts, _ in recorder.batches] == [1, 3, 3, 1]


def test_a_full_queue_takes_no_more(engine: Engine, recorder: Recorder) -> None:
    hold(engine, recorder)
    kept = engine.submit("x" * 899, TranslateRequest())
    with pytest.raises(BusyError, match="the queue of en-de is full, with 900 characters"):
        engine.submit("x" * 101, TranslateRequest())
    fits = engine.submit("x" * 99, TranslateRequest())
    recorder.go.set()
    assert (kept.result(LONG).text, fits.result(LONG).text) == ("X" * 899, "X" * 99)
    assert (
        engine.submit("x" * 5000, TranslateRequest()).result(LONG).text == "X" * 5000
    )  # an empty queue takes what the limits let through


def test_what_nobody_waits_for_is_not_translated(engine: Engine, recorder: Recorder) -> None:
    hold(engine, recorder)
    futures = [engine.submit(text, TranslateRequest()) for text in "abc"]
    assert futures[1].cancel()
    recorder.go.set()
    assert (futures[0].result(LONG).text, futures[2].result(LONG).text) == ("A", "C")
    with pytest.raises(CancelledError):
        futures[1].result(LONG)
    assert recorder.batches[1][0] == ["a", "c"]


def test_a_sentence_that_breaks_the_model_spoils_no_other(
    engine: Engine, recorder: Recorder
) -> None:
    hold(engine, recorder)
    futures = [engine.submit(text, TranslateRequest()) for text in ("a", "bad", "c")]
    recorder.go.set()
    assert (futures[0].result(LONG).text, futures[2].result(LONG).text) == ("A", "C")
    with pytest.raises(ValueError, match="breaks"):
        futures[1].result(LONG)
    assert engine.submit("d", TranslateRequest()).result(LONG).text == "D"


def test_closing_finishes_what_was_accepted(engine: Engine, recorder: Recorder) -> None:
    hold(engine, recorder)
    futures = [engine.submit(str(number) * 50, TranslateRequest()) for number in range(10)]
    threading.Timer(0.05, recorder.go.set).start()
    engine.close()
    assert [future.result(0).text for future in futures] == [
        str(number) * 50 for number in range(10)
    ]
    with pytest.raises(BusyError):
        engine.submit("late", TranslateRequest())


def test_a_function_has_the_translator_for_itself(engine: Engine, recorder: Recorder) -> None:
    assert engine.submit("text", lambda translator: translator).result(LONG) is recorder


def test_models_take_turns() -> None:
    """Both threads want to translate; the second starts after the first has ended."""
    turn = Cores()
    slow = Recorder()
    quick = Recorder()
    engines = [Engine(name, one, 1000, turn) for name, one in (("slow", slow), ("quick", quick))]  # type: ignore[arg-type]
    first = hold(engines[0], slow)
    second = engines[1].submit("b", TranslateRequest())
    assert not quick.entered.wait(0.1)
    slow.go.set()
    assert (first.result(LONG).text, second.result(LONG).text) == ("FIRST", "B")
    for engine in engines:
        engine.close()


def test_equal_glossaries_share_a_batch(engine: Engine, recorder: Recorder) -> None:
    hold(engine, recorder)
    forms = ["eins", "eins", "ein"]
    asked = [TranslateRequest(glossary=Glossary([Term("one", (form,))])) for form in forms]
    futures = [engine.submit(text, one) for text, one in zip("abc", asked, strict=True)]
    recorder.go.set()
    assert [future.result(LONG).text for future in futures] == ["A", "B", "C"]
    assert [texts for texts, _ in recorder.batches] == [["first"], ["a", "b"], ["c"]]


def test_requests_of_one_client_share_a_batch_whatever_their_length(recorder: Recorder) -> None:
    """Their turns lie far apart, since they share the pace of one client; once that cut a batch of
    64 clients behind one address into batches of a few sentences."""
    recorder.batch_rows = lambda width, beam: 32  # type: ignore[method-assign]  # 4,096 characters
    engine = Engine("en-de", recorder, 20_000, Cores())  # type: ignore[arg-type]
    hold(engine, recorder, "anna")
    short = [str(number) * (10 + 20 * number) for number in range(1, 10)]  # up to 191 characters
    long = ["x" * 250, "y" * 300]
    texts = [*long, *short]
    futures = [engine.submit(text, TranslateRequest(), Flow("anna")) for text in texts]
    recorder.go.set()
    for future in futures:
        future.result(LONG)
    engine.close()
    assert [sorted(texts) for texts, _ in recorder.batches] == [["first"], sorted(short), long]


def test_a_client_with_many_requests_gets_no_more_ahead_of_another(recorder: Recorder) -> None:
    """Another client's sentence is next, and does not have to wait for a batch of theirs."""
    recorder.batch_rows = lambda width, beam: 32  # type: ignore[method-assign]
    engine = Engine("en-de", recorder, 20_000, Cores())  # type: ignore[arg-type]
    hold(engine, recorder)
    crowd = [str(number) * 150 for number in range(8)]
    futures = [engine.submit(text, TranslateRequest(), Flow("anna")) for text in crowd]
    futures.append(engine.submit("other", TranslateRequest(), Flow("ben")))
    recorder.go.set()
    for future in futures:
        future.result(LONG)
    engine.close()
    batches = [texts for texts, _ in recorder.batches]
    assert batches[:2] == [["first"], ["other", crowd[0]]]
    assert len(batches[2]) < 7  # since it may ask again at once


def test_a_document_does_not_pass_because_its_first_sentence_is_next(recorder: Recorder) -> None:
    """Of one request, the sentences after the first wait while another client does."""
    recorder.batch_rows = lambda width, beam: 32  # type: ignore[method-assign]
    engine = Engine("en-de", recorder, 20_000, Cores())  # type: ignore[arg-type]
    hold(engine, recorder)
    page = Flow("anna")
    aligned = TranslateRequest(align=True)
    futures = [engine.submit(str(number) * 99, aligned, page) for number in range(9)]
    futures.append(engine.submit("other" * 30, TranslateRequest(), Flow("ben")))
    recorder.go.set()
    for future in futures:
        future.result(LONG)
    engine.close()
    counts = [(texts[0][:5], len(texts)) for texts, _ in recorder.batches]
    assert counts[:3] == [("first", 1), ("00000", 3), ("other", 1)]


def test_what_comes_while_a_batch_gathers_does_not_wake_the_thread(engine: Engine) -> None:
    """It wakes when it would have begun, and looks again then."""
    looks = 0
    look = engine._seconds_left

    def counted() -> float:
        nonlocal looks
        looks += 1
        return look()

    engine._seconds_left = counted  # type: ignore[method-assign]
    engine._last_seconds = 4.0  # so that it waits as long as sentences come, up to a second
    futures = []
    for number in range(60):
        futures.append(engine.submit(str(number % 10), TranslateRequest()))
        time.sleep(0.001)
    for future in futures:
        future.result(LONG)
    assert looks < 45


def test_every_answer_belongs_to_its_question(translator: Translator) -> None:
    """Twenty threads at once, each sentence also translated alone."""
    draw = random.Random(3)
    lines = [" ".join(draw.choices(tiny.ENGLISH, k=draw.randint(1, 12))) for _ in range(300)]
    alone = {line: translator.translate([line], split=False)[0].text for line in lines}
    engine = Engine("real", translator, 400_000, Cores())
    with ThreadPoolExecutor(20) as pool:
        found = list(
            pool.map(lambda line: engine.submit(line, TranslateRequest()).result(LONG).text, lines)
        )
    engine.close()
    assert found == [alone[line] for line in lines]
