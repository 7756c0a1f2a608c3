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
SOURCE = "k6, wrk2 and vegeta exit 0 below the rate"
ROUNDING_REQUESTS = 1
"""Requests due at the end of a row that may be sent in the next, plus those within the allowed lag."""
LAG_LEVELS = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
LAG_PERCENTILES = (99.9, 99.0, 90.0, 50.0)
CLAIMED_MOST = 99.0
"""The highest percentile that every table prints."""
LATEST_BEYOND = 5
"""Requests beyond the judged percentile, at least: the p99.9 of 600 requests would be the latest one."""


class ScheduleLimits(DeclaredLimits):
    schedule_achieved_min: Share = 0.99
    """Sent ÷ due requests at the end of a row, at least; the rest is its backlog."""
    schedule_lag_floor_ms: NotNegative = 1.0
    """Send lag (p99.9) that is always allowed ..."""
    schedule_lag_share: Share = 0.10
    """... or this share of the median latency, whichever is higher."""
    schedule_late_share_max: Share = 0.10
    """Part of the p99 latency due to late sends, from which it is the client's p99."""


@check(ScheduleLimits, order=110)
def schedule(evidence: Evidence, limits: ScheduleLimits) -> Finding | None:
    """None for a closed loop."""
    if evidence.load.model != "open":
        return None
    limit = (
        f"at least {percent(limits.schedule_achieved_min)} of due requests sent by the end of every row, "
        "none unsent or blocked, send lag (p99.9, or the highest supported percentile) up to "
        f"{number(limits.schedule_lag_floor_ms)} ms or "
        f"{percent(limits.schedule_lag_share)} of median latency, its part of p99 latency below "
        f"{percent(limits.schedule_late_share_max)}"
    )
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    finding = partial(Finding, check=CHECK, source=SOURCE)
    sends = _sends(window, limits)
    allowed_ms = limits.schedule_lag_floor_ms if sends is None else sends.allowed_ms
    backlog = _backlog(window, evidence, limits, allowed_ms)
    parts: list[Finding] = []
    if backlog is not None:
        late = [
            f"{count} {'row' if count == 1 else 'rows'} behind schedule{how}"
            for count, how in ((backlog.held, ""), (backlog.cleared, " but caught up in the next"))
            if count
        ]
        sent = f"{percent(backlog.lowest)} of due requests sent"
        text = f"{', '.join(late)}, the worst with {sent}" if late else f"at least {sent} in every row"
        share = backlog.late_share - (0.0 if sends is None else sends.late_share)
        bias = longest(evidence, share)
        code = "backlog" if backlog.held else "caught_up" if backlog.cleared else "ok"
        parts.append(finding(code=code, conforms=not backlog.held, bias=bias, reason=text))
    if window.due_unsent:
        soon = _sent_soon(window, evidence, limits)
        reason = f"{number(window.due_unsent)} requests due and not sent in the window"
        parts.append(
            finding(
                code="unsent",
                conforms=soon,
                bias=both(THROUGHPUT, up=lost(window.due_unsent / (window.offered or window.due_unsent))),
                assumption="requests sent after the window would have been answered like the rest",
                reason=reason + (", but sent soon after" if soon else ""),
            )
        )
    if window.blocked:
        reason = f"{number(window.blocked)} requests blocked by the cap on users"
        parts.append(finding(code="blocked", conforms=False, reason=reason))
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
    advice = (
        "the client could not offer this rate: use more client CPUs, a lower rate or a higher cap on users"
    )
    threads = evidence.engine.ready.threads if evidence.engine is not None else ()
    if any(thread.realtime is False for thread in threads) and evidence.server.owned:
        advice += "; or give its threads real-time priority (run as root, or with ulimit -r 1)"
    return advice


