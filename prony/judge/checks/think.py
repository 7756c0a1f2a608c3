"""think: did users keep the drawn think times."""

from __future__ import annotations

import math

from prony.evidence.engine import Histogram
from prony.evidence.trial import Evidence
from prony.judge.check import DeclaredLimits, NotNegative, Share, check
from prony.judge.effects import lost, responding
from prony.judge.finding import THROUGHPUT, Bias, Finding, no_window, unread
from prony.judge.histogram import read
from prony.judge.window import measured
from prony.numbers import milliseconds, number, percent

CHECK = "think"
SOURCE = "Faban's cycleDeviation"
OVERSHOOT_PERCENTILE = 95.0
"""Percentile that shows late timers. Beyond it are pauses of the host: 13 ms once a second delay 1.3 % of the
think times and hardly move the mean, which is judged separately.
"""


FEW = 20
"""Fewest think times whose mean withstands a single pause of the host."""


class ThinkLimits(DeclaredLimits):
    think_deviation: Share = 0.01
    """Mean actual ÷ mean target think time - 1, two-sided (Faban's fhb uses 1 %)."""
    think_overshoot_share: Share = 0.01
    """p95 overshoot as a share of the mean think time ..."""
    think_overshoot_floor_ms: NotNegative = 1.0
    """... and at least this, the precision of a general-purpose kernel's timers."""


@check(ThinkLimits, order=100)
def think(evidence: Evidence, limits: ThinkLimits) -> Finding | None:
    """None without think times."""
    load = evidence.load
    if load.think_kind == "none":
        return None
    limit = (
        f"mean within {percent(limits.think_deviation)}; p95 overshoot up to "
        f"{percent(limits.think_overshoot_share)} of the mean or {number(limits.think_overshoot_floor_ms)} ms"
    )
    window = measured(evidence)
    if window is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    drawn, actual, count = window.think_drawn_sum_s, window.think_actual_sum_s, window.think_count
    kept = "the think times were kept"
    if not drawn or actual is None or not count:
        reason = "think times were not counted"
        if count == 0 or drawn == 0:
            reason = "every drawn think time was zero" if count else "no think time ended in the window"
        advice = "use a window longer than the think time"
        return unread(CHECK, reason, provided=kept, limit=limit, source=SOURCE, advice=advice)
    deviation = actual / drawn - 1
    mean_ms = drawn / count * 1000
    allowed_ms = max(limits.think_overshoot_floor_ms, limits.think_overshoot_share * mean_ms)
    overshoot_ms = None if window.think_overshoot is None else _overshoot_ms(window.think_overshoot)
    reason = f"mean think time {milliseconds(actual / count * 1000)}, target {milliseconds(mean_ms)}"
    if overshoot_ms is not None:
        reason += f", p95 overshoot {milliseconds(overshoot_ms)}"
    latest = _latest_s(window.think_overshoot, count) / drawn
    # Thinking is the rest of a user's cycle: longer think times lower the rate.
    moved = deviation * (1 - responding(evidence)) if load.model == "closed" else 0.0
    bias = Bias.of_logs(down=lost(-moved), up=math.log1p(max(0.0, moved)))
    code, conforms, provided = "deviation" if bias.counts else "ok", True, ""
    if 0 < deviation - latest <= limits.think_deviation < deviation:
        code, provided = "few", kept
        reason += f"; the latest of {number(count)} think times decides"
    elif abs(deviation) > limits.think_deviation:
        code, conforms = "deviation", False
    elif overshoot_ms is None:
        code, provided = "unread", "the timers were punctual"
    elif overshoot_ms > allowed_ms:
        code, provided = "late_timers", "late timers caused no bursts"
    return Finding(
        check=CHECK,
        code=code,
        conforms=conforms,
        bias=dict.fromkeys(THROUGHPUT, bias),
        provided=provided,
        value=deviation,
        limit=limit,
        reason=reason,
        advice="the client's timers fire late: give it more CPU or fewer users per thread"
        if not conforms or code == "late_timers"
        else "",
        source=SOURCE,
    )


def _latest_s(overshoot: Histogram | None, count: int) -> float:
    decoded = None if count >= FEW else read(overshoot)
    return 0.0 if decoded is None else (decoded.percentile_ns(100.0) or 0.0) * 1e-9


def _overshoot_ms(overshoot: Histogram) -> float | None:
    decoded = read(overshoot)
    if decoded is None:
        return None
    second = 100 * (1 - 1 / decoded.count) if decoded.count > 1 else 100.0
    found_ns = decoded.percentile_ns(min(OVERSHOOT_PERCENTILE, second))
    return None if found_ns is None else found_ns / 1e6
