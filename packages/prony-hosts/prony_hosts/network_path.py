"""The way from this host to another: its interface, the interface's speed, the round trip."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Any

from prony.evidence.hosts import Link
from prony.host.diag import idle_round_trip_ms
from prony.host.interfaces import interface_towards, interface_with, read_link


def is_own(name: str) -> bool:
    """Whether an address, or one that a name means here, is this host's. Never by a loopback address, which
    every host has.
    """
    try:
        found = socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return any(
        not ip_address(str(where[0]).partition("%")[0]).is_loopback and _bound(where) for *_, where in found
    )


def _bound(where: tuple[Any, ...]) -> bool:
    """Whether a socket can have this address."""
    family = socket.AF_INET6 if len(where) == 4 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        try:
            tried.bind(where)
        except OSError:
            return False
        return True


def link_to(address: str, port: int | None, declared_bits_per_s: float | None) -> Link | None:
    """The interface towards this address or name (of a server that listens here: with it), and the round trip
    where there is a port to ask; None where no interface can be told, or the name means nothing here.
    """
    try:
        numeric = str(socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return None
    interface = interface_with(numeric) if port is None else interface_towards(numeric)
    if interface is None:
        return None
    found = read_link(interface, declared_bits_per_s)
    if port is None:
        return found
    return found.model_copy(update={"round_trip_idle_ms": idle_round_trip_ms(address, port)})
