"""The host between two moments, from the samples around them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from prony.evidence.host import CpuUse, HostWindow, TcpCounts
from prony.host.hardware import changed
from prony.host.net_counters import between, rise, summed
from prony.host.others import Census, OthersUse, others_between, share_of_others
from prony.host.proc import TICKS_PER_S, CpuTicks

NEAR_S = 3.0
"""Largest distance of a mark from the edge."""

Sample = tuple[float, float]
"""(CLOCK_MONOTONIC seconds, value of the counter)."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every second; cumulative."""

    t_monotonic_s: float
    cpus: dict[int, CpuTicks]
    own_server_s: float
    own_client_s: float
    swapped_in_bytes: int | None
    kernel_lines: int | None
    mhz: float | None
    sockets: dict[str, int] | None
    marked: bool = False
    packets: dict[int, int] | None = None
    """Read at the edges of turns only, as `tcp`."""
    tcp: TcpCounts | None = None
    memory_stall_s: float | None = None


@dataclass(frozen=True, slots=True)
class WindowEdge:
    """Around a window."""

    t_monotonic_s: float
    sysctls: dict[str, str]
    sockets: dict[str, int]
    mhz: float | None
    census: Census
    packets: dict[int, int] | None = None
    tcp: TcpCounts | None = None


def host_window(
    snapshots: list[Snapshot],
    marks: list[WindowEdge],
    own: Collection[tuple[int, int]],
    *,
    open_s: float,
    close_s: float,
    server_cpus: frozenset[int],
    client_cpus: frozenset[int],
    irq_accounted: bool | None,
    siblings: frozenset[int] = frozenset(),
) -> HostWindow:
    """The host between two moments of CLOCK_MONOTONIC; None where not sampled around it. Snapshots and marks
    ascend in time. `own`: (pid, start tick) of Prony's processes.
    """
    opened = next((mark for mark in reversed(marks) if mark.t_monotonic_s <= open_s), None)
    closed = next((mark for mark in marks if mark.t_monotonic_s >= close_s), None)
    others = None
    if opened is not None and closed is not None:
        others = others_between(opened.census, closed.census, own)
    near_open = opened if opened is not None and open_s - opened.t_monotonic_s <= NEAR_S else None
    near_close = closed if closed is not None and closed.t_monotonic_s - close_s <= NEAR_S else None
    packets_open, packets_close = (None if mark is None else mark.packets for mark in (near_open, near_close))
    at_open, at_close = _nearest(snapshots, open_s), _nearest(snapshots, close_s)
    own_server = [(s.t_monotonic_s, s.own_server_s) for s in snapshots]
    own_client = [(s.t_monotonic_s, s.own_client_s) for s in snapshots]
    swapped = [(s.t_monotonic_s, s.swapped_in_bytes) for s in snapshots]
    stalled = [(s.t_monotonic_s, s.memory_stall_s) for s in snapshots if s.memory_stall_s is not None]
    log_lines = [(s.t_monotonic_s, s.kernel_lines) for s in snapshots]
    return HostWindow(
        wall_s=close_s - open_s,
        cpus=tuple(
            use.model_copy(update={"packets": rise(packets_open, packets_close, use.cpu)})
            for use in _cpu_uses(snapshots, server_cpus | client_cpus, open_s, close_s)
        ),
        others_on_server_cpus=_others(
            snapshots, server_cpus, own_server, others, irq_accounted, open_s, close_s
        ),
        others_on_client_cpus=_others(
            snapshots, client_cpus, own_client, others, irq_accounted, open_s, close_s
        ),
        busiest_other=None if others is None else others.busiest,
        sockets_open=_sockets(near_open, at_open),
        sockets_close=_sockets(near_close, at_close),
        mhz_open=_mhz(near_open, at_open),
        mhz_close=_mhz(near_close, at_close),
        swap_in_bytes=_rise(swapped, open_s, close_s),
        memory_stall_s=difference(stalled, open_s, close_s),
        siblings=_cpu_uses(snapshots, siblings, open_s, close_s),
        kernel_log_lines=_rise_of_steps(log_lines, open_s, close_s),
        sysctls_changed=None if opened is None or closed is None else changed(opened.sysctls, closed.sysctls),
        tcp=between(*(None if mark is None else mark.tcp for mark in (near_open, near_close))),
    )


def over_turns(whole: HostWindow, turns: Sequence[tuple[HostWindow, Snapshot, Snapshot]]) -> HostWindow:
    """Merges the turns of a window, each with the snapshots at its edges. Readings around a window come from
    `whole`.
    """
    wall_s = sum(turn.wall_s for turn, _, _ in turns)

    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        sums = (value * turn.wall_s for value, (turn, _, _) in zip(known, turns, strict=False))
        return sum(sums) / wall_s if len(known) == len(turns) and wall_s > 0 else None

    cpus = []
    for cpu in (use.cpu for use in whole.cpus):
        uses = [use for turn, _, _ in turns for use in turn.cpus if use.cpu == cpu]
        rises = [rise(opened.packets, closed.packets, cpu) for _, opened, closed in turns]
        packets = [risen for risen in rises if risen is not None]
        if len(uses) == len(turns):
            shares = {name: mean([getattr(use, name) for use in uses]) for name in ("busy", "steal", "irq")}
            known = sum(packets) if len(packets) == len(turns) else None
            cpus.append(CpuUse.model_validate({"cpu": cpu, "packets": known, **shares}))
    others = ("others_on_server_cpus", "others_on_client_cpus")
    changes = {name: mean([getattr(turn, name) for turn, _, _ in turns]) for name in others}
    tcp = summed([between(opened.tcp, closed.tcp) for _, opened, closed in turns])
    return whole.model_copy(update={"wall_s": wall_s, "cpus": tuple(cpus), "tcp": tcp, **changes})


