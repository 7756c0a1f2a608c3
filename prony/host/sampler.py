"""Samples the host every second during a trial, on the client's CPUs. `mark()`, around the window, takes the
expensive readings (all processes, all sockets, kernel settings).
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from prony.evidence.host import HostRow, HostWindow
from prony.evidence.server import ProcessSample
from prony.host import hardware
from prony.host.affinity import Pinning, pin_thread
from prony.host.diag import socket_sums, sockets
from prony.host.hardware import read_sysctls
from prony.host.kmsg import KernelLog
from prony.host.net_counters import packets_by_cpu, tcp_counts
from prony.host.others import OwnUse, census, irq_time_accounted
from prony.host.proc import ROOT, TICKS_PER_S, cpu_ticks, memory_stall_s, now_s, swapped_in_bytes
from prony.host.topology import siblings
from prony.host.window import Snapshot, WindowEdge, cpu_use, host_window, mean_busy, over_turns
from prony.thinning import Thinned

KEPT_SNAPSHOTS = 4000
"""Over an hour; beyond, the older half except marks is thinned."""

SHORTEST_ROW = 0.5
"""As a part of the interval; a shorter row joins the next."""

MHZ_CPUS = 16
"""Most CPUs with a frequency reading."""

SHARES = ("server_cpus_busy", "client_cpus_busy", "server_cpu", "mhz")

TimedRow = tuple[float, HostRow]
"""(CLOCK_MONOTONIC seconds at the row's end, the row)."""


class HostSampler:
    """`own_pids`: server tree and engine. A trial calls `mark()` just before and after the window, then
    `window` with the engine's times.
    """

    def __init__(
        self,
        server_cpus: Collection[int],
        client_cpus: Collection[int],
        own_pids: Callable[[], set[int]],
        *,
        interval_s: float = 1.0,
        root: Path = ROOT,
    ) -> None:
        self._server_cpus = frozenset(server_cpus)
        self._client_cpus = frozenset(client_cpus)
        self._siblings = siblings(self._server_cpus, root) - self._client_cpus
        self._own_pids = own_pids
        self._interval_s = interval_s
        self._root = root
        self._own = OwnUse(self._server_cpus, self._client_cpus, root)
        self._watched: dict[str, tuple[Callable[[], ProcessSample | None], list[ProcessSample]]] = {}
        self._snapshots: list[Snapshot] = []
        self._marks: list[WindowEdge] = []
        self._rows = Thinned(merged)
        self._row_base: Snapshot | None = None
        self._lock = threading.Lock()
        self._stopped: queue.SimpleQueue[None] = queue.SimpleQueue()
        """An item ends sampling. Not an event: Ctrl-C within `threading.Event.set` leaves its lock taken, and
        the next stop would wait for ever; `put` is a single call to C.
        """
        self._thread: threading.Thread | None = None
        self._log = KernelLog(root)
        self._irq_accounted = irq_time_accounted(root)
        self._pids: set[int] = set()
        self.pinning = Pinning(False, "The sampler has not started.")
        self.cost_s = 0.0
        """CPU seconds used by sampling so far, including marks."""

    def watch(self, name: str, read: Callable[[], ProcessSample | None]) -> None:
        """Calls `read` at every sample, for `samples(name)`; `server` also feeds `series()`."""
        with self._lock:
            self._watched[name] = (read, [])

    def samples(self, name: str) -> tuple[ProcessSample, ...]:
        """Oldest first."""
        with self._lock:
            return tuple(self._watched[name][1]) if name in self._watched else ()

    def start(self) -> HostSampler:
        self.mark()
        self._thread = threading.Thread(target=self._run, name="prony-sampler", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ends sampling; samples stay readable. Idempotent."""
        self._stopped.put(None)
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._log.close()

    def __enter__(self) -> HostSampler:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        self.pinning = pin_thread(self._client_cpus)
        due_s = now_s() + self._interval_s
        while True:
            with suppress(queue.Empty):
                self._stopped.get(timeout=max(0.0, due_s - now_s()))
                return
            self.sample()
            due_s = max(due_s + self._interval_s, now_s())

    def sample(self) -> float:
        """Takes a sample, from any thread. Returns its time (CLOCK_MONOTONIC, s)."""
        return self._sample(marked=False)

    def mark(self) -> float:
        """Takes a sample with the expensive readings: milliseconds of CPU, so outside the window."""
        before_s = time.thread_time()
        mark = WindowEdge(
            t_monotonic_s=now_s(),
            sysctls=read_sysctls(self._root),
            sockets=sockets(self._root),
            mhz=self._mhz(),
            census=census(self._root),
            packets=packets_by_cpu(self._root),
            tcp=tcp_counts(self._root),
        )
        with self._lock:
            self._marks.append(mark)
        self.cost_s += time.thread_time() - before_s
        return self._sample(marked=True)

    def edge(self) -> float:
        """Takes a sample with TCP counters at an edge of a turn; a row ends here, however short."""
        return self._sample(marked=False, edge=True)

    def _mhz(self) -> float | None:
        cpus = tuple(sorted(self._server_cpus))[:MHZ_CPUS]
        return hardware.current_mhz(cpus, self._root)

    def _sample(self, *, marked: bool, edge: bool = False) -> float:
        before_s = time.thread_time()
        with self._lock:
            with suppress(Exception):  # a process may just end: keep the last known set
                self._pids = set(self._own_pids())
            snapshot = self._read(marked, edge)
            for read, values in self._watched.values():
                try:
                    value = read()
                except Exception:
                    value = None  # a failed reading is missing, not zero, and must not end sampling
                if value is not None:
                    values.append(value)
                if len(values) > KEPT_SNAPSHOTS:
                    values[: len(values) // 2] = values[: len(values) // 2 : 2]
            self._snapshots.append(snapshot)
            base = self._row_base or snapshot
            if snapshot.t_monotonic_s - base.t_monotonic_s >= SHORTEST_ROW * self._interval_s:
                self._rows.add((snapshot.t_monotonic_s, self._row(base, snapshot)))
                base = snapshot
            self._row_base = snapshot if edge else base
            if len(self._snapshots) > KEPT_SNAPSHOTS:
                half = len(self._snapshots) // 2
                older = self._snapshots[:half]
                self._snapshots[:half] = [kept for at, kept in enumerate(older) if at % 2 == 0 or kept.marked]
            self.cost_s += time.thread_time() - before_s
        return snapshot.t_monotonic_s

    def _read(self, marked: bool, edge: bool) -> Snapshot:
        t_s = now_s()
        ticks = cpu_ticks(self._root) or {}
        uptime_ticks = (
            int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_S) if self._root == ROOT else None
        )
        self._own.update(self._pids | {os.getpid()}, uptime_ticks)
        used = self._server_cpus | self._client_cpus | self._siblings
        return Snapshot(
            t_monotonic_s=t_s,
            cpus={cpu: value for cpu, value in ticks.items() if cpu in used},
            own_server_s=self._own.server_s,
            own_client_s=self._own.client_s,
            swapped_in_bytes=swapped_in_bytes(self._root),
            memory_stall_s=memory_stall_s(self._root),
            kernel_lines=self._log.count(),
            mhz=self._mhz(),
            sockets=socket_sums(self._root),
            marked=marked or edge,
            packets=packets_by_cpu(self._root) if edge else None,
            tcp=tcp_counts(self._root) if edge else None,
        )

    def _row(self, before: Snapshot, after: Snapshot) -> HostRow:
        duration_s = after.t_monotonic_s - before.t_monotonic_s
        server = self._watched["server"][1][-2:] if "server" in self._watched else []
        server_cpu = None
        if len(server) == 2 and server[1].t_monotonic_s > server[0].t_monotonic_s:
            server_cpu = (server[1].cpu_s - server[0].cpu_s) / (
                server[1].t_monotonic_s - server[0].t_monotonic_s
            )
        steals = [cpu_use(cpu, before.cpus, after.cpus) for cpu in after.cpus]
        sums = after.sockets or {}
        return HostRow(
            t_ms=after.t_monotonic_s * 1000,
            duration_ms=duration_s * 1000,
            server_cpus_busy=mean_busy(self._server_cpus, before.cpus, after.cpus),
            client_cpus_busy=mean_busy(self._client_cpus, before.cpus, after.cpus),
            steal=max((use.steal for use in steals if use is not None), default=None),
            server_cpu=server_cpu,
            server_rss_bytes=server[-1].rss_bytes if server else None,
            established=sums.get("established"),
            time_wait=sums.get("time_wait"),
            sockets=sums.get("total"),
            closed=sums.get("closed"),
            orphaned=sums.get("orphaned"),
            mhz=after.mhz,
        )

    def series(self, start_monotonic_s: float = 0.0) -> tuple[HostRow, ...]:
        """Rows from then on; `t_ms` counts from `start_monotonic_s` (the engine's start)."""
        with self._lock:
            return tuple(
                row.model_copy(update={"t_ms": (t_s - start_monotonic_s) * 1000})
                for t_s, row in self._rows.rows
                if t_s > start_monotonic_s
            )

    def turns(self, edges: Sequence[tuple[float, float]]) -> HostWindow:
        """The host in a window of turns, each between two moments that `edge` returned."""
        whole = self.window(edges[0][0], edges[-1][1])
        with self._lock:
            at = {snapshot.t_monotonic_s: snapshot for snapshot in self._snapshots}
        return over_turns(whole, [(self.window(a, b), at[a], at[b]) for a, b in edges])

    def window(self, open_monotonic_s: float, close_monotonic_s: float) -> HostWindow:
        """The host between two moments of CLOCK_MONOTONIC, counters interpolated; None where not sampled
        around it. Takes a mark if none follows.
        """
        if not self._marks or self._marks[-1].t_monotonic_s < close_monotonic_s:
            self.mark()
        with self._lock:
            snapshots, marks = list(self._snapshots), list(self._marks)
            own = frozenset(self._own.identities)
        return host_window(
            snapshots,
            marks,
            own,
            open_s=open_monotonic_s,
            close_s=close_monotonic_s,
            server_cpus=self._server_cpus,
            client_cpus=self._client_cpus,
            irq_accounted=self._irq_accounted,
            siblings=self._siblings,
        )


def merged(rows: Sequence[TimedRow]) -> TimedRow:
    """Rows as one: mean shares, worst steal, sockets and memory at the end."""
    t_s, last = rows[-1]
    changes: dict[str, float | None] = {
        name: _mean([(getattr(row, name), row.duration_ms) for _, row in rows]) for name in SHARES
    }
    changes["steal"] = max((row.steal for _, row in rows if row.steal is not None), default=None)
    changes["duration_ms"] = sum(row.duration_ms for _, row in rows)
    return t_s, last.model_copy(update=changes)


def _mean(values: Sequence[tuple[float | None, float]]) -> float | None:
    present = [(value, ms) for value, ms in values if value is not None and ms > 0]
    span_ms = sum(ms for _, ms in present)
    return sum(value * ms for value, ms in present) / span_ms if span_ms else None
