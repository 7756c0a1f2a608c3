"""One trial of any kind of target, from its start to its stop: `run_trial` returns the evidence.

The order: start (timed) -> the workload's preparation -> preflight -> the load that comes before -> the
published protocol's first requests on the server's own CPUs -> warm-up under the trial's own load -> back on
the server's own CPUs, settle -> window -> the scaling probe -> the load that comes after -> the workload's
clean-up -> stop, and check that it stopped. A whole run is measured from its first request to its last, in
place of all from the published part to the window. A server that an earlier trial left running is found
ready, and only settles.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from prony import seams
from prony.errors import EnvironmentFault
from prony.evidence.engine import REQUEST_FAILED, EngineReport, Mark
from prony.evidence.host import CpuPartition, HostRow, HostWindow
from prony.evidence.profile import Profile
from prony.evidence.server import ServerWindow, ServiceUse, StartUp
from prony.evidence.trial import AfterLoad, Evidence, ScalingProbe, ServerCount, StageReport, ToolRun, WarmUp
from prony.host import cgroup
from prony.host.instructions import Instructions
from prony.host.sampler import HostSampler
from prony.load.asked import Preflight
from prony.load.base import Engine, HostLost
from prony.load.contract import EngineLoad, Slowest, engine_load
from prony.load.short import complaint
from prony.plan import captured_values
from prony.plan.load import DRAIN_S, ClosedLoad, WholeRun
from prony.plan.stage import Stage
from prony.plan.trial import PUBLISHED_S, TrialPlan
from prony.steady.limits import SteadyLimits
from prony.targets.base import RunningTarget, ServerUnderTest
from prony.trial.duet import Duet, Member
from prony.trial.load_run import (
    INTERRUPTED,
    WORTH_KEEPING_S,
    LoadRun,
    ServerDied,
    WindowEdges,
    at_rest,
    over_window,
)
from prony.trial.preparation import Preparation, offer_stage, probed, scaling_probe, stage_notes
from prony.trial.process import SharedProcess, answers_again
from prony.trial.surroundings import ProfileCollector, Sampler, Surroundings, TrialObserver, trial_facts
from prony.trial.warming import Phases, PreciseEnough, Warming, warm_up_cpus

START_ESTIMATE_S = 5.0
INSTRUCTIONS = "server instructions per request"
T = TypeVar("T")
CUT_SHORT = "interrupted after the measured part: what follows it (clean-up, stop) was cut short"


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What a trial left behind; complete but for conformance and calibration, whatever ended the trial."""

    evidence: Evidence
    failure: str | None = None
    fault: EnvironmentFault | None = None
    """What `failure` says, where it is not the server that ended under load."""
    interrupted: bool = False
    """The user asked to end; the evidence is of what had been measured."""
    notes: tuple[str, ...] = ()


def run_trial(
    plan: TrialPlan,
    server: ServerUnderTest,
    surroundings: Surroundings,
    listener: TrialObserver,
    *,
    seed: int = 1,
    steady: SteadyLimits | None = None,
    process: SharedProcess | None = None,
    profile: ProfileCollector | None = None,
    duet: Duet | None = None,
) -> TrialOutcome:
    """Measure `server` once; it is stopped however the trial ends, if Prony started it. `steady`: limits that
    the warm-up waits for. `process`: shared with other trials; found running, it only settles. `profile`
    collects beside the window. `duet`: its window is in turns with the other servers of this one. What the
    environment does not allow is an outcome with a `fault`. Raises UsageError for a workload that cannot be
    sent, KeyboardInterrupt when nothing worth keeping was measured.
    """
    plan = plan.spoken(server.http_version)
    return _Trial(
        plan, server, surroundings, listener, seed, steady or SteadyLimits(), process, profile, duet
    ).run()


def _sampled(sides: CpuPartition) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The CPU sets to sample. CPUs that both sides may use are everybody's: both then have all."""
    if not sides.common:
        return sides.server, sides.client
    both = tuple(sorted({*sides.server, *sides.client}))
    return both, both


