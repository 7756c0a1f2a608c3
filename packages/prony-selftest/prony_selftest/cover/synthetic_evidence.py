"""Evidence of a trial in a simulated world: rows, histograms and counters of engine and host."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from prony.evidence.counts import EngineThread, Gap, ResponseCount
from prony.evidence.engine import Counters, EngineReport, Histogram, IntervalRow, Ready, ReadyThread, Window
from prony.evidence.host import CpuPartition, CpuUse, HostWindow, Limits, PortRange, TcpCounts
from prony.evidence.server import CgroupThrottle, Probe, ServerIdentity, ServerWindow
from prony.evidence.trial import Calibration, Evidence, LoadFacts, WarmUp
from prony.load.histograms import Counts, encoded
from prony_selftest.cover.queue import Requests, World
from prony_selftest.worlds import Floats

BODY = 64
WARM_S, OPENS_S = 10, 10.3
MIB = 2**20
LONGEST_NS = 3_600_000_000_000
SHORTEST_GAP_S = 0.02
SEGMENTS_PER_REQUEST = 4
KERNEL_US = 20
"""The client's own CPU per request."""
WAKE_UP_NS = 20_000
HALF, UNIT = 10, 11
"""Buckets for three significant digits: 2^10 of equal width per power of two."""


def histogram(seconds: Floats) -> Histogram:
    """Histogram of these times, as recorded by the engine."""
    ns = np.maximum(1, np.rint(seconds * 1e9)).astype(np.int64)
    shift = np.maximum(0, np.floor(np.log2(ns)).astype(np.int64) + 1 - UNIT)
    places, counts = np.unique((shift << HALF) + (ns >> shift), return_counts=True)
    return Histogram(
        count=int(ns.size),
        mean_ns=float(ns.mean()) if ns.size else None,
        min_ns=int(ns.min()) if ns.size else None,
        max_ns=int(ns.max()) if ns.size else None,
        v2=encoded(Counts(3, 1, LONGEST_NS, places, counts.astype(np.int64))),
    )


def rows_of(world: World, made: Requests, seconds: int) -> tuple[IntervalRow, ...]:
    """A row per second."""
    rows = []
    edges = np.searchsorted(made.done, np.arange(seconds + 1))
    took, late = made.done - made.sent, made.done - made.due
    wrong = np.histogram(made.done[made.failed], np.arange(seconds + 1))[0].tolist()
    is_open = world.is_open
    for second, (first, last) in enumerate(pairwise(edges)):
        mine = slice(int(first), int(last))
        ns, count = took[mine] * 1e9, int(last - first)
        at = np.percentile(ns, (50, 90, 99)) if count else None
        of_due = np.percentile(late[mine] * 1e9, (50, 99)) if count and is_open else None
        sent = int(np.sum((made.sent >= second) & (made.sent < second + 1)))
        rows.append(
            IntervalRow(
                t_ms=(second + 1) * 1000.0,
                duration_ms=1000.0,
                completed=count,
                failed=wrong[second],
                users=None if is_open else world.users,
                in_flight=world.users,
                connections_open=world.users,
                mean_ns=float(ns.mean()) if count else None,
                p50_ns=None if at is None else int(at[0]),
                p90_ns=None if at is None else int(at[1]),
                p99_ns=None if at is None else int(at[2]),
                max_ns=int(ns.max()) if count else None,
                offered=int(np.sum((made.due >= second) & (made.due < second + 1))) if is_open else None,
                sent=sent if is_open else None,
                latency_p50_ns=None if of_due is None else int(of_due[0]),
                latency_p99_ns=None if of_due is None else int(of_due[1]),
            )
        )
    return tuple(rows)


