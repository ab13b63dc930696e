"""Clients of others for Node, the real packages, against a server that listens. `make test` has
installed those of node_clients.json where there is npm; without them the tests skip.

    make .node-clients/ready
    pytest tests/server/test_node_clients.py
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_server import live
from patience import LONG

from dragoman.server.app import create_app
from dragoman.server.fleet import Fleet
from dragoman.server.guard import Guard, Limits, add_key

INSTALLED = Path(__file__).parents[2] / ".node-clients"
SCRIPT = Path(__file__).with_name("node_clients.mjs")
# What a client makes of a wrong key, and of a day's characters that are used up: a name of its own,
# a status, or words in its message.
WRONG_KEY = {
    "libretranslate": None,  # it reads no status, and sends its key under a name of its own
    "libretranslate-ts": {"error": "Error"},
    "translate": {"error": "Error"},
    "deepl-node": {"error": "AuthorizationError"},
    "openai": {"error": "AuthenticationError", "status": 401},
    "@ai-sdk/openai-compatible": {"status": 401},
    "@langchain/openai": {"status": 401},
}
USED_UP = {
    "libretranslate": None,
    "libretranslate-ts": {"error": "Error"},
    "translate": {"error": "Error"},
    "deepl-node": {"error": "QuotaExceededError"},
    "openai": {"error": "RateLimitError", "status": 429},
    "@ai-sdk/openai-compatible": {"status": 429},
    "@langchain/openai": {"status": 429},
}


@pytest.fixture(scope="module")
def packages() -> Path:
    if shutil.which("node") is None:
        pytest.skip("there is no Node here")
    if not (INSTALLED / "ready").exists():
        pytest.skip("make .node-clients/ready has not installed Node's packages")
    return INSTALLED


@pytest.mark.parametrize("name", WRONG_KEY)
def test_a_client_for_node(
    packages: Path, fleet_of: Callable[..., Fleet], tmp_path: Path, name: str
) -> None:
    keys = tmp_path / "keys"
    key = add_key(keys, "anna")
    needs_no_key = name == "libretranslate"
    guard = Guard(Limits(per_day=20), None if needs_no_key else keys)
    with live(create_app(fleet_of(), guard)) as url:

        def ask(*words: str) -> Any:
            return asked(packages, name, url, *words)

        assert ask(key) == {"answer": "eins zwei drei"}
        for given, expected in ((("wrong",), WRONG_KEY), ((key, "four five six"), USED_UP)):
            wanted = expected[name]
            if wanted is not None:
                found = ask(*given)
                assert {field: found.get(field) for field in wanted} == wanted, found


def asked(packages: Path, *words: str) -> Any:
    """Return what the script prints for a client, an address, a key and perhaps a text."""
    said = subprocess.run(
        ["node", "--input-type=module", "-", *words],
        cwd=packages,
        input=SCRIPT.read_text(),
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout.strip().splitlines()[-1])
