"""The engine's events (docs/engine.md) as values. A field that could not be read is None, never zero."""

from __future__ import annotations

import re

from pydantic import Base64Bytes, Field

from prony.evidence import counts


class Histogram(counts.EngineRecord):
    """An HdrHistogram (V2 compressed, base64), three significant digits, in nanoseconds."""

    unit: str = "ns"
    count: int
    mean_ns: float | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    saturated: int = 0
    v2: str


class Counters(counts.EngineRecord):
    """Counted over the whole run or over the window; keys as in docs/engine.md."""

    sent: int = 0
    completed: int = 0
    failed: int = 0
    abandoned: int = 0
    errors: dict[str, int] = Field(default_factory=dict)
    error_reasons: dict[str, str] = Field(default_factory=dict)
    """The first message of each kind of error."""
    first_head: str | None = None
    """Raw head of a thread's first response."""
    status: dict[str, int] = Field(default_factory=dict)
    answers: tuple[counts.ResponseCount, ...] = ()
    answers_other: int = 0
    bytes_sent: int | None = None
    bytes_received: int | None = None
    connect_attempts: int | None = None
    connections_opened: int | None = None
    connections_closed_by_server: int | None = None
    connections_closed_by_client: int | None = None
    connections_closed_first_by_server: int | None = None
    addresses: tuple[counts.AddressCounts, ...] = ()
    tls_handshakes: int | None = None
    tls_resumptions: int | None = None
    tls_agreed: tuple[counts.TlsAgreed, ...] = ()
    connect_time: Histogram | None = None
    """From the attempt to connect to the connection."""
    tls_time: Histogram | None = None
    """From the connection to the end of the TLS handshake."""
    service_time_sum_s: float | None = None
    lost_time_sum_s: float | None = None
    """Σ time in flight of requests that ended without a response, timeouts included."""
    in_flight_integral_s: float | None = None
    in_flight_age_open_s: float | None = None
    """Σ time since their sends of the requests in flight at the opening ..."""
    in_flight_age_close_s: float | None = None
    """... and at the close."""
    clipped_cycle_s: float | None = None
    """User time within the span: residence from the send, think times and pauses; with connecting where
    `clipped_connect_s` is None.
    """
    clipped_connect_s: float | None = None
    """Connecting, TLS included, until a request could be sent."""
    clipped_turnaround_s: float | None = None
    """The client's own time before a send."""
    clipped_back_off_s: float | None = None
    """After failed attempts to connect. The four together are `users_integral_s`."""
    turnaround_sum_s: float | None = None
    turnaround_count: int | None = None
    turnaround: Histogram | None = None
    """From the end of a user's last response, think time or connect to its next send."""
    users: int | None = None
    users_integral_s: float | None = None
    """∫ users dt, counted independently of cycles."""
    think_drawn_sum_s: float | None = None
    think_actual_sum_s: float | None = None
    think_count: int | None = None
    think_overshoot: Histogram | None = None
    eaddrnotavail: int | None = None
    emfile: int | None = None
    submissions_put_off: int | None = None
    """Number of sends that the kernel deferred."""
    cookies_dropped: int | None = None
    """Cookies too long to keep, or evicted by newer cookies."""
    offered: int | None = None
    """Open loop: requests due."""
    due_unsent: int | None = None
    """Open loop: due and never sent; censored samples."""
    blocked: int | None = None
    """Open loop: arrivals refused by the cap on users."""
    sessions_begun: int | None = None
    """Open loop of sessions: those that were admitted ..."""
    sessions_completed: int | None = None
    """... and those that completed."""
    http2: counts.Http2Counts | None = None

    @property
    def user_time_s(self) -> float | None:
        """User-seconds in flight, thinking, connecting or about to send, without back-off. None: unread."""
        if self.clipped_cycle_s is None:
            return None
        return self.clipped_cycle_s + (self.clipped_connect_s or 0.0) + (self.clipped_turnaround_s or 0.0)


