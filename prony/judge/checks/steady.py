"""steady: is the window shown to be level, and at its plateau. Must not know how the server was warmed up,
only what is left of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Positive, Share, check
from prony.judge.drift import level_rows, level_stretch
from prony.judge.finding import Finding, Status, no_window, unknown
from prony.judge.window import measured
from prony.numbers import number, percent
from prony.steady.approach import Approach, rows_needed
from prony.steady.changes import MIN_SEGMENT_ROWS, Changes
from prony.steady.detector import Classified, classify, full_rows, median_changes, rate_changes
from prony.steady.limits import SteadyLimits
from prony.steady.stretch import Stretch, still_to_come

CHECK = "steady"
SOURCE = "Barrett et al. 2017; Killick et al. 2012 (PELT), by ruptures; Schuirmann 1987 (equivalence)"


class SteadyWindowLimits(DeclaredLimits):
    steady_change: Share = SteadyLimits().change
    """A difference between the levels of two segments, or a trend over the window, that may not
    be exceeded.
    """
    steady_change_invalid: Share = 0.10
    """From here on the mean over the window describes neither level."""
    steady_remaining: Positive = SteadyLimits().remaining
    """Plateau less window, and the trend within it, must be shown to be at most this (upper bound, 95 %)."""
    steady_penalty: Positive = SteadyLimits().penalty
    """Pelt's penalty in units of the residual variance; see docs/method.md for its calibration."""
    steady_min_rows: Annotated[int, Field(ge=6)] = 6
    """Rows below which nothing can be said."""

    @property
    def steady(self) -> SteadyLimits:
        """These limits as those of the detector in `prony.steady`."""
        return SteadyLimits(
            change=self.steady_change, remaining=self.steady_remaining, penalty=self.steady_penalty
        )


@check(SteadyWindowLimits, order=150, essential=lambda evidence: evidence.load.claim != "protocol")
def steady(evidence: Evidence, limits: SteadyWindowLimits) -> Finding | None:
    """Change points and trend of throughput and p50 over the window's full rows in which the load itself was
    level make it suspect or invalid; it is valid only where the upper bound on what is still to come is
    within the limit. In an open loop of p50 only: the schedule sets its throughput. Left out where the rate
    of arrivals changes by plan. The re-run of a fixed protocol, which includes the warm-up, is suspect at
    most.
    """
    if evidence.load.phased:
        return None
    limit = (
        f"at most {percent(limits.steady_remaining)} still to come, and no change above "
        f"{percent(limits.steady_change)} within the window "
        f"(above {percent(limits.steady_change_invalid)} invalid)"
    )
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    rows = level_rows(
        full_rows(evidence.engine.rows, window.opened_ms, window.opened_ms + window.duration_s * 1000),
        evidence.load,
    )
    if len(rows) < limits.steady_min_rows:
        return unknown(
            CHECK,
            f"{len(rows)} full rows in the window, needs {limits.steady_min_rows}: too short to tell",
            limit=limit,
            source=SOURCE,
            advice=f"measure for at least {limits.steady_min_rows + 2} s",
        )
    named = [("p50", median_changes(rows, limits.steady))]
    if evidence.load.model == "closed":
        named.insert(0, ("throughput", rate_changes(rows, limits.steady)))
    found = [(name, changes) for name, changes in named if changes is not None]
    if not found:
        return unknown(CHECK, "too many rows without p50", limit=limit, source=SOURCE)
    name, changes = max(found, key=lambda item: abs(item[1].largest))
    largest = abs(math.expm1(changes.largest))
    restless = evidence.warm_up is not None and evidence.warm_up.steady is False
    # Noise alone can keep a warm-up from ever looking steady, and a short window can miss a slow drift. Each
    # is weak evidence; both together are suspect, unless the trend is within its own standard error.
    doubtful = [
        (name, c) for name, c in found if abs(c.trend) > max(limits.steady_change, c.trend_error) and restless
    ]
    level = level_stretch(evidence, limits.steady)
    bound = still_to_come([level]) if level is not None else None
    said, advice, first = "no change above the limit", "", 0
    status = Status.VALID
    protocol = evidence.load.claim == "protocol"
    if largest > limits.steady_change:
        wrong = largest > limits.steady_change_invalid and not protocol
        status = Status.INVALID if wrong else Status.SUSPECT
        said = _said(
            name, changes, rows[0].t_ms - rows[0].duration_ms, [row.t_ms - row.duration_ms for row in rows]
        )
    elif doubtful:
        status, first = Status.SUSPECT, 2
        trends = ", ".join(f"{name} {_signed(c.trend)}" for name, c in doubtful)
        said = f"a trend over the window that is not significant by itself ({trends})"
    elif len(found) < len(named):
        status, advice = Status.UNKNOWN, "look at rows without a response: too few have a p50"
        said += " of throughput; too many rows without p50"
    elif bound is None or bound.bound > limits.steady_remaining:
        status, advice, first = Status.UNKNOWN, _more(bound, level, limits), 1
    finest = _resolution(found)
    unseen = f" (a step below about {percent(finest)} would not show)"
    parts = [
        f"{said} in {number(len(rows))} rows{unseen if largest <= limits.steady_change < finest else ''}",
        _to_come(bound),
        _cut_off(evidence, limits),
    ]
    parts.insert(0, parts.pop(first))  # what decided: a line of progress has room for no more
    said = "; ".join(filter(None, parts))
    moving = bound is not None and _is_moving(bound, limits)
    said += _drift(found, window.duration_s) + _whole_trial(evidence, moving)
    return Finding(
        check=CHECK,
        status=status,
        value=largest,
        limit=limit,
        reason=said,
        advice=advice or _advice(status, changes, bool(doubtful), protocol),
        source=SOURCE,
    )


