"""What the engine said: the events of docs/engine.md as values.

A field that an engine could not read is None, never a made-up zero.
"""

from __future__ import annotations

import re

from pydantic import Base64Bytes, ConfigDict, Field

from prony.evidence.base import Record


class EngineRecord(Record):
    """An engine value; a newer engine may add keys, which are kept out of the way."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")


class Histogram(EngineRecord):
    """An HdrHistogram (V2 compressed, base64), three significant digits, in nanoseconds."""

    unit: str = "ns"
    count: int
    mean_ns: float | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    saturated: int = 0
    v2: str


class ResponseCount(EngineRecord):
    """How many responses had this status and body length."""

    status: int
    body_bytes: int
    count: int


class Gap(EngineRecord):
    """A span in which nothing completed although requests were in flight (start is from the start of the
    run).
    """

    start_ms: float
    duration_ms: float
    in_flight: int


class EngineThread(EngineRecord):
    """One measuring thread over the window. Loop lag: how old an event may be before it is looked at, from
    the wake-up on. Receive delay: from the arrival of a read's last packet, as the kernel stamped it, to the
    receive time that the response is given.
    """

    cpu: int | None = None
    pinned: bool | None = None
    cpu_s: float | None = None
    wall_s: float | None = None
    polled_s: float = 0.0
    """Of `cpu_s`: looked for an arrival that was not due yet, with nothing else to do (open load)."""
    run_delay_s: float | None = None
    """Runnable and not running, as the kernel counts it."""
    timeslices: int | None = None
    """How often it was put on a CPU."""
    loops: int | None = None
    loop_lag_p50_ns: int | None = None
    loop_lag_p99_ns: int | None = None
    loop_lag_max_ns: int | None = None
    reads: int | None = None
    """How often bytes were taken from a connection."""
    reads_stamped: int | None = None
    """Those of them that have a receive delay; None or 0 where the kernel gave no time."""
    receive_delay_mean_ns: int | None = None
    receive_delay_p50_ns: int | None = None
    receive_delay_p99_ns: int | None = None
    receive_delay_max_ns: int | None = None
    gaps: tuple[Gap, ...] = ()
    """The longest spans in which this thread completed nothing although it had requests in flight."""
    gaps_total: int = 0

    @property
    def busy_share(self) -> float | None:
        """Share of a CPU that its work took; time in which it only watched the clock is free for work."""
        if self.cpu_s is None or not self.wall_s:
            return None
        return max(0.0, self.cpu_s - self.polled_s) / self.wall_s


class TlsAgreed(EngineRecord):
    """What this many handshakes ended with."""

    version: str
    cipher_suite: str
    alpn: str | None = None
    count: int


class AddressCounts(EngineRecord):
    """What went to one address of the target."""

    address: str
    connect_attempts: int | None = None
    connections_opened: int | None = None
    sent: int | None = None


class Http2Counts(EngineRecord):
    """HTTP/2: streams, and what held requests back in the client."""

    streams_opened: int = 0
    streams_refused: int = 0
    streams_unprocessed: int = 0
    """Requests that GOAWAY said were not looked at."""
    resets_received: dict[str, int] = Field(default_factory=dict)
    """RST_STREAM of the server, by its code; the next three likewise."""
    stream_errors: dict[str, int] = Field(default_factory=dict)
    goaways_received: dict[str, int] = Field(default_factory=dict)
    connection_errors: dict[str, int] = Field(default_factory=dict)
    pings_received: int = 0
    settings_received: int = 0
    header_list_bytes_sent: int = 0
    """Before compression, as RFC 9113 counts it (section 6.5.2) ..."""
    header_block_bytes_sent: int = 0
    """... and after it."""
    header_list_bytes_received: int = 0
    header_block_bytes_received: int = 0
    header_fields_received: int = 0
    """Of the lists received; each counts 32 bytes beside its name and value."""
    max_concurrent_streams: int | None = None
    """The smallest that a server named."""
    stream_waits: int = 0
    stream_wait_sum_s: float = 0.0
    stream_wait_max_ms: float = 0.0
    send_blocks: int = 0
    """Bodies that waited for the server's windows."""
    send_blocked_sum_s: float = 0.0
    send_blocked_max_ms: float = 0.0
    receive_window_used_up: int = 0


