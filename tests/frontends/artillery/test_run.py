"""`prony artillery run` on a scripted server: counts, report, exit code; bytes beside the real Artillery."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prony.targets.external import RunningExternal
from prony_frontends.artillery import FRONT_END, run
from prony_frontends.artillery.console import duration, padded
from tests.frontends.artillery.scripts import BLOCKS, BLOCKS_EACH, REQUESTS_EACH, SESSIONS, WHOLE, written
from tests.frontends.conftest import Front, Served
from tests.programs import program

Serve = Callable[..., Served]


def requests(raw: bytes) -> list[tuple[str, dict[str, str], bytes]]:
    """Request line, headers by lower-case name, body."""
    found = []
    while raw:
        head, _, raw = raw.partition(b"\r\n\r\n")
        line, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
        length = int(headers.get("content-length", "0"))
        found.append((line, headers, raw[:length]))
        raw = raw[length:]
    return found


def unordered(server: Served) -> Counter[tuple[str, bytes, frozenset[tuple[str, str]]]]:
    """Requests in any order, as users overlap: line, body, headers without the port and the encoding."""
    return Counter(
        (line, body, frozenset((k, v) for k, v in headers.items() if k not in {"host", "accept-encoding"}))
        for line, headers, body in requests(server.recorded())
    )


def counted(file: Path) -> dict[str, Any]:
    """The report's aggregate."""
    whole: dict[str, Any] = json.loads(file.read_text())
    assert set(whole) == {"aggregate", "intermediate"}
    return whole["aggregate"]  # type: ignore[no-any-return]


def test_a_run_prints_reports_and_is_judged(serve: Serve, front: Front, tmp_path: Path) -> None:
    server = serve("--seed", "1")
    report = tmp_path / "report.json"
    argv = ["run", "-o", str(report), written(tmp_path, WHOLE, server.url)]
    assert run(argv, front.context(seed=3, exit_like_original=True)) == 0
    said = front.out.getvalue()
    assert server.ended()["requests"] == 4 * REQUESTS_EACH
    found = counted(report)
    assert found["counters"] | {"http.downloaded_bytes": 0} == found["counters"] | {
        "vusers.created_by_name.shop": 4, "vusers.created": 4, "vusers.completed": 4, "vusers.failed": 0,
        "http.requests": 52, "http.responses": 52, "http.codes.200": 52, "http.downloaded_bytes": 0,
        "plugins.expect.ok": 4, "plugins.expect.ok.statusCode": 4,
        "plugins.metrics-by-endpoint./same.codes.200": 12,
    }  # fmt: skip
    times = found["summaries"]["http.response_time"]
    assert list(times) == [
        "min", "max", "count", "mean", "p50", "median", "p75", "p90", "p95", "p99", "p999",
    ]  # fmt: skip
    assert times["count"] == 52
    assert {"http.response_time.2xx", "vusers.session_length"} < set(found["summaries"])
    assert shape(said) == SAID
    assert front.err.getvalue().splitlines()[-2].startswith("prony: ")


def shape(said: str) -> list[str]:
    """Lines of the end with the figures taken out."""
    end = said[said.index("All VUs finished") :]
    end = re.sub(r"\d\d:\d\d:\d\d\([+-]\d{4}\)", "T", end)
    end = re.sub(r"(Total time|Log file): .*", r"\1: N", end)
    return [
        re.sub(r"[\d.]+(/sec)?$", r"N\1", re.sub(r"\.{5,}", "…", line)) for line in end.splitlines() if line
    ]


TIMES = ["  min: … N", "  max: … N", "  mean: … N", "  median: … N", "  p95: … N", "  p99: … N"]
SAID = [
    "All VUs finished. Total time: N", "-" * 32, "Summary report @ T", "-" * 32,
    "http.codes.200: … N", "http.downloaded_bytes: … N", "http.request_rate: … N/sec", "http.requests: … N",
    "http.response_time:", *TIMES, "http.response_time.2xx:", *TIMES, "http.responses: … N",
    "plugins.expect.ok: … N", "plugins.expect.ok.statusCode: … N",
    "vusers.completed: … N", "vusers.created: … N",
    "vusers.created_by_name.shop: … N", "vusers.failed: … N", "vusers.session_length:", *TIMES,
    "Log file: N", "Checks:", "ok: maxErrorRate < N", "ok: http.codes.200 > 3 and vusers.failed == N",
    "ok: http.response_time.p99 < N",
]  # fmt: skip


