"""Runs one trial from a fresh process to its end and returns the evidence. Must not judge, store or print.

The order of a trial: start (timed) -> the workload's preparation -> the published protocol's first requests
on the server's own CPUs -> warm-up under the trial's own load -> back on the server's own CPUs, settle ->
window -> the workload's clean-up -> stop, and check that it stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prony.evidence.host import HostRow, HostWindow
from prony.evidence.server import Probe, ServerWindow, ServiceUse, StartUp
from prony.evidence.trial import Ceiling, Evidence, LoadFacts, Phase, ServerCount, WarmUp
from prony.host.sampler import HostSampler
from prony.load.contract import EngineLoad
from prony.load.engine import EngineRun
from prony.load.facts import load_facts
from prony.load.short import walk_once
from prony.plan import given
from prony.plan.load import DRAIN_S, WholeRun
from prony.plan.target import TlsOptions
from prony.plan.trial import TrialPlan
from prony.plan.workload import Workload
from prony.server.probe import status_probe
from prony.server.running import RunningServer
from prony.steady.changes import MIN_SEGMENT_ROWS, kernel_search
from prony.steady.detector import HOLD_ROWS
from prony.trial.counting import counted_since, request_count
from prony.trial.listener import Listener
from prony.trial.probing import probe_workload
from prony.trial.session import WORTH_KEEPING_S, Measured, ServerDied, Session, over_window
from prony.trial.surroundings import Surroundings
from prony.trial.warmup import SteadyWatch, steady_since_ms

START_ESTIMATE_S = 5.0
PUBLISHED_ESTIMATE_S = 9.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial left behind; `failure` says in one sentence why it ended before its time."""

    evidence: Evidence
    failure: str | None = None
    interrupted: bool = False
    """The user ended the measured part; the evidence is of what had been measured."""


