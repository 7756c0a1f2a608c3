"""All that one trial left behind, as one value: the only input of the judge."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from prony.evidence.base import Record
from prony.evidence.engine import EngineReport, Mark
from prony.evidence.host import CpuPartition, HostRow, HostWindow, Limits
from prony.evidence.hosts import HostEvidence
from prony.evidence.profile import Profile
from prony.evidence.server import Probe, ServerIdentity, ServerWindow, ServiceUse, StartUp


class PopulationFacts(Record):
    """One of several groups of users."""

    name: str
    users: int
    start_s: float = 0.0
    ramp_up_s: float = 0.0
    ramp_up_steps: int | None = None
    end_s: float | None = None
    """When its time is over, from the start of the run; None: with the run."""
    iterations_per_user: int | None = None


class LoadFacts(Record):
    """What was asked of the engine, in the terms of the checks."""

    model: Literal["closed", "open"]
    users: int | None = None
    populations: tuple[PopulationFacts, ...] = ()
    """Closed: the groups of users, where there are several; `users` is their sum, `at_once` how many of them
    are there together at most.
    """
    think_kind: str = "none"
    think_mean_ms: float = 0.0
    ramp_up_s: float = 0.0
    """Until all users have started, from the start of the run."""
    ramp_down_s: float = 0.0
    """Closed: over which users end before the run does."""
    offered_per_s: float | None = None
    arrivals: Literal["constant", "poisson"] | None = None
    varies: bool = False
    """Open: `offered_per_s` is a mean over a schedule that goes up and down, or over sessions."""
    phased: bool = False
    """Open: the rate of arrivals itself changes by plan."""
    arrivals_end_s: float | None = None
    """Open: when the last one is due, from the start of the run; None when the schedule has no end."""
    sessions_per_s: float | None = None
    """Open: arrivals per second when each is a user who walks a scenario; None when it is a request."""
    own_connections: bool = False
    """Each user of a session opens a connection and closes it when leaving."""
    at_once: int | None = None
    """Connections that the plan itself leads to at the same time; more when responses take long."""
    most_at_once: int | None = None
    """Open: arrivals under way at the same time, at most; what comes beyond is blocked."""
    keep_alive: bool = True
    max_requests_per_connection: int | None = None
    server_closes_after: int | None = None
    """Declared by the server: it closes a keep-alive connection after this many requests (a default of
    Tomcat: 100).
    """
    tls: bool = False
    http_version: str = "1.1"
    shared_connections: int | None = None
    """HTTP/2: connections to each server that all users share; None: each has its own."""
    streams_per_connection: int | None = None
    """HTTP/2: requests under way at once on one of them, at most."""
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    """Asked of the engine before the run; during it the driver that it took."""
    transport: Literal["tcp", "unix"] = "tcp"
    """Unix: connections have no ports."""
    sources: int = 1
    destinations: int = 1
    servers: int = 1
    """Each user keeps a connection to each of them that it has asked something."""
    connections_per_user: int = 1
    """To each of them, at the most: a user of a parallel block has several."""
    duration_s: float | None = None
    expected_requests_per_s: float | None = None
    """A forecast of the rate (probe or calibration), for the port forecast before the run."""
    claim: Literal["capacity", "latency", "protocol"] = "capacity"
    """What the figure is used for: a capacity claim needs a bound, a latency claim does not."""
    content_declared: bool = False
    """True when the workload says what a right response looks like."""
    length_from_preflight: bool = False
    """True when it says so of the status only, and every request is the same each time."""
    preflight: bool = True
    """False: no request was sent before the load, as with the tool whose script was run."""

    @property
    def most_connections_per_user(self) -> int:
        """To all servers together."""
        return self.servers * self.connections_per_user


class Ceiling(Record):
    """A declared limit that is not CPU: e.g. 200 worker threads ÷ 0.15 s = 1333 requests/s."""

    name: str
    per_s: float
    explanation: str


class Calibration(Record):
    """What the engine reached against the reference server under the same load: requests, users, connections,
    TLS, response length, driver, and both sides on the same CPUs.
    """

    ceiling_per_s: float
    """The rate that the pair reached. With few users the round trip bounds it, not the client."""
    body_bytes: int
    duration_s: float
    client_cpu: float | None = None
    """CPU share of the busiest engine thread at that rate."""
    exceeded: bool = False
    """A trial was faster than the client's ceiling, and so again after a second measurement: it is none."""

    @property
    def client_ceiling_per_s(self) -> float | None:
        """The rate at which the busiest engine thread would have no CPU time left, at the same CPU time per
        request; None when that was not read.
        """
        return self.ceiling_per_s / self.client_cpu if self.client_cpu and self.ceiling_per_s > 0 else None

    def share_of(self, rate_per_s: float) -> float | None:
        """A rate ÷ the client's ceiling; None where that is not known, or is not one: more than 100 % of a
        ceiling means that the ceiling is wrong.
        """
        ceiling = self.client_ceiling_per_s
        if ceiling is None or self.exceeded or rate_per_s > ceiling:
            return None
        return rate_per_s / ceiling


class ScalingProbe(Record):
    """The same load with half as many users again, after the window, by an engine run of its own."""

    users: int
    rates_per_s: tuple[float, ...]
    """Of its full seconds, without the first, in which connections are opened."""
    failed_share: float
    """Failed ÷ all requests."""
    client_cpu: float | None = None
    """CPU share of the busiest engine thread."""


