"""Work that gives way: a client that has left costs one position more, small work passes large
work, and nobody's requests crowd out the others'."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from patience import LONG, wait_for

from dragoman.decoding.giving_way import give_way
from dragoman.decoding.search_options import SearchOptions
from dragoman.server import cores as module
from dragoman.server.cores import Cores
from dragoman.server.engine import BusyError, Engine
from dragoman.server.turns import Flow, Turns
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.tasks.translation import Translation
from dragoman.text.glossary import Glossary, Term

PLAIN = TranslateRequest()


class Stepper:
    """Stands in for a translator whose search has one position for each character of the longest
    text."""

    def __init__(self, seconds: float = 0.001) -> None:
        self.runtime = self
        self.seconds = seconds
        self.batches: list[list[str]] = []  # begun
        self.positions = 0
        self.started = threading.Event()
        self.gate: threading.Semaphore | None = None  # of which each batch needs one to go on
        self.may_step = threading.Event()
        self.may_step.set()

    def batch_rows(self, width: int, beam: int) -> int:
        return 8  # so that a batch has 1,024 characters

    def translate_following(
        self, texts: list[str], before: list[tuple[str, ...]], request: TranslateRequest
    ) -> list[Translation]:
        self.batches.append([text[:5] for text in texts])
        self.started.set()
        if self.gate is not None:
            assert self.gate.acquire(timeout=LONG)
        for _ in range(max(map(len, texts))):
            self.positions += 1
            assert self.may_step.wait(LONG)
            time.sleep(self.seconds)
            give_way()
        return [Translation(text.upper()) for text in texts]


def hold(engine: Engine, slow: Stepper, client: str = "", text: str = "held") -> Future[Any]:
    """A first batch has begun, and neither it nor a later one goes on before its gate opens."""
    slow.gate = threading.Semaphore(0)
    future = engine.submit(text, PLAIN, Flow(client) if client else None)
    assert slow.started.wait(LONG)
    return future


def answers_of(futures: list[Future[Any]]) -> list[str]:
    """How their answers begin, in the order in which they come."""
    answers: list[str] = []
    for future in futures:
        future.add_done_callback(lambda done: answers.append(done.result().text[:5]))
    return answers


def go_on(slow: Stepper, batches: int = 1000) -> None:
    assert slow.gate is not None
    slow.gate.release(batches)


@pytest.fixture
def cores() -> Iterator[Cores]:
    made = Cores()
    yield made
    made.close()


@pytest.fixture
def engine_of(cores: Cores) -> Iterator[Callable[[Any], Engine]]:
    made: list[Engine] = []

    def make(translator: Any) -> Engine:
        made.append(Engine(f"engine {len(made)}", translator, 20_000, cores))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


def test_what_nobody_waits_for_ends_at_its_next_position(
    engine_of: Callable[[Any], Engine],
) -> None:
    slow = Stepper(0.01)
    engine = engine_of(slow)
    left = engine.submit("x" * 900, PLAIN)
    assert slow.started.wait(LONG)
    assert left.cancel()
    assert engine.submit("hi", PLAIN).result(LONG).text == "HI"
    assert slow.positions < 450


def test_a_batch_goes_on_while_anybody_waits_for_it(engine_of: Callable[[Any], Engine]) -> None:
    slow = Stepper(0.005)
    engine = engine_of(slow)
    hold(engine, slow)
    first = engine.submit("a" * 40, PLAIN)
    second = engine.submit("b" * 40, PLAIN)
    go_on(slow, 1)
    wait_for(lambda: len(slow.batches) == 2)
    assert first.cancel()
    go_on(slow)
    assert second.result(LONG).text == "B" * 40
    assert slow.batches[1] == ["aaaaa", "bbbbb"]


def test_small_work_passes_large_work_of_any_model(
    engine_of: Callable[[Any], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.02)
    slow = Stepper(0.002)
    engine = engine_of(slow)
    other = engine_of(Stepper(0.0))
    large = hold(engine, slow, text="x" * 1000)
    small = [engine.submit("hi", PLAIN), other.submit("ho", PLAIN)]
    answered = answers_of([large, *small])
    go_on(slow)
    assert large.result(LONG).text == "X" * 1000
    wait_for(lambda: len(answered) == 3)
    assert {*answered[:2]} == {"HI", "HO"}
    assert slow.batches == [["xxxxx"], ["hi"]]


def test_a_batch_of_many_clients_does_not_give_way_to_others_like_them(
    engine_of: Callable[[Any], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who came first would wait for all who come later."""
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    slow = Stepper(0.005)
    engine = engine_of(slow)
    held = hold(engine, slow)
    first = [engine.submit("first one of them", PLAIN, Flow(str(number))) for number in range(20)]
    go_on(slow, 1)
    wait_for(lambda: len(slow.batches) == 2)
    later = [engine.submit("later one of them", PLAIN, Flow(f"l{number}")) for number in range(5)]
    answered = answers_of([*first, *later])
    go_on(slow)
    for future in [held, *first, *later]:
        future.result(LONG)
    assert answered == ["FIRST"] * 20 + ["LATER"] * 5


