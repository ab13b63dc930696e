"""Which names the service answers to, and which pages may change something. Knows the headers Host
and Origin; no route.

A web page can let its own name point to this machine (DNS rebinding), and the browser then takes
the service for a part of that page's site. The request says so in its Host header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

from starlette.datastructures import Headers
from starlette.types import Scope

from dragoman.errors import OptionError


class Hosts:
    """The names of this machine and of the address that it listens at, and what the operator
    names."""

    def __init__(self, named: Iterable[str] = ()) -> None:
        self._named = {_plain_name(name) for name in named}
        if "" in self._named:
            raise OptionError("a host has no name; name one such as translate.example.org")

    def serve(self, scope: Scope) -> bool:
        """Return whether a request is meant for this service. One without Host comes from no
        browser."""
        given = Headers(scope=scope).getlist("host")
        if not given:
            return True
        name = _plain_name(given[0])
        if len(given) > 1:
            return False
        listening = scope.get("server") or ("", 0)
        if name in self._named or name == _plain_name(str(listening[0])):
            return True
        return _is_loopback(name)

    def is_foreign(self, scope: Scope) -> bool:
        """Return whether a page of another site sent the request: browsers say where it is from."""
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is None:
            return False
        authority = origin.partition("://")[2].lower()
        if not authority:  # "null", as a page says that hides where it is from
            return True
        if authority == headers.get("host", "").lower():
            return False
        return _plain_name(authority) not in self._named


@lru_cache(maxsize=64)  # nearly all requests have the same few
def _plain_name(authority: str) -> str:
    """Return the name or address of `name:port` or `[address]:port`, in one way of writing."""
    text = authority.strip().lower()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    text = text.removesuffix(".")
    address = _address(text)
    return text if address is None else str(address)


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):  # no browser asks the net for these
        return True
    address = _address(name)
    return address is not None and address.is_loopback


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
