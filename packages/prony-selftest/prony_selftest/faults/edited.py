"""Faults that cannot be staged, edited into the evidence of a real trial."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from prony.evidence.host import CpuUse
from prony.evidence.server import JvmSnapshot
from prony.evidence.trial import Evidence

FULL_MHZ, SLOW_MHZ = 3000.0, 2100.0


def clock(evidence: Evidence, level: Callable[[float], float]) -> Evidence:
    """Sets the clock (MHz) of busy server CPUs at each share (0 to 1) of the window."""
    window = evidence.engine.window if evidence.engine is not None else None
    if window is None or evidence.host_window is None:
        return evidence

    def mhz(t_ms: float) -> float:
        return level(min(1.0, max(0.0, (t_ms - window.opened_ms) / (window.duration_s * 1000))))

    rows = tuple(
        row.model_copy(update={"mhz": mhz(row.t_ms), "server_cpus_busy": 1.0}) for row in evidence.host_rows
    )
    edges = {"mhz_open": level(0.0), "mhz_close": level(1.0)}
    host = evidence.host_window.model_copy(update=edges)
    return evidence.model_copy(update={"host_rows": rows, "host_window": host})


def _dip(share: float) -> float:
    return SLOW_MHZ if 0.3 < share < 0.9 else FULL_MHZ


clock_dips = partial(clock, level=_dip)
"""Low for more than half of the window, full at both edges."""
clock_level = partial(clock, level=lambda _: FULL_MHZ)
clock_low = partial(clock, level=lambda _: SLOW_MHZ)


def quota_unreadable(evidence: Evidence) -> Evidence:
    """Hides the control group's counters, as some containers do."""
    window = evidence.server_window
    changed = None if window is None else window.model_copy(update={"throttle": None})
    return evidence.model_copy(update={"server_window": changed})


def sibling(evidence: Evidence, busy: float) -> Evidence:
    """As if a sibling of the server's CPU, of neither side, were so busy, and nothing else disturbed it."""
    host = evidence.host_window
    if host is None:
        return evidence
    changes = {
        "siblings": (CpuUse(cpu=99, busy=busy, steal=0.0),),
        "others_on_server_cpus": 0.0,
        "cpus": tuple(cpu.model_copy(update={"irq": 0.0, "steal": 0.0}) for cpu in host.cpus),
    }
    return evidence.model_copy(update={"host_window": host.model_copy(update=changes)})


sibling_busy = partial(sibling, busy=0.8)
sibling_idle = partial(sibling, busy=0.0)

MIB = 2**20


def heap(evidence: Evidence, collections: int) -> Evidence:
    """A JVM with a heap of 1 GiB that fills 200 MiB of it in the window, with this many collections."""
    window = evidence.server_window
    if window is None:
        return evidence

    def at(seconds: float, used_mib: int, count: int) -> JvmSnapshot:
        return JvmSnapshot(
            t_monotonic_s=seconds,
            uptime_s=seconds,
            heap_used_bytes=used_mib * MIB,
            heap_committed_bytes=512 * MIB,
            heap_max_bytes=1024 * MIB,
            non_heap_used_bytes=70 * MIB,
            classes_loaded=9000,
            classes_loaded_total=9000,
            threads_live=30,
            threads_peak=30,
            gc_count=count,
            gc_time_s=0.0,
            jit_time_s=1.0,
        )

    edges = {"jvm_open": at(30, 100, 7), "jvm_close": at(30 + window.wall_s, 300, 7 + collections)}
    return evidence.model_copy(update={"server_window": window.model_copy(update=edges)})


heap_uncollected = partial(heap, collections=0)
heap_collected = partial(heap, collections=3)
