"""Our own runtime: any model of the family in torch, in float on any device or in int8 on a CPU.
Knows tokens; no text.

B sentences, S source and T target tokens.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch import Tensor

from dragoman.decoding.giving_way import give_way
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Step
from dragoman.decoding.trace import Record
from dragoman.errors import OptionError
from dragoman.kernels.decoding_twins import accelerate_decoding
from dragoman.model.cache import DecoderState
from dragoman.model.transformer import Transformer
from dragoman.runtimes import native_search
from dragoman.runtimes.beginning import Beginning, Guide, MustSay, begin, read_text
from dragoman.runtimes.device import keep_memory
from dragoman.runtimes.runtime import GRAPHS, Request, abilities
from dragoman.text.tokenizer import PAD, Frame

if TYPE_CHECKING:
    from dragoman.decoding.term_tree import Wanted
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
        self._last_read: tuple[Tensor, Tensor] | None = None
        joins = tokens.joins or [False] * model.config.vocab_size
        self._joins = torch.tensor(joins, device=device)
        # Source tokens times beams of a batch.
        self.batch_tokens = _ON_CPU if device.type == "cpu" else _ON_GPU
        if device.type == "cpu":
            keep_memory()
            _let_encoder_give_way(model)
            if model.config.encoder_layers:
                model.encoder.register_forward_hook(self._remember)

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
                (found[index],) = self.search([without], options)
        if options.coverage:
            return self._covered(batch, found, options)
        return found

    @torch.inference_mode()
    def watch(
        self, request: Request, options: SearchOptions, guide: Guide | None = None
    ) -> tuple[Hypothesis, Record]:
        """Return the best output of one request and the record of its search, for which neither a
        shortlist nor graphs are used."""
        if guide is None:
            loop = self._plain_loop(self.model.step, [request], options)
        else:
            start = self.start([request], options)
            state = begin(self.model, start, options.hypotheses)
            problem = guide.problem(self.model.step, state, start)
            loop = guide.loop(problem, options)
        (hypotheses,) = loop.run()
        return hypotheses[0], loop.trace.record()

    def start(self, batch: Sequence[Request], options: SearchOptions) -> Beginning:
        """Return the beginning of a search for the outputs of these requests."""
        frame = self.frame
        rows = [frame.source(request.read) for request in batch]
        source, lengths = self._padded(rows)
        is_padded = min(map(len, rows)) < source.size(1)
        return Beginning(
            source=source,
            lengths=lengths if is_padded else None,
            head=tuple(frame.head),
            max_lengths=self._max_lengths(batch, options),
            end=frame.end,
        )

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
        problem = guide.problem(self.model.step, state, start)
        if native_search.fits(self.model, options, guide):
            return native_search.NativeLoop(self.model, problem, options)
        return guide.loop(problem, options)

    @torch.inference_mode()
    def reread(self, loop: Loop[DecoderState], tokens: Sequence[int]) -> None:
        """Let a decoder without encoder forget what it has read and read these tokens instead, all
        but the last, which the loop's next step takes."""
        read_text(self.model, loop.state, tokens[:-1], loop.options.hypotheses)
        loop.look_again()

    @torch.inference_mode()
    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[numpy.ndarray]:
        """Return for each pair (target + 1, source + 1): where each target token and the end looked
        in the source; rows sum to 1."""
        from dragoman.runtimes.cross_attention import of_pairs

        frame = self.frame
        source_rows = [frame.source(row) for row in sources]
        target_rows = [[*frame.head, *row] for row in targets]
        source, lengths = self._padded(source_rows)
        target, _ = self._padded(target_rows)
        memory = self._read_before(source)
        mean = of_pairs(self.model, source, target, lengths, memory)
        means = mean.float().cpu().numpy()
        first = len(frame.source_start)
        said = len(frame.forced)
        tables = []
        for table, source_row, target_row in zip(means, sources, targets, strict=True):
            own = table[said : said + len(target_row) + 1]
            end = first + len(source_row)
            # Attention to whatever else stands around the source counts as to its end.
            before = own[:, :first].sum(1)
            behind = own[:, end + 1 :].sum(1)
            own[:, end] += before + behind
            tables.append(own[:, first : end + 1])
        return tables

    def _remember(self, _encoder: object, read: tuple[Tensor, Any], memory: Tensor) -> None:
        """Keep what the encoder made of its last input: who asks for attention after a search
        asks for the same sentences."""
        self._last_read = (read[0], memory)

    def _read_before(self, source: Tensor) -> Tensor | None:
        """What the encoder made of this source, if it was its last."""
        last = self._last_read  # other threads may change it
        if last is None or not torch.equal(last[0], source):
            return None
        return last[1]

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
        beam = max(options.beam, terms + 3)
        return dataclasses.replace(options, beam=beam)

    def _found(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        guide = self._guide(batch, self._joins)
        has_terms = any(request.terms for request in batch)
        if self._shortlist is not None:
            if not has_terms and native_search.fits(self.model, options, guide):
                return self._searched_alone(batch, options)
            from dragoman.runtimes.narrow import Narrow

            narrow = Narrow(self.model, self._shortlist, batch)
            inside = [narrow.inside(request) for request in batch]
            joins = self._joins[narrow.tokens]
            loop = self._plain_loop(narrow.step, inside, options, joins)
            return [[narrow.outside(one) for one in row] for row in loop.run()]
        start = self.start(batch, options)
        return self.loop(start, options, guide).run()

    def _searched_alone(
        self, batch: Sequence[Request], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """Each sentence among the tokens of its own shortlist, whatever its neighbours need."""
        from dragoman.runtimes.narrow import own_tokens

        assert self._shortlist is not None
        start = self.start(batch, options)
        state = begin(self.model, start, options.hypotheses)
        problem = Guide().problem(self.model.step, state, start)
        tokens = own_tokens(self._shortlist, batch, self.config.vocab_size)
        return native_search.NativeLoop(self.model, problem, options, tokens).run()

    def _plain_loop(
        self,
        step: Step[DecoderState],
        batch: Sequence[Request],
        options: SearchOptions,
        joins: Tensor | None = None,
    ) -> Loop[DecoderState]:
        """A search without graphs, by this step; `joins` are those of its tokens."""
        start = self.start(batch, options)
        state = begin(self.model, start, options.hypotheses)
        guide = self._guide(batch, self._joins if joins is None else joins)
        problem = guide.problem(step, state, start)
        return guide.loop(problem, options)

    def _guide(self, batch: Sequence[Request], joins: Tensor) -> Guide:
        """What the requests ask of their outputs."""
        prefixes = _prefixes(batch)
        once = [request.once for request in batch]
        if not any(request.terms for request in batch):
            return Guide(prefixes, once=once)
        spared = [[*chain(*chain(*request.terms))] for request in batch]
        return Guide(prefixes, spared, once, terms=MustSay(self._wanted(batch), joins))

    def _wanted(self, batch: Sequence[Request]) -> Wanted:
        """The terms of each request, and where they stand behind what begins every source."""
        from dragoman.decoding.term_tree import Wanted

        first = len(self.frame.source_start)
        terms = []
        places = []
        for request in batch:
            begin = first + len(request.before)
            row = [[begin + index for index in term] for term in request.places]
            terms.append(request.terms)
            places.append(row or [[]] * len(request.terms))
        return Wanted(terms, places)

    def _max_lengths(self, batch: Sequence[Request], options: SearchOptions) -> Tensor:
        """The most tokens of each output, its end counted (§6.1: the input's and 50)."""
        most = self.config.max_length - len(self.frame.head)
        lengths = []
        for request in batch:
            asked = options.max_length or len(request.tokens) + options.max_extra
            own = max(options.min_length, _least_length(request))
            least = len(request.prefix) + own
            lengths.append(min(max(asked, least), most))
        return torch.tensor(lengths, device=self.device)

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        lengths = [len(row) for row in rows]
        longest = max(lengths)
        padded = [[*row, *[PAD] * (longest - len(row))] for row in rows]
        tokens = torch.tensor(padded, dtype=torch.long, device=self.device)  # also of no tokens
        return tokens, torch.tensor(lengths, device=self.device)

    def _covered(
        self, batch: Sequence[Request], found: list[list[Hypothesis]], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """Ranked again, each output paying for what it left unread."""
        from dragoman.decoding.coverage import ranked_by_coverage

        sources = []
        targets = []
        for request, row in zip(batch, found, strict=True):
            sources += [request.read] * len(row)
            targets += [one.tokens for one in row]
        tables = iter(self.attention(sources, targets))
        own = []
        for request, row in zip(batch, found, strict=True):
            own += [request.own_columns(next(tables)) for _ in row]
        return ranked_by_coverage(found, own, options)


def _let_encoder_give_way(model: Transformer) -> None:
    """Let others have their turn between two layers of the encoder, which reads a long input for a
    second or more."""
    if model.config.encoder_layers:
        for layer in model.encoder.layers:
            layer.register_forward_hook(lambda *_: give_way())


def _prefixes(batch: Sequence[Request]) -> Sequence[Sequence[int]]:
    """The prefixes of the requests; none where no request has one."""
    prefixes = [request.prefix for request in batch]
    return prefixes if any(prefixes) else ()


def _least_length(request: Request) -> int:
    """The fewest tokens of an output that says all terms, its end counted."""
    if not request.terms:
        return 1
    from dragoman.decoding.terms import required_length

    return required_length(request.terms)
