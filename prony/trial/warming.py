"""The trial's own load before the window, and when the server is warm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from prony.evidence.engine import IntervalRow
from prony.evidence.server import JvmSnapshot
from prony.evidence.trial import Phase, WarmUp
from prony.plan.load import SteadyWindow
from prony.plan.trial import TrialPlan, WarmUpPlan
from prony.steady.detector import HOLD_ROWS, SteadyState, compiling, full_rows, steady_state
from prony.steady.limits import SteadyLimits
from prony.steady.precision import half_width
from prony.steady.stretch import Series, level_up_to, still_to_come
from prony.trial.load_run import LoadRun
from prony.trial.surroundings import Surroundings, TrialObserver

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
        level = level_up_to(own, full_rows(self.other_cpus), limits=limits).of(self.series)
        found = still_to_come([level.ahead(self.length_s)]) if level is not None else None
        return None if found is None else found.bound


@dataclass(slots=True)
class SteadyWatch:
    """Waits between `min_s` and `cap_s` for steady rows that promise a `coming` window."""

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
        return cls(measured.precision, by_p50=plan.load.model == "open")

    def __call__(self, row: IntervalRow) -> bool:
        """Whether the figure is as precise as it was asked for, this row included."""
        value = row.p50_ns if self.by_p50 else row.completed_per_s
        if value is not None:
            self._values.append(float(value))
        half = half_width(self._values)
        return half is not None and half <= self.precision


def warm_up_cpus(asked: WarmUpPlan, surroundings: Surroundings) -> tuple[bool, tuple[int, ...]]:
    """Whether a server is pinned to its own CPUs while it warms up, and the CPUs that it has then."""
    pinned = asked.method != "all-cpus" or surroundings.partition.shared
    return pinned, surroundings.partition.server if pinned else surroundings.all_cpus


@dataclass(slots=True)
class Phases:
    """The stretches that have ended. `own_cpus`: the server's; empty where they are not ours to choose."""

    own_cpus: tuple[int, ...]
    ended: list[Phase] = field(default_factory=list)

    def add(self, name: str, start_ms: float, end_ms: float, cpus: Sequence[int] | None = None) -> None:
        """`cpus`: where the server was, its own by default."""
        where = self.own_cpus if cpus is None else tuple(cpus)
        values = {"name": name, "start_ms": start_ms, "end_ms": end_ms, "server_cpus": where}
        self.ended.append(Phase.model_validate(values))


@dataclass(slots=True)
class Warming:
    """Brings a server under load to the state in which it is measured."""

    plan: TrialPlan
    surroundings: Surroundings
    owned: bool
    """Whether the server's CPUs are ours to choose."""
    listener: TrialObserver
    phases: Phases
    limits: SteadyLimits = field(default_factory=SteadyLimits)
    found: bool = False
    """Whether another load has warmed the process up: it settles under this one."""
    new: bool = False
    """Whether none of them was of this workload: it brings code that the JIT compiler has not seen."""
    first_users: int = 0
    """So many users loaded the server just before, for `first_s`."""
    first_s: float = 0.0

    def warm(self, run: LoadRun) -> WarmUp | None:
        """For a fixed time, or until the server is level; None when no time is given."""
        asked = self.plan.warm_up
        if self.found and asked.method != "fixed":
            return self._settled(run, asked)
        if asked.method == "fixed":
            self.listener.phase("warm-up", asked.cap_s)
            return self._fixed(run, asked.cap_s)
        self.listener.phase("warm-up", asked.warm_s)
        return self._watched(run, asked)

    def _fixed(self, run: LoadRun, seconds: float) -> WarmUp | None:
        if not seconds:
            return None
        while run.now_ms() < seconds * 1000:
            run.next()
        self.phases.add("warm-up", 0.0, run.now_ms())
        return WarmUp(method="fixed", cap_s=seconds, steady=None)

    def _settled(self, run: LoadRun, asked: WarmUpPlan) -> WarmUp:
        """On its own CPUs, from when the whole load is there until what the plan waits for is there. Under a
        new workload the cap does not cut off a compiler at work: it has as long as in a fresh process.
        """
        self.listener.phase("settle", asked.settle_new_s if self.new else asked.settle_s)
        while run.now_ms() < self.plan.load.started_s * 1000:
            run.next()
        coming = self._coming(asked)
        own = self.surroundings.partition.server
        longest_s = asked.compiling_cap_s if self.new else None
        found = self._stretch(run, "settle", own, asked.settle_min_s, asked.settle_cap_s, coming, longest_s)
        return WarmUp(
            method="settled",
            cap_s=min(max(asked.settle_cap_s, found.took_s), longest_s or asked.settle_cap_s),
            steady=found.steady if found.cap_s > found.hold_rows else None,
            reason=found.state.reason if found.state else "",
            still_to_come=found.still_to_come,
            closed_users=self.first_users or None,
            closed_s=self.first_s,
        )

    def _watched(self, run: LoadRun, asked: WarmUpPlan) -> WarmUp:
        """Until steady or the cap; then back on its own CPUs until what the plan waits for is there."""
        own = self.surroundings.partition.server
        pinned, cpus = warm_up_cpus(asked, self.surroundings)
        coming = self._coming(asked)
        first = last = self._stretch(
            run, "warm-up", cpus, asked.min_s, asked.cap_s, None if self.owned else coming
        )
        if self.owned:
            self.listener.phase("settle", asked.settle_s)
            same = cpus == own
            if coming is not None:
                same_cpus, other_cpus = (first.rows, ()) if same else ((), first.rows)
                coming = replace(coming, same_cpus=same_cpus, other_cpus=other_cpus)
            last = self._stretch(run, "settle", own, asked.settle_min_s, asked.settle_cap_s, coming)
        since_ms = steady_since_ms(first, last, same_cpus=cpus == own)
        return WarmUp(
            method="unpinned" if not self.owned else "pinned" if pinned else "all-cpus",
            cap_s=asked.cap_s + (asked.settle_cap_s if self.owned else 0.0),
            # A stretch that cannot hold the rows a look needs says nothing, rather than *never steady*.
            steady=last.steady if last.cap_s > last.hold_rows else None,
            time_to_steady_s=None if since_ms is None else self.first_s + since_ms / 1000,
            reason=last.state.reason if last.state else "",
            still_to_come=last.still_to_come,
            closed_users=self.first_users or None,
            closed_s=self.first_s,
        )

    def _coming(self, asked: WarmUpPlan) -> ComingWindow | None:
        """What must be shown of the window before it opens; None where a level server is enough."""
        if asked.settle_until == "level":
            return None
        return ComingWindow(self.plan.measured_s, series="p50" if self.plan.load.model == "open" else "rate")

    def _stretch(
        self,
        run: LoadRun,
        name: str,
        cpus: tuple[int, ...],
        min_s: float,
        cap_s: float,
        coming: ComingWindow | None,
        compiling_cap_s: float | None = None,
    ) -> SteadyWatch:
        """Load with the server on these CPUs, until steady (and its bound holds) or the cap is reached."""
        moved = self.owned and run.server.set_affinity(cpus)
        start_ms = run.now_ms()
        hold_rows = max(3, min(HOLD_ROWS, round(min_s)))
        watch = SteadyWatch(min_s, cap_s, start_ms, hold_rows, coming, self.limits, compiling_cap_s)
        run.watch(watch.row)
        self.phases.add(name, start_ms, run.now_ms(), cpus if moved else None)
        return watch
