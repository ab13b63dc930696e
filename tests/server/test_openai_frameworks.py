"""Frameworks and programs that ask over OpenAI's API, the real packages, against a server that
listens: what they return and which exceptions they raise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
from live_server import live
from patience import LONG

from dragoman.server.app import create_app
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits, add_key

PROMPT = "Translate from English to German."


@dataclass(frozen=True)
class Served:
    """Where a server listens, and a key that it knows."""

    url: str
    key: str


@pytest.fixture
def served(fleet_of: Callable[..., Fleet], tmp_path: Path) -> Iterator[Served]:
    """A server that requires a key and allows 40 characters a day."""
    keys = tmp_path / "keys"
    key = add_key(keys, "anna")
    with live(create_app(fleet_of(), Guard(Limits(per_day=40), keys))) as url:
        yield Served(f"{url}/v1", key)


def test_langchain(served: Served) -> None:
    langchain_openai = pytest.importorskip("langchain_openai")

    def client(key: str) -> Any:
        return langchain_openai.ChatOpenAI(
            model="en-de", base_url=served.url, api_key=key, max_retries=0
        )

    asked = [("system", PROMPT), ("human", "one two")]
    answer = client(served.key).invoke(asked)
    assert answer.content == "eins zwei"
    assert answer.usage_metadata["output_tokens"] >= 2
    assert "".join(chunk.content for chunk in client(served.key).stream("three four")) == (
        "drei vier"
    )
    batch = client(served.key).batch(["five", "six"])
    assert [one.content for one in batch] == ["fünf", "sechs"]
    with pytest.raises(openai.AuthenticationError):
        client("wrong").invoke(asked)
    with pytest.raises(openai.RateLimitError, match="40 characters in a day"):
        client(served.key).invoke("seven " * 6)


def test_pydantic_ai(served: Served) -> None:
    agents = pytest.importorskip("pydantic_ai")
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def agent(key: str) -> Any:
        client = openai.AsyncOpenAI(base_url=served.url, api_key=key, max_retries=0)
        model = OpenAIChatModel("any", provider=OpenAIProvider(openai_client=client))
        return agents.Agent(model, system_prompt=PROMPT)

    answer = agent(served.key).run_sync("one two three")
    assert answer.output == "eins zwei drei"
    with pytest.raises(ModelHTTPError) as stranger:
        agent("wrong").run_sync("one")
    assert stranger.value.status_code == 401
    with pytest.raises(ModelHTTPError) as spent:
        agent(served.key).run_sync("seven " * 6)
    assert spent.value.status_code == 429
    assert isinstance(spent.value.body, dict)
    assert spent.value.body["code"] == "insufficient_quota"


def test_smolagents(served: Served) -> None:
    smolagents = pytest.importorskip("smolagents")

    def ask(key: str, text: str) -> str:
        model = smolagents.OpenAIModel(
            model_id="en-de", api_base=served.url, api_key=key, client_kwargs={"max_retries": 0}
        )
        messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
        return model.generate(messages).content

    assert ask(served.key, "one two three") == "eins zwei drei"
    with pytest.raises(openai.AuthenticationError):
        ask("wrong", "one")


MODELS = """- model_id: german
  model_name: en-de
  api_base: {url}
  api_key_name: own
"""


def test_llm(served: Served, tmp_path: Path) -> None:
    """A program for the command line; models of one's own stand in a file."""
    pytest.importorskip("llm")
    (tmp_path / "extra-openai-models.yaml").write_text(MODELS.format(url=served.url))
    environment = {**os.environ, "LLM_USER_PATH": str(tmp_path)}

    def run(key: str, text: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "llm", "-m", "german", "--key", key, text]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LONG, check=False
        )

    said = run(served.key, "one two")
    assert (said.returncode, said.stdout) == (0, "eins zwei\n"), said.stderr
    refused = run("wrong", "one")
    assert refused.returncode == 1
    assert "401" in refused.stderr
