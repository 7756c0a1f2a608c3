"""JMeter's timers into think times. Must not know which request they wait for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from prony.frontends.jmeter.functions import Values
from prony.frontends.jmeter.jmx import Node
from prony.plan.think import NO_THINK, Think

KINDS = frozenset({"ConstantTimer", "UniformRandomTimer", "GaussianRandomTimer", "PoissonRandomTimer"})
PACING = frozenset({"ConstantThroughputTimer"})
PER_THREAD = 0
"""calcMode of a ConstantThroughputTimer: the rate is that of each thread."""


def pause(timers: Sequence[Node], values: Values) -> Think:
    """All of them one after the other, as JMeter waits. Raises Refused for sums that no think time has."""
    constant_ms = 0.0
    drawn: Think | None = None
    for timer in timers:
        one = _single(timer, values)
        if one.kind == "constant":
            constant_ms += one.ms or 0.0
        elif one.kind != "none":
            if drawn is not None:
                raise timer.refused(
                    "it is the second random timer before a request",
                    "keep one of them, and constant ones beside it",
                )
            drawn = one
    if drawn is None:
        return Think(kind="constant", ms=constant_ms) if constant_ms > 0 else NO_THINK
    if drawn.kind == "uniform":
        low, high = drawn.min_ms or 0.0, drawn.max_ms or 0.0
        return Think(kind="uniform", min_ms=low + constant_ms, max_ms=high + constant_ms)
    return Think(kind="gaussian", mean_ms=(drawn.mean_ms or 0.0) + constant_ms, stdev_ms=drawn.stdev_ms)


def _single(timer: Node, values: Values) -> Think:
    offset_ms = values.number(timer.value("ConstantTimer.delay"), timer, "ConstantTimer.delay", 0.0)
    if offset_ms < 0:
        raise timer.wrong(f"a delay of at least 0, found {offset_ms:g}")
    if timer.tag == "ConstantTimer":
        timer.finish()
        return Think(kind="constant", ms=offset_ms) if offset_ms else NO_THINK
    spread_ms = values.number(timer.value("RandomTimer.range"), timer, "RandomTimer.range", 0.0)
    timer.finish()
    if spread_ms < 0:
        raise timer.wrong(f"a range of at least 0, found {spread_ms:g}")
    if spread_ms == 0:
        return Think(kind="constant", ms=offset_ms) if offset_ms else NO_THINK
    if timer.tag == "UniformRandomTimer":
        return Think(kind="uniform", min_ms=offset_ms, max_ms=offset_ms + spread_ms)
    if timer.tag == "GaussianRandomTimer":
        if offset_ms < 3 * spread_ms:
            values.note(
                f"{timer.element}: negative pauses are drawn again (JMeter takes 0), "
                "which makes the mean pause longer"
            )
        return Think(kind="gaussian", mean_ms=offset_ms, stdev_ms=spread_ms)
    values.note(
        f"{timer.element}: its Poisson distribution is drawn as a Gaussian one of the same mean and variance"
    )
    return Think(kind="gaussian", mean_ms=offset_ms + spread_ms, stdev_ms=math.sqrt(spread_ms))


def paced_per_s(timer: Node, users: int, values: Values) -> float:
    """Requests per second that a ConstantThroughputTimer lets through, all threads together."""
    raw = timer.property("throughput")
    holder = raw if raw is not None else timer
    nested = holder.text if not holder.children else next(
        (child.text for child in holder.children if child.tag == "value"), ""
    )  # fmt: skip
    per_minute = values.number(nested, timer, "throughput")
    mode = timer.property("calcMode")
    number = values.whole(mode.text if mode is not None else "0", timer, "calcMode", 0)
    timer.finish()
    if per_minute <= 0:
        raise timer.wrong(f"a throughput above 0, found {per_minute:g}")
    if not 0 <= number <= 4:
        raise timer.wrong(f"calcMode to be 0 to 4, found {number}")
    return per_minute / 60 * (users if number == PER_THREAD else 1)
