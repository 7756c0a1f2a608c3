"""The laboratory's hand on the real engine, against the real reference server."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony.load import engine
from prony.load.contract import EngineLoad, Slowest
from prony.load.engine import EngineRun, find_engine
from prony.load.reference import Certificate, ReferenceLoad, calibrate
from prony.plan.load import Connections
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.workload import Workload
from prony.server import certificates
from tests.responses import answers

HELLO = Workload(name="hello", steps=(Step(path="/", expect=Expectation(status=(200,))),))
DRIVERS = ("io_uring", "epoll")


class Reference:
    """`prony-engine serve` in a process of its own."""

    def __init__(self, *trouble: str) -> None:
        command = [str(find_engine()), "serve", "--listen", "127.0.0.1:0", "--stdin-guard", *trouble]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = f"http://{json.loads(self.process.stdout.readline())['address']}"

    def finish(self) -> dict[str, int]:
        """Stop it; what it counted."""
        out, _ = self.process.communicate(timeout=60)  # closes its stdin, which ends it
        events = [json.loads(line) for line in out.splitlines()]
        return events[-1] if events else {}


@pytest.fixture
def reference() -> Iterator[Reference]:
    server = Reference()
    yield server
    if server.process.poll() is None:
        server.finish()


def load(url: str, **changes: object) -> EngineLoad:
    values = {
        "url": url,
        "workload": HELLO,
        "load": {"users": 8},
        "cpus": (),
        "total_requests": 3000,
        "window": "all",
        "after_s": 30.0,
    }
    return EngineLoad.model_validate(values | changes)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_total_of_requests_is_exact_and_the_server_agrees(reference: Reference, driver: str) -> None:
    report = EngineRun(load(reference.url, driver=driver)).run_to_end(40)
    assert report.ready.driver == driver
    assert report.totals.completed == 3000
    assert report.totals.errors == {}
    assert report.totals.connections_opened == 8
    assert report.window is not None
    assert report.window.service_time is not None
    assert report.window.service_time.count == 3000
    assert sum(row.completed for row in report.rows) == 3000
    assert reference.finish()["requests"] == 3000


CRUD = Workload.model_validate(
    {
        "name": "crud",
        "steps": [
            {
                "name": "create",
                "method": "POST",
                "path": "/echo",
                "headers": {"Content-Type": "application/json"},
                "body": '{"id":"p-${sequence}","name":"${people.name | json}"}',
                "expect": {"json_exists": ["/id"]},
                "capture": {"id": {"json": "/id"}, "kind": {"header": "content-type"}},
            },
            {
                "name": "read",
                "method": "POST",
                "path": "/echo?id=${id}",
                "body": "${id} ${kind}",
                "repeat": 2,
                "think": {"kind": "constant", "ms": 1},
                "expect": {"body_contains": ["p-", "application/json"]},
            },
        ],
        "feeders": {"people": {"file": "", "order": "sequence", "at_end": "recycle"}},
        "cookies": True,
    }
)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_scenario_goes_from_the_workload_to_figures_per_step(
    reference: Reference, driver: str, tmp_path: Path
) -> None:
    people = tmp_path / "people.csv"
    people.write_text('name\n"Ada ""the first"""\nGrace\n')
    feeder = CRUD.feeders["people"].model_copy(update={"file": str(people)})
    workload = CRUD.model_copy(update={"feeders": {"people": feeder}})
    probes = answers(reference.url, workload)
    assert [(probe.step, probe.why_not) for probe in probes] == [("create", None), ("read", None)]
    report = EngineRun(load(reference.url, driver=driver, workload=workload, total_requests=300)).run_to_end(
        40
    )
    assert report.totals.completed == 300
    assert report.totals.errors == {}
    assert report.window is not None
    steps = {step.name: step for step in report.window.steps}
    assert steps.keys() == {"create", "read"}
    assert steps["create"].completed + steps["read"].completed == 300
    assert steps["read"].service_time is not None
    assert steps["read"].service_time.count == steps["read"].completed
    assert steps["create"].status == {"200": steps["create"].completed}


