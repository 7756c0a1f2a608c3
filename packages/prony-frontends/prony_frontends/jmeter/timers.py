"""Translates JMeter's timers into think times and paces."""

from __future__ import annotations

import re
from collections.abc import Sequence

from prony.plan.blocks import Pace
from prony.plan.think import Think
from prony_frontends.jmeter import precise, shaping
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode

KINDS = frozenset({"ConstantTimer", "UniformRandomTimer", "GaussianRandomTimer", "PoissonRandomTimer"})
PACING = frozenset({"ConstantThroughputTimer", shaping.TIMER, precise.TIMER})
PER_THREAD, ALL, GROUP, ALL_SHARED, GROUP_SHARED = range(5)
"""calcMode of a ConstantThroughputTimer: scope of the rate."""
DRAWN = re.compile(r"random int (\d{1,15}) (\d{1,15})")


def waits(timers: Sequence[JmxNode], values: KnownValues) -> list[Think]:
    """Pauses before a request, which add up; constant pauses are merged."""
    constant_ms = 0.0
    drawn: list[Think] = []
    for timer in timers:
        think = _single(timer, values)
        if think is None:
            continue
        if think.kind == "constant":
            constant_ms += think.ms or 0.0
        else:
            drawn.append(think)
    if constant_ms == 0.0:
        return drawn
    if not drawn:
        return [Think(kind="constant", ms=constant_ms)]
    if drawn[0].kind == "gaussian":  # cut at 0 before the constant is added
        return [Think(kind="constant", ms=constant_ms), *drawn]
    return [_later(drawn[0], constant_ms), *drawn[1:]]


def _later(think: Think, by_ms: float) -> Think:
    if think.kind == "uniform":
        return Think(
            kind="uniform", min_ms=(think.min_ms or 0.0) + by_ms, max_ms=(think.max_ms or 0.0) + by_ms
        )
    return Think(kind="poisson", mean_ms=think.mean_ms, offset_ms=(think.offset_ms or 0.0) + by_ms)


def _single(timer: JmxNode, values: KnownValues) -> Think | None:
    raw = timer.value("ConstantTimer.delay")
    drawn = between(raw, timer, values) if timer.tag == "ConstantTimer" else None
    if drawn is not None:
        timer.finish()
        return drawn
    offset_ms = values.number(raw, timer, "ConstantTimer.delay", 0.0)
    if offset_ms < 0:
        raise timer.wrong(f"a delay of at least 0, found {offset_ms:g}")
    constant = Think(kind="constant", ms=offset_ms) if offset_ms else None
    if timer.tag == "ConstantTimer":
        timer.finish()
        return constant
    spread_ms = values.number(timer.value("RandomTimer.range"), timer, "RandomTimer.range", 0.0)
    timer.finish()
    if spread_ms < 0:
        raise timer.wrong(f"a range of at least 0, found {spread_ms:g}")
    if spread_ms == 0:
        return constant
    if timer.tag == "UniformRandomTimer":
        return Think(kind="uniform", min_ms=offset_ms, max_ms=offset_ms + spread_ms)
    if timer.tag == "GaussianRandomTimer":
        if offset_ms < 3 * spread_ms:
            values.note(
                "negative_pauses",
                "negative pauses are drawn again (JMeter takes their absolute value), "
                "which makes the mean pause longer",
                timer,
            )
        return Think(kind="gaussian", mean_ms=offset_ms, stdev_ms=spread_ms)
    return Think(kind="poisson", mean_ms=spread_ms, offset_ms=offset_ms)


def between(raw: str, node: JmxNode, values: KnownValues) -> Think | None:
    """The pause for `${__Random(a,b)}`; None for any other text."""
    match = DRAWN.fullmatch(_drawn(raw, node, values))
    if match is None:
        return None
    low, high = map(float, match.groups())
    return Think(kind="uniform", min_ms=low, max_ms=high)


def _drawn(raw: str, timer: JmxNode, values: KnownValues) -> str:
    """The placeholder that makes up the whole text; empty for other texts."""
    if "${" not in raw:
        return ""
    parts = values.text(raw.strip(), timer).parts
    return parts[0].text if len(parts) == 1 and parts[0].dynamic else ""


def pace(timer: JmxNode, users: int | None, values: KnownValues, names: dict[int, str]) -> Pace:
    """Pace of a throughput timer, shared in its scope. `names`: by timer."""
    if timer.tag == precise.TIMER:
        return precise.pace(timer, users, values)
    name = _named(timer, names)
    if timer.tag == shaping.TIMER:
        return shaping.pace(timer, users, values, name)
    per_min = values.number(timer.value("throughput"), timer, "throughput")
    number = values.whole(timer.value("calcMode"), timer, "calcMode", 0)
    timer.finish()
    if not 0.001 <= per_min <= 6e7:
        raise timer.wrong(f"a throughput of 0.001 to 60,000,000 per minute, found {per_min:g}")
    if number not in (PER_THREAD, ALL, GROUP, ALL_SHARED, GROUP_SHARED):
        raise timer.wrong(f"calcMode to be 0 to 4, found {number}")
    if number in (ALL_SHARED, GROUP_SHARED):
        return Pace(per_min=per_min, per="run", name=name)
    if number == PER_THREAD:
        return Pace(per_min=per_min, per="user", name=name)
    if users is None:
        raise timer.refused(
            "a rate of active threads in an open model", "write it in the schedule", "conflict"
        )
    if users > 1:
        values.note(
            "equal_share",
            f"each of {users} threads gets an equal share of the rate from the start "
            "(JMeter divides it by the threads started so far)",
            timer,
        )
    return Pace(per_min=max(per_min / users, 0.001), per="user", name=name)


def _named(timer: JmxNode, names: dict[int, str]) -> str:
    """A unique name for the timer."""
    name = timer.label
    if name in {other for timer_id, other in names.items() if timer_id != id(timer)}:
        name = f"{name} ({len(names) + 1})" if id(timer) not in names else names[id(timer)]
    names[id(timer)] = name
    return name
