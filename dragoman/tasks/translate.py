"""Text in, text out: the only place where strings meet tokens at run time. What computes is a
runtime's business."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, overload

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError
from dragoman.folder.description import Description
from dragoman.folder.extras import load_calibration
from dragoman.runtimes.load import load
from dragoman.runtimes.runtime import TERMS, Request, Runtime
from dragoman.tasks.calibrate import Calibration
from dragoman.tasks.lines import CHUNK, as_lines, growing
from dragoman.tasks.request import RequestFields, TranslateRequest, make_request
from dragoman.tasks.segment import Segment, Segmenter
from dragoman.tasks.signs import Evidence
from dragoman.tasks.translation import Draft, Translation, join_translations
from dragoman.text.copying import is_whole, spelt, written
from dragoman.text.flags import FLAGS, SERIOUS, flags
from dragoman.text.tokenizer import Side, Tokenizer
from dragoman.text.words import align as align_words

if TYPE_CHECKING:
    import numpy

# What other programs take for the end of a line.
_LINE_BREAKS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True)
class _Outcome:
    """A segment and what the search made of it."""

    segment: Segment
    hypotheses: list[Hypothesis]  # best first
    text: str  # of the best
    flags: tuple[str, ...]
    attention: numpy.ndarray | None = None  # of the best


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
        **fields: Unpack[RequestFields],
    ) -> Translation: ...

    @overload
    def translate(
        self,
        lines: Iterable[str],
        request: TranslateRequest | SearchOptions | None = None,
        **fields: Unpack[RequestFields],
    ) -> list[Translation]: ...

    def translate(
        self,
        lines: str | Iterable[str],
        request: TranslateRequest | SearchOptions | None = None,
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
        """
        asked = make_request(request, fields)
        translations = self._translate_all(list(as_lines(lines)), asked)
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
        asked = make_request(request, fields)
        remaining = as_lines(lines)
        for size in growing(at_once):
            chunk = list(itertools.islice(remaining, size))
            if not chunk:
                return
            yield from self._translate_all(chunk, asked)

    def drafts(self, lines: Sequence[str], request: TranslateRequest) -> list[Draft]:
        """Translate lines of training text, several times as fast as `translate` between two
        searches: without probabilities, flags and second attempts."""
        protect = request.protect and bool(self.tokenizer.copies)
        asked = replace(request, protect=protect)
        segments = [self.segmenter.segments(line, asked) for line in lines]
        flat = list(itertools.chain.from_iterable(segments))
        found = self._search([segment.request for segment in flat], asked.options)
        best = [hypotheses[0] for hypotheses in found]
        texts = iter(self._texts([one.tokens for one in best]))
        remaining = iter(best)
        drafts = []
        for parts in segments:
            of_line = list(itertools.islice(remaining, len(parts)))
            texts_of_line = list(itertools.islice(texts, len(parts)))
            drafts.append(_draft(parts, of_line, texts_of_line))
        return drafts

    def _translate_all(self, lines: Sequence[str], asked: TranslateRequest) -> list[Translation]:
        segments = [self.segmenter.segments(line, asked) for line in lines]
        flat = list(itertools.chain.from_iterable(segments))
        outcomes = self._outcomes(flat, asked.options)
        if asked.protect:
            outcomes = self._kept(outcomes, asked.options)
        if asked.careful:
            outcomes = self._retried(outcomes, asked.options)
        if asked.align:
            outcomes = self._aligned(outcomes)
        remaining = iter(outcomes)
        translations = []
        for line, parts in zip(lines, segments, strict=True):
            of_line = list(itertools.islice(remaining, len(parts)))
            translations.append(self._joined(of_line, line))
        return translations

    def _outcomes(self, segments: Sequence[Segment], options: SearchOptions) -> list[_Outcome]:
        found = self._search([segment.request for segment in segments], options)
        named = self._texts([hypotheses[0].tokens for hypotheses in found])
        outcomes = []
        for segment, hypotheses, text in zip(segments, found, named, strict=True):
            outcomes.append(self._outcome(segment, hypotheses, text))
        return outcomes

    def _outcome(self, segment: Segment, hypotheses: list[Hypothesis], named: str) -> _Outcome:
        """What a search made of a segment; `named` is its text with names for what is copied."""
        text = written(named, segment.named.copies) if segment.has_names else named
        return _Outcome(segment, hypotheses, text, self._flags(segment, named))

    def _kept(self, outcomes: list[_Outcome], options: SearchOptions) -> list[_Outcome]:
        """Segments that lost something they had to carry over, once more, with it as a term."""
        if options.sample or options.branch or TERMS not in self.runtime.can:
            return outcomes
        lost = [index for index, outcome in enumerate(outcomes) if "protected" in outcome.flags]
        again = [self._guarded(outcomes[index].segment, options) for index in lost]
        kept = list(outcomes)
        for index, second in zip(lost, self._outcomes(again, options), strict=True):
            if "protected" not in second.flags:
                kept[index] = second
        return kept

    def _search(
        self, requests: Sequence[Request], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each request, searched for in batches."""
        found: list[list[Hypothesis]] = [[] for _ in requests]
        for batch in self._batches(requests, options.hypotheses):
            results = self.runtime.search([requests[index] for index in batch], options)
            for index, hypotheses in zip(batch, results, strict=True):
                found[index] = hypotheses
        return found

    def _batches(self, requests: Sequence[Request], hypotheses: int) -> Iterator[list[int]]:
        """Indices of requests of like length, the longest first, so that a lack of memory shows
        at once. All requests of a batch have equally many terms: the beam is as wide as the most
        terms ask for."""

        def key(index: int) -> tuple[int, int]:
            return len(requests[index].terms), -len(requests[index].tokens)

        order = sorted(range(len(requests)), key=key)
        for _, same_terms in itertools.groupby(order, lambda index: len(requests[index].terms)):
            remaining = list(same_terms)
            while remaining:
                width = len(requests[remaining[0]].tokens) + 1
                rows = self.runtime.batch_rows(width, hypotheses)
                yield remaining[:rows]
                remaining = remaining[rows:]

    def _texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Each row as one line without white space at its ends, which not all tokenisers give."""
        return [" ".join(text.split()) for text in self.tokenizer.decode(rows)]

    def _flags(self, segment: Segment, named: str) -> tuple[str, ...]:
        """What looks wrong with a translation, given with names for what is copied."""
        ratio = None if self.calibration is None else self.calibration.ratio
        found = {*flags(segment.named.text, named, ratio)}
        if segment.has_names and not is_whole(named, segment.named.copies):
            found.add("protected")
        return tuple(name for name in FLAGS if name in found)

    def _retried(self, outcomes: list[_Outcome], options: SearchOptions) -> list[_Outcome]:
        """Segments with flags once more, with a wider beam, no repeats, and what must survive as
        terms; the better outcome of the two."""
        flagged = [index for index, outcome in enumerate(outcomes) if outcome.flags]
        no_repeat = options.no_repeat_ngram or 4
        harder = replace(options, beam=2 * options.beam, no_repeat_ngram=no_repeat)
        if not (options.sample or options.branch):
            harder = replace(harder, coverage=options.coverage or 0.2)
        again = [self._guarded(outcomes[index].segment, options) for index in flagged]
        better = list(outcomes)
        for index, second in zip(flagged, self._outcomes(again, harder), strict=True):
            if len(second.flags) < len(outcomes[index].flags):
                better[index] = second
        return better

    def _guarded(self, segment: Segment, options: SearchOptions) -> Segment:
        """With the placeholders and addresses of the source as terms, if the search can take
        terms."""
        if options.sample or options.branch or TERMS not in self.runtime.can:
            return segment
        return self.segmenter.with_copies(segment)

    def _aligned(self, outcomes: list[_Outcome]) -> list[_Outcome]:
        """With the attention of each best translation, computed in batches of like length."""

        def length(index: int) -> int:
            outcome = outcomes[index]
            return len(outcome.segment.request.tokens) + len(outcome.hypotheses[0].tokens)

        aligned = list(outcomes)
        order = sorted(range(len(outcomes)), key=length)
        while order:
            rows = self.runtime.batch_rows(length(order[-1]) + 2, 4)
            batch = [order.pop() for _ in range(min(len(order), rows))]
            sources = [outcomes[index].segment.request.tokens for index in batch]
            targets = [outcomes[index].hypotheses[0].tokens for index in batch]
            tables = self.runtime.attention(sources, targets)
            for index, table in zip(batch, tables, strict=True):
                aligned[index] = replace(outcomes[index], attention=table)
        return aligned

    def _joined(self, outcomes: list[_Outcome], line: str) -> Translation:
        """One translation of a line's segments; alternatives only if there is one segment."""
        if not outcomes:
            return Translation("")
        lead = line[: len(line) - len(line.lstrip())]
        best = [self._translation(one, one.hypotheses[0], one.text) for one in outcomes]
        if len(outcomes) == 1:
            space = outcomes[0].segment.space

            def whole_line(one: Translation) -> Translation:
                return replace(one, text=_one_line(lead + one.text + space))

            others = tuple(whole_line(other) for other in self._alternatives(outcomes[0]))
            return replace(whole_line(best[0]), alternatives=others)
        sources = [one.segment.text for one in outcomes]
        spaces = [one.segment.space for one in outcomes]
        whole = join_translations(best, sources, spaces)
        return replace(whole, text=_one_line(lead + whole.text))

    def _alternatives(self, outcome: _Outcome) -> list[Translation]:
        """What the search found besides the best; the attention is that of the best alone."""
        alternatives = []
        for hypothesis in outcome.hypotheses[1:]:
            named = self._texts([hypothesis.tokens])[0]
            other = self._outcome(outcome.segment, [hypothesis], named)
            alternatives.append(self._translation(other, hypothesis, other.text))
        return alternatives

    def _translation(self, outcome: _Outcome, hypothesis: Hypothesis, text: str) -> Translation:
        pieces = self._spelt(hypothesis.tokens, "target", outcome.segment)
        alignment: tuple[tuple[int, int], ...] = ()
        if outcome.attention is not None:
            source = self._spelt(outcome.segment.request.tokens, "source", outcome.segment)
            alignment = _aligned_words(outcome.attention, source, pieces)
        confidence = None
        if self.calibration is not None:
            evidence = Evidence(hypothesis.log_probs, outcome.segment.text, text)
            has_serious_flag = not SERIOUS.isdisjoint(outcome.flags)
            confidence = self.calibration.confidence(evidence, has_serious_flag)
        return Translation(
            text,
            hypothesis.score,
            tuple("".join(parts) for parts in pieces),
            tuple(math.exp(value) for value in hypothesis.log_probs),
            alignment=alignment,
            confidence=confidence,
            flags=outcome.flags,
        )

    def _spelt(self, tokens: Sequence[int], side: Side, segment: Segment) -> list[list[str]]:
        """The pieces of each token; those of a copy token are of what it stands for."""
        copies = segment.named.copies
        texts = [copy.source if side == "source" else copy.target for copy in copies]
        return spelt(self.tokenizer.pieces(tokens, side), texts)


def _aligned_words(
    attention: numpy.ndarray, source: list[list[str]], target: list[list[str]]
) -> tuple[tuple[int, int], ...]:
    """The alignment of words; every piece of a token has the token's attention."""
    rows = [row for row, parts in enumerate([*target, [""]]) for _ in parts]
    columns = [column for column, parts in enumerate([*source, [""]]) for _ in parts]
    source_pieces = [piece for parts in source for piece in parts]
    target_pieces = [piece for parts in target for piece in parts]
    return align_words(attention[rows][:, columns], source_pieces, target_pieces)


def _draft(segments: Sequence[Segment], found: Sequence[Hypothesis], texts: Sequence[str]) -> Draft:
    """One draft of a line's segments; `texts` have names for what is copied."""
    whole = True
    text = ""
    for segment, named in zip(segments, texts, strict=True):
        copies = segment.named.copies
        whole = whole and (not segment.has_names or is_whole(named, copies))
        text += (written(named, copies) if segment.has_names else named) + segment.space
    return Draft(
        text=_one_line(text).strip(),
        source_tokens=sum(len(segment.request.tokens) for segment in segments),
        target_tokens=sum(len(one.tokens) for one in found),
        finished=all(one.finished for one in found),
        whole=whole,
    )


def _check(folder: Path, description: Description) -> None:
    if description.task != "translate":
        raise ModelFolderError(
            f"{folder} holds a model for the task {description.task}; name one that translates"
        )


def _one_line(text: str) -> str:
    return _LINE_BREAKS.sub(" ", text)
