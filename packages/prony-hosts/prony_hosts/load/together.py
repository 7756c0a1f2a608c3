"""Engines on several hosts as one engine: common start and windows, rows merged second by second, one report.

All instants are on the laboratory's clock. A host that is lost, or whose rows stop, ends the run:
`next_event` raises HostLost once, and nothing waits for that host any more.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from prony.errors import EnvironmentFault
from prony.evidence.engine import REQUEST_FAILED, EngineReport, IntervalRow, Mark, Ready
from prony.load.base import HostLost, followed_to_end
from prony.load.contract import EngineLoad
from prony.load.minutes import merged, same_part
from prony.thinning import Thinned
from prony_hosts.load.adding import merged_mark, merged_ready, merged_reason, merged_report
from prony_hosts.load.clock import ClockEstimate
from prony_hosts.load.handle import EngineHandle
from prony_hosts.load.host_engine import HostEngine, News
from prony_hosts.load.seconds import Seconds

NOTICE_S = 0.5
"""Lead time of a command for an instant, so that it reaches every host before."""
PREPARE_PATIENCE_S = 25.0
"""Time for all hosts to prepare; a trial waits longer for an engine, so the error names the late host."""
ROW_PATIENCE_S = 5.0
"""Time allowed for a row after the other hosts' rows of the same second."""
STOP_GRACE_S = 30.0

Arrived = tuple[HostEngine, News, int]
"""The host, its news, and the arrival (ns)."""
Edge = Literal["window_opened", "window_closed"]


