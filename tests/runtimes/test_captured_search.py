"""Captured searches find what the plain search finds, for every family, shape after shape and when
a shape comes again. On a CPU a graph is played by a function that does its work again; real graphs
need a GPU."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest
import torch
from recorded_graph import Recorded

from dragoman.decoding.search_options import SearchOptions
from dragoman.kernels import beam_choice
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes.beginning import Beginning, Guide
from dragoman.runtimes.captured import Graphs
from dragoman.runtimes.captured_shape import Shape
from dragoman.runtimes.runtime import GRAPHS, Request
from dragoman.runtimes.torch_runtime import TokenFacts, TorchRuntime
from dragoman.tasks.whisper_rules import Steering, WhisperRules
from dragoman.text.tokenizer import Frame

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="real graphs need a GPU"),
        ],
    ),
]
TAGGED = Frame(start=7, end=9, source_start=(8,), source_end=(9, 8), forced=(11, 12))
# A model that was not trained ends where it has to.
SHORT = SearchOptions(max_extra=20)
TRANSLATORS = ("transformer", "marian", "bart", "mbart", "pegasus", "m2m_100", "t5")


class Again:
    """In the place of a graph: it does its work again."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.replay = work
        work()


def both(
    device: str, frame: Frame | None = None, played: Any = Again, **fields: Any
) -> tuple[TorchRuntime, ...]:
    """One model in two runtimes, the second with graphs."""
    torch.manual_seed(3)
    layers = {"encoder_layers": 2, "decoder_layers": 2} | fields
    config = ModelConfig(vocab_size=500, d_model=64, d_ff=128, n_heads=4, **layers)
    model = Transformer(config).eval().to(device)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "bias" in name or "relative" in name:
                weight.add_(torch.randn_like(weight) * 0.1)
        model.output_weight.mul_(3.0)  # so that the choices are clear, and rounding decides nothing
    facts = TokenFacts(frame or Frame())
    plain, captured = (TorchRuntime(model, torch.device(device), facts) for _ in range(2))
    with torch.inference_mode():
        captured._graphs = Graphs(model, captured.device, played if device == "cpu" else None)
    return plain, captured


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "options",
    [SHORT, SearchOptions(beam=1, max_extra=20), SearchOptions(beam=5, nbest=3)],
    ids=["beam 4", "greedy", "n best"],
)
@pytest.mark.parametrize("family", TRANSLATORS)
def test_the_same_as_without_graphs(options: SearchOptions, family: str, device: str) -> None:
    frame = TAGGED if family in ("mbart", "m2m_100", "t5") else None
    plain, captured = both(device, frame, **FAMILIES[family])
    generator = torch.Generator().manual_seed(4)
    for count, longest in [(1, 5), (3, 20), (1, 7), (3, 18), (1, 5)]:
        batch = [
            Request(torch.randint(260, 500, (int(length),), generator=generator).tolist())
            for length in torch.randint(1, longest + 1, (count,), generator=generator)
        ]
        found, expected = captured.search(batch, options), plain.search(batch, options)
        for mine, theirs in zip(found, expected, strict=True):
            assert [one.tokens for one in mine] == [one.tokens for one in theirs]
            assert [one.score for one in mine] == pytest.approx(
                [one.score for one in theirs], abs=1e-4
            )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "options",
    [SearchOptions(no_repeat_ngram=2), SearchOptions(branch=True)],
    ids=["no_repeat", "branch"],
)
def test_rules_around_a_captured_step(options: SearchOptions, device: str) -> None:
    plain, captured = both(device, TAGGED, **FAMILIES["marian"])
    for request in (Request([300, 301]), Request([302], prefix=[270]), Request([300, 301])):
        found = captured.search([request], options)[0]
        expected = plain.search([request], options)[0]
        assert [one.tokens for one in found] == [one.tokens for one in expected]
        assert found[0].score == pytest.approx(expected[0].score, abs=1e-4)


PREFIXES: list[list[int]] = [[], [270], [271, 272, 273], []]
TERMS: list[Any] = [
    [],
    [[[280]], [[281, 282], [283]]],
    [[[290, 291, 292]], [[290, 291, 292]]],
    [[[284]]],
    [[[300 + place]] for place in range(6)],
]


