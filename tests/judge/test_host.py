"""host: the host was the same at the end of the window as at its begin."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.host import HostRow
from prony.evidence.trial import Evidence
from prony.judge.checks.host import HostLimits, host
from prony.judge.finding import Finding, Kind
from tests.judge import factory as f


def judged(evidence: Evidence) -> Finding:
    return host(evidence, HostLimits())


def changed(**changes: Any) -> Finding:
    return judged(f.part(f.healthy(), "host_window", **changes))


def clocked(*mhz: float, busy: float = 0.97) -> Evidence:
    """A second of the window each."""
    rows = [
        HostRow(t_ms=f.OPENED_MS + 1000 * (n + 1), duration_ms=1000, mhz=one, server_cpus_busy=busy)
        for n, one in enumerate(mhz)
    ]
    return f.healthy().model_copy(update={"host_rows": tuple(rows)})


class TestClock:
    def test_quiet(self) -> None:
        assert (judged(f.healthy()).kind, judged(f.healthy()).code) == (Kind.FINE, "ok")
        assert changed(mhz_close=3600.0).kind is Kind.FINE, "it may rise"

    def test_a_lower_clock_at_the_end_may_have_been_lower_all_along(self) -> None:
        """2,340 of 2,600 MHz: of the CPU time that was used 10 % were lost."""
        found = changed(mhz_close=2340.0)
        assert (found.kind, found.code, found.outside) == (Kind.BUDGET, "clock", True)
        assert found.value == pytest.approx(0.1)
        assert found.of("requests_per_s").high == pytest.approx(0.096 / 0.904)
        assert found.of("server_cpu_us_per_request").low == pytest.approx(-0.1)

    def test_for_a_part_of_the_window(self) -> None:
        """2,080 of 2,600 MHz for four of ten seconds: 8 % of the CPU time."""
        found = judged(clocked(*[2600.0] * 6, *[2080.0] * 4))
        assert found.value == pytest.approx(0.08)
        assert found.of("server_cpu_us_per_request").low == pytest.approx(-0.08)
        assert judged(clocked(*[2600.0] * 9, 2080.0)).kind is Kind.FINE, "one reading between two requests"

    def test_the_clock_of_an_idle_cpu_says_nothing(self) -> None:
        """Powersave at 20 % load: the clock is whatever it was when last somebody asked."""
        found = judged(clocked(*[3400.0, 1200.0] * 5, busy=0.2))
        assert (found.kind, found.code, found.bias) == (Kind.PROVIDED, "unread", {})


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"swap_in_bytes": 4096}, "swap"),
        ({"kernel_log_lines": 2}, "kernel_log"),
        ({"sysctls_changed": ("vm.swappiness",)}, "settings"),
        ({"mhz_open": None}, "unread"),
        ({"swap_in_bytes": None}, "unread"),
        ({"kernel_log_lines": None}, "unread"),
        ({"sysctls_changed": None}, "unread"),
    ],
)
def test_what_nothing_bounds_is_a_condition(changes: dict[str, Any], code: str) -> None:
    found = changed(**changes)
    assert (found.kind, found.code, bool(found.provided)) == (Kind.PROVIDED, code, True)


def test_what_changed_comes_before_what_could_not_be_read() -> None:
    found = changed(mhz_open=None, swap_in_bytes=4096)
    assert found.code == "swap"
    assert found.provided.count(" and ") == 1


def test_of_several_hosts_each_is_looked_at_but_only_the_servers_clock_counts() -> None:
    three = f.on_hosts(3)
    swapping = judged(f.host(three, "load1", host_window={"swap_in_bytes": 2**21}))
    assert (swapping.code, swapping.reason) == ("swap", "load1: 2 MiB swapped in")
    assert judged(f.host(three, "load1", host_window={"mhz_close": 2000.0})).kind is Kind.FINE
    assert judged(f.host(three, "server", host_window={"mhz_close": 2000.0})).code == "clock"
    gone = tuple(one.model_copy(update={"lost": "no sign of life"}) for one in three.hosts)
    lost = three.model_copy(update={"hosts": gone})
    assert judged(lost).code == "unread"
    assert judged(f.healthy().model_copy(update={"host_window": None})).code == "unread"
