"""What the engine counts, and its threads. A field that could not be read is None, never zero."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from prony.evidence.base import Record


class EngineRecord(Record):
    """A value of the engine; unknown keys of newer engines are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")


class ResponseCount(EngineRecord):
    """Number of responses with this status and body length."""

    status: int
    body_bytes: int
    count: int


class BodyCount(EngineRecord):
    """Number of sampled responses of a step with this body."""

    scenario: str
    step: str
    sha256: str | None
    """Its first 16 digits; None: all beyond the 16 bodies counted individually."""
    count: int


class UrlCount(EngineRecord):
    """Distinct paths of a step, with their queries."""

    scenario: str
    step: str
    rows: int
    """Of the largest feeder in its path."""
    distinct: int | None
    """None: at least 1,024."""


class Gap(EngineRecord):
    """A span without completions despite requests in flight; `start_ms` from the start of the run."""

    start_ms: float
    duration_ms: float
    in_flight: int


class EngineThread(EngineRecord):
    """A measuring thread over the window. Loop lag: age of an event when handled, from the wake-up. Receive
    delay: from the kernel's time stamp of a read's last packet to the response's receive time.
    """

    cpu: int | None = None
    pinned: bool | None = None
    cpu_s: float | None = None
    wall_s: float | None = None
    polled_s: float = 0.0
    """Part of `cpu_s` spent polling the clock for the next arrival (open loop)."""
    run_delay_s: float | None = None
    """Runnable and not running, by the kernel."""
    timeslices: int | None = None
    """Number of times it was scheduled."""
    loops: int | None = None
    loop_lag_p50_ns: int | None = None
    loop_lag_p99_ns: int | None = None
    loop_lag_max_ns: int | None = None
    reads: int | None = None
    """Number of reads that returned bytes."""
    reads_stamped: int | None = None
    """Reads with a receive delay; None or 0 without kernel time stamps."""
    receive_delay_mean_ns: int | None = None
    receive_delay_p50_ns: int | None = None
    receive_delay_p99_ns: int | None = None
    receive_delay_max_ns: int | None = None
    gaps: tuple[Gap, ...] = ()
    """The longest gaps of this thread."""
    gaps_total: int = 0

    @property
    def busy_share(self) -> float | None:
        """Share of a CPU that its work took, without polling."""
        if self.cpu_s is None or not self.wall_s:
            return None
        return max(0.0, self.cpu_s - self.polled_s) / self.wall_s


class TlsAgreed(EngineRecord):
    """Parameters agreed by this many handshakes."""

    version: str
    cipher_suite: str
    alpn: str | None = None
    count: int


class AddressCounts(EngineRecord):
    """Counts for an address of the target."""

    address: str
    connect_attempts: int | None = None
    connections_opened: int | None = None
    sent: int | None = None


class Http2Counts(EngineRecord):
    """HTTP/2: streams, and waits in the client."""

    streams_opened: int = 0
    streams_refused: int = 0
    streams_unprocessed: int = 0
    """Requests that a GOAWAY left unprocessed."""
    resets_received: dict[str, int] = Field(default_factory=dict)
    """RST_STREAM by code; the next three likewise."""
    stream_errors: dict[str, int] = Field(default_factory=dict)
    goaways_received: dict[str, int] = Field(default_factory=dict)
    connection_errors: dict[str, int] = Field(default_factory=dict)
    pings_received: int = 0
    settings_received: int = 0
    header_list_bytes_sent: int = 0
    """Before compression (RFC 9113, 6.5.2) ..."""
    header_block_bytes_sent: int = 0
    """... and after it."""
    header_list_bytes_received: int = 0
    header_block_bytes_received: int = 0
    header_fields_received: int = 0
    """In the lists received; each counts 32 bytes in addition to name and value."""
    max_concurrent_streams: int | None = None
    """The smallest value of any server."""
    stream_waits: int = 0
    stream_wait_sum_s: float = 0.0
    stream_wait_max_ms: float = 0.0
    send_blocks: int = 0
    """Bodies that waited for the server's windows."""
    send_blocked_sum_s: float = 0.0
    send_blocked_max_ms: float = 0.0
    receive_window_used_up: int = 0
