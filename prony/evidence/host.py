"""What the host was and did."""

from __future__ import annotations

from pydantic import Field

from prony.evidence.base import Record


class Fingerprint(Record):
    """The host and its software; two results are comparable as they stand only when `key` is equal."""

    key: str
    """A short hash over the fields that can change a figure (not over host name, uptime or free memory)."""
    hostname: str
    architecture: str
    cpu_model: str
    cpus: int
    cores: int | None = None
    sockets: int | None = None
    smt: bool | None = None
    numa_nodes: int | None = None
    cpu_max_mhz: float | None = None
    governor: str | None = None
    turbo: bool | None = None
    caches: dict[str, str] = Field(default_factory=dict)
    memory_bytes: int
    swap_bytes: int | None = None
    kernel: str
    os: str
    hypervisor: str | None = None
    clocksource: str | None = None
    mitigations: str | None = None
    thp: str | None = None
    cgroup_cpu_quota: float | None = None
    software: dict[str, str] = Field(default_factory=dict)
    """Versions that matter: prony, engine, python, jdk …"""
    sysctls: dict[str, str] = Field(default_factory=dict)
    hosts: dict[str, str] = Field(default_factory=dict)
    """Of a trial on several hosts, by name: role, weight, fingerprint and link of each. The other fields are
    then those of the server's host. Empty: everything on this one.
    """


class PortRange(Record):
    """The ephemeral ports of this network namespace."""

    low: int
    high: int
    reserved: int = 0

    @property
    def size(self) -> int:
        """How many ports may be used per (source, destination) pair."""
        return max(0, self.high - self.low + 1 - self.reserved)


class CpuPartition(Record):
    """Who may run where. `shared` when the host has too few CPUs to keep them apart."""

    server: tuple[int, ...]
    client: tuple[int, ...]
    services: tuple[int, ...] = ()
    """Set apart for backing services; empty: they share the server's."""
    shared: bool = False
    apart: bool = False
    """On different hosts: the same number is not the same CPU."""
    note: str = ""

    @property
    def count(self) -> int:
        """How many CPUs both sides have together."""
        if self.apart:
            return len(self.server) + len(self.client)
        return len({*self.server, *self.client})

    @property
    def separate(self) -> bool:
        """Whether nothing of the server runs on the client's CPUs."""
        if self.apart:
            return True
        return not self.shared and not set(self.client) & {*self.server, *self.services}

    @property
    def common(self) -> tuple[int, ...]:
        """CPUs that both sides may use."""
        return () if self.apart else tuple(sorted(set(self.server) & set(self.client)))


class CpuUse(Record):
    """One CPU over the window: shares of wall time."""

    cpu: int
    busy: float
    steal: float
    irq: float = 0.0
    """Interrupt and soft-interrupt time, part of `busy`."""
    packets: int | None = None
    """Packets of the whole host that it handled in soft interrupts."""


class TcpCounts(Record):
    """What the kernel's TCP counted in this network namespace."""

    segments_out: int
    retransmitted: int
    """Segments that were sent again, SYNs included."""
    syn_retransmitted: int
    listen_overflows: int
    """Connections that met a full accept queue."""
    listen_drops: int
    delayed_acks: int
    """Acknowledgements that a timer sent, after 40 ms or more."""


class InterfaceCounts(Record):
    """What went through a network interface since it exists."""

    received_bytes: int
    received_packets: int
    received_errors: int
    received_dropped: int
    sent_bytes: int
    sent_packets: int
    sent_errors: int
    sent_dropped: int


class HostWindow(Record):
    """The host over the measured window."""

    wall_s: float
    cpus: tuple[CpuUse, ...] = ()
    others_on_server_cpus: float | None = None
    """CPU of processes that are neither server, client nor lab, on the server's CPUs, as a share of their
    wall time.
    """
    others_on_client_cpus: float | None = None
    busiest_other: str | None = None
    sockets_open: dict[str, int] = Field(default_factory=dict)
    """TCP sockets by state at the window's start."""
    sockets_close: dict[str, int] = Field(default_factory=dict)
    mhz_open: float | None = None
    mhz_close: float | None = None
    swap_in_bytes: int | None = None
    kernel_log_lines: int | None = None
    """New kernel log lines of warning level or worse; None when the log cannot be read."""
    sysctls_changed: tuple[str, ...] | None = None
    tcp: TcpCounts | None = None


class HostRow(Record):
    """One second of the host (t_ms is the row's end, from the start of the engine's run, as in
    `IntervalRow`).
    """

    t_ms: float
    duration_ms: float
    server_cpus_busy: float | None = None
    """Share of the server's CPU set that was busy, with whatever."""
    client_cpus_busy: float | None = None
    steal: float | None = None
    """The highest steal share among the CPUs of both sets."""
    server_cpu: float | None = None
    """CPU seconds per second of the server's processes."""
    server_rss_bytes: int | None = None
    established: int | None = None
    """TCP sockets of this network namespace, as `ss -s` counts them."""
    time_wait: int | None = None
    sockets: int | None = None
    """All TCP sockets, of all network namespaces."""
    closed: int | None = None
    """TCP sockets that belong to a process and to no connection (any more, or yet)."""
    orphaned: int | None = None
    """TCP sockets that no process holds any more, of all network namespaces."""
    mhz: float | None = None


class Limits(Record):
    """Descriptor limits of the lab's own (client) side and ports, read before the run."""

    descriptors_soft: int | None = None
    descriptors_hard: int | None = None
    ports: PortRange | None = None
    io_uring: bool | None = None
    """Whether the engine's io_uring driver works here, by its own probe; None when it was not asked."""
    time_wait_to_target: int | None = None
    time_wait_reuse: bool | None = None
    """Whether the kernel may give a port in TIME_WAIT to a new connection to this target after a second:
    net.ipv4.tcp_tw_reuse is 1, or 2 and the target is on loopback (and TCP timestamps are on).
    """
