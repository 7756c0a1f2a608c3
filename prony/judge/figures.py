"""The figures of a trial, from its evidence. A figure whose counters are missing is None, never zero."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from prony.evidence.engine import Mark, Window
from prony.evidence.server import ServerWindow, ServiceUse
from prony.evidence.trial import Evidence
from prony.judge.checks.samples import SamplesLimits
from prony.judge.limits import CheckLimits
from prony.judge.percentiles import Times
from prony.judge.times import NAMED, headline_times, plain_times, supported, window_times
from prony.judge.window import expectations_missed, measured
from prony.steady.detector import compiling_s

SESSION_TIMES = ("mean", "p50", "p95", "p99", "min", "max")
MIB = 2**20
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Figure:
    """How a figure is printed. `higher_is_better`: None where neither direction is better."""

    name: str
    label: str
    unit: str
    decimals: int
    higher_is_better: bool | None


@dataclass(frozen=True, slots=True)
class Figures:
    """Names as in FIGURES. Times of an open loop are latencies, of a closed one response times where requests
    opened connections; then service times are given as well.
    """

    requests_per_s: float | None = None
    mean_ms: float | None = None
    p50_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    min_ms: float | None = None
    max_ms: float | None = None
    service_time_p50_ms: float | None = None
    service_time_p99_ms: float | None = None
    sessions_begun: float | None = None
    sessions_completed: float | None = None
    sessions_per_s: float | None = None
    session_mean_ms: float | None = None
    session_p50_ms: float | None = None
    session_p95_ms: float | None = None
    session_p99_ms: float | None = None
    session_min_ms: float | None = None
    session_max_ms: float | None = None
    handshakes_per_request: float | None = None
    resumed_share: float | None = None
    server_cpu_us_per_request: float | None = None
    server_instructions_per_request: float | None = None
    client_cpu_us_per_request: float | None = None
    server_cpu_share: float | None = None
    client_cpu_share: float | None = None
    peak_rss_mib: float | None = None
    requests_per_s_per_gib: float | None = None
    threads: float | None = None
    service_cpu_us_per_request: float | None = None
    service_cpu_share: float | None = None
    service_rss_mib: float | None = None
    heap_used_mib: float | None = None
    heap_committed_mib: float | None = None
    gc_share: float | None = None
    jit_share: float | None = None
    time_to_listen_s: float | None = None
    time_to_ready_s: float | None = None
    time_to_steady_s: float | None = None
    start_rss_mib: float | None = None
    start_heap_used_mib: float | None = None
    start_classes_loaded: float | None = None
    start_threads: float | None = None
    published_requests_per_s: float | None = None
    published_mean_ms: float | None = None
    reported: dict[str, float] = field(default_factory=dict)
    """The application's own report at ready, for keys in REPORTED."""

    def numbers(self) -> dict[str, float]:
        named = ((f.name, getattr(self, f.name)) for f in fields(self) if f.name != "reported")
        return {name: float(value) for name, value in named if value is not None} | self.reported


