"""Synthetic results: trials with every kind of trouble."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from hdrh.histogram import HdrHistogram

from prony.evidence.engine import Histogram
from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
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
from prony.store import ExperimentRow

from .trial_evidence import STARTED, USERS, WINDOW_S, evidence

SERVERS = ("spring-tomcat", "spring-jetty", "spring-undertow")
LEVELS = {"spring-tomcat": 7250.0, "spring-jetty": 7980.0, "spring-undertow": 8240.0}
COUNT = 20_000
"""Responses of a trial in which all take the same time."""


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
    conforms = all(finding.conforms for finding in findings)
    return Judgement(conforms=conforms, findings=findings, bound_by=bound_by)


def trial(made: TrialRecord, *troubles: Finding) -> TrialView:
    """A trial as the laboratory would show it."""
    return TrialView(record=made, judgement=judgement(*troubles), figures=conclude(made).figures)


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
