"""The laboratory's hold on one host: its actor, its clock, its facts."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

from prony.evidence.hosts import Link
from prony_hosts.actors import HostDescription
from prony_hosts.file import Host
from prony_hosts.laboratory import CALL_S, Attached, Remote
from prony_hosts.load.clock import ClockEstimate, ClockEstimator, RoundTrip

FIRST_ROUND_TRIPS = 40
"""At the beginning: the shortest of so many is near the way's own time. From then on each sign of life is one
more.
"""


class Reached:
    """One host with its actor."""

    def __init__(self, attached: Attached, remote: Remote) -> None:
        self.attached, self.remote = attached, remote
        self.facts: HostDescription = remote.call("describe")
        self.link: Link | None = remote.call("link", attached.reached_at, None, self.host.keys.link)
        self._clock = ClockEstimator()
        self._lock = threading.Lock()
        self.compare_clocks(FIRST_ROUND_TRIPS)
        remote.on_round_trip = self.take

    @property
    def host(self) -> Host:
        """What hosts.yaml says of it."""
        return self.attached.host

    @property
    def name(self) -> str:
        """In results and messages."""
        return self.host.name

    def call(self, method: str, *args: Any, timeout_s: float = CALL_S) -> Any:
        """The result of the actor's method. Raises HostLost, EnvironmentFault."""
        return self.remote.call(method, *args, timeout_s=timeout_s)

    def begin(self, method: str, *args: Any) -> Future[Any]:
        """The same, without waiting; `end` gives the result."""
        return self.remote.submit(method, *args)

    def end(self, future: Future[Any], method: str, timeout_s: float = CALL_S) -> Any:
        """The result of what was begun."""
        return self.remote.wait(future, method, timeout_s)

    # -- its clock

    def compare_clocks(self, times: int = 1) -> None:
        """Round trips, one after the other. Raises HostLost."""
        for _ in range(times):
            asked_ns = time.monotonic_ns()
            future = self.begin("now_ns")
            host_ns = self.end(future, "now_ns")
            self.take(RoundTrip(asked_ns, host_ns, time.monotonic_ns()))

    def take(self, trip: RoundTrip) -> None:
        """One more round trip."""
        with self._lock:
            self._clock.add(trip)

    def clock(self) -> ClockEstimate:
        """The best estimate so far."""
        with self._lock:
            return self._clock.estimate()

    def round_trips(self) -> tuple[RoundTrip, ...]:
        """The shortest ones so far, a few dozen over the whole time."""
        with self._lock:
            return self._clock.seen

    def lab_s(self, host_s: float) -> float:
        """An instant of the host on the laboratory's clock."""
        return self.clock().lab_ns(host_s * 1e9) * 1e-9

    def host_s(self, lab_s: float) -> float:
        """An instant of the laboratory on the host's clock."""
        return self.clock().host_ns(lab_s * 1e9) * 1e-9
