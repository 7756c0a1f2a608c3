"""Base of the actors on a host, with a lease that the laboratory renews.

The laboratory calls `alive` once a second. After `LEASE_S` seconds without a call the host stops its engine
and server by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from prony.errors import EnvironmentFault

LEASE_S = 5.0
"""An actor stops everything it started after this long without a call from the laboratory."""
TICK_S = 0.25


class Lease:
    """Calls `expired` once, on its own thread, `lasts_s` seconds after the last renewal."""

    def __init__(self, expired: Callable[[], object], *, lasts_s: float = LEASE_S) -> None:
        self._expired, self._lasts_s = expired, lasts_s
        self._renewed_s = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lease", daemon=True)
        self._thread.start()

    def renew(self) -> None:
        """Restarts the lease."""
        self._renewed_s = time.monotonic()

    def end(self) -> None:
        """Stops the watch; `expired` is not called any more."""
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(min(TICK_S, self._lasts_s)):
            if time.monotonic() - self._renewed_s > self._lasts_s:
                self._ended.set()
                self._expired()


class Abandoned(EnvironmentFault):
    """The lease ran out: the actor has stopped everything it started."""


class HostActor:
    """Base of all actors, the only classes that a Prony worker runs.

    Blocking methods run on worker threads, several at a time. `alive` runs on the event loop, so a slow
    method does not look like a lost host.
    """

    def __init__(self, lease_s: float = LEASE_S) -> None:
        self._abandoned = self._over = False
        self._lock = threading.RLock()
        self._lease = Lease(self.abandon, lasts_s=lease_s)

    async def alive(self) -> int:
        """Renews the lease; this host's monotonic clock in ns. Raises Abandoned after the lease's end."""
        self.check_kept()
        self._lease.renew()
        return time.monotonic_ns()

    def check_kept(self) -> None:
        """Raises Abandoned after the lease has run out."""
        if self._abandoned:
            raise Abandoned("the laboratory's lease has expired; the host has stopped its server and engine")

    def end(self) -> None:
        """Normal end, called by the laboratory."""
        self._over = True
        self._lease.end()
        self.stop_everything()

    def abandon(self) -> None:
        """Stops everything because the laboratory or the worker has gone. Callable from any thread."""
        self._abandoned = self._over = True
        self._lease.end()
        self.stop_everything()

    def _keep(self, register: Callable[[], None], stop: Callable[[], object]) -> None:
        """Registers a process for `stop_everything`; after the lease's end stops it, raises Abandoned."""
        with self._lock:
            if not self._over:
                register()
                return
        stop()
        raise Abandoned("the laboratory's lease expired before the start; the host has stopped the process")

    def stop_everything(self) -> None:
        """Ends the processes that this actor started. Idempotent."""
