"""Evidence of a healthy trial, and ways to break one part of it. Numbers agree with each other as an engine's
would.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from hdrh.histogram import HdrHistogram
from scipy.stats import norm

from prony.evidence.counts import EngineThread, ResponseCount
from prony.evidence.engine import (
    Counters,
    EngineReport,
    Histogram,
    IntervalRow,
    Mark,
    Ready,
    ReadyThread,
    Window,
)
from prony.evidence.host import CpuPartition, CpuUse, HostRow, HostWindow, Limits, PortRange, TcpCounts
from prony.evidence.hosts import Clock, HostEvidence, Link, NetworkUse
from prony.evidence.server import (
    CgroupThrottle,
    JvmSnapshot,
    Probe,
    ProcessSample,
    ServerIdentity,
    ServerWindow,
    StartUp,
)
from prony.evidence.trial import Calibration, ConformanceFacts, Evidence, LoadFacts, ScalingProbe, WarmUp
from prony.judge.finding import Finding, Kind

USERS = 10
RATE = 8000
WINDOW_S = 10.0
OPENED_MS = 40_300.0
"""Not on a row's border: the window's first and last rows are partial, as in life."""
MEAN_MS = USERS / RATE * 1000
BODY = 1234
MIB = 2**20


@lru_cache(maxsize=32)
def histogram(count: int = int(RATE * WINDOW_S), mean_ms: float = MEAN_MS, sigma: float = 0.3) -> Histogram:
    """Lognormal service times, scaled to the wanted mean; `count` samples in all."""
    quantiles = (np.arange(500) + 0.5) / 500

    values = np.exp(sigma * norm.ppf(quantiles))
    values *= mean_ms * 1e6 / values.mean()
    return of_values([int(v) for v in values], count)


def of_values(values_ns: list[int], count: int | None = None) -> Histogram:
    """A histogram of these values; `count` repeats them in turn until there are so many."""
    recorder: Any = HdrHistogram(1, 3_600_000_000_000, 3)
    total = count if count is not None else len(values_ns)
    each, rest = divmod(total, len(values_ns))
    for index, value in enumerate(values_ns):
        times = each + (index < rest)
        if times:
            recorder.record_value(value, times)
    used = values_ns if total >= len(values_ns) else values_ns[:total]
    return Histogram(
        count=total,
        mean_ns=float(np.mean(used)) if used else None,
        min_ns=min(used, default=None),
        max_ns=max(used, default=None),
        v2=recorder.encode().decode("ascii"),
    )


def rows(rates: list[float], first_s: int = 0, users: int = USERS, **more: Any) -> tuple[IntervalRow, ...]:
    """One row a second with these rates; p50 follows the rate as in a closed loop."""
    return tuple(
        IntervalRow(
            t_ms=(first_s + index + 1) * 1000.0,
            duration_ms=1000.0,
            completed=round(rate),
            users=users,
            in_flight=users,
            connections_open=users,
            mean_ns=users / rate * 1e9 if rate > 0 else None,
            p50_ns=int(users / rate * 0.95e9) if rate > 0 else None,
            **({"p99_ns": int(users / rate * 1.9e9) if rate > 0 else None} | more),
        )
        for index, rate in enumerate(rates)
    )


def noisy(level: float, count: int, cv: float, seed: int = 1) -> list[float]:
    """Rates with white noise around a level."""
    return list(level * np.exp(cv * np.random.default_rng(seed).standard_normal(count)))


def snapshot(t_s: float, jit_s: float, classes: int = 9000, cpu_s: float | None = None) -> JvmSnapshot:
    return JvmSnapshot(
        t_monotonic_s=t_s,
        uptime_s=t_s,
        heap_used_bytes=64 * MIB,
        heap_committed_bytes=256 * MIB,
        heap_max_bytes=1024 * MIB,
        non_heap_used_bytes=70 * MIB,
        classes_loaded=classes,
        classes_loaded_total=classes,
        threads_live=30,
        threads_peak=32,
        gc_count=int(t_s),
        gc_time_s=t_s * 0.005,
        jit_time_s=jit_s,
        process_cpu_s=t_s * 0.95 if cpu_s is None else cpu_s,
    )


def memory_rows(rss_mib: Sequence[float]) -> tuple[HostRow, ...]:
    """A second of the window each, with this resident memory of the server."""
    return tuple(
        HostRow(t_ms=OPENED_MS + 1000 * (at + 1), duration_ms=1000.0, server_rss_bytes=int(mib * MIB))
        for at, mib in enumerate(rss_mib)
    )


def counters(requests: int) -> dict[str, Any]:
    """What is counted of so many answered requests, apart from times."""
    return {
        "sent": requests,
        "completed": requests,
        "status": {"200": requests},
        "answers": (ResponseCount(status=200, body_bytes=BODY, count=requests),),
        "bytes_sent": requests * 90,
        "bytes_received": requests * 1400,
        "connect_attempts": 0,
        "connections_closed_by_server": 0,
        "connections_closed_by_client": 0,
        "eaddrnotavail": 0,
        "emfile": 0,
    }


def on_hosts(loads: int = 2) -> Evidence:
    """`healthy`, with its load offered by so many equal hosts to a server on another one."""
    whole = healthy()
    assert whole.engine is not None
    assert whole.engine.window is not None
    assert whole.host_window is not None
    assert whole.partition is not None
    requests = int(RATE * WINDOW_S) // loads
    own = whole.engine.window.model_copy(
        update={
            **counters(requests),
            "service_time": histogram(requests),
            "users_integral_s": USERS * WINDOW_S / loads,
            "clipped_turnaround_s": USERS * WINDOW_S * 0.001 / loads,
        }
    )
    engine = whole.engine.model_copy(update={"window": own})
    clock = Clock(offset_s=1234.5, uncertainty_s=0.0001, round_trips=200, skew_s=0.0002)
    link = Link(
        interface="eth0", speed_bits_per_s=1e9, mtu=1500, round_trip_idle_ms=0.2, round_trip_load_ms=0.4
    )

    def one(name: str, role: Literal["server", "load"]) -> HostEvidence:
        share = 1 if role == "server" else loads
        return HostEvidence(
            name=name,
            role=role,
            engine=engine if role == "load" else None,
            host_window=whole.host_window,
            clock=clock,
            link=link,
            network=NetworkUse(
                received_bytes_per_s=1e6 / share,
                sent_bytes_per_s=11e6 / share,
                received_packets_per_s=10_000 / share,
                sent_packets_per_s=20_000 / share,
                dropped=0,
                errors=0,
                backlog_dropped=0,
                segments_sent=300_000 // share,
                retransmitted=0,
                softirq_share=0.1,
                busiest_queue_share=0.5,
                queues=2,
            ),
            opened_late_s=0.0,
            row_late_max_s=0.1,
        )

    hosts = (one("server", "server"), *(one(f"load{at + 1}", "load") for at in range(loads)))
    apart = whole.partition.model_copy(update={"apart": True})
    return whole.model_copy(update={"hosts": hosts, "partition": apart})


def host(evidence: Evidence, name: str, **changes: Any) -> Evidence:
    """One of its hosts with these fields; a dict changes fields of the record of that name."""
    changed = []
    for one in evidence.hosts:
        if one.name == name:
            fields = {
                key: getattr(one, key).model_copy(update=value) if isinstance(value, dict) else value
                for key, value in changes.items()
            }
            one = one.model_copy(update=fields)
        changed.append(one)
    return evidence.model_copy(update={"hosts": tuple(changed)})


def host_engine(evidence: Evidence, name: str, **window: Any) -> Evidence:
    """The window of one load host's engine with these fields."""
    own = next(one.engine for one in evidence.hosts if one.name == name)
    assert own is not None
    assert own.window is not None
    engine = own.model_copy(update={"window": own.window.model_copy(update=window)})
    return host(evidence, name, engine=engine)


