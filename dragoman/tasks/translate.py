"""Text in, text out: the only place where strings meet tokens at run time. What computes is a
runtime's business."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, overload

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import Description
from dragoman.folder.extras import load_calibration
from dragoman.runtimes.load import load
from dragoman.runtimes.runtime import TERMS, Request, Runtime
from dragoman.tasks.calibration import Calibration
from dragoman.tasks.lines import CHUNK, as_lines, growing
from dragoman.tasks.outcome import Outcome, Renderer
from dragoman.tasks.request import RequestFields, TranslateRequest, make_request
from dragoman.tasks.segment import Segment, Segmenter, Trail
from dragoman.tasks.translation import Draft, Translation
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy

    from dragoman.tasks.standing_in import Disguised


class Translator:
    """A trained model that translates lines of text.

    >>> translator = Translator.load("models/en-de")
    >>> translator.translate("The cat sat on the mat.").text
    """

    def __init__(
        self,
        runtime: Runtime,
        tokenizer: Tokenizer,
        description: Description,
        calibration: Calibration | None = None,
    ) -> None:
        self.runtime = runtime
        self.tokenizer = tokenizer
        self.description = description
        self.calibration = calibration
        self.segmenter = Segmenter(tokenizer, description)
        self._renderer = Renderer(tokenizer, calibration)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str = "auto",
        runtime: str = "auto",
        shortlist: bool = False,
    ) -> Translator:
        """Load the model of a folder.

        `device` is auto (the GPU if there is one), cpu, cuda or cuda:N. `runtime` is auto (the
        fastest available), torch, int8 or ctranslate2. `shortlist` speeds up a CPU if
        `dragoman shortlist` has made a shortlist for the model.
        """
        loaded = load(folder, device, runtime, shortlist, check=_check)
        values = load_calibration(Path(folder))
        calibration = None if values is None else Calibration.from_dict(values)
        return cls(loaded.runtime, loaded.tokenizer, loaded.description, calibration)

    @property
    def parts(self) -> tuple[Translator, ...]:
        """The translators that a text goes through: this one."""
        return (self,)

    @property
    def via(self) -> str:
        """The language between: none."""
        return ""

    def __repr__(self) -> str:
        """Say what it translates, with which runtime, and whether it knows its confidence."""
        confidence = "calibrated" if self.calibration else "not calibrated"
        summary = self.description.summary()
        return f"<Translator: {summary}, runtime {self.runtime.name}, {confidence}>"

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is also a sequence of strings
        self,
        lines: str,
        request: TranslateRequest | SearchOptions | None = None,
        *,
        before: Sequence[str] = (),
        **fields: Unpack[RequestFields],
    ) -> Translation: ...

    @overload
    def translate(
        self,
        lines: Iterable[str],
        request: TranslateRequest | SearchOptions | None = None,
        *,
        before: Sequence[str] = (),
        **fields: Unpack[RequestFields],
    ) -> list[Translation]: ...

    def translate(
        self,
        lines: str | Iterable[str],
        request: TranslateRequest | SearchOptions | None = None,
        *,
        before: Sequence[str] = (),
        **fields: Unpack[RequestFields],
    ) -> Translation | list[Translation]:
        """Translate lines of text; an empty line stays empty.

        Several lines give a list in their order. A string is one line and gives one translation.

        What may be asked for is a `TranslateRequest`. Its fields may also be named as keywords,
        and `SearchOptions` may stand for a request that has no others:
        `translate(lines, SearchOptions(beam=8), glossary=terms, align=True)`.

        A line of several sentences is translated sentence by sentence and keeps its white space,
        unless `split` is False. What is longer than the model was trained for is always translated
        in parts.

        With `context`, the lines are one text, which an empty line ends, and `before` are the lines
        before the first.
        """
        asked = self._checked(make_request(request, fields))
        given = list(as_lines(lines))
        trail = self._trail(before, asked)
        translations = self._translate_all(self._lines(given, asked, trail), asked)
        return translations[0] if isinstance(lines, str) else translations

    def stream(
        self,
        lines: str | Iterable[str],
        request: TranslateRequest | SearchOptions | None = None,
        *,
        at_once: int = CHUNK,
        **fields: Unpack[RequestFields],
    ) -> Iterator[Translation]:
        """Translate any number of lines in constant memory, at most `at_once` lines at a time.

        The request is that of `translate`. The first lines are few, so that they come soon.
        """
        asked = self._checked(make_request(request, fields))
        trail = Trail(asked.context)
        remaining = as_lines(lines)
        for size in growing(at_once):
            chunk = list(itertools.islice(remaining, size))
            if not chunk:
                return
            yield from self._translate_all(self._lines(chunk, asked, trail), asked)

    def drafts(self, lines: Sequence[str], request: TranslateRequest) -> list[Draft]:
        """Translate lines of training text, several times as fast as `translate` between two
        searches: without probabilities, flags and second attempts."""
        protect = request.protect and bool(self.tokenizer.copies)
        asked = replace(request, protect=protect)
        segments = [self.segmenter.segments(line, asked) for line in lines]
        flat = list(itertools.chain.from_iterable(segments))
        requests = [segment.request for segment in flat]
        found = self._search(requests, asked.options)
        best = [hypotheses[0] for hypotheses in found]
        return self._renderer.drafts(segments, best)

    def translate_following(
        self, lines: Sequence[str], before: Sequence[Sequence[str]], request: TranslateRequest
    ) -> list[Translation]:
        """Translate lines that stand in texts of their own: each with the lines before it there,
        which are read along if the request asks for context."""
        asked = self._checked(request)
        placed = []
        for line, others in zip(lines, before, strict=True):
            placed += self._lines([line], asked, self._trail(others, asked))
        return self._translate_all(placed, asked)

    def _trail(self, before: Sequence[str], asked: TranslateRequest) -> Trail:
        """What is read along of the lines before the first."""
        trail = Trail(asked.context)
        for line in before[-asked.context :] if asked.context else ():
            self.segmenter.read_along(line, trail)
        return trail

    def _lines(
        self, lines: Sequence[str], asked: TranslateRequest, trail: Trail
    ) -> list[tuple[str, list[Segment]]]:
        """Each line with its segments. They are read in order; an empty line ends a text."""
        placed = []
        for line in lines:
            placed.append((line, self.segmenter.segments(line, asked, trail)))
            if not line.strip():
                trail.end()
        return placed

    def _checked(self, asked: TranslateRequest) -> TranslateRequest:
        """Refuse what the model has not learnt."""
        described = self.description
        if asked.context > described.context:
            knows = f"up to {described.context}" if described.context else "none"
            raise OptionError(
                f"context is {asked.context}, and this model has learnt to read {knows} of the "
                "sentences before; train one with data.context, or ask for less"
            )
        wishes = (
            ("tone", asked.tone, described.tones),
            ("variant", asked.variant, described.variants),
        )
        for name, value, known in wishes:
            if value and value not in known:
                knows = f"it knows {', '.join(known)}" if known else "it has learnt none"
                raise OptionError(
                    f"{name} is '{value[:40]}', which this model has not learnt; {knows}"
                )
        return asked

    def _translate_all(
        self, placed: Sequence[tuple[str, list[Segment]]], asked: TranslateRequest
    ) -> list[Translation]:
        lines = [line for line, _ in placed]
        segments = [parts for _, parts in placed]
        flat = list(itertools.chain.from_iterable(segments))
        outcomes = self._outcomes(flat, asked.options, asked.align)
        if asked.protect:
            outcomes = self._kept(outcomes, asked.options)
        if asked.careful:
            outcomes = self._retried(outcomes, asked.options)
        if asked.align:
            outcomes = self._all_aligned(outcomes)
        remaining = iter(outcomes)
        translations = []
        for line, parts in zip(lines, segments, strict=True):
            of_line = list(itertools.islice(remaining, len(parts)))
            translations.append(self._renderer.line(of_line, line))
        return translations

    def _outcomes(
        self, segments: Sequence[Segment], options: SearchOptions, align: bool = False
    ) -> list[Outcome]:
        """What searches make of segments; with attention if asked to `align`, which costs least
        right after the search of a batch, while the runtime knows what its encoder has read."""
        requests = [segment.request for segment in segments]
        found: list[list[Hypothesis]] = [[] for _ in requests]
        looks: dict[int, numpy.ndarray] = {}
        for batch, results in self._searched(requests, options):
            for index, hypotheses in zip(batch, results, strict=True):
                found[index] = hypotheses
            if align:
                targets = [hypotheses[0].tokens for hypotheses in results]
                tables = self._looks([requests[index] for index in batch], targets)
                looks.update(zip(batch, tables, strict=True))
        outcomes = list(self._renderer.outcomes(segments, found))
        for index, table in looks.items():
            outcomes[index] = replace(outcomes[index], attention=table)
        return outcomes

    def _kept(self, outcomes: list[Outcome], options: SearchOptions) -> list[Outcome]:
        """Segments that lost something they had to carry over, once more: with names in its place
        and, if those get lost too, with it as a term."""
        if options.sample or options.branch or TERMS not in self.runtime.can:
            return outcomes
        kept = list(outcomes)
        for index, second in self._with_names(outcomes, options):
            kept[index] = second
        lost = _lost(kept)
        guarded = [self._guarded(kept[index].segment, options) for index in lost]
        again = self._outcomes(guarded, options)
        for index, second in zip(lost, again, strict=True):
            if "protected" not in second.flags:
                kept[index] = second
        return kept

    def _with_names(
        self, outcomes: list[Outcome], options: SearchOptions
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield what becomes of segments that lost something if it has a name meanwhile; of those
        that lose nothing then."""
        lost = _lost(outcomes)
        if not lost:
            return
        from dragoman.tasks.standing_in import disguised, revealed  # few texts need it

        tried: dict[int, Disguised] = {}
        for index in lost:
            one = disguised(outcomes[index].segment, self.tokenizer)
            if one is not None:
                tried[index] = one
        found = self._search([one.request for one in tried.values()], options)
        for (index, one), hypotheses in zip(tried.items(), found, strict=True):
            shown = [revealed(each, one.names, self.tokenizer) for each in hypotheses]
            if shown[0] is None:
                continue
            whole = [each for each in shown if each is not None]
            (outcome,) = self._renderer.outcomes([one.segment], [whole])
            if "protected" not in outcome.flags:
                yield index, outcome

    def _search(
        self, requests: Sequence[Request], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each request, searched for in batches."""
        found: list[list[Hypothesis]] = [[] for _ in requests]
        for batch, results in self._searched(requests, options):
            for index, hypotheses in zip(batch, results, strict=True):
                found[index] = hypotheses
        return found

    def _searched(
        self, requests: Sequence[Request], options: SearchOptions
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        """Yield the indices of the requests of each batch, and their hypotheses."""
        for batch in self._batches(requests, options.hypotheses):
            together = [requests[index] for index in batch]
            yield batch, self.runtime.search(together, options)

    def _batches(self, requests: Sequence[Request], hypotheses: int) -> Iterator[list[int]]:
        """Indices of requests of like length, the longest first, so that a lack of memory shows
        at once. All requests of a batch have equally many terms: the beam is as wide as the most
        terms ask for."""

        def terms(index: int) -> int:
            return len(requests[index].terms)

        def length(index: int) -> int:
            return len(requests[index].tokens) + len(requests[index].before)

        indices = range(len(requests))
        order = sorted(indices, key=lambda index: (terms(index), -length(index)))
        for _, same_terms in itertools.groupby(order, terms):
            remaining = list(same_terms)
            while remaining:
                width = length(remaining[0]) + 1
                rows = self.runtime.batch_rows(width, hypotheses)
                yield remaining[:rows]
                remaining = remaining[rows:]

    def _retried(self, outcomes: list[Outcome], options: SearchOptions) -> list[Outcome]:
        """Segments with flags once more, with a wider beam, no repeats, and what must survive as
        terms; the better outcome of the two."""
        flagged = [index for index, outcome in enumerate(outcomes) if outcome.flags]
        no_repeat = options.no_repeat_ngram or 4
        harder = replace(options, beam=2 * options.beam, no_repeat_ngram=no_repeat)
        if not (options.sample or options.branch):
            harder = replace(harder, coverage=options.coverage or 0.2)
        guarded = [self._guarded(outcomes[index].segment, options) for index in flagged]
        again = self._outcomes(guarded, harder)
        better = list(outcomes)
        for index, second in zip(flagged, again, strict=True):
            first = outcomes[index]
            if len(second.flags) < len(first.flags):
                better[index] = second
        return better

    def _guarded(self, segment: Segment, options: SearchOptions) -> Segment:
        """With the placeholders and addresses of the source as terms, if the search can take
        terms."""
        if options.sample or options.branch or TERMS not in self.runtime.can:
            return segment
        return self.segmenter.with_copies(segment)

    def _all_aligned(self, outcomes: list[Outcome]) -> list[Outcome]:
        """With the attention of those that have none, computed in batches of like length."""

        def length(index: int) -> int:
            outcome = outcomes[index]
            return len(outcome.segment.request.read) + len(outcome.best.tokens)

        aligned = list(outcomes)
        missing = [index for index, outcome in enumerate(outcomes) if outcome.attention is None]
        order = sorted(missing, key=length)
        order.reverse()
        while order:
            rows = self.runtime.batch_rows(length(order[0]) + 2, 4)
            batch = order[:rows]
            order = order[rows:]
            requests = [outcomes[index].segment.request for index in batch]
            tables = self._looks(requests, [outcomes[index].best.tokens for index in batch])
            for index, table in zip(batch, tables, strict=True):
                aligned[index] = replace(outcomes[index], attention=table)
        return aligned

    def _looks(
        self, requests: Sequence[Request], targets: Sequence[Sequence[int]]
    ) -> list[numpy.ndarray]:
        """Where the tokens of each output looked in its own source."""
        tables = self.runtime.attention([request.read for request in requests], targets)
        return [request.own_columns(table) for request, table in zip(requests, tables, strict=True)]


def _lost(outcomes: Sequence[Outcome]) -> list[int]:
    """Which of them have lost something that had to be carried over."""
    return [index for index, outcome in enumerate(outcomes) if "protected" in outcome.flags]


def _check(folder: Path, description: Description) -> None:
    if description.task != "translate":
        raise ModelFolderError(
            f"{folder} holds a model for the task {description.task}; name one that translates"
        )
