"""hosts: what is lost, late or different is named, and what instants may be off by bounds the figures."""

from __future__ import annotations

import numpy as np
import pytest

from prony.evidence.engine import IntervalRow
from prony.evidence.trial import Evidence
from prony.judge.checks.hosts import cumulative, distances, hosts
from prony.judge.finding import Finding, Kind
from prony.judge.histogram import decode
from prony.judge.limits import CheckLimits
from prony.judge.links import hosts_needed
from tests.judge import factory as f

NOT_CONFORMING, BUDGET, PROVIDED, FINE = Kind
THREE = f.on_hosts(3)
LIMITS = CheckLimits()


def hosts_of(evidence: Evidence) -> Finding:
    found = hosts(evidence, LIMITS)
    assert found is not None
    return found


def kind_code(evidence: Evidence) -> tuple[Kind, str]:
    return f.kind_code(hosts_of(evidence))


def test_quiet() -> None:
    assert kind_code(THREE) == (FINE, "ok")
    assert hosts_of(THREE).value == pytest.approx(0.2)
    assert hosts_of(THREE).advice == ""
    assert hosts(f.healthy(), LIMITS) is None


def test_every_lost_host_is_named_with_its_reason() -> None:
    gone = f.host(f.host(THREE, "load2", lost="its worker ended"), "server", lost="no sign of life for 5 s")
    assert kind_code(gone) == (NOT_CONFORMING, "lost")
    for said in ("load2", "its worker ended", "server", "no sign of life for 5 s"):
        assert said in hosts_of(gone).reason


def test_a_host_lost_before_the_window_is_the_cause_that_there_is_none() -> None:
    early = f.host(THREE, "load1", lost="its worker ended", engine=None, host_window=None, clock=None)
    assert kind_code(early.model_copy(update={"engine": None})) == (NOT_CONFORMING, "lost")
    assert kind_code(THREE.model_copy(update={"engine": None})) == (NOT_CONFORMING, "no_window")


def test_a_load_host_without_figures_does_not_conform() -> None:
    blind = f.host(THREE, "load3", engine=None)
    assert kind_code(blind) == (NOT_CONFORMING, "no_window")
    assert "load3" in hosts_of(blind).reason


@pytest.mark.parametrize(("late_s", "kind"), [(0.005, FINE), (0.05, BUDGET), (0.2, NOT_CONFORMING)])
def test_a_window_that_opened_late(late_s: float, kind: Kind) -> None:
    assert hosts_of(f.host(THREE, "load1", opened_late_s=late_s)).kind is kind


def test_what_a_late_host_lacks_of_the_window_bounds_the_rate() -> None:
    """10 s at three equal hosts, of which one opened 60 ms late: the sum lacks 60 ms of 30 s."""
    late = hosts_of(f.host(THREE, "load1", opened_late_s=0.06))
    assert late.code == "late_window"
    skews = 3 * 0.0002 / 30
    for name in ("requests_per_s", "server_cpu_us_per_request"):
        extra = 0.00002 if name.startswith("server") else 0.0
        assert late.bias[name].low == pytest.approx(-(0.002 + skews + extra), rel=0.01)
        assert late.bias[name].high == pytest.approx(30 / 29.94 - 1 + skews + extra, rel=0.01)
    assert (30 - 0.06) * (1 + (late.bias["requests_per_s"].high or 0.0)) >= 30
    heavier = f.host(f.host(THREE, "load1", opened_late_s=0.06), "load1", weight=4.0)
    low = hosts_of(heavier).bias["requests_per_s"].low
    assert low == pytest.approx(-(0.004 + 0.0002 / 10), rel=0.01), "a host with 4 of 6 parts of the load"


def test_when_rows_came_is_not_made_up() -> None:
    assert kind_code(f.host(THREE, "load1", row_late_max_s=3.5)) == (NOT_CONFORMING, "late_rows")
    assert THREE.engine is not None
    row = IntervalRow(t_ms=2000, duration_ms=1000, completed=1, failed=0, in_window=True)
    engine = THREE.engine.model_copy(update={"rows": (row,)})
    assert kind_code(f.host(THREE, "load1", row_late_max_s=None, engine=engine)) == (PROVIDED, "unread")


