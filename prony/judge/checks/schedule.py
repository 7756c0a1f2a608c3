"""schedule (open loop): was every request sent, and on time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from prony.evidence.engine import Histogram, Window
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Share, check
from prony.judge.effects import Biases, both, longest, lost, together
from prony.judge.finding import MEAN, NO_BIAS, THROUGHPUT, Bias, Finding, Kind, no_window, unread
from prony.judge.histogram import Decoded, read
from prony.judge.parts import joined
from prony.judge.times import NAMED
from prony.judge.window import measured, request_times
from prony.numbers import milliseconds, number, percent
from prony.steady.detector import full_rows

CHECK = "schedule"
SOURCE = "k6, wrk2 and vegeta exit 0 when they do not reach the rate"
ROUNDING_REQUESTS = 1
"""A request due at the end of a row may be sent in the next one, as may all that are due within the allowed
lag.
"""
LAG_LEVELS = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
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
    schedule_late_share_max: Share = 0.10
    """Part of the p99 latency that late sends made, from which on it is the client's p99."""


@check(ScheduleLimits, order=110)
def schedule(evidence: Evidence, limits: ScheduleLimits) -> Finding | None:
    """Backlog at the end of every row, send lag and its part of the latency, due and unsent, blocked
    arrivals. Left out in a closed loop.
    """
    if evidence.load.model != "open":
        return None
    limit = (
        f"at least {percent(limits.schedule_achieved_min)} of due requests sent by the end of every row, "
        "none unsent or blocked, send lag (p99.9, or what the sample supports) up to "
        f"{number(limits.schedule_lag_floor_ms)} ms or "
        f"{percent(limits.schedule_lag_share)} of median latency, its part of p99 latency below "
        f"{percent(limits.schedule_late_share_max)}"
    )
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    found = partial(Finding, check=CHECK, source=SOURCE)
    sends = _sends(window, limits)
    allowed_ms = limits.schedule_lag_floor_ms if sends is None else sends.allowed_ms
    backlog = _backlog(window, evidence, limits, allowed_ms)
    parts: list[Finding] = []
    if backlog is not None:
        late = [
            f"{count} {'row' if count == 1 else 'rows'} behind schedule{how}"
            for count, how in ((backlog.held, ""), (backlog.cleared, " and caught up in the next"))
            if count
        ]
        sent = f"{percent(backlog.lowest)} of due requests sent"
        told = f"{', '.join(late)}, the worst with {sent}" if late else f"at least {sent} in every row"
        share = backlog.late_share - (0.0 if sends is None else sends.late_share)
        bias = longest(evidence, share)
        code = "backlog" if backlog.held else "caught_up" if backlog.cleared else "ok"
        parts.append(found(code=code, conforms=not backlog.held, bias=bias, reason=told))
    if window.due_unsent:
        soon = _sent_soon(window, evidence, limits)
        reason = f"{number(window.due_unsent)} requests due and not sent in the window"
        parts.append(
            found(
                code="unsent",
                conforms=soon,
                bias=both(THROUGHPUT, up=lost(window.due_unsent / (window.offered or window.due_unsent))),
                assumption="what was sent after the window would have been answered like the rest",
                reason=reason + (", but soon after" if soon else ""),
            )
        )
    if window.blocked:
        reason = f"{number(window.blocked)} requests blocked by the cap on users"
        parts.append(found(code="blocked", conforms=False, reason=reason))
    if sends is not None:
        parts.append(_late_sends(evidence, sends, limits))
    read = {
        "due requests": backlog,
        "requests due and not sent in the window": window.due_unsent,
        "requests blocked by the cap on users": window.blocked,
        "send lag": sends,
    }
    missing = ", ".join(what for what, there in read.items() if there is None)
    if missing:
        on_time = "every request was sent on time"
        parts.append(unread(CHECK, f"not read: {missing}", provided=on_time, source=SOURCE))
    whole = joined(parts)
    harmless = {part.code for part in parts} <= {"ok", "lag", "unread"} or whole.kind is Kind.FINE
    advice = "" if harmless else _advice(evidence)
    value = None if backlog is None else backlog.lowest
    return whole.model_copy(update={"value": value, "limit": limit, "advice": advice})


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
    late_share: float = 0.0
    """Of the due requests, in either's backlog."""


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
    lowest, backlog, all_due, late = 1.0, 0.0, 0.0, 0.0
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
        all_due, late = all_due + due, late + backlog * over[-1]
    if not over:
        return None
    # The last full row has no successor to clear it, unless all that was due was sent in the end.
    after = [*over[1:], not _all_sent(window, evidence)]
    held = sum(behind and still for behind, still in zip(over, after, strict=True))
    return Backlog(lowest, held, sum(over) - held, min(1.0, late / all_due) if late else 0.0)


def _all_sent(window: Window, evidence: Evidence) -> bool:
    """Whether nothing that was due in the window, or later in the run, remained unsent."""
    totals = evidence.engine.totals if evidence.engine is not None else None
    return (totals.due_unsent if totals is not None else None) == 0 or window.due_unsent == 0


