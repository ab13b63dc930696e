"""Writes on from a text with a language model. Knows text and tokens; what computes is a runtime's
business.

A model sees a limited number of tokens. Where text is drawn or taken greedily, the older half of a
full window is forgotten, and the rest is read again; a search with beams has to fit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from dragoman.decoding.search import Loop
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.folder.description import Description
from dragoman.model.cache import DecoderState
from dragoman.runtimes.beginning import Beginning
from dragoman.runtimes.load import Loaded, load
from dragoman.runtimes.torch_runtime import TorchRuntime
from dragoman.text.foreign import Foreign

GREEDY = SearchOptions(beam=1)
MOST = 200


class Writer:
    """A language model that is loaded and ready.

    >>> Writer.load("models/lm").write("Once upon a time")
    """

    def __init__(self, loaded: Loaded) -> None:
        self.runtime: TorchRuntime = loaded.runtime
        self.tokenizer = loaded.tokenizer
        self.description = loaded.description

    @classmethod
    def load(cls, folder: Path | str, device: str = "auto", exact: bool = False) -> Writer:
        """Load a model folder: in bfloat16 on a GPU that has it; on a CPU with weights in 8 bits,
        which is twice as fast, unless they are to be `exact`."""
        return cls(load(folder, device, "torch" if exact else "auto", check=_check))

    def __repr__(self) -> str:
        """Say what the model is and which runtime computes."""
        return f"<Writer: {self.description.summary()}, runtime {self.runtime.name}>"

    def write(self, prompt: str, options: SearchOptions = GREEDY, most: int = MOST) -> str:
        """Return what follows the prompt, which is not repeated, in at most `most` tokens."""
        return "".join(self.stream(prompt, options, most))

    def stream(
        self, prompt: str, options: SearchOptions = GREEDY, most: int = MOST
    ) -> Iterator[str]:
        """Yield what follows the prompt in parts, as they are written; all at once where there are
        several hypotheses. A part ends where a character does."""
        if options.hypotheses > 1:
            yield self.alternatives(prompt, options, most)[0][0]
            return
        said = self.encoded(prompt)
        text = self.tokenizer.decode([said])[0]
        shown = len(text)
        for token in self.tokens(tuple(said), options, most):
            said.append(token)
            text = self.tokenizer.decode([said])[0]
            settled = _settled(text)
            if settled > shown:
                yield text[shown:settled]
                shown = settled
        if text[shown:]:
            yield text[shown:]

    @torch.inference_mode()
    def alternatives(
        self, prompt: str, options: SearchOptions, most: int = MOST
    ) -> list[tuple[str, float | None]]:
        """Return the n best continuations, best first, each with its score, which only a search
        has."""
        if options.hypotheses == 1:
            return [(self.write(prompt, options, most), None)]
        head = self.encoded(prompt)
        longest = self.description.longest
        if len(head) + most > longest + 1:
            raise InputError(
                f"the prompt has {len(head):,} tokens and {most:,} more are asked for, "
                f"but the model sees {longest:,}; ask for fewer, "
                "or for one text without a beam, which has no such limit"
            )
        best = self._loop(head, options, most).run()[0]
        before, *texts = self.tokenizer.decode([head, *([*head, *one.tokens] for one in best)])
        scores = [round(one.score, 6) for one in best]
        return [(text[len(before) :], score) for text, score in zip(texts, scores, strict=True)]

    @torch.inference_mode()
    def tokens(
        self, prompt: Sequence[int], options: SearchOptions = GREEDY, most: int = MOST
    ) -> Iterator[int]:
        """Yield one continuation of the tokens, as it is drawn or, without `sample`, found
        greedily; the end is left out."""
        longest = self.description.longest
        half = longest // 2
        said = list(prompt)
        head = said if len(said) <= longest else said[-half:]
        loop = self._loop(head, options, most)
        read = len(head) - 1  # tokens that the model sees now
        while not loop.done:
            for newest in loop.stream(longest - read):
                token = int(newest)
                if token == self.description.frame.end:
                    return
                said.append(token)
                yield token
            if not loop.done:
                self.runtime.reread(loop, said[-half:])
                read = half - 1

    def encoded(self, prompt: str) -> list[int]:
        """Return the prompt's tokens behind those that stand before every text; at least one."""
        frame = self.description.frame
        lead = frame.source_start if isinstance(self.tokenizer, Foreign) else (frame.start,)
        return [*lead, *self.tokenizer.encode([prompt], "target")[0]] or [frame.start]

    def _loop(self, head: Sequence[int], options: SearchOptions, most: int) -> Loop[DecoderState]:
        if most < options.min_length:
            raise OptionError(
                f"at most {most} tokens are asked for, but at least {options.min_length}; "
                "ask for more"
            )
        max_lengths = torch.tensor([most], device=self.runtime.device)
        start = Beginning(None, None, tuple(head), max_lengths, self.description.frame.end)
        return self.runtime.loop(start, options)


def _check(folder: Path, description: Description) -> None:
    if description.task != "lm" or not description.model.decoder_layers:
        raise ModelFolderError(
            f"{folder} holds a model for the task {description.task}; "
            "writing on needs a decoder for lm"
        )


def _settled(text: str) -> int:
    """How much of a growing text stays as it is: its last character may still lack bytes, or
    marks that stand on it."""
    end = len(text.rstrip("\N{REPLACEMENT CHARACTER}")) - 1
    while end > 0 and unicodedata.combining(text[end]):
        end -= 1
    return max(end, 0)
