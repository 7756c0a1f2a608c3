"""A way between two interfaces that takes time and loses packets, for kernels without netem.

    python wire.py ONE OTHER DELAY_MS LOSS

Says `ready`, and moves Ethernet frames both ways until it is killed. Enough for thousands of packets per
second, not for a measurement of throughput.
"""

from __future__ import annotations

import random
import selectors
import socket
import sys
import time
from collections import deque
from contextlib import suppress

ETH_P_ALL = 3
LARGEST_BYTES = 65536
MOST_WAITING = 100_000


def main(one: str, other: str, delay_s: float, loss: float) -> None:
    ends = [_opened(one), _opened(other)]
    chance = random.Random(1)
    waiting: deque[tuple[float, socket.socket, bytes]] = deque()
    with selectors.DefaultSelector() as ready:
        for end, away in zip(ends, reversed(ends), strict=True):
            ready.register(end, selectors.EVENT_READ, away)
        print("ready")
        while True:
            rest_s = waiting[0][0] - time.monotonic() if waiting else None
            for key, _ in ready.select(None if rest_s is None else max(rest_s, 0.0)):
                _read(key.fileobj, key.data, waiting, delay_s, loss, chance)  # type: ignore[arg-type]
            while waiting and waiting[0][0] <= time.monotonic():
                _, away, frame = waiting.popleft()
                with suppress(OSError):  # a link that is down loses it
                    away.send(frame)


def _opened(name: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    end.bind((name, ETH_P_ALL))
    end.setblocking(False)
    return end


def _read(
    end: socket.socket,
    away: socket.socket,
    waiting: deque[tuple[float, socket.socket, bytes]],
    delay_s: float,
    loss: float,
    chance: random.Random,
) -> None:
    with suppress(BlockingIOError, OSError):
        while True:
            frame, address = end.recvfrom(LARGEST_BYTES)
            outgoing = address[2] == socket.PACKET_OUTGOING  # what the wire itself has sent
            if not outgoing and len(waiting) < MOST_WAITING and chance.random() >= loss:
                waiting.append((time.monotonic() + delay_s, away, frame))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1000, float(sys.argv[4]))
