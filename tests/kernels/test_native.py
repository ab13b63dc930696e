"""The native library for CPUs: every level of instructions against plain arithmetic, and numbers
that depend on nothing but their own sentence."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.decoding.choosers import likeliest
from dragoman.decoding.giving_way import giving_way
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem
from dragoman.folder import quantised
from dragoman.kernels import beam_choice, native
from dragoman.kernels import native_structs as structs
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8, native_search
from dragoman.runtimes.beginning import Guide
from dragoman.runtimes.runtime import Request
from dragoman.runtimes.torch_runtime import TorchRuntime

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native library was not built: no compiler was found"
)
LEVELS = ("avx512", "avx2", "plain")


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    before = native.level()
    if not native.use(request.param):
        pytest.skip(f"this CPU has no {request.param}")
    yield request.param
    native.use(before)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def expected(x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """The product in integers of 64 bits."""
    largest = x.abs().amax(-1, keepdim=True).double()
    bytes_ = torch.floor(128.5 + x.double() * (127.0 / largest).nan_to_num(0.0)).clamp(0, 255)
    sums = (bytes_.long() - 128) @ weight.long().T
    y = sums.double() * (largest / 127.0) * scale.double()
    return (y if bias is None else y + bias.double()).float()


@pytest.mark.parametrize(
    ("rows", "columns", "outputs"),
    [(1, 4, 16), (3, 7, 5), (6, 64, 64), (7, 130, 200), (13, 512, 99), (2, 1, 1)],
)
@pytest.mark.parametrize("with_bias", [False, True])
def test_a_product(level: str, rows: int, columns: int, outputs: int, with_bias: bool) -> None:
    torch.manual_seed(rows)
    weight = torch.randint(-127, 128, (outputs, columns), dtype=torch.int8)
    scale = torch.rand(outputs) / 100
    bias = torch.randn(outputs) if with_bias else None
    x = torch.randn(rows, columns)
    found = native.PackedMatrix(weight, scale, bias)(x)
    # A value halfway between two integers may go to either.
    torch.testing.assert_close(found, expected(x, weight, scale, bias), rtol=1e-3, atol=5e-3)


def test_the_largest_sums_do_not_overflow(level: str) -> None:
    columns = 4096
    weight = torch.full((32, columns), -127, dtype=torch.int8)
    weight[1::2] = 127
    x = torch.ones(5, columns)
    x[1] = -1.0
    found = native.PackedMatrix(weight, torch.ones(32), None)(x)
    signs = torch.tensor([1.0, -1.0, 1.0, 1.0, 1.0])[:, None]
    ends = torch.tensor([-127.0, 127.0]).repeat(16)
    torch.testing.assert_close(found, signs * ends * columns, rtol=1e-6, atol=0.0)


def test_rows_of_zeros(level: str) -> None:
    weight = torch.randint(-127, 128, (20, 12), dtype=torch.int8)
    bias = torch.randn(20)
    found = native.PackedMatrix(weight, torch.ones(20), bias)(torch.zeros(3, 12))
    torch.testing.assert_close(found, bias.expand(3, -1))


def small_model(**fields: Any) -> TorchRuntime:
    torch.manual_seed(5)
    sizes: dict[str, Any] = {"d_model": 48, "d_ff": 100, "n_heads": 3}
    layers = {"encoder_layers": 2, "decoder_layers": 2}
    model = Transformer(ModelConfig(500, **(sizes | layers | fields))).eval()
    with torch.no_grad():
        model.output_weight.mul_(2.0)
    return TorchRuntime(
        int8.build(model.config, quantised.quantise(model), weights_only=False),
        torch.device("cpu"),
        name="int8",
    )


def requests(count: int) -> list[Request]:
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(1, 30, (count,), generator=generator).tolist()
    return [
        Request(torch.randint(4, 500, (length,), generator=generator).tolist())
        for length in lengths
    ]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("fields", [{}, {"norm_first": True}, {"positions": "rotary"}])
@pytest.mark.parametrize("beam", [1, 4])
def test_neither_batch_nor_threads_change_anything(fields: dict[str, Any], beam: int) -> None:
    runtime = small_model(**fields)
    batch = requests(9)
    options = SearchOptions(beam=beam, max_length=12)
    torch.set_num_threads(1)
    alone = [runtime.search([one], options)[0][0] for one in batch]
    assert [found[0] for found in runtime.search(batch, options)] == alone
    torch.set_num_threads(3)
    assert [found[0] for found in runtime.search(batch, options)] == alone
    assert [runtime.search([one], options)[0][0] for one in batch] == alone


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("threads_of_torch", [2, 3])
def test_threads_share_the_sentences_or_the_vocabulary(threads_of_torch: int) -> None:
    """With outputs enough that it is worth it, and at the end fewer sentences than threads."""
    torch.manual_seed(5)
    config = ModelConfig(40_000, d_model=48, d_ff=64, n_heads=3, encoder_layers=1, decoder_layers=1)
    model = Transformer(config).eval()
    with torch.no_grad():
        model.output_weight.mul_(2.0)
    built = int8.build(config, quantised.quantise(model), weights_only=False)
    runtime = TorchRuntime(built, torch.device("cpu"), name="int8")
    batch = [replace(one, tokens=one.tokens[: 2 + index]) for index, one in enumerate(requests(7))]
    options = SearchOptions(beam=4, max_extra=9)
    torch.set_num_threads(1)
    alone = [runtime.search([one], options)[0] for one in batch]
    torch.set_num_threads(threads_of_torch)
    assert runtime.search(batch, options) == alone


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("beam", "fields"), [(1, {}), (4, {}), (4, {"kv_heads": 1}), (7, {})])
def test_the_native_search_finds_what_the_plain_loop_finds(
    monkeypatch: pytest.MonkeyPatch, beam: int, fields: dict[str, Any]
) -> None:
    """Over sentences that end at different times: where the others need more space, those that have
    ended are dropped."""
    torch.set_num_threads(2)
    runtime = small_model(**fields)
    batch = requests(11)
    options = SearchOptions(beam=beam, max_extra=45)
    assert native_search.fits(runtime.model, options, Guide())
    found = runtime.search(batch, options)
    monkeypatch.setattr(native_search, "fits", lambda *_: False)
    expected = runtime.search(batch, options)
    assert [one[0].tokens for one in found] == [one[0].tokens for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one[0].score == pytest.approx(other[0].score, rel=1e-5)
        assert one[0].log_probs == pytest.approx(other[0].log_probs, rel=1e-4, abs=1e-5)


def test_a_search_gives_way_at_every_position_where_somebody_waits() -> None:
    runtime = small_model()
    options = SearchOptions(beam=2, max_length=9)
    (alone,) = runtime.search(requests(1), options)
    calls = 0

    def between() -> None:
        nonlocal calls
        calls += 1
        runtime.search(requests(3), SearchOptions(beam=3, max_length=3))  # of another shape

    with giving_way(between):
        (found,) = runtime.search(requests(1), options)
    assert found == alone
    layers = runtime.model.config.encoder_layers
    assert layers + len(found[0].log_probs) - 1 <= calls <= layers + 8


@torch.inference_mode()
def test_a_search_position_by_position() -> None:
    """As a stream of tokens is read, with more positions than a cache has at first."""
    runtime = small_model()
    options = SearchOptions(beam=1, max_length=40)
    start = runtime.start(requests(1), options)
    loop = runtime.loop(start, options)
    assert isinstance(loop, native_search.NativeLoop)
    streamed = [int(tokens[0, 0]) for tokens in loop.stream()]
    (best,) = loop.hypotheses()
    assert streamed[: len(best[0].tokens)] == list(best[0].tokens)
    assert best == runtime.search(requests(1), options)[0]


@pytest.mark.parametrize("beam", [1, 4])
def test_a_shortlist_of_ones_own(beam: int) -> None:
    """A sentence's output depends neither on its neighbours nor on what their shortlists hold."""
    torch.manual_seed(2)
    table = torch.randint(-1, 500, (500, 6), dtype=torch.int16)
    shortlist = {"frequent": torch.arange(256, 270), "table": table}
    runtime = small_model()
    runtime._shortlist = shortlist
    batch = requests(9)
    options = SearchOptions(beam=beam, max_length=12)
    found = [one[0] for one in runtime.search(batch, options)]
    assert found == [runtime.search([one], options)[0][0] for one in batch]
    for one, request in zip(found, batch, strict=True):
        allowed = {*range(270), *table[request.tokens].flatten().tolist()}
        assert set(one.tokens) <= allowed


