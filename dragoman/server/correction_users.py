"""Who stands beside a correction: the name of an API key, or what nobody can turn back into an
address. Knows clients as the guard names them; saves nothing."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from multiprocessing import current_process

_OF_KEY = "key "  # begins what the guard calls a client that has a key
# Random bytes that a process draws and hands to those it starts: all processes of a service have
# the same, and forget them when it ends.
_SECRET = bytes(current_process().authkey)
_DIGITS = 16


def user_of(client: str, secret: bytes = _SECRET) -> str:
    """Return what stands for a client among the corrections: the name of a key or, instead of an
    address, a hash.

    Addresses are hashed with a secret that only the processes of this service know, so that a user
    has one hash until the service is started again. Of an address of IPv6 the network counts, since
    a user has as many addresses in it as they like.
    """
    if client.startswith(_OF_KEY):
        return client
    digest = hmac.new(secret, _network(client).encode("utf-8", "replace"), hashlib.sha256)
    return f"address {digest.hexdigest()[:_DIGITS]}"


def _network(address: str) -> str:
    """An address of IPv4, or the network of one of IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # a name, or none
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))
