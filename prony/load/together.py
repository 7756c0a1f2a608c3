"""Engines on several hosts as one engine: begun at one instant, their windows opened at one instant, their
rows merged second by second, their reports added up. Must not know how an engine is reached.

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
from dataclasses import replace
from typing import Any, Literal

from prony.errors import EnvironmentFault
from prony.evidence.engine import (
    Counters,
    EngineReport,
    IntervalRow,
    LogReport,
    Mark,
    Ready,
    ScriptReport,
    Window,
)
from prony.load.adding import merged_mark, merged_ready, merged_reason, merged_report, merged_row
from prony.load.clock import ClockEstimate
from prony.load.contract import EngineLoad
from prony.load.handle import EngineHandle, HostLost
from prony.load.histograms import Packed, unpacked
from prony.load.minutes import merged, same_part
from prony.thinning import Thinned

NOTICE_S = 0.5
"""What is to happen at one instant is said so long before: a command takes its way to every host."""
PREPARE_PATIENCE_S = 25.0
"""Until all hosts are prepared: less than a trial waits for an engine, so that the late host is named."""
ROW_PATIENCE_S = 5.0
"""A row that comes so much later than the others' of the same second does not come any more."""
STOP_GRACE_S = 30.0
POLL_S = 0.5
"""A handle is asked for events for so long at a time."""

News = Sequence[dict[str, Any]] | EnvironmentFault | None
Arrived = tuple[int, News, int]
"""From which host, what, and when (ns)."""
Edge = Literal["window_opened", "window_closed"]


class _Host:
    """What one engine has said so far."""

    def __init__(self, handle: EngineHandle) -> None:
        self.handle = handle
        self.prepared = False
        self.ready: Ready | None = None
        self.rows = Thinned(merged, same_part)
        self.marks: list[Mark] = []
        self.edges: dict[str, int] = {}
        """Instants at which the newest window opened and closed."""
        self.finished: dict[str, Any] | None = None
        self.ended = False
        """Nothing more comes from it."""
        self.late_s: float | None = None
        """How long after the agreed instant it began or opened its window, at most."""
        self.row_late_s: float | None = None
        """Of its rows in the window, from the row's end until it came: the longest."""
        self._commands: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send_all, daemon=True)
        self._sender.start()

    @property
    def name(self) -> str:
        return self.handle.name

    def send(self, command: dict[str, Any]) -> None:
        """Hand a command over, in order; a host that cannot be reached keeps nobody else waiting."""
        if not self.ended:
            self._commands.put(command)

    def _send_all(self) -> None:
        while (command := self._commands.get()) is not None:
            # That a host is lost is told by its reader.
            with contextlib.suppress(EnvironmentFault):
                self.handle.send(command)

    def close(self) -> None:
        """After what it is still to be told."""
        self._commands.put(None)
        self._sender.join(STOP_GRACE_S)
        with contextlib.suppress(EnvironmentFault):
            self.handle.close()

    def late(self, at_ns: float, agreed_ns: float) -> None:
        self.late_s = max(self.late_s or 0.0, (at_ns - agreed_ns) * 1e-9)

    def report(self) -> EngineReport | None:
        """None before it has finished."""
        done = self.finished
        if self.ready is None or done is None:
            return None
        return EngineReport(
            ready=self.ready,
            rows=self.rows.rows,
            marks=tuple(self.marks),
            reason=done["reason"],
            elapsed_ms=done["elapsed_ms"],
            totals=Counters.model_validate(done["totals"]),
            window=None if done.get("window") is None else Window.model_validate(done["window"]),
            log=None if done.get("log") is None else LogReport.model_validate(done["log"]),
            rates=done.get("rates"),
            values=done.get("values", {}),
            script=None if done.get("script") is None else ScriptReport.model_validate(done["script"]),
        )


