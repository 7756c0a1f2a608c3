"""A trial under way: what it measures, what it has so far, and its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field

from prony.errors import EnvironmentFault
from prony.evidence.engine import EngineReport, Mark
from prony.evidence.host import CpuPartition, HostRow, HostWindow
from prony.evidence.profile import Profile
from prony.evidence.server import ServerWindow, ServiceUse, StartUp
from prony.evidence.trial import AfterLoad, Evidence, ScalingProbe, ServerCount, StageReport, ToolRun, WarmUp
from prony.host import cgroup
from prony.load.base import Engine
from prony.load.contract import EngineLoad, engine_load
from prony.load.preflight import Preflight
from prony.plan.trial import TrialPlan
from prony.steady.limits import SteadyLimits
from prony.targets.base import RunningTarget, ServerUnderTest
from prony.trial.duet import Duet, Member
from prony.trial.load_run import WindowEdges
from prony.trial.preparation import Preparation
from prony.trial.process import SharedProcess
from prony.trial.surroundings import ProfileCollector, Surroundings, TrialObserver, trial_facts
from prony.trial.warming import Phases


@dataclass(slots=True)
class Trial:
    """Plan and target of a trial; below them, what the steps of `run_trial` fill in."""

    plan: TrialPlan
    under_test: ServerUnderTest
    surroundings: Surroundings
    listener: TrialObserver
    seed: int
    steady: SteadyLimits
    process: SharedProcess | None = None
    collector: ProfileCollector | None = None
    duet: Duet | None = None
    member: Member | None = None
    """Of the duet, after its turns."""
    server: RunningTarget | None = None
    already_running: bool = False
    """Whether an earlier trial started the process ..."""
    workload_known: bool = False
    """... and it has served this workload."""
    as_planned: bool = False
    """Whether every step up to the stop succeeded."""
    cleaned_up: bool = True
    """Whether nothing of this trial remains on the server."""
    preparation: Preparation | None = None
    engine: Engine | None = None
    phases: Phases = field(default_factory=lambda: Phases(()))
    preflight: Preflight | None = None
    """None without a server, or without a request to send."""
    start_up: StartUp | None = None
    published: Mark | None = None
    first_users: int = 0
    warm_up: WarmUp | None = None
    edges: WindowEdges | None = None
    server_window: ServerWindow | None = None
    host_window: HostWindow | None = None
    server_count: ServerCount | None = None
    scaling_probe: ScalingProbe | None = None
    after_load: AfterLoad | None = None
    sides: CpuPartition | None = None
    """CPUs of server and client; None where those of a running server are unknown."""
    host_rows: tuple[HostRow, ...] = ()
    stages: tuple[StageReport, ...] = ()
    profile: Profile | None = None
    peer_runs: tuple[ToolRun, ...] = ()
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False

    def __post_init__(self) -> None:
        if self.under_test.owned:
            self.sides = self.surroundings.partition

    @property
    def well(self) -> bool:
        """Whether another trial may use its process."""
        return self.as_planned and self.cleaned_up and not self.interrupted

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.listener.note(f"{self.under_test.name}: {text}")

    def load(self, server: RunningTarget) -> EngineLoad:
        """The trial's load for the engine, with the values that its preparation captured."""
        sides = self.surroundings.partition
        return engine_load(
            self.plan,
            url=server.url,
            tls=server.tls,
            addresses=server.addresses,
            cpus=sides.client,
            # Only where the server cannot run on the client's CPUs; a server at a URL may.
            realtime=sides.separate and (self.under_test.owned or sides.apart),
            workload=self.plan.workload if self.preparation is None else self.preparation.prepared,
            seed=self.seed,
        )

    def own_pids(self) -> set[int]:
        """Processes of server, backing services and engine, and of the duet's other members."""
        pids = set() if self.server is None else {*self.server.pids(), *self.server.service_pids()}
        pids |= set() if self.duet is None else self.duet.pids()
        return pids if self.engine is None else pids | self.engine.pids

    def evidence(self, clean_stop: bool | None) -> Evidence:
        """All that was measured, up to where the trial ended."""
        member, edges = self.member, self.edges
        return Evidence(
            load=trial_facts(self.plan, self.under_test),
            engine=self._report(),
            server=self.under_test.identity if self.server is None else self.server.identity,
            start_up=self.start_up,
            server_window=self.server_window,
            client_throttle=None
            if edges is None
            else cgroup.between(edges.opened.client_throttle, edges.closed.client_throttle),
            services=self._services(),
            host_window=self.host_window,
            host_rows=self.host_rows if member is None else member.load_time.host_rows(self.host_rows),
            partition=self.sides,
            limits=self.surroundings.limits,
            probes=() if self.preflight is None else self.preflight.result.probes,
            ceilings=self.under_test.ceilings(self.plan, len(self.surroundings.partition.server)),
            scaling_probe=self.scaling_probe,
            server_count=self.server_count,
            published=self.published,
            warm_up=self.warm_up,
            phases=tuple(self.phases.ended),
            stages=(*self.stages, *(() if self.preparation is None else self.preparation.called)),
            after_load=self.after_load,
            turns=None if self.duet is None or member is None else self.duet.turns_of(member),
            beside=self.peer_runs,
            profile=self.profile,
            clean_stop=clean_stop,
            hosts=self.surroundings.evidence(),
        )

    def _report(self) -> EngineReport | None:
        """The engine's report; None where it never became ready or failed."""
        if self.engine is None or self.engine.ready is None:
            return None
        try:
            report = self.engine.report()
        except EnvironmentFault:
            return None
        log = report.log
        if log is not None and log.error is not None:
            self.note(f"the request log {log.path} lacks {log.rows_lost} requests: {log.error}")
        return report if self.member is None else self.member.load_time.report(report)

    def _services(self) -> tuple[ServiceUse, ...]:
        if self.server is None:
            return ()
        opened = {} if self.edges is None else self.edges.opened.services
        closed = {} if self.edges is None else self.edges.closed.services
        used = self.server.service_use(opened, closed)
        if not self.already_running:
            return used
        return tuple(service.model_copy(update={"peak_rss_bytes": None}) for service in used)
