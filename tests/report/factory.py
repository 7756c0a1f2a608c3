"""Synthetic records: curves like those of a JVM that warms up, and every kind of trouble."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hdrh.histogram import HdrHistogram

from prony.evidence.engine import (
    Counters,
    EngineReport,
    EngineThread,
    Histogram,
    IntervalRow,
    Mark,
    Ready,
    ReadyThread,
    Window,
)
from prony.evidence.host import CpuPartition, CpuUse, Fingerprint, HostWindow
from prony.evidence.server import JvmSnapshot, Probe, ProcessSample, ServerIdentity, ServerWindow, StartUp
from prony.evidence.trial import Evidence, LoadFacts, Phase, TrialRecord, WarmUp
from prony.experiment.conclude import conclude
from prony.judge.finding import Bias, Finding, Judgement
from prony.plan import workload
from prony.plan.cell import PublishedFigures, cell_of
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow
from prony.plan.part import Part, Shape
from prony.plan.plan import Plan
from prony.plan.target import Launch, Url
from prony.plan.trial import TrialPlan
from prony.report.cell_view import TrialView
from prony.report.reading import build
from prony.report.result import PairView, ResultView
from prony.steady.detector import change_points_ms
from prony.store import ExperimentRow

SERVERS = ("spring-tomcat", "spring-jetty", "spring-undertow")
LEVELS = {"spring-tomcat": 7250.0, "spring-jetty": 7980.0, "spring-undertow": 8240.0}
MIB = 1024 * 1024
STARTED = datetime(2026, 11, 21, 1, 39, 0, tzinfo=UTC)
WINDOW_S = 10.0
USERS = 10
COUNT = 20_000
"""Responses of a trial in which all take the same time."""


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


def constant(record: TrialRecord, took_ms: float, **counted: int) -> TrialRecord:
    """The same trial, in which every response took this long; `counted` are other counters of its window."""
    recorder = HdrHistogram(1, 3_600_000_000_000, 3)
    recorder.record_value(int(took_ms * 1e6), COUNT)
    times = Histogram(count=COUNT, max_ns=int(took_ms * 1e6), v2=recorder.encode().decode("ascii"))
    engine = record.evidence.engine
    assert engine is not None
    assert engine.window is not None
    changes = {"service_time": times, "latency": times, "completed": COUNT, **counted}
    window = engine.window.model_copy(update=changes)
    each = dict.fromkeys(("mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"), int(took_ms * 1e6))
    level = tuple(row.model_copy(update=each) for row in engine.rows)
    changed = engine.model_copy(update={"window": window, "rows": level})
    return record.model_copy(update={"evidence": record.evidence.model_copy(update={"engine": changed})})


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


PARTITION = CpuPartition(server=(0,), client=(1,), note="one CPU each")

FINGERPRINT = Fingerprint(
    key="9f2c1ab0",
    hostname="lab-7",
    architecture="x86_64",
    cpu_model="Intel Xeon (Sapphire Rapids) @ 2.70 GHz",
    cpus=2,
    cores=1,
    sockets=1,
    smt=True,
    numa_nodes=1,
    governor=None,
    memory_bytes=24 * 1024**3,
    swap_bytes=0,
    kernel="6.12.8",
    os="Debian GNU/Linux 12 (bookworm)",
    hypervisor="kvm",
    clocksource="kvm-clock",
    mitigations="partly",
    thp="madvise",
    software={"prony": "0.1.0", "engine": "0.1.0", "python": "3.11.2", "jdk": "17.0.13"},
    sysctls={"net.ipv4.ip_local_port_range": "32768 60999", "net.core.somaxconn": "4096"},
    caches={"L1d": "48 KiB", "L2": "2 MiB", "L3": "105 MiB"},
)


def record(
    server: str,
    block: int = 0,
    position: int = 0,
    *,
    quick: bool = True,
    failure: str | None = None,
    kind: str = "trial",
    with_histogram: bool = True,
    level: float | None = None,
) -> TrialRecord:
    """One trial of one server."""
    seed = block * 1000 + position * 100 + len(server)
    source = random.Random(seed)
    speed = (level or LEVELS.get(server, 7500.0)) * source.gauss(1, 0.008)
    begun = STARTED + timedelta(seconds=60 * (block * 3 + position))
    return TrialRecord.model_validate(
        {
            "id": f"t-{block}-{position}-{server}",
            "experiment_id": "20261121-0139-a1b2",
            "server": server,
            "workload": "actuator-metrics",
            "load_name": "10 users",
            "block": block,
            "position": position,
            "seed": seed,
            "quick": quick,
            "kind": kind,
            "started_at": begun,
            "ended_at": begun + timedelta(seconds=52),
            "evidence": evidence(server, seed, speed, with_histogram=with_histogram),
            "failure": failure,
            "fingerprint_key": FINGERPRINT.key,
        }
    )


def finding(
    check: str,
    *,
    conforms: bool = True,
    bias: Mapping[str, Bias] | None = None,
    provided: str = "",
    reason: str = "",
    advice: str = "",
    value: float | None = None,
    outside: bool = False,
) -> Finding:
    """One finding, in words that a check could have used."""
    return Finding(
        check=check,
        code="ok" if conforms and not bias and not provided else "found",
        conforms=conforms,
        bias=dict(bias or {}),
        provided=provided,
        value=value,
        limit="1 %",
        reason=reason or f"{check} is within its limit",
        advice=advice,
        source="METHOD",
        outside=outside,
    )


CHECKS = ("errors", "little", "client", "bound_by", "connections", "steady", "warm", "isolation", "samples")


def judgement(*troubles: Finding, bound_by: str = "server-cpu") -> Judgement:
    """Findings of every check, fine where it has no trouble."""
    named = {trouble.check for trouble in troubles}
    findings = (*(finding(check) for check in CHECKS if check not in named), *troubles)
    conforms = all(one.conforms for one in findings)
    return Judgement(conforms=conforms, findings=findings, bound_by=bound_by)


def trial(made: TrialRecord, *troubles: Finding) -> TrialView:
    """A trial as the laboratory would show it."""
    engine = made.evidence.engine
    return TrialView(
        record=made,
        judgement=judgement(*troubles),
        figures=conclude(made).figures,
        change_points_ms=change_points_ms(engine.rows) if engine is not None else (),
    )


PUBLISHED: dict[str, dict[str, float]] = {
    "jvm_memory_used_mb": dict(zip(SERVERS, (168.0, 155.0, 164.0), strict=True)),
    "jvm_classes_loaded": dict(zip(SERVERS, (9869.0, 9784.0, 9787.0), strict=True)),
    "jvm_threads_live": dict(zip(SERVERS, (25.0, 17.0, 19.0), strict=True)),
    "published_requests_per_s": dict(zip(SERVERS, (1542.0, 1627.0, 1650.0), strict=True)),
    "published_mean_ms": dict(zip(SERVERS, (6.483, 6.148, 6.059), strict=True)),
}

TITLE = "Spring Boot on Tomcat, Jetty and Undertow: GET /actuator/metrics"
ID = "20261121-0139-a1b2"


def published_for(server: str) -> tuple[PublishedFigures, ...]:
    """What the history says of this server."""
    figures = {figure: values[server] for figure, values in PUBLISHED.items() if server in values}
    source = "Spring Boot 2.4.0, ab with 10,000 requests by 10 users"
    return (PublishedFigures(label="published", source=source, figures=figures),) if figures else ()


def trial_plan(load: ClosedLoad | OpenLoad | None = None) -> TrialPlan:
    """Hello under a load."""
    chosen = load or ClosedLoad(users=USERS)
    return TrialPlan(workload=workload.load("hello"), load=chosen, measured=SteadyWindow(window_s=WINDOW_S))


def row(title: str = TITLE, *, quick: bool = False) -> ExperimentRow:
    """What the store knows of an experiment besides its trials."""
    return ExperimentRow(
        id=ID,
        name=title,
        created=STARTED,
        ended=None,
        status="finished",
        spec={},
        fingerprint=FINGERPRINT,
        seed=1,
        quick=quick,
        prony_version="0.1.0",
        trials=0,
    )


def experiment(
    trials: Sequence[TrialView] | None = None,
    servers: Sequence[str] = SERVERS,
    *,
    quick: bool = True,
    blocks: int = 3,
    title: str = TITLE,
    published: bool = True,
    warnings: Sequence[str] = (),
    shape: Shape = "comparison",
) -> ResultView:
    """A comparison; without trials given, one in which everything went well."""
    if trials is None:
        trials = [
            trial(record(server, block, position, quick=quick))
            for block in range(blocks)
            for position, server in enumerate(servers)
        ]
    foreign = shape == "single"
    cells = [
        cell_of(
            "main",
            server,
            Url(url=server) if foreign else Launch(address=server),
            trial_plan(),
            1 if foreign else max(2, blocks),
            published=published_for(server) if published else (),
        )
        for server in servers
    ]
    command = "load" if foreign else "compare"
    plan = Plan(
        name=command,
        command=command,
        title=title,
        parts=(Part(name="main", title=title, shape=shape),),
        cells=tuple(cells),
        seed=1,
        quick=quick,
    )
    of = {cell.server: cell.id for cell in cells}
    placed = [replace(t, record=t.record.model_copy(update={"cell": of[t.record.server]})) for t in trials]
    view = build(row(title, quick=quick), plan, placed)
    return replace(view, warnings=(*view.warnings, *warnings))


def changed(view: ResultView, change: Callable[[TrialView], TrialView]) -> ResultView:
    """The same with every trial changed."""
    parts = [
        replace(part, cells=tuple(replace(c, trials=tuple(map(change, c.trials))) for c in part.cells))
        for part in view.parts
    ]
    return replace(view, parts=tuple(parts))


def only(view: ResultView, *ids: str) -> ResultView:
    """The same with these trials alone."""
    parts = [
        replace(
            part,
            cells=tuple(
                replace(c, trials=tuple(t for t in c.trials if t.record.id in ids), controls=())
                for c in part.cells
            ),
        )
        for part in view.parts
    ]
    return replace(view, parts=tuple(parts))


def with_pairs(view: ResultView, pairs: Sequence[PairView]) -> ResultView:
    """The same with other comparisons in its only part."""
    (part,) = view.parts
    return replace(view, parts=(replace(part, pairs=tuple(pairs)),))


FAILING = finding(
    "errors",
    conforms=False,
    reason="14.2 % of 72,000 requests failed",
    advice="Look at the server's log.",
    value=0.142,
)
NOISY = finding(
    "isolation",
    bias={"requests_per_s": Bias(high=0.071), "p99_ms": Bias(low=-0.071)},
    reason="other processes used 7.1 % of the server's CPU (dockerd)",
    advice="Stop dockerd, or measure on other CPUs.",
    value=0.071,
    outside=True,
)
SATURATED = finding(
    "client",
    bias={"requests_per_s": Bias(high=None)},
    reason="the client's busiest thread used 99 % of its CPU",
    advice="Give the client another CPU.",
    value=0.99,
)
BLIND = finding(
    "warm",
    provided="no code was being compiled",
    reason="the agent could not be read",
    advice="Start it with the agent.",
)


def troubled(blocks: int = 3) -> ResultView:
    """One trial that failed, three that were disturbed, one whose server died; everywhere a blind check."""
    trials = []
    for block in range(blocks):
        for position, server in enumerate(SERVERS):
            troubles = [BLIND]
            if block == 1:
                troubles.append(NOISY)
            if (block, server) == (2, "spring-jetty"):
                troubles.append(FAILING)
            died = "the server died: exit code 137" if (block, server) == (0, "spring-undertow") else None
            trials.append(trial(record(server, block, position, failure=died), *troubles))
    return experiment(trials)


def four_troubled() -> ResultView:
    """Of four servers: what most tests of a page look at."""
    return troubled(4)


def hopeless() -> ResultView:
    """No trial conforms."""
    return experiment([trial(record(s, b, p), FAILING) for b in range(2) for p, s in enumerate(SERVERS)])


def full() -> ResultView:
    """Five trials of each server; all conform."""
    return experiment(quick=False, blocks=5)


TWENTY = [
    f"{name}-{way}"
    for name in ("tomcat", "jetty", "undertow", "netty", "vertx")
    for way in ("platform", "virtual", "async", "reactive")
]


def twenty(*troubles: Finding) -> ResultView:
    """Twenty servers of which each has 93 % of the throughput of the one before it."""
    trials = [
        trial(record(server, block, at, quick=False, level=16_000 * 0.93**at), *troubles)
        for block in range(3)
        for at, server in enumerate(TWENTY)
    ]
    return experiment(trials, TWENTY, quick=False, published=False, title="Twenty servers: GET /hello")


def bare() -> ResultView:
    """Servers of which next to nothing is known: no histogram, no start-up, no server window, NaN figures."""
    trials = []
    for position, server in enumerate(SERVERS):
        made = record(server, 0, position, with_histogram=False)
        evidence = made.evidence.model_copy(
            update={"start_up": None, "server_window": None, "warm_up": None, "phases": (), "partition": None}
        )
        seen = trial(made.model_copy(update={"evidence": evidence}))
        nan = {"p50_ms": math.nan, "mean_ms": math.inf, "peak_rss_mib": -math.inf}
        trials.append(TrialView(seen.record, seen.judgement, {**seen.figures, **nan}))
    shown = experiment(trials, published=False)
    return replace(with_pairs(shown, ()), fingerprint=None, partition=None)


def without_engine() -> ResultView:
    """A server that never got ready: no engine report at all."""
    made = record("spring-tomcat", failure="spring-tomcat did not get ready within 60 s")
    evidence = made.evidence.model_copy(update={"engine": None, "server_window": None, "phases": ()})
    only = trial(made.model_copy(update={"evidence": evidence}))
    return experiment([only], ["spring-tomcat"])


HOSTILE = '<script>alert("1")</script>&[red]x[/red] \'"'


def hostile() -> ResultView:
    """Names and texts that mean something in HTML, in SVG, in rich's markup or in a URL."""
    names = ["a<b>&\"c'", "[bold]jetty[/bold]", "tomcat:async#(1)"]
    bias = {"requests_per_s": Bias(high=0.01)}
    bad = finding("content", bias=bias, provided=HOSTILE, reason=HOSTILE, advice=HOSTILE)
    trials = [trial(record(name, b, p), bad) for b in range(3) for p, name in enumerate(names)]
    shown = experiment(trials, names, title=HOSTILE, warnings=[HOSTILE])
    return replace(shown, plan_text=f"title: '{HOSTILE}'\n")


def foreign_load() -> ResultView:
    """One run of `prony load` against a server that was running already."""
    made = record("http://127.0.0.1:8080", quick=False)
    server = made.evidence.server.model_copy(update={"owned": False, "title": "", "versions": {}})
    evidence = made.evidence.model_copy(update={"server": server, "start_up": None})
    only = trial(made.model_copy(update={"evidence": evidence}), BLIND)
    return experiment(
        [only], ["http://127.0.0.1:8080"], quick=False, published=False, title="load", shape="single"
    )
