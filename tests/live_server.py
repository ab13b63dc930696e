"""A server in a thread of the test, for what needs a real connection."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn
from patience import LONG, wait_for


@contextlib.contextmanager
def live(app: Any) -> Iterator[str]:
    """A server in a thread; where it can be reached."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(LONG)
        assert not thread.is_alive()