FIGURES: tuple[Figure, ...] = (
    Figure("requests_per_s", "requests per second", "1/s", 0, True),
    Figure("mean_ms", "mean time per request", "ms", 3, False),
    Figure("p50_ms", "p50", "ms", 3, False),
    Figure("p90_ms", "p90", "ms", 3, False),
    Figure("p95_ms", "p95", "ms", 3, False),
    Figure("p99_ms", "p99", "ms", 3, False),
    Figure("p999_ms", "p99.9", "ms", 3, False),
    Figure("min_ms", "shortest", "ms", 3, False),
    Figure("max_ms", "longest", "ms", 1, False),
    Figure("service_time_p50_ms", "p50 of service times", "ms", 3, False),
    Figure("service_time_p99_ms", "p99 of service times", "ms", 3, False),
    Figure("sessions_begun", "sessions begun", "", 0, None),
    Figure("sessions_completed", "sessions completed", "", 0, None),
    Figure("sessions_per_s", "sessions completed per second", "1/s", 1, True),
    Figure("session_mean_ms", "mean session", "ms", 1, False),
    Figure("session_p50_ms", "session p50", "ms", 1, False),
    Figure("session_p95_ms", "session p95", "ms", 1, False),
    Figure("session_p99_ms", "session p99", "ms", 1, False),
    Figure("session_min_ms", "shortest session", "ms", 1, False),
    Figure("session_max_ms", "longest session", "ms", 1, False),
    Figure("handshakes_per_request", "TLS handshakes per request", "", 4, False),
    Figure("resumed_share", "TLS sessions resumed", "of handshakes", 2, None),
    Figure("server_cpu_us_per_request", "server CPU per request", "µs", 1, False),
    Figure("server_instructions_per_request", "server instructions per request", "", 0, False),
    Figure("client_cpu_us_per_request", "client CPU per request", "µs", 2, None),
    Figure("server_cpu_share", "server CPU in use", "of granted", 2, None),
    Figure("client_cpu_share", "busiest client thread", "of a CPU", 2, None),
    Figure("peak_rss_mib", "peak memory (RSS)", "MiB", 0, False),
    Figure("requests_per_s_per_gib", "requests per second per GiB", "1/s/GiB", 0, True),
    Figure("threads", "threads under load", "", 0, None),
    Figure("service_cpu_us_per_request", "CPU of services per request", "µs", 1, False),
    Figure("service_cpu_share", "services' CPU in use", "of a CPU", 2, None),
    Figure("service_rss_mib", "peak memory of services (RSS)", "MiB", 0, False),
    Figure("heap_used_mib", "heap used at the end", "MiB", 0, None),
    Figure("heap_committed_mib", "heap committed at the end", "MiB", 0, False),
    Figure("gc_share", "time in garbage collection", "of the window", 4, False),
    Figure("jit_share", "compilation in the window", "of server CPU", 4, None),
    Figure("time_to_listen_s", "time to listen", "s", 2, False),
    Figure("time_to_ready_s", "time to first correct response", "s", 2, False),
    Figure("time_to_steady_s", "time to steady", "s", 0, False),
    Figure("start_rss_mib", "memory at ready (RSS)", "MiB", 0, False),
    Figure("start_heap_used_mib", "heap used at ready", "MiB", 0, False),
    Figure("start_classes_loaded", "classes loaded at ready", "", 0, False),
    Figure("start_threads", "threads at ready", "", 0, False),
    Figure("published_requests_per_s", "requests per second, as published", "1/s", 0, True),
    Figure("published_mean_ms", "mean time per request, as published", "ms", 3, False),
)
"""Every figure of `Figures.numbers()` except REPORTED, in the order of the tables."""
REPORTED = {
    "jvm.memory.used": ("jvm_memory_used_mb", 1e6),
    "jvm.classes.loaded": ("jvm_classes_loaded", 1.0),
    "jvm.threads.live": ("jvm_threads_live", 1.0),
}
"""Key that an application prints at ready (`reports` in its server.yaml) -> figure and divisor."""

FIGURE: Mapping[str, Figure] = {figure.name: figure for figure in FIGURES}


def figures(evidence: Evidence, limits: CheckLimits | None = None) -> Figures:
    """All figures that the evidence supports. Never raises on missing parts."""
    limits = limits or CheckLimits()
    values: dict[str, float | None] = {}
    values |= _start_up(evidence)
    window = measured(evidence)
    if window is not None:
        values |= _load(window) | times_ms(headline_times(evidence), limits)
        if evidence.load.model == "open" or window.response_time is not None:
            service = times_ms(window_times(window.service_time, evidence), limits)
            values |= {f"service_time_{name}": service.get(name) for name in ("p50_ms", "p99_ms")}
        values |= _sessions(window, limits)
    if evidence.load.tls:
        values |= _handshakes(evidence)
    server = evidence.server_window
    if server is not None:
        values |= _server(server, window, values.get("requests_per_s"))
    values |= _services(evidence.services, window)
    if evidence.warm_up is not None:
        values["time_to_steady_s"] = evidence.warm_up.time_to_steady_s
    values |= _published(evidence)
    reported = evidence.start_up.reported if evidence.start_up is not None else {}
    return Figures(
        **values,
        reported={
            name: reported[key] / divisor for key, (name, divisor) in REPORTED.items() if key in reported
        },
    )


