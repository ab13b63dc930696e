"""What goes on around the native library's search: what it reads first, and how its best outputs
are read back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER
from dragoman.decoding.trace import Array, Record, Trace
from dragoman.folder import quantised
from dragoman.kernels import native
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8, native_search
from dragoman.runtimes.beginning import Beginning, Guide
from dragoman.runtimes.native_search import read_back
from dragoman.runtimes.runtime import Request
from dragoman.runtimes.torch_runtime import TokenFacts, TorchRuntime
from dragoman.text.tokenizer import Frame

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native library was not built: no compiler was found"
)
END = 3


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def native_model(**fields: object) -> Any:
    torch.manual_seed(5)
    sizes: dict[str, object] = {"d_model": 48, "d_ff": 100, "n_heads": 4}
    layers = {"encoder_layers": 1, "decoder_layers": 2}
    config = ModelConfig(500, **(sizes | layers | fields))  # type: ignore[arg-type]
    model = Transformer(config).eval()
    return int8.build(config, quantised.quantise(model), weights_only=False)


@torch.inference_mode()
@pytest.mark.parametrize(
    "fields",
    [{}, {"positions": "learned"}, {"positions": "rotary"}, {"norm_embeddings": True}],
)
def test_the_library_embeds_what_the_encoder_reads(fields: dict[str, object]) -> None:
    model = native_model(**fields)
    source = torch.randint(500, (3, 40))
    stack = model.encoder.native
    assert stack.embeds
    x = torch.empty(3, 40, 48)
    native.embed(stack.struct, source, x)
    torch.testing.assert_close(x, model.encoder.embeddings(source))


def test_what_cannot_be_embedded_is_refused() -> None:
    model = native_model(max_length=20)
    struct = model.encoder.native.struct
    for token in (500, -1):
        with pytest.raises(ValueError, match="outside"):
            native.embed(struct, torch.tensor([[4, token]]), torch.empty(1, 2, 48))
    with pytest.raises(ValueError, match="outside"):
        native.embed(struct, torch.full((1, 21), 4), torch.empty(1, 21, 48))


def test_two_texts_in_one_are_embedded_by_torch() -> None:
    """The second of them has a vector of its own."""
    assert not native_model(separator=7, decoder_layers=0).encoder.native.embeds


def test_a_source_may_have_no_tokens_at_all() -> None:
    """Where the frame adds none, either."""
    facts = TokenFacts(Frame(source_end=()))
    runtime = TorchRuntime(native_model(), torch.device("cpu"), facts, name="int8")
    options = SearchOptions(max_length=6)
    batch = [Request(()), Request(())]
    start = runtime.start(batch, options)
    assert start.source is not None
    assert start.source.shape == (2, 0)
    assert start.source.dtype == torch.long
    assert runtime.search(batch, options) == [runtime.search(batch[:1], options)[0]] * 2


@torch.inference_mode()
@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("kv_heads", [0, 2])
def test_keys_and_values_of_the_memory(kv_heads: int) -> None:
    """Of more sentences than one part of the work has."""
    model = native_model(kv_heads=kv_heads)
    memory = torch.randn(7, 33, 48)
    for layer in model.decoder.layers:
        attention = layer.cross_attention
        expected = MultiHeadAttention.keys_values(attention, memory)
        assert torch.equal(attention.keys_values(memory), expected)


@pytest.mark.parametrize("beam", [1, 4])
def test_nothing_is_read_of_a_cache_that_was_not_written(
    monkeypatch: pytest.MonkeyPatch, beam: int
) -> None:
    """Over sentences of different lengths, whose caches grow and which are dropped."""
    runtime = TorchRuntime(native_model(), torch.device("cpu"), name="int8")
    batch = [Request(range(4, 4 + length)) for length in (2, 9, 5, 30)]
    options = SearchOptions(beam=beam, max_extra=40)
    expected = runtime.search(batch, options)

    def full_of_nan(like: Tensor, *shape: int) -> Tensor:
        return like.new_full(shape, math.nan)

    monkeypatch.setattr(torch.Tensor, "new_empty", full_of_nan)
    assert runtime.search(batch, options) == expected


@torch.inference_mode()
@pytest.mark.parametrize("head", [(4,), (4, 5, 6, 7, 8)])
@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_a_search_goes_on_where_its_text_was_read_again(
    monkeypatch: pytest.MonkeyPatch, positions: str, head: tuple[int, ...]
) -> None:
    """As a text that outgrows what the model sees is, between two positions for which there would
    still be space; with a learnt vector for each position the table would not have the next."""
    model = native_model(encoder_layers=0, positions=positions, max_length=40)
    runtime = TorchRuntime(model, torch.device("cpu"), name="int8")
    start = Beginning(None, None, head, torch.tensor([200]), END)

    def written(options: SearchOptions) -> list[int]:
        loop = runtime.loop(start, options)
        said = [*head]
        said += [int(newest) for newest in loop.stream(41 - len(head))]
        for _ in range(2):
            runtime.reread(loop, said[-20:])
            said += [int(newest) for newest in loop.stream(21)]
        return said

    options = SearchOptions(beam=1)
    assert native_search.fits(model, options, Guide())
    found = written(options)
    monkeypatch.setattr(native_search, "fits", lambda *_: False)
    assert found == written(options)
    assert len(found) == 41 + 2 * 21


def record_of(tokens: Array, beams: Array, totals: Array) -> Record:
    """A record whose log-probabilities are numbered in order."""
    log_probs = -numpy.arange(1.0, tokens.size + 1, dtype=numpy.float32)
    return Record(tokens, log_probs.reshape(tokens.shape), totals.astype(numpy.float32), beams)


def test_the_best_output_is_read_back_from_its_end() -> None:
    """Two outputs end: one at the second position with -2, and one at the third, -2.1, which is
    better for its length; it continues beam 1, and that beam 0."""
    tokens = numpy.array([[[5, 6]], [[END, 7]], [[8, END]]])
    beams = numpy.array([[[0, 0]], [[0, 0]], [[0, 1]]])
    totals = numpy.array([[[-1.0, -1.5]], [[-2.0, -1.9]], [[-2.2, -2.1]]])
    record = record_of(tokens, beams, totals)
    ((best,),) = read_back(record, torch.tensor([9]), END, alpha=1.0)
    assert best.tokens == (5, 7)
    assert best.log_probs == (-1.0, -4.0, -6.0)
    assert best.score == pytest.approx(-2.1 / (8 / 6))
    ((shorter,),) = read_back(record, torch.tensor([9]), END, alpha=0.0)
    assert shorter == Hypothesis((5,), -2.0, (-1.0, -3.0))


def test_an_output_without_an_end_is_taken_where_none_has_one() -> None:
    tokens = numpy.array([[[5]], [[6]]])
    record = record_of(tokens, numpy.zeros_like(tokens), numpy.array([[[-1.0]], [[-3.0]]]))
    ((cut,),) = read_back(record, torch.tensor([2]), END, alpha=0.0)
    assert cut == Hypothesis((5, 6), -3.0, (-1.0, -2.0))
    ((nothing,),) = read_back(record, torch.tensor([3]), END, alpha=0.0)
    assert nothing == Hypothesis((), NEVER, ())


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_what_the_trace_finds_is_found(beam: int, alpha: float) -> None:
    """Of random choices, among them sums that are no numbers and sentences of one position."""
    generator = numpy.random.default_rng(beam)
    shape = (12, 30, beam)
    tokens = generator.integers(0, 12, shape)
    beams = generator.integers(0, beam, shape)
    totals = -generator.random(shape).cumsum(0)
    totals[generator.random(shape) < 0.2] = NEVER
    totals[generator.random(shape) < 0.1] = math.nan
    record = record_of(tokens, beams, totals)
    max_lengths = torch.from_numpy(generator.integers(1, 15, 30))
    trace = Trace(max_lengths, beam)
    trace.extend(record)
    expected = trace.hypotheses(SearchOptions(beam=beam, alpha=alpha), END)
    found = read_back(record, max_lengths, END, alpha)
    for (one,), (other,) in zip(found, expected, strict=True):
        assert (one.tokens, one.log_probs) == (other.tokens, other.log_probs)
        assert one.score == pytest.approx(other.score, rel=1e-12)
