"""CPU time of processes other than Prony's own.

The smaller of two upper bounds: *busy minus own CPU* of a CPU set, which includes interrupts, and *the sum
over all other processes*, which includes other CPUs and needs all processes to be visible.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from prony.host.proc import (
    ROOT,
    TICKS_PER_S,
    ProcessStat,
    all_processes,
    now_s,
    read_bytes,
    read_text,
    threads_total,
)

SEEN_SHARE = 0.9
"""Share of visible tasks below which a container or hidepid hides the rest."""

UNSURE_SHARE = 0.02
"""Widest bracket between the bounds with a reported figure."""


@dataclass(frozen=True, slots=True)
class Census:
    """All processes at a moment."""

    t_monotonic_s: float
    processes: dict[int, ProcessStat]
    complete: bool | None
    """Whether all tasks of the host were visible; None when not known."""


@dataclass(frozen=True, slots=True)
class OthersUse:
    """CPU time of all other processes between two censuses."""

    cpu_s: float
    busiest: str | None
    complete: bool | None


def census(root: Path = ROOT) -> Census:
    """Reads every process: some 10 µs each, so only before and after a window."""
    processes = all_processes(root)
    total = threads_total(root)
    seen = sum(process.threads for process in processes.values())
    return Census(now_s(), processes, None if total is None else seen >= SEEN_SHARE * total)


def others_between(before: Census, after: Census, own: Collection[tuple[int, int]]) -> OthersUse:
    """CPU seconds of everything but `own` (pid, start tick), including reaped short-lived children.

    An ended process leaves its time in its parent's reaped time; its use before the first census is
    subtracted. ksoftirqd, which handles the load's traffic, is excluded.
    """
    gained: list[tuple[int, ProcessStat]] = []
    for pid, late in after.processes.items():
        if _excluded(late, own):
            continue
        early = before.processes.get(pid)
        if early is not None and early.started_ticks == late.started_ticks:
            gain = late.own_ticks - early.own_ticks + late.reaped_ticks - early.reaped_ticks
        else:
            gain = late.own_ticks + late.reaped_ticks
        gained.append((gain, late))
    ended = 0
    inherited: dict[int, int] = {}
    for pid, early in before.processes.items():
        late_or_none = after.processes.get(pid)
        gone = late_or_none is None or late_or_none.started_ticks != early.started_ticks
        if gone and not _excluded(early, own):
            ended += early.own_ticks + early.reaped_ticks
            heir = _heir(early, before, after)
            inherited[heir] = inherited.get(heir, 0) + early.own_ticks + early.reaped_ticks
    still_there = sum(
        late.own_ticks - before.processes[late.pid].own_ticks
        for _, late in gained
        if late.pid in before.processes and before.processes[late.pid].started_ticks == late.started_ticks
    )
    ticks = max(still_there, sum(gain for gain, _ in gained) - ended)
    complete = after.complete if before.complete else before.complete
    fresh = [(gain - inherited.get(process.pid, 0), process) for gain, process in gained]
    return OthersUse(
        ticks / TICKS_PER_S, _busiest(fresh, after.t_monotonic_s - before.t_monotonic_s), complete
    )


def _heir(ended: ProcessStat, before: Census, after: Census) -> int:
    """The nearest living ancestor, whose reaped time holds the ended process's time."""
    pid = ended.parent
    seen: set[int] = set()
    while pid not in after.processes and pid in before.processes and pid not in seen:
        seen.add(pid)
        pid = before.processes[pid].parent
    return pid


def _excluded(process: ProcessStat, own: Collection[tuple[int, int]]) -> bool:
    if process.kernel_thread and process.name.startswith("ksoftirqd/"):
        return True
    return (process.pid, process.started_ticks) in own


def _busiest(gained: list[tuple[int, ProcessStat]], span_s: float) -> str | None:
    if not gained or span_s <= 0:
        return None
    ticks, process = max(gained, key=lambda entry: entry[0])
    if ticks <= 0:
        return None
    share = ticks / TICKS_PER_S / span_s
    return f"{process.name} (pid {process.pid}), {share:.1%} of one CPU"


def share_of_others(
    *,
    busy_s: float,
    irq_s: float,
    own_s: float,
    others: OthersUse | None,
    irq_accounted: bool | None,
    capacity_s: float,
) -> float | None:
    """Share of a CPU set (capacity = CPUs × wall) used by others; None without a close bound.
    `irq_accounted`: whether process time excludes interrupts (CONFIG_IRQ_TIME_ACCOUNTING), which are then
    subtracted from busy time.
    """
    if capacity_s <= 0:
        return None
    upper = max(0.0, busy_s - own_s) / capacity_s
    lower = max(0.0, busy_s - irq_s - own_s) / capacity_s
    if irq_accounted is not None:
        lower = upper = lower if irq_accounted else upper
    if others is not None and others.complete:
        return min(upper, others.cpu_s / capacity_s)
    if upper - lower <= UNSURE_SHARE:
        return upper
    return lower if lower > UNSURE_SHARE else None


def irq_time_accounted(root: Path = ROOT) -> bool | None:
    """CONFIG_IRQ_TIME_ACCOUNTING of the running kernel; None when unreadable."""
    packed = read_bytes(root / "proc/config.gz")
    text: str | None = None
    if packed is not None:
        try:
            text = gzip.decompress(packed).decode("ascii", "replace")
        except (OSError, EOFError):
            text = None
    if text is None:
        release = read_text(root / "proc/sys/kernel/osrelease")
        text = read_text(root / "boot" / f"config-{release}") if release else None
    return None if text is None else "CONFIG_IRQ_TIME_ACCOUNTING=y" in text
