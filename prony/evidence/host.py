"""Evidence of a host."""

from __future__ import annotations

from pydantic import Field

from prony.evidence.base import Record


class Fingerprint(Record):
    """The host and its software; results are directly comparable only with equal `key`."""

    key: str
    """Short hash over the fields that can change a figure (not host name, uptime, free memory)."""
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
    """Versions of prony, engine, python, jdk …"""
    sysctls: dict[str, str] = Field(default_factory=dict)
    hosts: dict[str, str] = Field(default_factory=dict)
    """Several hosts by name: role, weight, fingerprint, link; other fields are the server's host's."""


class PortRange(Record):
    """The ephemeral ports of this network namespace."""

    low: int
    high: int
    reserved: int = 0

    @property
    def size(self) -> int:
        """Usable ports per (source, destination) pair."""
        return max(0, self.high - self.low + 1 - self.reserved)


class CpuPartition(Record):
    """CPU sets. `shared`: the host has too few CPUs to separate them."""

    server: tuple[int, ...]
    client: tuple[int, ...]
    services: tuple[int, ...] = ()
    """For backing services; empty: they share the server's."""
    shared: bool = False
    apart: bool = False
    """Server and client on different hosts: equal numbers are different CPUs."""
    note: str = ""

    @property
    def count(self) -> int:
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
    """A CPU over the window, as shares of wall time."""

    cpu: int
    busy: float
    steal: float
    irq: float = 0.0
    """Interrupt and soft-interrupt time, part of `busy`."""
    packets: int | None = None
    """Packets that it handled in soft interrupts, of the whole host."""


class TcpCounts(Record):
    """The kernel's TCP counters of this network namespace."""

    segments_out: int
    retransmitted: int
    """Retransmitted segments, SYNs included."""
    syn_retransmitted: int
    listen_overflows: int
    """Connections that met a full accept queue."""
    listen_drops: int
    delayed_acks: int
    """Acknowledgements sent by the timer, after 40 ms or more."""


class HostWindow(Record):
    """The host over the measured window."""

    wall_s: float
    cpus: tuple[CpuUse, ...] = ()
    others_on_server_cpus: float | None = None
    """CPU time of processes other than server, client and lab on the server's CPUs ÷ their wall time."""
    others_on_client_cpus: float | None = None
    busiest_other: str | None = None
    sockets_open: dict[str, int] = Field(default_factory=dict)
    """TCP sockets by state at the window's start."""
    sockets_close: dict[str, int] = Field(default_factory=dict)
    mhz_open: float | None = None
    mhz_close: float | None = None
    swap_in_bytes: int | None = None
    memory_stall_s: float | None = None
    """Time in which at least one task of the host waited for memory (PSI: swap-in, reclaim, memory.high)."""
    siblings: tuple[CpuUse, ...] = ()
    """CPUs of neither side that share a core with the server's."""
    kernel_log_lines: int | None = None
    """New kernel log lines from warning level on; None when unreadable."""
    sysctls_changed: tuple[str, ...] | None = None
    tcp: TcpCounts | None = None


class HostRow(Record):
    """A second of the host; `t_ms` is the row's end, from the start of the engine's run."""

    t_ms: float
    duration_ms: float
    server_cpus_busy: float | None = None
    """Busy share of the server's CPU set, with any work."""
    client_cpus_busy: float | None = None
    steal: float | None = None
    """The highest steal share among the CPUs of both sets."""
    server_cpu: float | None = None
    """CPU seconds per second of the server's processes."""
    server_rss_bytes: int | None = None
    established: int | None = None
    """TCP sockets of this network namespace, as in `ss -s`."""
    time_wait: int | None = None
    sockets: int | None = None
    """All TCP sockets, of all network namespaces."""
    closed: int | None = None
    """TCP sockets of a process without a connection."""
    orphaned: int | None = None
    """TCP sockets without a process, of all network namespaces."""
    mhz: float | None = None


class Limits(Record):
    """Descriptor limits and ports of the client side, read before the run."""

    descriptors_soft: int | None = None
    descriptors_hard: int | None = None
    ports: PortRange | None = None
    io_uring: bool | None = None
    """Whether the engine's io_uring driver works, by its own probe; None without a probe."""
    time_wait_to_target: int | None = None
    time_wait_reuse: bool | None = None
    """Whether the kernel may reuse a port in TIME_WAIT for this target after a second: net.ipv4.tcp_tw_reuse
    is 1, or 2 with a loopback target (and TCP timestamps are on).
    """