def healthy() -> Evidence:
    """A closed-loop capacity trial of a JVM server of ours to which nothing happened: conforming in
    every check.
    """
    requests = int(RATE * WINDOW_S)
    total = int(RATE * 52)
    window = Window(
        **counters(requests),
        connections_opened=0,
        opened_ms=OPENED_MS,
        duration_s=WINDOW_S,
        service_time_sum_s=USERS * WINDOW_S,
        lost_time_sum_s=0.0,
        in_flight_integral_s=USERS * WINDOW_S * 1.0004,
        in_flight_age_open_s=0.02,
        in_flight_age_close_s=0.06,
        clipped_cycle_s=USERS * WINDOW_S * 0.9985,
        clipped_connect_s=0.0,
        clipped_turnaround_s=USERS * WINDOW_S * 0.001,
        clipped_back_off_s=0.0,
        turnaround_sum_s=USERS * WINDOW_S * 0.001,
        turnaround_count=requests,
        users=USERS,
        service_time=histogram(),
        threads=(
            EngineThread(
                cpu=1,
                pinned=True,
                cpu_s=4.1,
                wall_s=WINDOW_S,
                loops=100_000,
                loop_lag_p99_ns=60_000,
                loop_lag_max_ns=900_000,
                run_delay_s=0.02,
                timeslices=40_000,
            ),
        ),
    )
    return Evidence(
        load=LoadFacts(model="closed", users=USERS, duration_s=60, expected_requests_per_s=RATE),
        engine=EngineReport(
            ready=Ready(
                version="0.1.0",
                driver="io_uring",
                pid=100,
                threads=(ReadyThread(cpu=1, pinned=True),),
                started_unix_ns=0,
                started_monotonic_ns=0,
            ),
            rows=rows(noisy(RATE, 52, 0.003)),  # so quiet that a window of 10 s is shown to be level
            marks=(Mark(requests=10_000, elapsed_ms=5000.0),),
            reason="stopped",
            elapsed_ms=52_000.0,
            totals=Counters(**counters(total), connections_opened=USERS, users=USERS),
            window=window,
        ),
        conformance=ConformanceFacts(passed=3, checks=3),
        server=ServerIdentity(
            name="spring-tomcat",
            runtime="jvm",
            pid=200,
            port=8080,
            owns_port=True,
            descriptor_limit_soft=20_000,
        ),
        start_up=StartUp(
            time_to_listen_s=2.1,
            time_to_ready_s=2.4,
            reported={"jvm.memory.used": 168e6},
            jvm=snapshot(3, 2.0),
            process=ProcessSample(
                t_monotonic_s=3, cpu_user_s=3, cpu_system_s=0.5, rss_bytes=180 * MIB, threads=28
            ),
        ),
        server_window=ServerWindow(
            wall_s=WINDOW_S,
            granted_cpus=1,
            cpu_user_s=8.0,
            cpu_system_s=1.6,
            peak_rss_bytes=256 * MIB,
            rss_end_bytes=250 * MIB,
            threads_end=40,
            descriptors_end=60,
            jvm_open=snapshot(40, 20.0),
            jvm_close=snapshot(50, 20.03, classes=9004),
            throttle=CgroupThrottle(periods=0, throttled_periods=0, throttled_s=0.0),
        ),
        host_window=HostWindow(
            wall_s=WINDOW_S,
            cpus=(CpuUse(cpu=0, busy=0.97, steal=0.0), CpuUse(cpu=1, busy=0.45, steal=0.001)),
            others_on_server_cpus=0.004,
            others_on_client_cpus=0.02,
            sockets_open={"ESTABLISHED": 24, "TIME_WAIT": 3},
            sockets_close={"ESTABLISHED": 24, "TIME_WAIT": 2},
            mhz_open=2600,
            mhz_close=2600,
            swap_in_bytes=0,
            kernel_log_lines=0,
            sysctls_changed=(),
            tcp=TcpCounts(
                segments_out=320_000,
                retransmitted=0,
                syn_retransmitted=0,
                listen_overflows=0,
                listen_drops=0,
                delayed_acks=3,
            ),
        ),
        host_rows=memory_rows([250.0] * int(WINDOW_S)),
        partition=CpuPartition(server=(0,), client=(1,)),
        limits=Limits(
            descriptors_soft=20_000,
            descriptors_hard=20_000,
            ports=PortRange(low=32768, high=60999),
            time_wait_to_target=0,
            time_wait_reuse=False,
        ),
        probes=(Probe(step="main/1", status=200, body_bytes=BODY, meets_expectation=True, keeps_alive=True),),
        calibration=Calibration(ceiling_per_s=60_000, body_bytes=BODY, duration_s=2, client_cpu=0.98),
        warm_up=WarmUp(method="all-cpus", cap_s=60, steady=True, time_to_steady_s=31.0),
        clean_stop=True,
    )


