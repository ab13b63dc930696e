"""Our own runtime: the Transformer in torch, in float on any device or in int8 on a CPU. Knows
tokens; no text."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy
import torch
from torch import Tensor

from dragoman.decoding.coverage import coverage_penalty
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.rules import rules_for
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Problem, Step
from dragoman.decoding.term_tree import Wanted
from dragoman.decoding.terms import Terms, required_length
from dragoman.decoding.trace import Trace
from dragoman.errors import OptionError
from dragoman.folder import quantised
from dragoman.folder.description import Description
from dragoman.folder.extras import load_int8, load_shortlist, save_int8
from dragoman.folder.layout import WEIGHTS
from dragoman.folder.weights import load_model
from dragoman.kernels.decoding_twins import accelerate_decoding
from dragoman.kernels.joint_projection import join_projections
from dragoman.model.cache import DecoderState
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8
from dragoman.runtimes.captured import Graphs
from dragoman.runtimes.device import computes_bfloat16, keep_memory
from dragoman.runtimes.narrow import Narrow, checked
from dragoman.runtimes.runtime import Request, Runtime
from dragoman.text.tokenizer import PAD, Frame


class NativeRuntime:
    """`joins` says of each target token whether it is glued to the word before it."""

    def __init__(
        self,
        model: Transformer,
        device: torch.device,
        joins: Sequence[bool],
        name: str = "torch",
        shortlist: Mapping[str, Tensor] | None = None,
        frame: Frame | None = None,
    ) -> None:
        self.name = name
        self.faster: Runtime | None = None  # another one of the same model, for what it can do too
        self._shortlist = shortlist
        self._graphs: Graphs | None = None
        self.model = model
        self.device = device
        accelerate_decoding(model, device)
        self.frame = frame or Frame()
        self._joins = torch.tensor(joins, device=device)
        if device.type == "cpu":
            keep_memory()

    @classmethod
    def load(
        cls,
        folder: Path,
        description: Description,
        joins: Sequence[bool],
        device: torch.device,
        shortlist: bool = False,
    ) -> NativeRuntime:
        """In float; on a GPU that has it, in bfloat16."""
        model = load_model(folder, description.model, device)
        if device.type == "cuda" and computes_bfloat16(device):
            model = model.to(torch.bfloat16)
        listed = checked(load_shortlist(folder), model) if shortlist else None
        runtime = cls(model, device, joins, "torch", listed, description.frame)
        captured = device.type == "cuda" and not shortlist and description.model.plain
        if captured:
            join_projections(model)
            runtime._graphs = Graphs(model, runtime.frame)
        return runtime

    @classmethod
    def load_int8(
        cls, folder: Path, description: Description, joins: Sequence[bool], shortlist: bool = False
    ) -> NativeRuntime:
        """In 8-bit integers, on the CPU. They are made from the float weights and kept beside
        them the first time."""
        if not int8.available():
            raise OptionError(
                "this machine's torch has no 8-bit kernels for its CPU; name --runtime torch"
            )
        # oneDNN keeps a kernel for each number of rows that it has met; a thousand of them, its
        # default, grow to 300 MB.
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
        tensors = load_int8(folder, quantised.shapes(description.model))
        if tensors is None:
            weights = folder / WEIGHTS
            made_of = weights.exists() and weights.stat().st_mtime_ns
            tensors = quantised.quantise(load_model(folder, description.model, torch.device("cpu")))
            with contextlib.suppress(
                OSError
            ):  # a folder that cannot be written to is translated with all the same
                if (
                    weights.stat().st_mtime_ns == made_of
                ):  # else training has put other weights there
                    save_int8(folder, tensors)
        model = int8.build(description.model, tensors)
        listed = checked(load_shortlist(folder), model) if shortlist else None
        return cls(model, torch.device("cpu"), joins, "int8", listed, description.frame)

    def batch_rows(self, width: int, beam: int) -> int:
        """Sentences of up to `width` source tokens that one batch should hold; on a GPU a power
        of two, as graphs have it."""
        rows = max(1, (65_536 if self.device.type == "cuda" else 8192) // (beam * width))
        return 1 << (rows.bit_length() - 1) if self.device.type == "cuda" else rows

    @torch.inference_mode()
    def search(
        self, batch: Sequence[Request], options: SearchOptions, traces: list[Trace] | None = None
    ) -> list[list[Hypothesis]]:
        """The n best of each request, best first, and always at least one. With `traces`, the
        record of the search is left there, and a shortlist is left aside."""
        wanted, terms = options, max(len(request.terms) for request in batch)
        if self.faster is not None and not terms and traces is None:
            return self.faster.search(batch, options)
        if options.coverage:
            options = dataclasses.replace(options, nbest=options.beam)
        if terms:
            if options.sample or options.branch:
                raise OptionError(
                    "a glossary is for searching; it does not go with sample or branch"
                )
            options = dataclasses.replace(
                options, beam=max(options.beam, terms + 3)
            )  # a slot for each number of terms met
        narrow = (
            Narrow(self.model, self._shortlist, batch)
            if self._shortlist is not None and traces is None
            else None
        )
        if narrow is None:
            found = self._run(self.model.step, batch, self._joins, options, traces)
        else:
            inside = [narrow.inside(request) for request in batch]
            found = self._run(narrow.step, inside, self._joins[narrow.tokens], options)
            found = [[narrow.outside(other) for other in row] for row in found]
        for place, (request, row) in enumerate(zip(batch, found, strict=True)):
            if (
                request.terms and row[0].score == NEVER
            ):  # they cannot all be said within the maximum length, or by the rules
                found[place] = self.search(
                    [dataclasses.replace(request, terms=(), places=())], wanted
                )[0]
        return self._covered(batch, found, wanted) if wanted.coverage else found

    def _run(
        self,
        step: Step[DecoderState],
        batch: Sequence[Request],
        joins: Tensor,
        options: SearchOptions,
        traces: list[Trace] | None = None,
    ) -> list[list[Hypothesis]]:
        source, lengths = self._padded([self.frame.source(request.tokens) for request in batch])
        room, prefixes, terms = (
            self._room(batch, options),
            [one.prefix for one in batch],
            [one.terms for one in batch],
        )
        plain = not (
            options.sample
            or options.branch
            or options.no_repeat_ngram
            or any(prefixes)
            or any(terms)
        )
        plain = plain and options.min_length == 1
        if plain and self._graphs is not None and traces is None:
            return self._graphs.search(source, lengths, room, options)
        state = self.model.start(source, None if int(lengths.min()) == source.size(1) else lengths)
        *led, start = self.frame.head
        for token in led:
            step(torch.full((len(batch), options.hypotheses), token, device=self.device), state)
        chooser, end = None, self.frame.end
        spared = [[*chain(*chain(*forms))] for forms in terms]
        problem = Problem(step, state, room, start, end, prefixes if any(prefixes) else [], spared)
        if any(terms):
            state.watched = True
            before = len(self.frame.source_start)
            places = [
                [[before + i for i in term] for term in one.places] or [[]] * len(one.terms)
                for one in batch
            ]
            chooser = Terms(
                Wanted(terms, places),
                problem,
                options.beam,
                joins,
                lambda: _middle(state.looks or []),
            )
        loop = Loop(problem, options, rules_for(problem, options), chooser)
        found = loop.run()
        if traces is not None:
            traces.append(loop.trace)
        return found

    @torch.inference_mode()
    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[numpy.ndarray]:
        """For each pair (target + 1, source + 1): where each target token and the end looked in
        the source; rows sum to 1."""
        source, lengths = self._padded([self.frame.source(row) for row in sources])
        target, _ = self._padded([[*self.frame.head, *row] for row in targets])
        weights = (
            _middle(self.model.attention_weights(source, target, lengths).cross)
            .float()
            .cpu()
            .numpy()
        )
        rows, tables = zip(weights, sources, targets, strict=True), []
        before, said = len(self.frame.source_start), len(self.frame.forced)
        for table, source_row, target_row in rows:
            own, end = table[said : said + len(target_row) + 1], before + len(source_row)
            own[:, end] += own[:, :before].sum(1) + own[:, end + 1 :].sum(
                1
            )  # what else stands around counts as the end
            tables.append(own[:, before : end + 1])
        return tables

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        lengths = [len(row) for row in rows]
        padded = numpy.full((len(rows), max(lengths)), PAD)
        for place, row in zip(padded, rows, strict=True):
            place[: len(row)] = row
        return torch.from_numpy(padded).to(self.device), torch.tensor(lengths, device=self.device)

    def _room(self, batch: Sequence[Request], options: SearchOptions) -> Tensor:
        """The most tokens of each output, its end counted (§6.1: the input's and 50)."""
        lengths = []
        for request in batch:
            room = options.max_length or len(request.tokens) + options.max_extra
            needed = len(request.prefix) + max(options.min_length, required_length(request.terms))
            lengths.append(
                min(max(room, needed), self.model.config.max_length - len(self.frame.head))
            )
        return torch.tensor(lengths, device=self.device)

    def _covered(
        self, batch: Sequence[Request], found: list[list[Hypothesis]], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """Ranked anew, each output paying for what it left unread."""
        pairs = [
            (request.tokens, other.tokens)
            for request, row in zip(batch, found, strict=True)
            for other in row
        ]
        tables = iter(self.attention(*zip(*pairs, strict=True)))
        ranked = []
        for row in found:
            paid = [
                dataclasses.replace(
                    other, score=other.score + options.coverage * coverage_penalty(next(tables))
                )
                for other in row
            ]
            ranked.append(
                sorted(paid, key=lambda other: (other.finished, other.score), reverse=True)[
                    : options.nbest
                ]
            )
        return ranked


def _middle(layers: list[Tensor]) -> Tensor:
    """Of each layer's weights (B, H, T, S) the mean (B, T, S) over the heads of those in the
    middle, which align best."""
    edge = len(layers) // 4
    return torch.stack(layers[edge : len(layers) - edge]).mean((0, 2))
