"""The measured load of a trial, from its first request to its last: warm-up and window, or a whole run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from prony import seams
from prony.evidence.engine import REQUEST_FAILED, Mark
from prony.evidence.host import CpuPartition
from prony.evidence.trial import ServerCount, WarmUp
from prony.host.instructions import Instructions
from prony.host.sampler import HostSampler
from prony.load.base import HostLost
from prony.load.contract import EngineLoad, Slowest
from prony.plan.load import DRAIN_S, ClosedLoad, WholeRun
from prony.plan.trial import PUBLISHED_S
from prony.targets.base import RunningTarget
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
from prony.trial.state import Trial
from prony.trial.surroundings import Sampler, Surroundings
from prony.trial.warming import Place, PreciseEnough, Warming

INSTRUCTIONS = "server instructions per request"


def offer(trial: Trial, server: RunningTarget) -> str | None:
    """Offer the load; a sentence when the server ended under it."""
    plan, places = trial.plan, trial.surroundings
    if not trial.under_test.owned:
        theirs = server.cpus()
        client = places.partition.client
        trial.sides = CpuPartition(server=theirs, client=client, apart=places.apart) if theirs else None
    before, after = peers_around(plan.beside, trial.seed)
    sampled = _sampled(trial.sides or places.partition)
    with places.sampler(*sampled, trial.own_pids, server.url) as sampler:
        sampler.watch("server", server.sample)
        resting = (None, None) if trial.duet is not None else at_rest(server)
        _warm_beforehand(trial, server)
        _run_peers(trial, server, before)
        counted = server.request_count()
        engine = trial.engine = places.engine(_engine_load(trial, server))
        run = LoadRun(
            engine, server, trial.listener, _worth_keeping_s(trial), lambda: _cannot_continue(trial)
        )
        failure = _under_load(trial, run, sampler)
        if run.interrupted:
            trial.interrupted = True
            trial.notes.append(INTERRUPTED)
        if engine.ready is not None:
            trial.host_rows = sampler.series(engine.ready.started_monotonic_ns / 1e9)
    engine.stop()
    if engine.end_reason == REQUEST_FAILED:
        trial.note("the load ended early at its first failed request, as planned")
    if failure is None and trial.duet is None and not run.interrupted:
        closed = None if trial.edges is None else trial.edges.closed
        whole = closed is not None and isinstance(plan.measured, WholeRun)
        trial.after_load = run.after_load(closed.process if closed and whole else None, *resting)
    read = None if counted is None else server.request_count()
    if counted is not None and read is not None:
        trial.server_count = ServerCount(requests=read - counted)
    _run_peers(trial, server, after)
    return failure


def peers_around(tools: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """Peer tools before and after Prony's own load, in shuffled order."""
    order = random.Random(seed).sample([None, *tools], len(tools) + 1)
    own = order.index(None)
    before, after = order[:own], order[own + 1 :]
    return [tool for tool in before if tool], [tool for tool in after if tool]


def _sampled(sides: CpuPartition) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """CPU sets to sample; where server and client share any CPU, both get all."""
    if not sides.common:
        return sides.server, sides.client
    both = tuple(sorted({*sides.server, *sides.client}))
    return both, both


def _cannot_continue(trial: Trial) -> str | None:
    """A lost host or a dead server of the duet, in a sentence."""
    return trial.surroundings.failed() or (None if trial.duet is None else trial.duet.lost())


def _run_peers(trial: Trial, server: RunningTarget, tools: Sequence[str]) -> None:
    """Other load generators on the same process; not judged."""
    for name in tools:
        if trial.interrupted or server.exit_description() is not None:
            return
        run_tool = seams.need(seams.HOOKS, "peers", "a second opinion")
        trial.listener.phase(name, trial.plan.measured_s)
        cpus = trial.surroundings.partition.client
        trial.peer_runs += (run_tool(name, trial.plan, server, cpus, trial.seed),)


def _worth_keeping_s(trial: Trial) -> float:
    """Measured time from which an interrupted part is kept; 0 with another tool's script."""
    if not trial.plan.preflight:
        return 0.0
    whole = isinstance(trial.plan.measured, WholeRun)
    return min(WORTH_KEEPING_S, trial.plan.deadline_s / 2) if whole else WORTH_KEEPING_S


def _engine_load(trial: Trial, server: RunningTarget) -> EngineLoad:
    """With a profile it keeps the slowest requests; in a duet it spans all warm-ups and turns."""
    load = trial.load(server)
    if trial.duet is not None:
        return load.model_copy(update={"after_s": trial.plan.deadline_s * 2 * trial.duet.size})
    return load if trial.collector is None else load.model_copy(update={"slowest": Slowest()})


# -- loads before, with engines of their own


def _warm_beforehand(trial: Trial, server: RunningTarget) -> None:
    """Unmeasured loads: the published protocol's requests, first users, a whole run's warm-up."""
    whole = trial.plan.measured
    if not isinstance(whole, WholeRun):
        if trial.plan.published_requests:
            trial.published = _as_published(trial, server, trial.plan.published_requests)
        _warm_closed(trial, server)
    elif whole.warm_up_s > 0:
        _warm_under(trial, server, whole.warm_up_s)
        trial.warm_up = WarmUp(method="fixed", cap_s=whole.warm_up_s, steady=None)


def _as_published(trial: Trial, server: RunningTarget, requests: int) -> Mark | None:
    """The trial's load on a new process up to this number of completed requests; None at the cap."""
    trial.listener.phase("published", PUBLISHED_S)
    most_s = trial.plan.published_cap_s
    load = trial.load(server).unmeasured(most_s, total_requests=requests, marks=(requests,))
    report = trial.surroundings.engine(load).run_to_end(most_s + DRAIN_S, trial.listener.row)
    return next(iter(report.marks), None)


