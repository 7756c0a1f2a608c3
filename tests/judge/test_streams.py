"""streams: waits in the client over HTTP/2 are named, with whose limit made them."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.engine import Http2Counts
from prony.evidence.trial import Evidence
from prony.judge.checks.bound_by import BoundLimits, bound, bound_by
from prony.judge.checks.connections import connections
from prony.judge.checks.streams import streams
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS = CheckLimits()


def over_http2(**counts: Any) -> Evidence:
    """A healthy load on one connection, 100 s of service time in its window."""
    facts = {"http_version": "2", "shared_connections": 1, "streams_per_connection": f.USERS}
    base = f.part(f.healthy(), "load", **facts)
    given = {
        "streams_opened": 80_000,
        "header_list_bytes_sent": 16_000_000,
        "header_block_bytes_sent": 400_000,
    }
    return f.window(f.totals(base, connections_opened=1), http2=Http2Counts(**given | counts))


def judged(evidence: Evidence) -> Finding:
    finding = streams(evidence, LIMITS)
    assert finding is not None
    return finding


def test_a_load_over_another_version_has_no_streams() -> None:
    assert streams(f.healthy(), LIMITS) is None


def test_without_counts_it_is_unknown() -> None:
    assert judged(f.window(over_http2(), http2=None)).status is Status.UNKNOWN


def test_streams_without_waits_are_valid_and_say_what_headers_cost() -> None:
    finding = judged(over_http2(max_concurrent_streams=100))
    assert finding.status is Status.VALID
    assert "takes 100 streams at once per connection, 10 asked for" in finding.reason
    assert "5 header bytes per request" in finding.reason


@pytest.mark.parametrize(
    ("waited_s", "status"), [(0.9, Status.VALID), (2.0, Status.SUSPECT), (90.0, Status.INVALID)]
)
def test_a_limit_of_streams_below_what_was_asked_is_the_clients_queue(
    waited_s: float, status: Status
) -> None:
    finding = judged(
        over_http2(
            max_concurrent_streams=1, stream_waits=80_000, stream_wait_sum_s=waited_s, stream_wait_max_ms=9.5
        )
    )
    assert finding.status is status
    assert "80,000 requests waited for a stream" in finding.reason
    assert ("the latency is the client's" in finding.advice) == (status is not Status.VALID)


def test_waits_for_the_first_settings_of_few_requests_are_no_ones_queue() -> None:
    few = {"stream_waits": f.USERS - 1, "stream_wait_sum_s": 28.0, "stream_wait_max_ms": 30.0}
    finding = judged(over_http2(max_concurrent_streams=100, **few))
    assert finding.status is Status.UNKNOWN
    assert "first SETTINGS" in finding.advice
    idle = f.part(over_http2(max_concurrent_streams=100, **few), "server_window", cpu_user_s=2.0)
    assert bound(idle, BoundLimits()).name != "streams"
    assert (
        judged(over_http2(max_concurrent_streams=100, **few | {"stream_wait_sum_s": 0.5})).status
        is Status.VALID
    )
    more = few | {"stream_waits": f.USERS}  # than one connection has at its start
    assert judged(over_http2(max_concurrent_streams=100, **more)).status is Status.INVALID
    assert judged(over_http2(max_concurrent_streams=f.USERS - 1, **few)).status is Status.INVALID


def test_a_window_of_the_server_that_holds_bodies_back_is_named() -> None:
    finding = judged(over_http2(send_blocks=500, send_blocked_sum_s=50.0))
    assert finding.status is Status.INVALID
    assert "500 bodies waited for the server's flow-control window" in finding.reason
    assert "initial window" in finding.advice


@pytest.mark.parametrize(
    ("waits", "name", "described"),
    [
        (
            {"send_blocks": 500, "send_blocked_sum_s": 50.0},
            "flow-control",
            "the server's flow-control window",
        ),
        ({"stream_waits": 500, "stream_wait_sum_s": 50.0}, "streams", "the server's limit of streams"),
    ],
)
def test_a_limit_of_the_protocol_is_a_bound_where_the_server_has_cpu_left(
    waits: dict[str, Any], name: str, described: str
) -> None:
    busy, idle = over_http2(**waits), f.part(over_http2(**waits), "server_window", cpu_user_s=2.0)
    assert bound(busy, BoundLimits()).name == "server-cpu"
    assert bound(idle, BoundLimits()).name == name
    finding = bound_by(idle, LIMITS)
    assert finding.status is Status.INVALID
    assert described in finding.reason
    few = f.part(
        over_http2(**{key: value / 10 for key, value in waits.items()}), "server_window", cpu_user_s=2.0
    )
    assert bound(few, BoundLimits()).name == "unknown"


def test_goaway_is_said_by_its_code() -> None:
    said = judged(over_http2(goaways_received={"NO_ERROR": 32})).reason
    assert "GOAWAY of the server: NO_ERROR 32" in said


def test_shared_connections_are_those_that_are_expected() -> None:
    assert connections(over_http2(), LIMITS).status is Status.VALID
    assert "1 expected" in connections(over_http2(), LIMITS).reason
    assert connections(f.totals(over_http2(), connections_opened=4000), LIMITS).status is not Status.VALID
