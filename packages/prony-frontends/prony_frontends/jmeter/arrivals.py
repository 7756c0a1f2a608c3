"""Arrivals and Free-Form Arrivals thread groups of jmeter-plugins: rates over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from prony.plan.load import OpenLoad, RatePhase
from prony_frontends.jmeter.functions import KnownValues
from prony_frontends.jmeter.jmx import JmxNode
from prony_frontends.jmeter.plugin_groups import SECONDS

ARRIVALS = "com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup"
FREE_FORM = "com.blazemeter.jmeter.threads.arrivals.FreeFormArrivalsThreadGroup"
KINDS = frozenset({ARRIVALS, FREE_FORM})
MOST_STEPS = 1000
MOST_THREADS = 10_000
"""Concurrent users in a group without a limit."""
HIGHEST_PER_S = 1e6


def load(node: JmxNode, values: KnownValues) -> OpenLoad:
    """An open load: each arrival is a user with one iteration. Raises Refused and UsageError."""
    unit = node.value("Unit", "M").strip().upper() or "M"
    if unit not in SECONDS:
        raise node.wrong(f"a Unit of M or S, found '{unit}'")
    rows = _schedule if node.tag == FREE_FORM else _level
    phases = tuple(rows(node, values, SECONDS[unit]))
    if not any(phase.from_per_s or phase.to_per_s for phase in phases):
        raise node.wrong("a schedule with a rate above 0")
    if any(max(phase.from_per_s, phase.to_per_s) > HIGHEST_PER_S for phase in phases):
        raise node.wrong(f"rates up to {HIGHEST_PER_S:g}/s")
    most = values.whole(node.value("ArrivalsLimit"), node, "ArrivalsLimit", 0)
    limit = values.whole(node.value("ConcurrencyLimit"), node, "ConcurrencyLimit", 0)
    node.ignore("LogFilename", "Iterations")  # neither affects the plug-in's requests
    users = limit if limit > 0 else MOST_THREADS
    values.note(
        "blocked_arrivals",
        f"an arrival with {users} users active counts as blocked and is not sent"
        + ("" if limit > 0 else " (the plug-in would start another thread)"),
        node,
    )
    return OpenLoad(
        phases=tuple(_first(phases, most)) if most > 0 else phases, session="user", max_users=users
    )


def _level(node: JmxNode, values: KnownValues, unit_s: float) -> Iterator[RatePhase]:
    """A rate that rises in steps, or evenly without them, and is held."""
    target = values.whole(node.value("TargetLevel", "1"), node, "TargetLevel", 1)
    up_s, hold_s = (
        float(round(values.number(node.value(name, usual), node, name, 0.0) * unit_s))
        for name, usual in (("RampUp", ""), ("Hold", "1"))
    )
    steps = values.whole(node.value("Steps"), node, "Steps", 0)
    if target < 0 or up_s < 0 or hold_s < 0 or not 0 <= steps <= MOST_STEPS:
        raise node.wrong(
            f"a target, times and up to {MOST_STEPS} steps from 0, found {target}, {up_s:g} s, {hold_s:g} s "
            f"and {steps} steps"
        )
    per_s = target / unit_s
    if up_s and steps:
        for step in range(1, steps + 1):
            level = per_s * step / steps
            yield RatePhase(duration_s=up_s / steps, from_per_s=level, to_per_s=level)
    elif up_s:
        values.note(
            "even_ramp",
            f"the rate rises evenly over {up_s:g} s (version 2.10 of the plug-in has no "
            "arrivals in a ramp without steps)",
            node,
        )
        yield RatePhase(duration_s=up_s, from_per_s=0, to_per_s=per_s)
    if hold_s:
        yield RatePhase(duration_s=hold_s, from_per_s=per_s, to_per_s=per_s)


def _schedule(node: JmxNode, values: KnownValues, unit_s: float) -> Iterator[RatePhase]:
    """Rows of start rate, end rate and duration."""
    for row in node.members("Schedule"):
        cells = [values.number(cell.text, node, "a cell of the schedule", 0.0) for cell in row.children]
        if len(cells) != 3 or min(cells) < 0:
            raise node.wrong(f"rows of start, end and duration from 0, found {cells}")
        if cells[2]:
            yield RatePhase(
                duration_s=cells[2] * unit_s, from_per_s=cells[0] / unit_s, to_per_s=cells[1] / unit_s
            )


def _first(phases: Sequence[RatePhase], most: int) -> Iterator[RatePhase]:
    """The phases, cut off after `most` arrivals."""
    left = float(most)
    for phase in phases:
        there = (phase.from_per_s + phase.to_per_s) / 2 * phase.duration_s
        if there >= left:
            slope = (phase.to_per_s - phase.from_per_s) / phase.duration_s
            root = math.sqrt(max(phase.from_per_s**2 + 2 * slope * left, 0.0))
            duration_s = 2 * left / (phase.from_per_s + root)
            yield RatePhase(
                duration_s=duration_s,
                from_per_s=phase.from_per_s,
                to_per_s=max(phase.from_per_s + slope * duration_s, 0.0),
            )
            return
        left -= there
        yield phase
