"""async-profiler on a JVM whose threads have little CPU time each: beside other load they have less."""

from __future__ import annotations

import time

import pytest

from prony.server import proc
from tests.explain.burning import java, profiled, share_of, the_async_profiler


@pytest.mark.rarely
def test_threads_that_have_little_cpu_time_each_are_seen() -> None:
    """100 threads with some ms of CPU time each in a slice: of a profile per slice few were seen."""
    with java("100") as pid:
        time.sleep(1.0)
        profiler = the_async_profiler(pid)
        first = proc.sample([pid])
        found = profiled(profiler, slices=10, slice_s=0.5, longest_s=0.002)
        last = proc.sample([pid])
    assert found.cpu is not None
    assert first is not None
    assert last is not None
    assert found.interval_s is not None
    assert found.interval_s == pytest.approx(0.002)
    used_per_s = (last.cpu_s - first.cpu_s) / (last.t_monotonic_s - first.t_monotonic_s)
    profiled_s = sum(one.end_s - one.start_s for one in found.cpu.slices)
    seen = found.cpu.total * found.interval_s / (used_per_s * profiled_s)
    assert 0.5 < seen < 1.2
    assert share_of(found.cpu, "Burns.burnsHere_[") > 0.5
    assert len(found.cpu.slices) >= 4
