"""memory: a leak is told from a heap that fills, and a heap that is never collected is named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from prony.evidence.trial import Evidence
from prony.judge.checks.memory import MemoryLimits, memory
from prony.judge.finding import Finding, Status
from tests.judge import factory as f

LIMITS = MemoryLimits()


def native(rss_mib: Sequence[float], duration_s: float = f.WINDOW_S) -> Evidence:
    base = f.part(f.healthy(), "server_window", jvm_open=None, jvm_close=None)
    return f.window(base, duration_s=duration_s).model_copy(update={"host_rows": f.memory_rows(rss_mib)})


def judged(evidence: Evidence) -> Finding:
    found = memory(evidence, LIMITS)
    assert found is not None
    return found


def test_a_leak_without_a_slowdown() -> None:
    found = judged(native([100 + 10 * second for second in range(10)]))
    assert found.status is Status.SUSPECT
    assert "from 100 to 190 MiB: 540 MiB/min" in found.reason


@pytest.mark.parametrize(
    "rss_mib",
    [
        [100, 140, 180, 190, 190, 190, 190, 190, 190, 190],
        [100, 100, 100, 100, 100, 100, 100, 100, 150, 150],
        [100, 150, 100, 150, 100, 150, 100, 150, 100, 150],
        [100 + second / 2 for second in range(10)],
    ],
    ids=["levels off", "one step", "a sawtooth", "too little"],
)
def test_what_is_no_leak_is_left_alone(rss_mib: Sequence[float]) -> None:
    assert judged(native(rss_mib)).status is Status.VALID


def test_a_slow_leak_shows_in_a_long_window() -> None:
    slow = [100 + second / 10 for second in range(120)]
    assert judged(native(slow[:10])).status is Status.VALID
    assert judged(native(slow, duration_s=120.0)).status is Status.SUSPECT


def test_a_jvm_may_touch_its_heap() -> None:
    rows = f.memory_rows([300 + 60 * second for second in range(10)])
    found = judged(f.healthy().model_copy(update={"host_rows": rows}))
    assert found.status is Status.VALID
    assert "within its heap" in found.reason
    beyond = f.memory_rows([1000 + 60 * second for second in range(10)])
    assert judged(f.healthy().model_copy(update={"host_rows": beyond})).status is Status.SUSPECT


def test_few_readings_are_unknown_and_a_protocol_from_the_start_is_left_out() -> None:
    assert judged(native([100, 200])).status is Status.UNKNOWN
    protocol = f.part(native([100 + 10 * second for second in range(10)]), "load", claim="protocol")
    assert memory(protocol, LIMITS) is None