class ServerCount(Record):
    """What the server itself counted, from before the engine's first request to after its last."""

    requests: int


class ToolRun(Record):
    """What another load generator said of the same load on the same process, beside Prony's own."""

    tool: str
    requests: int
    """By its own account."""
    errors: int
    seconds: float
    """Asked for."""
    client_cpu_s: float | None = None
    """By the kernel."""
    wall_s: float
    counted: int | None = None
    """By the server, in the same time; None when it does not count."""
    failure: str | None = None


class Phase(Record):
    """A named stretch of the run, in the engine's time."""

    name: Literal["published", "warm-up", "settle", "window", "after"]
    start_ms: float
    end_ms: float
    server_cpus: tuple[int, ...] = ()


class WarmUp(Record):
    """How the warm-up went."""

    method: Literal["all-cpus", "pinned", "unpinned", "fixed", "settled"]
    """Unpinned: watched, on CPUs that somebody else has chosen. Settled: another load had warmed the process
    up, and it settled under this one.
    """
    cap_s: float
    steady: bool | None
    """True when steady was detected before the cap; None when nobody looked (fixed), or could in so short a
    time.
    """
    time_to_steady_s: float | None = None
    """From the first request of `closed_users` (without them of the trial's own load) to the start of the
    steady stretch, under `method`.
    """
    reason: str = ""
    still_to_come: float | None = None
    """Where the window opened: the bound expected for it on residual drift (0.03 is 3 %)."""
    closed_users: int | None = None
    """A closed loop of so many users had warmed the process up before, for `closed_s`."""
    closed_s: float = 0.0


class Nonconformity(Record):
    """A check of the conformance suite that did not find what it expected."""

    check: str
    found: str
    expected: str


class ConformanceFacts(Record):
    """What a fresh process of this server under this workload answered before its first trial."""

    passed: int
    checks: int
    failed: tuple[Nonconformity, ...] = ()
    declared: tuple[Nonconformity, ...] = ()
    """Not as expected either, as the server.yaml says; among the passed ones."""


class StageReport(Record):
    """What a load of its own did wholly before the measured one, or wholly after it."""

    name: Literal["before", "after"]
    report: EngineReport


class Evidence(Record):
    """Everything known about one trial. Missing parts are None and make the checks that need them
    *unknown*.
    """

    load: LoadFacts
    engine: EngineReport | None = None
    """On several hosts the sum of their engines."""
    server: ServerIdentity
    start_up: StartUp | None = None
    server_window: ServerWindow | None = None
    services: tuple[ServiceUse, ...] = ()
    """Backing services."""
    host_window: HostWindow | None = None
    """On several hosts the server's CPUs of the server's host, and the client's of the busiest load host."""
    host_rows: tuple[HostRow, ...] = ()
    """The host second by second over the whole trial, in the engine's time."""
    hosts: tuple[HostEvidence, ...] = ()
    """Empty: everything on one host."""
    partition: CpuPartition | None = None
    limits: Limits | None = None
    probes: tuple[Probe, ...] = ()
    conformance: ConformanceFacts | None = None
    """None: nobody asked (`prony load`, evidence of earlier versions)."""
    ceilings: tuple[Ceiling, ...] = ()
    calibration: Calibration | None = None
    scaling_probe: ScalingProbe | None = None
    """None: the trial claims no capacity, its server is not Prony's, or the probe could not be made."""
    server_count: ServerCount | None = None
    """None for a server that does not count."""
    published: Mark | None = None
    """A fresh process under the trial's load, before it was warmed up: when so many requests had completed.
    Evidence of earlier versions has it among the marks of the engine.
    """
    warm_up: WarmUp | None = None
    phases: tuple[Phase, ...] = ()
    stages: tuple[StageReport, ...] = ()
    """What was offered wholly before the measured load, or after it; not judged."""
    beside: tuple[ToolRun, ...] = ()
    """Other load generators, in the order in which they ran; not judged."""
    profile: Profile | None = None
    """Of an explained trial; None: nobody asked for one."""
    clean_stop: bool | None = None
    """Whether the server was gone after it was told to stop."""


class ProcessFacts(Record):
    """The process of a trial, where it measures several loads one after the other."""

    id: str
    """The trial that started it."""
    place: int = Field(ge=0)
    """Of this trial's load in the process, from 0."""
    after: str = ""
    """The load before this one in the process, WORKLOAD/LOAD where workloads share it; empty: the first."""


class TrialRecord(Record):
    """One trial as it is stored: what it was, what it left behind. Judgement is kept beside it,
    never inside.
    """

    id: str
    experiment_id: str
    server: str
    workload: str
    load_name: str
    cell: str = ""
    """Of a plan: which of its cells this is a trial of."""
    block: int
    position: int
    """Place within its block (the order is drawn from the seed)."""
    seed: int
    quick: bool = False
    kind: Literal["trial", "control", "explained"] = "trial"
    """A control (e.g. pinned from the start) is shown but takes no part in the comparison. An explained trial
    ran with a profiler: nothing that was measured in it is a figure.
    """
    process: ProcessFacts | None = None
    """None: a process of its own."""
    started_at: datetime
    ended_at: datetime
    evidence: Evidence
    failure: str | None = None
    """One sentence when the trial could not be finished (server died, never ready, interrupted)."""
    fingerprint_key: str
    notes: tuple[str, ...] = Field(default=())
