"""What a healthy trial leaves behind: rows of a JVM that warms up, times with a slow tail, readings of the
server.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime

from hdrh.histogram import HdrHistogram

from prony.evidence.counts import EngineThread
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
from prony.evidence.host import CpuPartition, CpuUse, HostWindow
from prony.evidence.server import JvmSnapshot, Probe, ProcessSample, ServerIdentity, ServerWindow, StartUp
from prony.evidence.trial import Evidence, LoadFacts, Phase, WarmUp

MIB = 1024 * 1024
STARTED = datetime(2026, 11, 21, 1, 39, 0, tzinfo=UTC)
WINDOW_S = 10.0
USERS = 10
PARTITION = CpuPartition(server=(0,), client=(1,), note="one CPU each")


def histogram(
    median_ns: float, count: int, seed: int, *, sigma: float = 0.42, draws: int = 4000
) -> Histogram:
    """A lognormal service time with a slow tail, like a server under a closed loop."""
    source = random.Random(seed)
    recorder = HdrHistogram(1, 3_600_000_000_000, 3)
    total = 0.0
    least, most = math.inf, 0.0
    for _ in range(draws):
        value = median_ns * math.exp(source.gauss(0, sigma))
        if source.random() < 0.002:
            value *= source.uniform(4, 14)
        recorder.record_value(int(value), max(1, count // draws))
        total += value
        least, most = min(least, value), max(most, value)
    return Histogram(
        count=recorder.get_total_count(),
        mean_ns=total / draws,
        min_ns=int(least),
        max_ns=int(most),
        v2=recorder.encode().decode("ascii"),
    )


def rows(level: float, seed: int) -> tuple[list[IntervalRow], list[Phase], float]:
    """One row a second: a cold start, a warm-up on all CPUs, settling on one CPU, then the window."""
    source = random.Random(seed)
    made: list[IntervalRow] = []
    warm_s = 22 + source.randrange(6)
    settle_s, window_s = 5, int(WINDOW_S)
    done = 0
    published_ms = 0.0
    for second in range(1, warm_s + settle_s + window_s + 1):
        warming = 0.10 + 1.02 / (1 + math.exp(-(second - 11) / 2.4))
        speed = level * (warming if second <= warm_s else 1.0)
        speed *= source.gauss(1, 0.018)
        completed = max(1, int(speed))
        if done < 10_000 <= done + completed:
            published_ms = (second - 1 + (10_000 - done) / completed) * 1000
        done += completed
        mean_ns = USERS / speed * 1e9
        made.append(
            IntervalRow(
                t_ms=second * 1000.0,
                duration_ms=1000.0,
                in_window=second > warm_s + settle_s,
                completed=completed,
                in_flight=USERS,
                users=USERS,
                connections_open=USERS,
                connections_opened=USERS if second == 1 else 0,
                mean_ns=mean_ns,
                p50_ns=int(mean_ns * 0.92),
                p90_ns=int(mean_ns * 1.6),
                p99_ns=int(mean_ns * 3.1),
                max_ns=int(mean_ns * 9),
                client_cpu=0.24 + 0.02 * source.random(),
                loop_lag_p99_ns=21_000,
            )
        )
    end_warm, end_settle = warm_s * 1000.0, (warm_s + settle_s) * 1000.0
    phases = [
        Phase(name="published", start_ms=0.0, end_ms=published_ms, server_cpus=(0,)),
        Phase(name="warm-up", start_ms=published_ms, end_ms=end_warm, server_cpus=(0, 1)),
        Phase(name="settle", start_ms=end_warm, end_ms=end_settle, server_cpus=(0,)),
        Phase(name="window", start_ms=end_settle, end_ms=end_settle + WINDOW_S * 1000, server_cpus=(0,)),
    ]
    return made, phases, published_ms


def snapshot(at_s: float, heap_mib: float, classes: int, threads: int) -> JvmSnapshot:
    return JvmSnapshot(
        t_monotonic_s=at_s,
        uptime_s=at_s,
        heap_used_bytes=int(heap_mib * MIB),
        heap_committed_bytes=256 * MIB,
        heap_max_bytes=2048 * MIB,
        non_heap_used_bytes=78 * MIB,
        classes_loaded=classes,
        classes_loaded_total=classes,
        threads_live=threads,
        threads_peak=threads + 2,
        gc_count=int(at_s * 3),
        gc_time_s=at_s * 0.004,
        jit_time_s=6 + at_s * 0.001,
        process_cpu_s=at_s * 0.98,
        vm="OpenJDK 64-Bit Server VM 17.0.13",
        gc_names=("Copy", "MarkSweepCompact"),
    )


def evidence(server: str, seed: int, level: float, *, with_histogram: bool = True) -> Evidence:
    """Everything that one trial of a healthy server leaves behind."""
    source = random.Random(seed)
    made, phases, published_ms = rows(level, seed)
    window_rows = [row for row in made if row.in_window]
    completed = sum(row.completed for row in window_rows)
    service = histogram(USERS / level * 1e9 * 0.9, completed, seed) if with_histogram else None
    counters = {
        "sent": completed,
        "completed": completed,
        "status": {"200": completed},
        "bytes_sent": completed * 90,
        "bytes_received": completed * 1200,
        "connections_opened": 0,
        "service_time_sum_s": USERS * WINDOW_S * 0.998,
        "in_flight_integral_s": USERS * WINDOW_S * 0.999,
        "clipped_cycle_s": USERS * WINDOW_S,
        "users": USERS,
    }
    window = Window.model_validate(
        {
            **counters,
            "opened_ms": phases[-1].start_ms,
            "duration_s": WINDOW_S,
            "service_time": service,
            "threads": (
                EngineThread(
                    cpu=1,
                    pinned=True,
                    cpu_s=2.4,
                    wall_s=WINDOW_S,
                    loops=70_000,
                    loop_lag_p50_ns=9_000,
                    loop_lag_p99_ns=24_000,
                    loop_lag_max_ns=300_000,
                ),
            ),
        }
    )
    classes = {"spring-tomcat": 9610, "spring-jetty": 9533, "spring-undertow": 9548}.get(server, 9500)
    threads = {"spring-tomcat": 22, "spring-jetty": 17, "spring-undertow": 18}.get(server, 20)
    memory = {"spring-tomcat": 119.0, "spring-jetty": 112.0, "spring-undertow": 116.0}.get(server, 115.0)
    memory *= source.gauss(1, 0.01)
    total = sum(row.completed for row in made)
    return Evidence(
        load=LoadFacts(model="closed", users=USERS, duration_s=WINDOW_S, content_declared=True),
        probes=(Probe(step="hello", status=200, body_bytes=13, meets_expectation=True, body_digest="0f"),),
        engine=EngineReport(
            ready=Ready(
                version="0.1.0",
                driver="io_uring",
                driver_reason="probe succeeded",
                pid=4242,
                addresses=("127.0.0.1:8080",),
                threads=(ReadyThread(cpu=1, pinned=True),),
                started_unix_ns=int(STARTED.timestamp() * 1e9),
                started_monotonic_ns=1,
            ),
            rows=tuple(made),
            marks=(
                Mark(requests=10_000, elapsed_ms=published_ms, mean_ns=USERS * published_ms * 100, errors=0),
            ),
            reason="stopped",
            elapsed_ms=made[-1].t_ms,
            totals=Counters(
                sent=total,
                completed=total,
                status={"200": total},
                connect_attempts=USERS,
                connections_opened=USERS,
            ),
            window=window,
        ),
        server=ServerIdentity(
            name=server,
            title=server.replace("spring-", "Spring Boot on ").title(),
            versions={"spring-boot": "3.5.16"},
            runtime="OpenJDK 17.0.13",
            command=("java", "-XX:ActiveProcessorCount=1", "-jar", "app.jar"),
            pid=4243,
            port=8080,
            owns_port=True,
        ),
        start_up=StartUp(
            time_to_listen_s=3.0 + source.random() * 0.3,
            time_to_ready_s=3.4 + source.random() * 0.3,
            reported={
                "jvm.memory.used": memory * 1e6,
                "jvm.classes.loaded": classes,
                "jvm.threads.live": threads,
            },
            jvm=snapshot(4, memory * 0.4, classes, threads),
            process=ProcessSample(
                t_monotonic_s=4,
                cpu_user_s=5,
                cpu_system_s=0.4,
                rss_bytes=int(182 * MIB),
                threads=threads + 12,
            ),
        ),
        server_window=ServerWindow(
            wall_s=WINDOW_S,
            granted_cpus=1.0,
            cpu_user_s=8.4 + source.random() * 0.1,
            cpu_system_s=1.3,
            peak_rss_bytes=int((258 + source.random() * 12) * MIB),
            rss_end_bytes=int(255 * MIB),
            threads_end=threads + 20,
            jvm_open=snapshot(40, memory, classes + 300, threads + 10),
            jvm_close=snapshot(50, memory, classes + 300, threads + 10),
        ),
        host_window=HostWindow(
            wall_s=WINDOW_S,
            cpus=(CpuUse(cpu=0, busy=0.98, steal=0.001), CpuUse(cpu=1, busy=0.27, steal=0.0)),
            others_on_server_cpus=0.004,
            others_on_client_cpus=0.01,
        ),
        partition=PARTITION,
        warm_up=WarmUp(method="all-cpus", cap_s=28, steady=True, time_to_steady_s=17.0 + source.random() * 4),
        phases=tuple(phases),
        clean_stop=True,
    )