class EnginesTogether:
    """Implements `prony.load.base.Engine`. The handles' engines hold the shares of this load."""

    def __init__(self, load: EngineLoad, handles: Sequence[EngineHandle]) -> None:
        self.load = load
        self.marks: list[Mark] = []
        self.ready: Ready | None = None
        self._rows = Thinned(merged, same_part)
        self._seconds = Seconds()
        self._out: deque[dict[str, Any]] = deque()
        self._fault: EnvironmentFault | None = None
        self._lost: dict[str, str] = {}
        self._finished: str | None = None
        self._start_ns: int | None = None
        self._begun_s = time.monotonic()
        self._inbox: queue.SimpleQueue[Arrived] = queue.SimpleQueue()
        self._hosts = [HostEngine(handle, self._heard) for handle in handles]

    @property
    def rows(self) -> tuple[IntervalRow, ...]:
        """The merged rows so far."""
        return self._rows.rows

    @property
    def last_row(self) -> IntervalRow:
        """The newest row. Raises IndexError before the first."""
        return self._rows.last

    @property
    def pids(self) -> frozenset[int]:
        """Empty: no engine runs on this host."""
        return frozenset()

    @property
    def finished(self) -> bool:
        """Whether all engines have ended or are lost."""
        return self._finished is not None and not self._out and self._fault is None

    @property
    def end_reason(self) -> str:
        """The reason for the end."""
        return self._finished or "still running"

    @property
    def lost(self) -> Mapping[str, str]:
        """Why each lost host was lost, by name."""
        return dict(self._lost)

    @property
    def cut_by(self) -> Mapping[str, tuple[ClockEstimate, ...]]:
        """Estimates that cut each host's rows and window, by name. Later drift between clocks is skew."""
        return {host.name: tuple(host.cut_by.values()) for host in self._hosts if host.cut_by}

    def evidence_fields(self) -> dict[str, dict[str, Any]]:
        """Name of the host -> fields of `prony.evidence.hosts.HostEvidence` from its engine."""
        return {
            host.name: {
                "engine": host.report(),
                "opened_late_s": host.late_s,
                "row_late_max_s": host.row_late_s,
            }
            for host in self._hosts
        }

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """Next merged event; None at the timeout and the end. Raises HostLost, EnvironmentFault."""
        deadline = time.monotonic() + timeout_s
        while not self._out and self._fault is None and self._finished is None:
            if self._inbox.empty():
                self._look_for_late_hosts()
            left_s = deadline - time.monotonic()
            if self._fault is not None or (left_s <= 0 and self._inbox.empty()):
                break
            with contextlib.suppress(queue.Empty):
                self._take(*self._inbox.get(timeout=max(0.0, min(left_s, 0.2))))
        if self._out:
            return self._out.popleft()
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
        return None

    def open_window(self, duration_s: float) -> None:
        """Opens a window of this length on all hosts at one instant, half a second from now."""
        at_ns = self._soon_ns()
        for host in self._hosts:
            host.open_window(at_ns, duration_s)

    def close_window(self) -> None:
        """Closes the open window on all hosts in half a second, at one instant; it counts as complete."""
        self._command("close_window", self._soon_ns())

    def stop(self) -> None:
        """Stops the run on all hosts and takes the remaining events, within a bounded time."""
        if self._finished is None:
            self._stop_all()
            deadline = time.monotonic() + STOP_GRACE_S
            while self._finished is None and time.monotonic() < deadline:
                with contextlib.suppress(queue.Empty):
                    self._take(*self._inbox.get(timeout=0.2))
        self.close()

    def close(self) -> None:
        """Ends all engines whose hosts can be reached."""
        closing = [
            threading.Thread(target=host.close, args=(STOP_GRACE_S,), daemon=True) for host in self._hosts
        ]
        for thread in closing:
            thread.start()
        deadline = time.monotonic() + STOP_GRACE_S
        for thread in closing:
            thread.join(max(0.0, deadline - time.monotonic()))
        if self._finished is None:
            self._end()
        # The caller wants no more events; `lost` has the lost hosts.
        self._out.clear()
        self._fault = None

    def run_to_end(
        self, timeout_s: float, on_row: Callable[[IntervalRow], None] | None = None
    ) -> EngineReport:
        """Follows a run that ends by itself. Raises EnvironmentFault at the timeout."""
        return followed_to_end(self, timeout_s, on_row, "the engines")

    def report(self) -> EngineReport:
        """The merged report, without lost hosts. Raises EnvironmentFault when no engine has finished."""
        host_reports = [(host, host.report()) for host in self._hosts]
        reports = [report for _, report in host_reports if report is not None]
        if not reports:
            why = "; ".join(self._lost.values()) or "the engines have not finished"
            raise EnvironmentFault(f"no engine left a report: {why}")
        windows = [
            (host.finished or {}).get("window", {})
            for host, report in host_reports
            if report is not None and report.window is not None
        ]
        cells = [cells for window in windows if (cells := window.get("arrival_gaps_cells"))]
        silences = [window.get("silences") for window in windows]
        return merged_report(reports, self.rows, self.marks, cells, silences)

    # Events of the engines.

    def _heard(self, host: HostEngine, news: News, arrived_ns: int) -> None:
        """Called from any thread."""
        self._inbox.put((host, news, arrived_ns))

    def _take(self, host: HostEngine, news: News, arrived_ns: int) -> None:
        if host.ended:
            return
        if isinstance(news, EnvironmentFault):
            self._lose(host, news)
        elif news is None:
            if host.finished is None:
                self._lose(host, EnvironmentFault(f"the engine on {host.name} ended without a report"))
            else:
                host.ended = True
                self._settle()
        else:
            for event in news:
                try:
                    row = host.keep(event, arrived_ns)
                except EnvironmentFault as fault:
                    self._lose(host, fault)
                    return
                except ValueError as fault:
                    sentence = f"an event of the engine on {host.name} does not match this version of Prony"
                    self._lose(host, EnvironmentFault(sentence, details=f"{event.get('event')}: {fault}"))
                    return
                if row is not None:
                    self._seconds.add(host.name, row)
                if event.get("reason") == REQUEST_FAILED:  # ends the run on all hosts
                    self._stop_all()
            if all(event.get("event") == "interval" for event in news):
                self._settle_rows()
            else:
                self._settle()

    def _settle(self) -> None:
        """Emits whatever all hosts have reached by now."""
        going = [host for host in self._hosts if not host.ended]
        if self._start_ns is None and going and all(host.prepared for host in going):
            self._start_ns = self._soon_ns()
            for host in going:
                host.begin(self._start_ns)
        if self.ready is None:
            ready = [host.ready for host in self._hosts if host.ready is not None]
            if ready and all(host.ready is not None for host in going):
                self.ready = merged_ready(ready)
                self._out.append({"event": "ready", **self.ready.model_dump()})
        self._settle_rows()
        self._settle_marks()
        for edge in ("window_opened", "window_closed"):
            self._settle_edge(edge)
        if not going and self._finished is None:
            self._end()

    def _going(self) -> set[str]:
        """Names of the hosts from which rows are expected."""
        return {host.name for host in self._hosts if host.going}

    def _settle_rows(self) -> None:
        for row in self._seconds.complete(self._going()):
            self._rows.add(row)
            self._out.append({"event": "interval", **row.model_dump()})

    def _settle_marks(self) -> None:
        place = len(self.marks)
        counts = sorted(set(self.load.marks))
        if place < len(counts) and all(len(host.marks) > place for host in self._hosts):
            mark = merged_mark(counts[place], [host.marks[place] for host in self._hosts])
            self.marks.append(mark)
            self._out.append({"event": "mark", **mark.model_dump()})

    def _settle_edge(self, edge: Edge) -> None:
        instants = [host.edges[edge] for host in self._hosts if edge in host.edges]
        if not instants or any(edge not in host.edges for host in self._hosts if host.going):
            return
        for host in self._hosts:
            # Each edge is reported once; the next window has its own.
            host.edges.pop(edge, None)
        at_ns = max(instants)
        since_ms = (at_ns - (self._start_ns or at_ns)) * 1e-6
        self._out.append({"event": edge, "t_ms": since_ms, "monotonic_ns": at_ns})

    # Late and lost hosts.

    def _look_for_late_hosts(self) -> None:
        now_s = time.monotonic()
        if self._start_ns is None and now_s - self._begun_s > PREPARE_PATIENCE_S:
            late = [host for host in self._hosts if not host.ended and not host.prepared]
            if late:
                names, verb = ", ".join(host.name for host in late), "is" if len(late) == 1 else "are"
                sentence = f"{names} {verb} late: not prepared within {PREPARE_PATIENCE_S:g} s"
                self._lose(late[0], HostLost(sentence))
                return
        missing = self._seconds.missing(self._going(), now_s)
        if missing is None or not missing.hosts or now_s - missing.since_s <= ROW_PATIENCE_S:
            return
        host = next(late for late in self._hosts if late.name in missing.hosts)
        sentence = (
            f"{host.name} is late: its row of second {missing.second} did not come within "
            f"{ROW_PATIENCE_S:g} s of the others'"
        )
        self._lose(host, HostLost(sentence))

    def _lose(self, host: HostEngine, fault: EnvironmentFault) -> None:
        """Gives the host up and stops the others: they no longer offer the whole load."""
        host.ended = True
        self._lost[host.name] = str(fault)
        self._fault = self._fault or fault
        self._stop_all()
        self._settle()

    def _end(self) -> None:
        reasons = [host.finished["reason"] for host in self._hosts if host.finished is not None]
        self._finished = "host_lost" if self._lost or not reasons else merged_reason(reasons)
        self._out.append({"event": "finished", "reason": self._finished})

    def _stop_all(self) -> None:
        self._command("stop", None if self._start_ns is None else self._soon_ns())

    def _command(self, command: str, at_ns: int | None) -> None:
        for host in self._hosts:
            host.send(command, at_ns)

    def _soon_ns(self) -> int:
        return max(time.monotonic_ns() + round(NOTICE_S * 1e9), self._start_ns or 0)
