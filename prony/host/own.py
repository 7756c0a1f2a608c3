"""CPU time of Prony's own processes (laboratory, engine, server) by CPU set."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from prony.host.proc import ROOT, TICKS_PER_S, ProcessStat, process_stat, read_bytes

THREADS_LIMIT = 512
"""Most threads read per process; beyond, the main thread decides."""


@dataclass(slots=True)
class OwnUse:
    """Cumulative CPU seconds on two CPU sets; `update` per reading. A process pinned to a set counts there;
    others are split by their threads' affinity or last CPU.
    """

    server_cpus: frozenset[int]
    client_cpus: frozenset[int]
    root: Path = ROOT
    server_s: float = 0.0
    client_s: float = 0.0
    identities: set[tuple[int, int]] = field(default_factory=set)
    """(pid, start tick) of every own process so far."""
    _last: dict[tuple[int, int], int] = field(default_factory=dict)
    _threads: dict[tuple[int, int], int] = field(default_factory=dict)
    _previous_ticks: int | None = None

    def update(self, pids: Iterable[int], uptime_ticks: int | None) -> None:
        """Reads all own processes; new ones count from their start."""
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
        """Initial ticks of a new process: zero if it is younger than the last reading."""
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
        for thread in self._thread_ids(process):
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

    def _thread_ids(self, process: ProcessStat) -> list[int]:
        if process.threads > THREADS_LIMIT:
            return [process.pid]
        try:
            folder = self.root / f"proc/{process.pid}/task"
            return [int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()]
        except OSError:
            return []

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
    """(user and system ticks, last CPU) of one thread."""
    raw = read_bytes(f"{root}/proc/{pid}/task/{thread}/stat")
    if not raw:
        return None
    fields = raw[raw.rfind(b")") + 2 :].split()
    return (int(fields[11]) + int(fields[12]), int(fields[36])) if len(fields) >= 37 else None
