"""What each tool prints, and what is read from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.cases import CASES, Case
from bench.tools import TOOLS, LoadGenerator, NotOffered, PeerLoad
from bench.tools.prony import Prony
from bench.tools.vegeta import Vegeta, read_report
from prony_peers.ab import Ab
from prony_peers.h2load import H2load
from prony_peers.oha import Oha
from prony_peers.wrk import Wrk

WRK = """Running 2s test @ http://127.0.0.1:8080/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   241.55us  614.72us  12.19ms   96.32%
  60784 requests in 1.10s, 5.39MB read
  Socket errors: connect 1, read 20, write 300, timeout 4000
  Non-2xx or 3xx responses: 50000
Requests/sec:  55273.01
"""
AB = """Concurrency Level:      16
Time taken for tests:   1.008 seconds
Complete requests:      25807
Failed requests:        7
   (Connect: 0, Receive: 0, Length: 7, Exceptions: 0)
Non-2xx responses:      20
Keep-Alive requests:    25807
"""
H2LOAD = """progress: 100% of clients started
finished in 1.05s, 37528.00 req/s, 3.33MB/s
requests: 37528 total, 37544 started, 37528 done, 37520 succeeded, 8 failed, 3 errored, 0 timeout
status codes: 37520 2xx, 0 3xx, 0 4xx, 8 5xx
"""


def case(name: str) -> Case:
    """A case of the bench by its name."""
    return next(found for found in CASES if found.name == name)


def request(name: str) -> PeerLoad:
    """What a tool is asked for in this case."""
    return PeerLoad(case(name), "http://127.0.0.1:8080/", 2, 0.5, "body", 1)


def test_wrk_adds_up_its_errors() -> None:
    claim = Wrk().claim(WRK, "", 0)
    assert claim.requests == 60784
    assert claim.errors == 1 + 20 + 300 + 4000 + 50000


def test_wrk_without_error_lines_has_none() -> None:
    assert Wrk().claim("  10 requests in 1.00s, 1KB read\n", "", 0).errors == 0


def test_ab_counts_failed_and_wrong_responses() -> None:
    claim = Ab().claim(AB, "", 0)
    assert (claim.requests, claim.errors) == (25807, 27)


def test_h2load_keeps_apart_what_it_left_in_flight() -> None:
    claim = H2load().claim(H2LOAD, "", 0)
    assert (claim.requests, claim.errors, claim.abandoned) == (37528, 8, 16)


def test_oha_keeps_apart_what_it_left_in_flight() -> None:
    report = {
        "statusCodeDistribution": {"200": 1000, "503": 4},
        "errorDistribution": {"aborted due to deadline": 64, "connection refused": 3},
    }
    claim = Oha().claim(json.dumps(report), "", 0)
    assert (claim.requests, claim.errors, claim.abandoned) == (1004, 7, 64)


@pytest.mark.parametrize("tool", [Wrk(), Ab(), H2load(), Oha()], ids=lambda tool: tool.name)
def test_a_tool_that_failed_is_quoted(tool: LoadGenerator) -> None:
    with pytest.raises(ValueError, match="unable to connect"):
        tool.claim("", "something\nunable to connect\n\n", 1)


def test_a_refused_plan_is_not_yet_there_and_says_why() -> None:
    refusal = json.dumps({"event": "error", "kind": "plan", "message": "this version speaks http only"})
    with pytest.raises(NotOffered, match="not yet: this version speaks http only"):
        Prony("epoll").claim(refusal + "\n", "", 2)


def test_an_engine_without_a_report_has_failed() -> None:
    with pytest.raises(ValueError, match="out of memory"):
        Prony("epoll").claim("", "out of memory", 4)


@pytest.mark.parametrize("name", ["closed-64", "per-request-64", "https-64", "https-handshake-64"])
def test_every_tool_is_asked_for_the_same_connections(name: str) -> None:
    for tool in TOOLS:
        try:
            command = tool.command(Path("/bin/tool"), request(name))
        except NotOffered:
            assert isinstance(tool, H2load)
            continue
        text = " ".join(command.argv) + command.stdin
        if isinstance(tool, Vegeta):
            text += Path(command.argv[command.argv.index("-targets") + 1]).read_text()
        assert "64" in text, tool.name
        assert "http://127.0.0.1:8080" in text, tool.name


def test_connections_are_kept_or_not_as_the_case_says() -> None:
    program = Path("/bin/tool")
    assert "-k" in Ab().command(program, request("closed-64")).argv
    assert "-k" not in Ab().command(program, request("per-request-64")).argv
    assert "Connection: close" not in Wrk().command(program, request("closed-64")).argv
    assert "Connection: close" in Wrk().command(program, request("per-request-64")).argv
    assert "--disable-keepalive" not in Oha().command(program, request("closed-64")).argv
    assert "--disable-keepalive" in Oha().command(program, request("per-request-64")).argv


@pytest.mark.parametrize("name", ["h2c-64x1", "h2-8x32", "h2c-8x32-nghttpd"])
def test_over_http_2_every_tool_has_the_same_streams_or_says_that_it_cannot(name: str) -> None:
    program, load = Path("/bin/tool"), request(name)
    streams = str(load.case.streams)
    for tool in (Wrk(), Ab(), Vegeta()):
        with pytest.raises(NotOffered, match=r"HTTP/1 only|cannot be set"):
            tool.command(program, load)
    for argv, connections in (
        (H2load().command(program, load).argv, f"-c{load.case.connections}"),
        (Oha().command(program, load).argv, str(load.case.connections)),
    ):
        assert connections in argv
        assert f"-m{streams}" in argv or argv[argv.index("-p") + 1] == streams
    assert "--h1" not in H2load().command(program, load).argv


def test_cases_over_http_2_are_compared_with_h2load() -> None:
    for found in (found for found in CASES if found.streams is not None):
        assert found.takes("h2load")
        assert not found.takes("wrk")
        assert found.baseline == "h2load"
        assert set(found.aims.values()) == {0.8}


def test_tools_without_an_open_loop_say_so() -> None:
    for tool in (Wrk(), Ab()):
        with pytest.raises(NotOffered, match="no open loop"):
            tool.command(Path("/bin/tool"), request("open-10k"))


def test_rates_come_to_the_same_in_all() -> None:
    program = Path("/bin/tool")
    assert "--rps=156.25" in H2load().command(program, request("open-10k")).argv  # 64 clients
    assert "10000" in Oha().command(program, request("open-10k")).argv
    plan = Prony("epoll").plan(request("open-10k"))
    assert plan["load"]["phases"] == [{"duration_ms": 2000, "from_per_s": 10_000, "to_per_s": 10_000}]


def test_vegeta_counts_what_was_answered() -> None:
    claim = read_report('{"requests": 10, "status_codes": {"0": 2, "200": 7, "503": 1}}')
    assert (claim.requests, claim.errors) == (8, 3)
    with pytest.raises(ValueError, match="no results"):
        read_report("no results")


def test_vegeta_is_a_closed_loop_without_a_rate_and_an_open_one_with_it() -> None:
    for case in (case for case in CASES if case.streams is None):
        command = Vegeta().command(Path("vegeta"), PeerLoad(case, "http://127.0.0.1:1/", 2, 0.5, "Hello", 1))
        if case.rate_per_s is None:
            assert {"-rate=0", f"-max-workers={case.connections}"} <= set(command.argv)
        else:
            assert f"-rate={case.rate_per_s}/1s" in command.argv
        assert ("-keepalive=false" in command.argv) == case.per_request
        assert ("-insecure" in command.argv) == case.tls
