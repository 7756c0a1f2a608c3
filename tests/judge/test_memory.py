"""memory: a leak is told from a heap that fills, and a heap that is never collected is named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from prony.evidence.trial import Evidence
from prony.judge.checks.memory import MemoryLimits, memory
from prony.judge.finding import Finding
from tests.judge import factory as f

LIMITS = MemoryLimits()


def native(rss_mib: Sequence[float], duration_s: float = f.WINDOW_S) -> Evidence:
    base = f.part(f.part(f.healthy(), "server", runtime="native"), "server_window", jvm_open=None)
    base = f.part(base, "server_window", jvm_close=None)
    return f.window(base, duration_s=duration_s).model_copy(update={"host_rows": f.memory_rows(rss_mib)})


def judged(evidence: Evidence) -> Finding:
    found = memory(evidence, LIMITS)
    assert found is not None
    return found


def test_a_leak_without_a_slowdown() -> None:
    found = judged(native([100 + 10 * second for second in range(10)]))
    assert found.code == "growing"
    assert found.value == pytest.approx(0.9)
    assert found.provided
    assert not found.bias


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
def test_what_is_no_leak_raises_nothing(rss_mib: Sequence[float]) -> None:
    assert judged(native(rss_mib)).code == "ok"


def test_a_slow_leak_shows_in_a_long_window() -> None:
    slow = [100 + second / 10 for second in range(120)]
    assert judged(native(slow[:10])).code == "ok"
    assert judged(native(slow, duration_s=120.0)).code == "growing"


def test_a_jvm_may_touch_its_heap() -> None:
    """Of 1 GiB at most it has committed 840 MiB at the end, with 70 MiB outside the heap."""
    server = f.healthy().server_window
    assert server is not None
    assert server.jvm_close is not None
    closed = server.jvm_close.model_copy(update={"heap_committed_bytes": 840 * f.MIB})
    jvm = f.part(f.healthy(), "server_window", jvm_close=closed)
    found = judged(jvm.model_copy(update={"host_rows": f.memory_rows(range(300, 900, 60))}))
    assert found.code == "ok"
    beyond = f.memory_rows(range(1000, 1600, 60))
    assert judged(jvm.model_copy(update={"host_rows": beyond})).code == "growing"


def test_a_native_leak_shows_under_a_large_heap_that_is_not_used() -> None:
    """326 MiB committed of 1 GiB: what goes from 300 to 840 MiB is not the heap."""
    rows = f.memory_rows(range(300, 900, 60))
    assert judged(f.healthy().model_copy(update={"host_rows": rows})).code == "growing"


def test_a_foreign_process_may_be_a_heap() -> None:
    leak = native([100 + 10 * second for second in range(10)])
    found = judged(f.part(leak, "server", owned=False, runtime=""))
    assert found.code == "unread"
    assert found.provided
    assert judged(f.part(leak, "server", runtime="jvm")).code == "unread"
    assert judged(f.part(leak, "server", owned=False, runtime="java")).code == "unread"
    assert judged(f.part(leak, "server", owned=False, runtime="nginx")).code == "growing"


def test_few_readings_say_nothing_and_a_protocol_from_the_start_is_left_out() -> None:
    assert judged(native([100, 200])).code == "unread"
    protocol = f.part(native([100 + 10 * second for second in range(10)]), "load", claim="protocol")
    assert memory(protocol, LIMITS) is None


def test_a_heap_that_fills_without_a_collection_is_a_condition() -> None:
    server = f.healthy().server_window
    assert server is not None
    assert server.jvm_open is not None
    assert server.jvm_close is not None
    closed = server.jvm_close.model_copy(
        update={"gc_count": server.jvm_open.gc_count, "heap_used_bytes": 300 * f.MIB}
    )
    found = judged(f.part(f.healthy(), "server_window", jvm_close=closed))
    assert found.code == "not_collected"
    assert found.provided