def evidence(world: World, made: Requests, window_s: float) -> Evidence:
    """Evidence of a run: WARM_S, the window, and half a second after it."""
    closes_s, others = OPENS_S + window_s, _share(made, False, window_s)
    inside = (made.done >= OPENS_S) & (made.done < closes_s)
    requests, failed = int(inside.sum()), int(made.failed[inside].sum())
    right = requests - failed
    took, is_open = (made.done - made.sent)[inside], world.is_open
    cpu_s = float(made.cpu_s[inside].sum())
    in_requests_s = _within(made, OPENS_S, closes_s)
    users_s, end_s = world.users * window_s, float(made.done.max())
    paused_s = made.paused_s * window_s / end_s
    thinking_s = max(0.0, users_s - in_requests_s - paused_s)
    age_open_s, age_close_s = (_age(made, at) for at in (OPENS_S, closes_s))
    gaps = _gaps(made, OPENS_S, closes_s)
    lag = made.sent - made.due
    window = Window(
        **_counted(requests, right, failed),
        connections_opened=0,
        connections_closed_by_client=0,
        opened_ms=OPENS_S * 1000,
        duration_s=window_s,
        service_time=histogram(took),
        latency=histogram((made.done - made.due)[inside]) if is_open else None,
        send_lag=histogram(lag[inside]) if is_open else None,
        offered=int(np.sum((made.due >= OPENS_S) & (made.due < closes_s))) if is_open else None,
        due_unsent=0 if is_open else None,
        blocked=0 if is_open else None,
        service_time_sum_s=float(took.sum()),
        lost_time_sum_s=0.0,
        in_flight_integral_s=in_requests_s,
        in_flight_age_open_s=age_open_s,
        in_flight_age_close_s=age_close_s,
        clipped_cycle_s=None if is_open else users_s - paused_s,
        clipped_connect_s=None if is_open else 0.0,
        clipped_turnaround_s=None if is_open else paused_s,
        clipped_back_off_s=None if is_open else 0.0,
        turnaround_sum_s=paused_s,
        turnaround_count=requests,
        users=None if is_open else world.users,
        users_integral_s=None if is_open else users_s,
        think_drawn_sum_s=thinking_s if world.think_ms else None,
        think_actual_sum_s=thinking_s if world.think_ms else None,
        think_count=requests if world.think_ms else None,
        gaps=gaps[:10],
        gaps_total=len(gaps),
        threads=(_thread(made.lay_s[inside], requests, window_s),),
    )
    totals = len(made.done)
    return Evidence(
        load=_load(world, WARM_S + window_s),
        engine=EngineReport(
            ready=Ready(
                version="0.1.0",
                driver="io_uring",
                pid=100,
                threads=(ReadyThread(cpu=1, pinned=True),),
                started_unix_ns=0,
                started_monotonic_ns=0,
            ),
            rows=rows_of(world, made, int(WARM_S + window_s)),
            reason="stopped",
            elapsed_ms=(closes_s + 0.5) * 1000,
            totals=Counters(
                **_counted(totals, totals - int(made.failed.sum()), int(made.failed.sum())),
                connections_opened=world.users,
                connections_closed_by_client=0,
                users=None if is_open else world.users,
                due_unsent=0 if is_open else None,
            ),
            window=window,
        ),
        server=ServerIdentity(
            name="made-up", runtime="native", pid=200, port=8080, owns_port=True, descriptor_limit_soft=20_000
        ),
        server_window=ServerWindow(
            wall_s=window_s,
            granted_cpus=1,
            cpu_user_s=0.8 * cpu_s,
            cpu_system_s=0.2 * cpu_s,
            peak_rss_bytes=50 * MIB,
            rss_end_bytes=50 * MIB,
            threads_end=4,
            descriptors_end=60,
            run_delay_s=_share(made, False, window_s, waited=True) * window_s,
            throttle=CgroupThrottle(periods=0, throttled_periods=0, throttled_s=0.0),
        ),
        host_window=HostWindow(
            wall_s=window_s,
            cpus=(
                CpuUse(cpu=0, busy=min(1.0, cpu_s / window_s + others), steal=_share(made, True, window_s)),
                CpuUse(cpu=1, busy=0.3, steal=0.0),
            ),
            others_on_server_cpus=others,
            others_on_client_cpus=0.0,
            sockets_open={"ESTABLISHED": 2 * world.users},
            sockets_close={"ESTABLISHED": 2 * world.users},
            mhz_open=2600,
            mhz_close=2600,
            swap_in_bytes=0,
            kernel_log_lines=0,
            sysctls_changed=(),
            tcp=TcpCounts(
                segments_out=SEGMENTS_PER_REQUEST * requests,
                retransmitted=int(made.resent[inside].sum()),
                syn_retransmitted=0,
                listen_overflows=0,
                listen_drops=0,
                delayed_acks=int(made.acks_delayed[inside].sum()),
            ),
        ),
        partition=CpuPartition(server=(0,), client=(1,)),
        limits=Limits(
            descriptors_soft=20_000,
            descriptors_hard=20_000,
            ports=PortRange(low=32768, high=60999),
            time_wait_to_target=0,
            time_wait_reuse=False,
        ),
        probes=(
            Probe(
                step="hello/1",
                status=200,
                body_bytes=BODY,
                meets_expectation=True,
                keeps_alive=True,
                elapsed_ms=world.cpu_ms + world.wait_ms,
            ),
        ),
        calibration=Calibration(ceiling_per_s=60_000, body_bytes=BODY, duration_s=2, client_cpu=0.98),
        warm_up=WarmUp(method="pinned", cap_s=60, steady=True, time_to_steady_s=5.0),
        clean_stop=True,
    )


