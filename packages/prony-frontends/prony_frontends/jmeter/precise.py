"""The Precise Throughput Timer: random arrivals, a fixed number per period, shared by a group's threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from prony.plan.blocks import Pace, PacePhase
from prony_frontends.jmeter.functions import LONGEST_S, KnownValues
from prony_frontends.jmeter.jmx import JmxNode

TIMER = "PreciseThroughputTimer"
MOST_PHASES = 2000
"""Limit on arrivals drawn individually; above, neighbours are evenly spaced."""
MOST_ARRIVALS = 1_000_000
BURST_PER_S = 1_000_000.0
"""Rate within a batch, whose requests are due at once."""


def pace(timer: JmxNode, users: int | None, values: KnownValues) -> Pace:
    """The timer's pace: per group the first timer's schedule. Raises Refused and UsageError."""
    count = values.number(timer.value("throughput"), timer, "throughput", 100.0)
    period_s = values.number(timer.value("throughputPeriod"), timer, "throughputPeriod", 3600.0)
    length_s = values.whole(timer.value("duration"), timer, "duration", 3600)
    batch = max(values.whole(timer.value("batchSize"), timer, "batchSize", 1), 1)
    seed = values.whole(timer.value("randomSeed"), timer, "randomSeed", 0)
    timer.ignore("exactLimit", "allowedThroughputSurplus", "batchThreadDelay")  # unused by JMeter
    timer.finish()
    if not (count > 0 and period_s >= 1 and 1 <= length_s <= LONGEST_S and count / period_s <= 1e6):
        raise timer.wrong(
            f"a throughput above 0 in a period and a duration of whole seconds, found {count:g} in "
            f"{period_s:g} s, {length_s} s"
        )
    if users is None:
        raise timer.refused("a rate in an open model", "write the rate in the schedule", "conflict")
    if values.schedule is None:
        per_s = count / period_s
        times = _times(per_s / batch, length_s, _horizon_s(length_s, values), _draws(seed, values))
        if batch > 1 and len(times) > MOST_PHASES:
            raise timer.refused(
                f"{len(times)} batches of arrivals", f"use at most {MOST_PHASES}, or singles", "limit"
            )
        phases = tuple(_batches(times, batch) if batch > 1 else _single(times))
        phases = (*phases, PacePhase(duration_s=LONGEST_S, from_per_s=per_s, to_per_s=per_s))
        threads = f"{users} thread{'s' if users > 1 else ''}"
        close = "" if len(times) <= MOST_PHASES else f", each {_together(times)} of them evenly spaced"
        values.note(
            "arrivals_drawn",
            f"{len(times) * batch} arrivals are drawn as in JMeter{close}; the "
            f"{threads} of the group send on schedule, if they can reach {per_s:.3g}/s; "
            "missed arrivals are dropped (JMeter sends them at once)",
            timer,
        )
        values.schedule = Pace(phases=phases, per="run", name=values.unique("arrivals"))
    return values.schedule


def _horizon_s(length_s: int, values: KnownValues) -> float:
    """Duration of the drawn schedule: to the end of the group, if limited by time."""
    return float(length_s) if values.lasts_s is None or values.lasts_s >= LONGEST_S else values.lasts_s


def _times(per_s: float, length_s: int, horizon_s: float, draw: Callable[[], float]) -> list[float]:
    """Per period a whole number of arrivals, rounded up, uniformly distributed."""
    each = math.ceil(per_s * length_s)
    times: list[float] = []
    begins_s = 0.0
    while begins_s < horizon_s and len(times) + each <= MOST_ARRIVALS:
        times += sorted(begins_s + draw() * length_s for _ in range(each))
        begins_s += length_s
    if not times:  # more than the limit in one period
        times = sorted(draw() * MOST_ARRIVALS / per_s for _ in range(MOST_ARRIVALS))
    return times


def _together(times: Sequence[float]) -> int:
    return -(-len(times) // MOST_PHASES)


def _single(times: Sequence[float]) -> Iterator[PacePhase]:
    """A pause, then rates that make each next arrival due at its time."""
    each = _together(times)
    if times[0] > 0:
        yield PacePhase(duration_s=times[0], from_per_s=0, to_per_s=0)
    for at in range(each, len(times), each):
        gap_s = max(times[at] - times[at - each], each / BURST_PER_S)
        yield PacePhase(duration_s=gap_s, from_per_s=each / gap_s, to_per_s=each / gap_s)


def _batches(times: Sequence[float], batch: int) -> Iterator[PacePhase]:
    """Pauses, and batches between them."""
    burst_s = batch / BURST_PER_S
    now_s = 0.0
    for at_s in times:
        if at_s > now_s:
            yield PacePhase(duration_s=at_s - now_s, from_per_s=0, to_per_s=0)
        yield PacePhase(duration_s=burst_s, from_per_s=BURST_PER_S, to_per_s=BURST_PER_S)
        now_s = max(at_s, now_s) + burst_s


def _draws(seed: int, values: KnownValues) -> Callable[[], float]:
    return _java(seed) if seed else values.draws.random


def _java(seed: int) -> Callable[[], float]:
    """java.util.Random: a 48-bit linear congruential generator (Knuth, TAOCP 2, 3.2.1)."""
    state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def bits(count: int) -> int:
        nonlocal state
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        return state >> (48 - count)

    return lambda: ((bits(26) << 27) + bits(27)) / (1 << 53)
