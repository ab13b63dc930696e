"""Any text to any text, as T5 has it: lines, questions about a text, summaries. Knows text, prompts
and the runtime; how an output is searched for is the business of decoding.

What is longer than the model reads is cut where it is one line, and read in overlapping windows
where it is a context to ask about (the best-scored answer counts) or a text to summarise (the
summaries of the windows are joined).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.folder.description import Description
from dragoman.model.cache import DecoderState
from dragoman.runtimes.load import load
from dragoman.runtimes.runtime import GRAMMAR, Request
from dragoman.tasks.json_output import JsonOutput
from dragoman.tasks.lines import as_lines, growing
from dragoman.tasks.windows import windows
from dragoman.text.prompts import ASK, SUMMARISE, check_template, filled
from dragoman.text.tokenizer import Tokenizer

OPTIONS = SearchOptions()
_AT_ONCE = 256  # lines of a stream
_TASKS = ("text", "translate")  # a converted T5 or BART may be of either


@dataclass(frozen=True)
class Written:
    """What became of one line."""

    text: str
    score: float  # the log-probability divided by the length penalty
    tokens: int = 0  # of the line
    left_out: int = 0  # tokens at its end that the model could not read
    others: tuple[tuple[str, float], ...] = ()  # the next best texts, with their scores


@dataclass(frozen=True)
class Answer:
    """The answer to a question, and where in the context it was found."""

    text: str
    score: float
    window: int  # counted from 1
    windows: int
    passage: str  # what that window read


@dataclass(frozen=True)
class Summary:
    """The summary of a text; of a long one, those of its windows joined."""

    text: str
    parts: tuple[Written, ...]

    @property
    def score(self) -> float:
        """The mean score of the parts."""
        return sum(part.score for part in self.parts) / len(self.parts)


class TextToText:
    """A model that writes a text for a text.

    >>> model = TextToText.load("models/summaries")
    >>> model.summarise(open("report.txt").read()).text
    """

    def __init__(self, runtime: Any, tokenizer: Tokenizer, description: Description) -> None:
        self.runtime = runtime
        self.tokenizer = tokenizer
        self.description = description

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", runtime: str = "auto") -> TextToText:
        """Load the model of a folder. `device` is auto, cpu, cuda or cuda:N; `runtime` is auto,
        torch, int8 or ctranslate2."""
        loaded = load(folder, device, runtime, check=_check)
        return cls(loaded.runtime, loaded.tokenizer, loaded.description)

    def __repr__(self) -> str:
        """Say what the model is and which runtime computes."""
        return f"<TextToText: {self.description.summary()}, runtime {self.runtime.name}>"

    @property
    def limit(self) -> int:
        """How many tokens of a text the model reads."""
        around = len(self.description.frame.source(()))
        return self.description.longest - around

    def write(
        self,
        lines: Iterable[str],
        options: SearchOptions = OPTIONS,
        output: JsonOutput | None = None,
    ) -> list[Written]:
        """Return what the model writes for each line; with `output`, JSON of its schema. An empty
        line stays empty, unless there is a schema."""
        texts = list(as_lines(lines))
        rows = self.tokenizer.encode(texts, "source") if texts else []
        requests = [Request(row[: self.limit]) for row in rows]
        found: list[list[Hypothesis]] = [[] for _ in rows]
        # Lines of like length together, the longest first.
        order = [index for index, row in enumerate(rows) if row or output]
        order.sort(key=lambda index: -len(requests[index].tokens))
        while order:
            width = len(requests[order[0]].tokens) + 1
            count = self.runtime.batch_rows(width, options.hypotheses)
            batch = order[:count]
            order = order[count:]
            results = self._search([requests[index] for index in batch], options, output)
            for index, hypotheses in zip(batch, results, strict=True):
                found[index] = hypotheses
        return [self._written(row, of_row) for row, of_row in zip(rows, found, strict=True)]

    def stream(
        self,
        lines: Iterable[str],
        options: SearchOptions = OPTIONS,
        output: JsonOutput | None = None,
    ) -> Iterator[Written]:
        """Write for any number of lines in constant memory. The first are few, so that they come
        soon."""
        remaining = as_lines(lines)
        for size in growing(_AT_ONCE):
            chunk = list(itertools.islice(remaining, size))
            if not chunk:
                return
            yield from self.write(chunk, options, output)

    def ask(
        self,
        question: str,
        context: str,
        options: SearchOptions = OPTIONS,
        prompt: str = "",
        output: JsonOutput | None = None,
    ) -> Answer:
        """Answer a question about a context of any length; `prompt` stands for the model's own
        template."""
        template = self._template("ask", prompt, ASK)
        if not question.strip():
            raise InputError("the question is empty; ask something")

        def put(passage: str) -> str:
            return filled(template, question=question.strip(), context=passage)

        passages = self._windows(context, put)
        answers = self.write([put(passage) for passage in passages], options, output)
        best = max(range(len(answers)), key=lambda index: answers[index].score)
        return Answer(
            text=answers[best].text,
            score=answers[best].score,
            window=best + 1,
            windows=len(passages),
            passage=passages[best],
        )

    def summarise(
        self,
        text: str,
        options: SearchOptions = OPTIONS,
        prompt: str = "",
        output: JsonOutput | None = None,
    ) -> Summary:
        """Summarise a text of any length; `prompt` stands for the model's own template."""
        template = self._template("summarise", prompt, SUMMARISE)

        def put(passage: str) -> str:
            return filled(template, text=passage)

        passages = self._windows(text, put)
        if output is not None and len(passages) > 1:
            raise InputError(
                f"the text fills {len(passages)} windows of the model, and JSON of a schema cannot "
                "be joined; shorten the text"
            )
        parts = self.write([put(passage) for passage in passages], options, output)
        joined = " ".join(part.text for part in parts if part.text)
        return Summary(joined, tuple(parts))

    def _template(self, name: str, prompt: str, places: tuple[str, ...]) -> str:
        if prompt:
            check_template("--prompt", prompt, places)
            return prompt
        template: str = getattr(self.description.prompts, name)
        if not template:
            wanted = " and ".join(f"{{{place}}}" for place in places)
            raise OptionError(
                f"the model does not say how it is asked to {name}; add --prompt with a text that "
                f"has {wanted}"
            )
        return template

    def _windows(self, text: str, put: Callable[[str], str]) -> list[str]:
        """The parts of a text that the model can read behind its prompt."""
        if not text.strip():
            raise InputError("there is no text to read; the file is empty")
        (around,) = self.tokenizer.encode([put("")], "source")
        (tokens,) = self.tokenizer.encode([text], "source")
        room = max(1, self.limit - len(around))
        characters = room * len(text) // max(1, len(tokens))

        def fits(passage: str) -> bool:
            (row,) = self.tokenizer.encode([put(passage)], "source")
            return len(row) <= self.limit

        return windows(text, fits, characters)

    @torch.inference_mode()
    def _search(
        self, requests: list[Request], options: SearchOptions, output: JsonOutput | None
    ) -> Sequence[list[Hypothesis]]:
        if output is None:
            found: list[list[Hypothesis]] = self.runtime.search(requests, options)
            return found
        if GRAMMAR not in self.runtime.can:
            raise OptionError(
                f"runtime {self.runtime.name} cannot hold an output to a schema; "
                "use --runtime int8 or torch"
            )
        longest = max(len(request.tokens) for request in requests)
        roomy = output.with_room(options, longest, self.description)
        start = self.runtime.start(requests, roomy)
        loop: Loop[DecoderState] = self.runtime.loop(start, roomy, output.guide())
        return loop.run()

    def _written(self, row: Sequence[int], found: Sequence[Hypothesis]) -> Written:
        if not found:
            return Written("", 0.0)
        texts = self.tokenizer.decode([one.tokens for one in found])
        scored = [(text, one.score) for text, one in zip(texts, found, strict=True)]
        best, *others = scored
        return Written(
            text=best[0],
            score=best[1],
            tokens=len(row),
            left_out=max(0, len(row) - self.limit),
            others=tuple(others),
        )


def with_options(beam: int, alpha: float, nbest: int = 1) -> SearchOptions:
    """Return the options of a search with another beam, length penalty or number of texts."""
    return replace(OPTIONS, beam=beam, alpha=alpha, nbest=nbest)


def _check(folder: Path, description: Description) -> None:
    if description.task not in _TASKS or description.model.input != "tokens":
        raise ModelFolderError(
            f"{folder} holds a model for {description.task}; text to text needs one for text, as "
            "`dragoman train --task text` makes it, or a converted T5 or BART"
        )
