"""Engines that offer one load together: what canned engines said, added up."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from prony.evidence.counts import Gap
from prony.evidence.engine import Counters, Histogram, IntervalRow, Ready, Window
from prony.judge.checks.stall import StallLimits, stall
from prony.load.base import HostLost
from prony.load.contract import EngineLoad
from prony.plan.load import ClosedLoad
from prony.plan.workload import from_url
from prony_hosts.load.adding import (
    common_gaps,
    counted,
    merged_ready,
    merged_row,
    merged_window,
    uniform_distance,
)
from prony_hosts.load.clock import ClockEstimate
from prony_hosts.load.together import EnginesTogether
from tests.judge import factory as f

LOAD = EngineLoad(url="http://h", workload=from_url("/"), load=ClosedLoad(users=2), cpus=(0,))


def histogram(*values_ns: int) -> dict[str, Any]:
    made = HdrHistogram(1, 3_600_000_000_000, 3)
    for value in values_ns:
        made.record_value(value)
    return Histogram(
        count=len(values_ns),
        mean_ns=sum(values_ns) / len(values_ns),
        min_ns=min(values_ns),
        max_ns=max(values_ns),
        v2=made.encode().decode(),
    ).model_dump()


class Canned:
    """An engine on a host whose clock is `ahead_s` ahead of the laboratory's: it answers commands as the real
    one does, and says what it is told to.
    """

    def __init__(self, name: str, ahead_s: float, rows: Sequence[tuple[int, ...]]) -> None:
        self.name = name
        self.ahead_ns = round(ahead_s * 1e9)
        self.rows = rows
        self.commands: list[dict[str, Any]] = []
        self.closed = False
        self.lost: str | None = None
        self.silent_after: int | None = None
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._events.put({"event": "prepared", "version": "1", "pid": 1, "monotonic_ns": self._now_ns()})

    def _now_ns(self) -> int:
        return time.monotonic_ns() + self.ahead_ns

    def clock(self) -> ClockEstimate:
        return ClockEstimate(0.0, float(self.ahead_ns), 0.0, 1000.0, 10)

    def send(self, command: dict[str, Any]) -> None:
        self.commands.append(command)
        match command["command"]:
            case "start":
                self._started_ns = command["at_monotonic_ns"]
                self._say_load()
            case "window":
                at_ns = command["at_monotonic_ns"]
                edge = {"event": "window_opened", "t_ms": self._t_ms(command), "monotonic_ns": at_ns}
                self._events.put(edge)
            case "stop":
                self._finish("stopped")

    def _t_ms(self, command: dict[str, Any]) -> float:
        return float(command["at_monotonic_ns"] - self._started_ns) / 1e6

    def _say_load(self) -> None:
        ready = {
            "version": "1",
            "driver": "epoll",
            "pid": 1,
            "threads": [{"cpu": 0, "pinned": True}],
            "started_unix_ns": 0,
            "started_monotonic_ns": self._started_ns,
        }
        self._events.put({"event": "ready", **ready})
        for second, values in enumerate(self.rows, start=1):
            if self.silent_after is not None and second > self.silent_after:
                return
            row = {
                "t_ms": second * 1000.0,
                "duration_ms": 1000.0,
                "completed": len(values),
                "mean_ns": sum(values) / len(values),
                "in_flight": 1,
                "client_cpu": 0.1 * len(values),
                "service_time": histogram(*values),
            }
            self._events.put({"event": "interval", **row})

    def _finish(self, reason: str) -> None:
        values = [value for row in self.rows for value in row]
        done = {
            "reason": reason,
            "elapsed_ms": 1000.0 * len(self.rows),
            "reader_cpu_s": 0.25,
            "totals": {
                "sent": len(values),
                "completed": len(values),
                "status": {"200": len(values)},
                "answers": [{"status": 200, "body_bytes": 5, "count": len(values)}],
                "bytes_sent": 10 * len(values),
            },
            "window": {
                "opened_ms": 0.0,
                "duration_s": float(len(self.rows)),
                "completed": len(values),
                "in_flight_integral_s": 2.0,
                "service_time": histogram(*values),
                "bodies": [{"scenario": "main", "step": "a", "sha256": "0" * 16, "count": len(values)}],
                "urls": [{"scenario": "main", "step": "a", "rows": 9, "distinct": 2}],
                "gaps": [{"start_ms": 100.0, "duration_ms": 50.0, "in_flight": 1}],
                "silences": [[90_000_000, 100_000_000, 150_000_000, 1]],
                "threads": [{"cpu": 0}],
            },
        }
        self._events.put({"event": "finished", **done})
        self._events.put(None)

    def events(self, timeout_s: float) -> Sequence[dict[str, Any]] | None:
        if self.lost is not None:
            raise HostLost(self.lost)
        try:
            event = self._events.get(timeout=min(timeout_s, 0.05))
        except queue.Empty:
            return []
        return None if event is None else [event]

    def close(self) -> None:
        self.closed = True


def heard(engines: EnginesTogether, enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Events until there are enough of them."""
    found: list[dict[str, Any]] = []
    ends_s = time.monotonic() + 20
    while not enough(found):
        assert time.monotonic() < ends_s, found
        event = engines.next_event(0.2)
        if event is not None:
            found.append(event)
    return found