@dataclass(slots=True)
class _Trial:
    plan: TrialPlan
    under_test: ServerUnderTest
    surroundings: Surroundings
    listener: TrialObserver
    seed: int
    steady: SteadyLimits
    process: SharedProcess | None = None
    collector: ProfileCollector | None = None
    duet: Duet | None = None
    _member: Member | None = None
    """Of the duet, once it has had its turns."""
    _server: RunningTarget | None = None
    _found: bool = False
    """Whether an earlier trial left it running ..."""
    _known: bool = False
    """... and one of them had this workload."""
    _well: bool = False
    """Whether everything up to the stop went as planned."""
    _clean: bool = True
    """Whether nothing is left on the server that should have been taken back."""
    _preparation: Preparation | None = None
    _engine: Engine | None = None
    _phases: Phases = field(default_factory=lambda: Phases(()))
    _preflight: Preflight | None = None
    """None before there is a server; without a request to send, too."""
    _start_up: StartUp | None = None
    _published: Mark | None = None
    _first_users: int = 0
    _warm_up: WarmUp | None = None
    _edges: WindowEdges | None = None
    _server_window: ServerWindow | None = None
    _host_window: HostWindow | None = None
    _server_count: ServerCount | None = None
    _scaling_probe: ScalingProbe | None = None
    _after_load: AfterLoad | None = None
    _sides: CpuPartition | None = None
    """Where both run: as they were placed, or where somebody else's server may; None: not known."""
    _host_rows: tuple[HostRow, ...] = ()
    _stages: tuple[StageReport, ...] = ()
    _profile: Profile | None = None
    _beside: tuple[ToolRun, ...] = ()
    _notes: list[str] = field(default_factory=list)
    _interrupted: bool = False

    def __post_init__(self) -> None:
        if self.under_test.owned:
            self._sides = self.surroundings.partition

    def run(self) -> TrialOutcome:
        failure: str | None = None
        fault: EnvironmentFault | None = None
        try:
            failure = self._measure_once()
            self._well = failure is None
        except HostLost as lost:
            failure = str(lost)
        except EnvironmentFault as found:
            failure, fault = str(found), found
        except KeyboardInterrupt:
            self._cut_short()
        finally:
            clean = self._stop()
        if self._interrupted and self._edges is None:
            raise KeyboardInterrupt
        return TrialOutcome(self._evidence(clean), failure, fault, self._interrupted, tuple(self._notes))

    def _measure_once(self) -> str | None:
        """All of it but the stop; a sentence when the server ended under load."""
        if self.under_test.owned:
            self._phases = Phases(self.surroundings.partition.server)
        server = self._server = self._process()
        load, single = self._load(server), self.surroundings.single
        self._preparation = Preparation(load, single, self.plan.script)
        preflight = Preflight(load, single)
        if self.plan.preflight and preflight.possible:
            self._preflight = preflight
        self._get_ready(server)
        self._prepare(server)
        failure = self._offer(server)
        server.look()
        if failure is None and self._edges is not None:
            self._probe(server)
        self._follow_up(server)
        return failure

    def _process(self) -> RunningTarget:
        found = self.process.found() if self.process is not None else None
        if self.process is not None and found is not None:
            self._found, self._known = True, self.process.had(self.plan.workload.name)
            return found
        if self.under_test.owned:
            self.listener.phase("start", START_ESTIMATE_S)
        server = self.under_test.start(self.surroundings.partition)
        if self.process is not None:
            self.process.keep(server)
        return server

    def _get_ready(self, server: RunningTarget) -> None:
        """Wait for it; where the steps can be sent already, the first right responses are the preflight."""
        preflight = None if self.plan.workload.prepare else self._preflight
        if not self._found:
            self._start_up = server.wait_ready(preflight, self.plan.start_timeout_s)
        elif preflight is not None:
            answers_again(server, preflight, self.under_test.name)
        request = None if preflight is None else preflight.wrong_request
        if preflight is not None and request is not None:
            raise EnvironmentFault(
                f"{request.method} {server.url}{request.path} answers {preflight.asked.wrong}; "
                "load on an error page says nothing: correct the request"
            )

    def _prepare(self, server: RunningTarget) -> None:
        """What the steps need to find on the server; then the load before. Raises EnvironmentFault."""
        preflight, preparation = self._preflight, self._made()
        if self.plan.workload.prepare:
            self.listener.phase("prepare", None)
            wrong = preparation.prepare()
            if wrong is None and preflight is not None:
                preflight.ask(preparation.values)
                wrong = preflight.asked.silence or preflight.asked.wrong
            if wrong is not None:
                self._clean_up()
                raise EnvironmentFault(f"the preparation of {self.plan.workload.name} failed: {wrong}")
        if self.plan.before is not None:
            self.listener.phase("prepare", None)
            stage = self._stage(server, self.plan.before, "before")
            self._stages += (stage,)
            if stage.report.reason == REQUEST_FAILED:
                self._clean_up()
                raise EnvironmentFault(
                    f"the load before the measured one ended with its first failed request, as the plan "
                    f"says: {complaint(stage.report)}; nothing was sent after it"
                )

    def _made(self) -> Preparation:
        assert self._preparation is not None, "the server has been started"
        return self._preparation

    def _offer(self, server: RunningTarget) -> str | None:
        """The load from its first request to its last; a sentence when the server ended under it."""
        if not self.under_test.owned:
            theirs = server.cpus()
            client, apart = self.surroundings.partition.client, self.surroundings.apart
            self._sides = CpuPartition(server=theirs, client=client, apart=apart) if theirs else None
        before, after = around(self.plan.beside, self.seed)
        places = self.surroundings
        sampled = _sampled(self._sides or self.surroundings.partition)
        with places.sampler(*sampled, self._own_pids, server.url) as sampler:
            sampler.watch("server", server.sample)
            resting = (None, None) if self.duet is not None else at_rest(server)
            self._warm_beforehand(server)
            self._others(server, before)
            counted = server.request_count()
            engine = self._engine = places.engine(self._measured_load(server))
            run = LoadRun(engine, server, self.listener, self._worth_keeping_s(), self._failed)
            failure = self._under_load(run, sampler)
            if run.interrupted:
                self._interrupted = True
                self._notes.append(INTERRUPTED)
            if engine.ready is not None:
                self._host_rows = sampler.series(engine.ready.started_monotonic_ns / 1e9)
        engine.stop()
        if engine.end_reason == REQUEST_FAILED:
            self._note("a failed request ended the load before its time, as the plan says")
        if failure is None and self.duet is None and not run.interrupted:
            closed = None if self._edges is None else self._edges.closed
            whole = closed is not None and isinstance(self.plan.measured, WholeRun)
            self._after_load = run.after_load(closed.process if closed and whole else None, *resting)
        read = None if counted is None else server.request_count()
        if counted is not None and read is not None:
            self._server_count = ServerCount(requests=read - counted)
        self._others(server, after)
        return failure

    def _failed(self) -> str | None:
        """Why the trial cannot go on: a host is lost, or a server of the duet."""
        return self.surroundings.failed() or (None if self.duet is None else self.duet.lost())

    def _others(self, server: RunningTarget, tools: Sequence[str]) -> None:
        """Other load generators on the same process, which are not judged."""
        for name in tools:
            if self._interrupted or server.exit_description() is not None:
                return
            run_tool = seams.need(seams.HOOKS, "peers", "a second opinion")
            self.listener.phase(name, self.plan.measured_s)
            cpus = self.surroundings.partition.client
            self._beside += (run_tool(name, self.plan, server, cpus, self.seed),)

    def _worth_keeping_s(self) -> float:
        """How much of a measured part outlives an interrupt; all of it of another tool's script."""
        if not self.plan.preflight:
            return 0.0
        whole = isinstance(self.plan.measured, WholeRun)
        return min(WORTH_KEEPING_S, self.plan.deadline_s / 2) if whole else WORTH_KEEPING_S

    def _under_load(self, run: LoadRun, sampler: Sampler) -> str | None:
        """Everything between the first and the last request; a sentence when the server ended in it."""
        try:
            run.start()
            if isinstance(self.plan.measured, WholeRun):
                self._measure(run, sampler)
                return None
            own = self.under_test.owned
            warming = Warming(
                self.plan,
                self.surroundings,
                own,
                self.listener,
                self._phases,
                self.steady,
                found=self._found,
                new=self._found and not self._known,
                first_users=self._first_users,
                first_s=self.plan.first_s if self._first_users else 0.0,
            )
            self._warm_up = warming.warm(run)
            self._measure(run, sampler)
        except (ServerDied, HostLost) as death:
            return str(death)
        return None

    @contextmanager
    def _profiled(self, server: RunningTarget) -> Iterator[Callable[[], None]]:
        """Yields what is to be called when the measured part begins; its profile is complete afterwards."""
        collector = self.collector
        if collector is None:
            yield lambda: None
            return
        try:
            collector.attach(server.pids())
            yield lambda: collector.begin(self.plan.measured_s)
            self._profile = collector.end()
        except ServerDied:
            self._profile = collector.end()
            raise
        finally:
            collector.detach()

    def _warm_beforehand(self, server: RunningTarget) -> None:
        """A load for a while, by an engine of its own: nothing of it is in the window."""
        whole = self.plan.measured
        if not isinstance(whole, WholeRun):
            if self.plan.published_requests:
                self._published = self._as_published(server, self.plan.published_requests)
            self._warm_closed(server)
        elif whole.warm_up_s > 0:
            self._warm_under(server, whole.warm_up_s)
            self._warm_up = WarmUp(method="fixed", cap_s=whole.warm_up_s, steady=None)

    def _as_published(self, server: RunningTarget, requests: int) -> Mark | None:
        """The trial's load on a new process until so many requests have completed; None at the cap."""
        self.listener.phase("published", PUBLISHED_S)
        most_s = self.plan.published_cap_s
        load = self._load(server).unmeasured(most_s, total_requests=requests, marks=(requests,))
        report = self.surroundings.engine(load).run_to_end(most_s + DRAIN_S, self.listener.row)
        return next(iter(report.marks), None)

    def _warm_closed(self, server: RunningTarget) -> None:
        """A few users first, where the plan says so; left to us, for the JIT compiler of our own JVM."""
        users, asked = self.plan.first_users, self.plan.warm_up
        ours = self.under_test.owned and server.jvm() is not None
        if not users or self._known or (asked.closed_users == "auto" and not ours):
            return
        if self.under_test.owned:
            _, cpus = warm_up_cpus(asked, self.surroundings)
            server.set_affinity(cpus)
        self._first_users = users
        self._warm_under(server, self.plan.first_s, load=ClosedLoad(users=users))

    def _warm_under(self, server: RunningTarget, length_s: float, **changes: object) -> None:
        """A load for so long, of which nothing is measured: that of the trial, but for these changes."""
        self.listener.phase("warm-up", length_s)
        load = self._load(server).unmeasured(length_s, **changes)
        self.surroundings.engine(load).run_to_end(length_s + DRAIN_S, self.listener.row)

    def _measure(self, run: LoadRun, sampler: Sampler) -> None:
        """The window, or everything from the first request to the last; the server is on its own CPUs."""
        if self.duet is not None:
            if self.plan.instructions:
                self._note(f"{INSTRUCTIONS}: not readable, as its window is in turns")
            self._take_turns(run, sampler, self.duet)
            return
        self.listener.phase("window", self.plan.measured_s)
        with self._counted(run.server) as count, self._profiled(run.server) as profiled:
            sampler.mark()

            def opened() -> None:
                count()
                profiled()

            if isinstance(self.plan.measured, WholeRun):
                edges = run.follow(self.plan.deadline_s + DRAIN_S, opened)
            else:
                edges = run.measure(self.plan.measured_s, PreciseEnough.of(self.plan), opened)
            instructions = count()
        self._edges = edges
        self._server_window = over_window(edges, run.server, placed=self.under_test.owned)
        if self._server_window is not None and instructions is not None:
            self._server_window = self._server_window.model_copy(update={"instructions": instructions})
        if self._found and self._server_window is not None:  # the peak may be that of an earlier load
            self._server_window = self._server_window.model_copy(update={"peak_rss_bytes": None})
        sampler.mark()
        between_s = self._instants(edges)
        if between_s is not None:
            self._host_window = sampler.window(*between_s)
        self._phases.add("window", edges.opened.t_ms, edges.closed.t_ms)

    @contextmanager
    def _counted(self, server: RunningTarget) -> Iterator[Callable[[], int | None]]:
        """Yields the server's instructions since the call before; None where they are not read."""
        if not self.plan.instructions:
            yield lambda: None
            return
        here = type(self.surroundings) is Surroundings
        with Instructions(server.pids() if here else ()) as counter:
            yield counter.lap
        if counter.unread:
            self._note(f"{INSTRUCTIONS}: not readable, {counter.unread}")

    def _take_turns(self, run: LoadRun, sampler: Sampler, duet: Duet) -> None:
        """The window, in turns with the other servers; kept as well where what follows it is cut short."""
        assert isinstance(sampler, HostSampler), "a duet is measured on this host"
        self.listener.phase("rest" if duet.coming else "turns", None if duet.coming else duet.plan[-1].ends_s)
        member = Member(self.under_test.name, run, sampler)
        try:
            duet.take_part(member)
        finally:
            if member.complete:
                self._member, self._edges = member, member.whole
                self._server_window = member.server_window()
                self._host_window = sampler.turns(member.host) if member.host else None
                load_time = member.load_time
                self._phases.add("window", load_time.rested_ms, load_time.end_ms)

    def _instants(self, edges: WindowEdges) -> tuple[float, float] | None:
        """When the window opened and closed: by readings of the server, else by the engine on load hosts."""
        opened, closed = edges.opened, edges.closed
        if opened.process and closed.process:
            return opened.process.t_monotonic_s, closed.process.t_monotonic_s
        ready = self._engine.ready if self._engine is not None else None
        if ready is None or type(self.surroundings) is Surroundings:
            return None
        started_s = ready.started_monotonic_ns / 1e9
        return started_s + opened.t_ms / 1000, started_s + closed.t_ms / 1000

    def _probe(self, server: RunningTarget) -> None:
        """Does the rate rise with more users? Nothing that goes wrong here may cost the trial."""
        facts = trial_facts(self.plan, self.under_test)
        if self._interrupted or not probed(self.plan, facts, owned=self.under_test.owned):
            return
        self.listener.phase("probe", self.plan.probe_s)
        try:
            self._scaling_probe = scaling_probe(
                self._load(server), self.plan.probe_s, self.surroundings.engine
            )
        except EnvironmentFault as fault:
            self._note(f"the scaling probe after the window failed: {fault}")

    def _follow_up(self, server: RunningTarget) -> None:
        """The load that comes after, and the clean-up. Nothing that goes wrong here may cost the trial."""
        if self.plan.after is not None and server.exit_description() is None:
            self.listener.phase("clean-up", None)
            try:
                self._stages += (self._stage(server, self.plan.after, "after"),)
            except EnvironmentFault as fault:
                self._clean = False
                self._note(f"the load after the measured one failed: {fault}")
        self._clean_up()
        for note in stage_notes(self._stages):
            self._note(note)

    def _stage(self, server: RunningTarget, stage: Stage, name: Literal["before", "after"]) -> StageReport:
        preparation = self._made()
        known = captured_values.knowing(stage.workload, preparation.values)
        stage = stage.model_copy(update={"workload": known})
        report = offer_stage(self._load(server), stage, name, self.surroundings.engine)
        preparation.values = {**preparation.values, **report.report.values}
        return report

    def _clean_up(self) -> None:
        """Take back what was prepared; what goes wrong there is noted."""
        workload, preparation = self.plan.workload, self._made()
        ended = self._server is None or self._server.exit_description() is not None
        if not workload.cleanup or ended or (workload.prepare and not preparation.done):
            return
        self.listener.phase("clean-up", None)
        wrong = preparation.clean_up()
        if wrong is not None:
            self._clean = False
            self._note(f"the clean-up of {workload.name} failed: {wrong}")

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self.listener.note(f"{self.under_test.name}: {text}")

    def _cut_short(self) -> None:
        if not self._interrupted:
            whole = len(self._beside) == len(self.plan.beside)
            self._notes.append(CUT_SHORT if whole else INTERRUPTED)
        self._interrupted = True

    def _own_pids(self) -> set[int]:
        server, engine = self._server, self._engine
        pids = set() if server is None else {*server.pids(), *server.service_pids()}
        pids |= set() if self.duet is None else self.duet.pids()
        return pids if engine is None else pids | engine.pids

    def _measured_load(self, server: RunningTarget) -> EngineLoad:
        """Beside a profile with the slowest requests one by one, which are held against it. In a duet it is
        long enough for all to warm up and have their turns.
        """
        load = self._load(server)
        if self.duet is not None:
            return load.model_copy(update={"after_s": self.plan.deadline_s * 2 * self.duet.size})
        return load if self.collector is None else load.model_copy(update={"slowest": Slowest()})

    def _load(self, server: RunningTarget) -> EngineLoad:
        return engine_load(
            self.plan,
            url=server.url,
            tls=server.tls,
            addresses=server.addresses,
            cpus=self.surroundings.partition.client,
            realtime=self._apart,
            workload=self.plan.workload if self._preparation is None else self._preparation.prepared,
            seed=self.seed,
        )

    @property
    def _apart(self) -> bool:
        """Whether nothing of the server can run on the client's CPUs: one that Prony did not start may."""
        sides = self.surroundings.partition
        return sides.separate and (self.under_test.owned or sides.apart)

    def _stop(self) -> bool | None:
        """End the engine and the server; whether the latter was gone then."""
        if self._engine is not None:
            with suppress(
                EnvironmentFault
            ):  # it has no last words: there is no report, which is said already
                self._in_order(self._engine.stop)
        if self._server is None:
            return None
        process = self.process
        if self.under_test.owned and not (process is not None and process.keeps and self._whole):
            self.listener.phase("stop", 1)
        if process is not None:
            return self._in_order(lambda: process.release(well=self._whole))
        return self._in_order(self._server.stop)

    @property
    def _whole(self) -> bool:
        return self._well and self._clean and not self._interrupted

    def _in_order(self, stop: Callable[[], T]) -> T:
        """An interrupt meanwhile does not leave the process behind, nor lose what has been measured."""
        try:
            return stop()
        except KeyboardInterrupt:
            self._cut_short()
            return stop()

    def _report(self) -> EngineReport | None:
        """What the engine left behind; None when it did not come so far."""
        if self._engine is None or self._engine.ready is None:
            return None
        try:
            report = self._engine.report()
        except EnvironmentFault:
            return None
        log = report.log
        if log is not None and log.error is not None:
            self._note(f"the request log {log.path} lacks {log.rows_lost} requests: {log.error}")
        return report if self._member is None else self._member.load_time.report(report)

    def _services(self) -> tuple[ServiceUse, ...]:
        if self._server is None:
            return ()
        opened = {} if self._edges is None else self._edges.opened.services
        closed = {} if self._edges is None else self._edges.closed.services
        used = self._server.service_use(opened, closed)
        if not self._found:
            return used
        return tuple(one.model_copy(update={"peak_rss_bytes": None}) for one in used)

    def _evidence(self, clean_stop: bool | None) -> Evidence:
        server, partition, member = self._server, self.surroundings.partition, self._member
        edges = self._edges
        host_rows = self._host_rows if member is None else member.load_time.host_rows(self._host_rows)
        return Evidence(
            load=trial_facts(self.plan, self.under_test),
            engine=self._report(),
            server=self.under_test.identity if server is None else server.identity,
            start_up=self._start_up,
            server_window=self._server_window,
            client_throttle=None
            if edges is None
            else cgroup.between(edges.opened.client_throttle, edges.closed.client_throttle),
            services=self._services(),
            host_window=self._host_window,
            host_rows=host_rows,
            partition=self._sides,
            limits=self.surroundings.limits,
            probes=() if self._preflight is None else self._preflight.asked.probes,
            ceilings=self.under_test.ceilings(self.plan, len(partition.server)),
            scaling_probe=self._scaling_probe,
            server_count=self._server_count,
            published=self._published,
            warm_up=self._warm_up,
            phases=tuple(self._phases.ended),
            stages=(*self._stages, *(() if self._preparation is None else self._preparation.called)),
            after_load=self._after_load,
            turns=None if self.duet is None or member is None else self.duet.turns_of(member),
            beside=self._beside,
            profile=self._profile,
            clean_stop=clean_stop,
            hosts=self.surroundings.evidence(),
        )


def around(tools: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """The other tools that run before Prony's own load, and those that run after it, in shuffled order."""
    order = random.Random(seed).sample([None, *tools], len(tools) + 1)
    own = order.index(None)
    before, after = order[:own], order[own + 1 :]
    return [one for one in before if one], [one for one in after if one]
