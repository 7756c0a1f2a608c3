"""Residual drift of a server's figures after the window, up to a horizon: per trial, or pooled per cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.finding import CPU, MEAN, PERCENTILES, THROUGHPUT, Plateau
from prony.judge.window import measured
from prony.steady.approach import Approach
from prony.steady.detector import full_rows
from prony.steady.limits import SteadyLimits
from prony.steady.stretch import LevelRows, Series, Stretch, level_up_to, residual_drift

OF_P99 = ("p95_ms", "p99_ms", "p999_ms")
OF_P50 = tuple(name for name in PERCENTILES if name not in OF_P99)


def series_of(load: LoadFacts) -> Mapping[str, tuple[Series, int]]:
    """Figure -> (series of rows that bounds its drift, sign): -1 where the figure falls as the series rises.

    In a closed loop without think time the mean time is users ÷ rate (Little), and CPU per request is CPU ÷
    rate. Elsewhere the schedule sets the rate, or nearly, so p50 bounds both.
    """
    tail: dict[str, tuple[Series, int]] = dict.fromkeys(OF_P99, ("p99", 1))
    middle: dict[str, tuple[Series, int]] = dict.fromkeys(OF_P50, ("p50", 1))
    if load.model == "closed" and load.think_kind == "none":
        rate: dict[str, tuple[Series, int]] = dict.fromkeys(THROUGHPUT, ("rate", 1))
        return {**rate, **dict.fromkeys((*MEAN, *CPU), ("rate", -1)), **middle, **tail}
    rest: dict[str, tuple[Series, int]] = dict.fromkeys((*MEAN, *CPU), ("p50", 1))
    if load.model == "closed":
        rest |= dict.fromkeys(THROUGHPUT, ("rate", 1))
    return {**rest, **middle, **tail}


def claims_plateau(evidence: Evidence) -> bool:
    """Whether a plateau is claimed: not for a rate that changes by plan, nor for a fixed protocol."""
    return not evidence.load.phased and evidence.load.claim != "protocol"


def pooled_drift(levels: Sequence[Stretch | None], horizon_s: float) -> Approach | None:
    """Residual drift pooled over a cell's trials; None where a trial has too few rows."""
    stretches = [level for level in levels if level is not None]
    return residual_drift(stretches, horizon_s=horizon_s) if len(stretches) == len(levels) else None


def plateau_of(approach: Approach | None, sign: int, horizon_s: float) -> Plateau:
    """Relative bounds of a figure that moves with the series (sign 1) or against it (-1)."""
    if approach is None:
        return Plateau(low=None, high=None, horizon_s=horizon_s)
    low, high = (approach.low, approach.high) if sign > 0 else (-approach.high, -approach.low)
    return Plateau(low=_relative(low), high=_relative(high), horizon_s=horizon_s)


MOST = math.log(20.0)
"""A factor beyond this bounds nothing."""


def _relative(log_change: float) -> float | None:
    return math.expm1(log_change) if abs(log_change) < MOST else None


def level_stretch(
    evidence: Evidence, limits: SteadyLimits | None = None, series: Series = "rate"
) -> Stretch | None:
    """One series; None without a window, or where too many rows have no value."""
    level = level_of(evidence, limits)
    return None if level is None else level.of(series)


def level_of(evidence: Evidence, limits: SteadyLimits | None = None) -> LevelRows | None:
    """The window and the level rows before it, without the published part of a cold server."""
    window = measured(evidence)
    if window is None or evidence.engine is None or evidence.load.phased:
        return None
    end_ms = window.opened_ms + window.duration_s * 1000
    rows = level_rows(full_rows(evidence.engine.rows, 0.0, end_ms), evidence.load)
    own_ms, elsewhere_ms = _moves(evidence)
    return level_up_to(
        [row for row in rows if row.t_ms - row.duration_ms >= own_ms],
        [row for row in rows if row.t_ms - row.duration_ms >= elsewhere_ms and row.t_ms <= own_ms],
        opens_ms=window.opened_ms,
        limits=limits,
    )


def level_rows(rows: Sequence[IntervalRow], load: LoadFacts) -> list[IntervalRow]:
    """Rows in which the full load was on: all users active, or arrivals at their full rate."""
    if load.model == "open":
        end_ms = math.inf if load.arrivals_end_s is None else load.arrivals_end_s * 1000
        return [
            row
            for row in rows
            if row.t_ms - row.duration_ms >= load.ramp_up_s * 1000 and row.t_ms <= end_ms + 0.5
        ]
    planned = load.at_once if load.populations else load.users
    if planned is None:
        return list(rows)
    there = [row.users is None or row.users >= planned for row in rows]
    return [row for at, row in enumerate(rows) if there[at] and there[max(0, at - 1)]]


def _moves(evidence: Evidence) -> tuple[float, float]:
    own_ms = elsewhere_ms = 0.0
    before = [p for p in evidence.phases if p.name != "after"]
    cpus = next((p.server_cpus for p in before if p.name == "window"), None)
    while before and before[-1].server_cpus == cpus and not before[-1].compiler_cpus:
        own_ms = before.pop().start_ms
    if before:
        elsewhere_ms = before[-1].start_ms
    return own_ms, min(own_ms, elsewhere_ms)