def test_all_tokens_on_the_shortlist_change_nothing() -> None:
    runtime = small_model()
    batch = requests(5)
    options = SearchOptions(beam=4, max_length=12)
    whole = [one[0] for one in runtime.search(batch, options)]
    runtime._shortlist = {"frequent": torch.arange(500), "table": torch.full((500, 1), -1)}
    assert [one[0] for one in runtime.search(batch, options)] == whole


def test_what_the_model_does_not_have_is_refused() -> None:
    """A token, a position or a length that would be read from beyond the end of an array."""
    runtime = small_model(max_length=40)
    decoder: Any = runtime.model.decoder
    start = runtime.start(requests(2), SearchOptions())

    def taken(token: int) -> Tensor:
        state = runtime.model.start(start.source, start.lengths)
        return decoder.step(torch.full((2, 3), token), state)

    assert taken(499).shape == (2, 3, 48)
    for token in (500, -1, 2**40):
        with pytest.raises(ValueError, match="outside"):
            taken(token)
    state = runtime.model.start(start.source, start.lengths)
    for _ in range(40):
        decoder.step(torch.full((2, 1), 4), state)
    with pytest.raises(ValueError, match="outside"):
        decoder.step(torch.full((2, 1), 4), state)
    encoder: Any = runtime.model.encoder
    x = torch.randn(2, 3, 48)
    for length in (4, -1):
        with pytest.raises(ValueError, match="outside"):
            native.encode(encoder.native.struct, x, torch.tensor([3, length]), None)


