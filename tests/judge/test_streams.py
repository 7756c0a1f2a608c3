"""streams: waits in the client over HTTP/2 are named, with whose limit made them."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.counts import Http2Counts
from prony.evidence.trial import Evidence
from prony.judge.checks.bound_by import BoundLimits, bound, bound_by
from prony.judge.checks.connections import connections
from prony.judge.checks.streams import streams
from prony.judge.finding import Finding, Kind
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS = CheckLimits()
NOT_CONFORMING, BUDGET, PROVIDED, FINE = Kind


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


def kind_code(evidence: Evidence) -> tuple[Kind, str]:
    return judged(evidence).kind, judged(evidence).code


def test_a_load_over_another_version_has_no_streams() -> None:
    assert streams(f.healthy(), LIMITS) is None


def test_without_counts_it_is_a_condition() -> None:
    assert kind_code(f.window(over_http2(), http2=None)) == (PROVIDED, "unread")
    assert kind_code(f.engine(over_http2(), window=None)) == (NOT_CONFORMING, "no_window")
    assert judged(f.window(over_http2(), http2=None)).provided


def test_streams_without_waits_are_fine_and_say_what_headers_cost() -> None:
    finding = judged(over_http2(max_concurrent_streams=100))
    assert kind_code(over_http2(max_concurrent_streams=100)) == (FINE, "ok")
    assert (finding.bias, finding.advice) == ({}, "")
    assert "5 header bytes" in finding.reason


@pytest.mark.parametrize(("waited_s", "kind"), [(0.9, BUDGET), (2.0, BUDGET), (90.0, NOT_CONFORMING)])
def test_a_limit_of_streams_below_what_was_asked_is_the_clients_queue(waited_s: float, kind: Kind) -> None:
    finding = judged(
        over_http2(
            max_concurrent_streams=1, stream_waits=80_000, stream_wait_sum_s=waited_s, stream_wait_max_ms=9.5
        )
    )
    assert (finding.kind, finding.code) == (kind, "streams")
    assert finding.advice


def test_what_was_waited_for_a_stream_is_what_a_server_without_the_limit_would_not_take() -> None:
    """10 users for 10 s in 80,000 requests of 1.25 ms; 800 of them waited 2.5 ms each, 2 s in all. Without
    that 80,000 take 98 s, and in 100 s a saturating loop makes 80,000 ÷ 0.98.
    """
    times = f.of_values([1_225_000] * 99 + [3_725_000], 80_000)
    waits = {"max_concurrent_streams": 1, "stream_waits": 800, "stream_wait_sum_s": 2.0}
    finding = judged(f.window(over_http2(**waits), service_time=times))
    rate, mean, p99 = (finding.bias[name] for name in ("requests_per_s", "mean_ms", "p999_ms"))
    assert [rate.low, rate.high] == pytest.approx([0, 1 / 0.98 - 1])
    assert [mean.low, mean.high] == pytest.approx([-0.02, 0])
    assert 3.725 * (1 + (p99.low or 0.0)) == pytest.approx(1.225, rel=0.01)


def test_waits_for_the_first_settings_of_few_requests_are_no_ones_queue() -> None:
    few = {"stream_waits": f.USERS - 1, "stream_wait_sum_s": 28.0, "stream_wait_max_ms": 30.0}
    finding = judged(over_http2(max_concurrent_streams=100, **few))
    assert (finding.kind, finding.code) == (BUDGET, "first_settings")
    assert finding.bias["mean_ms"].low == pytest.approx(-0.28)
    idle = f.part(over_http2(max_concurrent_streams=100, **few), "server_window", cpu_user_s=2.0)
    assert bound(idle, BoundLimits()).name != "streams"
    more = few | {"stream_waits": f.USERS}  # than one connection has at its start
    assert kind_code(over_http2(max_concurrent_streams=100, **more)) == (NOT_CONFORMING, "streams")
    assert kind_code(over_http2(max_concurrent_streams=f.USERS - 1, **few)) == (NOT_CONFORMING, "streams")


def test_a_window_of_the_server_that_holds_bodies_back_is_named() -> None:
    held = over_http2(send_blocks=500, send_blocked_sum_s=50.0)
    assert kind_code(held) == (NOT_CONFORMING, "flow_control")
    assert judged(held).value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("waits", "name"),
    [
        ({"send_blocks": 500, "send_blocked_sum_s": 50.0}, "flow-control"),
        ({"stream_waits": 500, "stream_wait_sum_s": 50.0}, "streams"),
    ],
)
def test_a_limit_of_the_protocol_is_a_bound_where_the_server_has_cpu_left(
    waits: dict[str, Any], name: str
) -> None:
    busy, idle = over_http2(**waits), f.part(over_http2(**waits), "server_window", cpu_user_s=2.0)
    assert bound(busy, BoundLimits()).name == "server-cpu"
    assert bound(idle, BoundLimits()).name == name
    finding = bound_by(idle, LIMITS)
    assert (finding.code, finding.of("capacity_per_s").high) == (name.replace("-", "_"), None)
    few = f.part(
        over_http2(**{key: value / 10 for key, value in waits.items()}), "server_window", cpu_user_s=2.0
    )
    assert bound(few, BoundLimits()).name == "unknown"


def test_goaway_is_reported_by_its_code() -> None:
    assert "NO_ERROR 32" in judged(over_http2(goaways_received={"NO_ERROR": 32})).reason


def test_shared_connections_are_those_that_are_expected() -> None:
    assert connections(over_http2(), LIMITS).kind is FINE
    more = f.window(f.totals(over_http2(), connections_opened=4000), connections_opened=None)
    assert (connections(more, LIMITS).kind, connections(more, LIMITS).code) == (PROVIDED, "extra")