class EnginesTogether:
    """Satisfies `prony.load.base.Engine`. The handles' engines were given the shares of this load."""

    def __init__(self, load: EngineLoad, handles: Sequence[EngineHandle]) -> None:
        self.load = load
        self.marks: list[Mark] = []
        self.ready: Ready | None = None
        self._hosts = [_Host(handle) for handle in handles]
        self._rows = Thinned(merged, same_part)
        self._pending: dict[int, dict[int, tuple[IntervalRow, Packed | None]]] = {}
        """By second and host: rows that wait for those of the other hosts."""
        self._since_s: dict[str, float] = {}
        """What is waited for, and since when some host has it."""
        self._out: deque[dict[str, Any]] = deque()
        self._fault: EnvironmentFault | None = None
        self._lost: dict[str, str] = {}
        self._finished: str | None = None
        self._start_ns: int | None = None
        self._cut_by: dict[str, dict[str, ClockEstimate]] = {}
        """By host: the clocks by which its rows are cut, and its newest window."""
        self._begun_s = time.monotonic()
        self._agreed_ns: dict[str, int] = {}
        self._closing = threading.Event()
        self._inbox: queue.SimpleQueue[Arrived] = queue.SimpleQueue()
        self._readers = [
            threading.Thread(target=self._read, args=(place, host.handle), daemon=True)
            for place, host in enumerate(self._hosts)
        ]
        for reader in self._readers:
            reader.start()

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
        """By name of the host, the clocks by which its rows and its window are cut: each set once, at the
        start and where the window opens, and from there on the host's own. What the hosts' clocks drift apart
        meanwhile is skew.
        """
        return {name: tuple(clocks.values()) for name, clocks in self._cut_by.items()}

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
        self._agreed_ns["window_opened"] = at_ns
        self._agreed_ns.pop("window_closed", None)
        for host in self._hosts:
            host.edges.clear()
            clock = self._cut(host, "window", at_ns)
            # By the host's own clock: at 100 ppm a minute is off by 6 ms, and an estimate may be worse.
            host.send(_at("window", clock, at_ns) | {"duration_ms": duration_s * 1000})

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
        self._closing.set()
        closing = [threading.Thread(target=host.close, daemon=True) for host in self._hosts]
        for one in closing:
            one.start()
        deadline = time.monotonic() + STOP_GRACE_S
        for one in (*closing, *self._readers):
            one.join(max(0.0, min(deadline - time.monotonic(), STOP_GRACE_S)))
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

    def _read(self, place: int, handle: EngineHandle) -> None:
        """In a thread of its own: a host that does not answer keeps nobody else waiting."""
        while not self._closing.is_set():
            try:
                news: News = handle.events(POLL_S)
            except EnvironmentFault as fault:
                news = fault
            except Exception as fault:  # a reader that ended in silence would make its host late
                news = EnvironmentFault(
                    f"the events of the engine on {handle.name} could not be read",
                    details=f"{type(fault).__name__}: {fault}",
                )
            if news is None or isinstance(news, EnvironmentFault) or news:
                self._inbox.put((place, news, time.monotonic_ns()))
            if news is None or isinstance(news, EnvironmentFault):
                return

    def _take(self, place: int, news: News, arrived_ns: int) -> None:
        host = self._hosts[place]
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
                    self._keep(host, event, arrived_ns)
                except EnvironmentFault as fault:
                    self._lose(host, fault)
                    return
                except ValueError as fault:
                    sentence = f"an event of the engine on {host.name} does not match this version of Prony"
                    self._lose(host, EnvironmentFault(sentence, details=f"{event.get('event')}: {fault}"))
                    return
            self._settle()

    def _keep(self, host: _Host, event: dict[str, Any], arrived_ns: int) -> None:
        match event.get("event"):
            case "prepared":
                host.prepared = True
            case "ready":
                ready = Ready.model_validate(event)
                started_ns = host.handle.clock().lab_ns(ready.started_monotonic_ns)
                host.ready = ready.model_copy(update={"started_monotonic_ns": started_ns})
                host.late(started_ns, self._start_ns or started_ns)
            case "interval":
                self._keep_row(host, event, arrived_ns)
            case "mark":
                host.marks.append(Mark.model_validate(event))
            case "window_opened" | "window_closed" as edge:
                at_ns = host.handle.clock().lab_ns(event["monotonic_ns"])
                host.edges[edge] = at_ns
                if edge == "window_opened":
                    host.late(at_ns, self._agreed_ns.get(edge, at_ns))
            case "finished":
                host.finished = event
            case "error":
                raise EnvironmentFault(
                    f"the engine on {host.name} refused the load: {event.get('message', '')}"
                )

    def _keep_row(self, host: _Host, event: dict[str, Any], arrived_ns: int) -> None:
        row = IntervalRow.model_validate(event)
        host.rows.add(row)
        if row.in_window and self._start_ns is not None:
            late_s = (arrived_ns - self._start_ns) * 1e-9 - row.t_ms / 1000
            host.row_late_s = max(late_s, late_s if host.row_late_s is None else host.row_late_s)
        histogram = event.get("service_time")
        counts = None if histogram is None else unpacked(histogram["v2"])
        second = -round(-row.t_ms // 1000)
        self._pending.setdefault(second, {})[self._hosts.index(host)] = (row, counts)

    def _settle(self) -> None:
        """Tell what all hosts have by now."""
        going = [host for host in self._hosts if not host.ended]
        if self._start_ns is None and going and all(host.prepared for host in going):
            self._start_ns = self._soon_ns()
            for host in going:
                host.send(_at("start", self._cut(host, "start", self._start_ns), self._start_ns))
        if self.ready is None:
            known = [host.ready for host in self._hosts if host.ready is not None]
            if known and all(host.ready is not None for host in going):
                self.ready = merged_ready(known)
                self._out.append({"event": "ready", **self.ready.model_dump()})
        self._settle_rows()
        self._settle_marks()
        for edge in ("window_opened", "window_closed"):
            self._settle_edge(edge, going)
        if not going and self._finished is None:
            self._end()

    def _cut(self, host: _Host, what: str, at_ns: int) -> ClockEstimate:
        """Its clock of now, by which it cuts from that instant on."""
        clock = host.handle.clock()
        cut = replace(clock, at_ns=at_ns, offset_ns=clock.offset_at_ns(at_ns), drift=0.0)
        self._cut_by.setdefault(host.name, {})[what] = cut
        return clock

    def _settle_rows(self) -> None:
        for second in sorted(self._pending):
            there = self._pending[second]
            if any(
                place not in there and not host.ended and host.finished is None
                for place, host in enumerate(self._hosts)
            ):
                return
            del self._pending[second]
            parts = list(there.values())
            row = merged_row([row for row, _ in parts], [counts for _, counts in parts if counts is not None])
            self._rows.add(row)
            self._out.append({"event": "interval", **row.model_dump()})

    def _settle_marks(self) -> None:
        place = len(self.marks)
        asked = sorted(set(self.load.marks))
        if place < len(asked) and all(len(host.marks) > place for host in self._hosts):
            mark = merged_mark(asked[place], [host.marks[place] for host in self._hosts])
            self.marks.append(mark)
            self._out.append({"event": "mark", **mark.model_dump()})

    def _settle_edge(self, edge: Edge, going: Sequence[_Host]) -> None:
        instants = [host.edges[edge] for host in self._hosts if edge in host.edges]
        if not instants or any(edge not in host.edges for host in going if host.finished is None):
            return
        for host in self._hosts:
            # Told once; the edge of the next window is another.
            host.edges.pop(edge, None)
        at_ns = max(instants)
        since_ms = (at_ns - (self._start_ns or at_ns)) * 1e-6
        self._out.append({"event": edge, "t_ms": since_ms, "monotonic_ns": at_ns})

    # When a host is late, lost or at its end.

    def _look_for_late_hosts(self) -> None:
        going = [host for host in self._hosts if not host.ended]
        missing: dict[str, tuple[float, list[_Host]]] = {}
        late = [host for host in going if not host.prepared] if self._start_ns is None else []
        if late and time.monotonic() - self._begun_s > PREPARE_PATIENCE_S:
            names = ", ".join(host.name for host in late)
            verb = "is" if len(late) == 1 else "are"
            self._lose(
                late[0], HostLost(f"{names} {verb} late: not prepared within {PREPARE_PATIENCE_S:g} s")
            )
            return
        if self._pending:
            second = min(self._pending)
            waits = [
                host
                for place, host in enumerate(self._hosts)
                if host in going and host.finished is None and place not in self._pending[second]
            ]
            missing[f"row of second {second}"] = (ROW_PATIENCE_S, waits)
        now_s = time.monotonic()
        self._since_s = {what: self._since_s.get(what, now_s) for what in missing}
        for what, (patience_s, hosts) in missing.items():
            if hosts and now_s - self._since_s[what] > patience_s:
                name = hosts[0].name
                sentence = f"{name} is late: its {what} did not come within {patience_s:g} s of the others'"
                self._lose(hosts[0], HostLost(sentence))

    def _lose(self, host: _Host, fault: EnvironmentFault) -> None:
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
        if self._start_ns is None:
            for host in self._hosts:
                host.send({"command": "stop"})
        else:
            self._command("stop", self._soon_ns())

    def _command(self, command: str, at_ns: int) -> None:
        for host in self._hosts:
            host.send(_at(command, host.handle.clock(), at_ns))

    def _soon_ns(self) -> int:
        return max(time.monotonic_ns() + round(NOTICE_S * 1e9), self._start_ns or 0)


def _at(command: str, clock: ClockEstimate, at_ns: int) -> dict[str, Any]:
    """A command for an instant of the laboratory's clock, in the host's."""
    return {"command": command, "at_monotonic_ns": clock.host_ns(at_ns)}
