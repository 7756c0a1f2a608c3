"""host: the host was the same at the end of the window as at its begin."""

from __future__ import annotations

import math
from typing import Any

import pytest

from prony.evidence.host import HostRow
from prony.evidence.trial import Evidence
from prony.judge.checks.host import host
from prony.judge.finding import Finding
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS = CheckLimits()


def changed(**changes: Any) -> Finding:
    return host(f.part(f.healthy(), "host_window", **changes), LIMITS)


def clock(mhz: list[float], busy: float = 0.97) -> Evidence:
    rows = [
        HostRow(t_ms=f.OPENED_MS + 1000 * (n + 1), duration_ms=1000, mhz=one, server_cpus_busy=busy)
        for n, one in enumerate(mhz)
    ]
    edges = f.part(f.healthy(), "host_window", mhz_open=mhz[0], mhz_close=mhz[-1])
    return edges.model_copy(update={"host_rows": tuple(rows)})


def test_quiet() -> None:
    finding = host(f.healthy(), LIMITS)
    assert (finding.code, finding.bias, finding.provided) == ("ok", {}, "")


def test_a_slower_clock_bends_by_its_drop_for_its_time() -> None:
    """Three of ten seconds at 60 % of the clock: a busy server lost 12 % of its cycles."""
    finding = host(clock([3000.0] * 7 + [1800.0] * 3), LIMITS)
    assert finding.code == "slower_clock"
    assert finding.outside
    assert finding.of("requests_per_s").up == pytest.approx(-math.log(1 - 0.4 * 0.3))
    assert finding.of("requests_per_s").down == 0
    assert finding.of("p50_ms").down == finding.of("requests_per_s").up
    assert finding.of("server_cpu_us_per_request").down == finding.of("requests_per_s").up
    # The true rate, of the cycles that a level clock would have had, is inside.
    assert 0.88 * (1 + (finding.bias["requests_per_s"].high or 0)) == pytest.approx(1.0)


def test_the_rate_of_an_open_loop_is_its_schedules() -> None:
    slower = f.part(f.open_model(), "host_window", mhz_close=1500.0)
    finding = host(slower, LIMITS)
    assert finding.of("requests_per_s").size == 0
    assert finding.of("p99_ms").down > 0


@pytest.mark.parametrize(
    "changes", [{"swap_in_bytes": 4096}, {"kernel_log_lines": 2}, {"sysctls_changed": ("vm.swappiness",)}]
)
def test_what_nobody_can_bound_is_a_condition(changes: dict[str, Any]) -> None:
    finding = changed(**changes)
    assert (finding.code, finding.bias) == ("changed", {})
    assert finding.provided


def test_the_clock_of_an_idle_cpu_says_nothing() -> None:
    """Powersave at 20 % load: the clock is whatever it was when last somebody asked."""
    swinging = [3400.0, 1200.0] * 5
    assert host(clock(swinging), LIMITS).code == "slower_clock"
    idle = host(clock(swinging, busy=0.2), LIMITS)
    assert (idle.code, idle.bias) == ("unread", {})
    assert idle.provided


def test_a_clock_that_rises_is_fine() -> None:
    assert changed(mhz_close=3600.0).code == "ok"


@pytest.mark.parametrize("name", ["mhz_open", "swap_in_bytes", "kernel_log_lines", "sysctls_changed"])
def test_what_was_not_read_is_no_pass(name: str) -> None:
    finding = changed(**{name: None})
    assert finding.code == "unread"
    assert bool(finding.provided) is (name == "mhz_open"), "counters that stay zero for years are named only"


@pytest.mark.parametrize(("faults", "code"), [(None, "ok"), (9, "ok"), (10, "short_of_memory")])
def test_pages_that_the_server_had_to_read_are_a_condition_from_one_a_second(
    faults: int | None, code: str
) -> None:
    finding = host(f.part(f.healthy(), "server_window", major_faults=faults), LIMITS)
    assert (finding.code, finding.bias, finding.outside) == (code, {}, False)
    assert bool(finding.provided) is (code != "ok")


def test_waits_for_memory_bend_as_a_server_that_stood_still() -> None:
    """1 of 10 s on one CPU that served for 9.6 s."""
    finding = changed(memory_stall_s=1.0)
    assert (finding.code, finding.outside, finding.provided) == ("short_of_memory", False, "")
    assert finding.of("requests_per_s").up == pytest.approx(math.log(1 + 0.1 / 0.96))
    assert finding.of("server_cpu_us_per_request").down == pytest.approx(-math.log(1 - 0.1 / 0.96))
    assert changed(memory_stall_s=0.001).code == "ok", "0.01 %"
    assert changed(memory_stall_s=None).code == "ok", "a kernel without PSI"