def test_nothing_to_compute() -> None:
    """No rows, and a source that is all padding."""
    runtime = small_model()
    matrix = native.PackedMatrix(torch.ones(8, 4, dtype=torch.int8), torch.ones(8), None)
    assert matrix(torch.empty(0, 4)).shape == (0, 8)
    decoder: Any = runtime.model.decoder
    state = runtime.model.start(torch.full((1, 3), 5), torch.tensor([0]))
    assert decoder.step(torch.full((1, 1), 4), state).isfinite().all()
    state.keep(torch.empty(0, dtype=torch.long))
    assert decoder.step(torch.full((0, 1), 4), state).shape == (0, 1, 48)


@pytest.mark.parametrize(
    ("weight", "scale", "bias"),
    [
        (torch.ones(3, 4), torch.ones(3), None),
        (torch.ones(3, 4, dtype=torch.int8), torch.ones(2), None),
        (torch.ones(3, 4, dtype=torch.int8), torch.ones(3), torch.ones(4)),
        (torch.ones(3, native.MOST_COLUMNS + 1, dtype=torch.int8), torch.ones(3), None),
    ],
)
def test_a_matrix_whose_parts_disagree(weight: Tensor, scale: Tensor, bias: Any) -> None:
    with pytest.raises(AssertionError):
        native.PackedMatrix(weight, scale, bias)


def test_rows_of_a_matrix(level: str) -> None:
    weight = torch.randint(-128, 128, (40, 30), dtype=torch.int8)
    scale = torch.rand(40)
    bias = torch.randn(40)
    x = torch.randn(3, 30)
    ids = torch.tensor([39, 0, 7, 7, 21])
    whole = native.PackedMatrix(weight, scale, bias)(x)
    assert torch.equal(native.PackedMatrix(weight, scale, bias, ids)(x), whole[:, ids])
    with pytest.raises(IndexError):
        native.PackedMatrix(weight, scale, bias, torch.tensor([40]))


def test_matrices_are_moved_next_to_each_other(level: str) -> None:
    weights = [torch.randint(-128, 128, (rows, 30), dtype=torch.int8) for rows in (40, 7, 130)]
    matrices = [native.PackedMatrix(weight, torch.rand(len(weight)), None) for weight in weights]
    x = torch.randn(3, 30)
    before = [matrix(x) for matrix in matrices]
    native.settle(matrices)
    places = [matrix.packed.data_ptr() for matrix in matrices]
    assert [matrix.struct.packed for matrix in matrices] == places
    assert all(place % 64 == 0 for place in places)
    assert places[2] - places[0] == (48 + 16) * 32
    for matrix, found in zip(matrices, before, strict=True):
        assert torch.equal(matrix(x), found)


def test_a_large_matrix_stays_where_it_is() -> None:
    weight = torch.ones(66_000, 64, dtype=torch.int8)
    matrix = native.PackedMatrix(weight, torch.ones(66_000), None)
    place = matrix.packed.data_ptr()
    native.settle([matrix])
    assert matrix.packed.data_ptr() == matrix.struct.packed == place


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_what_is_no_number_ends_nothing_but_its_own_row(level: str, broken: float) -> None:
    weight = torch.randint(-128, 128, (40, 30), dtype=torch.int8)
    matrix = native.PackedMatrix(weight, torch.rand(40), None)
    x = torch.randn(8, 30)
    whole = matrix(x)
    x[3, 11] = broken
    others = [row for row in range(8) if row != 3]
    assert torch.equal(matrix(x)[others], whole[others])


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("d_model", [48, 54])  # heads of 16 and 18, which fills no register
def test_every_level_finds_the_same_outputs(beam: int, d_model: int) -> None:
    runtime = small_model(d_model=d_model)
    batch = requests(6)
    options = SearchOptions(beam=beam, max_length=12)
    before = native.level()
    found = {}
    try:
        for name in filter(native.use, LEVELS):
            found[name] = [one[0].tokens for one in runtime.search(batch, options)]
    finally:
        native.use(before)
    assert all(tokens == found[before] for tokens in found.values())