def _load(world: World, seconds: float) -> LoadFacts:
    if world.is_open:
        return LoadFacts(
            model="open",
            offered_per_s=world.rate_per_s,
            arrivals="constant",
            duration_s=seconds,
            claim="latency",
            expected_requests_per_s=world.rate_per_s,
            content_declared=True,
        )
    return LoadFacts(
        model="closed",
        users=world.users,
        think_kind="exponential" if world.think_ms else "none",
        think_mean_ms=world.think_ms,
        duration_s=seconds,
        claim="latency" if world.think_ms else "capacity",
        expected_requests_per_s=1000 / world.cpu_ms,
        content_declared=True,
    )


def _counted(requests: int, right: int, failed: int) -> dict[str, object]:
    return {
        "sent": requests,
        "completed": requests,
        "failed": failed,
        "errors": {"expect_status": failed} if failed else {},
        "status": {"200": right} | ({"503": failed} if failed else {}),
        "answers": tuple(
            ResponseCount(status=status, body_bytes=BODY, count=count)
            for status, count in ((200, right), (503, failed))
            if count
        ),
        "bytes_sent": requests * 90,
        "bytes_received": right * 200,
        "connect_attempts": 0,
        "connections_closed_by_server": 0,
        "eaddrnotavail": 0,
        "emfile": 0,
    }


def _share(made: Requests, stolen: bool, window_s: float, *, waited: bool = False) -> float:
    """CPU time taken in the window ÷ its length, or that in which the server waited."""
    spans = [span for span in made.lost_spans if span.stolen is stolen]
    return sum(span.share_s(OPENS_S, OPENS_S + window_s, waited=waited) for span in spans) / window_s


def _within(made: Requests, opens_s: float, closes_s: float) -> float:
    """Time in flight within the span, s."""
    return float(np.clip(np.minimum(made.done, closes_s) - np.maximum(made.sent, opens_s), 0, None).sum())


def _age(made: Requests, at_s: float) -> float:
    under_way = (made.sent < at_s) & (made.done >= at_s)
    return float((at_s - made.sent[under_way]).sum())


def _gaps(made: Requests, opens_s: float, closes_s: float) -> tuple[Gap, ...]:
    """Spans without a completion but with requests in flight, longest first."""
    done = made.done[(made.done >= opens_s) & (made.done < closes_s)]
    gaps = []
    for at in np.flatnonzero(np.diff(done) > SHORTEST_GAP_S):
        begin, end = float(done[at]), float(done[at + 1])
        in_flight = int(np.sum((made.sent <= begin + 1e-9) & (made.done > begin)))
        if in_flight:
            gaps.append(Gap(start_ms=begin * 1000, duration_ms=(end - begin) * 1000, in_flight=in_flight))
    return tuple(sorted(gaps, key=lambda gap: -gap.duration_ms))


def _thread(lay_s: Floats, requests: int, window_s: float) -> EngineThread:
    """The client's thread: receive delays of a wake-up plus the world's own."""
    ns: Sequence[float] = (WAKE_UP_NS + lay_s * 1e9).tolist()
    p50, p99 = np.percentile(ns, (50, 99))
    return EngineThread(
        cpu=1,
        pinned=True,
        cpu_s=min(0.9 * window_s, requests * KERNEL_US / 1e6),
        wall_s=window_s,
        loops=requests,
        loop_lag_p50_ns=10_000,
        loop_lag_p99_ns=60_000,
        loop_lag_max_ns=900_000,
        run_delay_s=0.001 * window_s,
        timeslices=requests,
        reads=requests,
        reads_stamped=requests,
        receive_delay_mean_ns=int(np.mean(ns)),
        receive_delay_p50_ns=int(p50),
        receive_delay_p99_ns=int(p99),
        receive_delay_max_ns=int(np.max(ns)),
    )
