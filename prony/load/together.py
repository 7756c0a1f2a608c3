"""Several engines that offer one load together, as one (`prony.load.base.Engine`): started at one instant,
with windows that open and close at one instant, and rows that are added up second by second.

Each engine runs on a host with a clock of its own; whatever comes out is on the laboratory's. Must not know
how hosts are reached: they are `prony.load.handle.EngineHandle`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from prony.errors import EnvironmentFault
from prony.evidence.engine import Counters, EngineReport, Histogram, IntervalRow, Mark, Ready, Window
from prony.load.contract import EngineLoad
from prony.load.handle import EngineHandle, HostLost
from prony.load.merging import cells_of, merged_mark, merged_ready, merged_report, merged_row
from prony.load.minutes import merged, same_part
from prony.thinning import Thinned

NOTICE_S = 0.25
"""Between a command and its instant: every host has it by then, and every engine's threads are told."""
POLL_S = 1.0
STOP_GRACE_S = 30.0
LATE_S = 5.0
"""A host whose row is missing for so long, when another host's is there, is no part of the load any more."""


@dataclass(slots=True)
class _One:
    """What one engine said."""

    handle: EngineHandle
    ready: Ready | None = None
    prepared: bool = False
    rows: Thinned[IntervalRow] = field(default_factory=lambda: Thinned(merged, same_part))
    told_rows: int = 0
    waiting: list[tuple[IntervalRow, Histogram | None]] = field(default_factory=list)
    """Rows that are not merged yet."""
    marks: list[Mark] = field(default_factory=list)
    finished: dict[str, Any] | None = None
    ended: bool = False
    opened_late_s: float | None = None
    late_s: list[float] = field(default_factory=list)
    """By how much the rows of the window came late: the first and the last."""

    def report(self) -> EngineReport | None:
        """Its own, on the laboratory's clock; None when it has not finished."""
        if self.ready is None or self.finished is None:
            return None
        done = self.finished
        return EngineReport(
            ready=self.ready,
            rows=self.rows.rows,
            marks=tuple(self.marks),
            reason=done["reason"],
            elapsed_ms=done["elapsed_ms"],
            totals=Counters.model_validate(done["totals"]),
            window=None if done.get("window") is None else Window.model_validate(done["window"]),
            values=done.get("values", {}),
        )


