"""schedule (open loop): was every request sent, and on time. Must not know how the pacer works."""

from __future__ import annotations

from dataclasses import dataclass

from prony.evidence.engine import Window
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Share, check
from prony.judge.finding import WORST_FIRST, Finding, Status, no_window, unknown, worst
from prony.judge.histogram import HistogramError, decode
from prony.judge.window import measured, request_times
from prony.numbers import milliseconds, number, percent
from prony.steady.detector import full_rows

CHECK = "schedule"
SOURCE = "k6, wrk2 and vegeta exit 0 when they do not reach the rate"
ROUNDING_REQUESTS = 1
"""A request due at the end of a row may be sent in the next one, as may all that are due within the allowed
lag.
"""
LAG_PERCENTILES = (99.9, 99.0, 90.0, 50.0)
CLAIMED_MOST = 99.0
"""The highest percentile that every table prints."""
LATEST_BEYOND = 5
"""The highest of these with this many requests beyond it is judged: the p99.9 of 600 requests would be the
single latest one.
"""


class ScheduleLimits(DeclaredLimits):
    schedule_achieved_min: Share = 0.99
    """Of due requests, this many must be sent; the rest is the backlog at a row's end. k6, wrk2 and vegeta
    end with exit code 0 below it.
    """
    schedule_lag_floor_ms: NotNegative = 1.0
    """Send lag (p99.9) that is always allowed ..."""
    schedule_lag_share: Share = 0.10
    """... or this share of the median latency, whichever is higher."""
    schedule_lag_invalid: Share = 0.10
    """Part of the p99 latency that late sends made, from which on it is the client's p99: the share at which
    run delay makes a mean the client's (`client_run_delay_invalid`).
    """


@check(ScheduleLimits, order=110, essential=lambda evidence: evidence.load.model == "open")
def schedule(evidence: Evidence, limits: ScheduleLimits) -> Finding | None:
    """Backlog at the end of every row, send lag and its part of the p99 latency, due and unsent, blocked
    arrivals. Left out in a closed loop.
    """
    if evidence.load.model != "open":
        return None
    limit = (
        f"at least {percent(limits.schedule_achieved_min)} of due requests sent by the end of every row, "
        "none unsent or blocked, send lag (p99.9, or what the sample supports) up to "
        f"{number(limits.schedule_lag_floor_ms)} ms or "
        f"{percent(limits.schedule_lag_share)} of median latency, its part of p99 latency below "
        f"{percent(limits.schedule_lag_invalid)}"
    )
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    lag = _lag(window, limits)
    allowed_ms = limits.schedule_lag_floor_ms if lag is None else lag[2]
    backlog = _backlog(window, evidence, limits, allowed_ms)
    said: list[tuple[Status, str]] = []
    if backlog is None:
        said.append((Status.UNKNOWN, "due requests were not counted"))
    else:
        late = [
            f"{count} {'row' if count == 1 else 'rows'} behind schedule{how}"
            for count, how in ((backlog.held, ""), (backlog.cleared, " and caught up in the next"))
            if count
        ]
        how = Status.INVALID if backlog.held else Status.SUSPECT if backlog.cleared else Status.VALID
        sent = f"{percent(backlog.lowest)} of due requests sent"
        text = f"{', '.join(late)}, the worst with {sent}" if late else f"at least {sent} in every row"
        said.append((how, text))
    for count, what, how in (
        (window.due_unsent, "due and not sent in the window", _unsent(window, evidence, limits)),
        (window.blocked, "blocked by the cap on users", Status.INVALID),
    ):
        if count is None:
            said.append((Status.UNKNOWN, f"requests {what} were not counted"))
        elif count > 0:
            soon = ", but soon after" if how is Status.SUSPECT else ""
            said.append((how, f"{number(count)} requests {what}{soon}"))
    if lag is None:
        said.append((Status.UNKNOWN, "send lag was not recorded"))
    else:
        percentile, lag_ms, _ = lag
        text = f"p{percentile:g} send lag {milliseconds(lag_ms)} of {milliseconds(allowed_ms)} allowed"
        said.append((Status.SUSPECT if lag_ms > allowed_ms else Status.VALID, text))
    moved = _moved(window)
    if moved is not None and moved.lag_ms > allowed_ms and moved.share >= limits.schedule_lag_invalid:
        text = (
            f"late sends are {percent(moved.share)} of the p{moved.percentile:g} latency: "
            f"{milliseconds(moved.latency_ms)}, and {milliseconds(moved.without_ms)} from the actual send"
        )
        said.append((Status.INVALID, text))
    status = worst(*(how for how, _ in said))
    # What decided stands first: a line of progress has room for no more.
    reason = "; ".join(text for _, text in sorted(said, key=lambda one: WORST_FIRST.index(one[0])))
    if backlog is None and status is Status.UNKNOWN:
        return unknown(CHECK, reason, limit=limit, source=SOURCE)
    return Finding(
        check=CHECK,
        status=status,
        value=None if backlog is None else backlog.lowest,
        limit=limit,
        reason=reason,
        advice=_advice(evidence) if status in {Status.INVALID, Status.SUSPECT} else "",
        source=SOURCE,
    )


