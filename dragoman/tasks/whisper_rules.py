"""What a Whisper model may say when (Radford et al. 2022, §4.5), and the tokens that steer it.
Knows tokens and numbers; no sound and no text.

Shapes: B sentences, K beams, V vocabulary, T positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.decoding.rules import Rules
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Problem, S
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.files import read_json

TASKS = ("transcribe", "translate")
KEEPS_TIME = "timestamps"  # false in the generation.json of a model that was trained here


@dataclass(frozen=True)
class Steering:
    """The tokens that steer a model, as generation.json has them in the words of Hugging Face."""

    languages: dict[str, int]  # by their codes; none where the model knows English alone
    tasks: dict[str, int]  # transcribe and translate
    never: list[int]
    never_first: list[int]
    # The token that forbids timestamps, the last before them; None: the model has none.
    untimed: int | None
    latest: int  # the first timestamp, at most

    @property
    def silence(self) -> int | None:
        """The token that says that nobody speaks; in all vocabularies the one before `untimed`.
        None: the model has none."""
        return None if self.untimed is None else self.untimed - 1

    @property
    def tokens(self) -> frozenset[int]:
        """What may stand in a head."""
        untimed = () if self.untimed is None else (self.untimed,)
        return frozenset((*self.languages.values(), *self.tasks.values(), *untimed))

    def head(self, language: str | None, translate: bool, timestamps: bool) -> list[int]:
        """The tokens that an output begins with, behind the start: language, task, and whether
        there are no timestamps, of which a model has as many as it knows."""
        task = TASKS[translate]
        tokens = []
        if language in self.languages:
            tokens.append(self.languages[language])
        if task in self.tasks:
            tokens.append(self.tasks[task])
        if not timestamps and self.untimed is not None:
            tokens.append(self.untimed)
        return tokens

    def check(self, language: str | None, translate: bool, own: str) -> None:
        """Refuse a language or a task that the model does not know; where it has no tokens of
        languages, it knows `own` alone."""
        task = TASKS[translate]
        knows_language = language in (self.languages or (None, own))
        if knows_language and (not translate or task in self.tasks):
            return
        known = ", ".join(sorted(self.languages)) or f"{own} alone"
        known += "" if "translate" in self.tasks else ", and does not translate"
        raise OptionError(
            f"the language is '{language}' and the task {task}; the model knows {known}"
        )


class WhisperRules(Rules):
    """Forbids some tokens; and where the model keeps time, anything but a timestamp first, single
    timestamps between segments, and timestamps that go back."""

    def __init__(
        self,
        problem: Problem[S],
        options: SearchOptions,
        steering: Steering,
        timed: bool,
    ) -> None:
        super().__init__(problem, options)
        self._steering = steering
        self._timed = timed
        self._first_time = -1 if steering.untimed is None else steering.untimed + 1

    def apply(self, log_probs: Tensor, length: int) -> None:
        """Forbid tokens in log_probs (B, K, V), those of the token after `length` others."""
        super().apply(log_probs, length)
        log_probs[..., self._steering.never] = NEVER
        if length == 0:
            log_probs[..., self._steering.never_first] = NEVER
        if self._timed:
            self._keep_time(log_probs)
        # The probabilities of what is left sum to 1, as in the reference implementation.
        log_probs.sub_(log_probs.logsumexp(-1, keepdim=True))

    def follow(self, tokens: Tensor, beams: Tensor) -> None:
        """Remember all tokens that were chosen."""
        self.remember(tokens, beams)

    def _keep_time(self, log_probs: Tensor) -> None:
        first_time = self._first_time
        # Views: what is set in them is set in log_probs.
        text = log_probs[..., :first_time]
        times = log_probs[..., first_time:]
        text[..., -1] = NEVER
        ticks = self._said - first_time  # (B, K, T), below 0 where there was text
        if not ticks.size(2):
            text.fill_(NEVER)
            times[..., self._steering.latest + 1 :] = NEVER
            return
        last = ticks[..., -1:] >= 0
        opened = last
        if ticks.size(2) > 1:
            opened = last & (ticks[..., -2:-1] >= 0)
        closing = last & ~opened
        times.masked_fill_(opened, NEVER)
        text[..., : self._end].masked_fill_(closing, NEVER)
        earliest = ticks.amax(2, keepdim=True) + ~closing
        numbers = torch.arange(times.size(-1), device=times.device)
        times.masked_fill_(numbers < earliest, NEVER)
        # Where timestamps together are likelier than any word, it is time for one.
        likelier = times.logsumexp(-1, keepdim=True) > text.amax(-1, keepdim=True)
        text.masked_fill_(likelier, NEVER)


def read_steering(path: Path, vocab_size: int) -> Steering:
    """Read generation.json and check that its tokens are the model's."""
    return as_steering(read_json(path), path, vocab_size)


def as_steering(values: Mapping[str, Any], path: Path, vocab_size: int) -> Steering:
    """Return what generation.json says; `path` is its place, for messages."""
    languages = values.get("lang_to_id") or {}
    tasks = values.get("task_to_id") or {}
    never = values.get("suppress_tokens") or []
    never_first = values.get("begin_suppress_tokens") or []
    untimed = values.get("no_timestamps_token_id")
    keeps_time = values.get(KEEPS_TIME) is not False
    latest = values.get("max_initial_timestamp_index") or vocab_size
    try:
        tokens = [*never, *never_first, *languages.values(), *tasks.values()]
        if keeps_time:
            tokens.append(untimed)
    except (TypeError, AttributeError):
        tokens = [None]
    if type(latest) is not int or not all(_is_token(token, vocab_size) for token in tokens):
        raise ModelFolderError(
            f"{path} does not name the tokens of a Whisper model; "
            "convert it again with its generation_config.json"
        )
    codes = {name.strip("<|>"): token for name, token in languages.items()}
    return Steering(codes, tasks, never, never_first, untimed if keeps_time else None, latest)


def _is_token(value: Any, vocab_size: int) -> bool:
    return type(value) is int and 0 <= value < vocab_size