def _to_come(bound: Approach | None) -> str:
    if bound is None:
        return "too few level rows to bound what is still to come"
    most = math.expm1(bound.bound)
    said = "what is still to come cannot be bounded" if most > 1 else f"at most {percent(most)} still to come"
    return f"{said} (95 %, from {number(bound.rows)} rows, {percent(bound.noise)} noise)"


def _more(bound: Approach | None, level: Stretch | None, limits: SteadyWindowLimits) -> str:
    """What it would take to show it."""
    if bound is None or level is None:
        return "measure longer"
    if _is_moving(bound, limits):
        coming = percent(math.expm1(abs(bound.remaining)))
        return f"warm up longer: the level is still moving, with about {coming} to come"
    needed = rows_needed(bound.noise, bound.autocorrelation, level.window_rows, limits.steady_remaining)
    more_s = max(needed - bound.rows, bound.rows / 4) * level.row_s
    return (
        f"warm up or measure for about {number(max(1, round(more_s)))} s more, or find what makes the noise"
    )


def _is_moving(bound: Approach, limits: SteadyWindowLimits) -> bool:
    """Whether what the fit says is still to come is above the limit and beyond its own error: the bound is
    the estimate and t standard errors.
    """
    beyond_error = abs(bound.remaining) > bound.bound - abs(bound.remaining)
    return beyond_error and abs(bound.remaining) > limits.steady_remaining


def _cut_off(evidence: Evidence, limits: SteadyWindowLimits) -> str:
    """What the cap of the warm-up cut off."""
    warm = evidence.warm_up
    if warm is None:
        return ""
    if warm.steady is False:
        return f"never steady within {number(warm.cap_s)} s of warm-up"
    left = warm.still_to_come
    if left is None or left <= limits.steady_remaining:
        return ""
    most = math.expm1(left)
    coming = "what was to come not bounded" if most > 1 else f"up to {percent(most)} to come"
    return f"the warm-up ended at its cap, with {coming}"


LONG_S = 600.0
"""From this length on a window is a soak, and its drift per hour is reported."""


def _drift(found: Sequence[tuple[str, Changes]], duration_s: float) -> str:
    """The trend over a long window, scaled to an hour."""
    if duration_s < LONG_S:
        return ""
    hourly = [f"{name} {math.expm1(c.trend / duration_s * 3600) * 100:+.2g} %" for name, c in found]
    return f"; drift per hour: {', '.join(hourly)}"


def _said(name: str, changes: Changes, start_ms: float, begins_ms: list[float]) -> str:
    by = _signed(changes.largest)
    if changes.is_trend:
        return f"{name} moved by {by} over the window"
    steps = [abs(b - a) for a, b in pairwise(changes.levels)]
    at_s = (begins_ms[changes.cuts[steps.index(max(steps))]] - start_ms) / 1000
    return f"{name} stepped by {by} about {number(round(max(at_s, 0)))} s into the window"


def _signed(log_change: float) -> str:
    return f"{math.expm1(log_change) * 100:+.3g} %"


def _resolution(found: list[tuple[str, Changes]]) -> float:
    """The smallest detectable step: of throughput; in an open loop, whose rate is given, of p50."""
    return found[0][1].resolution


def _whole_trial(evidence: Evidence, moving: bool) -> str:
    """The class of the whole trial on the CPUs of the window; empty when it is little more than the window,
    and where no step was seen in a level that is `moving`.
    """
    whole = whole_trial(evidence)
    if whole is None:
        return ""
    if whole.klass == "flat":
        return "" if moving else "; no change of level seen from the first request on"
    since = "" if whole.since_ms is None else f", level since {number(round(whole.since_ms / 1000))} s"
    return f"; from the first request: {whole.klass}{since}"


def whole_trial(evidence: Evidence) -> Classified | None:
    """The class of the trial from its first request to the window's end.

    Rows in which the server had other CPUs (a warm-up on all CPUs) are left out: Prony causes the step when
    it moves the server. None when little more than the window is left, and in an open loop, whose schedule
    sets the throughput.
    """
    window = measured(evidence)
    if window is None or evidence.engine is None or evidence.load.model == "open":
        return None
    end_ms = window.opened_ms + window.duration_s * 1000
    cpus = next((p.server_cpus for p in evidence.phases if p.name == "window"), ())
    moved = [p for p in evidence.phases if p.server_cpus != cpus]
    rows = [
        row
        for row in level_rows(full_rows(evidence.engine.rows, 0.0, end_ms), evidence.load)
        if not any(row.t_ms > p.start_ms and row.t_ms - row.duration_ms < p.end_ms for p in moved)
    ]
    before = sum(row.t_ms <= window.opened_ms for row in rows)
    return classify(rows) if before >= MIN_SEGMENT_ROWS else None


def _advice(status: Status, changes: Changes, never: bool, protocol: bool) -> str:
    if status in {Status.VALID, Status.UNKNOWN}:
        return ""
    if protocol:
        return "this protocol's figure averages several levels: measure a steady window for one level"
    if never:
        return "warm up longer, or report that this server has no steady state"
    if changes.largest > 0:
        return "warm up longer: it was still changing when the window opened"
    return "measure longer: may be garbage collection, a leak or another process (see isolation, host, stall)"