def test_clocks() -> None:
    assert kind_code(f.host(THREE, "load1", clock=None)) == (PROVIDED, "unread")
    skewed = hosts_of(f.host(THREE, "server", clock={"skew_s": 0.0101}))
    assert (skewed.kind, skewed.code) == (BUDGET, "clock")
    assert skewed.value == pytest.approx(10.1)
    # The server's CPU is read 10.1 ms beside the window of 10 s.
    assert skewed.bias["server_cpu_us_per_request"].low == pytest.approx(-0.00101 - 0.0002 / 10, rel=0.01)
    assert not skewed.bias["requests_per_s"].counts
    far = hosts_of(f.host(THREE, "server", clock={"skew_s": 0.0101, "uncertainty_s": 0.01}))
    assert far.advice != skewed.advice
    # An offset is no error: every host counts from its own start.
    assert kind_code(f.host(THREE, "load1", clock={"offset_s": 3e6})) == (FINE, "ok")


def slower(name: str, factor: float, evidence: Evidence = THREE) -> Evidence:
    count = 80_000 // 3
    return f.host_engine(evidence, name, service_time=f.histogram(count, mean_ms=f.MEAN_MS * factor))


def test_the_host_that_differs_is_named_and_not_the_others() -> None:
    capacity, latency = slower("load2", 1.5), slower("load2", 1.5, f.part(THREE, "load", claim="latency"))
    assert kind_code(capacity) == (FINE, "ok")
    assert kind_code(latency) == (PROVIDED, "service_times")
    for evidence in (capacity, latency):
        reason = hosts_of(evidence).reason
        assert ("load1" in reason, "load2" in reason, "load3" in reason) == (False, True, False)
    assert "load2" not in hosts_of(slower("load2", 1.02)).reason


def test_of_two_that_differ_both_are_named() -> None:
    two = f.on_hosts(2)
    apart = f.host_engine(two, "load2", service_time=f.histogram(40_000, mean_ms=f.MEAN_MS * 2))
    assert "load1 and load2" in hosts_of(apart).reason


def test_few_requests_differ_by_chance() -> None:
    a, b = (decode(f.of_values(values)) for values in ([1000, 2000, 3000], [2500, 3500, 4500]))
    apart, critical = distances(cumulative([a, b]))
    assert apart == pytest.approx([2 / 3, 2 / 3])
    assert (critical > apart).all()
    assert distances(cumulative([a, a]))[0] == pytest.approx([0, 0])
    # Of three, each against the two others together.
    assert distances(cumulative([a, a, b]))[0] == pytest.approx([1 / 3, 1 / 3, 2 / 3])


def test_of_many_hosts_that_are_alike_one_is_seldom_named() -> None:
    rng = np.random.default_rng(5)
    named = 0
    for _ in range(200):
        counts = rng.multinomial(2000, np.full(200, 1 / 200), size=64).cumsum(axis=1)
        apart, critical = distances(counts.astype(float))
        named += bool((apart > critical).any())
    assert named <= 8  # each host at 1 % named some host in a third of these


def test_a_host_that_fails_more_than_the_others() -> None:
    failing = f.host_engine(THREE, "load3", failed=2000, completed=24_000)
    assert kind_code(failing) == (PROVIDED, "errors")
    assert "load3" in hosts_of(failing).reason
    few = f.host_engine(THREE, "load3", failed=1, completed=20)
    assert kind_code(few) == (FINE, "ok")


def test_how_many_hosts_share_a_load() -> None:
    assert hosts_needed([0.97, 0.5, 0.5], 0.85) == 3
    assert hosts_needed([0.95] * 4, 0.85) == 5
    assert hosts_needed([0.1], 0.85) == 1