class Counters(EngineRecord):
    """Counted over the whole run or over the window; keys as in docs/engine.md."""

    sent: int = 0
    completed: int = 0
    failed: int = 0
    abandoned: int = 0
    errors: dict[str, int] = Field(default_factory=dict)
    error_reasons: dict[str, str] = Field(default_factory=dict)
    """In words, the first reason found for a kind of error."""
    first_head: str | None = None
    """The head of a response as it came, the first one of a thread."""
    status: dict[str, int] = Field(default_factory=dict)
    answers: tuple[ResponseCount, ...] = ()
    answers_other: int = 0
    bytes_sent: int | None = None
    bytes_received: int | None = None
    connect_attempts: int | None = None
    connections_opened: int | None = None
    connections_closed_by_server: int | None = None
    connections_closed_by_client: int | None = None
    addresses: tuple[AddressCounts, ...] = ()
    tls_handshakes: int | None = None
    tls_resumptions: int | None = None
    tls_agreed: tuple[TlsAgreed, ...] = ()
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
    """Time of all users within the span: residence from the send, think times and pauses. Engines that did
    not report `clipped_connect_s` counted connecting in.
    """
    clipped_connect_s: float | None = None
    """From the begin of connecting, TLS included, until a request could be sent."""
    clipped_turnaround_s: float | None = None
    """The client's own time before a send."""
    clipped_back_off_s: float | None = None
    """After failed attempts to connect. The four together are `users_integral_s`."""
    turnaround_sum_s: float | None = None
    turnaround_count: int | None = None
    turnaround: Histogram | None = None
    """From the end of what a user did before (last response, think time, connecting) to its next send."""
    users: int | None = None
    users_integral_s: float | None = None
    """∫ users dt, counted apart from their cycles."""
    think_drawn_sum_s: float | None = None
    think_actual_sum_s: float | None = None
    think_count: int | None = None
    think_overshoot: Histogram | None = None
    eaddrnotavail: int | None = None
    emfile: int | None = None
    submissions_put_off: int | None = None
    """How often the kernel took nothing from the client for the moment."""
    cookies_dropped: int | None = None
    """Cookies that were too long for the client to keep, or made room for newer ones."""
    offered: int | None = None
    """Open model: requests that were due."""
    due_unsent: int | None = None
    """Open model: due and never sent; censored samples."""
    blocked: int | None = None
    """Open model: arrivals refused by the cap on users."""
    sessions_begun: int | None = None
    """Open model of users who walk a scenario: those who found a place ..."""
    sessions_completed: int | None = None
    """... and those of them who came to its end."""
    http2: Http2Counts | None = None

    @property
    def user_time_s(self) -> float | None:
        """User-seconds in which users did what they are there for: in flight, thinking, connecting, or about
        to send; not backing off. None where cycles were not reported.
        """
        if self.clipped_cycle_s is None:
            return None
        return self.clipped_cycle_s + (self.clipped_connect_s or 0.0) + (self.clipped_turnaround_s or 0.0)


class StepFigures(EngineRecord):
    """The requests of one step of a scenario over the window."""

    scenario: str
    name: str
    completed: int = 0
    failed: int = 0
    status: dict[str, int] = Field(default_factory=dict)
    service_time: Histogram | None = None
    response_time: Histogram | None = None
    """As that of the window."""


class Window(Counters):
    """The measured part of the run."""

    opened_ms: float
    duration_s: float
    complete: bool = True
    service_time: Histogram | None = None
    response_time: Histogram | None = None
    """Closed model, None unless connections were opened for requests: of the same requests, but from the
    begin of connecting of those that opened one; and of attempts to connect that timed out.
    """
    latency: Histogram | None = None
    """Open model: from the intended send, connecting included."""
    steps: tuple[StepFigures, ...] = ()
    """By step name; empty when the workload has a single one."""
    transactions: tuple[StepFigures, ...] = ()
    """By the name of a transaction: the sums of the service times of its requests."""
    threads: tuple[EngineThread, ...] = ()
    gaps: tuple[Gap, ...] = ()
    gaps_total: int | None = 0
    """None: an engine of several did not tell when it was silent, and `gaps` is empty."""
    send_lag: Histogram | None = None
    """Open model: actual minus intended send."""
    session_time: Histogram | None = None
    """From a user's intended arrival to the end of the last response; of completed sessions."""
    send_time: Histogram | None = None
    """With `parts`, of answered requests: until the kernel had taken the last byte of the request ..."""
    wait_time: Histogram | None = None
    """... from there to the first byte of the response ..."""
    receive_time: Histogram | None = None
    """... and from there to its last byte: together they are the service time."""
    slowest: tuple[tuple[int, int], ...] | None = None
    """The slowest requests where they were asked for, slowest first: ns from the start of the run to the
    send, and the service time in ns.
    """
    arrival_gaps: int | None = None
    """Poisson arrivals: how many gaps between sends were tested ..."""
    arrival_gaps_ks: float | None = None
    """... and the Kolmogorov-Smirnov distance of their distribution from the exponential one of the asked
    rate.
    """
    arrival_gaps_ks_from: tuple[tuple[float, float], ...] = ()
    """(u, distance): the distance looked for only among gaps longer than the shortest u of a Poisson process,
    by u.
    """

    @property
    def busiest_thread_share(self) -> float | None:
        """CPU share of the busiest thread. One that cannot be read may be the busiest: some of them prove
        nothing.
        """
        shares = [share for thread in self.threads if (share := thread.busy_share) is not None]
        return max(shares) if shares and len(shares) == len(self.threads) else None