def probed(evidence: Evidence, ratio: float, cv: float = 0.01, **changes: Any) -> Evidence:
    """With a scaling probe of half as many users again, at `ratio` times the rate."""
    values = {"users": USERS * 3 // 2, "failed_share": 0.0, "client_cpu": 0.5} | changes
    rates = tuple(noisy(RATE * ratio, 4, cv, seed=3))
    probe = ScalingProbe.model_validate(values | {"rates_per_s": rates})
    return evidence.model_copy(update={"scaling_probe": probe})


def threads(*cpu_shares: float, lag_ms: float = 0.06) -> tuple[EngineThread, ...]:
    """Threads of the engine that used these shares of a CPU over the window."""
    return tuple(
        EngineThread(cpu=1, cpu_s=share * 10, wall_s=10.0, loop_lag_p99_ns=int(lag_ms * 1e6))
        for share in cpu_shares
    )


def window(evidence: Evidence, **changes: Any) -> Evidence:
    """The same evidence with other values in the measured window."""
    assert evidence.engine is not None
    assert evidence.engine.window is not None
    return engine(evidence, window=evidence.engine.window.model_copy(update=changes))


def totals(evidence: Evidence, **changes: Any) -> Evidence:
    """... in the counters of the whole run."""
    assert evidence.engine is not None
    return engine(evidence, totals=evidence.engine.totals.model_copy(update=changes))


def engine(evidence: Evidence, **changes: Any) -> Evidence:
    """... in the engine's report."""
    assert evidence.engine is not None
    return evidence.model_copy(update={"engine": evidence.engine.model_copy(update=changes)})


def part(evidence: Evidence, name: str, **changes: Any) -> Evidence:
    """... in a named part: load, server, server_window, host_window, partition, limits, warm_up."""
    return evidence.model_copy(update={name: getattr(evidence, name).model_copy(update=changes)})


def open_model(arrivals: str = "constant", rate: float = RATE) -> Evidence:
    """A healthy open-loop latency trial: everything that was due was sent, in time."""
    base = part(
        healthy(),
        "load",
        model="open",
        users=None,
        offered_per_s=rate,
        arrivals=arrivals,
        claim="latency",
    )
    sent = tuple(
        row.model_copy(update={"offered": round(rate), "sent": round(rate), "completed": round(rate)})
        for row in rows(noisy(rate, 52, 0.002))
    )
    return window(
        engine(base, rows=sent),
        latency=histogram(),
        send_lag=histogram(mean_ms=0.02),
        offered=int(rate * WINDOW_S),
        due_unsent=0,
        blocked=0,
        arrival_gaps=10_000 if arrivals == "poisson" else None,
        arrival_gaps_ks=0.008 if arrivals == "poisson" else None,
        arrival_gaps_ks_from=((0.05, 0.008), (0.2, 0.006), (0.5, 0.003)) if arrivals == "poisson" else (),
    )


def by_url() -> Evidence:
    """What `prony load URL` leaves: the server is somebody else's, so nothing of its inside is known."""
    base = part(
        healthy(), "server", owned=False, runtime="", owns_port=None, pid=None, descriptor_limit_soft=None
    )
    return base.model_copy(
        update={
            "server_window": None,
            "conformance": None,
            "start_up": None,
            "warm_up": None,
            "calibration": None,
            "clean_stop": None,
        }
    )


def present(finding: Finding | None) -> Finding:
    assert finding is not None
    return finding


def kind_and_code(finding: Finding | None) -> tuple[Kind, str]:
    finding = present(finding)
    return finding.kind, finding.code


def kind_code(finding: Finding | None) -> tuple[Kind, str]:
    """Kind and code; a condition is named where, and only where, it is one."""
    finding = present(finding)
    assert bool(finding.provided) == (finding.kind is Kind.PROVIDED)
    return kind_and_code(finding)
