"""Medians, ratios, sanity and verdicts, of runs that are made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.cases import CASES, EPOLL, IO_URING, Case
from bench.disturbance import Disturbance
from bench.measure import Run
from bench.summary import faults, judged, memory, miscount, rows
from bench.tools import Claim
from tests.bench.samples import LOUD, run

BY_NAME: dict[str, Case] = {case.name: case for case in CASES}
CLOSED = BY_NAME["closed-64"]


def series(*costs_us: float) -> dict[int, Run]:
    """One run per round."""
    return {at: run(cost) for at, cost in enumerate(costs_us, 1)}


def test_cost_is_cpu_time_over_what_the_server_counted() -> None:
    found = run(8.0)
    assert found.cpu_us_per_request == pytest.approx(8.0)
    assert found.requests_per_s == pytest.approx(100_000)
    assert found.busy == pytest.approx(0.8)
    assert found.server_busy == pytest.approx(0.6)


def test_the_ratio_is_paired_by_round() -> None:
    """Rounds that are slow for both leave the ratio alone."""
    runs = {("closed-64", "wrk"): series(8, 16, 12, 10, 9), ("closed-64", IO_URING): series(4, 8, 6, 5, 4.5)}
    base, own = rows([CLOSED], ["wrk", IO_URING], runs, {})
    assert base.ratio is None
    assert own.ratio is not None
    assert own.ratio.paired
    assert own.ratio.ratio == pytest.approx(0.5)
    assert (own.ratio.low, own.ratio.high) == pytest.approx((0.5, 0.5))
    assert own.verdict == "aim 0.65: met"


def test_a_missing_round_of_one_tool_costs_only_its_pair() -> None:
    own = series(4, 8, 6, 5, 4.5)
    del own[3]
    runs = {("closed-64", "wrk"): series(8, 16, 12, 10, 9), ("closed-64", IO_URING): own}
    found = rows([CLOSED], ["wrk", IO_URING], runs, {})[1].ratio
    assert found is not None
    assert found.n == 4
    assert found.ratio == pytest.approx(0.5)


def test_median_and_range() -> None:
    runs = {("closed-64", "wrk"): series(8, 16, 12)}
    (row,) = rows([CLOSED], ["wrk"], runs, {})
    cost = row.over_rounds(lambda run: run.cpu_us_per_request)
    assert cost is not None
    assert (cost.median, cost.low, cost.high) == pytest.approx((12, 8, 16))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.5, 0.65, "met"), (0.66, 0.7, "missed"), (0.6, 0.7, "not decided"), (None, None, "not decided")],
)
def test_an_aim_is_decided_by_the_whole_interval(low: float | None, high: float | None, said: str) -> None:
    assert judged(low, high, 0.65) == said


@pytest.mark.parametrize("disturbed", ["wrk", IO_URING])
def test_no_verdict_when_either_side_was_disturbed(disturbed: str) -> None:
    runs = {("closed-64", "wrk"): series(8, 8, 8), ("closed-64", IO_URING): series(4, 4, 4)}
    runs["closed-64", disturbed][2] = run(8, disturbance=LOUD)
    assert rows([CLOSED], ["wrk", IO_URING], runs, {})[1].verdict == "no verdict: disturbed"


def test_nothing_is_judged_where_nothing_was_aimed_at() -> None:
    runs = {("closed-64", "wrk"): series(8, 8, 8), ("closed-64", "ab"): series(9, 9, 9)}
    assert [row.verdict for row in rows([CLOSED], ["wrk", "ab"], runs, {})] == ["", ""]


@pytest.mark.parametrize(
    ("lags", "said"), [((20, 30), "met"), ((60, 70), "missed"), ((40, 60), "not decided")]
)
def test_send_lag_is_judged_over_all_rounds(lags: tuple[float, float], said: str) -> None:
    case = BY_NAME["open-10k"]
    own = {
        at: run(claim=Claim(requests=200_000, send_lag_p99_us=lag), requests_measured=15_000)
        for at, lag in enumerate(lags, 1)
    }
    (row,) = rows([case], [EPOLL], {("open-10k", EPOLL): own}, {})
    assert row.verdict == f"p99 send lag, aim 50 µs: {said}"


def test_a_row_without_runs_keeps_its_reason() -> None:
    (row,) = rows([CLOSED], [EPOLL], {}, {("closed-64", EPOLL): "not yet: no"})
    assert (row.reason, row.verdict, row.faults) == ("not yet: no", "", ())


@pytest.mark.parametrize(
    ("claimed", "abandoned", "off"),
    [
        (200_000, 0, 0),  # what the server counted
        (199_936, 0, 0),  # one in flight per connection
        (199_736, 0, 0),  # and the tolerance of 0.1 %
        (199_735, 0, -201),  # more than its connections can hold
        (200_200, 0, 0),
        (200_201, 0, 201),  # more than ever arrived
        (199_000, 900, 0),  # what it says that it left
    ],
)
def test_miscount(claimed: int, abandoned: int, off: int) -> None:
    assert miscount(CLOSED, run(claim=Claim(requests=claimed, abandoned=abandoned))) == off


def test_a_tool_that_miscounts_is_named() -> None:
    (said,) = faults(CLOSED, run(claim=Claim(requests=220_000)))
    assert said == "miscounts: claims 10 % more than the server counted"


def test_the_shape_of_the_connections_is_checked() -> None:
    assert faults(CLOSED, run()) == []
    assert faults(CLOSED, run(counts={"connections": 5000})) == ["opened 5,000 connections instead of 64"]
    each = BY_NAME["per-request-64"]
    assert faults(each, run()) == ["kept connections alive although not requested"]
    assert faults(each, run(counts={"connections": 200_000})) == []
    tls = BY_NAME["https-64"]
    assert faults(tls, run(counts={"tls_resumptions": 3})) == ["3 TLS sessions were resumed"]


def test_errors_and_a_wrong_rate_are_named() -> None:
    assert faults(CLOSED, run(claim=Claim(requests=200_000, errors=12))) == ["12 errors"]
    slow, right = run(counts={"requests": 16_000}), run(counts={"requests": 20_000})
    case = BY_NAME["open-10k"]
    assert faults(case, replace(slow, claim=Claim(requests=16_000))) == ["sent 8,000 requests per second"]
    assert faults(case, replace(right, claim=Claim(requests=20_000))) == []


def test_memory_per_connection_and_its_growth() -> None:
    mib = 1024 * 1024
    few, many = BY_NAME["closed-1"], BY_NAME["closed-1000"]
    runs = {
        ("closed-1", "wrk"): {1: run(peak_rss_bytes=5 * mib)},
        ("closed-1000", "wrk"): {1: run(peak_rss_bytes=25 * mib)},
        ("closed-1000", "ab"): {1: run(peak_rss_bytes=10 * mib)},
    }
    least, most = memory(rows([few, many], ["wrk", "ab"], runs, {}))
    assert (least.tool, least.growth_bytes) == ("ab", None)
    assert most.per_connection_bytes == pytest.approx(25 * mib / 1000)
    assert most.growth_bytes == pytest.approx(20 * mib / 999)


@pytest.mark.parametrize(
    ("disturbance", "word"),
    [
        (Disturbance(0.0, 0.0, 0.0), None),
        (Disturbance(0.06, 0.0, 0.0, "make"), "client's CPU (most of all make)"),
        (Disturbance(0.0, 0.06, 0.0), "server's CPU"),
        (Disturbance(0.0, 0.0, 0.02), "hypervisor took 2 %"),
        (Disturbance(None, 0.0, 0.0), "not readable"),
        (Disturbance(0.0, 0.0, None), "not readable"),
    ],
)
def test_what_disturbs(disturbance: Disturbance, word: str | None) -> None:
    reason = disturbance.reason
    assert reason is None if word is None else reason is not None and word in reason
