"""schedule (open loop): was every request sent, and on time. Must not know how the pacer works."""

from __future__ import annotations

from prony.evidence.engine import Window
from prony.evidence.trial import Evidence
from prony.judge.check import NotNegative, Share, check
from prony.judge.checks.samples import SamplesLimits
from prony.judge.finding import Finding, Status
from prony.judge.histogram import HistogramError, decode, needed_samples
from prony.judge.words import measured, milliseconds, no_window, number, percent, unknown, worst
from prony.steady.detector import full_rows

CHECK = "schedule"
SOURCE = "k6, wrk2 and vegeta exit 0 when they do not reach the rate"
ROUNDING_REQUESTS = 1
"""A request due at the end of a row may be sent in the next one, as may all that are due within the allowed
lag.
"""
LAG_PERCENTILES = (99.9, 99.0, 90.0, 50.0)
"""The highest of these that the sample supports is judged, by the rule of the check `samples`: the p99.9 of
600 requests would be the single latest one.
"""


class ScheduleLimits(SamplesLimits):
    schedule_achieved_min: Share = 0.99
    """Sent ÷ due in every row. k6, wrk2 and vegeta end with exit code 0 below it."""
    schedule_lag_floor_ms: NotNegative = 1.0
    """Send lag (p99.9) that is always allowed ..."""
    schedule_lag_share: Share = 0.10
    """... or this share of the median latency, whichever is higher."""


@check(ScheduleLimits, order=110, essential=lambda evidence: evidence.load.model == "open")
def schedule(evidence: Evidence, limits: ScheduleLimits) -> Finding | None:
    """Sent ÷ due in every row, send lag, due and unsent, blocked arrivals. Left out in a closed loop."""
    if evidence.load.model != "open":
        return None
    limit = (
        f"at least {percent(limits.schedule_achieved_min)} of due requests sent in every row, "
        "none unsent or blocked, send lag (p99.9, or what the sample supports) up to "
        f"{number(limits.schedule_lag_floor_ms)} ms or "
        f"{percent(limits.schedule_lag_share)} of median latency"
    )
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    lag = _lag(window, limits)
    allowed_ms = limits.schedule_lag_floor_ms if lag is None else lag[2]
    share, missing = _lowest_row(window, evidence, limits, allowed_ms)
    said: list[str] = []
    statuses: list[Status] = []
    if share is None:
        statuses.append(Status.UNKNOWN)
        said.append("due requests were not counted")
    elif missing > 0:
        statuses.append(Status.INVALID)
        said.append(f"{missing} rows behind schedule, the worst with {percent(share)} of due requests sent")
    else:
        said.append(f"at least {percent(min(share, 1.0))} of due requests sent in every row")
    for count, what in (
        (window.due_unsent, "due and never sent"),
        (window.blocked, "blocked by the cap on users"),
    ):
        if count is None:
            statuses.append(Status.UNKNOWN)
            said.append(f"requests {what} were not counted")
        elif count > 0:
            statuses.append(Status.INVALID)
            said.append(f"{number(count)} requests {what}")
    if lag is None:
        statuses.append(Status.UNKNOWN)
        said.append("send lag was not recorded")
    else:
        percentile, lag_ms, _ = lag
        if lag_ms > allowed_ms:
            statuses.append(Status.SUSPECT)
        said.append(f"p{percentile:g} send lag {milliseconds(lag_ms)} of {milliseconds(allowed_ms)} allowed")
    status = worst(*statuses)
    if share is None and status is Status.UNKNOWN:
        return unknown(CHECK, "; ".join(said), limit=limit, source=SOURCE)
    return Finding(
        check=CHECK,
        status=status,
        value=share,
        limit=limit,
        reason="; ".join(said),
        advice="the client could not offer this rate: more client CPUs, a lower rate or a higher cap on users"
        if status in {Status.INVALID, Status.SUSPECT}
        else "",
        source=SOURCE,
    )


def _lowest_row(
    window: Window, evidence: Evidence, limits: ScheduleLimits, allowed_ms: float
) -> tuple[float | None, int]:
    """(lowest sent ÷ due of a row, number of rows below the limit after rounding); (None, 0) when not
    counted.

    For constant arrivals due requests follow from the rate; for others the engine must count them.
    """
    rate = (
        evidence.load.offered_per_s
        if evidence.load.arrivals == "constant" and not evidence.load.varies
        else None
    )
    lowest: float | None = None
    missing = 0
    rows = evidence.engine.rows if evidence.engine is not None else ()
    for row in full_rows(rows, window.opened_ms, window.opened_ms + window.duration_s * 1000):
        due = (
            row.offered
            if row.offered is not None
            else None
            if rate is None
            else rate * row.duration_ms / 1000
        )
        if due is None or row.sent is None:
            return None, 0
        if due <= 0:
            continue
        lowest = min(row.sent / due, 1.0 if lowest is None else lowest)
        later = ROUNDING_REQUESTS + due * allowed_ms / row.duration_ms
        missing += row.sent + later < limits.schedule_achieved_min * due
    return lowest, missing


def _lag(window: Window, limits: ScheduleLimits) -> tuple[float, float, float] | None:
    """(percentile, its send lag in ms, allowed lag in ms); None where a histogram is missing."""
    median_of = window.latency or window.service_time
    if window.send_lag is None or median_of is None:
        return None
    supported = [
        p for p in LAG_PERCENTILES if window.send_lag.count >= needed_samples(p, limits.samples_confidence)
    ]
    percentile = supported[0] if supported else LAG_PERCENTILES[-1]
    try:
        lag = decode(window.send_lag).percentile_ns(percentile)
        median = decode(median_of).percentile_ns(50)
    except HistogramError:
        return None
    if lag is None or median is None:
        return None
    allowed_ms = max(limits.schedule_lag_floor_ms, limits.schedule_lag_share * median / 1e6)
    return percentile, lag / 1e6, allowed_ms
