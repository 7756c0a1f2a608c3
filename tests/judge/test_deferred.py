"""The check `deferred`: work after the load that belongs to its requests."""

from __future__ import annotations

import math
from typing import Any

import pytest

from prony.evidence.trial import AfterLoad
from prony.judge.checks.deferred import deferred
from prony.judge.finding import Finding, Kind
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

CPU_S = 9.6
"""Of the healthy trial's server in its window."""


def found(cpu_s: float, written_mib: float | None = 0.0, *, idle: bool = True, **window: Any) -> Finding:
    disk = None if written_mib is None else int(written_mib * f.MIB)
    after = AfterLoad(wall_s=0.5, cpu_s=cpu_s, disk_bytes=disk, idle=idle)
    evidence = f.part(f.healthy(), "server_window", **window).model_copy(update={"after_load": after})
    return f.present(deferred(evidence, CheckLimits()))


def test_cpu_time_after_the_load_may_be_the_windows() -> None:
    late = found(0.1 * CPU_S)
    assert f.kind_and_code(late) == (Kind.BUDGET, "put_off")
    assert late.of("requests_per_s").down == pytest.approx(math.log1p(0.1))
    assert late.of("requests_per_s").up == 0
    assert late.of("server_cpu_us_per_request").up == pytest.approx(math.log1p(0.1))
    assert late.of("p99_ms").up == pytest.approx(math.log1p(0.1))


def test_closing_connections_is_no_work_of_requests() -> None:
    assert f.kind_code(found(0.004 * CPU_S)) == (Kind.FINE, "ok")


def test_requests_in_flight_at_the_end_are_answered_after_it() -> None:
    each_s = CPU_S / (f.RATE * f.WINDOW_S)
    after = AfterLoad(wall_s=0.5, cpu_s=1000 * each_s, idle=True)
    evidence = f.healthy().model_copy(update={"after_load": after})
    assert f.present(deferred(f.totals(evidence, abandoned=500), CheckLimits())).code == "ok"
    more = f.present(deferred(f.totals(evidence, abandoned=10), CheckLimits()))
    assert more.code == "put_off"
    assert more.value == pytest.approx(980 / (f.RATE * f.WINDOW_S))


def test_a_server_that_is_still_busy_has_no_bound() -> None:
    assert math.isinf(found(CPU_S, idle=False).of("requests_per_s").down)


def test_files_written_after_the_load_are_a_condition() -> None:
    assert f.kind_code(found(0.0, 20.0)) == (Kind.PROVIDED, "written")
    assert f.kind_code(found(0.0, 20.0, disk_bytes=300 * f.MIB)) == (Kind.FINE, "ok")
    assert f.kind_code(found(0.0, 0.5)) == (Kind.FINE, "ok")
    assert f.kind_code(found(0.0, None)) == (Kind.FINE, "ok")


def test_a_server_that_was_not_watched_has_no_finding() -> None:
    assert deferred(f.healthy(), CheckLimits()) is None
