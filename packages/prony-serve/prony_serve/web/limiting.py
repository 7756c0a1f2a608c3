"""Rate limit for wrong tokens: failures per address, on a given clock."""

from __future__ import annotations

import ipaddress
import threading
from collections import OrderedDict, deque
from collections.abc import Callable

PER_ADDRESS = 5
WINDOW_S = 60.0
MOST_ADDRESSES = 4096
"""Remembered addresses; the oldest failure is dropped first."""


class FailureLimit:
    """At most PER_ADDRESS failures of one address in WINDOW_S; other addresses are not locked out."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._each: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_s(self, address: str) -> float:
        """Seconds until this address may try again; 0: now."""
        with self._lock:
            own = self._each.get(network(address), deque())
            return 0.0 if len(own) < PER_ADDRESS else max(0.0, own[0] + WINDOW_S - self._clock())

    def failed(self, address: str) -> None:
        """Counts a wrong token of this address."""
        with self._lock:
            now = self._clock()
            own = self._each.setdefault(network(address), deque(maxlen=PER_ADDRESS))
            own.append(now)
            self._each.move_to_end(network(address))
            while len(self._each) > MOST_ADDRESSES:
                self._each.popitem(last=False)


def network(address: str) -> str:
    """The address, or the /64 of an IPv6 address: a single host owns all of it."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 6:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
