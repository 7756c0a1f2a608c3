"""CPU time of Prony's own processes by CPU set, and of all others.

The smaller of two upper bounds: *busy minus own CPU* of a CPU set, which includes interrupts, and *the sum
over all other processes*, which includes other CPUs and needs all processes to be visible.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from prony.host.proc import (
    ROOT,
    TICKS_PER_S,
    ProcessStat,
    all_processes,
    now_s,
    process_stat,
    read_bytes,
    read_text,
    thread_ids,
    threads_total,
)

SEEN_SHARE = 0.9
"""Share of visible tasks below which a container or hidepid hides the rest."""

UNSURE_SHARE = 0.02
"""Widest bracket between the bounds with a reported figure."""


@dataclass(frozen=True, slots=True)
class Census:
    t_monotonic_s: float
    processes: dict[int, ProcessStat]
    complete: bool | None
    """Whether all tasks of the host were visible; None when not known."""


@dataclass(frozen=True, slots=True)
class OthersUse:
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
    """CPU seconds of everything but `own` (pid, start tick), including reaped children. An ended process
    leaves its time in its parent's reaped time; its use before the first census is subtracted. ksoftirqd is
    excluded.
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
    """The nearest living ancestor."""
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
    """Share of a CPU set (capacity = CPUs × wall); None without a close bound. `irq_accounted`: process time
    excludes interrupts, which are then subtracted from busy time.
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


THREADS_LIMIT = 512
"""Most threads read per process; beyond, the main thread decides."""


@dataclass(slots=True)
class OwnUse:
    """Cumulative CPU seconds on two CPU sets. A process pinned to a set counts there; others are split by
    their threads' affinity or last CPU.
    """

    server_cpus: frozenset[int]
    client_cpus: frozenset[int]
    root: Path = ROOT
    server_s: float = 0.0
    client_s: float = 0.0
    identities: set[tuple[int, int]] = field(default_factory=set)
    """(pid, start tick)."""
    _last: dict[tuple[int, int], int] = field(default_factory=dict)
    _threads: dict[tuple[int, int], int] = field(default_factory=dict)
    _previous_ticks: int | None = None

    def update(self, pids: Iterable[int], uptime_ticks: int | None) -> None:
        """New processes count from their start."""
        current: dict[tuple[int, int], int] = {}
        threads: dict[tuple[int, int], int] = {}
        for pid in pids:
            process = process_stat(pid, self.root)
            if process is None:
                continue
            identity = (pid, process.started_ticks)
            self.identities.add(identity)
            current[identity] = process.own_ticks
            gain = process.own_ticks - self._last.get(identity, self._baseline(process))
            server, client = self._divide(process, threads)
            self.server_s += max(0, gain) * server / TICKS_PER_S
            self.client_s += max(0, gain) * client / TICKS_PER_S
        self._last, self._threads, self._previous_ticks = current, threads, uptime_ticks

    def _baseline(self, process: ProcessStat) -> int:
        """Zero if it is younger than the last reading."""
        previous = self._previous_ticks
        return 0 if previous is not None and process.started_ticks >= previous else process.own_ticks

    def _divide(self, process: ProcessStat, threads: dict[tuple[int, int], int]) -> tuple[float, float]:
        """(share on the server's set, share on the client's set); with one set for both, both are 1."""
        if self.server_cpus == self.client_cpus:
            return 1.0, 1.0
        mask = self._mask(process.pid)
        if mask is not None:
            if mask <= self.server_cpus:
                return 1.0, 0.0
            if mask <= self.client_cpus:
                return 0.0, 1.0
        return self._by_threads(process, threads)

    def _by_threads(self, process: ProcessStat, threads: dict[tuple[int, int], int]) -> tuple[float, float]:
        weights = [0.0, 0.0, 0.0]
        few = process.threads <= THREADS_LIMIT
        for thread in thread_ids(process.pid, self.root) if few else [process.pid]:
            stat = _thread_stat(process.pid, thread, self.root)
            if stat is None:
                continue
            ticks, last_cpu = stat
            key = (process.pid, thread)
            threads[key] = ticks
            # New threads weigh with their whole life: only proportions matter.
            weights[self._side(self._mask(thread), last_cpu)] += ticks - self._threads.get(key, 0)
        total = sum(weights)
        if total <= 0:
            side = self._side(None, process.last_cpu)
            return float(side == 0), float(side == 1)
        return weights[0] / total, weights[1] / total

    def _side(self, mask: Collection[int] | None, last_cpu: int) -> int:
        """0 server, 1 client, 2 neither."""
        cpus = set(mask) if mask is not None else set()
        for side, own in ((0, self.server_cpus), (1, self.client_cpus)):
            if cpus and cpus <= own:
                return side
        for side, own in ((0, self.server_cpus), (1, self.client_cpus)):
            if last_cpu in own:
                return side
        return 2

    def _mask(self, pid: int) -> frozenset[int] | None:
        if self.root != ROOT:
            return None
        try:
            return frozenset(os.sched_getaffinity(pid))
        except OSError:
            return None


def _thread_stat(pid: int, thread: int, root: Path) -> tuple[int, int] | None:
    raw = read_bytes(f"{root}/proc/{pid}/task/{thread}/stat")
    if not raw:
        return None
    fields = raw[raw.rfind(b")") + 2 :].split()
    return (int(fields[11]) + int(fields[12]), int(fields[36])) if len(fields) >= 37 else None