def steered_requests(seed: int, terms: bool, prefixes: bool, count: int) -> list[Request]:
    """As many requests with other terms and prefixes each time."""
    draw = random.Random(seed)
    requests = []
    for _ in range(count):
        tokens = [draw.randrange(310, 500) for _ in range(draw.randint(6, 12))]
        said = draw.choice(TERMS) if terms else []
        places = [[draw.randrange(len(tokens))] for _ in said]
        prefix = draw.choice(PREFIXES) if prefixes else []
        requests.append(Request(tokens, prefix=prefix, terms=said, places=places))
    return requests


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("terms", "prefixes", "options"),
    [
        (False, True, SHORT),
        (False, True, SearchOptions(beam=1, max_extra=20)),
        (False, False, SearchOptions(min_length=6, max_extra=20)),
        (True, False, SHORT),
        (True, True, SearchOptions(nbest=2, min_length=5)),
    ],
    ids=["prefixes", "prefixes, greedy", "minimum length", "terms", "terms and prefixes"],
)
def test_prefixes_and_terms_within_a_captured_turn(
    terms: bool,
    prefixes: bool,
    options: SearchOptions,
    device: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shape after shape, and when a shape comes again with other terms."""
    if device == "cpu":
        monkeypatch.setattr(beam_choice, "fits", lambda *_: False)  # so that torch computes
    plain, captured = both(device, TAGGED, Recorded, **FAMILIES["marian"])
    captured._joins[295] = plain._joins[295] = True
    for seed, count in enumerate([1, 3, 4, 3, 1, 4, 2, 4]):
        batch = steered_requests(seed, terms, prefixes, count)
        found = captured.search(batch, options)
        expected = plain.search(batch, options)
        for mine, theirs in zip(found, expected, strict=True):
            assert [one.tokens for one in mine] == [one.tokens for one in theirs]
            assert [one.score for one in mine] == pytest.approx(
                [one.score for one in theirs], abs=1e-4
            )
    assert captured._graphs is not None
    shapes = cast("list[Shape]", list(captured._graphs._plans._values))
    steered = [shape for shape in shapes if shape.steering is not None]
    assert len(steered) < 8, "a shape that comes again has its graph"
    assert steered


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("has_read", [True, False])
def test_speech(timed: bool, has_read: bool, device: str) -> None:
    sizes: dict[str, Any] = {"input_size": 8, "source_length": 10, "max_length": 24}
    plain, captured = both(device, **FAMILIES["whisper"], **sizes)
    steering = Steering({}, {}, [3, 4], [7], untimed=449, latest=20)
    guide = Guide(rules=partial(WhisperRules, steering=steering, timed=timed))
    generator = torch.Generator().manual_seed(1)
    limits = torch.tensor([20], device=device)
    for _ in range(3):
        sound = torch.randn(1, 8, 20, generator=generator).to(device)
        start = Beginning(sound, None, (440, 441, 449), limits, 430)
        with torch.inference_mode():
            if has_read:
                start = replace(start, read=captured.model.start(sound))
            found = captured.loop(start, SearchOptions(3), guide).run()[0][0]
            expected = plain.loop(start, SearchOptions(3), guide).run()[0][0]
        assert found.tokens == expected.tokens
        assert found.score == pytest.approx(expected.score, abs=1e-4)


def test_what_cannot_be_captured_is_searched_step_by_step() -> None:
    plain, captured = both("cpu")
    several = [Request([300]), Request([301, 302])]
    for options in (SearchOptions(no_repeat_ngram=2), SearchOptions(sample=True, seed=3)):
        assert captured.search(several, options) == plain.search(several, options)
    term = Request([300, 301], terms=[[[280]]], places=[[0]])
    options = SearchOptions(no_repeat_ngram=2)
    assert captured.search([term], options) == plain.search([term], options)
    assert not captured._graphs or not captured._graphs._plans


def test_a_cpu_has_no_graphs() -> None:
    assert GRAPHS not in both("cpu")[0].can
