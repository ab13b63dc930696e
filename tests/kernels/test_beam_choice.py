"""One position of beam search by kernels, beside the loop's own code."""

from __future__ import annotations

import pytest
import torch

from dragoman.decoding.choosers import likeliest
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem
from dragoman.kernels.beam_choice import Standing, best_beams

pytestmark = pytest.mark.gpu
EOS = 7


class Nothing:
    """A state that is never asked."""

    def reorder(self, beams: torch.Tensor) -> None: ...

    def keep(self, sentences: torch.Tensor) -> None: ...


@pytest.mark.parametrize(("beams", "vocabulary"), [(1, 5000), (4, 8500), (5, 300), (12, 9001)])
@torch.no_grad()
def test_one_position_of_beam_search(device: torch.device, beams: int, vocabulary: int) -> None:
    """On random numbers: some sentences end, some are hopeless, one is over."""
    if device.type == "cpu" and beams > 8:
        pytest.skip("takes a minute in the interpreter")
    torch.manual_seed(1)
    lengths = torch.tensor([30, 30, 4, 30, 30, 30], device=device)
    problem = Problem(lambda tokens, state: tokens, Nothing(), lengths, 2, EOS)
    loop = Loop(problem, SearchOptions(beam=beams))
    loop.length.fill_(3)
    loop.live.copy_(-5 * torch.rand(6, beams, device=device))
    loop.live[0, 1:] = -torch.inf  # as at the first position
    loop.live[5] = -torch.inf
    loop.finished[3] = -0.01  # nothing can be better
    logits = 3 * torch.randn(6, beams, vocabulary, device=device)
    logits[:2, :, EOS] = 20.0
    live = loop.live.clone()
    finished = loop.finished.clone()
    over = loop.over.clone()
    expected = likeliest(loop.live, logits.clone())
    loop._take(expected)
    standing = Standing(live, finished, over, lengths, loop.length)
    tokens, log_probs, totals, continued = best_beams(logits, standing, 0.6, EOS)
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
