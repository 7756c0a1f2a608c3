"""V8's CPU profiler in a running Node process, by its inspector: JavaScript frames.

All else (V8, libuv, the kernel) is a single frame `(program)`, apart from the garbage collector. One
recording is cut into slices by time, as each start makes V8 scan all its code.
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
"""CPU samples' share of the profiled time; allocations have the rest."""
KERNEL = (
    "kernel frames are missing: V8's profiler counts them as (program), or as the binding that made the "
    "system call; perf separates them where it is allowed"
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
        """Open the inspector and enable the profilers."""
        try:
            self._inspector = inspector = Inspector(self._pid)
            reply = inspector.ask("Runtime.evaluate", expression="process.version")
            self._version = f"(Node {reply.get('result', {}).get('value', '')})"
            inspector.ask("Profiler.enable")
            inspector.ask("HeapProfiler.enable")
        except NotOpened as fault:
            raise Unavailable(f"no CPU profile: {fault}") from fault

    def profile(self, schedule: Schedule) -> Profiled:
        """CPU samples in slices, then allocations."""
        inspector = self._inspector  # closed by `detach`, which ends any command
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
        except NotReached as fault:  # CPU samples are kept
            missing.append(f"stacks of allocations are missing: {fault}")
        done = ends if went_on else (*(end_s for end_s in ends if end_s < until_s), until_s)
        return Profiled(
            event="V8's sampling thread",
            interval_s=interval_us / 1e6,
            cpu=cut(recorded, schedule.begins_s, since_s, done).sampling("samples"),
            allocation=allocation,
            missing=tuple(missing),
        )

    def detach(self) -> None:
        """Disable the profilers and disconnect."""
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
    heap = inspector.ask("HeapProfiler.stopSampling")["profile"]
    slices = Slices(schedule.begins_s)
    slices.add(since_s, now_s, allocated(heap["head"]))
    return slices.sampling("bytes")


def cut(recorded: Mapping[str, Any], begins_s: float, since_s: float, ends_s: Sequence[float]) -> Slices:
    """Slices of a `.cpuprofile` started at `since_s` (CLOCK_MONOTONIC), without idle samples."""
    stacks = _stacks(recorded)
    ends_s = [end_s for end_s in ends_s if end_s > since_s]
    counts: list[dict[Stack, int]] = [{} for _ in ends_s]
    at_s = since_s
    for node, delta_us in zip(recorded["samples"], recorded["timeDeltas"], strict=False):
        at_s += delta_us / 1e6
        place, stack = bisect_right(ends_s, at_s), stacks.get(node)
        if stack is not None and place < len(ends_s):
            counts[place][stack] = counts[place].get(stack, 0) + 1
    slices = Slices(begins_s)
    for start_s, end_s, counted in zip((since_s, *ends_s), ends_s, counts, strict=False):
        slices.add(start_s, end_s, counted)
    return slices


def _stacks(profile: Mapping[str, Any]) -> dict[int, Stack]:
    """The stack of each node that is not idle."""
    nodes = {node["id"]: node for node in profile["nodes"]}
    parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", ())}
    stacks: dict[int, Stack] = {}
    for node in nodes.values():
        name = node["callFrame"]["functionName"]
        if name == IDLE:
            continue
        stack, at = list[str](), node["id"]
        while at in parents:  # the root is no frame
            stack.append(_frame(nodes[at]["callFrame"]))
            at = parents[at]
        stacks[node["id"]] = tuple(reversed(stack)) or (name,)
    return stacks


def allocated(head: Mapping[str, Any]) -> dict[Stack, int]:
    """A sampling heap profile as stacks with bytes."""
    sizes: dict[Stack, int] = {}
    todo: list[tuple[Stack, Iterable[Mapping[str, Any]]]] = [((), head.get("children", ()))]
    while todo:
        above, children = todo.pop()
        for child in children:
            stack = (*above, _frame(child["callFrame"]))
            if child.get("selfSize"):
                sizes[stack] = sizes.get(stack, 0) + int(child["selfSize"])
            todo.append((stack, child.get("children", ())))
    return sizes


def _frame(call: Mapping[str, Any]) -> str:
    name = (call.get("functionName") or "(anonymous)").replace(";", ",")
    file = str(call.get("url") or "").removeprefix("file://").replace(";", ",")
    if file:
        return f"{file}`{name}_[s]"
    return name if name.startswith("(") else f"node`{name}_[s]"
