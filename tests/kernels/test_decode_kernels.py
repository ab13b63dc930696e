"""Our GPU kernels compute what the plain code beside them does. Needs a GPU with Triton."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from dragoman.decoding.choosers import likeliest
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem
from dragoman.kernels import decode as kernels

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or kernels.triton is None, reason="needs a GPU with Triton"
)


@pytest.mark.parametrize(("beams", "size"), [(1, 16), (4, 64), (5, 32), (20, 64)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_attention(beams: int, size: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    rows, heads, room, position = 3, 2, 40, torch.tensor([22], device="cuda")
    query = torch.randn(rows, beams, 3 * heads * size, device="cuda", dtype=dtype)[
        ..., : heads * size
    ]
    both = torch.randn(rows, 2 * heads, room * beams, size, device="cuda", dtype=dtype)
    key, value = both.chunk(2, dim=1)
    bias = torch.where(
        torch.rand(rows, 1, beams, room * beams, device="cuda") < 0.5, 0.0, -torch.inf
    ).to(dtype)
    bias[..., 0] = 0.0
    seen = 23 * beams
    split = query.unflatten(-1, (heads, size)).transpose(1, 2)
    expected = F.scaled_dot_product_attention(
        split, key[:, :, :seen], value[:, :, :seen], bias[..., :seen]
    )
    found = kernels.attend(query, key, value, bias, position)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    torch.testing.assert_close(found, expected.transpose(1, 2).flatten(2), **close)
    expected = F.scaled_dot_product_attention(split, key, value)
    torch.testing.assert_close(
        kernels.attend(query, key, value, None, None), expected.transpose(1, 2).flatten(2), **close
    )


@pytest.mark.parametrize("width", [96, 512])
@torch.no_grad()
def test_add_and_norm(width: int) -> None:
    x, y = torch.randn(2, 7, width, device="cuda")
    weight, bias = torch.randn(2, width, device="cuda")
    expected = F.layer_norm(x + y, (width,), weight, bias, 1e-5)
    torch.testing.assert_close(
        kernels.add_norm(x, y, weight, bias, 1e-5), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(("beams", "vocabulary"), [(1, 5000), (4, 32_000), (5, 300), (12, 9001)])
@torch.no_grad()
def test_one_position_of_beam_search(beams: int, vocabulary: int) -> None:
    """Beside the loop's own code, on random numbers: some sentences end, some are hopeless, one
    is over."""
    torch.manual_seed(1)
    device, eos = torch.device("cuda"), 7
    lengths = torch.tensor([30, 30, 4, 30, 30, 30], device=device)
    problem = Problem(lambda tokens, state: tokens, Nothing(), lengths, 2, eos)
    loop = Loop(problem, SearchOptions(beam=beams))
    loop.length.fill_(3)
    loop.live.copy_(-5 * torch.rand(6, beams, device=device))
    loop.live[0, 1:] = -torch.inf  # as at the first position
    loop.live[5] = -torch.inf
    loop.finished[3] = -0.01  # nothing can be better
    logits = 3 * torch.randn(6, beams, vocabulary, device=device)
    logits[:2, :, eos] = 20.0
    live, finished, over = loop.live.clone(), loop.finished.clone(), loop.over.clone()
    expected = likeliest(loop.live, logits.clone())
    loop._take(expected)
    found = kernels.best_beams(logits, live, finished, over, lengths, loop.length, 0.6, eos)
    assert found is not None
    tokens, log_probs, totals, continued = found
    torch.testing.assert_close(totals, expected.totals, rtol=1e-4, atol=1e-4)
    there = expected.totals > -torch.inf
    assert torch.equal(tokens[there], expected.tokens[there])
    assert torch.equal(continued[there], expected.beams[there])
    torch.testing.assert_close(log_probs[there], expected.log_probs[there], rtol=1e-4, atol=1e-4)
    assert tokens.min() >= 0
    assert tokens.max() < vocabulary
    assert continued.max() < beams
    torch.testing.assert_close(live, loop.live, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(finished, loop.finished, rtol=1e-4, atol=1e-4)
    assert torch.equal(over, loop.over)
    assert over.tolist()[2:] == [True, True, False, True] or beams == 1


class Nothing:
    """A state that is never asked."""

    def reorder(self, beams: torch.Tensor) -> None: ...

    def keep(self, sentences: torch.Tensor) -> None: ...


@pytest.mark.parametrize(("rows", "size"), [(5, 300), (64, 32_000), (5, 70_000)])
def test_gradient_of_the_loss(rows: int, size: int) -> None:
    torch.manual_seed(0)
    logits = 3 * torch.randn(rows, size, device="cuda")
    gold = torch.randint(size, (rows, 1), device="cuda")
    gold[0], counted = -1, slice(1, None)
    log_probs = logits.log_softmax(-1)
    expected = log_probs.exp()[counted].scatter_add_(
        1, gold[counted], torch.full((rows - 1, 1), -0.9, device="cuda")
    )
    sums = torch.stack(
        (
            -log_probs[counted].gather(1, gold[counted]).sum(),
            logits[counted].gather(1, gold[counted]).sum(),
        )
    )
    torch.testing.assert_close(kernels.loss_gradient(logits, gold, 0.1), sums, rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(logits[counted], expected, rtol=1e-4, atol=1e-6)