class IntervalRow(EngineRecord):
    """One second of the run, all threads together (t_ms is the row's end, from the start of the run).

    A minute of it where the run is longer than half an hour: percentiles are then medians of its seconds.
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
    """Open model: requests that became due in this row."""
    sent: int | None = None
    latency_p50_ns: int | None = None
    """Open model: from the intended send; the percentiles above are of service times. Of several hosts the
    mean by requests: it says how seconds differ, and is no percentile of them all.
    """
    latency_p99_ns: int | None = None
    send_lag_p99_ns: int | None = None
    """Open model: actual minus intended send. Of several hosts, and of a minute, the largest."""

    @property
    def completed_per_s(self) -> float:
        """Completed requests per second of this row's own duration."""
        return self.completed / (self.duration_ms / 1000) if self.duration_ms > 0 else 0.0


class Mark(EngineRecord):
    """The moment at which this many requests had completed since the start of the run."""

    requests: int
    elapsed_ms: float
    mean_ns: float | None = None
    p50_ns: int | None = None
    p99_ns: int | None = None
    errors: int = 0


class ReadyThread(EngineRecord):
    """Where a measuring thread runs."""

    cpu: int | None = None
    pinned: bool | None = None
    realtime: bool | None = None
    """Whether it goes before every ordinary thread of its CPU."""


class TlsReady(EngineRecord):
    """What the handshakes of the run ask for."""

    insecure: bool = False
    trust: str = "system"
    server_name: str | None = None
    resumption: bool | None = None
    alpn: tuple[str, ...] = ()
    client_certificate: bool = False


class Ready(EngineRecord):
    """The engine is about to send."""

    version: str
    driver: str
    driver_reason: str = ""
    pid: int
    addresses: tuple[str, ...] = ()
    transport: str | None = None
    """`tcp`, or `unix`: then connections have no ports that could run out."""
    injected_faults: tuple[str, ...] = ()
    """Faults that the engine was told to have (docs/engine.md); empty but in the self-test."""
    emulated: str | None = None
    """What runs on what, where the engine is built for another architecture than the kernel's."""
    tls: TlsReady | None = None
    threads: tuple[ReadyThread, ...] = ()
    started_unix_ns: int
    started_monotonic_ns: int


class LogReport(EngineRecord):
    """What became of the request log, and what it cost. `rows_lost` is 0 unless `error` says why not."""

    path: str
    rows: int
    bytes: int
    rows_lost: int
    error: str | None = None
    waited_s: float
    """How long the measuring threads waited for the writer."""
    writer_cpu_s: float


class ScriptReport(EngineRecord):
    """What a script did beside its requests."""

    threads: int = 1
    dynamic: bool = False
    """It was called for every send; otherwise its request was fixed before the load."""
    pipeline: int = 1
    """Requests in the first piece that it sent."""
    error: str | None = None
    """File, line and reason; the run ended with it."""
    counters: dict[str, int] = Field(default_factory=dict)
    """What a script that blocks call counted itself."""
    rates: dict[str, int] = Field(default_factory=dict)
    """How often each thing happened of which it asked for the rate."""
    histograms: dict[str, tuple[tuple[float, int], ...]] = Field(default_factory=dict)
    """Values that it gave, rounded to a tenth, each with how often."""
    printed_setup: str = ""
    printed_run: str = ""
    printed_done: str = ""
    printed_left_out: bool = False


REQUEST_FAILED = "request_failed"
"""The reason of a run that a failed request has ended, as its step says."""


def headers_of(head: str) -> dict[str, str]:
    """Header name in lower case -> value, of a response's head as it came; those of a repeated header are
    joined.
    """
    found: dict[str, str] = {}
    for line in re.sub(r"\r?\n[ \t]+", " ", head).split("\n")[1:]:
        name, colon, value = line.strip(" \t\r").partition(":")
        name, value = name.rstrip(" \t").lower(), value.lstrip(" \t")
        if colon:
            found[name] = f"{found[name]}, {value}" if name in found else value
    return found


class ToldResponse(EngineRecord):
    """One response of a load that asked for them (docs/engine.md: `responses`); none is stored."""

    step_index: int
    status: int
    error: str | None = None
    """A kind of error of docs/engine.md; None: as declared."""
    took_ms: float
    ended_monotonic_ns: int
    keep_alive: bool
    head: str
    body_bytes: int
    body: Base64Bytes | None = None
    """None: too long to be kept."""


class EngineReport(EngineRecord):
    """Everything one run of the engine said."""

    ready: Ready
    rows: tuple[IntervalRow, ...] = ()
    marks: tuple[Mark, ...] = ()
    reason: str
    elapsed_ms: float
    totals: Counters
    window: Window | None = None
    log: LogReport | None = None
    """None unless a request log was asked for."""
    rates: tuple[tuple[int, int], ...] | None = None
    """Requests per second of one group over one span, each with how often it was seen."""
    values: dict[str, str] = Field(default_factory=dict)
    """What was last captured of each name that was asked for."""
    script: ScriptReport | None = None
    responses: tuple[ToldResponse, ...] = Field(default=(), exclude=True)
    """Empty unless they were asked for."""
