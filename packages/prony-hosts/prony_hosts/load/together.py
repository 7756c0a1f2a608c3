"""Engines on several hosts as one engine: begun at one instant, their windows opened at one instant, their
rows merged second by second, their reports added up.

All instants are on the laboratory's clock. A host that is lost, or whose rows stay away, ends the run of the
others: HostLost is raised once from `next_event`, and nothing waits for that host any more.
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
from prony.load.base import HostLost
from prony.load.contract import EngineLoad
from prony.load.minutes import merged, same_part
from prony.thinning import Thinned
from prony_hosts.load.adding import merged_mark, merged_ready, merged_reason, merged_report
from prony_hosts.load.clock import ClockEstimate
from prony_hosts.load.handle import EngineHandle
from prony_hosts.load.host_engine import HostEngine, News
from prony_hosts.load.seconds import Seconds

NOTICE_S = 0.5
"""What is to happen at one instant is said so long before: a command takes its way to every host."""
PREPARE_PATIENCE_S = 25.0
"""Until all hosts are prepared: less than a trial waits for an engine, so that the late host is named."""
ROW_PATIENCE_S = 5.0
"""A row that comes so much later than the others' of the same second does not come any more."""
STOP_GRACE_S = 30.0

Arrived = tuple[HostEngine, News, int]
"""From which host, what, and when (ns)."""
Edge = Literal["window_opened", "window_closed"]


