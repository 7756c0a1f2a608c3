"""Server and engine under load, and the server after it; detects the server's end at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prony.errors import EnvironmentFault
from prony.evidence.engine import IntervalRow
from prony.evidence.server import CgroupThrottle, JvmSnapshot, ProcessSample, ServerWindow
from prony.evidence.trial import AfterLoad
from prony.host import cgroup
from prony.load.base import Engine, HostLost
from prony.server.threads import Readings, busiest, compiler_cpus, run_delay_s, working_cpus
from prony.targets.base import RunningTarget
from prony.trial.surroundings import TrialObserver

LOOK_EVERY_S = 0.25
"""Interval of liveness checks while the engine is silent."""
WINDOW_GRACE_S = 30.0
READY_GRACE_S = 30.0
"""For a busy host; otherwise an engine takes milliseconds."""
FIRST_ROWS = 3
"""Rows in which the connections of a whole run are counted."""
INTERRUPTED = "interrupted: what had been measured until then was kept and judged"
"""Compared with notes of stored trials: do not reword."""
WORTH_KEEPING_S = 5.0
"""Shortest interrupted part that is kept."""
REST_S, LONGEST_REST_S = 0.2, 3.0
"""Polling interval of a server after its load, and its limit."""
IDLE = 0.05
"""CPUs in use of an idle server, at most."""
ALWAYS_BUSY = 0.5
"""CPUs in use before the load ÷ after it, from which a server that never idles has no deferred work."""


class ServerDied(Exception):
    """The server or one of its backing services ended under load; `str()` says how."""


@dataclass(frozen=True, slots=True)
class ServerEdge:
    """The server at an edge of the window."""

    t_ms: float
    process: ProcessSample | None
    jvm: JvmSnapshot | None
    throttle: tuple[CgroupThrottle, ...] | None
    threads: Readings
    services: Mapping[str, ProcessSample] = field(default_factory=dict)
    client_throttle: tuple[CgroupThrottle, ...] | None = None


@dataclass(frozen=True, slots=True)
class WindowEdges:
    """The server at both edges of the window."""

    opened: ServerEdge
    closed: ServerEdge
    connections_by_process: tuple[int, ...] | None = None
    """Of the server, before the window; in the first rows of a whole run."""


class LoadRun:
    """An engine that offers its load to a server."""

    def __init__(
        self,
        engine: Engine,
        server: RunningTarget,
        listener: TrialObserver,
        worth_keeping_s: float = WORTH_KEEPING_S,
        failed: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.engine = engine
        self.server = server
        self._listener = listener
        self._worth_keeping_s = worth_keeping_s
        self._failed = failed
        self._precise: Callable[[IntervalRow], bool] | None = None
        self._rows_to_count = 0
        self._limits: tuple[Path, ...] | None = None
        self.connections: tuple[int, ...] | None = ()
        self.interrupted = False
        """Whether the user ended the measured part early; it is complete up to there."""

    def start(self) -> None:
        """Wait until the engine sends. Raises EnvironmentFault."""
        while self.engine.ready is None:
            if self.engine.next_event(READY_GRACE_S) is None:
                raise EnvironmentFault(f"the engine did not get ready within {READY_GRACE_S:.0f} s")

    def now_ms(self) -> float:
        """Engine time; both clocks are CLOCK_MONOTONIC."""
        assert self.engine.ready is not None
        return (time.monotonic_ns() - self.engine.ready.started_monotonic_ns) / 1e6

    def next(self) -> dict[str, Any]:
        """The next event. Raises ServerDied, or EnvironmentFault when the engine ends early."""
        while True:
            event = self.engine.next_event(LOOK_EVERY_S)
            if event is None:
                self.still_alive()
                if self.engine.finished:
                    raise EnvironmentFault(
                        f"the engine ended before the measurement: {self.engine.end_reason}"
                    )
                continue
            if event.get("event") == "interval":
                self._listener.row(self.engine.last_row)
                self.still_alive()
                self.server.look()
                if self._rows_to_count > 0:
                    self._rows_to_count -= 1
                    self.count_connections()
                self._end_when_precise()
            return event

    def _end_when_precise(self) -> None:
        row = self.engine.last_row
        if self._precise is not None and row.in_window and self._precise(row):
            self._precise = None
            self.engine.close_window()

    def until(self, name: str, timeout_s: float) -> dict[str, Any]:
        """The next event of this name. Raises EnvironmentFault after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            event = self.next()
            if event.get("event") == name:
                return event
        raise EnvironmentFault(f"no event '{name}' from the engine within {timeout_s:.0f} s")

    def watch(self, over: Callable[[IntervalRow, JvmSnapshot | None], bool]) -> None:
        """Follow rows, each with a reading of the JVM, until `over`."""
        while True:
            event = self.next()
            if event.get("event") == "interval" and over(self.engine.last_row, self.server.jvm()):
                return

    def measure(
        self,
        window_s: float,
        precise: Callable[[IntervalRow], bool] | None = None,
        opened_to: Callable[[], None] = lambda: None,
    ) -> WindowEdges:
        """Open a window and read the server at its edges. `precise`: whether it may end after a row."""
        self.count_connections()
        self.engine.open_window(window_s)
        opened = self.edge(self.until("window_opened", WINDOW_GRACE_S)["t_ms"])
        opened_to()
        self._precise = precise
        closed = self._end(opened, "window_closed", "t_ms", window_s)
        return WindowEdges(opened, closed, self.connections)

    def follow(self, bound_s: float, opened_to: Callable[[], None] = lambda: None) -> WindowEdges:
        """Follow a whole run to its end."""
        self._rows_to_count = FIRST_ROWS
        opened = self.edge(0.0)
        opened_to()
        closed = self._end(opened, "finished", "elapsed_ms", bound_s)
        return WindowEdges(opened, closed, self.connections)

    def count_connections(self) -> None:
        """Reads every descriptor of the server, so never in a window. Keeps the largest count."""
        counts = self.server.connections_by_process()
        if counts is None or sum(counts) >= sum(self.connections or ()):
            self.connections = counts

    def _end(self, opened: ServerEdge, name: str, when: str, length_s: float) -> ServerEdge:
        """The closing edge. An interrupt closes the measured part and keeps it."""
        try:
            return self.edge(self.until(name, length_s + WINDOW_GRACE_S)[when])
        except KeyboardInterrupt:
            if self.now_ms() - opened.t_ms < self._worth_keeping_s * 1000:
                raise
            self.interrupted = True
            closed = self.edge(self.now_ms())
            self.engine.stop()
            return closed

    def edge(self, t_ms: float, *, full: bool = True) -> ServerEdge:
        """Read the server at an edge, engine time; threads, quota and services (slow) only if `full`."""
        return ServerEdge(
            t_ms=t_ms,
            process=self.server.sample(),
            jvm=self.server.jvm(),
            throttle=self.server.throttle() if full else None,
            threads=self.server.thread_times() if full else None,
            services=self.server.service_samples() if full else {},
            client_throttle=cgroup.counted(self._client_limits()) if full else None,
        )

    def _client_limits(self) -> tuple[Path, ...] | None:
        """Read once: at the closing edge the engine may have ended."""
        if self._limits is None:
            self._limits = next(map(cgroup.limited, self.engine.pids), None)
        return self._limits

    def catch_up(self, *, shown: bool, wait_s: float = 0.0) -> bool:
        """Read pending events of the engine; whether its window closed. `shown`: rows in the window go to the
        listener. Raises ServerDied.
        """
        self.still_alive()
        self.server.look()
        closed = False
        while (event := self.engine.next_event(wait_s)) is not None:
            closed = closed or event.get("event") == "window_closed"
            wait_s = 0.0
            if shown and event.get("event") == "interval" and self.engine.last_row.in_window:
                self._listener.row(self.engine.last_row)
        return closed

    def after_load(self, ended: ProcessSample | None, *before: ProcessSample | None) -> AfterLoad | None:
        """The server's work from `ended` (None: now) until idle. `before`: two readings before the load."""
        jvm, now = self.server.jvm(), self.server.sample()
        first, idle = ended or now, False
        while now is not None and first is not None and not idle:
            if now.t_monotonic_s - first.t_monotonic_s >= LONGEST_REST_S:
                break
            time.sleep(REST_S)
            last, now = now, self.server.sample()
            idle = _cpus(last, now) < IDLE
        if now is None or first is None or (not idle and _cpus(*before) >= ALWAYS_BUSY * _cpus(first, now)):
            return None
        compiled = [
            0.0 if snapshot is None else snapshot.compilers_cpu_s or 0.0
            for snapshot in (jvm, self.server.jvm())
        ]
        return AfterLoad(
            wall_s=now.t_monotonic_s - first.t_monotonic_s,
            cpu_s=max(0.0, now.cpu_s - first.cpu_s - max(0.0, compiled[1] - compiled[0])),
            disk_bytes=_rise(first.disk_bytes, now.disk_bytes),
            idle=idle,
        )

    def still_alive(self) -> None:
        """Raises ServerDied, or HostLost."""
        lost = self._failed()
        if lost is not None:
            raise HostLost(lost)
        end = self.server.exit_description()
        if end is not None:
            raise ServerDied(f"the server ended under load: {end}")
        service = self.server.ended_service()
        if service is not None:
            raise ServerDied(f"a backing service of the server ended under load: {service}")