def _others(
    snapshots: list[Snapshot],
    cpus: frozenset[int],
    own: list[tuple[float, float]],
    others: OthersUse | None,
    irq_accounted: bool | None,
    open_s: float,
    close_s: float,
) -> float | None:
    busy_s = irq_s = 0.0
    for cpu in cpus:
        readings = [(s.t_monotonic_s, s.cpus[cpu]) for s in snapshots if cpu in s.cpus]
        busy = difference([(t, ticks.busy) for t, ticks in readings], open_s, close_s)
        irq = difference([(t, ticks.irq) for t, ticks in readings], open_s, close_s)
        if busy is None or irq is None:
            return None
        busy_s += busy / TICKS_PER_S
        irq_s += irq / TICKS_PER_S
    own_s = difference(own, open_s, close_s)
    if own_s is None:
        return None
    return share_of_others(
        busy_s=busy_s,
        irq_s=irq_s,
        own_s=own_s,
        others=others,
        irq_accounted=irq_accounted,
        capacity_s=len(cpus) * (close_s - open_s),
    )


def cpu_use(cpu: int, before: dict[int, CpuTicks], after: dict[int, CpuTicks]) -> CpuUse | None:
    if cpu not in before or cpu not in after:
        return None
    old, new = before[cpu], after[cpu]
    total = new.total - old.total
    if total <= 0:
        return None
    return CpuUse(
        cpu=cpu,
        busy=(new.busy - old.busy) / total,
        steal=(new.steal - old.steal) / total,
        irq=(new.irq - old.irq) / total,
    )


def mean_busy(cpus: Collection[int], before: dict[int, CpuTicks], after: dict[int, CpuTicks]) -> float | None:
    uses = [cpu_use(cpu, before, after) for cpu in cpus]
    shares = [use.busy for use in uses if use is not None]
    return sum(shares) / len(shares) if shares and len(shares) == len(uses) else None


def _cpu_uses(
    snapshots: list[Snapshot], cpus: Collection[int], open_s: float, close_s: float
) -> tuple[CpuUse, ...]:
    uses = []
    for cpu in sorted(cpus):
        readings = [(s.t_monotonic_s, s.cpus[cpu]) for s in snapshots if cpu in s.cpus]
        rises = [
            difference([(t, float(getattr(ticks, name))) for t, ticks in readings], open_s, close_s)
            for name in ("total", "busy", "steal", "irq")
        ]
        total, busy, steal, irq = rises
        if total is None or busy is None or steal is None or irq is None or total <= 0:
            continue
        uses.append(CpuUse(cpu=cpu, busy=busy / total, steal=steal / total, irq=irq / total))
    return tuple(uses)


def _rise(samples: list[tuple[float, int | None]], open_s: float, close_s: float) -> int | None:
    values_ = [(t, float(value)) for t, value in samples if value is not None]
    rise = difference(values_, open_s, close_s)
    return None if rise is None else round(rise)


def _rise_of_steps(samples: list[tuple[float, int | None]], open_s: float, close_s: float) -> int | None:
    """For rare events: the readings just outside the window count, so that none within it is missed."""
    if any(value is None for _, value in samples):
        return None
    steps = [(t, value) for t, value in samples if value is not None]
    before = [value for t, value in steps if t <= open_s]
    after = [value for t, value in steps if t >= close_s]
    return after[0] - before[-1] if before and after else None


def _nearest(snapshots: list[Snapshot], t_s: float) -> Snapshot | None:
    if not snapshots:
        return None
    nearest = min(snapshots, key=lambda snapshot: abs(snapshot.t_monotonic_s - t_s))
    return nearest if abs(nearest.t_monotonic_s - t_s) <= NEAR_S else None


def _sockets(mark: WindowEdge | None, snapshot: Snapshot | None) -> dict[str, int]:
    if mark is not None and mark.sockets:
        return mark.sockets
    return (snapshot.sockets or {}) if snapshot is not None else {}


def _mhz(mark: WindowEdge | None, snapshot: Snapshot | None) -> float | None:
    if mark is not None and mark.mhz is not None:
        return mark.mhz
    return snapshot.mhz if snapshot is not None else None


def interpolate(samples: Sequence[Sample], t_s: float) -> float | None:
    """The value at `t_s`, linear; None outside of `samples`, which ascend in time."""
    times = [sample[0] for sample in samples]
    after = bisect_left(times, t_s)
    if after == len(samples):
        return None
    if samples[after][0] == t_s:
        return samples[after][1]
    if after == 0:
        return None
    (t0, v0), (t1, v1) = samples[after - 1], samples[after]
    return v0 + (v1 - v0) * (t_s - t0) / (t1 - t0)


def difference(samples: Sequence[Sample], open_s: float, close_s: float) -> float | None:
    """The increase between two moments; None when either is outside of the readings."""
    before, after = interpolate(samples, open_s), interpolate(samples, close_s)
    return None if before is None or after is None else after - before
