"""V8's own CPU profiler in a running Node process, by its inspector: JavaScript frames.

What is not JavaScript (V8, libuv, the kernel) is one frame `(program)`, the garbage collector another. One
recording is cut by the time of its samples, as starting one costs V8 a look at all code that it has.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from prony.evidence.profile import Sampling, Stack
from prony_explain.inspector import Inspector, NotOpened
from prony_explain.processes import NotReached
from prony_explain.profilers.base import Profiled, Schedule, Slices, Unavailable, ended_early

NAME = "V8's profiler"
IDLE = "(idle)"
ALLOCATION_BYTES = 32 * 1024
CPU_SHARE = 0.9
"""Of the profiled time; allocations have the rest."""
KERNEL = (
    "kernel frames are missing: V8's profiler counts them with native ones as (program), or as the binding "
    "that made the system call; perf tells them apart where it may be used"
)


class NodeProfiler:
    """V8's profiler in one process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._inspector: Inspector | None = None
        self._version = ""

    @property
    def name(self) -> str:
        return f"{NAME} {self._version}".strip()

    def attach(self) -> None:
        """Open the inspector, and set the profiler up."""
        try:
            self._inspector = inspector = Inspector(self._pid)
            said = inspector.ask("Runtime.evaluate", expression="process.version")
            self._version = f"(Node {said.get('result', {}).get('value', '')})"
            inspector.ask("Profiler.enable")
            inspector.ask("HeapProfiler.enable")
        except NotOpened as fault:
            raise Unavailable(f"no CPU profile: {fault}") from fault

    def profile(self, schedule: Schedule) -> Profiled:
        """CPU samples in slices, then allocations."""
        inspector = self._inspector  # hung up by `detach`, which ends whatever was begun
        assert inspector is not None, "attached"
        ends = schedule.ends_s[: max(1, round(CPU_SHARE * len(schedule.ends_s)))]
        interval_us = round(schedule.interval_s * 1e6)
        try:
            inspector.ask("Profiler.setSamplingInterval", interval=interval_us)
            inspector.ask("Profiler.start")
            since_s = time.monotonic()
            went_on = schedule.wait_until(ends[-1])
            until_s = time.monotonic()
            recorded = inspector.ask("Profiler.stop")["profile"]
        except NotOpened as fault:
            raise Unavailable(ended_early(NAME, fault)) from fault
        allocation, missing = None, list[str]()
        try:
            allocation = _allocation(inspector, schedule) if went_on else None
        except NotReached as fault:  # the CPU samples are there
            missing.append(f"stacks of allocations are missing: {fault}")
        done = ends if went_on else (*(one for one in ends if one < until_s), until_s)
        return Profiled(
            event="V8's sampling thread",
            interval_s=interval_us / 1e6,
            cpu=cut(recorded, schedule.begins_s, since_s, done).sampling("samples"),
            allocation=allocation,
            missing=tuple(missing),
        )

    def detach(self) -> None:
        """Switch the profiler off and hang up."""
        inspector, self._inspector = self._inspector, None
        if inspector is None:
            return
        with suppress(NotReached):
            inspector.ask("Profiler.disable")
            inspector.ask("HeapProfiler.disable")
        inspector.close()


def _allocation(inspector: Inspector, schedule: Schedule) -> Sampling | None:
    inspector.ask(
        "HeapProfiler.startSampling",
        samplingInterval=ALLOCATION_BYTES,
        includeObjectsCollectedByMajorGC=True,
        includeObjectsCollectedByMinorGC=True,
    )
    since_s = time.monotonic()
    schedule.wait_until(schedule.ends_s[-1])
    now_s = time.monotonic()
    found = inspector.ask("HeapProfiler.stopSampling")["profile"]
    slices = Slices(schedule.begins_s)
    slices.add(since_s, now_s, allocated(found["head"]))
    return slices.sampling("bytes")


def cut(recorded: Mapping[str, Any], begins_s: float, since_s: float, ends_s: Sequence[float]) -> Slices:
    """A `.cpuprofile` that was begun at `since_s` of CLOCK_MONOTONIC in slices that end at these moments;
    without the samples in which nothing ran.
    """
    every = _stacks(recorded)
    ends_s = [one for one in ends_s if one > since_s]
    made: list[dict[Stack, int]] = [{} for _ in ends_s]
    at_s = since_s
    for node, delta_us in zip(recorded["samples"], recorded["timeDeltas"], strict=False):
        at_s += delta_us / 1e6
        place, stack = bisect_right(ends_s, at_s), every.get(node)
        if stack is not None and place < len(ends_s):
            made[place][stack] = made[place].get(stack, 0) + 1
    slices = Slices(begins_s)
    for start_s, end_s, found in zip((since_s, *ends_s), ends_s, made, strict=False):
        slices.add(start_s, end_s, found)
    return slices


def _stacks(profile: Mapping[str, Any]) -> dict[int, Stack]:
    """The stack of each node in which something ran."""
    nodes = {node["id"]: node for node in profile["nodes"]}
    parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", ())}
    found: dict[int, Stack] = {}
    for node in nodes.values():
        name = node["callFrame"]["functionName"]
        if name == IDLE:
            continue
        stack, at = list[str](), node["id"]
        while at in parents:  # the root is no frame
            stack.append(_frame(nodes[at]["callFrame"]))
            at = parents[at]
        found[node["id"]] = tuple(reversed(stack)) or (name,)
    return found


def allocated(head: Mapping[str, Any]) -> dict[Stack, int]:
    """A sampling heap profile as stacks with their bytes."""
    found: dict[Stack, int] = {}
    todo: list[tuple[Stack, Iterable[Mapping[str, Any]]]] = [((), head.get("children", ()))]
    while todo:
        above, children = todo.pop()
        for child in children:
            stack = (*above, _frame(child["callFrame"]))
            if child.get("selfSize"):
                found[stack] = found.get(stack, 0) + int(child["selfSize"])
            todo.append((stack, child.get("children", ())))
    return found


def _frame(call: Mapping[str, Any]) -> str:
    name = (call.get("functionName") or "(anonymous)").replace(";", ",")
    file = str(call.get("url") or "").removeprefix("file://").replace(";", ",")
    if file:
        return f"{file}`{name}_[s]"
    return name if name.startswith("(") else f"node`{name}_[s]"
