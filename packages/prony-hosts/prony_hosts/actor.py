"""What every actor on a host has: a lease that the laboratory renews, and what is stopped when it runs out.

The laboratory calls `alive` about once a second. A host that hears nothing for `LEASE_S` seconds stops its
engine and its server by itself: nobody is there any more who could.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from prony.errors import EnvironmentFault

LEASE_S = 5.0
"""Without a sign of life from the laboratory for this long an actor stops what it started."""
TICK_S = 0.25


class Lease:
    """Calls `expired` once, from a thread of its own, when it was not renewed for `lasts_s` seconds."""

    def __init__(self, expired: Callable[[], object], *, lasts_s: float = LEASE_S) -> None:
        self._expired, self._lasts_s = expired, lasts_s
        self._renewed_s = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lease", daemon=True)
        self._thread.start()

    def renew(self) -> None:
        """A sign of life came."""
        self._renewed_s = time.monotonic()

    def end(self) -> None:
        """It watches no longer; `expired` is not called any more."""
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(min(TICK_S, self._lasts_s)):
            if time.monotonic() - self._renewed_s > self._lasts_s:
                self._ended.set()
                self._expired()


class Abandoned(EnvironmentFault):
    """The lease ended before the laboratory came back: the actor has stopped what it ran."""


class HostActor:
    """Base of all actors: the only classes that a worker of Prony runs.

    Methods that block run on threads of the worker, several at a time; `alive` runs on its event loop, so a
    method that takes long does not look like a host that is gone.
    """

    def __init__(self, lease_s: float = LEASE_S) -> None:
        self._abandoned = self._over = False
        self._lock = threading.RLock()
        self._lease = Lease(self.abandon, lasts_s=lease_s)

    async def alive(self) -> int:
        """Renews the lease; this host's monotonic clock in ns. Raises Abandoned when it is too late."""
        self.check_kept()
        self._lease.renew()
        return time.monotonic_ns()

    def check_kept(self) -> None:
        """Raises Abandoned after the lease has ended: nothing runs here any more."""
        if self._abandoned:
            raise Abandoned("no sign of life from the laboratory; the host has stopped what it ran")

    def end(self) -> None:
        """The laboratory is done with this actor in good order."""
        self._over = True
        self._lease.end()
        self.stop_everything()

    def abandon(self) -> None:
        """The laboratory or the worker is gone: stops everything, from whatever thread."""
        self._abandoned = self._over = True
        self._lease.end()
        self.stop_everything()

    def _keep(self, register: Callable[[], None], stop: Callable[[], object]) -> None:
        """Registers what was just started, for `stop_everything`. Where the actor was over before
        that: stops it, and raises Abandoned.
        """
        with self._lock:
            if not self._over:
                register()
                return
        stop()
        raise Abandoned("the laboratory was gone before it had started; the host has stopped it")

    def stop_everything(self) -> None:
        """Ends the processes that this actor started; called again it does nothing."""
