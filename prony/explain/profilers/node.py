"""V8's own CPU profiler in a running Node process, by its inspector: JavaScript frames.

What is not JavaScript (V8, libuv, the kernel) is one frame `(program)`, the garbage collector another. Must
not know the trial.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from prony.evidence.profile import Sampling, Stack
from prony.explain.inspector import Inspector, NotOpened
from prony.explain.profilers.base import Profiled, Schedule, Slices, Unavailable

INTERVAL_US = 1000
IDLE = "(idle)"
ALLOCATION_BYTES = 32 * 1024
CPU_SHARE = 0.9
"""Of the profiled time; allocations have the rest."""
KERNEL = (
    "native and kernel frames are missing: V8's profiler counts them together as (program), whose parts "
    "system calls per request and the kernel's share of the CPU time tell"
)


class NodeProfiler:
    """V8's profiler in one process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._inspector: Inspector | None = None
        self._version = ""

    @property
    def name(self) -> str:
        return f"V8's profiler {self._version}".strip()

    def attach(self) -> None:
        """Open the inspector, and set the profiler up."""
        try:
            self._inspector = inspector = Inspector(self._pid)
            said = inspector.ask("Runtime.evaluate", expression="process.version")
            self._version = f"(Node {said.get('result', {}).get('value', '')})"
            inspector.ask("Profiler.enable")
            inspector.ask("HeapProfiler.enable")
            inspector.ask("Profiler.setSamplingInterval", interval=INTERVAL_US)
        except NotOpened as fault:
            raise Unavailable(f"no CPU profile: {fault}") from fault

    def profile(self, schedule: Schedule) -> Profiled:
        """CPU samples in slices, then allocations."""
        assert self._inspector is not None, "attached"
        slices = Slices(schedule.begins_s)
        first = max(1, round(CPU_SHARE * len(schedule.ends_s)))
        went_on = True
        try:
            for end_s in schedule.ends_s[:first]:
                if not went_on or end_s < time.monotonic():
                    continue
                self._inspector.ask("Profiler.start")
                since_s = time.monotonic()
                went_on = schedule.wait_until(end_s)
                now_s = time.monotonic()
                slices.add(since_s, now_s, stacks(self._inspector.ask("Profiler.stop")["profile"]))
            allocation = self._allocation(schedule) if went_on else None
        except NotOpened as fault:
            raise Unavailable(f"V8's profiler ended early: {fault}") from fault
        return Profiled(
            event="V8's sampling thread",
            interval_s=INTERVAL_US / 1e6,
            cpu=slices.sampling("samples"),
            allocation=allocation,
            missing=(KERNEL,),
        )

    def _allocation(self, schedule: Schedule) -> Sampling | None:
        assert self._inspector is not None, "attached"
        self._inspector.ask(
            "HeapProfiler.startSampling",
            samplingInterval=ALLOCATION_BYTES,
            includeObjectsCollectedByMajorGC=True,
            includeObjectsCollectedByMinorGC=True,
        )
        since_s = time.monotonic()
        schedule.wait_until(schedule.ends_s[-1])
        now_s = time.monotonic()
        found = self._inspector.ask("HeapProfiler.stopSampling")["profile"]
        slices = Slices(schedule.begins_s)
        slices.add(since_s, now_s, allocated(found["head"]))
        return slices.sampling("bytes")

    def detach(self) -> None:
        """Switch the profiler off and hang up."""
        inspector, self._inspector = self._inspector, None
        if inspector is None:
            return
        with suppress(NotOpened):
            inspector.ask("Profiler.disable")
            inspector.ask("HeapProfiler.disable")
        inspector.close()


def stacks(profile: Mapping[str, Any]) -> dict[Stack, int]:
    """A `.cpuprofile` as stacks with their samples; without the time in which nothing ran."""
    nodes = {node["id"]: node for node in profile["nodes"]}
    parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", ())}
    found: dict[Stack, int] = {}
    for node in nodes.values():
        count = node.get("hitCount", 0)
        name = node["callFrame"]["functionName"]
        if not count or name == IDLE:
            continue
        stack, at = list[str](), node["id"]
        while at in parents:  # the root is no frame
            stack.append(_frame(nodes[at]["callFrame"]))
            at = parents[at]
        key = tuple(reversed(stack)) or (name,)
        found[key] = found.get(key, 0) + count
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
    return name if name.startswith("(") else f"node`{name}"
