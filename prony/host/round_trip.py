"""The round trip to the other side of the load, as measured by the kernel's TCP."""

from __future__ import annotations

import socket
import struct
import time
from statistics import median

from prony.host.diag import RTT_AT, smoothed_round_trips_us

TRIES = 7
TRY_TIMEOUT_S = 1.0
PAUSE_S = 0.005


def idle_round_trip_ms(address: str, port: int) -> float | None:
    """Shortest handshake with a listening socket by TCP_INFO: network path and both kernels, without a remote
    process. None if all fail. Only before a load, as each opens a connection.
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
    """Median of TCP's smoothed round trips of a server port's established connections; None without any, or
    when the kernel refuses. `here`: the server is on this host.

    An upper bound: an acknowledgement may wait for the response, or the next request, that carries it.
    """
    times_us = [time_us for time_us in smoothed_round_trips_us(port, here=here) or () if time_us > 0]
    return median(times_us) / 1000 if times_us else None
