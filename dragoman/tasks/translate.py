"""Text in, text out: the only place where strings meet tokens at run time. What computes is a
runtime's business."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError
from dragoman.folder.checkpoint import Description, load_description
from dragoman.folder.extras import load_calibration
from dragoman.runtimes.load import pick_runtime
from dragoman.runtimes.runtime import Request, Runtime
from dragoman.tasks.calibrate import Calibration
from dragoman.text.flags import flags, protected
from dragoman.text.glossary import Glossary
from dragoman.text.sentences import split as split_sentences
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.words import align as align_words
from dragoman.text.words import places_of

CHUNK = 2048  # lines of a stream that are sorted by length together
_SENTENCE_ENDS = (".", "!", "?", ";", ":", "।", "።")
_FULL_ENDS = ("。", "！", "？")  # no space follows them
_LINE_BREAKS = re.compile(
    "[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
)  # what others take for the end of a line


@dataclass(frozen=True)
class Translation:
    """A line's translation, and what is known of it."""

    text: str
    score: float = 0.0  # the search's: a length-normalised log-probability, nearer to 0 is better
    tokens: tuple[str, ...] = ()
    token_probabilities: tuple[float, ...] = ()  # of the tokens and the end
    alternatives: tuple[Translation, ...] = ()  # the next best, where nbest asks for them
    alignment: tuple[
        tuple[int, int], ...
    ] = ()  # (source word, target word), counted from 0, where asked for
    confidence: float | None = None  # from 0 to 1; None where the model has not been calibrated
    flags: tuple[str, ...] = ()  # among repetition, omission, copied, numbers, protected, garbled


@dataclass(frozen=True)
class _Part:
    """A stretch of a line that is translated at once: a sentence, or as much of a long one as
    the model can take."""

    text: str
    request: Request
    space: str = ""  # what stands between it and the next, or behind the last


@dataclass(frozen=True)
class _Done:
    part: _Part
    found: list[Hypothesis]
    target: str
    flags: tuple[str, ...]
    attention: numpy.ndarray | None = None