def over_window(edges: WindowEdges, server: RunningTarget, *, placed: bool) -> ServerWindow | None:
    """CPU and memory between the edges; None if unreadable. `placed`: Prony chose its CPUs."""
    opened, closed = edges.opened, edges.closed
    if opened.process is None or closed.process is None:
        return None
    working = working_cpus(opened.threads, closed.threads)
    cpus = (() if placed else working) or server.cpus()
    used = {*working, *(compiler_cpus(opened.threads, closed.threads) if placed else ())}
    quota = server.quota_cpus()
    granted = float(len(cpus) or os.cpu_count() or 1)
    first, last = opened.process.major_faults, closed.process.major_faults
    return ServerWindow(
        wall_s=closed.process.t_monotonic_s - opened.process.t_monotonic_s,
        granted_cpus=granted if quota is None else min(granted, quota),
        cpus=cpus,
        busiest_thread=busiest(opened.threads, closed.threads),
        processes=closed.process.processes,
        connections_by_process=edges.connections_by_process,
        major_faults=None if first is None or last is None else max(0, last - first),
        outside_cpus=tuple(sorted(used - {*cpus})) if cpus else (),
        cpu_user_s=closed.process.cpu_user_s - opened.process.cpu_user_s,
        cpu_system_s=closed.process.cpu_system_s - opened.process.cpu_system_s,
        peak_rss_bytes=closed.process.peak_rss_bytes,
        rss_end_bytes=closed.process.rss_bytes,
        threads_end=closed.process.threads,
        descriptors_end=closed.process.descriptors,
        run_delay_s=run_delay_s(opened.threads, closed.threads, closed.process.cpu_s - opened.process.cpu_s),
        jvm_open=opened.jvm,
        jvm_close=closed.jvm,
        throttle=cgroup.between(opened.throttle, closed.throttle),
        written_bytes=_rise(opened.process.written_bytes, closed.process.written_bytes),
        disk_bytes=_rise(opened.process.disk_bytes, closed.process.disk_bytes),
    )


def at_rest(server: RunningTarget) -> tuple[ProcessSample | None, ProcessSample | None]:
    """Two readings before the load."""
    first = server.sample()
    if first is not None:
        time.sleep(REST_S)
    return first, server.sample()


def _cpus(first: ProcessSample | None, last: ProcessSample | None) -> float:
    """CPUs in use; 0 where not read."""
    wall_s = 0.0 if first is None or last is None else last.t_monotonic_s - first.t_monotonic_s
    return (last.cpu_s - first.cpu_s) / wall_s if first and last and wall_s > 0 else 0.0


def _rise(first: int | None, last: int | None) -> int | None:
    """Rise of a process counter, at least 0: an ended process takes its count along."""
    return None if first is None or last is None else max(0, last - first)