def rows_of(found: list[dict[str, Any]]) -> int:
    return sum(event["event"] == "interval" for event in found)


def test_one_that_is_emulated_makes_the_whole_so() -> None:
    keys = {"version": "1", "driver": "epoll", "pid": 1, "started_unix_ns": 0, "started_monotonic_ns": 0}
    one, two = (Ready.model_validate(keys | {"emulated": found}) for found in (None, "one on another"))
    assert merged_ready([one, two]).emulated == "one on another"
    assert merged_ready([one, one]).emulated is None


def test_rows_and_reports_add_up_and_instants_are_those_of_the_laboratory() -> None:
    one = Canned("one", 3.0, [(1_000_000, 2_000_000), (1_000_000,)])
    two = Canned("two", -7.0, [(9_000_000,), (9_000_000, 9_000_000)])
    engines = EnginesTogether(LOAD, [one, two])
    found = heard(engines, lambda events: rows_of(events) == 2)
    assert found[0]["event"] == "ready"
    assert engines.ready is not None
    starts = [handle.commands[0]["at_monotonic_ns"] - handle.ahead_ns for handle in (one, two)]
    assert abs(starts[0] - starts[1]) < 1000  # one instant, on two clocks
    assert abs(engines.ready.started_monotonic_ns - starts[0]) < 1000
    assert [row.completed for row in engines.rows] == [3, 3]
    assert engines.rows[0].mean_ns == pytest.approx(4_000_000)
    assert engines.rows[0].p99_ns == pytest.approx(9_000_000, rel=0.002)
    assert engines.rows[0].p50_ns == pytest.approx(2_000_000, rel=0.002)
    assert engines.rows[0].client_cpu == pytest.approx(0.2)  # the busiest host's
    assert engines.rows[0].in_flight == 2

    engines.open_window(2.0)
    (opened,) = heard(engines, lambda events: bool(events))
    assert opened["event"] == "window_opened"
    engines.stop()
    assert (one.closed, two.closed, engines.finished) == (True, True, True)
    report = engines.report()
    assert (report.totals.sent, report.totals.completed, report.totals.bytes_sent) == (6, 6, 60)
    assert report.totals.status == {"200": 6}
    assert report.reader_cpu_s == 0.5
    assert report.totals.answers[0].count == 6
    assert report.window is not None
    assert [body.count for body in report.window.bodies] == [6]
    assert [(one.rows, one.distinct) for one in report.window.urls] == [(9, 4)]
    assert report.window.in_flight_integral_s == 4.0
    assert report.window.duration_s == 2.0
    assert len(report.window.threads) == 2
    assert report.window.service_time is not None
    assert report.window.service_time.count == 6
    whole = HdrHistogram.decode(report.window.service_time.v2)
    assert whole.get_total_count() == 6
    assert report.window.gaps[0].duration_ms == 50.0
    told = engines.evidence_fields()
    assert told["two"]["engine"].totals.completed == 3
    assert told["one"]["opened_late_s"] < 0.001