def _load(window: Window) -> dict[str, float | None]:
    right = max(0, window.completed - expectations_missed(window))
    values: dict[str, float | None] = {"requests_per_s": right / window.duration_s}
    busiest = window.busiest_thread_share
    if busiest is not None:
        values["client_cpu_share"] = busiest
        if window.completed:
            used_s = sum(t.cpu_s for t in window.threads if t.cpu_s is not None)
            values["client_cpu_us_per_request"] = used_s / window.completed * 1e6
    return values


def _sessions(window: Window, limits: CheckLimits) -> dict[str, float | None]:
    if window.sessions_begun is None or window.sessions_completed is None:
        return {}
    times = times_ms(plain_times(window.session_time), limits)
    return {
        "sessions_begun": float(window.sessions_begun),
        "sessions_completed": float(window.sessions_completed),
        "sessions_per_s": window.sessions_completed / window.duration_s,
        **{f"session_{name}_ms": times.get(f"{name}_ms") for name in SESSION_TIMES},
    }


def _handshakes(evidence: Evidence) -> dict[str, float | None]:
    totals = evidence.engine.totals if evidence.engine is not None else None
    if totals is None or totals.tls_handshakes is None or not totals.sent:
        return {}
    resumed, handshakes = totals.tls_resumptions, totals.tls_handshakes
    return {
        "handshakes_per_request": handshakes / totals.sent,
        "resumed_share": None if resumed is None or not handshakes else resumed / handshakes,
    }


def times_ms(times: Times | None, limits: CheckLimits | None = None) -> dict[str, float | None]:
    """By figure, in ms; empty without responses. None: too few samples, or among failures."""
    if times is None or not times.responses.count:
        return {}
    confidence = (limits or CheckLimits()).of(SamplesLimits).samples_confidence
    percentiles = {name: percentile.value_ms for name, percentile in supported(times, confidence).items()}
    values: dict[str, float | None] = {name: percentiles.get(name, math.inf) for name in NAMED}
    return {name: None if value == math.inf else value for name, value in values.items()} | {
        "mean_ms": times.mean_ms,
        "min_ms": times.shortest_ms,
        "max_ms": times.longest_ms,
    }


def _server(server: ServerWindow, window: Window | None, rate: float | None) -> dict[str, float | None]:
    values: dict[str, float | None] = {
        "peak_rss_mib": None if server.peak_rss_bytes is None else server.peak_rss_bytes / MIB,
        "threads": None if server.threads_end is None else float(server.threads_end),
    }
    if server.instructions and server.wall_s > 0 and window is not None and window.completed:
        per_s = server.instructions / server.wall_s
        values["server_instructions_per_request"] = per_s * window.duration_s / window.completed
    if server.cpu_s is not None and server.wall_s > 0:
        if server.granted_cpus > 0:
            values["server_cpu_share"] = server.cpu_s / server.wall_s / server.granted_cpus
        if window is not None and window.completed:
            completed_per_s = window.completed / window.duration_s
            values["server_cpu_us_per_request"] = server.cpu_s / server.wall_s / completed_per_s * 1e6
    if rate is not None and server.peak_rss_bytes:
        values["requests_per_s_per_gib"] = rate / (server.peak_rss_bytes / GIB)
    opened, closed = server.jvm_open, server.jvm_close
    if closed is not None:
        values["heap_used_mib"] = closed.heap_used_bytes / MIB
        values["heap_committed_mib"] = closed.heap_committed_bytes / MIB
    if opened is not None and closed is not None:
        wall_s = closed.t_monotonic_s - opened.t_monotonic_s
        if wall_s > 0:
            values["gc_share"] = max(0.0, closed.gc_time_s - opened.gc_time_s) / wall_s
        took_s = compiling_s(opened, closed)
        if took_s is not None and server.cpu_s:
            # The JVM counts elapsed compilation time, which may exceed the CPU time used.
            values["jit_share"] = min(took_s / server.cpu_s, 1.0)
    return values


