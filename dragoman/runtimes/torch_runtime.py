"""Our own runtime: any model of the family in torch, in float on any device or in int8 on a CPU.
Knows tokens; no text.

B sentences, S source and T target tokens, H heads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch import Tensor

from dragoman.decoding.coverage import coverage_penalty
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Step
from dragoman.decoding.term_tree import Wanted
from dragoman.decoding.terms import Terms, required_length
from dragoman.decoding.trace import Record
from dragoman.errors import OptionError
from dragoman.kernels.decoding_twins import accelerate_decoding
from dragoman.model.cache import DecoderState
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8
from dragoman.runtimes.beginning import Beginning, Guide, Searched, begin, read_text
from dragoman.runtimes.device import keep_memory
from dragoman.runtimes.narrow import Narrow
from dragoman.runtimes.runtime import DECODE, GRAPHS, HEADS, INT8, SHORTLIST, TERMS, Request
from dragoman.text.tokenizer import PAD, Frame

if TYPE_CHECKING:
    from dragoman.runtimes.captured import Graphs

_ON_GPU = 65_536  # source tokens times beams of a batch
_ON_CPU = 8192


@dataclass(frozen=True)
class TokenFacts:
    """What a runtime knows of its tokens."""

    frame: Frame = field(default_factory=Frame)
    # Of each target token whether it is written onto the word before it; none where nobody knows.
    joins: Sequence[bool] = ()
    shortlist: Mapping[str, Tensor] | None = None


def abilities(config: ModelConfig, device: torch.device) -> frozenset[str]:
    """Return what this runtime can do with a model of this shape on this device."""
    words = {HEADS}
    if config.decoder_layers:
        words.add(DECODE)
    if config.decoder_layers and device.type != "cpu":
        words.add(GRAPHS)
    if device.type == "cpu" and int8.available():
        words.add(INT8)
    if config.decoder_layers and config.encoder_layers and config.input == "tokens":
        words.add(TERMS)
    if not config.departures:
        words.add(SHORTLIST)
    return frozenset(words)


class TorchRuntime:
    """A model that is loaded and ready, for every task."""

    def __init__(
        self,
        model: Transformer,
        device: torch.device,
        tokens: TokenFacts | None = None,
        name: str = "torch",
    ) -> None:
        tokens = tokens or TokenFacts()
        self.name = name
        accelerate_decoding(model, device)
        self.model = model
        self.config = model.config
        self.device = device
        self.frame = tokens.frame
        self.can = abilities(model.config, device)
        self._shortlist = tokens.shortlist
        self._graphs: Graphs | None = None
        joins = tokens.joins or [False] * model.config.vocab_size
        self._joins = torch.tensor(joins, device=device)
        # Source tokens times beams of a batch.
        self.batch_tokens = _ON_CPU if device.type == "cpu" else _ON_GPU
        if device.type == "cpu":
            keep_memory()

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type that the model computes with."""
        return torch.float32 if self.name == "int8" else self.model.output_weight.dtype

    def capture(self) -> None:
        """Decode by captured graphs from now on, where they fit."""
        if GRAPHS in self.can:
            from dragoman.runtimes.captured import Graphs

            self._graphs = Graphs(self.model, self.device)

    def batch_rows(self, width: int, beams: int) -> int:
        """Return how many sentences of up to `width` source tokens one batch should hold; on a GPU
        a power of two, as graphs have it."""
        if self.device.type == "cuda":
            rows = max(1, self.batch_tokens // (beams * width))
            return 1 << (rows.bit_length() - 1)
        return max(1, self.batch_tokens // (beams * width))

    @torch.inference_mode()
    def search(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        """Return the n best outputs of each request, best first, and always at least one."""
        wider = self._widened(batch, options)
        found = self._found(batch, wider)
        for index, request in enumerate(batch):
            # All terms cannot be said within the maximum length, or by the rules.
            if request.terms and found[index][0].score == NEVER:
                without = dataclasses.replace(request, terms=(), places=())
                found[index] = self.search([without], options)[0]
        return self._covered(batch, found, options) if options.coverage else found

    @torch.inference_mode()
    def watch(self, request: Request, options: SearchOptions) -> tuple[Hypothesis, Record]:
        """Return the best output of one request and the record of its search, for which neither a
        shortlist nor graphs are used."""
        loop = self._plain_loop(self.model.step, [request], options)
        return loop.run()[0][0], loop.trace.record()

    @torch.inference_mode()
    def loop(
        self, start: Beginning, options: SearchOptions, guide: Guide | None = None
    ) -> Loop[DecoderState]:
        """Return a search from this beginning, ready to run."""
        guide = guide or Guide()
        if self._graphs is not None:
            captured = self._graphs.loop(start, options, guide)
            if captured is not None:
                captured.gives_way = False  # the searches of a shape share its memory
                return captured
        state = begin(self.model, start, options.hypotheses)
        return guide.loop(guide.problem(self.model.step, state, start), options)

    @torch.inference_mode()
    def reread(self, loop: Loop[DecoderState], tokens: Sequence[int]) -> None:
        """Let a decoder without encoder forget what it has read and read these tokens instead, all
        but the last, which the loop's next step takes."""
        read_text(self.model, loop.state, tokens[:-1], loop.options.hypotheses)

    @torch.inference_mode()
    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[numpy.ndarray]:
        """Return for each pair (target + 1, source + 1): where each target token and the end looked
        in the source; rows sum to 1."""
        source_rows = [self.frame.source(row) for row in sources]
        target_rows = [[*self.frame.head, *row] for row in targets]
        source, lengths = self._padded(source_rows)
        target, _ = self._padded(target_rows)
        layers = self.model.attention_weights(source, target, lengths).cross
        weights = _middle(layers).float().cpu().numpy()
        first = len(self.frame.source_start)
        said = len(self.frame.forced)
        tables = []
        for table, source_row, target_row in zip(weights, sources, targets, strict=True):
            own = table[said : said + len(target_row) + 1]
            end = first + len(source_row)
            # Attention to whatever else stands around the source counts as to its end.
            before = own[:, :first].sum(1)
            behind = own[:, end + 1 :].sum(1)
            own[:, end] += before + behind
            tables.append(own[:, first : end + 1])
        return tables

    def _widened(self, batch: Sequence[Request], options: SearchOptions) -> SearchOptions:
        """The options of the search itself: more hypotheses where terms or coverage need them."""
        terms = max(len(request.terms) for request in batch)
        if options.coverage:
            options = dataclasses.replace(options, nbest=options.beam)
        if not terms:
            return options
        if options.sample or options.branch:
            raise OptionError("a glossary needs a search; it cannot be used with sample or branch")
        # A hypothesis for each number of terms said.
        return dataclasses.replace(options, beam=max(options.beam, terms + 3))

    def _found(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        if self._shortlist is not None:
            narrow = Narrow(self.model, self._shortlist, batch)
            inside = [narrow.inside(request) for request in batch]
            joins = self._joins[narrow.tokens]
            found = self._plain_loop(narrow.step, inside, options, joins).run()
            return [[narrow.outside(one) for one in row] for row in found]
        if any(request.terms for request in batch):
            return self._plain_loop(self.model.step, batch, options).run()
        prefixes = [request.prefix for request in batch]
        guide = Guide(prefixes if any(prefixes) else ())
        return self.loop(self._start(batch, options), options, guide).run()

    def _plain_loop(
        self,
        step: Step[DecoderState],
        batch: Sequence[Request],
        options: SearchOptions,
        joins: Tensor | None = None,
    ) -> Loop[DecoderState]:
        """A search without graphs, by this step; `joins` are those of its tokens."""
        start = self._start(batch, options)
        prefixes = [request.prefix for request in batch]
        spared = [[*chain(*chain(*request.terms))] for request in batch]
        chooser = None
        state = begin(self.model, start, options.hypotheses)
        if any(request.terms for request in batch):
            record: list[Tensor] = []
            state.record = record
            joins = self._joins if joins is None else joins
            wanted = self._wanted(batch)
            looks = partial(_middle, record)
            chooser = partial(_terms, wanted, options.hypotheses, joins, looks)
        guide = Guide(prefixes if any(prefixes) else (), spared, chooser=chooser)
        return guide.loop(guide.problem(step, state, start), options)

    def _start(self, batch: Sequence[Request], options: SearchOptions) -> Beginning:
        rows = [self.frame.source(request.tokens) for request in batch]
        source, lengths = self._padded(rows)
        full = int(lengths.min()) == source.size(1)
        return Beginning(
            source=source,
            lengths=None if full else lengths,
            head=tuple(self.frame.head),
            max_lengths=self._max_lengths(batch, options),
            end=self.frame.end,
        )

    def _wanted(self, batch: Sequence[Request]) -> Wanted:
        """The terms of each request, and where they stand behind what begins every source."""
        first = len(self.frame.source_start)
        places = []
        for request in batch:
            row = [[first + index for index in term] for term in request.places]
            places.append(row or [[]] * len(request.terms))
        return Wanted([request.terms for request in batch], places)

    def _max_lengths(self, batch: Sequence[Request], options: SearchOptions) -> Tensor:
        """The most tokens of each output, its end counted (§6.1: the input's and 50)."""
        most = self.config.max_length - len(self.frame.head)
        lengths = []
        for request in batch:
            asked = options.max_length or len(request.tokens) + options.max_extra
            own = max(options.min_length, required_length(request.terms))
            least = len(request.prefix) + own
            lengths.append(min(max(asked, least), most))
        return torch.tensor(lengths, device=self.device)

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        lengths = [len(row) for row in rows]
        padded = numpy.full((len(rows), max(lengths)), PAD)
        for filled, row in zip(padded, rows, strict=True):
            filled[: len(row)] = row
        tokens = torch.from_numpy(padded).to(self.device)
        return tokens, torch.tensor(lengths, device=self.device)

    def _covered(
        self, batch: Sequence[Request], found: list[list[Hypothesis]], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """Ranked again, each output paying for what it left unread."""
        sources = []
        targets = []
        for request, row in zip(batch, found, strict=True):
            sources += [request.tokens] * len(row)
            targets += [one.tokens for one in row]
        tables = iter(self.attention(sources, targets))
        ranked = []
        for row in found:
            paid = [_paid(one, next(tables), options.coverage) for one in row]
            paid.sort(key=lambda one: (one.finished, one.score), reverse=True)
            ranked.append(paid[: options.nbest])
        return ranked


def _paid(one: Hypothesis, attention: numpy.ndarray, price: float) -> Hypothesis:
    score = one.score + price * coverage_penalty(attention)
    return dataclasses.replace(one, score=score)


def _terms(wanted: Wanted, beams: int, joins: Tensor, looks: Any, problem: Searched) -> Terms:
    return Terms(wanted, problem, beams, joins, looks)


def _middle(layers: list[Tensor]) -> Tensor:
    """Of each layer's weights (B, H, T, S) the mean (B, T, S) over the heads of those in the
    middle, which align best."""
    edge = len(layers) // 4
    middle = torch.stack(layers[edge : len(layers) - edge])
    return middle.mean((0, 2))
