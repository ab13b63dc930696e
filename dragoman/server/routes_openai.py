"""OpenAI's API of chats, so that its clients can translate. Knows HTTP, JSON and server-sent
events; what a chat asks for is known to openai_prompt, how a text is translated to the pair."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError, InputError
from dragoman.server.admission import admit, admit_client, fleet_of
from dragoman.server.described import OF_READING, answers
from dragoman.server.dialects import dialect_of
from dragoman.server.gathering import AT_ONCE
from dragoman.server.language_pair import LanguagePair
from dragoman.server.openai_prompt import (
    TRANSLATE,
    Prompt,
    call_arguments,
    read_prompt,
    with_source,
)
from dragoman.server.openai_schema import ChatBody
from dragoman.server.refusals import refusal_of
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translation import Translation
from dragoman.text.sentences import split

router = APIRouter(tags=["OpenAI"])

_PATH = "/v1/chat/completions"
_MODEL = {"id": "en-de", "object": "model", "created": 0, "owned_by": "dragoman", "via": ""}
_COMPLETION = {
    "id": "chatcmpl-5c0f",
    "object": "chat.completion",
    "created": 1_767_225_600,
    "model": "en-de",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Guten Morgen."},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7},
    "via": "",
}


@router.post(_PATH, response_model=None, responses=answers(_PATH, _COMPLETION))
async def complete(request: Request, body: ChatBody) -> dict[str, Any] | StreamingResponse:
    """OpenAI: translate the user's last message.

    The languages are in the name of the model (`en-de`), in a function named `translate`, in a
    system message ("Translate from English to German") or in the first line of the message. With
    `stream`, each sentence is sent once it is done. Options of sampling are accepted, and the best
    translation is returned; `n` asks for further ones. `via` names a third language between.
    """
    prompt = read_prompt(body)
    pair = (await admit(request, prompt, prompt.text)).pair
    answer = _Answer(body, with_source(prompt, pair.source), pair)
    if not body.stream:
        return await answer.whole()
    if body.n > 1:
        raise InputError("a stream has one translation; omit n")
    return StreamingResponse(answer.events(), media_type="text/event-stream")


@router.get("/v1/models", responses=answers("/v1/models", {"data": [_MODEL]}, OF_READING))
async def models(request: Request) -> dict[str, Any]:
    """OpenAI: the pairs of languages that can be asked for, each by the name of a model."""
    admit_client(request)
    return {"object": "list", "data": _models(request)}


@router.get("/v1/models/{name}", responses=answers("/v1/models/{name}", _MODEL, (*OF_READING, 404)))
async def model(request: Request, name: str) -> dict[str, Any]:
    """OpenAI: one pair of languages."""
    admit_client(request)
    found = [one for one in _models(request) if one["id"] == name]
    if not found:
        raise HTTPException(404, f"there is no model {name[:100]}; /v1/models lists them")
    return found[0]


def _models(request: Request) -> list[dict[str, Any]]:
    fleet = fleet_of(request)
    rows = []
    for one in fleet.languages():
        source = one["code"]
        for target in one["targets"]:
            via = fleet.pair(source, target).via
            rows.append(_MODEL | {"id": f"{source}-{target}", "via": via})
    return rows


class _Answer:
    """The answer to one chat."""

    def __init__(self, body: ChatBody, prompt: Prompt, pair: LanguagePair) -> None:
        self._body = body
        self._prompt = prompt
        self._pair = pair
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": body.model,
            "via": pair.via,
        }

    async def whole(self) -> dict[str, Any]:
        """Return the translations of the whole text."""
        count = self._body.n
        options = SearchOptions(beam=max(SearchOptions.beam, count), nbest=count)
        best = await self._pair.translate(self._prompt.text, TranslateRequest(options))
        found = [best, *best.alternatives]
        choices = [self._choice(number, one.text) for number, one in enumerate(found)]
        usage = self._usage(sum(len(one.tokens) for one in found))
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": usage}

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the translation, sentence by sentence and in order, as server-sent events."""
        tokens = 0
        try:
            yield self._event(self._delta({"role": "assistant", "content": ""}))
            async for text, translation in self._sentences():
                tokens += len(translation.tokens)
                yield self._event(self._delta({"content": text}))
            yield self._event(self._delta({}, "stop"))
            options = self._body.stream_options
            if options is not None and options.include_usage:
                yield self._event({"choices": [], "usage": self._usage(tokens)})
            yield b"data: [DONE]\n\n"
        except DragomanError as error:
            _, refused = dialect_of(_PATH).refusal(*refusal_of(error))
            yield b"data: " + to_json(refused) + b"\n\n"

    async def _sentences(self) -> AsyncIterator[tuple[str, Translation]]:
        text = self._prompt.text
        body = text.strip()
        before, _, after = text.partition(body) if body else (text, "", "")
        pieces = list(split(body, self._pair.source)) if body else []
        if before:
            yield before, Translation(before)
        for start in range(0, len(pieces), AT_ONCE):
            part = pieces[start : start + AT_ONCE]
            tasks = [asyncio.ensure_future(self._translate(sentence)) for sentence, _ in part]
            try:
                for task, (_, space) in zip(tasks, part, strict=True):
                    translation = await task
                    yield translation.text + space, translation
            finally:
                for task in tasks:
                    task.cancel()
        if after:
            yield after, Translation(after)

    async def _translate(self, sentence: str) -> Translation:
        return await self._pair.translate(sentence, TranslateRequest())

    def _choice(self, number: int, text: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        reason = "stop"
        if self._prompt.function is not None:
            message |= {"content": None, "tool_calls": [self._call(text)]}
            reason = "tool_calls"
        return {"index": number, "message": message, "logprobs": None, "finish_reason": reason}

    def _call(self, text: str) -> dict[str, Any]:
        arguments = to_json(call_arguments(self._prompt, text)).decode()
        function = {"name": TRANSLATE, "arguments": arguments}
        return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}

    def _usage(self, completion: int) -> dict[str, int]:
        """Return the tokens of the source by the first model's tokeniser, and of what it wrote."""
        prompt = 0
        if self._pair.engines:
            tokenizer = self._pair.engines[0].translator.tokenizer
            (ids,) = tokenizer.encode([self._prompt.text], "source")
            prompt = len(ids)
        total = prompt + completion
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": total,
        }

    def _delta(self, delta: dict[str, str], reason: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    def _event(self, values: dict[str, Any]) -> bytes:
        whole = {**self._head, "object": "chat.completion.chunk", **values}
        return b"data: " + to_json(whole) + b"\n\n"
