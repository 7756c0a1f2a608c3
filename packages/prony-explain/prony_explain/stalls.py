"""Kernel stalls of a server's threads over time: waits for a CPU, throttling, disk reads, polled from /proc
every few hundredths of a second. Polling takes at most `MOST_SHARE` of a CPU: slow readings are less
frequent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from prony.evidence.profile import Stalls
from prony.host import cgroup
from prony.host.proc import ROOT, key_values, now_s, read_text

STEP_S = 0.025
MOST_SHARE = 0.02
THREADS_ANEW_S = 1.0
"""Interval of the search for new threads."""
MOST_ROWS = 20_000
"""Eight minutes; longer windows have coarser rows."""


@dataclass(slots=True)
class _Threads:
    """Run-queue waits of all threads of some processes. Files stay open, as opening costs most."""

    pids: tuple[int, ...]
    root: Path
    _open: dict[Path, int] = field(default_factory=dict)
    _waited_ns: dict[Path, int] = field(default_factory=dict)
    _looked_s: float = float("-inf")

    def most_ms(self) -> float | None:
        """Wait of the thread that waited longest since the last call, in total; None if unreadable. New
        threads count from the next call.
        """
        if now_s() - self._looked_s >= THREADS_ANEW_S:
            self._look()
        most_ns = 0
        for file, descriptor in list(self._open.items()):
            try:
                waited_ns = int(os.pread(descriptor, 128, 0).split()[1])
            except (OSError, IndexError, ValueError):  # the thread has ended
                self._forget(file)
                continue
            most_ns = max(most_ns, waited_ns - self._waited_ns.get(file, waited_ns))
            self._waited_ns[file] = waited_ns
        return most_ns / 1e6 if self._open else None

    def _look(self) -> None:
        self._looked_s = now_s()
        for pid in self.pids:
            with suppress(OSError):
                for task in (self.root / f"proc/{pid}/task").iterdir():
                    file = task / "schedstat"
                    if file not in self._open:
                        with suppress(OSError):
                            self._open[file] = os.open(file, os.O_RDONLY | os.O_CLOEXEC)

    def _forget(self, file: Path) -> None:
        os.close(self._open.pop(file))
        self._waited_ns.pop(file, None)

    def close(self) -> None:
        for file in list(self._open):
            self._forget(file)


@dataclass(slots=True)
class _Quotas:
    """Throttling of some processes' control groups by CPU quotas."""

    pids: tuple[int, ...]
    """One per control group."""
    root: Path
    _before: tuple[cgroup.Levels | None, ...] = ()

    @classmethod
    def of(cls, pids: Iterable[int], root: Path) -> _Quotas:
        groups: dict[str | None, int] = {}
        for pid in pids:
            groups.setdefault(read_text(root / f"proc/{pid}/cgroup"), pid)
        return cls(tuple(groups.values()), root)

    def throttled_ms(self) -> float | None:
        """Throttled time of the most throttled group since the last call, all CPUs; None if unreadable."""
        now = tuple(cgroup.throttle(pid, self.root) for pid in self.pids)
        since = map(cgroup.between, self._before, now)
        self._before = now
        return max((interval.throttled_s * 1000 for interval in since if interval is not None), default=None)


def _read_kib(pids: Iterable[int], root: Path) -> int | None:
    """KiB read from disk so far, summed; None if unreadable."""
    texts = [read_text(root / f"proc/{pid}/io") for pid in pids]
    sizes = [int(key_values(text)["read_bytes"]) for text in texts if text and "read_bytes" in text]
    return sum(sizes) // 1024 if sizes else None


def _since(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)


@dataclass(frozen=True, slots=True)
class _Row:
    end_s: float
    run_queue_ms: float | None
    throttled_ms: float | None
    disk_kib: float | None


def watch(
    pids: Iterable[int], over: Callable[[float], bool], begun_s: float, window_s: float, root: Path = ROOT
) -> Stalls:
    """Polls until `over(seconds)`, which waits, is True. Times: from `begun_s` (CLOCK_MONOTONIC)."""
    there = tuple(pids)
    threads = _Threads(there, root)
    quotas = _Quotas.of(there, root)
    rows: list[_Row] = []
    least_s = max(STEP_S, window_s / MOST_ROWS)
    try:
        threads.most_ms()
        quotas.throttled_ms()
        begins_s, read = now_s(), _read_kib(there, root)
        took_s = 0.0
        while not over(max(least_s - took_s, took_s / MOST_SHARE)):
            polled_s, cpu_s = now_s(), time.thread_time()
            waited_ms, throttled_ms = threads.most_ms(), quotas.throttled_ms()
            read_now = _read_kib(there, root)
            rows.append(_Row(polled_s - begun_s, waited_ms, throttled_ms, _since(read, read_now)))
            read = read_now
            took_s = time.thread_time() - cpu_s
    finally:
        threads.close()
    return stalls(begins_s - begun_s, rows)


def stalls(begins_s: float, rows: Iterable[_Row]) -> Stalls:
    """The rows as columns; a column with a missing value is None."""
    kept = list(rows)

    def column(values: list[float | None], digits: int) -> tuple[float, ...] | None:
        known = [round(value, digits) for value in values if value is not None]
        return tuple(known) if known and len(known) == len(values) else None

    disk = column([row.disk_kib for row in kept], 0)
    return Stalls(
        begins_s=round(begins_s, 6),
        ends_s=tuple(round(row.end_s, 6) for row in kept),
        run_queue_ms=column([row.run_queue_ms for row in kept], 3),
        throttled_ms=column([row.throttled_ms for row in kept], 3),
        disk_kib=None if disk is None else tuple(int(value) for value in disk),
    )
