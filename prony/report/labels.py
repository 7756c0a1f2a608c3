"""How a figure is called, scaled and rounded in a report, where the judge's FIGURES do not say it."""

from __future__ import annotations

from dataclasses import dataclass

from prony.judge.figures import FIGURE
from prony.report.wording import ABSENT, number

STEADY_OVER_PUBLISHED = "steady_over_published"
"""Steady requests/s ÷ what the published protocol would have printed, both of the same trial."""


SERVICE_TIMES = ("service_time_p50_ms", "service_time_p99_ms")
"""Marks times from another start: the intended send, or the start of the connect."""
JVM = ("jvm_memory_used_mb", "jvm_classes_loaded", "jvm_threads_live")
PERCENTILES = ("p50_ms", "p90_ms", "p99_ms", "p999_ms")
SESSIONS = ("sessions_begun", "sessions_completed")
SESSION_TIMES = ("session_p50_ms", "session_p95_ms", "session_p99_ms")
OFFERED = ("offered_requests", "completed", "blocked", "due_unsent")
WINDOW = "over the measured window"
COST = (
    "server_cpu_us_per_request",
    "server_instructions_per_request",
    "peak_rss_mib",
    "requests_per_s_per_gib",
)
LAYOUT: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Start-up", "a fresh process, before any load", (*JVM, "time_to_ready_s", "start_rss_mib")),
    ("Steady load", WINDOW, ("requests_per_s", "mean_ms", *PERCENTILES, *SERVICE_TIMES, "time_to_steady_s")),
    ("Offered", WINDOW, (*OFFERED, "failed_share")),
    (
        "Sessions",
        "from a user's arrival to the last response",
        (*SESSIONS, *SESSION_TIMES, "session_min_ms", "session_max_ms"),
    ),
    (
        "Connections",
        "over the whole run",
        ("connections_per_request", "handshakes_per_request", "resumed_share"),
    ),
    ("Cost", WINDOW, COST),
    (
        "Backing services",
        "not included in the servers' figures",
        ("service_cpu_us_per_request", "service_cpu_share", "service_rss_mib"),
    ),
    (
        "As the published protocol would print",
        "{n} requests to a fresh process",
        ("published_requests_per_s", "published_mean_ms", STEADY_OVER_PUBLISHED),
    ),
)
"""What a table of servers shows: title, note, figures of each of its sections."""


@dataclass(frozen=True, slots=True)
class Label:
    """A figure as printed: stored value × `scale`."""

    text: str
    unit: str = ""
    decimals: int = 0
    scale: float = 1.0
    suffix: str = ""


SHORT: dict[str, Label] = {
    "requests_per_s": Label("requests/s"),
    "mean_ms": Label("mean time", "ms", 3),
    "peak_rss_mib": Label("peak RSS", "MiB"),
    "requests_per_s_per_gib": Label("requests/s per GiB"),
    "time_to_ready_s": Label("time to ready", "s", 2),
    "time_to_steady_s": Label("time to steady", "s", 0),
    "start_rss_mib": Label("RSS at ready", "MiB"),
    "server_cpu_share": Label("server CPU in use", "%", 0, 100),
    "client_cpu_share": Label("client CPU in use", "%", 0, 100),
    "resumed_share": Label("TLS sessions resumed", "%", 1, 100),
    "service_cpu_us_per_request": Label("CPU per request", "µs", 1),
    "service_cpu_share": Label("CPU in use", "% of a CPU", 0, 100),
    "service_rss_mib": Label("peak RSS", "MiB"),
    "gc_share": Label("garbage collection", "%", 2, 100),
    "jit_share": Label("JIT compilation", "%", 2, 100),
    "published_requests_per_s": Label("requests/s"),
    "published_mean_ms": Label("mean time", "ms", 3),
    STEADY_OVER_PUBLISHED: Label("steady ÷ published", "", 1, suffix="×"),
    "per_user_per_s": Label("requests/s per user", "", 2),
    "users_simulated": Label("users simulated", "", 1),
    "connections_per_request": Label("connections per request", "", 3),
    "handshakes_per_request": Label("TLS handshakes per request", "", 3),
    "think_actual_share": Label("think time, actual ÷ target", "%", 1, 100),
    "completed": Label("requests completed"),
    "offered_requests": Label("requests offered"),
    "blocked": Label("blocked arrivals"),
    "due_unsent": Label("due, unsent"),
    "failed_share": Label("failed", "%", 2, 100),
    "jvm_memory_used_mb": Label("jvm.memory.used", "MB", 1),
    "jvm_classes_loaded": Label("jvm.classes.loaded"),
    "jvm_threads_live": Label("jvm.threads.live"),
}


CELL_UNITS = {
    "per_user_per_s": "1/s",
    "users_simulated": "users",
    "connections_per_request": "1/request",
    "think_actual_share": "of target",
    "failed_share": "of requests",
    "completed": "requests",
    "offered_requests": "requests",
    "blocked": "arrivals",
    "due_unsent": "requests",
}
"""Of the figures that the judge does not list, as they are stored."""


def stored_unit(figure: str) -> str:
    """The unit of the stored value, which a label may scale."""
    known = FIGURE.get(figure)
    return known.unit if known is not None else CELL_UNITS.get(figure, unit_of(figure))


BOUND_WORDS = {
    "client": "the load generator",
    "flow-control": "HTTP/2 flow control",
    "network": "the network",
    "offered-load": "the offered load",
    "server-cpu": "the server's CPU",
    "server-thread": "one thread of the server",
    "service-cpu": "a service's CPU",
    "streams": "HTTP/2 streams",
}
"""What bound a throughput, by its code."""


def label(figure: str) -> Label:
    """The label of a figure; an unknown figure keeps its name."""
    if figure in SHORT:
        return SHORT[figure]
    known = FIGURE.get(figure)
    return Label(known.label, known.unit, known.decimals) if known else Label(figure, "", 2)


def label_of(figure: str) -> str:
    return label(figure).text


def unit_of(figure: str) -> str:
    """Its unit; empty when the label says it."""
    return label(figure).unit


def named(figure: str) -> str:
    """Name and unit: mean time, ms."""
    known = label(figure)
    return f"{known.text}, {known.unit}" if known.unit else known.text


def rounded(figure: str, value: float | None) -> str:
    """The value in the label's unit, with the decimals that the figure deserves."""
    known = label(figure)
    text = number(None if value is None else value * known.scale, known.decimals)
    return text if text == ABSENT else text + known.suffix
