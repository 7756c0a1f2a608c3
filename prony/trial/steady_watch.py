"""When is a trial warm? Follows the rows of one phase and says whether to go on. Pure but for the rows it is
given.

Must not know processes or pinning.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from prony.evidence.engine import IntervalRow
from prony.evidence.server import JvmSnapshot
from prony.steady.detector import SteadyState, steady_state


@dataclass(slots=True)
class SteadyWatch:
    """Waits between `min_s` and `cap_s` (from the phase's first row) for a steady stretch of rows."""

    min_s: float
    cap_s: float
    start_ms: float
    hold_rows: int
    """So many of the newest rows must be level."""
    rows: list[IntervalRow] = field(default_factory=list)
    jvm: list[JvmSnapshot] = field(default_factory=list)
    state: SteadyState | None = None

    def row(self, row: IntervalRow, jvm: JvmSnapshot | None) -> bool:
        """Take one row (and a reading of the JVM of about the same moment); True when the phase is over."""
        if row.t_ms - row.duration_ms < self.start_ms:
            return False  # began before this phase: it describes two regimes at once
        self.rows.append(row)
        if jvm is not None:
            self.jvm.append(jvm)
        elapsed_s = (row.t_ms - self.start_ms) / 1000
        if elapsed_s < self.min_s:
            return False
        self.state = steady_state(self.rows, self.jvm, hold_rows=self.hold_rows)
        return self.state.steady or elapsed_s >= self.cap_s

    @property
    def steady(self) -> bool:
        """Whether the last look found the phase steady."""
        return self.state is not None and self.state.steady


def steady_since_ms(first: SteadyWatch, last: SteadyWatch, *, same_cpus: bool) -> float | None:
    """Where the steady stretch of a warm-up in two phases began, in the engine's time; None when unknown.

    A first phase that was cut at its cap and then moved to other CPUs has no such moment: the level after the
    move begins where we moved it, which says nothing about the server.
    """
    if first.steady:
        return first.state.since_ms if first.state else None
    if not (same_cpus and last.steady):
        return None
    return steady_state([*first.rows, *last.rows], last.jvm, hold_rows=last.hold_rows).since_ms
