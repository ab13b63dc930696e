"""CTranslate2 as a runtime, for the CPU. Knows tokens and the pieces that name them; no text,
and it loads no torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy

from dragoman.decoding.coverage import coverage_penalty
from dragoman.decoding.hypothesis import Hypothesis, length_penalty
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import Description
from dragoman.folder.files import check_regular
from dragoman.folder.layout import CTRANSLATE2
from dragoman.formats.ctranslate2_package import ASKED, Output, package, ranked, target_ids
from dragoman.formats.export_ctranslate2 import export
from dragoman.runtimes.runtime import DECODE, Request
from dragoman.text.tokenizer import Tokenizer


class CTranslate2Runtime:
    """The converted model of a folder. The search is CTranslate2's, the scores are ours."""

    name = "ctranslate2"
    can = frozenset({DECODE})

    def __init__(
        self,
        converted: Path,
        description: Description,
        tokenizer: Tokenizer,
        threads: int = 0,
    ) -> None:
        self._converted = converted
        self._description = description
        self._tokenizer = tokenizer
        # 0 lets CTranslate2 choose, which looks at the cores.
        self._threads = min(threads, os.cpu_count() or 1)
        self._ids = target_ids(tokenizer)
        self._engine = self._open()

    @classmethod
    def load(
        cls,
        folder: Path,
        description: Description,
        tokenizer: Tokenizer,
        threads: int = 0,
    ) -> CTranslate2Runtime:
        """Load the folder's model, converting it first where that has not been done."""
        converted = folder / CTRANSLATE2
        for path in converted.glob("*"):
            check_regular(path)
        if not package().contains_model(str(converted)):
            if find_spec("torch") is None or not os.access(folder, os.W_OK):
                command = f"dragoman convert {folder} ct2:{converted}"
                raise ModelFolderError(
                    f"{folder} holds no model for CTranslate2; "
                    f"run `{command}` where torch is installed"
                )
            export(folder, converted)
        return cls(converted, description, tokenizer, threads)

    def batch_rows(self, width: int, beams: int) -> int:
        """Return how many sentences of up to `width` source tokens one batch should hold."""
        return max(8192 // (beams * width), 1)

    def search(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        """Return the n best outputs of each request, best first, and always at least one."""
        if any(request.terms for request in batch):
            raise OptionError(
                "CTranslate2 does not support a glossary; use --runtime int8 or torch"
            )
        engine = self._engine
        if options.sample:
            # A thread takes up the seed when it starts, so there must be a new one.
            package().set_random_seed(options.seed)
            engine = self._open()
        limits = [self._limit(request, options) for request in batch]
        results = engine.translate_batch(
            self._pieces([request.read for request in batch], "source"),
            self._pieces([request.prefix for request in batch], "target"),
            beam_size=1 if options.sample or options.branch else options.beam,
            num_hypotheses=1 if options.top_k == 1 else options.hypotheses,
            no_repeat_ngram_size=options.no_repeat_ngram,
            sampling_topk=options.top_k if options.sample else 1,
            sampling_topp=options.top_p,
            sampling_temperature=options.temperature,
            return_alternatives=options.branch,  # of which the end is never one
            max_decoding_length=max(limits, default=1),
            min_decoding_length=min(options.min_length, max(limits, default=1)) - 1,
            **ASKED,
        )
        found = [
            ranked(result, self._ids, options.alpha, limit)
            for result, limit in zip(results, limits, strict=True)
        ]
        if not options.coverage and not any(request.prefix for request in batch):
            # Otherwise their sums lack what ours have, and all must be scored.
            found = [row[: options.nbest] for row in found]
        return self._scored(batch, found, options)

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[numpy.ndarray]:
        """Return for each pair (target + 1, source + 1): where each target token and the end looked
        in the source; rows sum to 1."""
        results = self._engine.translate_batch(
            self._pieces(sources, "source"),
            self._pieces(targets, "target"),
            beam_size=1,
            max_decoding_length=max(map(len, targets), default=0) + 1,
            return_attention=True,
            **ASKED,
        )
        tables = []
        for source, target, result in zip(sources, targets, results, strict=True):
            # The source's end has no column here.
            count = len(target) + 1
            rows = numpy.array(result.attention[0][:count], numpy.float32)
            rows = rows.reshape(count, len(source))
            end = 1.0 - rows.sum(1, keepdims=True)
            tables.append(numpy.concatenate([rows, end], 1))
        return tables

    def _scored(
        self, batch: Sequence[Request], found: list[list[Output]], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """With the log-probability of each token, which CTranslate2's search does not return."""
        sources = []
        targets = []
        for request, row in zip(batch, found, strict=True):
            sources += [request.read] * len(row)
            targets += [tokens for _, _, tokens in row]
        source_pieces = self._pieces(sources, "source")
        target_pieces = self._pieces(targets, "target")
        results = iter(self._engine.score_batch(source_pieces, target_pieces, max_input_length=0))
        unread: Iterator[float] = iter([0.0] * len(targets))
        if options.coverage:
            asked = [request for request, row in zip(batch, found, strict=True) for _ in row]
            tables = self.attention(sources, targets)
            unread = map(coverage_penalty, map(Request.own_columns, asked, tables))
        scored = []
        for row in found:
            best = []
            for finished, _, tokens in row:
                log_probs = tuple(next(results).log_probs[: len(tokens) + finished])
                penalty = length_penalty(float(len(log_probs)), options.alpha)
                score = sum(log_probs) / penalty + options.coverage * next(unread)
                best.append(Hypothesis(tokens, score, log_probs))
            best.sort(key=lambda one: (one.finished, one.score), reverse=True)
            scored.append(best[: options.nbest])
        return scored

    def _limit(self, request: Request, options: SearchOptions) -> int:
        """The most tokens of an output, its end counted; the model's positions hold one more, the
        start that scoring reads."""
        asked = options.max_length or len(request.tokens) + options.max_extra
        needed = len(request.prefix) + options.min_length
        return min(max(asked, needed), self._description.model.max_length - 1)

    def _pieces(self, rows: Sequence[Sequence[int]], side: Any) -> list[list[str]]:
        return [self._tokenizer.pieces(row, side) for row in rows]

    def _open(self) -> Any:
        try:
            return package().Translator(str(self._converted), intra_threads=self._threads)
        except (RuntimeError, ValueError) as error:
            raise ModelFolderError(
                f"{self._converted} is damaged ({error}); remove it, and it will be made again"
            ) from None
