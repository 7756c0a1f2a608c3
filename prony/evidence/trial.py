"""The evidence of a trial: the judge's only input."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from prony.evidence.base import Record
from prony.evidence.engine import EngineReport, Mark
from prony.evidence.host import CpuPartition, HostRow, HostWindow, Limits
from prony.evidence.hosts import HostEvidence
from prony.evidence.profile import Profile
from prony.evidence.server import (
    CgroupThrottle,
    Probe,
    ServerIdentity,
    ServerWindow,
    ServiceUse,
    StartUp,
)


class PopulationFacts(Record):
    """A group of users."""

    name: str
    users: int = Field(ge=0, le=10_000_000)
    start_s: float = 0.0
    ramp_up_s: float = 0.0
    ramp_up_steps: int | None = None
    end_s: float | None = None
    """Its end, from the start of the run; None: with the run."""
    iterations_per_user: int | None = None


class LoadFacts(Record):
    """The load requested of the engine, in the terms of the checks."""

    model: Literal["closed", "open"]
    users: int | None = None
    populations: tuple[PopulationFacts, ...] = ()
    """Closed loop with several groups; `users` is their sum, `at_once` the most at the same time."""
    think_kind: str = "none"
    think_mean_ms: float = 0.0
    ramp_up_s: float = 0.0
    """Until all users have started, from the start of the run."""
    ramp_down_s: float = 0.0
    """Closed loop: span over which users end before the run does."""
    offered_per_s: float | None = None
    arrivals: Literal["constant", "poisson"] | None = None
    varies: bool = False
    """Open loop: `offered_per_s` is a mean over a varying schedule, or over sessions."""
    phased: bool = False
    """Open loop: the rate of arrivals changes by plan."""
    arrivals_end_s: float | None = None
    """Open loop: last due arrival, from the start of the run; None when the schedule has no end."""
    sessions_per_s: float | None = None
    """Open loop of sessions: arrivals per second; None when arrivals are requests."""
    own_connections: bool = False
    """Each session opens a connection and closes it at its end."""
    at_once: int | None = None
    """Planned concurrent connections; more when responses are slow."""
    most_at_once: int | None = None
    """Open loop: cap on concurrent arrivals; further arrivals are blocked."""
    keep_alive: bool = True
    max_requests_per_connection: int | None = None
    server_closes_after: int | None = None
    """Declared: requests after which the server closes a keep-alive connection (Tomcat's default: 100)."""
    tls: bool = False
    http_version: str = "1.1"
    shared_connections: int | None = None
    """HTTP/2: connections to each server shared by all users; None: each user has its own."""
    streams_per_connection: int | None = None
    """HTTP/2: most concurrent requests per connection."""
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    """Requested before the run; afterwards the driver in use."""
    transport: Literal["tcp", "unix"] = "tcp"
    """`unix` has no ports."""
    sources: int = 1
    destinations: int = 1
    servers: int = 1
    """Servers; a user keeps a connection to each that it has contacted."""
    connections_per_user: int = 1
    """Most per server: a user of a parallel block has several."""
    duration_s: float | None = None
    expected_requests_per_s: float | None = None
    """Expected rate (probe or calibration) for the port forecast."""
    claim: Literal["capacity", "latency", "protocol"] = "capacity"
    """Use of the figure: a capacity claim needs a bound, a latency claim does not."""
    content_declared: bool = False
    """Whether the workload declares the correct response."""
    length_from_preflight: bool = False
    """Whether only the status is declared, and requests do not vary."""
    constant: bool = False
    """Whether requests do not vary."""
    preflight: bool = True
    """False: no request before the load, as with the front end's own tool."""

    @property
    def most_connections_per_user(self) -> int:
        """Over all servers."""
        return self.servers * self.connections_per_user


class Ceiling(Record):
    """A declared limit other than CPU: 200 worker threads ÷ 0.15 s = 1333 requests/s."""

    name: str
    per_s: float
    explanation: str


class Calibration(Record):
    """The engine's rate against the reference server under the same load (requests, users, connections, TLS,
    response length, driver) on the same CPUs.
    """

    ceiling_per_s: float
    """The rate of the pair. With few users the round trip bounds it, not the client."""
    body_bytes: int
    duration_s: float
    client_cpu: float | None = None
    """CPU share of the busiest engine thread at that rate."""
    exceeded: bool = False
    """Whether trials exceeded the ceiling even after a second calibration: it does not hold."""

    @property
    def client_ceiling_per_s(self) -> float | None:
        """The rate at which the busiest engine thread would have no CPU time left; None when not read."""
        return self.ceiling_per_s / self.client_cpu if self.client_cpu and self.ceiling_per_s > 0 else None

    def share_of(self, rate_per_s: float) -> float | None:
        """A rate ÷ the client's ceiling; None where that is not known, or is wrong as the rate exceeds it."""
        ceiling = self.client_ceiling_per_s
        if ceiling is None or self.exceeded or rate_per_s > ceiling:
            return None
        return rate_per_s / ceiling


class ScalingProbe(Record):
    """The same load with half as many users again, in a separate engine run after the window."""

    users: int
    rates_per_s: tuple[float, ...]
    """Per full second, without the first, which opens connections."""
    failed_share: float
    """Failed ÷ all requests."""
    client_cpu: float | None = None
    """CPU share of the busiest engine thread."""


class ServerCount(Record):
    """The server's own count, from before the engine's first request to after its last."""

    requests: int


class ToolRun(Record):
    """Another load generator's result under the same load on the same process."""

    tool: str
    requests: int
    """As the tool reports."""
    errors: int
    seconds: float
    """Requested."""
    client_cpu_s: float | None = None
    """By the kernel."""
    wall_s: float
    counted: int | None = None
    """By the server, in the same time; None when it does not count."""
    failure: str | None = None


class Phase(Record):
    """A named phase of the run, in the engine's time."""

    name: Literal["published", "warm-up", "settle", "window", "after"]
    start_ms: float
    end_ms: float
    server_cpus: tuple[int, ...] = ()
    compiler_cpus: tuple[int, ...] = ()
    """Of its JIT compilers in this phase; empty: the server's."""


class WarmUp(Record):
    """Result of the warm-up."""

    method: Literal["all-cpus", "compilers", "pinned", "unpinned", "fixed", "settled"]
    """Compilers: the server on its own CPUs, its JIT compilers on all. Unpinned: watched, on CPUs that Prony
    did not choose. Settled: warmed up by another load.
    """
    cap_s: float
    steady: bool | None
    """Whether steady was detected before the cap; None when not watched (fixed), or too short to judge."""
    time_to_steady_s: float | None = None
    """From the first request to the start of the steady stretch, under `method`."""
    reason: str = ""
    still_to_come: float | None = None
    """Expected bound on the window's residual drift at its opening (0.03 is 3 %)."""
    closed_users: int | None = None
    """Users of a closed loop that first warmed the process up for `closed_s`."""
    closed_s: float = 0.0


class Turns(Record):
    """A window in turns with other servers, which rested meanwhile. The trial's time axis is time under load:
    rests and left-out parts are in no row and no window.
    """

    others: tuple[str, ...]
    turns: int
    turn_s: float
    left_out_s: float
    left_out_per_s: float | None = None
    """Rate in the left-out parts that follow a rest."""
    others_cpu_s: float | None = None
    """CPU time of the others within its measured turns, and its own within theirs."""
    resting_cpu_s: float | None = None
    collections_outside: int | None = None
    """Garbage collections between the readings of its turns, the left-out parts among them."""


class AfterLoad(Record):
    """What the server did when the load had ended, until it was idle."""

    wall_s: float
    cpu_s: float
    """CPU time, without that of JIT compilers."""
    disk_bytes: int | None = None
    idle: bool
    """Whether it became idle before the cap."""


class Nonconformity(Record):
    """A failed check of the conformance suite."""

    check: str
    found: str
    expected: str


class ConformanceFacts(Record):
    """Conformance of the first process after its load; in older evidence of a fresh one before."""

    passed: int
    checks: int
    failed: tuple[Nonconformity, ...] = ()
    declared: tuple[Nonconformity, ...] = ()
    """Deviations declared in the server.yaml; counted as passed."""


class StageReport(Record):
    """A separate load before or after the measured one."""

    name: Literal["before", "after"]
    report: EngineReport


class Evidence(Record):
    """Everything known about a trial. Checks of missing parts (None) are *unknown*."""

    load: LoadFacts
    engine: EngineReport | None = None
    """Sum of the engines of several hosts."""
    server: ServerIdentity
    start_up: StartUp | None = None
    server_window: ServerWindow | None = None
    client_throttle: CgroupThrottle | None = None
    """CPU quota of the engine's cgroup. None: not read, or on other hosts."""
    services: tuple[ServiceUse, ...] = ()
    """Backing services."""
    host_window: HostWindow | None = None
    """Several hosts: the server's CPUs on the server's host, the client's on the busiest load host."""
    host_rows: tuple[HostRow, ...] = ()
    """The host per second over the whole trial, in the engine's time."""
    hosts: tuple[HostEvidence, ...] = ()
    """Empty: everything on this host."""
    partition: CpuPartition | None = None
    limits: Limits | None = None
    probes: tuple[Probe, ...] = ()
    conformance: ConformanceFacts | None = None
    """None: not checked (`prony load`, evidence of earlier versions)."""
    ceilings: tuple[Ceiling, ...] = ()
    calibration: Calibration | None = None
    scaling_probe: ScalingProbe | None = None
    """None: no capacity claimed, a server that Prony did not launch, or the probe failed."""
    server_count: ServerCount | None = None
    """None without a server counter."""
    published: Mark | None = None
    """The published protocol: N requests to a fresh process under the trial's load. In evidence of earlier
    versions it is a mark of the engine.
    """
    warm_up: WarmUp | None = None
    phases: tuple[Phase, ...] = ()
    stages: tuple[StageReport, ...] = ()
    """Loads before and after the measured one; not judged."""
    after_load: AfterLoad | None = None
    """None: not watched (a duet), or not read."""
    turns: Turns | None = None
    """None: a contiguous window, without other servers."""
    beside: tuple[ToolRun, ...] = ()
    """Other load generators, in order; not judged."""
    profile: Profile | None = None
    """Of an explained trial; else None."""
    clean_stop: bool | None = None
    """Whether the server ended on request."""


class ProcessFacts(Record):
    """The process of a trial, if shared by several loads."""

    id: str
    """The trial that started it."""
    place: int = Field(ge=0)
    """Position of this trial's load in the process, from 0."""
    after: str = ""
    """The preceding load in the process, WORKLOAD/LOAD where workloads share it; empty: the first."""


class TrialRecord(Record):
    """A stored trial: identity and evidence, without its judgement."""

    id: str
    experiment_id: str
    server: str
    workload: str
    load_name: str
    cell: str = ""
    """The plan's cell of this trial."""
    block: int
    position: int
    """Position within its block (the order is drawn from the seed)."""
    seed: int
    quick: bool = False
    kind: Literal["trial", "control", "explained"] = "trial"
    """A control (e.g. pinned from the start) is shown but not compared. An explained trial ran with a
    profiler: its measurements are no figures.
    """
    process: ProcessFacts | None = None
    """None: a process of its own."""
    started_at: datetime
    ended_at: datetime
    evidence: Evidence
    failure: str | None = None
    """A sentence if the trial did not finish (server died, never ready, interrupted)."""
    explanation: dict[str, Any] | None = None
    """The last explained trial of a part: `prony.report.result.Explained`, as who explains it made it."""
    fingerprint_key: str
    notes: tuple[str, ...] = Field(default=())
