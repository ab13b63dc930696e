"""What a Whisper model may say when (Radford et al. 2022, §4.5), and the tokens that steer it.
Knows tokens and numbers; no sound and no text.

Shapes: B sentences, K beams, V vocabulary, T positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.decoding.rules import Rules
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, Problem, S
from dragoman.errors import ModelFolderError
from dragoman.folder.files import read_json


@dataclass(frozen=True)
class Steering:
    """The tokens that steer a model, as generation.json has them in the words of Hugging Face."""

    languages: dict[str, int]  # by their codes; none where the model knows English alone
    tasks: dict[str, int]  # transcribe and translate
    never: list[int]
    never_first: list[int]
    untimed: int  # the token that forbids timestamps, the last before them
    latest: int  # the first timestamp, at most

    @property
    def silence(self) -> int:
        """The token that says that nobody speaks; in all vocabularies the one before `untimed`."""
        return self.untimed - 1


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
        first_time = self._steering.untimed + 1
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
    values = read_json(path)
    languages = values.get("lang_to_id") or {}
    tasks = values.get("task_to_id") or {}
    never = values.get("suppress_tokens") or []
    never_first = values.get("begin_suppress_tokens") or []
    untimed = values.get("no_timestamps_token_id")
    latest = values.get("max_initial_timestamp_index") or vocab_size
    try:
        tokens = [untimed, *never, *never_first, *languages.values(), *tasks.values()]
    except (TypeError, AttributeError):
        tokens = [None]
    if type(latest) is not int or not all(_is_token(token, vocab_size) for token in tokens):
        raise ModelFolderError(
            f"{path} does not name the tokens of a Whisper model; "
            "convert it again with its generation_config.json"
        )
    codes = {name.strip("<|>"): token for name, token in languages.items()}
    assert isinstance(untimed, int)
    return Steering(codes, tasks, never, never_first, untimed, latest)


def _is_token(value: Any, vocab_size: int) -> bool:
    return type(value) is int and 0 <= value < vocab_size
