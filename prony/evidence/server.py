"""What the server under test looked like from outside (kernel) and inside (its runtime).

None means: could not be read. Nothing here is derived or judged.
"""

from __future__ import annotations

from pydantic import Field

from prony.evidence.base import Record

COMMIT = "commit"
"""Name of the commit of its sources among a server's versions, with `-dirty` where its files have changed."""


class JvmSnapshot(Record):
    """One reading of the platform MXBeans by the agent, and of the JIT compilers' threads by the kernel."""

    t_monotonic_s: float
    uptime_s: float
    heap_used_bytes: int
    heap_committed_bytes: int
    heap_max_bytes: int
    non_heap_used_bytes: int
    pools_used_bytes: dict[str, int] = Field(default_factory=dict)
    classes_loaded: int
    classes_loaded_total: int
    threads_live: int
    threads_peak: int
    gc_count: int
    gc_time_s: float
    jit_time_s: float | None = None
    """Elapsed, of compilations that have ended: one that takes ten seconds is in it when they are over."""
    compilers_cpu_s: float | None = None
    """CPU time of the JIT compilers' threads so far. None: not read (evidence of earlier versions), or no
    thread is known for one.
    """
    process_cpu_s: float | None = None
    vm: str = ""
    gc_names: tuple[str, ...] = ()


class ProcessSample(Record):
    """One reading of /proc for the server's process tree."""

    t_monotonic_s: float
    cpu_user_s: float
    cpu_system_s: float
    rss_bytes: int
    peak_rss_bytes: int | None = None
    threads: int
    descriptors: int | None = None
    processes: int = 1

    @property
    def cpu_s(self) -> float:
        """User and system time together."""
        return self.cpu_user_s + self.cpu_system_s


class StartUp(Record):
    """From the exec of a fresh process to its first right response."""

    time_to_listen_s: float | None = None
    time_to_ready_s: float | None = None
    reported: dict[str, float] = Field(default_factory=dict)
    """Figures that the application itself reported at ready, under its own names (jvm.memory.used …)."""
    jvm: JvmSnapshot | None = None
    process: ProcessSample | None = None


class ServerIdentity(Record):
    """Which server this was, exactly."""

    name: str
    title: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    runtime: str = ""
    command: tuple[str, ...] = ()
    build_key: str | None = None
    pid: int | None = None
    port: int | None = None
    owns_port: bool | None = None
    """Whether the listening socket belongs to the process that was started; None: could not be told."""
    owns_port_at_end: bool | None = None
    """The same under load, each second, and when it had ended; False once another process listened. None: it
    was not looked at, could not be told, or nobody listened.
    """
    other_listener: str | None = None
    """Who that was."""
    listeners: int | None = None
    """Sockets that listened there at the same time under load, at most; None: not watched ..."""
    listeners_gone: int | None = None
    """... and how many of those were closed later, at most."""
    owned: bool = True
    """False when Prony did not start this server (prony load URL)."""
    forwards: bool = False
    """Declared: it is a proxy itself, which may name itself in a header Via."""
    descriptor_limit_soft: int | None = None


class CgroupThrottle(Record):
    """CPU quota counters of the server's cgroup, as differences over the window."""

    periods: int
    throttled_periods: int
    throttled_s: float


class ThreadUse(Record):
    """What one thread of the server used over the window."""

    pid: int
    tid: int
    name: str
    cpu_s: float
    wall_s: float | None = None
    """Between the two readings of this thread, which are not those of its process: reading a JVM or many
    threads takes milliseconds. Of one that began within the window, since the first reading. None in evidence
    that was stored without it.
    """


class ServerWindow(Record):
    """The server over exactly the measured window (readings nearest to its borders, interpolated where
    needed).
    """

    wall_s: float
    granted_cpus: float
    """How many CPUs it may use: those of its CPU set, or less by a quota."""
    cpus: tuple[int, ...] = ()
    """Where it may run; empty: not known."""
    busiest_thread: ThreadUse | None = None
    """Of all its processes; None when threads could not be read, or were too many."""
    processes: int | None = None
    """At its end."""
    connections_by_process: tuple[int, ...] | None = None
    """Under load, most first; empty for a single process, None when not known."""
    cpu_user_s: float | None = None
    cpu_system_s: float | None = None
    peak_rss_bytes: int | None = None
    rss_end_bytes: int | None = None
    threads_end: int | None = None
    descriptors_end: int | None = None
    jvm_open: JvmSnapshot | None = None
    jvm_close: JvmSnapshot | None = None
    throttle: CgroupThrottle | None = None
    died: str | None = None
    """How the process ended inside the window (exit code, signal); None when it lived."""

    @property
    def cpu_s(self) -> float | None:
        """User and system time together, None when either is unknown."""
        if self.cpu_user_s is None or self.cpu_system_s is None:
            return None
        return self.cpu_user_s + self.cpu_system_s


class ServiceUse(Record):
    """A backing service (a database, a cache), and what it used over the measured window; none of it is
    counted as the server's.
    """

    name: str
    title: str = ""
    version: str | None = None
    command: tuple[str, ...] = ()
    pid: int | None = None
    port: int | None = None
    cpus: tuple[int, ...] = ()
    """Where it ran."""
    shares_server_cpus: bool = False
    """True when there was no CPU for it beyond those of client and server."""
    wall_s: float | None = None
    cpu_user_s: float | None = None
    cpu_system_s: float | None = None
    rss_end_bytes: int | None = None
    peak_rss_bytes: int | None = None

    @property
    def cpu_s(self) -> float | None:
        """User and system time together, None when either is unknown."""
        if self.cpu_user_s is None or self.cpu_system_s is None:
            return None
        return self.cpu_user_s + self.cpu_system_s


class Probe(Record):
    """One request that the lab itself sent before the load: what a right response looks like here."""

    step: str
    status: int
    body_bytes: int
    content_type: str | None = None
    meets_expectation: bool
    why_not: str | None = None
    keeps_alive: bool | None = None
    body_digest: str | None = None
    """Of the body, of JSON with its keys in order, so that equal content is equal; None in older results."""
    via: str | None = None
    """The header Via: a proxy stood between."""
    server_header: str | None = None
    """The header Server."""
    elapsed_ms: float | None = None
    """From the send (in older results from before the connect) to the whole response, redirects included; no
    figure, only a size.
    """