def _warm_closed(trial: Trial, server: RunningTarget) -> None:
    """A few users first, where planned; by default for the JIT compiler of a JVM that Prony launched."""
    users, warm_up = trial.plan.first_users, trial.plan.warm_up
    launched_jvm = trial.under_test.owned and server.jvm() is not None
    if not users or trial.workload_known or (warm_up.closed_users == "auto" and not launched_jvm):
        return
    if trial.under_test.owned:
        Place.take(server, warm_up, trial.surroundings)
    trial.first_users = users
    _warm_under(trial, server, trial.plan.first_s, load=ClosedLoad(users=users))


def _warm_under(trial: Trial, server: RunningTarget, length_s: float, **changes: object) -> None:
    """The trial's load with these changes, unmeasured."""
    trial.listener.phase("warm-up", length_s)
    load = trial.load(server).unmeasured(length_s, **changes)
    trial.surroundings.engine(load).run_to_end(length_s + DRAIN_S, trial.listener.row)


# -- the engine's run


def _under_load(trial: Trial, run: LoadRun, sampler: Sampler) -> str | None:
    """From the first request to the last; a sentence when the server ended."""
    try:
        run.start()
        if isinstance(trial.plan.measured, WholeRun):
            _measure(trial, run, sampler)
            return None
        warming = Warming(
            trial.plan,
            trial.surroundings,
            trial.under_test.owned,
            trial.listener,
            trial.phases,
            trial.steady,
            already_running=trial.already_running,
            new_workload=trial.already_running and not trial.workload_known,
            first_users=trial.first_users,
            first_s=trial.plan.first_s if trial.first_users else 0.0,
        )
        trial.warm_up = warming.warm(run)
        _measure(trial, run, sampler)
    except (ServerDied, HostLost) as death:
        return str(death)
    return None


def _measure(trial: Trial, run: LoadRun, sampler: Sampler) -> None:
    """The window or the whole run; the server is on its own CPUs."""
    plan = trial.plan
    if trial.duet is not None:
        if plan.instructions:
            trial.note(f"{INSTRUCTIONS}: not readable, as its window is in turns")
        _take_turns(trial, run, sampler, trial.duet)
        return
    trial.listener.phase("window", plan.measured_s)
    with _counted(trial, run.server) as count, _profiled(trial, run.server) as profiled:
        sampler.mark()

        def opened() -> None:
            count()
            profiled()

        if isinstance(plan.measured, WholeRun):
            edges = run.follow(plan.deadline_s + DRAIN_S, opened)
        else:
            edges = run.measure(plan.measured_s, PreciseEnough.of(plan), opened)
        instructions = count()
    trial.edges = edges
    trial.server_window = over_window(edges, run.server, placed=trial.under_test.owned)
    if trial.server_window is not None and instructions is not None:
        trial.server_window = trial.server_window.model_copy(update={"instructions": instructions})
    if trial.already_running and trial.server_window is not None:  # an earlier load may have set the peak
        trial.server_window = trial.server_window.model_copy(update={"peak_rss_bytes": None})
    sampler.mark()
    between_s = _instants(trial, edges)
    if between_s is not None:
        trial.host_window = sampler.window(*between_s)
    trial.phases.add("window", edges.opened.t_ms, edges.closed.t_ms)


@contextmanager
def _profiled(trial: Trial, server: RunningTarget) -> Iterator[Callable[[], None]]:
    """Yields a function to call when the measured part begins; the profile is complete afterwards."""
    collector = trial.collector
    if collector is None:
        yield lambda: None
        return
    try:
        collector.attach(server.pids())
        yield lambda: collector.begin(trial.plan.measured_s)
        trial.profile = collector.end()
    except ServerDied:
        trial.profile = collector.end()
        raise
    finally:
        collector.detach()


@contextmanager
def _counted(trial: Trial, server: RunningTarget) -> Iterator[Callable[[], int | None]]:
    """Yields a counter of the server's instructions since its last call; None where not readable."""
    if not trial.plan.instructions:
        yield lambda: None
        return
    here = type(trial.surroundings) is Surroundings
    with Instructions(server.pids() if here else ()) as counter:
        yield counter.lap
    if counter.unread:
        trial.note(f"{INSTRUCTIONS}: not readable, {counter.unread}")


def _take_turns(trial: Trial, run: LoadRun, sampler: Sampler, duet: Duet) -> None:
    """The window, in turns with the other servers; kept even if a later step fails."""
    assert isinstance(sampler, HostSampler), "a duet is measured on this host"
    trial.listener.phase("rest" if duet.coming else "turns", None if duet.coming else duet.plan[-1].ends_s)
    member = Member(trial.under_test.name, run, sampler)
    try:
        duet.take_part(member)
    finally:
        if member.complete:
            trial.member, trial.edges = member, member.whole
            trial.server_window = member.server_window()
            trial.host_window = sampler.turns(member.host) if member.host else None
            load_time = member.load_time
            trial.phases.add("window", load_time.rested_ms, load_time.end_ms)


def _instants(trial: Trial, edges: WindowEdges) -> tuple[float, float] | None:
    """Open and close of the window, s: from readings of the server, else from the engine on load hosts."""
    opened, closed = edges.opened, edges.closed
    if opened.process and closed.process:
        return opened.process.t_monotonic_s, closed.process.t_monotonic_s
    ready = trial.engine.ready if trial.engine is not None else None
    if ready is None or type(trial.surroundings) is Surroundings:
        return None
    started_s = ready.started_monotonic_ns / 1e9
    return started_s + opened.t_ms / 1000, started_s + closed.t_ms / 1000
