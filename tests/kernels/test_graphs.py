"""The cache of captured graphs, with graphs that only count; and on a GPU with real ones."""

from __future__ import annotations

import pytest
import torch

from dragoman.kernels.graphs import GpuCapture, GraphCache, MemoryLimit


def test_a_value_is_made_once() -> None:
    made: list[str] = []
    cache: GraphCache[str] = GraphCache(2)

    def get(key: str) -> str:
        return cache.get(key, lambda: made.append(key) or f"graph of {key}")  # type: ignore[func-returns-value]

    assert [get(key) for key in "aba"] == ["graph of a", "graph of b", "graph of a"]
    assert made == ["a", "b"]
    assert "a" in cache
    assert "c" not in cache
    assert len(cache) == 2


def test_what_was_used_longest_ago_makes_way() -> None:
    cache: GraphCache[int] = GraphCache(2)
    for key in "abac":  # b is the one that has waited longest
        cache.get(key, lambda: 0)
    assert [key in cache for key in "abc"] == [True, False, True]
    assert cache.full
    cache.clear()
    assert len(cache) == 0
    assert not cache.full


def test_too_little_memory_empties_it() -> None:
    """Values go until there is space."""
    crowded = [True]
    cache: GraphCache[int] = GraphCache(10, lambda: crowded.pop(0) if crowded else False)
    cache.get("a", lambda: 1)  # there is nothing to push out, so nobody asks
    for key in "bc":
        cache.get(key, lambda: 1)
    assert [key in cache for key in "abc"] == [False, True, True]


def test_a_cpu_is_never_crowded() -> None:
    assert not MemoryLimit(torch.device("cpu"), 0.0)()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_graph_works_on_the_same_memory() -> None:
    x = torch.ones(3, device="cuda")
    y = torch.zeros(3, device="cuda")
    capture = GpuCapture()
    graph = capture(lambda: y.add_(x))  # type: ignore[arg-type]
    other = capture(lambda: y.mul_(x))  # type: ignore[arg-type]
    y.zero_()
    x.fill_(5.0)
    graph.replay()
    graph.replay()
    assert y.tolist() == [10.0] * 3
    other.replay()
    assert y.tolist() == [50.0] * 3
    limit = MemoryLimit(torch.device("cuda"), 0.0)
    kept = torch.zeros(1000, device="cuda")
    assert limit()
    del kept