def _advice(evidence: Evidence) -> str:
    advice = "the client could not offer this rate: more client CPUs, a lower rate or a higher cap on users"
    threads = evidence.engine.ready.threads if evidence.engine is not None else ()
    if any(thread.realtime is False for thread in threads) and evidence.server.owned:
        advice += "; or let its threads go before ordinary ones (run as root, or with ulimit -r 1)"
    return advice


@dataclass(frozen=True, slots=True)
class Backlog:
    """What was due and not yet sent at the ends of rows."""

    lowest: float
    """Sent ÷ due of the worst row."""
    held: int = 0
    """Rows at whose end a backlog above the limit remained that the next row did not clear ..."""
    cleared: int = 0
    """... and those where it did."""


def _backlog(window: Window, evidence: Evidence, limits: ScheduleLimits, allowed_ms: float) -> Backlog | None:
    """The backlog of the full rows in the window, which begins with none; None when not counted.

    It grows by what was due and not sent, less the share that may be missing, shrinks by what was sent
    beyond that, and is never below none. For constant arrivals due requests follow from the rate; for others
    the engine must count them.
    """
    rate = (
        evidence.load.offered_per_s
        if evidence.load.arrivals == "constant" and not evidence.load.varies
        else None
    )
    lowest, backlog = 1.0, 0.0
    over: list[bool] = []
    rows = evidence.engine.rows if evidence.engine is not None else ()
    for row in full_rows(rows, window.opened_ms, window.opened_ms + window.duration_s * 1000):
        due: float | None = row.offered
        if due is None and rate is not None:
            due = rate * row.duration_ms / 1000
        if due is None or row.sent is None:
            return None
        backlog = max(0.0, backlog + limits.schedule_achieved_min * due - row.sent)
        lowest = min(lowest, row.sent / due) if due > 0 else lowest
        later = ROUNDING_REQUESTS + due * allowed_ms / row.duration_ms
        over.append(backlog > later)
    if not over:
        return None
    # The last full row has no successor to clear it, unless all that was due was sent in the end.
    after = [*over[1:], not _all_sent(window, evidence)]
    held = sum(behind and still for behind, still in zip(over, after, strict=True))
    return Backlog(lowest, held, sum(over) - held)


def _all_sent(window: Window, evidence: Evidence) -> bool:
    """Whether nothing that was due in the window, or later in the run, remained unsent."""
    totals = evidence.engine.totals if evidence.engine is not None else None
    return (totals.due_unsent if totals is not None else None) == 0 or window.due_unsent == 0


def _unsent(window: Window, evidence: Evidence, limits: ScheduleLimits) -> Status:
    """Of what was due in the window and not sent in it: sent soon after, in an amount that a pause of the
    host at the window's end explains, it is suspect; else invalid.
    """
    totals = evidence.engine.totals if evidence.engine is not None else None
    unsent = window.due_unsent or 0
    sent_later = totals is not None and totals.due_unsent == 0
    few = window.offered is not None and unsent <= (1 - limits.schedule_achieved_min) * window.offered
    return Status.SUSPECT if sent_later and few else Status.INVALID


@dataclass(frozen=True, slots=True)
class Moved:
    """A percentile of the latency, and what late sends have added to it."""

    percentile: float
    lag_ms: float
    latency_ms: float
    without_ms: float
    """The same percentile from the actual send, connecting included."""

    @property
    def share(self) -> float:
        """Of the latency: at most the lag at the same percentile, at most what goes when the lag goes."""
        added_ms = min(self.lag_ms, self.latency_ms - self.without_ms)
        return max(0.0, added_ms / self.latency_ms) if self.latency_ms > 0 else 0.0


def _moved(window: Window) -> Moved | None:
    """None where a histogram is missing. What the lag did to the server, which gets late requests in a
    bunch, is not in it: that is in the time from the actual send too.
    """
    sent = request_times(window)
    if window.send_lag is None or window.latency is None or sent is None:
        return None
    percentile = _supported(window.send_lag.count, CLAIMED_MOST)
    try:
        at_ns = [decode(one).percentile_ns(percentile) for one in (window.send_lag, window.latency, sent)]
    except HistogramError:
        return None
    lag, latency, without = at_ns
    if lag is None or latency is None or without is None:
        return None
    return Moved(percentile, lag / 1e6, latency / 1e6, without / 1e6)


def _supported(count: int, most: float) -> float:
    """The highest percentile up to `most` with enough requests beyond it."""
    fits = (p for p in LAG_PERCENTILES if p <= most and count * (100 - p) >= 100 * LATEST_BEYOND * (1 - 1e-9))
    return next(fits, LAG_PERCENTILES[-1])


def _lag(window: Window, limits: ScheduleLimits) -> tuple[float, float, float] | None:
    """(percentile, its send lag in ms, allowed lag in ms); None where a histogram is missing."""
    median_of = window.latency or window.service_time
    if window.send_lag is None or median_of is None:
        return None
    percentile = _supported(window.send_lag.count, LAG_PERCENTILES[0])
    try:
        lag = decode(window.send_lag).percentile_ns(percentile)
        median = decode(median_of).percentile_ns(50)
    except HistogramError:
        return None
    if lag is None or median is None:
        return None
    allowed_ms = max(limits.schedule_lag_floor_ms, limits.schedule_lag_share * median / 1e6)
    return percentile, lag / 1e6, allowed_ms
