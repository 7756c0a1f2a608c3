"""One of several engines: its events on the laboratory's clock, and its commands, in order."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from prony.errors import EnvironmentFault, LoadRefused
from prony.evidence.engine import EngineReport, IntervalRow, Mark, Ready
from prony.load.engine import finished_report
from prony.load.histograms import Packed, unpacked
from prony.load.minutes import merged, same_part
from prony.thinning import Thinned
from prony_hosts.load.clock import ClockEstimate
from prony_hosts.load.handle import EngineHandle

POLL_S = 2.0
"""Wait per call for events: longer than between two rows, so that a row costs one call."""

News = Sequence[dict[str, Any]] | EnvironmentFault | None
"""Events; a fault that ends them; None after the last."""
Row = tuple[IntervalRow, Packed | None]
"""A row with its histogram of service times."""


class HostEngine:
    """Reads events and sends commands on its own threads. `heard`: each event, arrival (ns)."""

    def __init__(self, handle: EngineHandle, heard: Callable[[HostEngine, News, int], None]) -> None:
        self._handle, self._heard = handle, heard
        self.prepared = False
        self.ready: Ready | None = None
        self.rows = Thinned(merged, same_part)
        self.marks: list[Mark] = []
        self.edges: dict[str, int] = {}
        """Instants of the newest window's edges."""
        self.finished: dict[str, Any] | None = None
        self.ended = False
        """No more events are expected."""
        self.late_s: float | None = None
        """Largest delay of the start, or of a window's opening, after the agreed instant."""
        self.row_late_s: float | None = None
        """Longest time from a row's end to its arrival, within the window."""
        self.cut_by: dict[str, ClockEstimate] = {}
        """Estimates that cut the rows and the newest window; set at the start and the window's opening."""
        self._agreed_ns: dict[str, int] = {}
        self._commands: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._closing = False
        self._sender = threading.Thread(target=self._send_all, daemon=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._sender.start()
        self._reader.start()

    @property
    def name(self) -> str:
        """The host's name in results."""
        return self._handle.name

    @property
    def going(self) -> bool:
        """Whether more rows are expected."""
        return not self.ended and self.finished is None

    # Commands.

    def send(self, command: str, at_ns: int | None = None, **more: object) -> None:
        """Queues a command, for an instant of the laboratory's clock where one is given."""
        if self.ended:
            return
        message: dict[str, Any] = {"command": command, **more}
        if at_ns is not None:
            message["at_monotonic_ns"] = self._handle.clock().host_ns(at_ns)
        self._commands.put(message)

    def begin(self, at_ns: int) -> None:
        """Starts the load at this instant."""
        self._agreed_ns["ready"] = at_ns
        self._cut("start", at_ns)
        self.send("start", at_ns)

    def open_window(self, at_ns: int, duration_s: float) -> None:
        """Opens a window at this instant. Its length is measured by the host's own clock: 100 ppm is 6 ms per
        minute, less than the error of a poor estimate.
        """
        self._agreed_ns["window_opened"] = at_ns
        self.edges.clear()
        self._cut("window", at_ns)
        self.send("window", at_ns, duration_ms=duration_s * 1000)

    def _cut(self, what: str, at_ns: int) -> None:
        self.cut_by[what] = self._handle.clock().kept_from(at_ns)

    def _send_all(self) -> None:
        while (command := self._commands.get()) is not None:
            try:
                self._handle.send(command)
            except EnvironmentFault:
                pass  # the events report a lost host or an ended engine
            except Exception as fault:  # a command lost silently would make its host late
                self._tell(
                    EnvironmentFault(
                        f"'{command['command']}' could not be sent to the engine on {self.name}",
                        details=f"{type(fault).__name__}: {fault}",
                    )
                )
                return

    # Events.

    def _read(self) -> None:
        while not self._closing:
            try:
                news: News = self._handle.events(POLL_S)
            except EnvironmentFault as fault:
                news = fault
            except Exception as fault:  # a reader that ends silently would make its host late
                news = EnvironmentFault(
                    f"the events of the engine on {self.name} could not be read",
                    details=f"{type(fault).__name__}: {fault}",
                )
            if news is None or isinstance(news, EnvironmentFault) or news:
                self._tell(news)
            if news is None or isinstance(news, EnvironmentFault):
                return

    def _tell(self, news: News) -> None:
        self._heard(self, news, time.monotonic_ns())

    def keep(self, event: dict[str, Any], arrived_ns: int) -> Row | None:
        """Stores an event; gives a row. Raises EnvironmentFault (refused load), ValueError (version)."""
        match event.get("event"):
            case "interval":
                return self._row(event, arrived_ns)
            case "prepared":
                self.prepared = True
            case "ready":
                ready = Ready.model_validate(event)
                started_ns = self._handle.clock().lab_ns(ready.started_monotonic_ns)
                self.ready = ready.model_copy(update={"started_monotonic_ns": started_ns})
                self._late("ready", started_ns)
            case "mark":
                self.marks.append(Mark.model_validate(event))
            case "window_opened" | "window_closed" as edge:
                at_ns = self._handle.clock().lab_ns(event["monotonic_ns"])
                self.edges[edge] = at_ns
                if edge == "window_opened":
                    self._late(edge, at_ns)
            case "finished":
                self.finished = event
            case "error":
                kind = LoadRefused if event.get("kind") == "plan" else EnvironmentFault
                raise kind(f"the engine on {self.name} refused the load: {event.get('message', '')}")
        return None

    def _late(self, what: str, at_ns: int) -> None:
        late_s = (at_ns - self._agreed_ns.get(what, at_ns)) * 1e-9
        self.late_s = max(self.late_s or 0.0, late_s)

    def _row(self, event: dict[str, Any], arrived_ns: int) -> Row:
        row = IntervalRow.model_validate(event)
        self.rows.add(row)
        start_ns = self._agreed_ns.get("ready")
        if row.in_window and start_ns is not None:
            late_s = (arrived_ns - start_ns) * 1e-9 - row.t_ms / 1000
            self.row_late_s = max(late_s, late_s if self.row_late_s is None else self.row_late_s)
        histogram = event.get("service_time")
        return row, None if histogram is None else unpacked(histogram["v2"])

    def report(self) -> EngineReport | None:
        """The report; None before the end."""
        done = self.finished
        if self.ready is None or done is None:
            return None
        return finished_report(self.ready, self.rows.rows, self.marks, done)

    def close(self, grace_s: float) -> None:
        """Sends the outstanding commands, then ends the engine; each step takes at most `grace_s`."""
        self._closing = True
        self._commands.put(None)
        self._sender.join(grace_s)
        with contextlib.suppress(EnvironmentFault):
            self._handle.close()
        self._reader.join(grace_s)
