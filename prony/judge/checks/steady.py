"""steady: residual drift of each figure after the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, Positive, Share, check
from prony.judge.drift import MOST, claims_plateau, level_of, level_rows, plateau_of, pooled_drift, series_of
from prony.judge.finding import Finding, Plateau, no_window
from prony.judge.window import measured
from prony.numbers import number, percent
from prony.steady.approach import Approach, rows_needed
from prony.steady.changes import Changes
from prony.steady.detector import full_rows, median_changes, rate_changes
from prony.steady.limits import SteadyLimits
from prony.steady.stretch import Series

CHECK = "steady"
SOURCE = "Barrett et al. 2017; Killick et al. 2012 (PELT); Schuirmann 1987 (equivalence)"


class SteadyWindowLimits(DeclaredLimits):
    steady_change: Share = SteadyLimits().change
    """Change between segments, or trend over the window, from which it is named."""
    steady_horizon_s: Positive = 60.0
    """How long after the window a claim about the plateau holds."""
    steady_remaining: Positive = SteadyLimits().remaining
    """Expected residual drift at which a warm-up ends, before its cap."""
    steady_penalty: Positive = SteadyLimits().penalty
    """Pelt's penalty in units of the residual variance; see docs/method.md for its calibration."""
    steady_min_rows: Annotated[int, Field(ge=6)] = 6
    """Fewest rows for a change."""

    @property
    def steady(self) -> SteadyLimits:
        return SteadyLimits(
            change=self.steady_change, remaining=self.steady_remaining, penalty=self.steady_penalty
        )


@check(SteadyWindowLimits, order=150)
def steady(evidence: Evidence, limits: SteadyWindowLimits) -> Finding | None:
    """Residual drift of each figure; None where arrival rates change by plan. A protocol has no plateau."""
    if evidence.load.phased:
        return None
    horizon_s = limits.steady_horizon_s
    limit = f"residual drift until {number(horizon_s)} s after the window"
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    rows = level_rows(
        full_rows(evidence.engine.rows, window.opened_ms, window.opened_ms + window.duration_s * 1000),
        evidence.load,
    )
    main: Series = "p50" if evidence.load.model == "open" else "rate"
    moved = _largest_change(rows, main, limits)
    claimed = claims_plateau(evidence)
    drifts: dict[Series, Approach | None] = {}
    plateau: dict[str, Plateau] = {}
    if claimed:
        level = level_of(evidence, limits.steady)
        for figure, (series, sign) in series_of(evidence.load).items():
            if series not in drifts:
                drifts[series] = pooled_drift([None if level is None else level.of(series)], horizon_s)
            plateau[figure] = plateau_of(drifts[series], sign, horizon_s)
    bound = drifts.get(main)
    name = "p50" if main == "p50" else "throughput"
    texts = []
    if not claimed:
        code, texts = "protocol", ["fixed protocol: claims hold for the window only"]
    elif bound is None:
        code, texts = "too_short", [f"{len(rows)} level rows: residual drift is not bounded"]
    else:
        code = "moving" if bound.low > 0 or bound.high < 0 else "level"
        texts = [f"{name} may change by {_span(bound)} within {number(horizon_s)} s"]
    if moved is not None:
        code = "stepped" if code in {"level", "too_short"} else code
        texts.append(f"{name} changed {_signed(moved)} within the window")
    texts.append(_cut_off(evidence))
    return Finding(
        check=CHECK,
        code=code,
        plateau=plateau,
        value=None if bound is None else math.expm1(min(bound.bound, MOST)),
        limit=limit,
        reason="; ".join(filter(None, texts)) + _drift(rows, main, window.duration_s, limits),
        assumption="an exponential approach with a time constant of 3 to 300 s, or a straight line",
        advice=_advice(code, bound, evidence, limits),
        source=SOURCE,
    )


def _span(bound: Approach) -> str:
    ends = [_signed(max(-MOST, min(MOST, end))) for end in (bound.low, bound.high)]
    return f"{ends[0]} to {ends[1]}"


def _largest_change(rows: Sequence[IntervalRow], series: Series, limits: SteadyWindowLimits) -> float | None:
    if len(rows) < limits.steady_min_rows:
        return None
    changes = _changes(rows, series, limits)
    if changes is None or abs(changes.largest) <= math.log1p(limits.steady_change):
        return None
    return changes.largest


def _changes(rows: Sequence[IntervalRow], series: Series, limits: SteadyWindowLimits) -> Changes | None:
    return rate_changes(rows, limits.steady) if series == "rate" else median_changes(rows, limits.steady)


def _advice(code: str, bound: Approach | None, evidence: Evidence, limits: SteadyWindowLimits) -> str:
    if code == "protocol":
        return "for a claim beyond the window, measure a steady window"
    if bound is None:
        return f"measure for at least {limits.steady_min_rows + 2} s"
    if code == "moving":
        return "warm up longer: the level is still moving"
    window = measured(evidence)
    rows = 0 if window is None else max(1, round(window.duration_s))
    needed = rows_needed(bound.noise, bound.autocorrelation, rows, limits.steady_remaining)
    more_s = max(0, needed - bound.rows)
    return (
        f"about {number(more_s)} s more of load would bound it to {percent(limits.steady_remaining)}"
        if more_s
        else ""
    )


def _cut_off(evidence: Evidence) -> str:
    warm = evidence.warm_up
    return (
        f"not level within {number(warm.cap_s)} s of warm-up"
        if warm is not None and warm.steady is False
        else ""
    )


LONG_S = 600.0


def _drift(rows: Sequence[IntervalRow], series: Series, duration_s: float, limits: SteadyWindowLimits) -> str:
    changes = _changes(rows, series, limits) if duration_s >= LONG_S else None
    return "" if changes is None else f"; {_signed(changes.trend / duration_s * 3600)} per hour"


def _signed(log_change: float) -> str:
    return f"{math.expm1(log_change) * 100:+.3g} %"
