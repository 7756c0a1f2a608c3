"""The round trip to the other side of the load, by what the kernel's TCP measured."""

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
    """The shortest of a few handshakes with a listening socket, as TCP_INFO tells it: the time of the way and
    of both kernels, no process of the other side takes part. None where none succeeds. Only before a load:
    each opens a connection and closes it.
    """
    found = []
    for _ in range(TRIES):
        try:
            with socket.create_connection((address, port), timeout=TRY_TIMEOUT_S) as made:
                info = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RTT_AT + 4)
        except OSError:
            continue
        found.append(struct.unpack_from("=I", info, RTT_AT)[0] / 1000)
        time.sleep(PAUSE_S)
    return min(found, default=None)


def load_round_trip_ms(port: int, *, here: bool) -> float | None:
    """The median of TCP's smoothed round trips of the established connections of a server's port; None where
    there are none or the kernel refuses. `here`: the server is on this host.

    At most, not exactly: an acknowledgement may wait for the response that it rides on, on the server's side
    for the next request.
    """
    times_us = [time_us for time_us in smoothed_round_trips_us(port, here=here) or () if time_us > 0]
    return median(times_us) / 1000 if times_us else None
