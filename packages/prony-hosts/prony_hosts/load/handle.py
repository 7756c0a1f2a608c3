"""An engine on a host: commands in, events out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from prony_hosts.load.clock import ClockEstimate


class EngineHandle(Protocol):
    """An engine on a host that was given a load with `start: commanded` (prony_hosts.load.shares)."""

    @property
    def name(self) -> str:
        """The host's name in results."""
        ...

    def send(self, command: dict[str, Any]) -> None:
        """Sends a command of docs/engine.md, from one thread. Raises HostLost, EnvironmentFault."""
        ...

    def events(self, timeout_s: float) -> Sequence[dict[str, Any]] | None:
        """The next events as the engine wrote them: empty at the timeout, None after the last.

        Called from one thread. Raises HostLost, or EnvironmentFault when the engine ended without `finished`.
        """
        ...

    def clock(self) -> ClockEstimate:
        """The current estimate of the host's clock."""
        ...

    def close(self) -> None:
        """Ends the engine unless its host is lost."""
        ...
