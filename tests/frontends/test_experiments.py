"""Experiments A, C and E by the tools that they were published with, beside the native plans: the same users,
times and requests, on the wire and on the servers of the experiments.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from prony.evidence.engine import EngineReport
from prony.judge.limits import CheckLimits
from prony.plan.load import ClosedLoad, SteadyWindow, WholeRun
from prony.plan.planfile_read import find, read
from prony.plan.step import Step
from prony.plan.trial import TrialPlan
from prony.server.build import build
from prony.server.catalogue import Catalogue
from prony.server.launch import RunningServer, launch
from prony.server.probe import status_probe
from prony_frontends import ab, fhb, wrk
from prony_frontends._exports.wrk import COLUMNS
from prony_frontends.base import Translated
from tests.frontends.conftest import Served, changed, moved, offered, quick_desk
from tests.single import single

SCRIPTS = Path(__file__).parents[2] / "plans" / "scripts"
Serve = Callable[..., Served]
REQUESTS = 90
"""Fewer than the hundred after which Tomcat ends a connection, so that all responses are alike."""


def cells(plan: str, part: str) -> Sequence[TrialPlan]:
    return [cell.trial for cell in read(find(plan), limits=CheckLimits, seed=1).of(part)]


def step_of(workload: object) -> Step:
    (step,) = workload.steps  # type: ignore[attr-defined]
    assert isinstance(step, Step)
    return step


@contextmanager
def started(address: str) -> Iterator[RunningServer]:
    (built,) = build([Catalogue.load().resolve(address)])
    ready = built.spec.ready
    with launch(built) as server:
        probe = status_probe(server.host, server.port, ready.path, ready.status)
        assert server.wait_ready(probe, 180.0) is not None, server.last_lines()
        yield server


def whole(load: Translated, requests: int, users: int) -> EngineReport:
    """So many requests of this load."""
    return offered(changed(load, load=ClosedLoad(users=users), measured=WholeRun(total_requests=requests)))


def sent(server: Served) -> list[list[str]]:
    """Each request's first line, its headers without the host in alphabetical order, and its body."""
    pieces = re.split(r"(?=(?:GET|POST) /)", server.recorded().decode())
    found = []
    for piece in filter(None, pieces):
        head, _, body = piece.partition("\r\n\r\n")
        first, *headers = head.split("\r\n")
        found.append([first, *sorted(line for line in headers if not line.startswith("Host: ")), body])
    return found


# Experiment A: wrk, 96 connections, 8 threads, 30 s, a script that reads its request from a file, CSV.


def csv_of(text: str) -> dict[str, float]:
    heading, line = text.splitlines()[-2:]
    assert tuple(heading.split(",")) == COLUMNS
    values = line.split(",")
    assert len(values) == len(COLUMNS)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", values[0])
    return {name: float(value) for name, value in zip(COLUMNS[1:], values[1:], strict=True)}


def asked_by_script(url: str, request: str, *flags: str) -> list[str]:
    return [*flags, "-s", str(SCRIPTS / "crud-throughput.lua"), url, "--", str(SCRIPTS / request)]


def native_person(verb: str, like: Translated) -> Translated:
    """The plan's request for the one person that the script asks for, on the same server."""
    plan = next(one for one in cells("crud", "throughput") if one.workload.name == f"person-{verb}")
    step = step_of(plan.workload)
    body = None if step.body is None else step.body.replace("${random int 1 1000}", "1")
    step = step.model_copy(update={"path": step.path.replace("${random int 1 1000}", "1"), "body": body})
    workload = plan.workload.model_copy(update={"steps": (step,), "prepare": (), "cleanup": ()})
    return changed(like, workload=workload, script=None)


