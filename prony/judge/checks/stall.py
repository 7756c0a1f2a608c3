"""stall: was there a time in which nothing completed. Must not know why.

A closed loop hides a stall: its users send nothing while they wait, so few samples are long.
"""

from __future__ import annotations

from prony.evidence.engine import Gap, Window
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Positive, check
from prony.judge.finding import Finding, Status, no_window, unknown
from prony.judge.histogram import Decoded, HistogramError, decode, fill_gaps
from prony.judge.window import measured
from prony.numbers import milliseconds, number, percent

CHECK = "stall"
SOURCE = "coordinated omission (Tene)"


class StallLimits(DeclaredLimits):
    stall_p99_factor: Positive = 10.0
    """A gap is a stall when it is longer than this many times p99 ..."""
    stall_floor_ms: NotNegative = 50.0
    """... and than this."""


def stalls(window: Window, p99_ms: float, limits: StallLimits) -> list[Gap]:
    """The gaps that count as stalls, longest first."""
    least_ms = max(limits.stall_floor_ms, limits.stall_p99_factor * p99_ms)
    return sorted((g for g in window.gaps if g.duration_ms > least_ms), key=lambda g: -g.duration_ms)


@check(StallLimits, order=200)
def stall(evidence: Evidence, limits: StallLimits) -> Finding:
    """Gaps in which nothing completed with requests in flight, and percentiles with the gaps filled in."""
    limit = f"no gap longer than {limits.stall_p99_factor:g} × p99 and {number(limits.stall_floor_ms)} ms"
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    if window.service_time is None:
        return unknown(CHECK, "the engine reported no histogram", limit=limit, source=SOURCE)
    try:
        histogram = decode(window.service_time)
    except HistogramError as damage:
        return unknown(CHECK, f"the histogram is damaged: {damage}", limit=limit, source=SOURCE)
    p99_ns = histogram.percentile_ns(99)
    if p99_ns is None:
        return unknown(CHECK, "nothing completed", limit=limit, source=SOURCE)
    found = stalls(window, p99_ns / 1e6, limits)
    longest_ms = max((gap.duration_ms for gap in window.gaps), default=0.0)
    if not found:
        seen = f"longest gap {milliseconds(longest_ms)}" if window.gaps else "no gap above 20 ms"
        return Finding(
            check=CHECK, status=Status.VALID, value=longest_ms, limit=limit, reason=seen, source=SOURCE
        )
    silent_ms = sum(gap.duration_ms for gap in found)
    share = silent_ms / 1000 / window.duration_s
    reason = (
        f"{len(found)} stall{'s' if len(found) > 1 else ''} "
        f"(nothing completed for {milliseconds(longest_ms)} at most), {percent(share)} of the window"
    )
    open_loop = evidence.load.model == "open"
    return Finding(
        check=CHECK,
        status=Status.VALID if open_loop else Status.SUSPECT,
        value=longest_ms,
        limit=limit,
        reason=reason + ("; latency, from the intended send, includes them" if open_loop else ""),
        advice="" if open_loop else _filled(histogram, found, window),
        source=SOURCE,
    )


def _filled(histogram: Decoded, found: list[Gap], window: Window) -> str:
    """Percentiles that users arriving at their own pace would have seen: an estimate."""
    filled = fill_gaps(histogram, found, window.completed / window.duration_s)
    said = []
    for percentile in (99.0, 99.9):
        now, then = histogram.percentile_ns(percentile), filled.percentile_ns(percentile)
        if now is not None and then is not None:
            said.append(f"p{percentile:g} {milliseconds(then / 1e6)} instead of {milliseconds(now / 1e6)}")
    return (
        f"users who arrive independently would have seen about {', '.join(said)} (an estimate); look for "
        "garbage collection, swapping or a pause of the host, and measure latency in an open loop"
    )