def test_no_counter_is_forgotten() -> None:
    parts = [Counters(sent=1, status={"200": 1}), Counters(sent=2, status={"200": 1, "500": 1})]
    assert set(counted(parts)) == set(Counters.model_fields)
    window = {*Window.model_fields} - {*Counters.model_fields}
    asked = merged_window([Window(opened_ms=0, duration_s=1)] * 2, (), ())
    assert window <= asked.model_fields_set


def silent(begin_ms: float, busy_ms: float, end_ms: float, in_flight: int = 1) -> tuple[int, ...]:
    return (*(round(at * 1e6) for at in (begin_ms, busy_ms, end_ms)), in_flight)


def test_gaps_are_those_of_all_hosts() -> None:
    def gap(start: float, duration: float, in_flight: int = 1) -> Gap:
        return Gap(start_ms=start, duration_ms=duration, in_flight=in_flight)

    first = [silent(90, 100, 200), silent(500, 500, 530)]
    assert common_gaps([first, [silent(150, 150, 350, 2)]]) == ((gap(150, 50, 3),), 1)
    assert common_gaps([first, []]) == ((), 0)
    assert common_gaps([first, [silent(515, 515, 545)]]) == ((), 0)  # 15 ms in common
    assert common_gaps([first]) == ((gap(100, 100), gap(500, 30)), 2)
    assert common_gaps([first, None]) == ((), None)


def test_a_host_with_nothing_in_flight_hides_no_gap_of_the_others() -> None:
    idle, late = [silent(0, 1000, 1000, 0)], [silent(0, 350, 1000)]
    assert common_gaps([[silent(200, 210, 500)], idle])[0][0].duration_ms == pytest.approx(290)
    # Requests were in flight from the first of them on.
    (found,), total = common_gaps([idle, [silent(200, 340, 500)], late])
    assert (found.start_ms, total) == (340, 1)
    assert found.duration_ms == pytest.approx(160)


def test_the_longest_gaps_are_kept_and_all_are_counted() -> None:
    many = [silent(at * 100, at * 100, at * 100 + 21 + at % 50) for at in range(1000)]
    gaps, total = common_gaps([many, [silent(0, 0, 1e6)]])
    assert (len(gaps), total) == (256, 1000)
    assert gaps[0].duration_ms == pytest.approx(70)


def test_of_a_load_host_that_did_not_tell_its_gaps_no_stall_is_excluded() -> None:
    found = stall(f.window(f.healthy(), gaps=(), gaps_total=None), StallLimits())
    assert (found.code, bool(found.provided)) == ("unread", True)


@given(st.lists(st.lists(st.integers(0, 50), min_size=16, max_size=16), min_size=1, max_size=5))
def test_the_distance_is_that_of_all_values_together(cells: list[list[int]]) -> None:
    whole = [sum(column) for column in zip(*cells, strict=True)]
    at = (0.0, 0.2, 0.5)
    found = uniform_distance(cells, at)
    assert found == uniform_distance([whole], at)
    count, distance, from_each = found
    assert count == (sum(whole) or None)
    if count:
        assert [least for least, _ in from_each] == list(at)
        assert from_each[0][1] == distance
        assert from_each[0][1] >= from_each[1][1] >= from_each[2][1]


def test_what_one_host_could_not_read_is_not_known_of_all() -> None:
    first, second = Counters(emfile=1, users=2), Counters(emfile=None, users=3)
    added = counted([first, second])
    assert (added["emfile"], added["users"]) == (None, 5)
    row = {"t_ms": 1000, "duration_ms": 1000, "completed": 1, "failed": 0}
    rows = [IntervalRow.model_validate(row | {"client_cpu": cpu}) for cpu in (0.5, None)]
    assert merged_row(rows, ()).client_cpu is None  # the other one may have been the busiest