@dataclass(slots=True)
class TrialRun:
    """One trial on a server that has just been launched. `run()` is the way in; the server is stopped
    however it ends.
    """

    plan: TrialPlan
    server: RunningServer
    surroundings: Surroundings
    listener: Listener
    ceilings: Sequence[Ceiling] = ()
    seed: int = 1
    _engine: EngineRun | None = None
    _given: Mapping[str, str] = field(default_factory=dict)
    """What the preparation captured."""
    _phases: list[Phase] = field(default_factory=list)
    _probes: tuple[Probe, ...] = ()
    _start_up: StartUp | None = None
    _warm_up: WarmUp | None = None
    _server_window: ServerWindow | None = None
    _host_window: HostWindow | None = None
    _server_count: ServerCount | None = None
    _host_rows: tuple[HostRow, ...] = ()
    _interrupted: bool = False
    _measured: Measured | None = None

    def run(self) -> Outcome:
        """Measure. Raises EnvironmentFault when the server never gets ready or the engine cannot run."""
        try:
            self.listener.phase("start", START_ESTIMATE_S)
            self._start_up = self.server.wait_ready(self._ready, self.plan.start_timeout_s)
            failure = self._prepare() or self._offer()
            self.server.look_at_port_again()
            self._clean_up()
        finally:
            if self._engine is not None:
                self._engine.stop()
            self.listener.phase("stop", 1)
            clean = self.server.stop()
        return Outcome(self._evidence(clean), failure, self._interrupted)

    def _offer(self) -> str | None:
        """The load from its first request to its last; a sentence when the server died under it."""
        if not isinstance(self.plan.measured, WholeRun) and self.plan.warm_up.cap_s >= 2 * MIN_SEGMENT_ROWS:
            kernel_search()  # imported now: its second of CPU would be seen under the load
        partition = self.surroundings.partition
        with HostSampler(partition.server, partition.client, self._own_pids) as sampler:
            sampler.watch("server", self.server.sample)
            self._warm_beforehand()
            counted = request_count(self.server)
            self._engine = EngineRun(self._load())
            session = Session(self._engine, self.server, self.listener, self._worth_keeping_s())
            failure = self._under_load(session, sampler)
            self._interrupted = session.interrupted
            if self._engine.ready is not None:
                self._host_rows = sampler.series(self._engine.ready.started_monotonic_ns / 1e9)
        self._engine.stop()
        self._server_count = counted_since(self.server, counted)
        return failure

    def _worth_keeping_s(self) -> float:
        """How much of a measured part outlives an interrupt: a minute, or half of a shorter whole run."""
        whole = isinstance(self.plan.measured, WholeRun)
        return min(WORTH_KEEPING_S, self.plan.deadline_s / 2) if whole else WORTH_KEEPING_S

    def _prepare(self) -> str | None:
        """What the steps need to find on the server; a sentence when they do not find it."""
        workload = self.plan.workload
        if not workload.prepare:
            return None
        self.listener.phase("prepare", None)
        tls = TlsOptions(ca=self.server.ca)
        walked = walk_once(self.server.url, workload, workload.prepare, tls=tls)
        self._given, wrong = walked.values, walked.wrong
        if wrong is None:
            probe = self._probe()
            wrong = "the server does not answer after it" if probe is None else probe.why_not
        return None if wrong is None else f"the preparation of {workload.name} failed: {wrong}"

    def _clean_up(self) -> None:
        """Take back what was prepared; what goes wrong there is noted."""
        workload = self.plan.workload
        if not workload.cleanup or not self.server.alive():
            return
        self.listener.phase("clean-up", None)
        tls = TlsOptions(ca=self.server.ca)
        walked = walk_once(self.server.url, workload, workload.cleanup, tls=tls, values=self._given)
        if walked.wrong is not None:
            self.listener.note(f"{self.server.name}: the clean-up of {workload.name} failed: {walked.wrong}")

    def _under_load(self, session: Session, sampler: HostSampler) -> str | None:
        """Everything between the first and the last request; a sentence when the server died in it."""
        try:
            session.start()
            if isinstance(self.plan.measured, WholeRun):
                self._whole(session, sampler)
                return None
            if self.plan.published_requests:
                self._published(session)
            self._warm(session)
            self._measure(session, sampler)
        except ServerDied as death:
            return str(death)
        return None

    def _published(self, session: Session) -> None:
        """The server on its own CPUs, as a published run finds it, until the mark or the cap."""
        start_ms = session.now_ms()
        self.listener.phase("published", PUBLISHED_ESTIMATE_S)
        while not session.engine.marks and session.now_ms() - start_ms < self.plan.published_cap_s * 1000:
            session.next()
        self._note_phase("published", start_ms, session.now_ms(), self.surroundings.partition.server)

    def _warm(self, session: Session) -> None:
        """Warm up until steady (or the cap), then settle on the server's own CPUs."""
        warm = self.plan.warm_up
        own = self.surroundings.partition.server
        pinned = warm.method == "pinned" or self.surroundings.partition.shared
        cpus = own if pinned else self.surroundings.all_cpus
        self.listener.phase("warm-up", warm.cap_s)
        first = self._stretch(session, "warm-up", cpus, warm.min_s, warm.cap_s)
        self.listener.phase("settle", warm.settle_min_s)
        last = self._stretch(session, "settle", own, warm.settle_min_s, warm.settle_cap_s)
        since_ms = steady_since_ms(first, last, same_cpus=cpus == own)
        self._warm_up = WarmUp(
            method="pinned" if pinned else "all-cpus",
            cap_s=warm.cap_s + warm.settle_cap_s,
            # A stretch that cannot hold the rows a look needs says nothing, rather than *never steady*.
            steady=last.steady if last.cap_s > last.hold_rows else None,
            time_to_steady_s=None if since_ms is None else since_ms / 1000,
            reason=last.state.reason if last.state else "",
        )

    def _stretch(
        self, session: Session, name: str, cpus: tuple[int, ...], min_s: float, cap_s: float
    ) -> SteadyWatch:
        """One stretch of load with the server on these CPUs, until it is steady or the cap is reached."""
        self.server.set_affinity(cpus)
        start_ms = session.now_ms()
        hold_rows = max(3, min(HOLD_ROWS, round(min_s)))
        watch = session.watch(SteadyWatch(min_s, cap_s, start_ms, hold_rows))
        self._note_phase("warm-up" if name == "warm-up" else "settle", start_ms, session.now_ms(), cpus)
        return watch

    def _measure(self, session: Session, sampler: HostSampler) -> None:
        self.listener.phase("window", self.plan.measured_s)
        sampler.mark()
        measured = session.measure(self.plan.measured_s)
        sampler.mark()
        self._keep(measured, sampler)

    def _warm_beforehand(self) -> None:
        """The same load for a while, by an engine of its own: nothing of it is measured."""
        whole = self.plan.measured
        if not isinstance(whole, WholeRun) or whole.warm_up_s <= 0:
            return
        self.listener.phase("warm-up", whole.warm_up_s)
        bounds = {"after_s": whole.warm_up_s, "total_requests": None, "iterations_per_user": None}
        EngineRun(self._load().model_copy(update=bounds)).run_to_end(
            whole.warm_up_s + DRAIN_S, self.listener.row
        )
        self._warm_up = WarmUp(method="fixed", cap_s=whole.warm_up_s, steady=None)

    def _whole(self, session: Session, sampler: HostSampler) -> None:
        """Everything from the first request to the last, with the server on its own CPUs all along."""
        self.listener.phase("window", self.plan.measured_s)
        sampler.mark()
        measured = session.follow(self.plan.deadline_s + DRAIN_S)
        sampler.mark()
        self._keep(measured, sampler)

    def _keep(self, measured: Measured, sampler: HostSampler) -> None:
        own = self.surroundings.partition.server
        self._measured = measured
        self._server_window = over_window(measured, granted_cpus=float(len(own)))
        if measured.opened.process and measured.closed.process:
            self._host_window = sampler.window(
                measured.opened.process.t_monotonic_s, measured.closed.process.t_monotonic_s
            )
        self._note_phase("window", measured.opened.t_ms, measured.closed.t_ms, own)

    def _note_phase(self, name: str, start_ms: float, end_ms: float, cpus: tuple[int, ...]) -> None:
        self._phases.append(
            Phase.model_validate({"name": name, "start_ms": start_ms, "end_ms": end_ms, "server_cpus": cpus})
        )

    def _ready(self) -> Probe | None:
        """What a ready server answers: the workload's steps, or its own request where these need data."""
        if not self.plan.workload.prepare:
            return self._probe()
        ready = self.server.built.spec.ready
        tls = self.server.scheme == "https"
        return status_probe(self.server.host, self.server.port, ready.path, ready.status, tls)()

    def _probe(self) -> Probe | None:
        """Every step of the workload once: the first wrong answer, else the last; None before it answers at
        all.
        """
        probes = probe_workload(
            self.server.host, self.server.port, self._workload, tls=self.server.scheme == "https"
        )
        if probes is None:
            return None
        self._probes = probes
        return next((probe for probe in probes if not probe.meets_expectation), probes[-1])

    @property
    def _workload(self) -> Workload:
        """With what its preparation captured."""
        return given.knowing(self.plan.workload, self._given)

    def _own_pids(self) -> set[int]:
        pids = set(self.server.pids()) | self.server.service_pids()
        if self._engine is not None:
            pids.add(self._engine.pid)
        return pids

    def _load(self) -> EngineLoad:
        plan = self.plan
        whole = plan.measured if isinstance(plan.measured, WholeRun) else None
        return EngineLoad(
            url=self.server.url,
            tls=TlsOptions(ca=self.server.ca),
            workload=self._workload,
            load=plan.load,
            connections=plan.connections,
            cpus=self.surroundings.partition.client,
            driver=plan.driver,
            after_s=plan.deadline_s,
            total_requests=None if whole is None else whole.total_requests,
            iterations_per_user=None if whole is None else whole.iterations_per_user,
            window="commanded" if whole is None else "all",
            request_timeout_ms=plan.request_timeout_ms,
            marks=(plan.published_requests,) if plan.published_requests else (),
            seed=self.seed,
            injected_faults=plan.injected_faults,
        )

    def _services(self) -> tuple[ServiceUse, ...]:
        if self._measured is None:
            return tuple(service.use() for service in self.server.services)
        opened, closed = self._measured.opened.services, self._measured.closed.services
        return tuple(
            service.use(opened.get(service.name), closed.get(service.name))
            for service in self.server.services
        )

    def _evidence(self, clean_stop: bool) -> Evidence:
        return Evidence(
            load=trial_facts(self.plan, self.server.built.spec.ceilings.closes_after, self.server.scheme),
            engine=self._engine.report() if self._engine is not None else None,
            server=self.server.identity,
            start_up=self._start_up,
            server_window=self._server_window,
            services=self._services(),
            host_window=self._host_window,
            host_rows=self._host_rows,
            partition=self.surroundings.partition,
            limits=self.surroundings.limits,
            probes=self._probes,
            ceilings=tuple(self.ceilings),
            calibration=self.surroundings.calibration,
            server_count=self._server_count,
            warm_up=self._warm_up,
            phases=tuple(self._phases),
            clean_stop=clean_stop,
        )


def trial_facts(plan: TrialPlan, server_closes_after: int | None = None, scheme: str = "http") -> LoadFacts:
    """What this plan asks of the engine, in the terms of the checks."""
    facts = load_facts(
        plan.load,
        plan.workload,
        plan.connections,
        claim="protocol" if isinstance(plan.measured, WholeRun) else None,
        duration_s=plan.deadline_s,
        server_closes_after=server_closes_after,
        tls=scheme == "https",
    )
    return facts.model_copy(update={"driver": plan.driver})
