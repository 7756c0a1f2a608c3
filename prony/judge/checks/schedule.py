"""schedule: open model: was every request sent, and when it was due. Must not know how the pacer works."""

from __future__ import annotations

from prony.evidence.engine import EngineReport, Window
from prony.evidence.trial import Evidence
from prony.judge.finding import Finding, Status
from prony.judge.histogram import HistogramError, decode
from prony.judge.limits import CheckLimits
from prony.judge.words import measured, milliseconds, no_window, number, percent, unknown, worst
from prony.steady.detector import full_rows

CHECK = "schedule"
SOURCE = "k6, wrk2 and vegeta exit 0 when they do not reach the rate"
ROUNDING_REQUESTS = 1
"""A request due at a row's last moment may be sent in the next one."""
LAG_PERCENTILE = 99.9


def schedule(evidence: Evidence, limits: CheckLimits) -> Finding | None:
    """Sent ÷ due in every row, p99.9 send lag, due but unsent, blocked. Left out in a closed loop."""
    if evidence.load.model != "open":
        return None
    limit = (
        f"sent at least {percent(limits.schedule_achieved_min)} of what was due in every row, "
        "none unsent or blocked, p99.9 send lag up to "
        f"{number(limits.schedule_lag_floor_ms)} ms or "
        f"{percent(limits.schedule_lag_share)} of the median latency"
    )
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    share, missing = _lowest_row(window, evidence.engine, evidence, limits)
    lag_ms, allowed_ms = _lag_ms(window, limits)
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
    if lag_ms is None or allowed_ms is None:
        statuses.append(Status.UNKNOWN)
        said.append("send lag was not recorded")
    else:
        if lag_ms > allowed_ms:
            statuses.append(Status.SUSPECT)
        said.append(f"p99.9 send lag {milliseconds(lag_ms)} of {milliseconds(allowed_ms)} allowed")
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
    window: Window, report: EngineReport, evidence: Evidence, limits: CheckLimits
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
    for row in full_rows(report.rows, window.opened_ms, window.opened_ms + window.duration_s * 1000):
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
        missing += row.sent + ROUNDING_REQUESTS < limits.schedule_achieved_min * due
    return lowest, missing


def _lag_ms(window: Window, limits: CheckLimits) -> tuple[float | None, float | None]:
    """(p99.9 send lag, what is allowed) in ms; None where a histogram is missing."""
    median_of = window.latency or window.service_time
    try:
        lag = None if window.send_lag is None else decode(window.send_lag).percentile_ns(LAG_PERCENTILE)
        median = None if median_of is None else decode(median_of).percentile_ns(50)
    except HistogramError:
        return None, None
    if lag is None or median is None:
        return None, None
    return lag / 1e6, max(limits.schedule_lag_floor_ms, limits.schedule_lag_share * median / 1e6)