class EnginesTogether:
    """Satisfies `prony.load.base.Engine`. The handles' engines were given the shares of this load."""

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
        """The newest one. Raises IndexError before the first."""
        return self._rows.last

    @property
    def pids(self) -> frozenset[int]:
        """None of the engines runs here."""
        return frozenset()

    @property
    def finished(self) -> bool:
        """Whether all engines have ended, or are lost."""
        return self._finished is not None and not self._out and self._fault is None

    @property
    def end_reason(self) -> str:
        """The engines' own reason for the end."""
        return self._finished or "it is still running"

    @property
    def lost(self) -> Mapping[str, str]:
        """By name, why a host was lost."""
        return dict(self._lost)

    @property
    def cut_by(self) -> Mapping[str, tuple[ClockEstimate, ...]]:
        """By name of the host, the clocks by which its rows and its window are cut. What the hosts' clocks
        drift apart meanwhile is skew.
        """
        return {host.name: tuple(host.cut_by.values()) for host in self._hosts if host.cut_by}

    def told(self) -> dict[str, dict[str, Any]]:
        """By name of the host what only this knows of it: fields of `prony.evidence.hosts.HostEvidence`."""
        return {
            host.name: {
                "engine": host.report(),
                "opened_late_s": host.late_s,
                "row_late_max_s": host.row_late_s,
            }
            for host in self._hosts
        }

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """The next event of all engines together; None at the timeout or after the last one. Raises HostLost
        when a host is lost, and EnvironmentFault when an engine ended without its report, the first of them.
        """
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
        """Ask for a measured window of this length, on all hosts from one instant on, in half a second."""
        at_ns = self._soon_ns()
        for host in self._hosts:
            host.open_window(at_ns, duration_s)

    def close_window(self) -> None:
        """Ask for the end of the open window at one instant, half a second from now; it is complete all the
        same.
        """
        self._command("close_window", self._soon_ns())

    def stop(self) -> None:
        """Stop the run on all hosts and take the remaining events; not longer than the stop may take."""
        if self._finished is None:
            self._stop_all()
            deadline = time.monotonic() + STOP_GRACE_S
            while self._finished is None and time.monotonic() < deadline:
                with contextlib.suppress(queue.Empty):
                    self._take(*self._inbox.get(timeout=0.2))
        self.close()

    def close(self) -> None:
        """Make sure that all engines have ended, as far as their hosts can be reached."""
        closing = [
            threading.Thread(target=host.close, args=(STOP_GRACE_S,), daemon=True) for host in self._hosts
        ]
        for one in closing:
            one.start()
        deadline = time.monotonic() + STOP_GRACE_S
        for one in closing:
            one.join(max(0.0, deadline - time.monotonic()))
        if self._finished is None:
            self._end()
        # Who closes wants no more events; which host was lost is in `lost`.
        self._out.clear()
        self._fault = None

    def run_to_end(
        self, timeout_s: float, on_row: Callable[[IntervalRow], None] | None = None
    ) -> EngineReport:
        """Follow a run that ends by itself; raises EnvironmentFault when it does not end in time."""
        deadline = time.monotonic() + timeout_s
        try:
            while not self.finished:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise EnvironmentFault(f"the engines did not end within {timeout_s:.0f} s")
                event = self.next_event(left_s)
                if event and event.get("event") == "interval" and on_row:
                    on_row(self.last_row)
        finally:
            self.close()
        return self.report()

    def report(self) -> EngineReport:
        """Everything the engines said, added up; without hosts that were lost. Raises EnvironmentFault when
        none has finished.
        """
        known = [(host, host.report()) for host in self._hosts]
        reports = [report for _, report in known if report is not None]
        if not reports:
            why = "; ".join(self._lost.values()) or "the engines have not finished"
            raise EnvironmentFault(f"no engine left a report: {why}")
        windows = [
            (host.finished or {}).get("window", {})
            for host, report in known
            if report is not None and report.window is not None
        ]
        cells = [cells for window in windows if (cells := window.get("arrival_gaps_cells"))]
        silences = [window.get("silences") for window in windows]
        return merged_report(reports, self.rows, self.marks, cells, silences)

    # What the engines say.

    def _heard(self, host: HostEngine, news: News, arrived_ns: int) -> None:
        """From whatever thread."""
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
                if event.get("reason") == REQUEST_FAILED:  # it ends the whole run, not one engine's part
                    self._stop_all()
            if all(event.get("event") == "interval" for event in news):
                self._settle_rows()
            else:
                self._settle()

    def _settle(self) -> None:
        """Tell what all hosts have by now."""
        going = [host for host in self._hosts if not host.ended]
        if self._start_ns is None and going and all(host.prepared for host in going):
            self._start_ns = self._soon_ns()
            for host in going:
                host.begin(self._start_ns)
        if self.ready is None:
            known = [host.ready for host in self._hosts if host.ready is not None]
            if known and all(host.ready is not None for host in going):
                self.ready = merged_ready(known)
                self._out.append({"event": "ready", **self.ready.model_dump()})
        self._settle_rows()
        self._settle_marks()
        for edge in ("window_opened", "window_closed"):
            self._settle_edge(edge)
        if not going and self._finished is None:
            self._end()

    def _going(self) -> set[str]:
        """The hosts from which rows still come."""
        return {host.name for host in self._hosts if host.going}

    def _settle_rows(self) -> None:
        for row in self._seconds.complete(self._going()):
            self._rows.add(row)
            self._out.append({"event": "interval", **row.model_dump()})

    def _settle_marks(self) -> None:
        place = len(self.marks)
        asked = sorted(set(self.load.marks))
        if place < len(asked) and all(len(host.marks) > place for host in self._hosts):
            mark = merged_mark(asked[place], [host.marks[place] for host in self._hosts])
            self.marks.append(mark)
            self._out.append({"event": "mark", **mark.model_dump()})

    def _settle_edge(self, edge: Edge) -> None:
        instants = [host.edges[edge] for host in self._hosts if edge in host.edges]
        if not instants or any(edge not in host.edges for host in self._hosts if host.going):
            return
        for host in self._hosts:
            # Told once; the edge of the next window is another.
            host.edges.pop(edge, None)
        at_ns = max(instants)
        since_ms = (at_ns - (self._start_ns or at_ns)) * 1e-6
        self._out.append({"event": edge, "t_ms": since_ms, "monotonic_ns": at_ns})

    # When a host is late, lost or at its end.

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
        host = next(one for one in self._hosts if one.name in missing.hosts)
        sentence = (
            f"{host.name} is late: its row of second {missing.second} did not come within "
            f"{ROW_PATIENCE_S:g} s of the others'"
        )
        self._lose(host, HostLost(sentence))

    def _lose(self, host: HostEngine, fault: EnvironmentFault) -> None:
        """Nothing waits for this host any more, and the others stop: what they offer is not the load."""
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
