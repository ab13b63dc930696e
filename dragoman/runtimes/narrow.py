"""A model that speaks only a part of its vocabulary, which a shortlist chose for the sentences of
one batch. Knows tokens; no text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.errors import ModelFolderError
from dragoman.model.cache import DecoderState
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes.int8 import Int8Transformer
from dragoman.runtimes.runtime import Request
from dragoman.runtimes.shortlist import candidates
from dragoman.text.tokenizer import RESERVED


class Narrow:
    """Its tokens are indices into those chosen. The reserved tokens are always chosen, so they keep
    their numbers."""

    def __init__(
        self, model: Transformer, shortlist: Mapping[str, Tensor], batch: Sequence[Request]
    ) -> None:
        self._decoder = model.decoder
        given = sorted({token for request in batch for token in _given(request)})
        reserved = torch.arange(RESERVED)
        named = torch.tensor(given, dtype=torch.long)
        always = torch.cat([shortlist["frequent"], reserved, named])
        sources = [request.tokens for request in batch]
        table = shortlist["table"].numpy()
        chosen = candidates(table, always.numpy(), sources, model.config.vocab_size)
        device = model.decoder.embeddings.tokens.weight.device
        self.tokens = torch.from_numpy(chosen).to(device)
        self._indices = {token: index for index, token in enumerate(chosen.tolist())}
        self._project = _output_rows(model, self.tokens)

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Return logits of the chosen tokens alone, as `Transformer.step` does of all."""
        features = self._decoder.step(self.tokens[tokens], state)
        return self._project(features)

    def inside(self, request: Request) -> Request:
        """Return the request in our tokens; the source stays in its own."""
        terms = [[self._inside(form) for form in term] for term in request.terms]
        once = self._inside(request.once)
        return replace(request, prefix=self._inside(request.prefix), terms=terms, once=once)

    def outside(self, hypothesis: Hypothesis) -> Hypothesis:
        """Return the hypothesis in the model's tokens."""
        tokens = self.tokens[list(hypothesis.tokens)]
        return replace(hypothesis, tokens=tuple(tokens.tolist()))

    def _inside(self, tokens: Sequence[int]) -> list[int]:
        return [self._indices[token] for token in tokens]


def own_tokens(
    shortlist: Mapping[str, Tensor], batch: Sequence[Request], size: int
) -> list[Tensor]:
    """Return the tokens, of a vocabulary of this size, that each request's output may have."""
    always = torch.cat([shortlist["frequent"], torch.arange(RESERVED)]).numpy()
    table = shortlist["table"].numpy()
    found = [candidates(table, always, [request.tokens], size) for request in batch]
    return [torch.from_numpy(tokens) for tokens in found]


def checked(shortlist: Mapping[str, Tensor] | None, config: ModelConfig) -> Mapping[str, Tensor]:
    """Return the shortlist of a folder, if it is one for a model of this shape."""
    if shortlist is None:
        raise ModelFolderError(
            "the folder holds no shortlist; make one with `dragoman shortlist -m MODEL`"
        )
    if config.departures:
        raise ModelFolderError(
            f"a shortlist does not support {config.departures[0]}; omit --shortlist"
        )
    if not _fits(shortlist, config):
        raise ModelFolderError(
            "the folder's shortlist is not of this model; "
            "make a new one with `dragoman shortlist -m MODEL`"
        )
    return shortlist


def _fits(shortlist: Mapping[str, Tensor], config: ModelConfig) -> bool:
    table = shortlist.get("table")
    frequent = shortlist.get("frequent")
    if table is None or frequent is None:
        return False
    sources = config.source_vocab_size or config.vocab_size
    if table.dim() != 2 or frequent.dim() != 1 or len(table) != sources:
        return False
    return _are_tokens(table, -1, config) and _are_tokens(frequent, 0, config)


def _are_tokens(ids: Tensor, least: int, config: ModelConfig) -> bool:
    if ids.is_floating_point() or not ids.numel():
        return False
    lowest = int(ids.min())
    highest = int(ids.max())
    return least <= lowest and highest < config.vocab_size


def _given(request: Request) -> Iterator[int]:
    """The target tokens that the output must be able to say."""
    yield from request.prefix
    yield from request.once
    for term in request.terms:
        for form in term:
            yield from form


def _output_rows(model: Transformer, tokens: Tensor) -> Callable[[Tensor], Tensor]:
    """The output layer of these tokens alone."""
    if isinstance(model, Int8Transformer):
        return model.output_rows(tokens)
    weight = model.output_weight[tokens]
    bias = None if model.output_bias is None else model.output_bias[tokens]
    return partial(F.linear, weight=weight, bias=bias)