def test_a_scenario_is_calibrated_although_the_reference_server_knows_nothing_of_it(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text("name\nAda\n")
    feeder = CRUD.feeders["people"].model_copy(update={"file": str(people)})
    workload = CRUD.model_copy(update={"feeders": {"people": feeder}})
    assert (
        calibrate(ReferenceLoad(workload=workload, users=2, body_bytes=10, client_cpus=(0,))).ceiling_per_s
        > 0
    )


def test_the_window_opens_when_the_lab_says_so(reference: Reference) -> None:
    run = EngineRun(load(reference.url, total_requests=None, window="commanded"))
    try:
        while run.ready is None:
            assert run.next_event(60) is not None
        run.open_window(1.0)
        seen = []
        while "window_closed" not in seen:
            event = run.next_event(60)
            assert event is not None
            seen.append(event["event"])
    finally:
        run.stop()
    report = run.report()
    assert report.reason == "stopped"
    assert report.window is not None
    assert report.window.duration_s >= 0.99  # the engine may be late, never early
    assert 0 < report.window.completed < report.totals.completed


def _policies(pid: int) -> dict[str, int]:
    """Scheduling policy by name of thread."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {
        (task / "comm").read_text().strip(): os.sched_getscheduler(int(task.name)) & ~os.SCHED_RESET_ON_FORK
        for task in tasks
    }


@pytest.mark.parametrize("asked", [True, False])
def test_measuring_threads_go_before_ordinary_ones_where_asked_and_allowed(
    reference: Reference, asked: bool
) -> None:
    cpu = min(os.sched_getaffinity(0))
    run = EngineRun(load(reference.url, total_requests=None, cpus=(cpu,), realtime=asked))
    try:
        while run.ready is None:
            assert run.next_event(60) is not None
        policies = _policies(run.ready.pid)
    finally:
        run.stop()
    (thread,) = run.ready.threads
    if not asked:
        assert thread.realtime is False
    elif os.geteuid() == 0:
        assert thread.realtime is (_realtime_runtime_us() >= 0)
    assert policies.pop("load-0") == (os.SCHED_FIFO if thread.realtime else os.SCHED_OTHER)
    assert set(policies.values()) == {os.SCHED_OTHER}


def _realtime_runtime_us() -> int:
    return int(Path("/proc/sys/kernel/sched_rt_runtime_us").read_text())


def test_an_expectation_that_fails_is_an_error_of_its_own_kind(reference: Reference) -> None:
    wrong = HELLO.model_copy(
        update={"steps": (Step(path="/", expect=Expectation(body_contains=("not there",))),)}
    )
    report = EngineRun(load(reference.url, workload=wrong, total_requests=50)).run_to_end(40)
    assert report.totals.errors == {"expect_body": 50}


def test_a_server_that_is_not_there_is_counted_not_hidden() -> None:
    report = EngineRun(load("http://127.0.0.1:9", total_requests=None, after_s=2.0)).run_to_end(30)
    assert report.totals.completed == 0
    assert report.totals.errors.get("connect_refused", 0) > 0
    assert report.reason == "duration"


def test_a_plan_that_cannot_be_run_is_one_sentence() -> None:
    with pytest.raises(EnvironmentFault, match="the engine refused the load"):
        EngineRun(load("ftp://127.0.0.1:9")).run_to_end(20)


def test_an_engine_that_is_killed_is_an_error_and_not_a_hang(reference: Reference) -> None:
    run = EngineRun(load(reference.url, total_requests=None))
    while run.ready is None:
        run.next_event(60)
    os.kill(run.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFault, match="the engine was killed by SIGKILL"):
        run.run_to_end(20)


def test_an_engine_that_does_not_stop_is_ended_and_that_is_reported(
    reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "STOP_GRACE_S", 0.3)
    run = EngineRun(load(reference.url, total_requests=None, after_s=60.0))
    while run.ready is None:
        run.next_event(60)
    os.kill(run.pid, signal.SIGSTOP)
    run.stop()
    with pytest.raises(EnvironmentFault, match="did not stop within"):
        run.report()


def test_the_engine_ends_when_its_laboratory_is_gone(reference: Reference) -> None:
    run = EngineRun(load(reference.url, total_requests=None, after_s=60.0))
    while run.ready is None:
        run.next_event(60)
    begun = time.monotonic()
    run.close()  # closes its standard input and waits
    assert run._process.returncode == 0
    assert time.monotonic() - begun < 50  # of the 60 s that it would have gone on


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(
    "connections",
    [
        Connections(),
        Connections(keep_alive=False),
        Connections(pipeline=4),
        Connections(http_version="2", streams=2),
    ],
)
def test_calibration_measures_the_engine_against_the_reference_server(
    connections: Connections, tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the same load: connections, pipelining, HTTP/2, TLS, a server that closes."""
    made = certificates.make(tmp_path / "tls") if tls else None
    asked = ReferenceLoad(
        workload=HELLO,
        users=4,
        connections=connections,
        body_bytes=100,
        tls=tls,
        client_cpus=(0,),
        closes_after=50,
    )
    pem = None if made is None else Certificate(made.ca, made.cert, made.key)
    monkeypatch.setattr("prony.load.reference.MEASURED_S", 0.1)
    found = calibrate(asked, pem, times=3)
    assert found.duration_s == pytest.approx(0.3, abs=0.05)
    assert found.ceiling_per_s > 0
    assert found.body_bytes == 100
    assert found.client_cpu is not None
    ceiling = found.client_ceiling_per_s
    assert ceiling is not None
    assert found.share_of(ceiling / 2) == pytest.approx(0.5)
    assert found.share_of(ceiling * 1.01) is None, "more than a ceiling: it is none"
    assert found.model_copy(update={"exceeded": True}).share_of(1.0) is None
    assert found.model_copy(update={"client_cpu": None}).share_of(1.0) is None


def test_a_ceiling_is_that_of_one_load_only() -> None:
    asked = ReferenceLoad(workload=HELLO, users=4, body_bytes=1000, client_cpus=(1,), server_cpus=(0,))
    assert asked.like(asked.model_copy(update={"body_bytes": 1200}))
    for other in (
        {"users": 5},
        {"tls": True},
        {"connections": Connections(keep_alive=False)},
        {"driver": "epoll"},
        {"server_cpus": ()},
        {"client_cpus": (0,)},
        {"closes_after": 100},
        {"body_bytes": 2000},
    ):
        assert not asked.like(asked.model_copy(update=other)), other


def test_a_missing_engine_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRONY_ENGINE", str(tmp_path / "none"))
    with pytest.raises(EnvironmentFault, match="PRONY_ENGINE"):
        find_engine()


def test_each_request_of_a_run_is_read_back_from_its_log(reference: Reference, tmp_path: Path) -> None:
    file = tmp_path / "requests.csv"
    report = EngineRun(load(reference.url, log=file, total_requests=50)).run_to_end(60)
    assert report.log is not None
    assert (report.log.rows, report.log.rows_lost) == (50, 0)
    with file.open(newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    known = [(row["method"], row["path"], row["status"], row["error"]) for row in rows]
    assert known == [("GET", "/", "200", "")] * 50
    assert sum(bool(row["connect_ns"]) for row in rows) == report.totals.connections_opened
    assert sum(int(row["bytes_in"]) for row in rows) == report.totals.bytes_received


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_slowest_requests_are_told_where_they_are_asked_for(reference: Reference, driver: str) -> None:
    report = EngineRun(load(reference.url, driver=driver, slowest=Slowest(share=0.01))).run_to_end(40)
    assert report.window is not None
    slowest = report.window.slowest
    assert slowest is not None
    assert len(slowest) == 30
    lengths = [length_ns for _, length_ns in slowest]
    assert lengths == sorted(lengths, reverse=True)
    assert all(0 <= start_ns <= report.elapsed_ms * 1e6 for start_ns, _ in slowest)
    longest = report.window.service_time
    assert longest is not None
    assert longest.max_ns is not None
    assert lengths[0] <= longest.max_ns <= lengths[0] * 1.002  # three digits
