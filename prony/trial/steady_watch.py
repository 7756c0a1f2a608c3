"""When is a trial warm, and its window precise enough? Pure but for the rows they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from prony.evidence.engine import IntervalRow
from prony.evidence.server import JvmSnapshot
from prony.plan.load import SteadyWindow
from prony.plan.trial import TrialPlan
from prony.steady.detector import SteadyState, compiling, full_rows, steady_state
from prony.steady.limits import SteadyLimits
from prony.steady.precision import LEAST_ROWS, half_width
from prony.steady.quantile import t_quantile
from prony.steady.stretch import Series, still_to_come, stretch

MARGIN = 0.7
"""Of the limit: the window opens when its bound can be expected to be this far below it, since the window's
own rows move the estimate. At 1 a level window is as often above the limit as below.
"""


@dataclass(frozen=True, slots=True)
class ComingWindow:
    """What a phase must have shown of the window that follows it: that residual drift is small enough."""

    length_s: float
    series: Series = "rate"
    """p50 in an open loop, whose schedule sets the throughput."""
    same_cpus: Sequence[IntervalRow] = ()
    """Rows of the phase before, where the server had the window's CPUs."""
    other_cpus: Sequence[IntervalRow] = ()
    """... or others."""

    def still_to_come(self, rows: Sequence[IntervalRow], limits: SteadyLimits) -> float | None:
        """The bound to expect for the window (0.03 is 3 %), should it open now; None with too few rows."""
        own = full_rows([*self.same_cpus, *rows])
        level = stretch(own, full_rows(self.other_cpus), series=self.series, limits=limits)
        found = still_to_come([level.ahead(self.length_s)]) if level is not None else None
        return None if found is None else found.bound


@dataclass(slots=True)
class SteadyWatch:
    """Waits between `min_s` and `cap_s` (from the phase's first row) for a steady stretch of rows; with a
    `coming` window also until its bound can be expected to hold.
    """

    min_s: float
    cap_s: float
    start_ms: float
    hold_rows: int
    coming: ComingWindow | None = None
    limits: SteadyLimits = field(default_factory=SteadyLimits)
    """Those that the window is judged by."""
    compiling_cap_s: float | None = None
    """While the JIT compiler is at work it waits for so long; None: `cap_s`."""
    took_s: float = 0.0
    rows: list[IntervalRow] = field(default_factory=list)
    jvm: list[JvmSnapshot] = field(default_factory=list)
    state: SteadyState | None = None
    still_to_come: float | None = None
    """The bound to expect for the coming window at the last look; None when nobody asked, or could say."""

    def row(self, row: IntervalRow, jvm: JvmSnapshot | None) -> bool:
        """Take one row (and a reading of the JVM of about the same moment); True when the phase is over."""
        if row.t_ms - row.duration_ms < self.start_ms:
            return False  # began before this phase: it describes two regimes at once
        self.rows.append(row)
        if jvm is not None:
            self.jvm.append(jvm)
        self.took_s = (row.t_ms - self.start_ms) / 1000
        if self.took_s < self.min_s:
            return False
        self.state = steady_state(self.rows, self.jvm, self.limits, self.hold_rows)
        if self.coming is None:
            return self.state.steady or self._capped
        capped = self._capped
        if self.state.steady or capped:
            self.still_to_come = self.coming.still_to_come(self.rows, self.limits)
        return capped or (self.state.steady and self._shown)

    @property
    def _capped(self) -> bool:
        over = self.took_s >= self.cap_s
        if not over or self.compiling_cap_s is None or self.took_s >= self.compiling_cap_s:
            return over
        return not compiling(self.rows, self.jvm, self.hold_rows)

    @property
    def _shown(self) -> bool:
        most = MARGIN * self.limits.remaining
        return self.still_to_come is not None and self.still_to_come <= most

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
    return steady_state([*first.rows, *last.rows], last.jvm, last.limits, last.hold_rows).since_ms


@dataclass(slots=True)
class PreciseEnough:
    """Told each row of the window: throughput in a closed loop, p50 in an open one."""

    precision: float
    by_p50: bool
    _values: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, plan: TrialPlan) -> PreciseEnough | None:
        """None where the plan fixes how long is measured."""
        measured = plan.measured
        if not isinstance(measured, SteadyWindow) or measured.precision is None:
            return None
        t_quantile(LEAST_ROWS, 0.975)  # what it imports costs CPU: now, and not in the window
        return cls(measured.precision, by_p50=plan.load.model == "open")

    def __call__(self, row: IntervalRow) -> bool:
        """Whether the figure is as precise as it was asked for, this row included."""
        value = row.p50_ns if self.by_p50 else row.completed_per_s
        if value is not None:
            self._values.append(float(value))
        half = half_width(self._values)
        return half is not None and half <= self.precision
