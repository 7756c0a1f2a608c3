"""The Throughput Shaping Timer of jmeter-plugins: a rate over time shared by all threads in scope, which stop
at its end. `__tstFeedback` gives the number of threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from prony.plan.blocks import Pace, PacePhase
from prony_frontends.jmeter.functions import CALLS, Call, KnownValues, Text
from prony_frontends.jmeter.jmx import JmxNode

TIMER = "kg.apc.jmeter.timers.VariableThroughputTimer"
PROPERTY = "load_profile"
"""JMeter's property, also on the command line: const(10,30s) line(10,50,1m) step(5,25,5,1h)."""
PIECE = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*")
UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
NUMBERS = {"const": 2, "line": 3, "step": 4}
"""Kinds of pieces -> number of values."""


def pace(timer: JmxNode, users: int | None, values: KnownValues, name: str) -> Pace:
    """The timer's pace. Raises Refused and UsageError."""
    phases = _phases(timer, values)
    timer.finish()
    if users is None:
        raise timer.refused("a rate in an open model", "write the rate in the schedule", "conflict")
    most = max(max(phase.from_per_s, phase.to_per_s) for phase in phases)
    threads = f"{users} thread{'s' if users > 1 else ''}"
    values.note(
        "on_schedule",
        f"the {threads} of the group send on schedule, if they "
        f"can reach up to {most:g}/s: responses may take {1000 * users / most:.3g} ms on average; the "
        "rate changes continuously from the first request on (in JMeter once per second), and missed "
        "requests are dropped",
        timer,
    )
    return Pace(phases=phases, per="run", name=name)


def end_s(nodes: Iterable[JmxNode], values: KnownValues) -> float | None:
    """End of the schedules of these timers and of those below, in s; the timer then stops its threads."""
    ends_s = [
        sum(phase.duration_s for phase in _phases(node, values))
        for top in nodes
        if top.enabled
        for node in top.everything()
        if node.tag == TIMER
    ]
    return min(ends_s, default=None)


def _phases(timer: JmxNode, values: KnownValues) -> tuple[PacePhase, ...]:
    given = values.properties.get(PROPERTY, "")
    rows = timer.members(PROPERTY)
    phases = tuple(_of_text(given, timer)) if given.strip() else tuple(_of_rows(rows, timer, values))
    if not any(phase.from_per_s or phase.to_per_s for phase in phases):
        raise timer.wrong("a schedule with a rate above 0")
    return phases


def _of_rows(rows: Sequence[JmxNode], timer: JmxNode, values: KnownValues) -> Iterator[PacePhase]:
    for row in rows:
        cells = [values.number(cell.text, timer, "a cell of the schedule") for cell in row.children]
        if len(cells) != 3:
            raise timer.wrong(f"rows of start, end and duration, found {len(cells)} cells")
        yield from _phase(cells[0], cells[1], int(cells[2]), timer)


def _phase(start: float, end: float, duration_s: float, timer: JmxNode) -> Iterator[PacePhase]:
    if not (0 <= start <= 1e6 and 0 <= end <= 1e6 and 0 <= duration_s <= 1e7):
        raise timer.wrong(f"rates up to 1,000,000 for a time, found {start:g} to {end:g} in {duration_s:g} s")
    if duration_s:
        yield PacePhase(duration_s=duration_s, from_per_s=start, to_per_s=end)


def _of_text(text: str, timer: JmxNode) -> Iterator[PacePhase]:
    at = 0
    while at < len(text):
        match = PIECE.match(text, at)
        kind = match.group(1).lower() if match is not None else ""
        given = [] if match is None else [part.strip() for part in match.group(2).split(",")]
        numbers = [int(part) for part in given[:-1] if re.fullmatch(r"\d{1,7}", part)]
        if match is None or len(given) != NUMBERS.get(kind) or len(numbers) != len(given) - 1:
            raise timer.wrong(f"{PROPERTY} as const(10,30s) line(10,50,1m) step(5,25,5,1h), found '{text}'")
        at = match.end()
        duration_s = _seconds(given[-1], timer)
        if kind == "step":
            start, end, by = numbers[0], numbers[1], max(numbers[2], 1)
            levels = range(start, end + 1, by) if start <= end else range(start, end, -by)
            for level in levels:
                yield from _phase(level, level, duration_s, timer)
        else:
            yield from _phase(numbers[0], numbers[-1], duration_s, timer)


def _seconds(text: str, timer: JmxNode) -> float:
    """`90`, `30s`, `1h30m`."""
    pieces = re.findall(r"(\d{1,7})([smhd]?)", text.lower())
    if not pieces or "".join(number + unit for number, unit in pieces) != text.lower():
        raise timer.wrong(f"a time such as 30s or 1h30m, found '{text}'")
    return float(sum(int(number) * UNIT_S.get(unit, 1) for number, unit in pieces))


def _feedback(call: Call) -> Text:
    """`__tstFeedback(timer,first,most,spare)`: as many threads as the timer's rate needs, up to `most`."""
    most = call.constants(3, 4)[2]
    call.values.note(
        "threads_from_start",
        f"all {most} threads exist from the start ({call.name} starts them as the "
        "timer's rate needs them); unneeded threads wait",
        call.where,
    )
    return Text.of(most)


CALLS["__tstFeedback"] = _feedback