@pytest.mark.parametrize("verb", ["get", "post"])
def test_the_script_of_a_asks_for_what_the_plan_asks_for(verb: str, serve: Serve) -> None:
    argv = asked_by_script("http://127.0.0.1:9", f"crud-{verb}.txt", "-c96", "-t8", "-d30s")
    load = wrk.translate(argv).trial
    for plan in cells("crud", "throughput"):
        assert isinstance(plan.load, ClosedLoad)
        assert isinstance(load.load, ClosedLoad)
        assert (plan.load.users, plan.load.think, load.load.users) == (96, load.load.think, 96)
        assert isinstance(plan.measured, SteadyWindow)
        assert isinstance(load.measured, WholeRun)
        assert load.measured.duration_s == 30, "as published"
        assert plan.measured.length_s * 4 > 30, "longer in all: four processes in place of one"
    by_script, by_plan = serve(), serve()
    one = wrk.translate(asked_by_script(by_script.url, f"crud-{verb}.txt", "-c3", "-t3"))
    other = native_person(verb, moved(one, by_plan.port))
    unchecked = step_of(other.trial.workload).model_copy(update={"expect": None})
    other = changed(other, workload=other.trial.workload.model_copy(update={"steps": (unchecked,)}))
    for report in (whole(one, REQUESTS, 3), whole(other, REQUESTS, 3)):
        assert (report.totals.completed, report.totals.errors) == (REQUESTS, {})
    counted = [(each["requests"], each["connections"]) for each in (by_script.ended(), by_plan.ended())]
    assert counted == [(REQUESTS, 3)] * 2
    assert sent(by_script) == sent(by_plan)


@pytest.mark.e2e
def test_a_on_its_server() -> None:
    """The real wrk, prony wrk and the plan: CSV of the same columns, and the same responses."""
    with started("crud:memory") as server:
        person = '{"name":"p1","email":"ada@example.org","age":36}'
        put = single(
            server.host,
            server.port,
            "PUT",
            "/testbed/memcached",
            {"Content-Type": "application/json"},
            person,
        )
        assert put.status == 201
        argv = asked_by_script(server.url, "crud-get.txt", "-c4", "-t2", "-d1s")
        printed = []
        if shutil.which("wrk") is not None:
            real = subprocess.run(["wrk", *argv], capture_output=True, text=True, timeout=120, check=True)
            printed.append(real.stdout)
        context, out, err = quick_desk()
        assert wrk.run(argv, context) == 0, err.getvalue()
        printed.append(out.getvalue())
        for text in printed:
            values = csv_of(text)
            assert values["num_requests"] > 0
            assert sum(values[name] for name in COLUMNS if "error" in name or name == "timeouts") == 0
        load = wrk.translate(argv)
        reports = [whole(load, REQUESTS, 2), whole(native_person("get", load), REQUESTS, 2)]
    for report in reports:
        assert (report.totals.completed, report.totals.errors) == (REQUESTS, {})
        assert report.totals.status == {"200": REQUESTS}
    assert reports[0].totals.bytes_received == reports[1].totals.bytes_received


# Experiment C: ab -n 10000 -c 10.


def test_the_published_line_of_c_asks_for_what_the_plan_asks_for(serve: Serve) -> None:
    published = ab.translate(["-n", "10000", "-c", "10", "http://127.0.0.1:8080/actuator/metrics"])
    for plan in cells("embedded-containers", "as-published"):
        assert isinstance(plan.load, ClosedLoad)
        assert isinstance(published.trial.load, ClosedLoad)
        assert (plan.load.users, published.trial.load.users) == (10, 10)
        assert isinstance(plan.measured, WholeRun)
        assert isinstance(published.trial.measured, WholeRun)
        assert plan.measured.total_requests == published.trial.measured.total_requests == 10_000
    step = step_of(cells("embedded-containers", "as-published")[0].workload)
    mine = step_of(published.trial.workload)
    assert (mine.method, mine.path, mine.headers["Accept"]) == ("GET", step.path, step.headers["Accept"])
    seen = []
    for flags in ([], ["-k"]):
        server = serve()
        words = [*flags, "-n", str(REQUESTS), "-c", "10", f"{server.url}/actuator/metrics"]
        report = offered(ab.translate(words))
        assert (report.totals.completed, report.totals.errors) == (REQUESTS, {})
        seen.append(server.ended())
    server = serve()
    like = moved(published, server.port)
    plan = cells("embedded-containers", "as-published")[0]
    native = changed(like, workload=plan.workload.model_copy(update={"steps": (
        step.model_copy(update={"expect": None}),)}), connections=plan.connections)  # fmt: skip
    whole(native, REQUESTS, 10)
    seen.append(server.ended())
    assert [each["requests"] for each in seen] == [REQUESTS] * 3
    # As published every request has a connection of its own; the plan keeps ten, as ab -k does.
    assert [each["connections"] for each in seen] == [REQUESTS, 10, 10]


