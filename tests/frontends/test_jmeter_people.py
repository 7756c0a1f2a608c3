"""Experiment A through the tool it was published with: plans/scripts/crud.jmx does what `crud` does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from prony.evidence.engine import EngineReport
from prony.plan.load import ClosedLoad, WholeRun
from prony.plan.target import Url
from prony.plan.think import Think
from prony.plan.trial import TrialPlan
from prony.plan.workload import load as workload
from prony.server.build import build
from prony.server.catalogue import Catalogue
from prony.server.launch import launch
from prony.server.probe import status_probe
from prony_frontends import jmeter
from prony_frontends.base import Translated
from tests.frontends.conftest import offered
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.site import serving

ROOT = Path(__file__).resolve().parents[2]
PLAN = ROOT / "plans" / "scripts" / "crud.jmx"
USERS, LOOPS = 3, 2
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Asked = tuple[str, str, str | None, str | None, str]


class People(BaseHTTPRequestHandler):
    """The interface of the server `crud`, and a memory of what each connection asked for."""

    protocol_version = "HTTP/1.1"
    people: dict[str, object]
    connections: list[list[Asked]]

    def setup(self) -> None:
        super().setup()
        self.asked: list[Asked] = []
        self.connections.append(self.asked)

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        spoken = (self.headers.get("Content-Type") if body else None, self.headers.get("Accept"))
        self.asked.append((self.command, UUID.sub("ID", self.path), *spoken, UUID.sub("ID", body)))
        person = json.loads(body) if body else None
        name = person["name"] if person else parse_qs(urlsplit(self.path).query)["name"][0]
        there = name in self.people
        status = 200 if there else 404
        if self.command == "PUT":
            status = 406 if there else 201
        if person and status < 300:
            self.people[name] = person
        shown = self.people.get(name)
        if self.command == "DELETE":
            shown = None
            self.people.pop(name, None)
        content = json.dumps(shown).encode() if shown else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status == 201:
            self.send_header("Location", f"http://127.0.0.1{self.path}?name={name}")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def people() -> Iterator[tuple[int, list[list[Asked]]]]:
    """Port and memory."""
    verbs = dict.fromkeys(("do_GET", "do_PUT", "do_POST", "do_DELETE"), People.answer)
    connections: list[list[Asked]] = []
    handler = type("Here", (People,), {"people": {}, "connections": connections, **verbs})
    with serving(handler) as port:
        yield port, connections


def arguments(port: int) -> list[str]:
    small = {"port": port, "users": USERS, "loops": LOOPS, "ramp_s": 0, "think_ms": 0, "spread_ms": 0}
    return ["-n", "-t", str(PLAN), *(f"-J{name}={value}" for name, value in small.items())]


def native(port: int) -> Translated:
    """The part `real-users` of the plan `crud`, with few users who do not think."""
    trial = TrialPlan(
        workload=workload("person-crud"),
        load=ClosedLoad(users=USERS),
        measured=WholeRun(iterations_per_user=LOOPS),
        preflight=False,
    )
    return Translated("prony", Url(url=f"http://127.0.0.1:{port}"), trial, "native")


def ways(connections: list[list[Asked]]) -> list[list[Asked]]:
    return sorted(asked for asked in connections if asked)


def test_the_whole_load_is_that_of_the_plan() -> None:
    made = jmeter.translate(["-n", "-t", str(PLAN)]).trial
    assert made.load == ClosedLoad(users=1000, ramp_up_s=5)
    assert made.measured == WholeRun(iterations_per_user=10)
    thinks = {step.think_before for step in made.workload.all_steps}
    assert thinks == {Think(kind="uniform", min_ms=500, max_ms=1500)}
    assert [step.name for step in made.workload.all_steps] == [
        step.name for step in workload("person-crud").all_steps
    ]


def test_the_same_requests_as_the_native_plan(people: tuple[int, list[list[Asked]]]) -> None:
    port, connections = people
    reports = [offered(jmeter.translate(arguments(port)))]
    through_jmeter = ways(connections)
    connections.clear()
    reports.append(offered(native(port)))
    assert through_jmeter == ways(connections)
    assert [len(asked) for asked in through_jmeter] == [6 * LOOPS] * USERS
    assert [report.totals.errors for report in reports] == [{}, {}]


@needs_jmeter
def test_the_same_requests_as_jmeter_itself(people: tuple[int, list[list[Asked]]], tmp_path: Path) -> None:
    port, connections = people
    run_jmeter(arguments(port), tmp_path, cwd=PLAN.parent)
    by_jmeter = ways(connections)
    connections.clear()
    offered(jmeter.translate(arguments(port)))
    assert by_jmeter == ways(connections)


def counts(report: EngineReport) -> dict[str, int]:
    assert report.window is not None
    return {step.name: step.completed for step in report.window.steps}


@pytest.mark.e2e
def test_the_same_counts_at_the_real_server() -> None:
    catalogue = Catalogue.load([ROOT / "servers"])
    with launch(build([catalogue.resolve("crud:memory")])[0]) as server:
        ready = server.built.spec.ready
        server.wait_ready(status_probe(server.host, server.port, ready.path, ready.status), 180)
        loads = jmeter.translate(arguments(server.port)), native(server.port)
        reports = [offered(load) for load in loads]
    assert [report.totals.errors for report in reports] == [{}, {}]
    names = [step.name for step in workload("person-crud").all_steps]
    assert counts(reports[0]) == counts(reports[1]) == dict.fromkeys(names, USERS * LOOPS)
