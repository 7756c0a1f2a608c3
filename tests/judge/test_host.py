"""host: the host was the same at the end of the window as at its begin."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.host import HostRow
from prony.evidence.trial import Evidence
from prony.judge.checks.host import host
from prony.judge.finding import Status
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS = CheckLimits()


class TestHost:
    def status(self, **changes: Any) -> Status:
        return host(f.part(f.healthy(), "host_window", **changes), LIMITS).status

    def test_quiet(self) -> None:
        assert host(f.healthy(), LIMITS).status is Status.VALID

    @pytest.mark.parametrize(
        "changes",
        [
            {"mhz_close": 2000.0},
            {"swap_in_bytes": 4096},
            {"kernel_log_lines": 2},
            {"sysctls_changed": ("vm.swappiness",)},
        ],
    )
    def test_fires(self, changes: dict[str, Any]) -> None:
        assert self.status(**changes) is Status.SUSPECT

    def test_the_clock_of_an_idle_cpu_says_nothing(self) -> None:
        """Powersave at 20 % load: the clock is whatever it was when last somebody asked."""

        def at(busy: float) -> Evidence:
            clock = [3400.0, 1200.0] * 5
            rows = [
                HostRow(t_ms=f.OPENED_MS + 1000 * (n + 1), duration_ms=1000, mhz=mhz, server_cpus_busy=busy)
                for n, mhz in enumerate(clock)
            ]
            edges = f.part(f.healthy(), "host_window", mhz_close=1200.0)
            return edges.model_copy(update={"host_rows": tuple(rows)})

        assert host(at(0.97), LIMITS).status is Status.SUSPECT
        idle = host(at(0.2), LIMITS)
        assert idle.status is Status.UNKNOWN
        assert "not readable: CPU clock under load" in idle.reason

    def test_a_clock_that_rises_is_fine(self) -> None:
        assert self.status(mhz_close=3600.0) is Status.VALID

    @pytest.mark.parametrize("name", ["mhz_open", "swap_in_bytes", "kernel_log_lines", "sysctls_changed"])
    def test_unread_is_unknown(self, name: str) -> None:
        assert self.status(**{name: None}) is Status.UNKNOWN