class StepFigures(counts.EngineRecord):
    """The requests of a step over the window."""

    scenario: str
    name: str
    completed: int = 0
    failed: int = 0
    status: dict[str, int] = Field(default_factory=dict)
    service_time: Histogram | None = None
    response_time: Histogram | None = None
    """As in `Window`."""


class Window(Counters):
    """The measured part of the run."""

    opened_ms: float
    duration_s: float
    complete: bool = True
    service_time: Histogram | None = None
    response_time: Histogram | None = None
    """Closed loop, None unless requests opened connections: from the start of the connect for those that did;
    includes connects that timed out.
    """
    latency: Histogram | None = None
    """Open loop: from the intended send, connecting included."""
    steps: tuple[StepFigures, ...] = ()
    """By step name; empty for a single step."""
    bodies: tuple[counts.BodyCount, ...] = ()
    """Of 1 in 256 right responses of at most 64 KiB; empty in older evidence."""
    urls: tuple[counts.UrlCount, ...] = ()
    """Of steps whose path takes values of a feeder."""
    transactions: tuple[StepFigures, ...] = ()
    """By name of a transaction: sums of its requests' service times."""
    threads: tuple[counts.EngineThread, ...] = ()
    gaps: tuple[counts.Gap, ...] = ()
    gaps_total: int | None = 0
    """None: not every engine reported gaps, and `gaps` is empty."""
    send_lag: Histogram | None = None
    """Open model: actual minus intended send."""
    session_time: Histogram | None = None
    """From a user's intended arrival to the end of the last response; of completed sessions."""
    send_time: Histogram | None = None
    """With `parts`, for answered requests: until the kernel took the last byte of the request ..."""
    wait_time: Histogram | None = None
    """... then to the first byte of the response ..."""
    receive_time: Histogram | None = None
    """... and to its last byte; the three add up to the service time."""
    slowest: tuple[tuple[int, int], ...] | None = None
    """The slowest requests, slowest first: (ns from the start of the run to the send, service time, ns)."""
    arrival_gaps: int | None = None
    """Poisson arrivals: number of tested gaps between sends ..."""
    arrival_gaps_ks: float | None = None
    """... and their Kolmogorov-Smirnov distance from the exponential distribution of the requested rate."""
    arrival_gaps_ks_from: tuple[tuple[float, float], ...] = ()
    """(u, distance) by u: the distance among gaps longer than the u-quantile of a Poisson process."""

    @property
    def busiest_thread_share(self) -> float | None:
        """None unless all threads were read."""
        shares = [share for thread in self.threads if (share := thread.busy_share) is not None]
        return max(shares) if shares and len(shares) == len(self.threads) else None


class IntervalRow(counts.EngineRecord):
    """A second of the run over all threads; `t_ms` is the row's end, from the start of the run.

    In runs over half an hour a minute, with medians of its seconds as percentiles.
    """

    t_ms: float
    duration_ms: float
    in_window: bool = False
    completed: int
    failed: int = 0
    errors: dict[str, int] = Field(default_factory=dict)
    bytes_received: int | None = None
    in_flight: int | None = None
    users: int | None = None
    connections_open: int | None = None
    connections_opened: int | None = None
    mean_ns: float | None = None
    p50_ns: int | None = None
    p90_ns: int | None = None
    p99_ns: int | None = None
    max_ns: int | None = None
    client_cpu: float | None = None
    loop_lag_p99_ns: int | None = None
    offered: int | None = None
    """Open loop: requests that became due in this row."""
    sent: int | None = None
    latency_p50_ns: int | None = None
    """Open loop: from the intended send; the percentiles above are of service times. Over several hosts the
    mean weighted by requests, which only compares seconds.
    """
    latency_p99_ns: int | None = None
    send_lag_p99_ns: int | None = None
    """Open loop: actual minus intended send. Over several hosts, or a minute, the largest."""

    @property
    def completed_per_s(self) -> float:
        return self.completed / (self.duration_ms / 1000) if self.duration_ms > 0 else 0.0


class Mark(counts.EngineRecord):
    """State when this many requests had completed since the start of the run."""

    requests: int
    elapsed_ms: float
    mean_ns: float | None = None
    p50_ns: int | None = None
    p99_ns: int | None = None
    errors: int = 0


