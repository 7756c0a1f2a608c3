"""schedule: open model: was every request sent, and when it was due. Must not know how the pacer works."""

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
"""A request due at a row's last moment may be sent in the next one; with them all that are due within the
lag that is allowed."""
LAG_PERCENTILES = (99.9, 99.0, 90.0, 50.0)
"""Of the send lag the highest is judged that the sample supports, by the rule of the check `samples`: the
p99.9 of 600 requests would be the latest of them all, and one late request is no late client."""


class ScheduleLimits(SamplesLimits):
    schedule_achieved_min: Share = 0.99
    """Sent ÷ due in every row. k6, wrk2 and vegeta end with exit code 0 below it."""
    schedule_lag_floor_ms: NotNegative = 1.0
    """The p99.9 send lag may always be this much ..."""
    schedule_lag_share: Share = 0.10
    """... or this share of the median latency, whichever is more."""


@check(ScheduleLimits, order=110, essential=lambda evidence: evidence.load.model == "open")
def schedule(evidence: Evidence, limits: ScheduleLimits) -> Finding | None:
    """Sent ÷ due in every row, send lag, due but unsent, blocked. Left out in a closed loop."""
    if evidence.load.model != "open":
        return None
    limit = (
        f"sent at least {percent(limits.schedule_achieved_min)} of what was due in every row, "
        "none unsent or blocked, send lag (p99.9, or what the sample supports) up to "
        f"{number(limits.schedule_lag_floor_ms)} ms or "
        f"{percent(limits.schedule_lag_share)} of the median latency"
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
        said.append("what was due was not counted")
    elif missing > 0:
        statuses.append(Status.INVALID)
        said.append(f"{missing} rows fell behind, the worst sent {percent(share)} of what was due")
    else:
        said.append(f"every row sent at least {percent(min(share, 1.0))} of what was due")
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
        advice="the client could not offer this rate: more client CPUs, a lower rate, a higher cap on users"
        if status in {Status.INVALID, Status.SUSPECT}
        else "",
        source=SOURCE,
    )


def _lowest_row(
    window: Window, evidence: Evidence, limits: ScheduleLimits, allowed_ms: float
) -> tuple[float | None, int]:
    """(lowest sent ÷ due of a row, how many rows are below the limit after rounding); (None, 0) when not
    counted.

    Constant arrivals need no counter of what was due; for others the engine must say it.
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
    """(percentile, send lag there in ms, what is allowed in ms); None where a histogram is missing."""
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