class Translator:
    """A trained model that translates lines.

    >>> translator = Translator.load("models/en-de")
    >>> translator.translate(["The cat sat on the mat."])[0].text
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

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str = "auto",
        runtime: str = "auto",
        shortlist: bool = False,
    ) -> Translator:
        """The model of a folder. `device` is auto (the GPU where there is one), cpu, cuda or
        cuda:N; `runtime` is auto (the fastest there is), torch, int8 or ctranslate2. A shortlist
        speeds up a CPU where `dragoman shortlist` learnt one."""
        folder = Path(folder)
        description, tokenizer = load_description(folder)
        if description.task != "translate":
            raise ModelFolderError(
                f"{folder} is a model for the task {description.task}; name one that translates"
            )
        values = load_calibration(folder)
        calibration = None if values is None else Calibration.from_dict(values)
        return cls(
            pick_runtime(folder, description, tokenizer, device, runtime, shortlist),
            tokenizer,
            description,
            calibration,
        )

    def translate(
        self,
        lines: Sequence[str],
        options: SearchOptions | None = None,
        *,
        prefix: str = "",
        glossary: Glossary | None = None,
        align: bool = False,
        careful: bool = False,
        split: bool = True,
    ) -> list[Translation]:
        """A translation for each line, in the order of the lines. A line without text stays empty.

        A line of several sentences is translated sentence by sentence, its white space kept, unless
        `split` is False; what is longer than the model was trained for is always translated in
        parts. Every output begins with `prefix`. Where a term of the glossary occurs, one of its
        forms occurs in the output. `align` adds the word alignment; `careful` searches again,
        harder, where the first translation is flagged, and keeps the better one.
        """
        options = options or SearchOptions()
        parts = [self._parts(line, prefix, glossary, split) for line in lines]
        flat = [part for line in parts for part in line]
        done = self._done(flat, self._search([part.request for part in flat], options))
        if careful:
            done = self._redone(done, options)
        if align:
            done = self._aligned(done)
        results = iter(done)
        return [
            self._joined([next(results) for _ in line], text)
            for line, text in zip(parts, lines, strict=True)
        ]

    def stream(
        self,
        lines: Iterable[str],
        options: SearchOptions | None = None,
        *,
        at_once: int = CHUNK,
        prefix: str = "",
        glossary: Glossary | None = None,
        align: bool = False,
        careful: bool = False,
        split: bool = True,
    ) -> Iterator[Translation]:
        """The same for lines without end, in constant memory: `at_once` lines are waited for and
        then translated."""
        remaining = iter(lines)
        while chunk := list(itertools.islice(remaining, at_once)):
            yield from self.translate(
                chunk,
                options,
                prefix=prefix,
                glossary=glossary,
                align=align,
                careful=careful,
                split=split,
            )

    def _parts(self, line: str, prefix: str, glossary: Glossary | None, split: bool) -> list[_Part]:
        """What of the line is translated, with the white space around it; nothing where there is
        no text."""
        text = line.rstrip()
        sentences = (
            split_sentences(line, self.description.source_language)
            if split
            else [(text, line[len(text) :])]
        )
        forced = self.tokenizer.encode([prefix], "target")[0] if prefix else []
        parts: list[_Part] = []
        for sentence, space in sentences:
            pieces = self._cut(self.tokenizer.encode([sentence], "source")[0])
            texts = [sentence] if len(pieces) == 1 else self.tokenizer.decode(pieces, "source")
            for tokens, text in zip(pieces, texts, strict=True):
                request = Request(tokens, () if parts else forced)
                terms = (
                    []
                    if glossary is None
                    else [(term.source, term.forms) for term in glossary.find(text)]
                )
                parts.append(_Part(text, self._with_terms(request, terms), " "))
            if pieces:
                parts[-1] = replace(parts[-1], space=space)
            elif parts:
                parts[-1] = replace(parts[-1], space=parts[-1].space + space)
        return parts

    def _cut(self, tokens: list[int]) -> list[list[int]]:
        """The tokens in parts that the model can take, cut after a sentence, else between words,
        else where it must be."""
        limit = self.description.longest - len(
            self.description.frame.source(())
        )  # the end token comes behind
        parts = []
        while len(tokens) > limit:
            pieces = self.tokenizer.pieces(tokens[: limit + 1], "source")
            words = [i for i in range(1, limit + 1) if pieces[i].startswith("▁")]
            sentences = [i for i in words if pieces[i - 1].endswith(_SENTENCE_ENDS)]
            sentences += [i for i in range(1, limit + 1) if pieces[i - 1].endswith(_FULL_ENDS)]
            cut = max(sentences or words or [limit])
            parts.append(tokens[:cut])
            tokens = tokens[cut:]
        return [*parts, tokens] if tokens else parts

    def _with_terms(self, request: Request, terms: Sequence[tuple[str, Sequence[str]]]) -> Request:
        """Each term with its forms as tokens, and the source tokens that it stands for."""
        forms = [self._forms(forms) for _, forms in terms]
        pieces = self.tokenizer.pieces(request.tokens, "source")
        places = [places_of(source, pieces) for source, _ in terms]
        return replace(request, terms=[*request.terms, *forms], places=[*request.places, *places])

    def _forms(self, forms: Sequence[str]) -> list[list[int]]:
        found = self.tokenizer.encode(list(forms), "target")
        # A piece that is nothing but the space before a word has no place in text that is written
        # without spaces.
        alone = [
            len(tokens) > 1 and self.tokenizer.pieces(tokens[:1], "target") == ["▁"]
            for tokens in found
        ]
        unspaced = [unicodedata.category(form[:1] or " ") == "Lo" for form in forms]
        bare = [
            tokens[1:] for tokens, *both in zip(found, alone, unspaced, strict=True) if all(both)
        ]
        return found + bare

    def _search(
        self, requests: Sequence[Request], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """In batches of like length, longest first, so that too little memory shows at once."""
        found: list[list[Hypothesis]] = [[] for _ in requests]
        batch: list[int] = []
        order = sorted(
            range(len(requests)), key=lambda i: (len(requests[i].terms), -len(requests[i].tokens))
        )
        for row in [*order, -1]:
            first = requests[batch[0]] if batch else None
            if first is not None and (
                row < 0
                or len(batch) == self.runtime.batch_rows(len(first.tokens) + 1, options.hypotheses)
                or len(requests[row].terms)
                != len(first.terms)  # the beam is as wide as the most terms ask for
            ):
                for place, best in zip(
                    batch, self.runtime.search([requests[i] for i in batch], options), strict=True
                ):
                    found[place] = best
                batch = []
            batch.append(row)
        return found

    def _done(self, parts: Sequence[_Part], found: Sequence[list[Hypothesis]]) -> list[_Done]:
        ratio = None if self.calibration is None else self.calibration.ratio
        texts = self._texts([best[0].tokens for best in found])
        rows = zip(parts, found, texts, strict=True)
        return [_Done(part, best, text, flags(part.text, text, ratio)) for part, best, text in rows]

    def _texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Our own tokenisers give one line without white space at its ends; others may not."""
        return [" ".join(text.split()) for text in self.tokenizer.decode(rows)]

    def _redone(self, done: list[_Done], options: SearchOptions) -> list[_Done]:
        """Those with flags once more, with a wider beam, no repeats, and what must survive as
        terms; the better ones."""
        places = [i for i, one in enumerate(done) if one.flags]
        harder = replace(
            options, beam=2 * options.beam, no_repeat_ngram=options.no_repeat_ngram or 4
        )
        if not (options.sample or options.branch):
            harder = replace(harder, coverage=options.coverage or 0.2)
        again = [self._guarded(done[i].part, options) for i in places]
        seconds = self._done(again, self._search([part.request for part in again], harder))
        for place, second in zip(places, seconds, strict=True):
            if len(second.flags) < len(done[place].flags):
                done[place] = second
        return done

    def _guarded(self, part: _Part, options: SearchOptions) -> _Part:
        """With the placeholders and addresses of the source as terms, where the search can take
        terms."""
        if options.sample or options.branch or self.runtime.name == "ctranslate2":
            return part
        terms = [(text, [text]) for text in dict.fromkeys(protected(part.text))]
        return replace(part, request=self._with_terms(part.request, terms))

    def _aligned(self, done: list[_Done]) -> list[_Done]:
        """With the attention of each best translation."""
        aligned = list(done)
        order = sorted(
            range(len(done)),
            key=lambda i: len(done[i].part.request.tokens) + len(done[i].found[0].tokens),
        )
        while order:
            longest = done[order[-1]]
            width = len(longest.part.request.tokens) + len(longest.found[0].tokens) + 2
            batch = [order.pop() for _ in range(min(len(order), self.runtime.batch_rows(width, 4)))]
            sources = [done[i].part.request.tokens for i in batch]
            tables = self.runtime.attention(sources, [done[i].found[0].tokens for i in batch])
            for i, table in zip(batch, tables, strict=True):
                aligned[i] = replace(done[i], attention=table)
        return aligned

    def _joined(self, parts: list[_Done], line: str) -> Translation:
        """One translation of a line's parts; alternatives only where there is one part."""
        if not parts:
            return Translation("")
        whole = [self._translation(one, one.found[0], one.target) for one in parts]
        lead = line[: len(line) - len(line.lstrip())]
        spaces = [one.part.space for one in parts]
        text = lead + "".join(one.text + space for one, space in zip(whole, spaces, strict=True))
        if len(parts) == 1:
            plain = replace(parts[0], attention=None)  # which is that of the best
            found = []
            for other in parts[0].found[1:]:
                said = self._texts([other.tokens])[0]
                other_flags = flags(
                    plain.part.text,
                    said,
                    None if self.calibration is None else self.calibration.ratio,
                )
                one = self._translation(
                    replace(plain, flags=other_flags), other, _one_line(lead + said + spaces[0])
                )
                found.append(one)
            return replace(whole[0], text=_one_line(text), alternatives=tuple(found))
        weights = [len(one.tokens) + 1 for one in whole]
        sure = [
            one.confidence * weight
            for one, weight in zip(whole, weights, strict=True)
            if one.confidence is not None
        ]
        return Translation(
            _one_line(text),
            sum(one.score for one in whole),
            tuple(token for one in whole for token in one.tokens),
            tuple(value for one in whole for value in one.token_probabilities),
            alignment=_shifted(whole, [one.part.text for one in parts]),
            confidence=sum(sure) / sum(weights) if sure else None,
            flags=tuple(dict.fromkeys(flag for one in whole for flag in one.flags)),
        )

    def _translation(self, one: _Done, hypothesis: Hypothesis, text: str) -> Translation:
        tokens = tuple(self.tokenizer.pieces(hypothesis.tokens, "target"))
        alignment: tuple[tuple[int, int], ...] = ()
        if one.attention is not None:
            alignment = align_words(
                one.attention, self.tokenizer.pieces(one.part.request.tokens, "source"), tokens
            )
        sure = (
            None if self.calibration is None else self.calibration.confidence(hypothesis.log_probs)
        )
        chances = tuple(math.exp(value) for value in hypothesis.log_probs)
        return Translation(text, hypothesis.score, tokens, chances, (), alignment, sure, one.flags)


def _one_line(text: str) -> str:
    return _LINE_BREAKS.sub(" ", text)


def _shifted(parts: Sequence[Translation], sources: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """The alignments of the parts, each counted from where its words begin in the line."""
    pairs: list[tuple[int, int]] = []
    source_words = target_words = 0
    for one, source in zip(parts, sources, strict=True):
        pairs += [(a + source_words, b + target_words) for a, b in one.alignment]
        source_words += len(source.split())
        target_words += len(one.text.split())
    return tuple(pairs)
