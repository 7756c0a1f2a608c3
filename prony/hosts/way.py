"""The way from this host to another: its interface, the interface's speed, the round trip. Must not know what
is measured.
"""

from __future__ import annotations

import socket

from prony.evidence.hosts import Link
from prony.host.interfaces import interface_towards, interface_with, read_link
from prony.host.round_trip import idle_round_trip_ms


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
