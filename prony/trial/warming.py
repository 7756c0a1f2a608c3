"""Warm-up under the trial's own load, until the server is warm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from prony.evidence.engine import IntervalRow
from prony.evidence.server import JvmSnapshot
from prony.evidence.trial import Phase, WarmUp
from prony.plan.load import SteadyWindow
from prony.plan.trial import TrialPlan, WarmUpPlan
from prony.steady.detector import HOLD_ROWS, SteadyState, compiling, full_rows, steady_state
from prony.steady.limits import SteadyLimits
from prony.steady.precision import half_width
from prony.steady.stretch import Series, level_up_to, residual_drift
from prony.targets.base import RunningTarget
from prony.trial.load_run import LoadRun
from prony.trial.surroundings import Surroundings, TrialObserver

MARGIN = 0.7
"""Expected bound ÷ limit at which the window opens; at 1 half of level windows exceed the limit."""


@dataclass(frozen=True, slots=True)
class NextWindow:
    """The window to come: its residual drift, as expected from a phase before it."""

    length_s: float
    series: Series = "rate"
    """p50 in an open loop, whose schedule sets the throughput."""
    same_cpus: Sequence[IntervalRow] = ()
    """Rows of the preceding phase, on the window's CPUs."""
    other_cpus: Sequence[IntervalRow] = ()
    """... or on others."""

    def residual_drift(self, rows: Sequence[IntervalRow], limits: SteadyLimits) -> float | None:
        """Expected bound for a window that opens now (0.03: 3 %); None with too few rows."""
        own = full_rows([*self.same_cpus, *rows])
        level = level_up_to(own, full_rows(self.other_cpus), limits=limits).of(self.series)
        drift = residual_drift([level.ahead(self.length_s)]) if level is not None else None
        return None if drift is None else drift.bound


@dataclass(slots=True)
class SteadyWatch:
    """Waits between `min_s` and `cap_s` for steady rows, and for a small residual drift of `next_window`."""

    min_s: float
    cap_s: float
    start_ms: float
    hold_rows: int
    next_window: NextWindow | None = None
    limits: SteadyLimits = field(default_factory=SteadyLimits)
    """Those of the window's judgement."""
    compiling_cap_s: float | None = None
    """Cap while the JIT compiler is working; None: `cap_s`."""
    took_s: float = 0.0
    rows: list[IntervalRow] = field(default_factory=list)
    jvm: list[JvmSnapshot] = field(default_factory=list)
    state: SteadyState | None = None
    residual_drift: float | None = None
    """Expected bound for the next window at the last row; None if not required or not estimable."""

    def row(self, row: IntervalRow, jvm: JvmSnapshot | None) -> bool:
        """Add a row and a concurrent reading of the JVM; True at the end of the phase."""
        if row.t_ms - row.duration_ms < self.start_ms:
            return False  # began before this phase: it mixes two regimes
        self.rows.append(row)
        if jvm is not None:
            self.jvm.append(jvm)
        self.took_s = (row.t_ms - self.start_ms) / 1000
        if self.took_s < self.min_s:
            return False
        self.state = steady_state(self.rows, self.jvm, self.limits, self.hold_rows)
        if self.next_window is None:
            return self.state.steady or self._capped
        capped = self._capped
        if self.state.steady or capped:
            self.residual_drift = self.next_window.residual_drift(self.rows, self.limits)
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
        return self.residual_drift is not None and self.residual_drift <= most

    @property
    def steady(self) -> bool:
        """Whether the phase was steady at its last row."""
        return self.state is not None and self.state.steady


def steady_since_ms(first: SteadyWatch, last: SteadyWatch, *, same_cpus: bool) -> float | None:
    """Start of the steady stretch, engine time. None: unknown, as after a move of CPUs."""
    if first.steady:
        return first.state.since_ms if first.state else None
    if not (same_cpus and last.steady):
        return None
    return steady_state([*first.rows, *last.rows], last.jvm, last.limits, last.hold_rows).since_ms


@dataclass(slots=True)
class PreciseEnough:
    """Ends a window at the planned precision: of throughput in a closed loop, of p50 in an open loop."""

    precision: float
    by_p50: bool
    _values: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, plan: TrialPlan) -> PreciseEnough | None:
        """None for a window of fixed length."""
        measured = plan.measured
        if not isinstance(measured, SteadyWindow) or measured.precision is None:
            return None
        return cls(measured.precision, by_p50=plan.load.model == "open")

    def __call__(self, row: IntervalRow) -> bool:
        """Whether the precision is reached, this row included."""
        value = row.p50_ns if self.by_p50 else row.completed_per_s
        if value is not None:
            self._values.append(float(value))
        half = half_width(self._values)
        return half is not None and half <= self.precision


@dataclass(frozen=True, slots=True)
class Place:
    """Of a server in a phase. `cpus` None: not moved. `compiler_cpus`: where its JIT compilers have more."""

    method: Literal["unpinned", "pinned", "compilers", "all-cpus"] = "unpinned"
    cpus: tuple[int, ...] | None = None
    compiler_cpus: tuple[int, ...] = ()

    @classmethod
    def take(cls, server: RunningTarget, warm_up: WarmUpPlan, surroundings: Surroundings) -> Place:
        """Move a launched server: of a JVM the compilers alone, which then take no CPU from requests."""
        own, every = surroundings.partition.server, surroundings.all_cpus
        if warm_up.method != "all-cpus" or surroundings.partition.shared:
            return cls("pinned", own if server.set_affinity(own) else None)
        if set(every) > set(own) and server.set_compiler_affinity(every):
            return cls("compilers", own, every)
        return cls("all-cpus", every if server.set_affinity(every) else None)


