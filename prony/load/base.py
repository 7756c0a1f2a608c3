"""What a trial asks of a running engine, wherever it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from prony.errors import EnvironmentFault
from prony.evidence.engine import EngineReport, IntervalRow, Mark, Ready
from prony.load.contract import EngineLoad


class HostLost(EnvironmentFault):
    """An engine on another host that cannot be reached any more; its text is one sentence with the reason."""


class Engine(Protocol):
    """A run of one load. `next_event` takes its events, `stop` ends it, `report` is its result."""

    @property
    def load(self) -> EngineLoad:
        """As it was asked for."""

    @property
    def rows(self) -> tuple[IntervalRow, ...]:
        """The rows so far: of each second, and of each minute once the run is longer than half an hour."""

    @property
    def last_row(self) -> IntervalRow:
        """The newest one. Raises IndexError before the first."""

    @property
    def marks(self) -> list[Mark]:
        """The marks so far."""

    @property
    def ready(self) -> Ready | None:
        """What it said when it began to send; its start is on the laboratory's clock."""

    @property
    def pids(self) -> frozenset[int]:
        """Its processes on this host; empty where it runs on others."""

    @property
    def finished(self) -> bool:
        """Whether it has ended."""

    @property
    def end_reason(self) -> str:
        """Its own reason for its end."""

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """The next event; None at the timeout or after the last one. Raises EnvironmentFault when the engine
        reports an error or ends without its report.
        """

    def open_window(self, duration_s: float) -> None:
        """Ask for a measured window of this length, from now on."""

    def close_window(self) -> None:
        """Ask for the end of the open window; it is complete all the same."""

    def stop(self) -> None:
        """Stop the run and take all remaining events."""

    def close(self) -> None:
        """Make sure that it has ended."""

    def run_to_end(
        self, timeout_s: float, on_row: Callable[[IntervalRow], None] | None = None
    ) -> EngineReport:
        """Follow a run that ends by itself. Raises EnvironmentFault when it does not end in time."""

    def report(self) -> EngineReport:
        """Everything the run said. Raises EnvironmentFault when it has not finished."""


StartEngine = Callable[[EngineLoad], Engine]
"""Starts an engine under a load. Raises EnvironmentFault."""