def _sent_soon(window: Window, evidence: Evidence, limits: ScheduleLimits) -> bool:
    """Whether what was due in the window and not sent in it was sent soon after, in an amount that a pause of
    the host at the window's end explains.
    """
    totals = evidence.engine.totals if evidence.engine is not None else None
    sent_later = totals is not None and totals.due_unsent == 0
    most = (1 - limits.schedule_achieved_min) * (window.offered or 0)
    return sent_later and (window.due_unsent or 0) <= most


@dataclass(frozen=True, slots=True)
class _Sends:
    """How late requests were sent, beside their latency and the same times from the actual send."""

    lags: Decoded
    latency: Decoded
    sent: Decoded | None
    allowed_ms: float

    @property
    def late_share(self) -> float:
        """Sends that were later than allowed ÷ all."""
        return float(self.lags.counts[self.lags.high_ns > self.allowed_ms * 1e6].sum()) / self.lags.count

    def without_ms(self, percentile: float) -> float:
        """What a percentile of the latency would be of a client on time, at least. Where a share of the sends
        was later than x: percentile p - share now, less x, since the others gain x at most. And what it is
        from the actual send, but for those later than allowed, which the server got in a bunch.
        """
        found = [
            _ms(self.latency, percentile - (100 - level)) - _ms(self.lags, level) for level in LAG_LEVELS
        ]
        sent_ms = 0.0 if self.sent is None else _ms(self.sent, percentile - 100 * self.late_share)
        return max(0.0, sent_ms, *found)

    def biases(self, evidence: Evidence) -> Biases:
        """Of every time. The mean gains the mean lag; what is later than allowed may be the longest, too."""
        mean_s, lag_s = self.latency.moment(1), self.lags.moment(1)
        rest_s = max(mean_s - lag_s, 0.0 if self.sent is None else self.sent.moment(1))
        found = {name: _down(_ms(self.latency, at), self.without_ms(at)) for name, at in NAMED.items()}
        late = {name: one for name, one in longest(evidence, self.late_share).items() if name in MEAN}
        return together(found, dict.fromkeys(MEAN, _down(mean_s, rest_s)), late)


def _down(measured: float, least: float) -> Bias:
    """Of a time that is at least so much."""
    if measured <= 0:
        return NO_BIAS
    return Bias.of_logs(down=math.log(measured / min(least, measured)) if least > 0 else math.inf)


def _ms(times: Decoded, percentile: float) -> float:
    """0 below all of them."""
    return (times.percentile_ns(percentile) or 0.0) / 1e6 if percentile > 0 else 0.0


def _sends(window: Window, limits: ScheduleLimits) -> _Sends | None:
    """None where a histogram is missing."""
    latency_of = window.latency or window.service_time
    lags, latency, sent = map(_decoded, (window.send_lag, latency_of, request_times(window)))
    if lags is None or latency is None:
        return None
    allowed_ms = max(limits.schedule_lag_floor_ms, limits.schedule_lag_share * _ms(latency, 50.0))
    return _Sends(lags, latency, sent, allowed_ms)


def _decoded(histogram: Histogram | None) -> Decoded | None:
    decoded = read(histogram)
    return decoded if decoded is not None and decoded.count > 0 else None


def _late_sends(evidence: Evidence, sends: _Sends, limits: ScheduleLimits) -> Finding:
    """Late sends made at most the lag of a percentile, and at most what goes when the lag goes."""
    judged, claimed = (_supported(sends.lags.count, most) for most in (LAG_PERCENTILES[0], CLAIMED_MOST))
    lag_ms, allowed_ms = _ms(sends.lags, judged), sends.allowed_ms
    text = f"p{judged:g} send lag {milliseconds(lag_ms)} of {milliseconds(allowed_ms)} allowed"
    conforms = True
    if sends.sent is not None:
        claimed_ms, latency_ms, sent_ms = (
            _ms(times, claimed) for times in (sends.lags, sends.latency, sends.sent)
        )
        share = min(claimed_ms, latency_ms - sent_ms) / max(latency_ms, 1e-9)
        conforms = claimed_ms <= allowed_ms or share < limits.schedule_late_share_max
        if not conforms:
            whole, sent = milliseconds(latency_ms), milliseconds(sent_ms)
            told = f"late sends are {percent(share)} of the p{claimed:g} latency"
            text = f"{told}: {whole}, and {sent} from the actual send; {text}"
    return Finding(
        check=CHECK,
        code="late_sends" if lag_ms > allowed_ms else "lag",
        conforms=conforms,
        bias=sends.biases(evidence),
        assumption="late requests that came in a bunch held up no others" if sends.late_share else "",
        reason=text,
        source=SOURCE,
    )


def _supported(count: float, most: float) -> float:
    """The highest percentile up to `most` with enough requests beyond it."""
    fits = (p for p in LAG_PERCENTILES if p <= most and count * (100 - p) >= 100 * LATEST_BEYOND * (1 - 1e-9))
    return next(fits, LAG_PERCENTILES[-1])