def _services(services: Sequence[ServiceUse], window: Window | None) -> dict[str, float | None]:
    if not services:
        return {}
    values: dict[str, float | None] = {}
    used = [
        service.cpu_s / service.wall_s for service in services if service.cpu_s is not None and service.wall_s
    ]
    if len(used) == len(services):
        values["service_cpu_share"] = sum(used)
        if window is not None and window.completed:
            values["service_cpu_us_per_request"] = sum(used) * window.duration_s / window.completed * 1e6
    memory = [service.peak_rss_bytes for service in services if service.peak_rss_bytes is not None]
    if len(memory) == len(services):
        values["service_rss_mib"] = sum(memory) / MIB
    return values


def _start_up(evidence: Evidence) -> dict[str, float | None]:
    start = evidence.start_up
    if start is None:
        return {}
    values: dict[str, float | None] = {
        "time_to_listen_s": start.time_to_listen_s,
        "time_to_ready_s": start.time_to_ready_s,
    }
    if start.process is not None:
        values["start_rss_mib"] = start.process.rss_bytes / MIB
        values["start_threads"] = float(start.process.threads)
    if start.jvm is not None:
        values["start_heap_used_mib"] = start.jvm.heap_used_bytes / MIB
        values["start_classes_loaded"] = float(start.jvm.classes_loaded)
    return values


def published_mark(evidence: Evidence) -> Mark | None:
    """The mark of the published protocol: N requests to a fresh process, warm-up included."""
    if evidence.published is not None:
        return evidence.published
    marks = evidence.engine.marks if evidence.engine is not None else ()
    return next((mark for mark in marks if mark.elapsed_ms > 1e-6 and mark.requests > 0), None)


def _published(evidence: Evidence) -> dict[str, float | None]:
    mark = published_mark(evidence)
    if mark is None:
        return {}
    values: dict[str, float | None] = {"published_requests_per_s": mark.requests / (mark.elapsed_ms / 1000)}
    if evidence.load.users:
        values["published_mean_ms"] = evidence.load.users * mark.elapsed_ms / mark.requests
    return values


def cell_figures(evidence: Evidence) -> dict[str, float]:
    window = measured(evidence)
    figures: dict[str, float] = {}
    if window is None:
        return figures
    ended = window.completed + window.failed
    if evidence.load.users and window.duration_s > 0:
        figures["per_user_per_s"] = window.completed / window.duration_s / evidence.load.users
        if window.user_time_s is not None:
            figures["users_simulated"] = window.user_time_s / window.duration_s
    if window.completed and window.connections_opened is not None:
        figures["connections_per_request"] = window.connections_opened / window.completed
    if ended:
        figures["failed_share"] = window.failed / ended
    figures["completed"] = float(window.completed)
    if evidence.load.model == "open" and window.offered is not None:
        figures["offered_requests"] = float(window.offered)
        figures["blocked"] = float(window.blocked or 0)
        figures["due_unsent"] = float(window.due_unsent or 0)
    if window.think_count and window.think_drawn_sum_s and window.think_actual_sum_s is not None:
        figures["think_actual_share"] = window.think_actual_sum_s / window.think_drawn_sum_s
    return figures
