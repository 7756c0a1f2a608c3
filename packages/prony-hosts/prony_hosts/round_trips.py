"""Round trips of TCP: of a handshake before the load, and as the kernel smooths them under it."""

from __future__ import annotations

import socket
import struct
import time
from statistics import median

from prony.host.diag import ESTABLISHED, HEADER, IDENTITY, dump

_MESSAGE_BYTES = 72
_ATTRIBUTE = struct.Struct("=HH")
_INFO = 2
MOST_ASKED = 500
"""Most connections per reading of round trips, in the kernel's hash order, to spare the client's CPU."""
RTT_AT = 68
"""tcpi_rtt in struct tcp_info (linux/tcp.h): eight bytes of states and options, fifteen numbers before it."""

TRIES = 7
TRY_TIMEOUT_S = 1.0
PAUSE_S = 0.005


def smoothed_round_trips_us(port: int, *, here: bool) -> list[int] | None:
    """tcpi_rtt (µs) of up to MOST_ASKED established connections to this port, or from it if the server is
    `here`. None when the kernel refuses.
    """
    source, destination = (port, 0) if here else (0, port)
    times_us = []
    try:
        for family in (socket.AF_INET, socket.AF_INET6):
            sockets = dump(family, 1 << ESTABLISHED, destination, source, extensions=1 << (_INFO - 1))
            for body, offset in sockets:
                ports = IDENTITY.unpack_from(body, offset + 4)[:2]
                info = _attribute(body, offset, _INFO) if ports[0 if here else 1] == port else None
                if info is not None and len(info) >= RTT_AT + 4:
                    times_us.append(struct.unpack_from("=I", info, RTT_AT)[0])
                if len(times_us) >= MOST_ASKED:
                    return times_us
    except OSError:
        return None
    return times_us


def _attribute(body: bytes, offset: int, wanted: int) -> bytes | None:
    end = offset - HEADER.size + HEADER.unpack_from(body, offset - HEADER.size)[0]
    at = offset + _MESSAGE_BYTES
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size:
            return None
        if kind == wanted:
            return body[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return None


def idle_round_trip_ms(address: str, port: int) -> float | None:
    """Shortest handshake by TCP_INFO: network path and both kernels, without a remote process. None if all
    fail. Only before a load, as each opens a connection.
    """
    times_ms = []
    for _ in range(TRIES):
        try:
            with socket.create_connection((address, port), timeout=TRY_TIMEOUT_S) as connection:
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RTT_AT + 4)
        except OSError:
            continue
        times_ms.append(struct.unpack_from("=I", info, RTT_AT)[0] / 1000)
        time.sleep(PAUSE_S)
    return min(times_ms, default=None)


def load_round_trip_ms(port: int, *, here: bool) -> float | None:
    """Median of TCP's smoothed round trips of established connections; None without any. An upper bound: an
    acknowledgement may wait for the response, or the next request, that carries it.
    """
    times_us = [time_us for time_us in smoothed_round_trips_us(port, here=here) or () if time_us > 0]
    return median(times_us) / 1000 if times_us else None
