"""Redirects, captures and expectations of a workload, through the engine and through the request before the
load.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.plan.load import ClosedLoad
from prony.plan.workload import Workload
from tests.responses import answers


class Shop(BaseHTTPRequestHandler):
    """A log-in that leads to the shelf, and things on it."""

    protocol_version = "HTTP/1.1"

    def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(303, {"Location": "/shelf", "Set-Cookie": "sid=7; Path=/"})

    def do_GET(self) -> None:
        if self.path == "/away":
            self._answer(302, {"Location": "http://elsewhere.example/"})
        elif self.path == "/shelf":
            self._answer(200, {}, json.dumps({"things": [{"id": 1}, {"id": 2}]}).encode())
        else:
            self._answer(200, {}, f"<b>{self.path}</b>".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def walked(port: int, steps: list[dict[str, object]]) -> tuple[EngineRun, Workload]:
    """Two users who walk the steps five times each."""
    workload = Workload.model_validate({"name": "shop", "steps": steps, "cookies": True})
    load = EngineLoad(
        url=f"http://127.0.0.1:{port}",
        workload=workload,
        load=ClosedLoad(users=2),
        cpus=(),
        iterations_per_user=5,
        after_s=60,
        window="all",
    )
    return EngineRun(load), workload


def test_a_log_in_leads_on_and_values_are_found_there(port: int) -> None:
    run, workload = walked(
        port,
        [
            {
                "name": "log in",
                "method": "POST",
                "path": "/login",
                "body": "name=a",
                "follow_redirects": 2,
                "expect": {
                    "status": ["2xx"],
                    "not_status": [204],
                    "json_absent": ["/error"],
                    "body_not_contains": ["sorry"],
                    "body_matches": ["things"],
                    "min_bytes": 5,
                    "max_bytes": 500,
                    "max_ms": 60_000,
                },
                "capture": {
                    "last": {"jsonpath": "$.things[-1].id"},
                    "each": {"regex": '"id": (\\d)', "match": -1},
                    "first": {"boundary": {"left": '"id": ', "right": "}"}},
                    "code": {"status": True},
                    "token": {"header": "X-Token", "optional": True},
                },
            },
            {
                "name": "look",
                "path": "/${last}-${each_1}${each_2}-${each_matchNr}-${first}-${code}",
                "expect": {"body_equals": "<b>/2-12-2-1-200</b>"},
            },
        ],
    )
    report = run.run_to_end(90)
    assert report.totals.errors == {}
    assert report.totals.status == {"200": 20, "303": 10}
    assert report.window is not None
    assert [(row.name, row.completed) for row in report.window.transactions] == [("log in", 10)]
    assert {row.name: row.completed for row in report.window.steps} == {"log in": 20, "look": 10}
    probes = answers(f"http://127.0.0.1:{port}", workload)
    expected = [("log in", 200, None), ("look", 200, None)]
    assert [(probe.step, probe.status, probe.why_not) for probe in probes] == expected


def test_each_miss_is_a_kind_of_its_own(port: int) -> None:
    misses: dict[str, dict[str, object]] = {
        "expect_redirect": {"path": "/away", "follow_redirects": 1},
        "expect_size": {"path": "/", "expect": {"max_bytes": 1}},
        "expect_status": {"path": "/", "expect": {"not_status": ["2xx"], "status": []}},
        "expect_duration": {"path": "/", "expect": {"max_ms": 1e-6}},
        "capture": {"path": "/", "capture": {"id": {"jsonpath": "$.id"}}},
    }
    steps = [{"name": kind, **step} for kind, step in misses.items()]
    run, _ = walked(port, steps)
    report = run.run_to_end(90)
    assert report.totals.errors == dict.fromkeys(misses, 10)
    assert report.totals.completed == 50