class ReadyThread(counts.EngineRecord):
    """Placement of a measuring thread."""

    cpu: int | None = None
    pinned: bool | None = None
    realtime: bool | None = None
    """Whether it has real-time priority."""


class TlsReady(counts.EngineRecord):
    """TLS settings of the run."""

    insecure: bool = False
    trust: str = "system"
    server_name: str | None = None
    resumption: bool | None = None
    sessions: str | None = None
    alpn: tuple[str, ...] = ()
    client_certificate: bool = False


class Ready(counts.EngineRecord):
    """State of the engine before its first send."""

    version: str
    driver: str
    driver_reason: str = ""
    pid: int
    addresses: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    """Further addresses of the same names, excluded: no response on their family."""
    transport: str | None = None
    """`tcp`, or `unix` (without ports)."""
    injected_faults: tuple[str, ...] = ()
    """Injected faults (docs/engine.md); only in the self-test."""
    emulated: str | None = None
    """Text, where the engine's architecture is not the kernel's."""
    tls: TlsReady | None = None
    threads: tuple[ReadyThread, ...] = ()
    started_unix_ns: int
    started_monotonic_ns: int


class LogReport(counts.EngineRecord):
    """Result and cost of the request log. `rows_lost` is 0 without an `error`."""

    path: str
    rows: int
    bytes: int
    rows_lost: int
    error: str | None = None
    waited_s: float
    """Time in which measuring threads waited for the writer."""
    writer_cpu_s: float


class ScriptReport(counts.EngineRecord):
    """Result of a script."""

    threads: int = 1
    dynamic: bool = False
    """Whether it was called for every send; else its request was fixed before the load."""
    pipeline: int = 1
    """Requests in its first send."""
    error: str | None = None
    """File, line and reason that ended the run."""
    counters: dict[str, int] = Field(default_factory=dict)
    """Counters of a script with blocking calls."""
    rates: dict[str, int] = Field(default_factory=dict)
    """Counts of the events whose rate it requested."""
    histograms: dict[str, tuple[tuple[float, int], ...]] = Field(default_factory=dict)
    """(value rounded to a tenth, count) of its histograms."""
    printed_setup: str = ""
    printed_run: str = ""
    printed_done: str = ""
    printed_left_out: bool = False


REQUEST_FAILED = "request_failed"
"""Reason of a run ended by a failed request, as its step requests."""


def headers_of(head: str) -> dict[str, str]:
    """Header name in lower case -> value of a raw response head; repeated headers are joined."""
    headers: dict[str, str] = {}
    for line in re.sub(r"\r?\n[ \t]+", " ", head).split("\n")[1:]:
        name, colon, value = line.strip(" \t\r").partition(":")
        name, value = name.rstrip(" \t").lower(), value.lstrip(" \t")
        if colon:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


class RecordedResponse(counts.EngineRecord):
    """A response of a load with `responses` (docs/engine.md); not stored."""

    step_index: int
    status: int
    error: str | None = None
    """Kind of error (docs/engine.md); None: as declared."""
    took_ms: float
    ended_monotonic_ns: int
    keep_alive: bool
    head: str
    body_bytes: int
    body: Base64Bytes | None = None
    """None if too long to keep."""


class EngineReport(counts.EngineRecord):
    """A run of the engine."""

    ready: Ready
    rows: tuple[IntervalRow, ...] = ()
    marks: tuple[Mark, ...] = ()
    reason: str
    elapsed_ms: float
    totals: Counters
    window: Window | None = None
    log: LogReport | None = None
    """None without a request log."""
    reader_cpu_s: float | None = None
    """CPU time of the thread that read streamed files for bodies; None without such files."""
    rates: tuple[tuple[int, int], ...] | None = None
    """(requests per second, count) of a group over spans."""
    values: dict[str, str] = Field(default_factory=dict)
    """Last captured value of each requested name."""
    script: ScriptReport | None = None
    responses: tuple[RecordedResponse, ...] = Field(default=(), exclude=True)
    """Empty unless requested."""