def test_failed_checks_and_expectations_exit_1(serve: Serve, front: Front, tmp_path: Path) -> None:
    server = serve("--status", "404")
    script = written(tmp_path, WHOLE.replace("statusCode: 200", "statusCode: 418"), server.url)
    assert run(["run", "-q", script], front.context(exit_like_original=True)) == 1
    said = front.out.getvalue()
    assert "fail: http.codes.200 > 3 and vusers.failed == 0" in said
    assert run(["run", "-q", script], front.context()) == 3


def test_an_expectation_alone_has_an_exit_code_of_its_own(serve: Serve, front: Front, tmp_path: Path) -> None:
    text = SESSIONS.replace("scenarios:", "  plugins: {{expect: {{}}}}\nscenarios:").replace(
        'url: "/"', 'url: "/", expect: [{{headerEquals: [X-By, me]}}]'
    )
    argv = ["run", written(tmp_path, text, serve().url)]
    assert run(argv, front.context(exit_like_original=True)) == 21
    assert "plugins.expect.failed.header X-By values equals: " in front.out.getvalue()


def test_sessions_of_experiment_d(serve: Serve, front: Front, tmp_path: Path) -> None:
    server = serve("--delay", "1ms")
    report = tmp_path / "r.json"
    run(["run", "-o", str(report), written(tmp_path, SESSIONS, server.url)], front.context())
    found = counted(report)["counters"]
    ended = server.ended()
    assert (found["vusers.created"], found["vusers.completed"], found["http.requests"]) == (5, 5, 250)
    assert (ended["requests"], ended["connections"]) == (250, 6)  # one to see that somebody listens


def test_before_and_after(serve: Serve, front: Front, tmp_path: Path) -> None:
    server = serve()
    script = tmp_path / "s.yml"
    script.write_text(
        f"config: {{target: '{server.url}', phases: [{{duration: 1, arrivalCount: 2}}]}}\n"
        "before: {flow: [{get: {url: /first}}]}\nafter: {flow: [{get: {url: /last}}]}\n"
        "scenarios: [{flow: [{get: {url: /mid}}]}]\n"
    )
    run(["run", str(script)], front.context())
    assert server.ended()["requests"] == 4
    lines = [line.split(" ")[1] for line, _, _ in requests(server.recorded())]
    assert lines == ["/first", "/mid", "/mid", "/last"]


def test_what_is_decided_during_the_run(serve: Serve, front: Front, tmp_path: Path) -> None:
    server = serve()
    report = tmp_path / "r.json"
    run(["run", "-q", "-o", str(report), written(tmp_path, BLOCKS, server.url)], front.context())
    assert server.ended()["requests"] == 2 * BLOCKS_EACH
    sent = requests(server.recorded())[:BLOCKS_EACH]
    assert [(line.split(" ")[1], body) for line, _, body in sent] == [
        ("/echo", b'{"kind":"red","n":5}'),
        *((f"/l/{turn}", b'{"i":%d,"e":3}' % turn) for turn in range(3, 25)),
        *([("/p", b""), ("/q", b"")] * 3), ("/yes", b""), ("/known", b""),
    ]  # fmt: skip
    found = counted(report)["counters"]
    assert (found["vusers.completed"], found["plugins.expect.ok.notStatusCode"]) == (2, 2)
    assert found["plugins.expect.ok.header content-type values equals"] == 2


