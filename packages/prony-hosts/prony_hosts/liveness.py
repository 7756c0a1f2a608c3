"""Detects lost hosts by polling each actor: Dask leaves the task of a vanished worker pending."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from prony_hosts.actor import LEASE_S

EVERY_S = 1.0
LOST_AFTER_S = LEASE_S
"""Equal to the host's own lease: by then it has stopped its engine and server."""
ENDED_AFTER = 2
"""Consecutive refused calls after which a worker counts as ended."""


class Liveness:
    """Polls each host once a second on the given event loop; `lost` may be read from any thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, every_s: float = EVERY_S, lost_after_s: float = LOST_AFTER_S
    ) -> None:
        self._loop, self._every_s, self._lost_after_s = loop, every_s, lost_after_s
        self._lost: dict[str, str] = {}
        self._silent_since_s: dict[str, float] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def watch(self, name: str, alive: Callable[[], Awaitable[object]]) -> None:
        """Starts to call `alive` of the host once per interval. Callable from any thread."""

        def begin() -> None:
            before = self._tasks.pop(name, None)
            if before is not None:
                before.cancel()
            self._tasks[name] = self._loop.create_task(self._ask(name, alive))

        self._loop.call_soon_threadsafe(begin)

    async def end(self) -> None:
        """Stops all polling; on the event loop."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def forget(self, name: str) -> None:
        """Stops to poll this host."""

        def cancel() -> None:
            task = self._tasks.pop(name, None)
            if task is not None:
                task.cancel()

        self._loop.call_soon_threadsafe(cancel)

    def why_lost(self, name: str) -> str | None:
        """Why the host is lost; None while it is not."""
        return self._lost.get(name)

    def lost(self) -> dict[str, str]:
        """Why each lost host is lost. A host that returns stays lost: its actors have stopped."""
        return dict(self._lost)

    def silent_for_s(self, name: str) -> float:
        """Seconds since the host's last reply; 0 before the first poll."""
        since = self._silent_since_s.get(name)
        return 0.0 if since is None else time.monotonic() - since

    def ended(self, name: str, why: str = "its worker has ended") -> str:
        """Marks the host as lost. Returns the first reason given for it."""
        return self._lost.setdefault(name, f"{name} was lost: {why}")

    async def _ask(self, name: str, alive: Callable[[], Awaitable[object]]) -> None:
        refused = 0
        self._silent_since_s[name] = time.monotonic()
        while name not in self._lost:
            began_s = time.monotonic()
            try:
                await asyncio.wait_for(alive(), self._lost_after_s / 2)
                self._silent_since_s[name] = time.monotonic()
                refused = 0
            except TimeoutError:
                pass  # silence is counted below
            except Exception:
                refused += 1
            silent_s = self.silent_for_s(name)
            if refused >= ENDED_AFTER:
                self.ended(name)
            elif silent_s > self._lost_after_s:
                self._lost.setdefault(
                    name,
                    f"{name} was lost: no sign of life for {silent_s:.0f} s; check the host and its link",
                )
            wait_s = self._every_s if not refused else self._every_s / 4
            await asyncio.sleep(max(0.0, wait_s - (time.monotonic() - began_s)))
