"""Writes on from a text with a decoder alone. Knows text, tokens, the search and the model; no
files but the model folder.

A model sees so many tokens and no more. Where text is drawn or taken greedily, the older half of a
full window is forgotten, and the rest is read anew; a search with beams has to fit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from dragoman.decoding.choosers import Drawn
from dragoman.decoding.rules import Rules
from dragoman.decoding.search import search
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem, Step
from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.folder.description import Description, load_description
from dragoman.folder.weights import load_model
from dragoman.kernels.decoding_twins import accelerate_decoding
from dragoman.kernels.joint_projection import join_projections
from dragoman.model.cache import DecoderState
from dragoman.model.transformer import Transformer
from dragoman.runtimes import eight_bits
from dragoman.runtimes.captured import captured
from dragoman.runtimes.device import computes_bfloat16, pick_device
from dragoman.text.foreign import Foreign
from dragoman.text.tokenizer import Tokenizer

GREEDY = SearchOptions(beam=1)
MOST = 200
_ROUND = 256  # a graph's room is a multiple of it, so that few are captured
Begun = tuple[Step[DecoderState], DecoderState]


class Writer:
    """A language model that is loaded and ready, its weights as they are or in 8 bits."""

    def __init__(
        self, model: Transformer, tokenizer: Tokenizer, description: Description, exact: bool = True
    ) -> None:
        self.model, self.tokenizer, self.description = model, tokenizer, description
        self._like = model.decoder.embeddings.tokens.weight[:1]  # the type and the place of numbers
        accelerate_decoding(model, self._like.device)
        if exact:
            join_projections(model)
        self._project = model.logits if exact else eight_bits.shrink(model)
        self._graphs: dict[tuple[int, int], Begun] = {}  # of the last shape

    @classmethod
    def load(cls, folder: Path | str, device: str = "auto", exact: bool = False) -> Writer:
        """In bfloat16 on a GPU that has it; on a CPU with weights in 8 bits, twice as fast,
        unless they are to be `exact`."""
        description, tokenizer = load_description(Path(folder))
        if description.task != "lm" or not description.model.decoder_layers:
            raise ModelFolderError(
                f"{folder} holds a model for the task {description.task}; writing on needs a decoder for lm"
            )
        place = pick_device(device)
        model = load_model(Path(folder), description.model, place)
        if place.type == "cuda" and computes_bfloat16(place):
            model = model.to(torch.bfloat16)
        return cls(
            model,
            tokenizer,
            description,
            exact or place.type == "cuda" or not eight_bits.available(),
        )

    def write(self, prompt: str, options: SearchOptions = GREEDY, most: int = MOST) -> str:
        """What follows the prompt, which is not repeated, in at most so many tokens."""
        return "".join(self.stream(prompt, options, most))

    def stream(
        self, prompt: str, options: SearchOptions = GREEDY, most: int = MOST
    ) -> Iterator[str]:
        """The same in parts, as they are written, where nothing is searched for; a part ends
        where a character does."""
        if options.hypotheses > 1:
            yield self.alternatives(prompt, options, most)[0][0]
            return
        said = self.encoded(prompt)
        text = self.tokenizer.decode([said])[0]
        shown = len(text)
        for token in self.tokens(tuple(said), options, most):
            said.append(token)
            text = self.tokenizer.decode([said])[0]
            if (settled := _settled(text)) > shown:
                yield text[shown:settled]
                shown = settled
        if text[shown:]:
            yield text[shown:]

    @torch.inference_mode()
    def alternatives(
        self, prompt: str, options: SearchOptions, most: int = MOST
    ) -> list[tuple[str, float | None]]:
        """The n best of what may follow, best first, each with its score, which only a search has."""
        if options.hypotheses == 1:
            return [(self.write(prompt, options, most), None)]
        head, longest, room = (
            self.encoded(prompt),
            self.description.longest,
            self._room(options, most),
        )
        if len(head) + most > longest + 1:
            sizes = f"the prompt has {len(head):,} tokens and {most:,} more are asked for, but the model sees {longest:,}"
            raise InputError(
                f"{sizes}; ask for fewer, or for one text without a beam, which has no such limit"
            )
        step, state = self._begun(head, options.hypotheses, len(head) + most)
        problem = Problem(step, state, room, head[-1], self.description.frame.end)
        found = search(problem, options)[0]
        before, *texts = self.tokenizer.decode([head, *([*head, *one.tokens] for one in found)])
        return [
            (text[len(before) :], round(one.score, 6))
            for text, one in zip(texts, found, strict=True)
        ]

    @torch.inference_mode()
    def tokens(
        self, prompt: Sequence[int], options: SearchOptions = GREEDY, most: int = MOST
    ) -> Iterator[int]:
        """One continuation of the tokens, as it is drawn or, without `sample`, found greedily;
        the end is left out."""
        place, longest, said = (
            self._room(options, most).device,
            self.description.longest,
            list(prompt),
        )
        problem = Problem(
            self._step,
            self.model.start(None),
            self._room(options, most),
            0,
            self.description.frame.end,
        )
        rules = Rules(problem, options)
        drawn, live = (
            Drawn(options, place) if options.sample else None,
            torch.zeros(1, 1, device=place),
        )
        own, newest = (
            torch.zeros(1, 1, dtype=torch.long, device=place),
            torch.tensor([said[-1:]], device=place),
        )
        step, state = self._begun(
            said if len(said) <= longest else said[-(longest // 2) :], 1, len(said) + most
        )
        for count in range(most):
            if state.length == longest:
                step, state = self._begun(said[-(longest // 2) :], 1, len(prompt) + most)
            logits = step(newest, state).float()
            rules.apply(logits, count)
            newest = (
                logits.argmax(-1)
                if drawn is None
                else drawn.choose(live, logits.log_softmax(-1), count).tokens
            )
            rules.follow(newest, own)
            said.append(int(newest))
            if said[-1] == self.description.frame.end:
                return
            yield said[-1]

    def encoded(self, prompt: str) -> list[int]:
        """Behind what stands before every text; at least one token."""
        frame = self.description.frame
        lead = frame.source_start if isinstance(self.tokenizer, Foreign) else (frame.start,)
        return [*lead, *self.tokenizer.encode([prompt], "target")[0]] or [frame.start]

    def _room(self, options: SearchOptions, most: int) -> Tensor:
        if most < options.min_length:
            raise OptionError(
                f"at most {most} tokens are asked for, but at least {options.min_length}; ask for more"
            )
        return torch.tensor([most], device=self._like.device)

    def _begun(self, tokens: Sequence[int], beams: int, room: int) -> Begun:
        """All tokens but the last have been read, in one pass; the last is the first that the
        step takes."""
        step, state = (
            self._captured(beams, min(room, self.description.longest))
            if self._like.is_cuda
            else (self._step, self.model.start(None))
        )
        if len(tokens) > 1:
            self.model.decoder.read(
                torch.tensor([tokens[:-1]], device=self._like.device), state, beams
            )
        else:
            state.begin(0, beams, self._like)
        return step, state

    def _step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        logits: Tensor = self._project(self.model.decoder.step(tokens, state))
        return logits

    def _captured(self, beams: int, room: int) -> Begun:
        """A step that is one graph, and its state, which stays in its place."""
        room = -(-room // _ROUND) * _ROUND
        if (beams, room) not in self._graphs:
            self._graphs.clear()
            state, newest = (
                self.model.start(None),
                torch.zeros(1, beams, dtype=torch.long, device=self._like.device),
            )
            state.fix(
                room,
                self._like.new_empty(
                    2, 1, self.model.config.n_heads, beams, self.model.config.size
                ),
            )
            logits: list[Tensor] = []
            graph = captured(lambda: logits.append(self._step(newest, state)))

            def step(tokens: Tensor, state: DecoderState) -> Tensor:
                newest.copy_(tokens)
                graph.replay()
                state.length += 1
                return logits[-1]

            self._graphs[beams, room] = step, state
        return self._graphs[beams, room]


def _settled(text: str) -> int:
    """How much of a growing text stays as it is: its last character may still lack bytes, or
    marks that stand on it."""
    end = len(text.rstrip("\N{REPLACEMENT CHARACTER}")) - 1
    while end > 0 and unicodedata.combining(text[end]):
        end -= 1
    return max(end, 0)
