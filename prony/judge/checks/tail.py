"""tail: was the p99 of each second level through the window. Must not know throughput or p50, which `steady`
judges.

A cache that fills, a pool that runs short or a heap that grows shows first in the slowest percent, while p50
and throughput stay as they are.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from prony.evidence.trial import Evidence
from prony.judge.check import Positive, check
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.drift import level_rows
from prony.judge.finding import Finding, Status, no_window, unknown
from prony.judge.window import measured
from prony.numbers import percent
from prony.steady.changes import TREND_CONFIDENCE, Changes, find_changes, log_levels
from prony.steady.detector import full_rows
from prony.steady.quantile import t_quantile

CHECK = "tail"
SOURCE = "trend and change points of steady, on p99; Killick et al. 2012 (PELT)"


class TailLimits(SteadyWindowLimits):
    tail_change: Positive = 0.25
    """Change of p99 over the window, or between two levels of it, that may not be exceeded: ten times what
    `steady` allows p50, since the p99 of a second is that much noisier.
    """
    tail_change_invalid: Positive = 1.0
    """For a latency claim: p99 doubled, and the one that is printed describes neither end."""
    tail_min_rows: Annotated[int, Field(ge=6)] = 6
    """Rows below which nothing can be said."""
    tail_min_requests: Annotated[int, Field(ge=100)] = 100
    """Median requests per row: with fewer the p99 of a second is its maximum."""


@check(TailLimits, order=152)
def tail(evidence: Evidence, limits: TailLimits) -> Finding | None:
    """Change points and trend of p99 over the window's full rows under full load. *Valid* only where the
    bound of the trend is within the limit. Left out where the rate of arrivals changes by plan.
    """
    if evidence.load.phased:
        return None
    limit = f"p99 moves by at most {percent(limits.tail_change)} over the window"
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    end_ms = window.opened_ms + window.duration_s * 1000
    # While users still come, p99 follows their number.
    rows = level_rows(full_rows(evidence.engine.rows, window.opened_ms, end_ms), evidence.load)
    usable = [(row.completed, float(row.p99_ns)) for row in rows if row.p99_ns]
    if len(usable) < limits.tail_min_rows or len(usable) < 0.8 * len(rows):
        reason = f"{len(usable)} full rows with a p99, needs {limits.tail_min_rows}: too short to tell"
        return unknown(CHECK, reason, limit=limit, source=SOURCE)
    each = sorted(completed for completed, _ in usable)[len(usable) // 2]
    if each < limits.tail_min_requests:
        reason = f"{each} requests per row, needs {limits.tail_min_requests}: the p99 of a row is its maximum"
        return unknown(CHECK, reason, limit=limit, source=SOURCE)
    changes = find_changes(
        log_levels([p99_ns for _, p99_ns in usable]),
        penalty=limits.steady_penalty,
        least=math.log1p(limits.tail_change),
    )
    moved = math.expm1(changes.largest)
    low, high = bounds(changes, len(usable))
    span = f"{_signed(low)} to {_signed(high)}"
    latency = evidence.load.claim == "latency"
    advice = ""
    if abs(changes.largest) > math.log1p(limits.tail_change):
        doubled = abs(changes.largest) > math.log1p(limits.tail_change_invalid)
        status = Status.INVALID if latency and doubled else Status.SUSPECT
        how = "moved" if changes.is_trend else "stepped"
        reason = f"p99 {how} by {_signed(moved)} over the window in {len(usable)} rows: the tail drifts"
        advice = "measure longer until p99 is level, or look for what grows: a queue, a heap, a cache, a log"
    elif max(abs(math.log1p(low)), abs(math.log1p(high))) > math.log1p(limits.tail_change):
        status = Status.UNKNOWN
        reason = f"p99 of {len(usable)} rows is too noisy: its trend is {span} (99.5 %)"
    else:
        status = Status.VALID
        reason = f"trend of p99 over the window {span} (99.5 %)"
    return Finding(
        check=CHECK, status=status, value=abs(moved), limit=limit, reason=reason, advice=advice, source=SOURCE
    )


def _signed(share: float) -> str:
    return ("+" if share >= 0 else "") + percent(share)


def bounds(changes: Changes, rows: int) -> tuple[float, float]:
    """Interval of the relative change over the window by the trend, with the confidence of `steady`."""
    half = min(t_quantile(rows - 2, 0.5 + TREND_CONFIDENCE / 2) * changes.trend_error, 20.0)
    return math.expm1(changes.trend - half), math.expm1(changes.trend + half)
