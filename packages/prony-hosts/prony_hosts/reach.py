"""A host as the laboratory uses it: actor, clock and facts."""

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
"""Round trips at the start, enough for one near the path's minimum. Each later sign of life adds one."""


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
        """Its entry in hosts.yaml."""
        return self.attached.host

    @property
    def name(self) -> str:
        """Name in results and messages."""
        return self.host.name

    def call(self, method: str, *args: Any, timeout_s: float = CALL_S) -> Any:
        """Calls the actor's method. Raises HostLost, EnvironmentFault."""
        return self.remote.call(method, *args, timeout_s=timeout_s)

    def begin(self, method: str, *args: Any) -> Future[Any]:
        """Starts a call; `end` returns its result."""
        return self.remote.submit(method, *args)

    def end(self, future: Future[Any], method: str, timeout_s: float = CALL_S) -> Any:
        """Result of a started call."""
        return self.remote.wait(future, method, timeout_s)

    # -- its clock

    def compare_clocks(self, times: int = 1) -> None:
        """Makes round trips one after the other. Raises HostLost."""
        for _ in range(times):
            sent_ns = time.monotonic_ns()
            future = self.begin("now_ns")
            host_ns = self.end(future, "now_ns")
            self.take(RoundTrip(sent_ns, host_ns, time.monotonic_ns()))

    def take(self, trip: RoundTrip) -> None:
        """Adds a round trip."""
        with self._lock:
            self._clock.add(trip)

    def clock(self) -> ClockEstimate:
        """The best estimate so far."""
        with self._lock:
            return self._clock.estimate()

    def round_trips(self) -> tuple[RoundTrip, ...]:
        """The shortest so far, a few dozen over the whole time."""
        with self._lock:
            return self._clock.seen

    def lab_s(self, host_s: float) -> float:
        """The laboratory's clock at an instant of the host's."""
        return self.clock().lab_ns(host_s * 1e9) * 1e-9

    def host_s(self, lab_s: float) -> float:
        """The host's clock at an instant of the laboratory's."""
        return self.clock().host_ns(lab_s * 1e9) * 1e-9