@pytest.mark.e2e
def test_c_on_its_server() -> None:
    """The server's own count of what each of them asked."""
    with started("spring-tomcat") as server:
        path, url = "/actuator/metrics", f"{server.url}/actuator/metrics"

        def counted() -> int:
            response = single(server.host, server.port, path=f"{path}/http.server.requests?tag=uri:{path}")
            if response.status == 404:
                return 0
            return round(float(json.loads(response.body)["measurements"][0]["value"]))

        def settled(before: int) -> int:
            """The server counts a request when it has sent the response, which the client may have read by
            then: a moment for the last of them.
            """
            give_up_s = time.monotonic() + 30
            while (now := counted()) < before + REQUESTS and time.monotonic() < give_up_s:
                time.sleep(0.05)
            return now

        words = ["-l", "-n", str(REQUESTS), "-c", "10", url]
        shares, before = [], counted()
        if shutil.which("ab") is not None:
            subprocess.run(["ab", *words], capture_output=True, timeout=120, check=True)
            now = settled(before)
            shares, before = [now - before], now
        context, out, err = quick_desk()
        assert ab.run(words, context) == 0, err.getvalue()
        now = settled(before)
        shares, before = [*shares, now - before], now
        plan = cells("embedded-containers", "as-published")[0]
        native = changed(ab.translate(words), workload=plan.workload, connections=plan.connections)
        report = whole(native, REQUESTS, 10)
        shares.append(settled(before) - before)
    assert (report.totals.completed, report.totals.errors) == (REQUESTS, {})
    assert re.search(rf"^Complete requests: +{REQUESTS}$", out.getvalue(), re.MULTILINE)
    assert re.search(r"^Failed requests: +0$", out.getvalue(), re.MULTILINE)
    assert set(shares) == {REQUESTS}


# Experiment E: Faban's fhb.


def think_ms(load: ClosedLoad) -> int:
    return int(getattr(load.think, "ms", None) or 0)


def test_the_published_calls_of_e_ask_for_what_the_plan_asks_for() -> None:
    asked = {
        (users, think): fhb.translate(
            ["-c", str(users), "-W", str(think), "-r", "10/20/0", "http://h:8080/Ping/PingServlet"]
        ).trial
        for users, think in (
            *((users, 0) for users in (30, 100, 1000, 5000, 16000)),
            (1000, 500),
            (5000, 500),
            (16000, 2000),
        )
    }
    found = set()
    for plan in (*cells("container-scalability", "servlet"), *cells("container-scalability", "thinking")):
        step = step_of(plan.workload)
        if step.path != "/Ping/PingServlet":
            continue
        assert isinstance(plan.load, ClosedLoad)
        load = asked[plan.load.users, think_ms(plan.load)]
        found.add((plan.load.users, think_ms(plan.load)))
        assert isinstance(load.load, ClosedLoad)
        assert (load.load.users, think_ms(load.load)) == (plan.load.users, think_ms(plan.load))
        assert isinstance(plan.measured, SteadyWindow)
        assert isinstance(load.measured, SteadyWindow)
        assert load.measured.window_s == plan.measured.window_s == 20
        mine = step_of(load.workload)
        assert (mine.method, mine.path) == (step.method, step.path)
        assert load.request_timeout_ms == 30_000
    assert found == set(asked)


@pytest.mark.e2e
def test_e_on_its_server() -> None:
    with started("tomcat:published") as server:
        words = ["-c", "4", "-r", "1/1/0", "-W", "5", f"{server.url}/Ping/PingServlet"]
        plan = cells("container-scalability", "servlet")[0]
        load = fhb.translate(words)
        by_fhb = offered(changed(load, measured=WholeRun(total_requests=REQUESTS)))
        workload = next(
            one.workload for one in cells("container-scalability", "servlet") if one.workload.name == "ping"
        )
        by_plan = offered(
            changed(load, measured=WholeRun(total_requests=REQUESTS), workload=workload,
                    connections=plan.connections)
        )  # fmt: skip
    bodies = []
    for report in (by_fhb, by_plan):
        assert (report.totals.completed, report.totals.errors) == (REQUESTS, {})
        (response,) = report.totals.answers
        bodies.append((response.status, response.body_bytes, response.count))
    assert bodies[0] == bodies[1]
