"""A model that speaks only a part of its vocabulary, which a shortlist chose for the sentences
of one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.errors import ModelFolderError
from dragoman.model.cache import DecoderState
from dragoman.model.transformer import Transformer
from dragoman.runtimes.runtime import Request
from dragoman.runtimes.shortlist import candidates
from dragoman.text.tokenizer import RESERVED


class Narrow:
    """Its tokens are the places among those chosen. The reserved ones all are chosen, so they
    keep their numbers."""

    def __init__(
        self, model: Transformer, shortlist: Mapping[str, Tensor], batch: Sequence[Request]
    ) -> None:
        self._decoder = model.decoder
        said = {token for request in batch for form in _forms(request) for token in form}
        frequent = torch.cat(
            [
                shortlist["frequent"],
                torch.arange(RESERVED),
                torch.tensor(sorted(said), dtype=torch.long),
            ]
        )
        sources = [request.tokens for request in batch]
        chosen = candidates(
            shortlist["table"].numpy(), frequent.numpy(), sources, model.config.vocab_size
        )
        assert model.decoder.embeddings.positions is not None  # `checked` has seen to it
        self.tokens = torch.from_numpy(chosen).to(model.decoder.embeddings.positions.table.device)
        self._places = {token: place for place, token in enumerate(chosen.tolist())}
        embedding = model.decoder.embeddings.tokens
        if isinstance(embedding, nn.Embedding):
            weight = embedding.weight[self.tokens]
            self._project = lambda features: F.linear(features, weight)
        else:
            self._project = embedding.rows(self.tokens)

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """As Transformer.step."""
        return self._project(self._decoder.step(self.tokens[tokens], state))

    def inside(self, request: Request) -> Request:
        """The request in our tokens; the source stays in its own."""
        terms = [[self._all(form) for form in term] for term in request.terms]
        return replace(request, prefix=self._all(request.prefix), terms=terms)

    def outside(self, hypothesis: Hypothesis) -> Hypothesis:
        """The hypothesis in the model's tokens."""
        return replace(hypothesis, tokens=tuple(self.tokens[list(hypothesis.tokens)].tolist()))

    def _all(self, tokens: Sequence[int]) -> list[int]:
        return [self._places[token] for token in tokens]


def checked(shortlist: Mapping[str, Tensor] | None, model: Transformer) -> Mapping[str, Tensor]:
    """The shortlist of a folder, if it is one for this model."""
    if shortlist is None:
        raise ModelFolderError(
            "the folder holds no shortlist; make one with `dragoman shortlist -m MODEL`"
        )
    rows, size = model.config.source_vocab_size or model.config.vocab_size, model.config.vocab_size
    table, frequent = shortlist.get("table"), shortlist.get("frequent")
    fits = (
        table is not None
        and frequent is not None
        and table.dim() == 2
        and len(table) == rows
        and frequent.dim() == 1
    )
    for ids, least in ((table, -1), (frequent, 0)):
        fits = fits and ids is not None and not ids.is_floating_point() and ids.numel() > 0
        fits = fits and least <= int(ids.min()) and int(ids.max()) < size  # type: ignore[union-attr]
    if not model.config.plain:
        raise ModelFolderError(
            "a shortlist is for models of the paper's kind; leave --shortlist away"
        )
    if not fits:
        raise ModelFolderError(
            "the folder's shortlist is not of this model; make it anew with `dragoman shortlist -m MODEL`"
        )
    return shortlist


def _forms(request: Request) -> list[Sequence[int]]:
    return [request.prefix, *(form for term in request.terms for form in term)]
