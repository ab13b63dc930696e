"""Bounds on connections: how many there are, how long one may be silent, how large a head it may
send. Knows uvicorn's protocol and bytes; no route.

uvicorn bounds none of these, and what it does bound (`limit_concurrency`) it looks at only when
the head of a request is there.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from dragoman.errors import OptionError
from dragoman.server.guard import Limits

_SLICE = 16_384  # bytes that are parsed before they are counted
_DRAINING = 5.0  # seconds in which what was refused is read to its end, so that the answer arrives
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Bounds:
    """The connections that are open, counted by address. Those of a proxy are of many clients."""

    def __init__(self, limits: Limits, proxies: Sequence[str] = ()) -> None:
        self.limits = limits
        self.proxies = tuple(proxies)
        self._networks = [read_network(proxy) for proxy in proxies]
        self._most = limits.connections
        self._open: Counter[str] = Counter()

    def fit_files(self, most: int) -> None:
        """Allow no more connections than the process may have files open."""
        self._most = max(1, min(self._most, most))

    def enter(self, address: str) -> bool:
        """Count a connection; return whether there was room for it."""
        self._open[address] += 1
        if self._open.total() > self._most:
            return False
        return self._open[address] <= self.limits.client_connections or self._is_proxy(address)

    def leave(self, address: str) -> None:
        """Count a connection no longer."""
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]

    def _is_proxy(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._networks)


def read_network(text: str) -> Network:
    """Return the addresses of a proxy: one such as 10.0.0.5, or a network such as 10.0.0.0/24."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise OptionError(
            f"the proxy is '{text}'; name an address such as 10.0.0.5, or a network such as "
            "10.0.0.0/24"
        ) from None


def bounded_protocol(bounds: Bounds) -> type[Connection]:
    """Return the protocol of a server whose connections share these bounds."""
    return type("BoundedConnection", (Connection,), {"bounds": bounds})


class Connection(HttpToolsProtocol):
    """A connection that is closed when it does not keep to the bounds."""

    bounds: ClassVar[Bounds]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and wait for a first request."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._unread = 0  # bytes since the parser last gave a head or a part of a body
        self._in_head = True
        if not self.bounds.enter(self._address):
            self._refuse(503, "too many connections; try again later")
            return
        self._expect(self.bounds.limits.idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection no longer."""
        self._expect(None)
        self._unset(self._stalled)
        self.bounds.leave(self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, a little at a time."""
        for start in range(0, len(data), _SLICE):
            if self.transport.is_closing():
                return
            if self._in_head and self._deadline is None:
                self._expect(self.bounds.limits.idle)
            part = data[start : start + _SLICE]
            self._unread += len(part)
            super().data_received(part)
            if self._unread > self.bounds.limits.head and not self.transport.is_closing():
                self._refuse(
                    431, f"the headers have over {self.bounds.limits.head:,} bytes; send fewer"
                )

    def on_headers_complete(self) -> None:
        """The gate measures the time from here on."""
        self._in_head = False
        self._unread = 0
        self._expect(None)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count anew: what the body may have is known to the gate."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the next request; uvicorn ends a connection that sends none."""
        self._in_head = True
        self._unread = 0
        self._expect(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Read what was refused to its end, but not for long."""
        super().on_response_complete()
        if not self._in_head and self.cycle.response_complete:
            self._expect(_DRAINING)
        if self.transport.get_write_buffer_size() > 0:
            self._expect_reader()

    def pause_writing(self) -> None:
        """The client does not read its answer."""
        super().pause_writing()
        self._expect_reader()

    def resume_writing(self) -> None:
        """The client has read."""
        self._unset(self._stalled)
        self._stalled = None
        super().resume_writing()

    def _expect(self, seconds: float | None) -> None:
        """End the connection in so many seconds, unless something else is expected by then."""
        self._unset(self._deadline)
        self._deadline = None
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, self._end_silent)

    def _expect_reader(self) -> None:
        """End the connection unless the client reads; it may take as long as for sending."""
        self._unset(self._stalled)
        seconds = self.bounds.limits.reading
        self._stalled = self.loop.call_later(seconds, self._end_stalled)

    def _end_silent(self) -> None:
        if self._in_head and self._unread:
            self._refuse(
                408, f"no request within {self.bounds.limits.idle:g} seconds; send it faster"
            )
            return
        self.transport.close()

    def _end_stalled(self) -> None:
        if self.transport.get_write_buffer_size() > 0:
            self.transport.abort()

    def _refuse(self, status: int, message: str) -> None:
        """Answer without asking the app, and close."""
        body = f'{{"error": "{message}"}}'.encode()
        head = [
            STATUS_LINE[status],
            b"content-type: application/json\r\n",
            b"retry-after: 1\r\n",
            b"connection: close\r\n",
            f"content-length: {len(body)}\r\n\r\n".encode(),
        ]
        self._expect(None)
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(b"".join(head) + body)
        self.transport.close()
        if self.transport.get_write_buffer_size() > 0:
            self.loop.call_later(_DRAINING, self.transport.abort)

    @staticmethod
    def _unset(timer: Any) -> None:
        if timer is not None:
            timer.cancel()
