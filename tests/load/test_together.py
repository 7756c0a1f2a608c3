"""Several engines as one: real ones on this machine, and canned ones that are late, lost or different."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from prony.errors import EnvironmentFault
from prony.load.base import Engine, HostLost
from prony.load.contract import EngineLoad
from prony.load.reference import reference_server
from prony.plan.load import ClosedLoad, Load, OpenLoad
from prony.plan.step import Step
from prony.plan.workload import Scenario, Workload
from prony.trial.load_run import READY_GRACE_S
from prony_hosts.load import together
from prony_hosts.load.shares import shared
from prony_hosts.load.together import EnginesTogether
from tests.load.hosts_at_hand import Canned, EngineHere

WORKLOAD = Workload(name="w", scenarios=(Scenario(name="s", steps=(Step(name="get", path="/"),)),))
S = 1_000_000_000


@pytest.fixture
def url() -> Iterator[str]:
    with reference_server(()) as address:
        yield address


def begun(load: EngineLoad, *weights: float) -> EnginesTogether:
    parts = [one for one in shared(load, weights) if one is not None]
    return EnginesTogether(load, [EngineHere(f"load-{place}", one) for place, one in enumerate(parts)])


def a_load(url: str, load: Load, **known: object) -> EngineLoad:
    return EngineLoad.model_validate({"url": url, "workload": WORKLOAD, "load": load, "cpus": (), **known})


def test_two_real_engines_are_one_load(url: str) -> None:
    load = a_load(url, ClosedLoad(users=5), total_requests=5000, window="all", marks=(1000,))
    run: Engine = begun(load, 1, 2)
    report = run.run_to_end(30)
    assert report.reason == "total_requests"
    assert (report.totals.sent, report.totals.completed) == (5000, 5000)
    assert sum(row.completed for row in report.rows) == 5000
    assert [mark.requests for mark in report.marks] == [1000]
    assert report.window is not None
    assert report.window.service_time is not None
    assert report.window.service_time.count == 5000
    assert len(report.window.threads) == 2
    assert report.window.gaps_total is not None


@pytest.mark.rarely
def test_a_window_of_two_real_engines_opens_at_one_instant_and_hosts_stay_visible(url: str) -> None:
    run = begun(a_load(url, ClosedLoad(users=4), after_s=60.0), 1, 1)
    seen = []
    while (event := run.next_event(20)) is not None:
        seen.append(event["event"])
        if event["event"] == "ready":
            run.open_window(1.0)
        if event["event"] == "window_closed":
            break
    run.stop()
    report = run.report()
    assert seen.index("ready") < seen.index("window_opened") < seen.index("window_closed")
    assert run.finished
    assert report.window is not None
    assert report.window.complete
    assert report.window.duration_s == pytest.approx(1.0, abs=1e-6)
    told = run.evidence_fields()
    parts = [told[name]["engine"].window for name in ("load-0", "load-1")]
    assert sum(part.completed for part in parts) == report.window.completed
    assert parts[0].opened_ms == pytest.approx(parts[1].opened_ms, abs=20)
    assert all(told[name]["opened_late_s"] is not None for name in told)


def test_poisson_arrivals_of_two_real_engines_are_tested_together(url: str) -> None:
    load = a_load(url, OpenLoad(rate_per_s=1000, arrivals="poisson"), after_s=1.5, window="all")
    run = begun(load, 1, 1)
    window = run.run_to_end(30).window
    assert window is not None
    assert window.arrival_gaps is not None
    assert window.arrival_gaps_ks is not None
    parts = [told["engine"].window for told in run.evidence_fields().values()]
    assert window.arrival_gaps == sum(part.arrival_gaps for part in parts) > 300
    # The distance of a mixture is never above the mean of those of its parts.
    most = sum(part.arrival_gaps * part.arrival_gaps_ks for part in parts) / window.arrival_gaps
    assert 0 < window.arrival_gaps_ks <= most + 1e-9
    told = [dict(part.arrival_gaps_ks_from) for part in parts]
    assert len(window.arrival_gaps_ks_from) == len(told[0]) > 0
    for least, distance in window.arrival_gaps_ks_from:
        assert (
            distance
            <= sum(part.arrival_gaps * one[least] for part, one in zip(parts, told, strict=True))
            / window.arrival_gaps
            + 1e-9
        )


# Canned engines.


def a_ready(started_ns: int) -> dict[str, Any]:
    return {
        "event": "ready",
        "version": "1",
        "driver": "epoll",
        "pid": 1,
        "started_unix_ns": 1,
        "started_monotonic_ns": started_ns,
    }


def a_row(second: int, completed: int = 10) -> dict[str, Any]:
    return {"event": "interval", "t_ms": second * 1000.0, "duration_ms": 1000.0, "completed": completed}


FINISHED = {"event": "finished", "reason": "stopped", "elapsed_ms": 2000.0, "totals": {"completed": 20}}


def obedient(name: str, *, offset_ns: int = 0, rows: int = 2) -> Canned:
    """Begins when it is told, says its rows at once, and stops when it is told."""

    def answers(command: dict[str, Any]) -> list[dict[str, Any]]:
        match command["command"]:
            case "start":
                said = [a_ready(command["at_monotonic_ns"])]
                return said + [a_row(second) for second in range(1, rows + 1)]
            case "stop":
                host.say(FINISHED)
                host.end()
        return []

    host = Canned(name, answers, offset_ns=offset_ns)
    host.say({"event": "prepared"})
    return host


def events_until_fault(run: EnginesTogether, within_s: float = 20.0) -> tuple[list[str], Exception | None]:
    seen: list[str] = []
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline and not run.finished:
        try:
            event = run.next_event(0.5)
        except HostLost as fault:
            return seen, fault
        if event is not None:
            seen.append(event["event"])
    return seen, None


def canned(*hosts: Canned) -> EnginesTogether:
    return EnginesTogether(a_load("http://127.0.0.1:1", ClosedLoad(users=4)), hosts)


def test_all_hosts_begin_at_one_instant_whatever_their_clocks_say() -> None:
    first, second = obedient("a"), obedient("b", offset_ns=3 * S)
    run = canned(first, second)
    event = run.next_event(10)
    assert event is not None
    assert event["event"] == "ready"
    at = [host.commands[0]["at_monotonic_ns"] for host in (first, second)]
    assert at[1] - at[0] == 3 * S
    assert run.ready is not None
    assert run.ready.started_monotonic_ns == at[0]
    # A minute at 20 ppm: rows of that host are cut 1.2 ms beside those of the laboratory's clock.
    found = replace(second.clock(), at_ns=float(at[0]), drift=20e-6)
    clock = found.evidence(*run.cut_by["b"], between_ns=(at[0], at[0] + 60 * S))
    assert clock.skew_s == pytest.approx(1.2e-3 + 1e-6)
    run.stop()
    run.close()
    assert first.closed
    assert second.closed


def test_a_host_that_vanishes_stops_the_others_and_is_named() -> None:
    hosts = [obedient("a"), obedient("b"), obedient("c")]
    run = canned(*hosts)
    while run.ready is None:
        run.next_event(1)
    hosts[1].vanish()
    _, fault = events_until_fault(run)
    assert str(fault) == "b is lost: its worker is gone"
    run.stop()
    assert hosts[0].commands[-1]["command"] == "stop"
    assert run.finished
    assert run.end_reason == "host_lost"
    assert run.lost == {"b": "b is lost: its worker is gone"}
    assert run.report().totals.completed == 40
    assert run.evidence_fields()["b"]["engine"] is None


def test_a_failed_request_that_ends_the_run_ends_it_on_all_hosts() -> None:
    hosts = [obedient("a"), obedient("b")]
    run = canned(*hosts)
    while run.ready is None:
        run.next_event(1)
    hosts[0].say({**FINISHED, "reason": "request_failed"})
    hosts[0].end()
    _, fault = events_until_fault(run)
    assert fault is None
    assert hosts[1].commands[-1]["command"] == "stop"
    assert run.end_reason == "request_failed"
    run.close()


def test_a_reader_that_fails_for_any_reason_names_its_host() -> None:
    class Broken(Canned):
        def events(self, timeout_s: float) -> Sequence[dict[str, Any]] | None:
            if self.commands:
                raise TimeoutError
            return super().events(timeout_s)

    broken = Broken("b")
    broken.say({"event": "prepared"})
    run = canned(obedient("a"), broken)
    with pytest.raises(EnvironmentFault, match="the events of the engine on b could not be read") as fault:
        events_until_fault(run)
    assert fault.value.details == "TimeoutError: "
    run.stop()
    run.close()
    assert list(run.lost) == ["b"]


def test_a_command_that_cannot_be_handed_over_ends_the_run_and_names_its_host() -> None:
    class Deaf(Canned):
        def send(self, command: dict[str, Any]) -> None:
            super().send(command)
            raise BrokenPipeError

    deaf = Deaf("b")
    deaf.say({"event": "prepared"})
    run = canned(obedient("a"), deaf)
    sentence = "'start' could not be sent to the engine on b"
    with pytest.raises(EnvironmentFault, match=sentence) as fault:
        events_until_fault(run)
    assert fault.value.details == "BrokenPipeError: "
    run.stop()
    run.close()
    assert run.lost == {"b": sentence}


def test_hosts_of_which_none_is_prepared_are_named_before_the_trial_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert together.PREPARE_PATIENCE_S < READY_GRACE_S
    monkeypatch.setattr(together, "PREPARE_PATIENCE_S", 0.3)
    run = canned(Canned("a"), Canned("b"))
    _, fault = events_until_fault(run)
    assert str(fault) == "a, b are late: not prepared within 0.3 s"
    run.close()


def test_windows_are_of_one_length_whatever_the_estimate_of_a_drift_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = obedient("a"), obedient("b")
    drifting = replace(second.clock(), drift=250e-6)
    monkeypatch.setattr(second, "clock", lambda: drifting)
    run = canned(first, second)
    while run.ready is None:
        run.next_event(1)
    run.open_window(60.0)
    run.stop()
    asked = [one for host in (first, second) for one in host.commands if one["command"] == "window"]
    assert [one["duration_ms"] for one in asked] == [60_000.0, 60_000.0]
    # That clock runs apart from the one by which rows are cut, and again from where the window opens.
    rows, window = run.cut_by["b"]
    assert (rows.drift, window.drift) == (0.0, 0.0)
    assert window.offset_ns > rows.offset_ns


def test_of_the_rows_the_one_that_came_latest_counts_and_when_it_came() -> None:
    run = canned(obedient("a"))
    while run.ready is None:
        run.next_event(1)
    start_ns = run.ready.started_monotonic_ns
    for second, late_s in ((11, 0.1), (12, 4.0), (13, 0.2)):
        row = a_row(second) | {"failed": 0, "in_window": True}
        run._take(run._hosts[0], [row], start_ns + round((second + late_s) * S))
    assert run.evidence_fields()["a"]["row_late_max_s"] == pytest.approx(4.0)
    run.stop()


def test_a_host_whose_rows_stay_away_is_late_and_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "ROW_PATIENCE_S", 0.3)
    run = canned(obedient("a"), obedient("slow", rows=1))
    seen, fault = events_until_fault(run)
    assert seen.count("interval") == 2
    assert str(fault) == "slow is late: its row of second 2 did not come within 0.3 s of the others'"
    run.stop()
    assert [row.completed for row in run.rows] == [20, 10]


def test_a_host_that_is_never_prepared_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "PREPARE_PATIENCE_S", 0.3)
    run = canned(obedient("a"), Canned("mute", lambda command: None if command["command"] == "stop" else ()))
    _, fault = events_until_fault(run)
    assert str(fault) == "mute is late: not prepared within 0.3 s"
    run.close()
    assert run.finished


def test_stop_does_not_hang_on_a_host_that_does_not_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "STOP_GRACE_S", 0.5)
    deaf = Canned("deaf")
    deaf.say({"event": "prepared"}, a_ready(1))
    run = canned(deaf)
    run.next_event(5)
    run.stop()
    assert run.end_reason == "host_lost"
    with pytest.raises(Exception, match="no engine left a report"):
        run.report()


def test_a_host_that_cannot_be_reached_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "STOP_GRACE_S", 0.5)
    released = threading.Event()

    class Stuck(Canned):
        def send(self, command: dict[str, Any]) -> None:
            released.wait(20)
            super().send(command)

    stuck, other = Stuck("stuck"), obedient("b")
    stuck.say({"event": "prepared"})
    run = canned(stuck, other)
    deadline = time.monotonic() + 10
    while not other.commands and time.monotonic() < deadline:
        run.next_event(0.1)
    assert other.commands[0]["command"] == "start"
    run.stop()
    assert run.finished
    released.set()
