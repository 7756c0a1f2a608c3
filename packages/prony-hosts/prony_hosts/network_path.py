"""The network path from this host to another: interface, link speed and round trip."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Any

from prony.evidence.hosts import Link
from prony_hosts.link_watch import interface_towards, interface_with, read_link
from prony_hosts.round_trips import idle_round_trip_ms


def is_own(name: str) -> bool:
    """Whether this address or name is this host's. Loopback addresses never count: every host has them."""
    try:
        resolved = socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return any(
        not ip_address(str(where[0]).partition("%")[0]).is_loopback and _bound(where)
        for *_, where in resolved
    )


def _bound(where: tuple[Any, ...]) -> bool:
    """Whether a socket can bind to this address."""
    family = socket.AF_INET6 if len(where) == 4 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        try:
            tried.bind(where)
        except OSError:
            return False
        return True


def link_to(address: str, port: int | None, declared_bits_per_s: float | None) -> Link | None:
    """The interface towards `address`, with the round trip to `port`. Without a port: the interface that has
    the address. None for an unresolvable name, or when no interface can be determined.
    """
    try:
        numeric = str(socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return None
    interface = interface_with(numeric) if port is None else interface_towards(numeric)
    if interface is None:
        return None
    link = read_link(interface, declared_bits_per_s)
    if port is None:
        return link
    return link.model_copy(update={"round_trip_idle_ms": idle_round_trip_ms(address, port)})
