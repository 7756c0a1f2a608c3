"""Interface of a running engine, on any host."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from prony.errors import EnvironmentFault
from prony.evidence.engine import EngineReport, IntervalRow, Mark, Ready
from prony.load.contract import EngineLoad


class HostLost(EnvironmentFault):
    """A lost engine on another host; the text is a sentence with the reason."""


class Engine(Protocol):
    """A run of a load: `next_event` takes its events, `stop` ends it, `report` is its result."""

    @property
    def load(self) -> EngineLoad:
        """The requested load."""

    @property
    def rows(self) -> tuple[IntervalRow, ...]:
        """The rows so far, per second, or per minute in runs over half an hour."""

    @property
    def last_row(self) -> IntervalRow:
        """The newest row. Raises IndexError before the first."""

    @property
    def marks(self) -> list[Mark]:
        """The marks so far."""

    @property
    def ready(self) -> Ready | None:
        """Its `ready` event, with the start on the laboratory's clock."""

    @property
    def pids(self) -> frozenset[int]:
        """Its processes on this host, if any."""

    @property
    def finished(self) -> bool:
        """Whether it has ended."""

    @property
    def end_reason(self) -> str:
        """Its own reason for its end."""

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """The next event; None at the timeout or after the last. Raises EnvironmentFault when the engine
        reports an error or ends without its report.
        """

    def open_window(self, duration_s: float) -> None:
        """Requests a measured window of this length from now on."""

    def close_window(self) -> None:
        """Ends the open window early; it counts as complete."""

    def stop(self) -> None:
        """Stops the run and takes all remaining events."""

    def close(self) -> None:
        """Ensures that it has ended."""

    def run_to_end(
        self, timeout_s: float, on_row: Callable[[IntervalRow], None] | None = None
    ) -> EngineReport:
        """Follows a run that ends by itself. Raises EnvironmentFault if it does not end in time."""

    def report(self) -> EngineReport:
        """The report of a finished run. Raises EnvironmentFault if it has not finished."""


def followed_to_end(
    engine: Engine, timeout_s: float, on_row: Callable[[IntervalRow], None] | None, what: str
) -> EngineReport:
    """`Engine.run_to_end`, for all kinds; `what` did not end in time."""
    deadline = time.monotonic() + timeout_s
    try:
        while not engine.finished:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise EnvironmentFault(f"{what} did not end within {timeout_s:.0f} s")
            event = engine.next_event(left_s)
            if event and event.get("event") == "interval" and on_row:
                on_row(engine.last_row)
    finally:
        engine.close()
    return engine.report()


StartEngine = Callable[[EngineLoad], Engine]