def test_large_work_does_not_starve(
    engine_of: Callable[[Any], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though small requests never end."""
    monkeypatch.setattr(module, "PATIENCE", 0.02)
    slow = Stepper(0.001)
    engine = engine_of(slow)
    large = engine.submit("x" * 600, PLAIN)
    assert slow.started.wait(LONG)
    futures: list[Future[Any]] = []
    end = time.monotonic() + LONG
    while not large.done() and time.monotonic() < end:
        futures.append(engine.submit("small", PLAIN))
        time.sleep(0.002)
    assert large.result(0).text == "X" * 600
    for future in futures:
        future.result(LONG)


def test_what_is_short_does_not_wait_for_large_work_to_catch_up(
    engine_of: Callable[[Any], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large work has given way to some of middle size for a second, and has half a second to go
    before it would do so again."""
    monkeypatch.setattr(module, "PATIENCE", 0.02)
    slow = Stepper(0.005)
    engine = engine_of(slow)
    large = engine.submit("x" * 800, PLAIN, Flow("anna"))
    assert slow.started.wait(LONG)
    engine.submit("m" * 195, PLAIN, Flow("ben")).result(LONG)
    slow.may_step.clear()
    before = slow.positions
    short = engine.submit("hi", PLAIN, Flow("carl"))
    answered = answers_of([large, short])
    passed: list[int] = []
    short.add_done_callback(lambda _: passed.append(slow.positions))
    slow.may_step.set()
    assert large.result(LONG).text == "X" * 800
    assert short.result(LONG).text == "HI"
    wait_for(lambda: len(answered) == 2)
    assert answered == ["HI", "XXXXX"]
    assert passed[0] - before < 60  # of the large work, which takes 0.3 s for them
    assert slow.batches == [["xxxxx"], ["mmmmm"], ["hi"]]


def test_more_of_the_same_request_does_not_interrupt_it(
    engine_of: Callable[[Any], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    slow = Stepper(0.001)
    engine = engine_of(slow)
    flow = Flow("anna")
    slow.gate = threading.Semaphore(0)
    futures = [engine.submit("x" * 500, PLAIN, flow)]
    assert slow.started.wait(LONG)
    futures += [engine.submit("more", PLAIN, flow) for _ in range(3)]
    go_on(slow)
    for future in futures:
        future.result(LONG)
    assert slow.batches == [["xxxxx"], ["more"] * 3]


def test_others_are_seen_behind_more_of_the_same_request(
    engine_of: Callable[[Any], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request that runs has sentences waiting whose turn is earlier."""
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    slow = Stepper(0.002)
    engine = engine_of(slow)
    bulk = Flow("anna")
    slow.gate = threading.Semaphore(0)
    futures = [engine.submit("x" * 190, PLAIN, bulk)]
    assert slow.started.wait(LONG)
    futures += [engine.submit("more", PLAIN, bulk) for _ in range(3)]
    futures.append(engine.submit("a short one of anna's", PLAIN, Flow("anna")))
    answered = answers_of(futures)
    go_on(slow)
    for future in futures:
        future.result(LONG)
    wait_for(lambda: len(answered) == 5)
    assert answered.index("A SHO") < answered.index("XXXXX")
    assert slow.batches == [["xxxxx"], ["a sho"], ["more"] * 3]


def test_long_sentences_share_no_batch_with_those_of_others(
    engine_of: Callable[[Any], Engine],
) -> None:
    slow = Stepper(0.0005)
    engine = engine_of(slow)
    held = hold(engine, slow)
    futures = [engine.submit("l" * 450, PLAIN, Flow("anna")), engine.submit("short", PLAIN)]
    futures.append(engine.submit("p" * 350, PLAIN, Flow("anna")))  # a part of a long word
    futures.append(engine.submit("m" * 450, PLAIN, Flow("ben")))
    go_on(slow)
    for future in [held, *futures]:
        future.result(LONG)
    assert ["short"] in slow.batches
    assert ["ppppp"] in slow.batches
    assert ["lllll"] in slow.batches
    assert ["mmmmm"] in slow.batches


def test_a_request_of_many_sentences_leaves_room_in_a_batch(
    engine_of: Callable[[Any], Engine],
) -> None:
    slow = Stepper(0.001)
    engine = engine_of(slow)
    held = hold(engine, slow)
    many = Flow("anna")
    futures = [engine.submit("many", PLAIN, many) for _ in range(60)]
    futures.append(engine.submit("one", PLAIN, Flow("ben")))
    go_on(slow)
    for future in [held, *futures]:
        future.result(LONG)
    (mixed,) = [batch for batch in slow.batches if "one" in batch]
    assert len(mixed) < 20  # rather than 61: all of a batch are answered at its end


def test_a_client_fills_half_of_a_queue_at_most(engine_of: Callable[[Any], Engine]) -> None:
    slow = Stepper()
    engine = engine_of(slow)
    held = hold(engine, slow)
    for _ in range(2):
        engine.submit("x" * 4900, PLAIN, Flow("anna"))
    with pytest.raises(BusyError, match="your requests wait with 9,802 characters already"):
        engine.submit("x" * 4900, PLAIN, Flow("anna"))
    late = engine.submit("hi", PLAIN, Flow("ben"))
    held.cancel()
    go_on(slow)
    assert late.result(LONG).text == "HI"
    for group in [*engine._groups.values()]:
        for item in [*group]:
            item.future.cancel()
    assert engine._characters == 0  # what is cancelled leaves the queue at once


def test_a_short_request_passes_the_sentences_of_a_long_one() -> None:
    turns = Turns()
    long = Flow("anna")
    waiting = [turns.enter(long, 100, 100.0) for _ in range(50)]
    short = turns.enter(Flow("ben"), 5, 5.0)
    assert short < waiting[0]
    turns.leave(long, 100, waiting[0])
    later = turns.enter(Flow("ben"), 5, 5.0)
    assert waiting[0] < later < waiting[1]


def test_many_requests_of_a_client_go_at_the_pace_of_one() -> None:
    """Ten requests of one client and one of another, ten sentences each: half of what is served
    is the other's."""
    turns = Turns()
    crowd = [Flow("anna") for _ in range(10)]
    single = Flow("ben")
    queue = []
    for _ in range(10):
        queue += [(turns.enter(flow, 10, 10.0), flow.client) for flow in (*crowd, single)]
    first_twenty = [client for _, client in sorted(queue)[:20]]
    assert 8 <= first_twenty.count("ben") <= 10


def test_turns_take_no_memory_for_those_who_left() -> None:
    turns = Turns()
    for number in range(100):
        flow = Flow(f"client {number}")
        turn = turns.enter(flow, 10, 10.0)
        turns.leave(flow, 10, turn if number % 2 else None)
    assert not turns._flows
    assert not turns._characters


def test_a_real_search_gives_way_and_ends(translator: Translator, cores: Cores) -> None:
    """The same translations as without, though others run in between; and an abandoned search
    leaves the model as it was."""
    engine = Engine("real", translator, 400_000, cores)
    words = " ".join(["one", "two", "three", "four"] * 6)
    glossary = Glossary([Term("two", ("neun",)), Term("four", ("acht",))])
    asked = [PLAIN, TranslateRequest(SearchOptions(beam=8)), TranslateRequest(glossary=glossary)]
    alone = [translator.translate([words], replaced, split=False)[0] for replaced in asked]
    module_patience = module.PATIENCE
    module.PATIENCE = 0.0
    try:
        futures = []
        for _ in range(5):
            engine.submit(words, asked[2]).cancel()
            futures += [engine.submit(words, one, Flow()) for one in asked]
            futures += [engine.submit("five", PLAIN, Flow())]
        found = [future.result(LONG) for future in futures]
    finally:
        module.PATIENCE = module_patience
        engine.close()
    assert [one.text for one in found] == [*(one.text for one in alone), "fünf"] * 5


def test_a_document_does_not_pass_at_once_because_its_first_sentence_is_next(
    engine_of: Callable[[Any], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it asks for is of another kind, so that it has its batches for itself."""
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    slow = Stepper(0.001)
    engine = engine_of(slow)
    held = hold(engine, slow)
    document = Flow("anna")
    aligned = TranslateRequest(align=True)
    futures = [engine.submit("of a document", aligned, document) for _ in range(50)]
    futures += [
        engine.submit(f"short but for some words {number}", PLAIN, Flow(f"{number}"))
        for number in range(40)
    ]
    go_on(slow)
    for future in [held, *futures]:
        future.result(LONG)
    shorts = [number for number, batch in enumerate(slow.batches) if "short" in batch[0]]
    before = [len(batch) for batch in slow.batches[1 : shorts[0]]]
    assert sum(before) <= 20  # of its 50 sentences
    assert sum(len(slow.batches[number]) for number in shorts) == 40


def test_a_document_that_is_alone_has_full_batches(
    engine_of: Callable[[Any], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    slow = Stepper(0.001)
    engine = engine_of(slow)
    held = hold(engine, slow, "anna")
    document = Flow("anna")
    futures = [engine.submit("document", TranslateRequest(align=True), document) for _ in range(50)]
    go_on(slow)
    for future in [held, *futures]:
        future.result(LONG)
    assert [len(batch) for batch in slow.batches] == [1, 50]


def test_a_document_does_not_pass_while_clients_ask_again(
    engine_of: Callable[[Any], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were answered a moment ago, so that just now nobody but the document waits."""
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    slow = Stepper(0.001)
    engine = engine_of(slow)
    held = hold(engine, slow, "ben")
    aligned = TranslateRequest(align=True)
    document = Flow("anna")
    futures = [engine.submit("of a document", aligned, document) for _ in range(50)]
    go_on(slow)
    for future in [held, *futures]:
        future.result(LONG)
    assert len(slow.batches[1]) <= 20
    assert sum(map(len, slow.batches)) == 51
