"""The service on a socket. Knows uvicorn and the files that a process may have open; no route."""

from __future__ import annotations

import contextlib
import socket

import uvicorn
from starlette.types import ASGIApp

from dragoman.server.connections import Bounds, bounded_protocol
from dragoman.server.pauses import short_pauses

_OTHER_FILES = 64  # that a process has open besides its connections


def serve_on(listener: socket.socket, app: ASGIApp, bounds: Bounds) -> None:
    """Serve until a signal ends it."""
    bounds.fit_files(_allowed_files(bounds.limits.connections + _OTHER_FILES) - _OTHER_FILES)
    server = uvicorn.Server(configuration(app, bounds))
    with short_pauses(), contextlib.suppress(KeyboardInterrupt):  # what it has ended by, once more
        server.run(sockets=[listener])


def configuration(app: ASGIApp, bounds: Bounds) -> uvicorn.Config:
    """Return how the server is run: nothing is believed, and everything bounded."""
    limits = bounds.limits
    return uvicorn.Config(
        app,
        http=bounded_protocol(bounds),
        ws="none",
        # Without proxies named, X-Forwarded-For is what a client says of itself.
        proxy_headers=bool(bounds.proxies),
        forwarded_allow_ips=list(bounds.proxies),
        timeout_keep_alive=max(1, int(limits.idle)),
        timeout_graceful_shutdown=int(limits.reading + limits.seconds) + 1,
        log_level="warning",
        access_log=False,
        server_header=False,
    )


def _allowed_files(wanted: int) -> int:
    """Return how many files the process may have open, raised to so many where the system lets
    it."""
    try:
        import resource
    except ImportError:  # not on Windows
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return soft