class EnginesTogether:
    """A load that several engines offer together."""

    def __init__(self, load: EngineLoad, handles: Sequence[EngineHandle]) -> None:
        assert handles, "a load is offered by at least one engine"
        self.load = load
        self._each = [_One(handle) for handle in handles]
        self._rows = Thinned(merged, same_part)
        self.marks: list[Mark] = []
        self.ready: Ready | None = None
        self._inbox: queue.SimpleQueue[tuple[_One, Any]] = queue.SimpleQueue()
        self._out: list[dict[str, Any]] = []
        self._opened: dict[str, list[dict[str, Any]]] = {}
        self._opens_ns: int | None = None
        self._over = False
        self._closed = False
        self._first_waiting_s: float | None = None
        for one in self._each:
            threading.Thread(
                target=self._listen, args=(one,), name=f"events of {one.handle.name}", daemon=True
            ).start()

    # -- as a trial sees it

    @property
    def rows(self) -> tuple[IntervalRow, ...]:
        return self._rows.rows

    @property
    def last_row(self) -> IntervalRow:
        return self._rows.last

    @property
    def pids(self) -> frozenset[int]:
        return frozenset()

    @property
    def finished(self) -> bool:
        return self._over

    @property
    def end_reason(self) -> str:
        reasons = dict.fromkeys(str(one.finished["reason"]) for one in self._each if one.finished)
        return ", ".join(reasons) or "it is still running"

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """The next event of all engines together. Raises HostLost, EnvironmentFault; all other engines are
        told to stop then.
        """
        until_s = time.monotonic() + max(0.0, timeout_s)
        while not self._out:
            if self._over:
                return None
            try:
                one, said = self._inbox.get(timeout=max(0.0, until_s - time.monotonic()))
            except queue.Empty:
                self._check_late()
                return None
            if isinstance(said, BaseException):
                self._give_up()
                raise said
            self._hear(one, said)
            self._check_late()
        return self._out.pop(0)

    def open_window(self, duration_s: float) -> None:
        self._opens_ns = self._tell({"command": "window", "duration_ms": round(duration_s * 1000)})

    def close_window(self) -> None:
        self._tell({"command": "close_window"})

    def stop(self) -> None:
        """Stop the run and take all remaining events. Never raises for a host that is lost."""
        if not self._over:
            with suppress(HostLost):
                self._tell({"command": "stop"})
                until_s = time.monotonic() + STOP_GRACE_S
                while not self._over and time.monotonic() < until_s:
                    self.next_event(POLL_S)
        self.close()

    def close(self) -> None:
        self._over = True
        if not self._closed:
            self._closed = True
            closing = [threading.Thread(target=one.handle.close, daemon=True) for one in self._each]
            for thread in closing:
                thread.start()
            for thread in closing:
                thread.join(STOP_GRACE_S)

    def run_to_end(
        self, timeout_s: float, on_row: Callable[[IntervalRow], None] | None = None
    ) -> EngineReport:
        until_s = time.monotonic() + timeout_s
        try:
            while not self._over:
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    raise EnvironmentFault(f"the engines did not end within {timeout_s:.0f} s")
                event = self.next_event(min(left_s, POLL_S))
                if event and event.get("event") == "interval" and on_row:
                    on_row(self.last_row)
        finally:
            self.close()
        return self.report()

    def report(self) -> EngineReport:
        """Of all engines together. Raises EnvironmentFault when one has not finished."""
        reports = [one.report() for one in self._each]
        known = [report for report in reports if report is not None]
        if len(known) < len(reports):
            missing = next(
                one.handle.name for one, report in zip(self._each, reports, strict=True) if not report
            )
            raise EnvironmentFault(f"{missing}: its engine ended without a report")
        cells = [cells_of(one.finished or {}) for one in self._each]
        return merged_report(known, rows=self.rows, marks=self.marks, cells=cells)

    def told(self) -> dict[str, Mapping[str, Any]]:
        """Of each host what its own engine said, and how late it was: fields of HostEvidence."""
        return {
            one.handle.name: {
                "engine": one.report(),
                "opened_late_s": one.opened_late_s,
                "row_late_first_s": one.late_s[0] if one.late_s else None,
                "row_late_last_s": one.late_s[-1] if one.late_s else None,
            }
            for one in self._each
        }

    # -- what the engines say

    def _listen(self, one: _One) -> None:
        """Takes the events of one engine, on a thread of its own."""
        try:
            while not self._closed:
                events = one.handle.events(POLL_S)
                if events is None:
                    break
                for event in events:
                    self._inbox.put((one, event))
            self._inbox.put((one, None))
        except BaseException as fault:
            self._inbox.put((one, fault))

    def _hear(self, one: _One, event: dict[str, Any] | None) -> None:
        if event is None:
            one.ended = True
            self._merge_rows()
            if all(other.ended for other in self._each):
                self._over = True
            return
        match event.get("event"):
            case "prepared":
                one.prepared = True
                if all(other.prepared for other in self._each):
                    self._tell({"command": "start"})
            case "ready":
                self._hear_ready(one, event)
            case "interval":
                self._hear_row(one, event)
            case "mark":
                one.marks.append(Mark.model_validate(event))
                place = len(self.marks)
                if all(len(other.marks) > place for other in self._each):
                    self.marks.append(merged_mark([other.marks[place] for other in self._each]))
                    self._out.append({"event": "mark", **self.marks[-1].model_dump()})
            case "window_opened" | "window_closed":
                self._hear_edge(one, event)
            case "finished":
                one.finished = event
                self._merge_rows()
                if all(other.finished is not None for other in self._each):
                    self._over = True
                    self._out.append({"event": "finished", **self._end()})
            case _:
                self._out.append(event)

    def _end(self) -> dict[str, Any]:
        return {
            "reason": self.end_reason,
            "elapsed_ms": max(one.finished["elapsed_ms"] for one in self._each if one.finished),
        }

    def _hear_ready(self, one: _One, event: dict[str, Any]) -> None:
        found = Ready.model_validate(event)
        started_ns = one.handle.clock().lab_ns(found.started_monotonic_ns)
        one.ready = found.model_copy(update={"started_monotonic_ns": started_ns})
        each = [other.ready for other in self._each if other.ready is not None]
        if len(each) == len(self._each):
            self.ready = merged_ready(each)
            self._out.append({"event": "ready", **self.ready.model_dump(mode="json")})

    def _hear_row(self, one: _One, event: dict[str, Any]) -> None:
        row = IntervalRow.model_validate(event)
        times = event.get("service_time")
        one.rows.add(row)
        one.waiting.append((row, None if times is None else Histogram.model_validate(times)))
        if row.in_window and one.ready is not None:
            due_ns = one.ready.started_monotonic_ns + row.t_ms * 1e6
            one.late_s = [*one.late_s[:1], max(0.0, (time.monotonic_ns() - due_ns) * 1e-9)]
        self._merge_rows()

    def _merge_rows(self) -> None:
        """Every second of which each engine that still runs has told its row."""
        while True:
            having = [one for one in self._each if one.waiting]
            if not having or any(
                not one.waiting and one.finished is None and not one.ended for one in self._each
            ):
                break
            taken = [one.waiting.pop(0) for one in having]
            row = merged_row([row for row, _ in taken], [times for _, times in taken])
            self._rows.add(row)
            self._out.append({"event": "interval", **row.model_dump(mode="json")})
        waits = any(one.waiting for one in self._each)
        if not waits:
            self._first_waiting_s = None
        elif self._first_waiting_s is None:
            self._first_waiting_s = time.monotonic()

    def _check_late(self) -> None:
        """Raises HostLost for a host that has not told a row that another one has told."""
        since_s = self._first_waiting_s
        if since_s is None or time.monotonic() - since_s < LATE_S:
            return
        late = [one.handle.name for one in self._each if not one.waiting and one.finished is None]
        self._give_up()
        raise HostLost(
            f"{' and '.join(late)} told nothing of a second that other load hosts told {LATE_S:g} s ago: "
            "is the host overloaded, or its link?"
        )

    def _hear_edge(self, one: _One, event: dict[str, Any]) -> None:
        name = str(event["event"])
        if name == "window_opened" and self._opens_ns is not None and one.ready is not None:
            at_ns = one.ready.started_monotonic_ns + float(event["t_ms"]) * 1e6
            one.opened_late_s = (at_ns - self._opens_ns) * 1e-9
        heard = self._opened.setdefault(name, [])
        heard.append(event)
        if len(heard) == len(self._each):
            self._opened[name] = []
            self._out.append({**heard[0], "t_ms": sum(float(each["t_ms"]) for each in heard) / len(heard)})

    # -- what they are told

    def _tell(self, command: dict[str, Any]) -> int:
        """All engines at one instant: when, on the laboratory's clock."""
        at_ns = time.monotonic_ns() + round(NOTICE_S * 1e9)
        for one in self._each:
            one.handle.send({**command, "at_monotonic_ns": one.handle.clock().host_ns(at_ns)})
        return at_ns

    def _give_up(self) -> None:
        """One engine is lost: the others stop."""
        self._over = True
        for one in self._each:
            with suppress(EnvironmentFault):
                one.handle.send({"command": "stop"})
