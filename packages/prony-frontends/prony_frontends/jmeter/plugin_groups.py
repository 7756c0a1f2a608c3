"""Ramps of jmeter-plugins' Ultimate, Stepping and Concurrency Thread Groups, by their arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode

ULTIMATE = "kg.apc.jmeter.threads.UltimateThreadGroup"
STEPPING = "kg.apc.jmeter.threads.SteppingThreadGroup"
CONCURRENCY = "com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup"
KINDS = frozenset({ULTIMATE, STEPPING, CONCURRENCY})
MOST_THREADS = 100_000
MOST_WAVES = 500
"""Limit on groups of threads with common start and end; above, neighbours are merged."""
SECONDS = {"S": 1.0, "M": 60.0}


@dataclass(frozen=True, slots=True)
class Wave:
    """Threads with common start and end."""

    threads: int
    start_s: float
    end_s: float


def waves(node: JmxNode, values: KnownValues) -> tuple[Wave, ...]:
    """Waves of a group, in the order of its threads. Raises Refused and UsageError."""
    lives = _LIVES[node.tag](node, values)
    if not lives:
        raise node.wrong("at least one thread")
    if len(lives) > MOST_THREADS:
        raise node.refused(f"{len(lives)} threads", f"use at most {MOST_THREADS}, or a Thread Group", "limit")
    lives = [(start_s, end_s) for start_s, end_s in lives if start_s < end_s]  # others send nothing
    if not lives:
        raise node.wrong("a hold time above 0")
    by_life = tuple(Wave(len(list(same)), *life) for life, same in groupby(lives))
    if len(by_life) <= MOST_WAVES:
        return by_life
    each = -(-len(lives) // MOST_WAVES)
    values.note("thread_steps", f"{each} threads start and end together, with the first of them", node)
    return tuple(Wave(len(lives[at : at + each]), *lives[at]) for at in range(0, len(lives), each))


Lives = Sequence[tuple[float, float]]
"""Start and end of each thread, in s after the start of the run."""


def _ultimate(node: JmxNode, values: KnownValues) -> Lives:
    """Rows of threads, delay, start-up, hold and shutdown times. Of n threads the k-th before the last starts
    after (n - k)/n of the start-up time; the last to start is the last to end.
    """
    lives: list[tuple[float, float]] = []
    for row in node.members("ultimatethreadgroupdata"):
        cells = [values.number(cell.text, node, "a cell of the schedule", 0.0) for cell in row.children]
        if len(cells) != 5 or min(cells) < 0 or cells[0] > MOST_THREADS:
            raise node.wrong(f"rows of five numbers from 0, found {len(cells)}: {cells}")
        threads, delay_s, up_s, hold_s, down_s = cells
        for k in range(int(threads), 0, -1):
            share = k / threads
            lives.append((delay_s + up_s * share, delay_s + up_s + hold_s + down_s * share))
    return lives


def _stepping(node: JmxNode, values: KnownValues) -> Lives:
    """Initial threads, then steps of more every period, each a ramp; threads stop in steps, too."""

    def number(name: str) -> int:
        return values.whole(node.value(name), node, name, 0)

    threads = number("ThreadGroup.num_threads")
    if not 0 < threads <= MOST_THREADS:
        raise node.wrong(f"1 to {MOST_THREADS} threads, found {threads}")
    more, fewer = number("Start users count") or threads, number("Stop users count") or threads
    first = min(number("Start users count burst"), threads)
    first = first if first > 0 else more
    ramp_s, delay_s = number("rampUp"), number("Threads initial delay")
    step_s = number("Start users period") + ramp_s
    steps = 1 if threads < first else -(-(threads - first) // more)
    last = (threads - first) % more or more
    down_s = delay_s + step_s * steps + ramp_s / more * last + number("flighttime")
    out_s = number("Stop users period")
    lives: list[tuple[float, float]] = []
    for thread in range(threads):
        early = thread < first
        step = 0 if early else 1 + (thread - first) // more
        place = thread if early else (thread - first) % more
        start_s = delay_s + step * step_s + place * ramp_s / (first if early else more)
        lives.append((start_s, down_s + out_s * (thread // fewer)))
    return lives


def _concurrency(node: JmxNode, values: KnownValues) -> Lives:
    """A level reached in steps, or evenly without them, and held."""
    threads = values.whole(node.value("TargetLevel"), node, "TargetLevel", 0)
    unit = node.value("Unit", "M").strip().upper() or "M"
    if unit not in SECONDS or not 0 < threads <= MOST_THREADS:
        raise node.wrong(f"a TargetLevel from 1 and a Unit of M or S, found {threads} and '{unit}'")
    up_s, hold_s = (
        values.number(node.value(name), node, name, 0.0) * SECONDS[unit] for name in ("RampUp", "Hold")
    )
    steps = values.whole(node.value("Steps"), node, "Steps", 0) or threads
    node.ignore("LogFilename", "same_user_on_next_iteration")  # the latter is no property of this group
    level = [-(-threads * step // steps) for step in range(1, steps + 1)]
    starts = [next(place for place, most in enumerate(level) if thread < most) for thread in range(threads)]
    return [(up_s * place / steps, up_s + hold_s) for place in starts]


_LIVES = {ULTIMATE: _ultimate, STEPPING: _stepping, CONCURRENCY: _concurrency}