def test_uuid_once_per_user_and_conditions_on_what_was_captured(
    serve: Serve, front: Front, tmp_path: Path
) -> None:
    server = serve()
    script = tmp_path / "s.yml"
    script.write_text(
        f"config: {{target: '{server.url}', phases: [{{duration: 1, arrivalCount: 3}}]}}\n"
        "scenarios:\n  - flow:\n"
        "      - post: {url: /echo, json: {kind: red, n: 5},\n"
        "               capture: [{json: $.kind, as: kind}, {json: $.n, as: n}]}\n"
        "      - get: {url: '/a/{{ $uuid }}', ifTrue: \"kind == 'red' and n > 4\"}\n"
        "      - think: 0.01\n"
        "      - get: {url: /never, ifTrue: n < 5}\n"
        "      - get: {url: '/b/{{ $uuid }}', ifTrue: kind}\n"
    )
    run(["run", str(script)], front.context())
    assert server.ended()["requests"] == 9
    paths = [line.split(" ")[1] for line, _, _ in requests(server.recorded())]
    first, second = ({p[3:] for p in paths if p.startswith(f"/{word}/")} for word in "ab")
    assert len(first) == 3
    assert first == second


def test_explain_asks_nobody(front: Front, tmp_path: Path) -> None:
    assert run(["run", written(tmp_path, WHOLE)], front.context(explain=True)) == 0
    assert "title: artillery script.yml" in front.out.getvalue()
    assert FRONT_END.name == "artillery"


@pytest.mark.needs("artillery")
@pytest.mark.parametrize(
    ("text", "total", "code"),
    [(WHOLE, 4 * REQUESTS_EACH, 0), (BLOCKS, 2 * BLOCKS_EACH, 0)],
    ids=["whole", "blocks"],
)
def test_the_real_artillery_sends_the_same(
    serve: Serve, front: Front, tmp_path: Path, text: str, total: int, code: int
) -> None:
    ours, theirs = serve(), serve()
    mine, its = tmp_path / "mine.json", tmp_path / "its.json"
    argv = ["run", "-o", str(mine), written(tmp_path, text, ours.url)]
    assert run(argv, front.context(exit_like_original=True)) == code
    environment = os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"}
    done = subprocess.run(
        [program("artillery"), "run", "-o", str(its), written(tmp_path, text, theirs.url)],
        capture_output=True, text=True, timeout=240, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert ours.ended()["requests"] == theirs.ended()["requests"] == total
    assert unordered(ours) == unordered(theirs)
    for name, value in counted(its)["counters"].items():
        assert counted(mine)["counters"].get(name) == value, name
    missing = set(counted(its)["summaries"]) - set(counted(mine)["summaries"])
    assert not missing
    assert set(shape(done.stdout)) == set(shape(front.out.getvalue()))


@pytest.fixture
def refused() -> Iterator[str]:
    """The URL of a port that nobody listens on, and that nobody else takes."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def test_a_server_that_has_gone_is_counted(
    refused: str, front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunningExternal, "_connect", lambda _: None)  # it was there a moment ago
    report = tmp_path / "r.json"
    argv = ["run", "-o", str(report), written(tmp_path, SESSIONS, refused)]
    assert run(argv, front.context(exit_like_original=True)) == 0
    found = counted(report)["counters"]
    assert {name: found.get(name) for name in GONE} == GONE
    assert "http.codes.200" not in found
    assert "errors.ECONNREFUSED: " in front.out.getvalue()


@pytest.mark.needs("artillery")
def test_the_real_artillery_counts_a_server_that_has_gone_likewise(refused: str, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    done = subprocess.run(
        [program("artillery"), "run", "-q", "-o", str(report), written(tmp_path, SESSIONS, refused)],
        capture_output=True, text=True, timeout=240, check=False,
        env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = counted(report)["counters"]
    assert {name: found.get(name) for name in GONE} == GONE


GONE = {
    "vusers.created": 5, "vusers.failed": 5, "http.requests": 5, "errors.ECONNREFUSED": 5,
}  # fmt: skip


def test_words() -> None:
    assert padded("http.requests:", 52) == "http.requests: " + "." * 65 + " 52"
    assert [duration(s) for s in (0, 1, 61, 3600, 90_061)] == [
        "0 seconds", "1 second", "1 minute, 1 second", "1 hour, 0 minutes, 0 seconds",
        "1 day, 1 hour, 1 minute, 1 second",
    ]  # fmt: skip
