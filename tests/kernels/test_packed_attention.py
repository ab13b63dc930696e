"""Attention over sentences that lie end to end: the operations, in torch or on a GPU in kernels,
against each sentence alone; and the kernels against their twin."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.kernels import packed_padded, packed_triton
from dragoman.kernels.graphs import GpuCapture
from dragoman.kernels.jit import HAS_TRITON
from dragoman.kernels.packed_attention import attend_to_memory, attend_to_own
from dragoman.kernels.packed_segments import Heads, Projected, Segments

NO_GPU = pytest.mark.skipif(
    not torch.cuda.is_available() or not HAS_TRITON, reason="needs a GPU with Triton"
)
GPU = pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])
QUERIES, KEYS = [3, 7, 1, 12, 5], [4, 2, 9, 10, 6]


def starts(lengths: list[int], device: str) -> Tensor:
    return F.pad(torch.tensor(lengths).cumsum(0), (1, 0)).int().to(device)


def alone(
    query: Tensor, both: Tensor, queries: list[int], keys: list[int], heads: int, causal: bool
) -> Tensor:
    """torch's own attention, a sentence at a time."""
    found = []
    for q, kv in zip(query.split(queries), both.split(keys), strict=True):
        split = [x.unflatten(-1, (heads, -1)).transpose(0, 1) for x in (q, *kv.chunk(2, dim=1))]
        seen = F.scaled_dot_product_attention(split[0], split[1], split[2], is_causal=causal)
        found.append(seen.transpose(0, 1).flatten(1))
    return torch.cat(found)


@pytest.mark.parametrize("where", ["cpu", GPU])
@pytest.mark.parametrize(("factor", "size"), [(1, 16), (5, 64), (10, 32)])
def test_memory(where: str, factor: int, size: int) -> None:
    torch.manual_seed(0)
    queries, keys = [n * factor for n in QUERIES], [n * factor for n in KEYS]
    query = torch.randn(sum(queries), 2 * size, device=where, requires_grad=True)
    both = torch.randn(sum(keys), 4 * size, device=where, requires_grad=True)
    upstream = torch.randn_like(query)
    found = attend_to_memory(
        query, both, Segments(starts(queries, where), starts(keys, where), 12 * factor), 2
    )
    expected = alone(query, both, queries, keys, 2, False)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(
        *(torch.autograd.grad(x, (query, both), upstream) for x in (found, expected)), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", ["cpu", GPU])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("factor", "size"), [(1, 16), (5, 64), (10, 32), (20, 64)])
def test_own(where: str, causal: bool, factor: int, size: int) -> None:
    torch.manual_seed(0)
    lengths = [n * factor for n in QUERIES]
    joint = torch.randn(sum(lengths), 6 * size, device=where, requires_grad=True)
    upstream = torch.randn(sum(lengths), 2 * size, device=where)
    segments = Segments(starts(lengths, where), starts(lengths, where), 12 * factor)
    found = attend_to_own(joint, segments, 2, causal)
    expected = alone(joint[:, : 2 * size], joint[:, 2 * size :], lengths, lengths, 2, causal)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    gradients = [torch.autograd.grad(x, joint, upstream)[0] for x in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True])
def test_the_kernels_and_their_twin(device: torch.device, causal: bool, dtype: torch.dtype) -> None:
    """Some sentences have nothing on either side, as the last slots of a batch do."""
    torch.manual_seed(0)
    heads, size = 2, 16
    queries, keys = [3, 7, 1, 12, 0, 5, 0], [4, 2, 9, 10, 0, 6, 0]
    if causal:
        keys = queries
    segments = Segments(starts(queries, str(device)), starts(keys, str(device)), 12)
    query = torch.randn(sum(queries), heads * size, device=device, dtype=dtype)
    both = torch.randn(sum(keys), 2 * heads * size, device=device, dtype=dtype)
    gradient = torch.randn_like(query)
    results = []
    for twin in (packed_padded, packed_triton):
        of = Projected(query, both)
        to = Projected(torch.empty_like(query), torch.empty_like(both))
        out = twin.forward(of, segments, Heads(heads, causal))
        twin.backward(gradient, of, to, segments, Heads(heads, causal))
        results.append((out, to.query, to.both))
    close: dict[str, Any] = (
        {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 3e-2, "atol": 3e-2}
    )
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, **close)


@pytest.mark.parametrize("causal", [False, True])
def test_no_shape_depends_on_what_tensors_hold(causal: bool) -> None:
    """Such a shape would have to be waited for, and a graph cannot: tensors without values have
    none to look at."""
    heads, size, tokens = 2, 16, 300
    of = Projected(
        torch.empty(tokens, heads * size, device="meta"),
        torch.empty(tokens, 2 * heads * size, device="meta"),
    )
    to = Projected(torch.empty_like(of.query), torch.empty_like(of.both))
    places = torch.empty(3, dtype=torch.int32, device="meta")
    segments = Segments(places, places, 200)
    out = packed_padded.forward(of, segments, Heads(heads, causal))
    packed_padded.backward(out, of, to, segments, Heads(heads, causal))
    assert out.shape == of.query.shape


@pytest.mark.gpu
@NO_GPU
def test_sentences_too_long_for_the_kernels_in_a_graph() -> None:
    """A graph is replayed on other sentences of the same size than it was captured with."""
    capture = GpuCapture()
    heads, size, longest = 2, 64, 2 * packed_triton.LONGEST
    first, second = [longest, 40, 8], [100, 200, 4]
    joint = torch.randn(sum(first), 3 * heads * size, device="cuda")
    places = starts(first, "cuda")
    found: list[Tensor] = []

    def work() -> None:
        segments = Segments(places, places, longest)
        found.append(attend_to_own(joint, segments, heads, True))

    graph = capture(work)
    for lengths in (first, second):
        assert sum(lengths) == len(joint)
        joint.normal_()
        places.copy_(starts(lengths, "cuda"))
        graph.replay()
        query, both = joint[:, : heads * size], joint[:, heads * size :]
        expected = alone(query, both, lengths, lengths, heads, True)
        torch.testing.assert_close(found[-1], expected, rtol=1e-4, atol=1e-4)


def test_positions() -> None:
    segments = Segments(starts([3, 1, 2], "cpu"), starts([3, 1, 2], "cpu"), 4)
    assert segments.positions(6).tolist() == [0, 1, 2, 0, 0, 1]