def test_several_threads_of_python_at_once() -> None:
    runtime = small_model()
    batch = requests(12)
    options = SearchOptions(beam=4, max_length=12)
    alone = [runtime.search([one], options)[0][0] for one in batch]
    found: list[Any] = [None] * len(batch)

    def search(first: int) -> None:
        for index in range(first, len(batch), 4):
            found[index] = runtime.search([batch[index]], options)[0][0]

    workers = [threading.Thread(target=search, args=(first,)) for first in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == alone


@pytest.mark.usefixtures("threads")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_computes_too() -> None:
    """Its threads are not those of its parent."""
    torch.set_num_threads(2)
    weight = torch.randint(-127, 128, (4000, 256), dtype=torch.int8)
    matrix = native.PackedMatrix(weight, torch.ones(4000), None)
    x = torch.randn(16, 256)
    here = matrix(x).numpy().tobytes()
    child = os.fork()
    if not child:  # where torch's own threads do not work any more
        os._exit(0 if matrix(x).numpy().tobytes() == here else 1)
    assert os.waitpid(child, 0)[1] == 0


class _Table:
    """Logits that follow from the position alone."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits
        self.position = 0

    def step(self, tokens: Tensor, state: _Table) -> Tensor:
        rows, beams = tokens.shape
        found = self.logits[self.position, :rows, :beams].clone()
        self.position += 1
        return found

    def reorder(self, beams: Tensor) -> None: ...

    def keep(self, sentences: Tensor) -> None:
        self.logits = self.logits[:, sentences]


@pytest.mark.parametrize(("beams", "size"), [(1, 70), (4, 1000), (5, 3), (16, 129)])
def test_choosing_as_the_plain_search_does(
    level: str, monkeypatch: pytest.MonkeyPatch, beams: int, size: int
) -> None:
    torch.manual_seed(beams)
    rows, positions = 6, 9
    logits = 4 * torch.randn(positions, rows, beams, size)
    max_lengths = torch.tensor([9, 3, 9, 1, 6, 9])
    found = []
    for fits in (lambda *_: True, lambda *_: False):
        monkeypatch.setattr(beam_choice, "fits", fits)
        table = _Table(logits)
        problem = Problem(table.step, table, max_lengths, start=0, end=1)
        found.append(Loop(problem, SearchOptions(beam=beams)).run())
    for one, other in zip(*found, strict=True):
        assert one[0].tokens == other[0].tokens
        assert one[0].score == pytest.approx(other[0].score, rel=1e-5)


def test_what_is_not_a_number_is_never_chosen(level: str) -> None:
    logits = torch.randn(2, 3, 100)
    logits[0, 1] = float("nan")
    live = torch.zeros(2, 3)
    standing = beam_choice.Standing(
        live.clone(),
        torch.full((2, 1), -torch.inf),
        torch.zeros(2, dtype=torch.bool),
        torch.tensor([9, 9]),
        torch.zeros(1, dtype=torch.long),
    )
    best = beam_choice.best_beams(logits.clone(), standing, alpha=0.6, eos=1)
    plain = likeliest(live, logits.clone())
    assert 1 not in best.beams[0].tolist()
    assert torch.equal(best.tokens, plain.tokens)
    torch.testing.assert_close(best.totals, plain.totals)


def test_a_library_of_another_version_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "_VERSION", -1)
    monkeypatch.setattr(native, "library", native.library.__wrapped__)
    assert not native.available()
    monkeypatch.setattr(native, "_FOLDER", tmp_path)
    assert not native.available()
    for suffix in EXTENSION_SUFFIXES:
        (tmp_path / f"int8_native{suffix}").write_bytes(b"no library")
    assert not native.available()


def test_the_structures_have_the_sizes_of_the_header() -> None:
    """64-bit fields first, so that no compiler has to leave gaps between them."""
    pointer = ctypes.sizeof(ctypes.c_void_p)
    assert ctypes.sizeof(structs.Matrix) == 4 * pointer + 8
    assert ctypes.sizeof(structs.Norm) == 2 * pointer + 8
    assert ctypes.sizeof(structs.Layer) == 7 * 40 + 3 * 24
    assert ctypes.sizeof(structs.Stack) == 5 * pointer + 2 * 24 + 4 + 10 * 4 + 4
    assert ctypes.sizeof(structs.Past) == 7 * pointer + 6 * 8
    assert ctypes.sizeof(structs.Standing) == 4 * pointer + 5 * 8 + 8
