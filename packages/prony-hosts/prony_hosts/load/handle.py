"""An engine on a host: commands in, events out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from prony_hosts.load.clock import ClockEstimate


class EngineHandle(Protocol):
    """One engine on a host, which was given a load with `start: commanded` (prony_hosts.load.shares)."""

    @property
    def name(self) -> str:
        """As the user calls the host."""
        ...

    def send(self, command: dict[str, Any]) -> None:
        """Hand a command of docs/engine.md over; not before the one that went before it. Raises HostLost,
        EnvironmentFault. Called from one thread.
        """
        ...

    def events(self, timeout_s: float) -> Sequence[dict[str, Any]] | None:
        """The next events as the engine wrote them, one or more; none at the timeout, None after the last.

        Called from one thread, again and again. Raises HostLost, or EnvironmentFault when the engine ended
        without `finished`.
        """
        ...

    def clock(self) -> ClockEstimate:
        """The best estimate there is so far of the host's clock beside the laboratory's."""
        ...

    def close(self) -> None:
        """Make sure that the engine has ended; not when the host is lost."""
        ...