@dataclass(frozen=True, slots=True)
class Backlog:
    lowest: float
    """Lowest sent ÷ due of any row."""
    held: int = 0
    """Rows with a backlog above the limit that the next row did not clear ..."""
    cleared: int = 0
    """... and those that it did."""
    late_share: float = 0.0
    """Backlogged ÷ due requests."""


def _backlog(window: Window, evidence: Evidence, limits: ScheduleLimits, allowed_ms: float) -> Backlog | None:
    """Grows by requests due and unsent beyond the tolerance, shrinks by the surplus, never negative. None
    when not counted: for arrivals that are not constant the engine must count.
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
    # The last full row has no successor: it counts as cleared if all due requests were sent in the end.
    after = [*over[1:], not _all_sent(window, evidence)]
    held = sum(behind and still for behind, still in zip(over, after, strict=True))
    return Backlog(lowest, held, sum(over) - held, min(1.0, late / all_due) if late else 0.0)


def _all_sent(window: Window, evidence: Evidence) -> bool:
    totals = evidence.engine.totals if evidence.engine is not None else None
    return (totals.due_unsent if totals is not None else None) == 0 or window.due_unsent == 0


def _sent_soon(window: Window, evidence: Evidence, limits: ScheduleLimits) -> bool:
    totals = evidence.engine.totals if evidence.engine is not None else None
    sent_later = totals is not None and totals.due_unsent == 0
    most = (1 - limits.schedule_achieved_min) * (window.offered or 0)
    return sent_later and (window.due_unsent or 0) <= most


@dataclass(frozen=True, slots=True)
class _Sends:
    lags: Decoded
    latency: Decoded
    sent: Decoded | None
    allowed_ms: float

    @property
    def late_share(self) -> float:
        return float(self.lags.counts[self.lags.high_ns > self.allowed_ms * 1e6].sum()) / self.lags.count

    def without_ms(self, percentile: float) -> float:
        bounds_ms = [
            _ms(self.latency, percentile - (100 - level)) - _ms(self.lags, level) for level in LAG_LEVELS
        ]
        sent_ms = 0.0 if self.sent is None else _ms(self.sent, percentile - 100 * self.late_share)
        return max(0.0, sent_ms, *bounds_ms)

    def biases(self, evidence: Evidence) -> Biases:
        mean_s, lag_s = self.latency.moment(1), self.lags.moment(1)
        rest_s = max(mean_s - lag_s, 0.0 if self.sent is None else self.sent.moment(1))
        punctual = {name: _down(_ms(self.latency, at), self.without_ms(at)) for name, at in NAMED.items()}
        late = {name: bias for name, bias in longest(evidence, self.late_share).items() if name in MEAN}
        return together(punctual, dict.fromkeys(MEAN, _down(mean_s, rest_s)), late)


def _down(measured: float, least: float) -> Bias:
    if measured <= 0:
        return NO_BIAS
    return Bias.of_logs(down=math.log(measured / min(least, measured)) if least > 0 else math.inf)


def _ms(times: Decoded, percentile: float) -> float:
    return (times.percentile_ns(percentile) or 0.0) / 1e6 if percentile > 0 else 0.0


def _sends(window: Window, limits: ScheduleLimits) -> _Sends | None:
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
    """Late sends explain at most the lag's percentile, and at most the difference without the lag."""
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
            part = f"late sends are {percent(share)} of the p{claimed:g} latency"
            text = f"{part}: {whole}, and {sent} from the actual send; {text}"
    return Finding(
        check=CHECK,
        code="late_sends" if lag_ms > allowed_ms else "lag",
        conforms=conforms,
        bias=sends.biases(evidence),
        assumption="bunched late requests delayed no others" if sends.late_share else "",
        reason=text,
        source=SOURCE,
    )


def _supported(count: float, most: float) -> float:
    fits = (p for p in LAG_PERCENTILES if p <= most and count * (100 - p) >= 100 * LATEST_BEYOND * (1 - 1e-9))
    return next(fits, LAG_PERCENTILES[-1])
