"""Text in, text out: a model that translates lines. How lines become segments, what is searched for
them and how the results become text again are the business of the parts that it joins."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack, overload

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import Description
from dragoman.folder.extras import load_calibration
from dragoman.runtimes.load import load
from dragoman.runtimes.runtime import Runtime
from dragoman.tasks.calibration import Calibration
from dragoman.tasks.lines import CHUNK, as_lines, growing
from dragoman.tasks.outcome import Renderer
from dragoman.tasks.request import RequestFields, TranslateRequest, make_request
from dragoman.tasks.segment import Segment, Segmenter, Trail
from dragoman.tasks.segment_search import SegmentSearch
from dragoman.tasks.translation import Draft, Translation
from dragoman.text.tokenizer import Tokenizer


class Translator:
    """A trained model that translates lines of text.

    >>> translator = Translator.load("models/en-de")
    >>> translator.translate("The cat is sleeping on the chair.").text
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
        self._segments = SegmentSearch(runtime, tokenizer, self.segmenter, self._renderer)

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
        found = self._segments.search(requests, asked.options)
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
        remaining = iter(self._segments.outcomes(flat, asked))
        translations = []
        for line, parts in zip(lines, segments, strict=True):
            of_line = list(itertools.islice(remaining, len(parts)))
            translations.append(self._renderer.line(of_line, line))
        return translations


def _check(folder: Path, description: Description) -> None:
    if description.task != "translate":
        raise ModelFolderError(
            f"{folder} holds a model for the task {description.task}; name one that translates"
        )
