"""Steady-state detection on interval rows: each second of a warm-up, and for the chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from prony.evidence.engine import IntervalRow
from prony.evidence.server import JvmSnapshot
from prony.numbers import percent
from prony.steady.changes import Changes, find_changes, log_levels, unsettled_rows
from prony.steady.limits import SteadyClass, SteadyLimits

HOLD_ROWS = 10
"""Newest rows that must be level: long enough for a garbage collection or two."""
MAX_STRETCH_ROWS = 120
JIT_SHARE_MAX = 0.02
"""Compilation ÷ process CPU over the newest rows, above which the server is warming up."""
WAITING_SHARE_MAX = 0.25
"""Waits of compilations for a CPU ÷ length of the newest rows, from which the compiler is starved."""
FULL_ROW_SHARE = 0.5
"""Share of the median row's length below which a row is left out: its rate is mostly rounding."""
CHART_MAX_CHANGES = 6
"""Most changes over a whole run, which has more levels than a window."""


@dataclass(frozen=True, slots=True)
class SteadyState:
    """State of the rows so far; classes of Barrett et al. 2017, Virtual Machine Warmup Blows Hot and Cold."""

    steady: bool
    since_ms: float | None
    """Start of the steady stretch (engine time); None when not steady."""
    klass: SteadyClass
    reason: str


def full_rows(
    rows: Sequence[IntervalRow], start_ms: float | None = None, end_ms: float | None = None
) -> list[IntervalRow]:
    """Full-length rows inside [start_ms, end_ms], ± 0.5 ms."""
    inside = [
        row
        for row in rows
        if row.duration_ms > 0
        and (start_ms is None or row.t_ms - row.duration_ms >= start_ms - 0.5)
        and (end_ms is None or row.t_ms <= end_ms + 0.5)
    ]
    if not inside:
        return []
    usual = median([row.duration_ms for row in inside])
    return [row for row in inside if row.duration_ms >= FULL_ROW_SHARE * usual]


def rate_changes(rows: Sequence[IntervalRow], limits: SteadyLimits, max_changes: int = 2) -> Changes:
    logs = log_levels([row.completed_per_s for row in rows])
    return find_changes(
        logs, penalty=limits.penalty, least=math.log1p(limits.change), max_changes_for_variance=max_changes
    )


def median_changes(rows: Sequence[IntervalRow], limits: SteadyLimits) -> Changes | None:
    """Changes of the rows' median service time; None when fewer than four fifths of the rows have one."""
    medians = [float(row.p50_ns) for row in rows if row.p50_ns is not None and row.p50_ns > 0]
    if len(medians) < 0.8 * len(rows) or not medians:
        return None
    return find_changes(log_levels(medians), penalty=limits.penalty, least=math.log1p(limits.change))


def change_points_ms(rows: Sequence[IntervalRow]) -> tuple[float, ...]:
    """Times (engine clock) at which the level of throughput changed, for the chart of a whole run."""
    usable = full_rows(rows)
    changes = rate_changes(usable, SteadyLimits(), CHART_MAX_CHANGES)
    return tuple(usable[cut].t_ms - usable[cut].duration_ms for cut in changes.cuts)


def steady_state(
    rows: Sequence[IntervalRow],
    jvm: Sequence[JvmSnapshot] = (),
    limits: SteadyLimits | None = None,
    hold_rows: int = HOLD_ROWS,
) -> SteadyState:
    """Whether the newest `hold_rows` rows are level in throughput and p50 and the JIT compiler is idle.

    Level: no change point, and a trend below `limits.change` or its standard error. Takes a few milliseconds.
    """
    limits = limits or SteadyLimits()
    usable = full_rows(rows)
    if len(usable) < hold_rows:
        return _not_yet(f"{len(usable)} of {hold_rows} rows")
    newest = usable[-hold_rows:]
    restless = _unlevel(newest, limits)
    if restless is not None:
        return _not_yet(f"over the last {hold_rows} rows {restless}")
    at_work = _at_work(jvm, _span_s(newest))
    if at_work is not None:
        return _not_yet(at_work)
    start = len(usable) - _stretch(usable, limits, hold_rows)
    klass = _class(usable, start, limits)
    since_ms = usable[start].t_ms - usable[start].duration_ms
    level = median([row.completed_per_s for row in usable[start:]])
    return SteadyState(
        True, since_ms, klass, f"level for {len(usable) - start} rows at {level:,.0f} requests/s ({klass})"
    )


def compiling(rows: Sequence[IntervalRow], jvm: Sequence[JvmSnapshot], hold_rows: int = HOLD_ROWS) -> bool:
    return _at_work(jvm, _span_s(full_rows(rows)[-hold_rows:])) is not None


def _at_work(jvm: Sequence[JvmSnapshot], span_s: float) -> str | None:
    share, waiting = jit_share(jvm, span_s), waiting_share(jvm, span_s)
    if share is not None and share > JIT_SHARE_MAX:
        return f"JIT compilation takes {percent(share)} of server CPU"
    if waiting is not None and waiting >= WAITING_SHARE_MAX:
        return f"JIT compilations wait for a CPU {percent(waiting)} of the time"
    return None