@dataclass(slots=True)
class Phases:
    """Ended phases. `own_cpus`: the server's; empty where Prony does not place it."""

    own_cpus: tuple[int, ...]
    ended: list[Phase] = field(default_factory=list)

    def add(self, name: str, start_ms: float, end_ms: float, place: Place | None = None) -> None:
        """`place`: the server's in this phase, by default its own CPUs."""
        place = place or Place()
        where = self.own_cpus if place.cpus is None else place.cpus
        values = {"name": name, "start_ms": start_ms, "end_ms": end_ms, "server_cpus": where}
        values["compiler_cpus"] = place.compiler_cpus
        self.ended.append(Phase.model_validate(values))


@dataclass(slots=True)
class Warming:
    """Warms a server up under load, ready for its window."""

    plan: TrialPlan
    surroundings: Surroundings
    owned: bool
    """Whether Prony places the server on CPUs."""
    listener: TrialObserver
    phases: Phases
    limits: SteadyLimits = field(default_factory=SteadyLimits)
    already_running: bool = False
    """Whether an earlier load has warmed the process up: it only settles."""
    new_workload: bool = False
    """Whether none had this workload, whose code the JIT compiler has not seen."""
    first_users: int = 0
    """Users of the load just before, which took `first_s`."""
    first_s: float = 0.0

    def warm(self, run: LoadRun) -> WarmUp | None:
        """For a fixed time, or until the server is level; None for a fixed time of 0."""
        warm_up = self.plan.warm_up
        if self.already_running and warm_up.method != "fixed":
            return self._settled(run, warm_up)
        if warm_up.method == "fixed":
            self.listener.phase("warm-up", warm_up.cap_s)
            return self._fixed(run, warm_up.cap_s)
        self.listener.phase("warm-up", warm_up.warm_s)
        return self._watched(run, warm_up)

    def _fixed(self, run: LoadRun, seconds: float) -> WarmUp | None:
        if not seconds:
            return None
        while run.now_ms() < seconds * 1000:
            run.next()
        self.phases.add("warm-up", 0.0, run.now_ms())
        return WarmUp(method="fixed", cap_s=seconds, steady=None)

    def _settled(self, run: LoadRun, warm_up: WarmUpPlan) -> WarmUp:
        """Settle on its own CPUs after the ramp-up; under a new workload, with a fresh process's JIT time."""
        self.listener.phase("settle", warm_up.settle_new_s if self.new_workload else warm_up.settle_s)
        while run.now_ms() < self.plan.load.started_s * 1000:
            run.next()
        next_window = self._next_window(warm_up)
        longest_s = warm_up.compiling_cap_s if self.new_workload else None
        settled = self._stretch(run, next_window, compiling_cap_s=longest_s)
        return WarmUp(
            method="settled",
            cap_s=min(max(warm_up.settle_cap_s, settled.took_s), longest_s or warm_up.settle_cap_s),
            steady=settled.steady if settled.cap_s > settled.hold_rows else None,
            reason=settled.state.reason if settled.state else "",
            still_to_come=settled.residual_drift,
            closed_users=self.first_users or None,
            closed_s=self.first_s,
        )

    def _watched(self, run: LoadRun, warm_up: WarmUpPlan) -> WarmUp:
        """Warm up until steady or the cap; then settle on its own CPUs."""
        next_window = self._next_window(warm_up)
        place = Place.take(run.server, warm_up, self.surroundings) if self.owned else Place()
        own = self.surroundings.partition.server
        same = not place.compiler_cpus and (place.cpus or own) == own
        first = last = self._stretch(run, None if self.owned else next_window, place)
        if self.owned:
            self.listener.phase("settle", warm_up.settle_s)
            if next_window is not None:
                same_cpus, other_cpus = (first.rows, ()) if same else ((), first.rows)
                next_window = replace(next_window, same_cpus=same_cpus, other_cpus=other_cpus)
            last = self._stretch(run, next_window)
        since_ms = steady_since_ms(first, last, same_cpus=same)
        return WarmUp(
            method=place.method,
            cap_s=warm_up.cap_s + (warm_up.settle_cap_s if self.owned else 0.0),
            # A phase too short for the required rows is unknown, not *never steady*.
            steady=last.steady if last.cap_s > last.hold_rows else None,
            time_to_steady_s=None if since_ms is None else self.first_s + since_ms / 1000,
            reason=last.state.reason if last.state else "",
            still_to_come=last.residual_drift,
            closed_users=self.first_users or None,
            closed_s=self.first_s,
        )

    def _next_window(self, warm_up: WarmUpPlan) -> NextWindow | None:
        """The window, if its residual drift must be small before it opens; None if level suffices."""
        if warm_up.settle_until == "level":
            return None
        return NextWindow(self.plan.measured_s, series="p50" if self.plan.load.model == "open" else "rate")

    def _stretch(
        self,
        run: LoadRun,
        next_window: NextWindow | None,
        place: Place | None = None,
        compiling_cap_s: float | None = None,
    ) -> SteadyWatch:
        """Load until steady (and its drift small) or the cap: in this place, else with all threads on its own
        CPUs.
        """
        plan, own = self.plan.warm_up, self.surroundings.partition.server
        name, min_s, cap_s = "warm-up", plan.min_s, plan.cap_s
        if place is None:
            name, min_s, cap_s = "settle", plan.settle_min_s, plan.settle_cap_s
            place = Place("pinned", own if self.owned and run.server.set_affinity(own) else None)
        start_ms = run.now_ms()
        hold_rows = max(3, min(HOLD_ROWS, round(min_s)))
        watch = SteadyWatch(min_s, cap_s, start_ms, hold_rows, next_window, self.limits, compiling_cap_s)
        run.watch(watch.row)
        self.phases.add(name, start_ms, run.now_ms(), place)
        return watch
