"""Evidence of the server under test from the kernel and from its runtime. None: could not be read."""

from __future__ import annotations

from pydantic import Field

from prony.evidence.base import Record

COMMIT = "commit"
"""Key of the source commit among a server's versions; `-dirty` marks changed files."""


class JvmSnapshot(Record):
    """A reading of the platform MXBeans by the agent, and of the JIT compilers' threads by the kernel."""

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
    """Elapsed time of finished compilations."""
    compilers_cpu_s: float | None = None
    """CPU time of the JIT compilers' threads so far. None: not read, or no such thread is known."""
    process_cpu_s: float | None = None
    vm: str = ""
    gc_names: tuple[str, ...] = ()


class ProcessSample(Record):
    """A reading of /proc for the server's process tree."""

    t_monotonic_s: float
    cpu_user_s: float
    cpu_system_s: float
    rss_bytes: int
    peak_rss_bytes: int | None = None
    written_bytes: int | None = None
    """By write calls so far, to files and sockets; send calls are not counted. None: not read."""
    disk_bytes: int | None = None
    """Bytes of files that reach a disk."""
    threads: int
    descriptors: int | None = None
    processes: int = 1
    major_faults: int | None = None
    """Pages that had to be read from a disk or from swap. None: older evidence."""

    @property
    def cpu_s(self) -> float:
        return self.cpu_user_s + self.cpu_system_s


class StartUp(Record):
    """From the exec of a fresh process to its first correct response."""

    time_to_listen_s: float | None = None
    time_to_ready_s: float | None = None
    reported: dict[str, float] = Field(default_factory=dict)
    """The application's own figures at ready, under its own names (jvm.memory.used …)."""
    jvm: JvmSnapshot | None = None
    process: ProcessSample | None = None


class ServerIdentity(Record):
    """Identity of the server."""

    name: str
    title: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    runtime: str = ""
    command: tuple[str, ...] = ()
    build_key: str | None = None
    pid: int | None = None
    port: int | None = None
    owns_port: bool | None = None
    """Whether the launched process owns the listening socket; None: not known."""
    owns_port_at_end: bool | None = None
    """The same each second under load and after it. None: not watched, unknown, or no listener."""
    other_listener: str | None = None
    """That other process."""
    listeners: int | None = None
    """Most sockets that listened at once under load; None: not watched ..."""
    listeners_gone: int | None = None
    """... and how many of them closed later, at most."""
    owned: bool = True
    """False when Prony did not launch this server (prony load URL)."""
    forwards: bool = False
    """Declared as a proxy, which may name itself in a header Via."""
    descriptor_limit_soft: int | None = None


class CgroupThrottle(Record):
    """CPU quota counters of a cgroup over the window."""

    periods: int
    throttled_periods: int
    throttled_s: float


class ThreadUse(Record):
    """CPU use of a server thread over the window."""

    pid: int
    tid: int
    name: str
    cpu_s: float
    wall_s: float | None = None
    """Time between the readings of this thread, which differ from its process's by milliseconds; for a thread
    that began within the window, since the first reading. None in older evidence.
    """


class ServerWindow(Record):
    """The server over the measured window, by readings at its borders or interpolated."""

    wall_s: float
    granted_cpus: float
    """Number of CPUs of its CPU set, or less by a quota."""
    cpus: tuple[int, ...] = ()
    """CPUs it may run on; empty: not known."""
    busiest_thread: ThreadUse | None = None
    """Over all its processes; None when threads were unreadable or too many."""
    processes: int | None = None
    """At the window's end."""
    connections_by_process: tuple[int, ...] | None = None
    """Under load, descending; empty for a single process, None when not known."""
    cpu_user_s: float | None = None
    cpu_system_s: float | None = None
    instructions: int | None = None
    """Retired by its processes, user and kernel, by the CPU's counter. None: not requested or unread."""
    peak_rss_bytes: int | None = None
    rss_end_bytes: int | None = None
    threads_end: int | None = None
    descriptors_end: int | None = None
    major_faults: int | None = None
    outside_cpus: tuple[int, ...] = ()
    """CPUs beyond the set it was started on, where threads that worked, or a JIT compiler's, may run."""
    run_delay_s: float | None = None
    """Runnable threads without a CPU (schedstat). None: unread, or too few; so in older evidence."""
    jvm_open: JvmSnapshot | None = None
    jvm_close: JvmSnapshot | None = None
    throttle: CgroupThrottle | None = None
    written_bytes: int | None = None
    """As in `ProcessSample`; None in older evidence, too."""
    disk_bytes: int | None = None
    died: str | None = None
    """Exit code or signal that ended the process in the window; None while it lived."""

    @property
    def cpu_s(self) -> float | None:
        if self.cpu_user_s is None or self.cpu_system_s is None:
            return None
        return self.cpu_user_s + self.cpu_system_s


class ServiceUse(Record):
    """A backing service (a database, a cache) over the measured window; not counted as the server's."""

    name: str
    title: str = ""
    version: str | None = None
    command: tuple[str, ...] = ()
    pid: int | None = None
    port: int | None = None
    cpus: tuple[int, ...] = ()
    """CPUs it ran on."""
    shares_server_cpus: bool = False
    """True without a CPU beyond those of client and server."""
    wall_s: float | None = None
    cpu_user_s: float | None = None
    cpu_system_s: float | None = None
    rss_end_bytes: int | None = None
    peak_rss_bytes: int | None = None

    @property
    def cpu_s(self) -> float | None:
        if self.cpu_user_s is None or self.cpu_system_s is None:
            return None
        return self.cpu_user_s + self.cpu_system_s


class Probe(Record):
    """A preflight request of the laboratory, and its response."""

    step: str
    status: int
    body_bytes: int
    content_type: str | None = None
    meets_expectation: bool
    why_not: str | None = None
    keeps_alive: bool | None = None
    body_digest: str | None = None
    """Digest of the body, of JSON with sorted keys; None in older results."""
    body_sha256: str | None = None
    """Of the body as it came, its first 16 digits."""
    via: str | None = None
    """The header Via, set by a proxy."""
    server_header: str | None = None
    """The header Server."""
    elapsed_ms: float | None = None
    """From the send (older: before the connect) to the whole response, redirects included; approximate."""