def waiting_share(jvm: Sequence[JvmSnapshot], span_s: float) -> float | None:
    """Wait of compilations for a CPU ÷ the last `span_s` s, summed over compilers; None when not known."""
    ends = _ends(jvm, span_s)
    waiting_s = None if ends is None else waited_s(*ends)
    if ends is None or waiting_s is None:
        return None
    between_s = ends[1].t_monotonic_s - ends[0].t_monotonic_s
    return waiting_s / between_s if between_s > 0 else None


def _ends(jvm: Sequence[JvmSnapshot], span_s: float) -> tuple[JvmSnapshot, JvmSnapshot] | None:
    if not jvm:
        return None
    newest = jvm[-1]
    oldest = next((s for s in jvm if s.t_monotonic_s >= newest.t_monotonic_s - span_s - 0.5), newest)
    return None if oldest is newest else (oldest, newest)


def jit_share(jvm: Sequence[JvmSnapshot], span_s: float) -> float | None:
    """Compilation ÷ process CPU over the last `span_s` seconds of readings; None when not known."""
    ends = _ends(jvm, span_s)
    took_s = None if ends is None else compiling_s(*ends)
    if ends is None or took_s is None:
        return None
    oldest, newest = ends
    if newest.process_cpu_s is not None and oldest.process_cpu_s is not None:
        base = newest.process_cpu_s - oldest.process_cpu_s
    else:
        base = newest.t_monotonic_s - oldest.t_monotonic_s
    return took_s / base if base > 0 else None


def _not_yet(reason: str) -> SteadyState:
    return SteadyState(False, None, "no steady state", reason)


def _span_s(rows: Sequence[IntervalRow]) -> float:
    return sum(row.duration_ms for row in rows) / 1000


def _unlevel(rows: Sequence[IntervalRow], limits: SteadyLimits) -> str | None:
    if not any(row.completed for row in rows):
        return "nothing completed"
    series = (("throughput", rate_changes(rows, limits)), ("p50", median_changes(rows, limits)))
    for name, changes in series:
        if changes is None:
            continue
        if changes.cuts:
            return f"{name} stepped by {percent(math.expm1(changes.largest_step))}"
        if abs(changes.trend) > max(limits.change, changes.trend_error):
            return f"{name} moved by {percent(math.expm1(changes.trend))}"
    return None


def level_rows_at_end(rows: Sequence[IntervalRow], limits: SteadyLimits, least: int) -> Sequence[IntervalRow]:
    """The last `least` rows and up to MAX_STRETCH_ROWS before them without a significant change."""
    return rows[len(rows) - _stretch(rows, limits, least, least + MAX_STRETCH_ROWS) :] if rows else rows


def _stretch(
    rows: Sequence[IntervalRow], limits: SteadyLimits, hold_rows: int, most: int = MAX_STRETCH_ROWS
) -> int:
    longest = min(len(rows), most)
    if not _changed(rows[-longest:], limits):
        length = max(hold_rows, longest)
    else:  # bisection for the change
        length, too_long = hold_rows, longest
        while too_long - length > 1:
            middle = (length + too_long) // 2
            if _changed(rows[-middle:], limits):
                too_long = middle
            else:
                length = middle
    logs = log_levels([row.completed_per_s for row in rows[-length:]])
    return max(hold_rows, length - unsettled_rows(logs))


def _changed(rows: Sequence[IntervalRow], limits: SteadyLimits) -> bool:
    both = (find(rows, limits) for find in (rate_changes, median_changes))
    return any(changes is not None and abs(changes.largest) > limits.change for changes in both)


def _class(rows: Sequence[IntervalRow], start: int, limits: SteadyLimits) -> SteadyClass:
    if start == 0:
        return "flat"
    levels = rate_changes(rows, limits, CHART_MAX_CHANGES).levels
    if max(levels) - min(levels) <= limits.change:
        return "flat"
    now = float(np.mean(log_levels([row.completed_per_s for row in rows])[start:]))
    return "slowdown" if max(levels) > now + limits.change else "warm-up"


def compiling_s(before: JvmSnapshot, after: JvmSnapshot) -> float | None:
    """CPU time of the compiler threads; else elapsed time of compilations that ended in between."""
    if not elapsed_only(before, after):
        return _between(before.compilers_cpu_s, after.compilers_cpu_s)
    return _between(before.jit_time_s, after.jit_time_s)


def waited_s(before: JvmSnapshot, after: JvmSnapshot) -> float | None:
    """Wait for a CPU of compilations that ended in between, summed over compilers; None: not known."""
    if elapsed_only(before, after):
        return None
    took_s = _between(before.jit_time_s, after.jit_time_s)
    ran_s = _between(before.compilers_cpu_s, after.compilers_cpu_s)
    return None if took_s is None or ran_s is None else max(0.0, took_s - ran_s)


def elapsed_only(before: JvmSnapshot, after: JvmSnapshot) -> bool:
    """Whether only the JVM's own count is known, which includes waits for a CPU."""
    return before.compilers_cpu_s is None or after.compilers_cpu_s is None


def _between(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)
