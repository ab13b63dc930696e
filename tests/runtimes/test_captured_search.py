"""Captured searches find what the plain search finds, shape after shape and when a shape comes
again. Needs a GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dragoman.decoding.search_options import SearchOptions
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes.captured import Graphs
from dragoman.runtimes.runtime import Request
from dragoman.runtimes.torch_runtime import NativeRuntime
from dragoman.text.tokenizer import Frame

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="captured graphs need a GPU")


TAGGED = Frame(start=7, end=9, source_start=(8,), source_end=(9, 8), forced=(11, 12))
T5 = {
    "positions": "relative",
    "norm": "rms",
    "norm_first": True,
    "bias": False,
    "scale_embeddings": False,
}


def runtimes(frame: Frame | None = None, **fields: Any) -> tuple[NativeRuntime, NativeRuntime]:
    torch.manual_seed(3)
    config = ModelConfig(
        vocab_size=500,
        d_model=64,
        d_ff=128,
        n_heads=4,
        encoder_layers=2,
        decoder_layers=2,
        **fields,
    )
    device = torch.device("cuda")
    model = Transformer(config).eval().to(device)
    with torch.no_grad():
        model.output_weight.mul_(3.0)  # so that the choices are clear, and rounding decides nothing
    plain, captured = (NativeRuntime(model, device, [False] * 500, frame=frame) for _ in range(2))
    captured._graphs = Graphs(model, plain.frame)
    return plain, captured


@pytest.mark.parametrize(
    "options",
    [SearchOptions(), SearchOptions(beam=1), SearchOptions(beam=5, nbest=3, min_length=6)],
)
@pytest.mark.parametrize(("frame", "fields"), [(None, {}), (TAGGED, {}), (TAGGED, T5)])
def test_the_same_as_without_graphs(
    options: SearchOptions, frame: Frame | None, fields: dict[str, Any]
) -> None:
    plain, captured = runtimes(frame, **fields)
    generator = torch.Generator().manual_seed(4)
    for count, longest in [(1, 5), (3, 20), (1, 7), (3, 18), (17, 40), (1, 5)]:
        batch = [
            Request(torch.randint(260, 500, (int(length),), generator=generator).tolist())
            for length in torch.randint(1, longest + 1, (count,), generator=generator)
        ]
        for mine, expected in zip(
            captured.search(batch, options), plain.search(batch, options), strict=True
        ):
            assert [one.tokens for one in mine] == [one.tokens for one in expected]
            assert [one.score for one in mine] == pytest.approx(
                [one.score for one in expected], abs=1e-4
            )
