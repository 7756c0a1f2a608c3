"""A long run keeps a row a minute: counts exact, memory bounded, whatever the length."""

from __future__ import annotations

import pytest

from prony.evidence.engine import IntervalRow
from prony.evidence.host import HostRow
from prony.host import sampler as host_minutes
from prony.judge.checks.steady import steady
from prony.judge.limits import CheckLimits
from prony.load.minutes import merged, same_part
from prony.steady.detector import full_rows
from prony.thinning import FINE_ROWS, MERGED_ROWS, Thinned
from prony_hosts.load.adding import merged_row
from tests.judge import factory as f


def second(at: int, completed: int = 100, *, in_window: bool = True) -> IntervalRow:
    return IntervalRow(
        t_ms=at * 1000.0,
        duration_ms=1000.0,
        in_window=in_window,
        completed=completed,
        failed=1,
        errors={"timeout": 1},
        users=10,
        sent=completed + 1,
        mean_ns=1e6 * at,
        p50_ns=at,
        max_ns=at,
        client_cpu=0.5,
    )


def test_half_an_hour_is_kept_as_it_came() -> None:
    series = Thinned(merged, same_part)
    made = [second(at) for at in range(1, FINE_ROWS + 1)]
    for row in made:
        series.add(row)
    assert series.rows == tuple(made)
    assert series.last is made[-1]


def test_eight_hours_are_a_row_a_minute_and_lose_no_count() -> None:
    series = Thinned(merged, same_part)
    seconds = 8 * 3600 + 25
    for at in range(1, seconds + 1):
        series.add(second(at, completed=at % 7, in_window=at > 90))
        assert series.last.t_ms == at * 1000.0
    rows = series.rows
    assert len(rows) <= seconds / MERGED_ROWS + 3
    assert sum(row.completed for row in rows) == sum(at % 7 for at in range(1, seconds + 1))
    assert sum(row.errors["timeout"] for row in rows) == seconds == sum(row.failed for row in rows)
    assert sum(row.duration_ms for row in rows) == seconds * 1000.0
    assert [row.t_ms for row in rows] == sorted(row.t_ms for row in rows)
    # No minute lies on both sides of the border of the window.
    assert sum(row.duration_ms for row in rows if not row.in_window) == 90_000.0
    assert len(full_rows(rows, 90_000.0)) >= 8 * 60 - 2


def test_a_minute_of_rows() -> None:
    made = merged([second(1, completed=1), second(2, completed=3)])
    assert (made.t_ms, made.duration_ms, made.completed, made.sent) == (2000.0, 2000.0, 4, 6)
    assert made.mean_ns == pytest.approx((1e6 + 3 * 2e6) / 4)
    assert (made.p50_ns, made.max_ns, made.client_cpu, made.users) == (2, 2, 0.5, 10)
    silent = merged([second(1).model_copy(update={"mean_ns": None, "p50_ns": None, "sent": None})])
    assert (silent.mean_ns, silent.p50_ns, silent.sent) == (None, None, None)


def test_a_minute_of_the_host() -> None:
    rows = [
        (1.0, HostRow(t_ms=1000, duration_ms=1000, server_cpus_busy=0.2, steal=0.1, established=5)),
        (4.0, HostRow(t_ms=4000, duration_ms=3000, server_cpus_busy=0.6, established=9)),
    ]
    t_s, row = host_minutes.merged(rows)
    assert (t_s, row.t_ms, row.duration_ms, row.established, row.steal) == (4.0, 4000, 4000, 9, 0.1)
    assert row.server_cpus_busy == pytest.approx(0.5)
    assert row.client_cpus_busy is None


def test_the_drift_of_a_soak_is_named() -> None:
    series = Thinned(merged, same_part)
    rates = [rate * (1 - 0.04 * at / 7200) for at, rate in enumerate(f.noisy(8000, 7200, 0.01))]
    for row in f.rows(rates, in_window=True):
        series.add(row)
    evidence = f.window(f.engine(f.healthy(), rows=series.rows), opened_ms=0.0, duration_s=7200.0)
    finding = steady(evidence, CheckLimits())
    assert finding is not None
    assert finding.code == "moving"
    assert finding.plateau["requests_per_s"].high is not None
    assert "-1.99 % per hour" in finding.reason
    assert "per hour" not in steady(f.healthy(), CheckLimits()).reason  # type: ignore[union-attr]


def test_latencies_of_seconds_are_kept_in_a_minute_and_over_hosts() -> None:
    told = [
        second(1, 100).model_copy(update={"latency_p50_ns": 1000, "latency_p99_ns": 3000}),
        second(1, 300).model_copy(update={"latency_p50_ns": 2000, "latency_p99_ns": 7000}),
    ]
    minute = merged([*told, told[1]])
    assert (minute.latency_p50_ns, minute.latency_p99_ns) == (2000, 7000)
    both = merged_row(told, ())
    assert (both.latency_p50_ns, both.latency_p99_ns) == (1750, 6000)
    silent = merged_row([told[0], second(1)], ())
    assert (silent.latency_p50_ns, silent.latency_p99_ns) == (None, None)
    assert merged_row([told[0], second(1, 0)], ()).latency_p50_ns == 1000


def test_the_largest_send_lag_of_seconds_is_kept_in_a_minute_and_over_hosts() -> None:
    told = [second(1, 100), *(second(1, 100).model_copy(update={"send_lag_p99_ns": n}) for n in (900, 400))]
    assert merged(told).send_lag_p99_ns == 900
    assert merged_row(told, ()).send_lag_p99_ns == 900
    assert merged(told[:1]).send_lag_p99_ns is None
