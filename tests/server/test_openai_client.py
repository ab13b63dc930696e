"""OpenAI's own client, the real package, against a server that listens: what it returns and which
exceptions it raises. Then which languages a chat names."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from live_server import live
from pydantic import ValidationError
from starlette.testclient import TestClient

from dragoman.errors import InputError
from dragoman.server.app import create_app
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits, add_key
from dragoman.server.openai_prompt import call_arguments, read_prompt
from dragoman.server.openai_schema import ChatBody

Clients = Callable[..., TestClient]
Opened = Callable[..., openai.OpenAI]


@pytest.fixture
def client_for(fleet_of: Callable[..., Fleet], tmp_path: Path) -> Iterator[Opened]:
    """Clients of servers that listen and require a key."""
    with contextlib.ExitStack() as stack:

        def make(*names: str, **limits: Any) -> openai.OpenAI:
            keys = tmp_path / "keys"
            key = add_key(keys, "anna")
            app = create_app(fleet_of(*names), Guard(Limits(**limits), keys))
            url = stack.enter_context(live(app))
            return openai.OpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0)

        yield make


def said(text: str, system: str = "") -> Any:
    messages = [{"role": "user", "content": text}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    return messages


def tools_for_german() -> Any:
    """A function that is to get a translation into German."""
    languages = {"target": {"const": "de"}, "source": {"const": "en"}}
    parameters = {"type": "object", "properties": {"translation": {"type": "string"}, **languages}}
    return [{"type": "function", "function": {"name": "translate", "parameters": parameters}}]


# What it returns


def test_a_chat_is_a_translation(client_for: Opened) -> None:
    client = client_for()
    create = client.chat.completions.create
    answer = create(model="en-de", messages=said("one two three"), temperature=0.3)
    (choice,) = answer.choices
    assert (choice.message.content, choice.message.role, choice.finish_reason) == (
        "eins zwei drei",
        "assistant",
        "stop",
    )
    assert answer.usage is not None
    assert answer.usage.completion_tokens >= 3
    assert answer.usage.prompt_tokens >= 3
    total = answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.total_tokens == total
    for model in ("dragoman:en-de", "auto-de", "dragoman/en-de"):
        found = create(model=model, messages=said("four"))
        assert (found.choices[0].message.content, found.model) == ("vier", model)
    prompted = create(model="any", messages=said("five", "Translate from English to German."))
    assert prompted.choices[0].message.content == "fünf"
    several = create(model="en-de", messages=said("one two"), n=3)
    texts = [choice.message.content for choice in several.choices]
    assert texts[0] == "eins zwei"
    assert len(set(texts)) == 3
    called = create(model="any", messages=said("six"), tools=tools_for_german())
    (call,) = called.choices[0].message.tool_calls or []
    assert called.choices[0].finish_reason == "tool_calls"
    assert call.type == "function"
    arguments = json.loads(call.function.arguments)
    assert arguments == {"translation": "sechs", "source": "en", "target": "de"}


def test_a_stream_comes_sentence_by_sentence(client_for: Opened) -> None:
    client = client_for()
    text = " one two. three four!\nfive\n"
    chunks = list(
        client.chat.completions.create(
            model="en-de",
            messages=said(text),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    whole = client.chat.completions.create(model="en-de", messages=said(text))
    assert "".join(piece or "" for piece in pieces) == whole.choices[0].message.content
    assert len([piece for piece in pieces if piece and piece.strip()]) == 3
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0
    assert len({chunk.id for chunk in chunks}) == 1


def test_models(client_for: Opened) -> None:
    client = client_for("en-de", "de-fr")
    listed = client.models.list().data
    assert [one.id for one in listed] == ["de-fr", "en-de", "en-fr"]
    assert [getattr(one, "via", None) for one in listed] == ["", "", "de"]
    assert client.models.retrieve("en-fr").owned_by == "dragoman"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("fr-en")
    answer = client.chat.completions.create(model="en-fr", messages=said("one"))
    assert getattr(answer, "via", None) == "de"


# What it raises


def test_what_is_wrong_is_the_exception_that_it_has_for_it(client_for: Opened) -> None:
    client = client_for(characters=20, per_day=30)

    def ask(text: str = "one", model: str = "en-de") -> None:
        client.chat.completions.create(model=model, messages=said(text))

    stranger = client.with_options(api_key="wrong")
    with pytest.raises(openai.AuthenticationError) as unknown:
        stranger.chat.completions.create(model="en-de", messages=said("one"))
    assert unknown.value.code == "invalid_api_key"
    with pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    with pytest.raises(openai.BadRequestError, match="no model here translates"):
        ask(model="en-fr")
    with pytest.raises(openai.BadRequestError, match="name a model such as en-de"):
        ask(model="gpt-4o")
    with pytest.raises(openai.UnprocessableEntityError, match="messages"):
        client.chat.completions.create(model="en-de", messages=[])
    with pytest.raises(openai.APIStatusError) as large:
        ask("x" * 21)
    assert large.value.status_code == 413
    ask("one two three four")
    with pytest.raises(openai.RateLimitError) as spent:
        ask("one two three")
    assert spent.value.code == "insufficient_quota"


def test_asking_too_often(client_for: Opened) -> None:
    client = client_for(per_minute=1)
    client.models.list()
    with pytest.raises(openai.RateLimitError) as caught:
        client.models.list()
    assert caught.value.code == "rate_limit_exceeded"
    assert int(caught.value.response.headers["retry-after"]) <= 60


def test_an_error_in_a_stream_is_one(client_for: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.server.engine import BusyError
    from dragoman.server.language_pair import LanguagePair

    async def busy(*anything: Any) -> Any:
        raise BusyError("the queue is full; try again later")

    monkeypatch.setattr(LanguagePair, "translate", busy)
    stream = client_for().chat.completions.create(model="en-de", messages=said("one"), stream=True)
    with pytest.raises(openai.APIError, match="the queue is full"):
        list(stream)


# Which languages a chat names


@pytest.mark.parametrize(
    ("model", "system", "user", "expected"),
    [
        ("en-de", "Translate into French.", "one", ("one", "en", "de")),
        ("auto-pt-br", "", "one", ("one", "auto", "pt-br")),
        ("x", "You translate English to German subtitles.", "one", ("one", "en", "de")),
        ("x", "Translate from Twi into English", "one", ("one", "tw", "en")),
        ("x", "Answer in JSON. Translate to german!", "one", ("one", "auto", "de")),
        ("x", "English -> French", "one", ("one", "en", "fr")),
        ("x", "", "Translate this to German:\n\none\ntwo", ("one\ntwo", "auto", "de")),
        ("x", "", "Translate from English to German: one", ("one", "en", "de")),
        ("x", "", 'Translate the text below into german.\nText: "one"', ("one", "auto", "de")),
    ],
)
def test_which_text_and_languages(
    model: str, system: str, user: str, expected: tuple[str, str, str]
) -> None:
    body = ChatBody.model_validate({"model": model, "messages": said(user, system)})
    prompt = read_prompt(body)
    assert (prompt.text, prompt.source, prompt.target) == expected


@pytest.mark.parametrize("user", ["one", "Please go to Berlin.", "Translate", "Translate: one"])
def test_a_chat_without_languages_is_refused(user: str) -> None:
    body = ChatBody.model_validate({"model": "gpt-4o", "messages": said(user)})
    with pytest.raises(InputError, match="into which language"):
        read_prompt(body)


def test_the_last_message_of_the_user_counts() -> None:
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "eins"},
        {"role": "user", "content": [{"type": "text", "text": "two"}]},
    ]
    body = ChatBody.model_validate({"model": "en-de", "messages": messages})
    assert read_prompt(body).text == "two"
    image = [{"type": "image_url", "image_url": {"url": "data:"}}]
    with pytest.raises(ValidationError, match="no text"):
        ChatBody.model_validate({"model": "en-de", "messages": said(image)})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="none of the user"):
        read_prompt(ChatBody.model_validate({"model": "en-de", "messages": messages[1:2]}))


def test_a_function_with_other_names_gets_the_translation() -> None:
    tools = tools_for_german()
    tools[0]["function"]["parameters"]["properties"] = {
        "output": {},
        "target": {"enum": ["German"]},
    }
    body = ChatBody.model_validate({"model": "x", "messages": said("one"), "tools": tools})
    prompt = read_prompt(body)
    assert call_arguments(prompt, "eins") == {"target": "de", "output": "eins"}


def test_a_stream_has_one_translation(client_of: Clients) -> None:
    body = {"model": "en-de", "messages": said("one"), "stream": True, "n": 2}
    answer = client_of().post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
