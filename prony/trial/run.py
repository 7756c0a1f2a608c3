"""`run_trial`: a trial of any target, from the server's start to its stop, as evidence.

Order: start (timed), the workload's preparation, preflight, the load before, the published protocol's first
requests on the server's own CPUs, warm-up under the trial's load, own CPUs and settle, window, scaling probe,
the load after, the workload's clean-up, stop and check. A whole run replaces the steps from the published
part to the window. A process left running by an earlier trial only settles.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

from prony.errors import EnvironmentFault
from prony.evidence.engine import REQUEST_FAILED
from prony.evidence.trial import Evidence, StageReport
from prony.load.base import HostLost
from prony.load.preflight import Preflight
from prony.load.short import complaint
from prony.plan import captured_values
from prony.plan.stage import Stage
from prony.plan.trial import TrialPlan
from prony.steady.limits import SteadyLimits
from prony.targets.base import RunningTarget, ServerUnderTest
from prony.trial.duet import Duet
from prony.trial.load_run import INTERRUPTED
from prony.trial.measured_load import offer
from prony.trial.preparation import Preparation, offer_stage, probed, scaling_probe, stage_notes
from prony.trial.process import SharedProcess, answers_again
from prony.trial.state import Trial
from prony.trial.surroundings import ProfileCollector, Surroundings, TrialObserver, trial_facts
from prony.trial.warming import Phases

START_ESTIMATE_S = 5.0
T = TypeVar("T")
CUT_SHORT = "interrupted after the measured part: clean-up and stop were cut short"


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """Evidence of a trial, without conformance and calibration, however it ended."""

    evidence: Evidence
    failure: str | None = None
    fault: EnvironmentFault | None = None
    """The cause of `failure`, unless the server ended under load."""
    interrupted: bool = False
    """Interrupted by the user; the evidence is of the measured part so far."""
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
    at_end: Callable[[RunningTarget], object] | None = None,
) -> TrialOutcome:
    """Measure `server` once; a server that Prony started is stopped in every case. `steady`: limits of the
    warm-up. `process`: shared with other trials. `profile`: collects during the window. `duet`: the window is
    in turns with the duet's other servers. `at_end`: called after the load, before the stop.
    A fault of the environment is an outcome with a `fault`. Raises UsageError for a workload that cannot be
    sent, KeyboardInterrupt before a measured part worth keeping.
    """
    plan = plan.in_http_version(server.http_version)
    steady = steady or SteadyLimits()
    trial = Trial(plan, server, surroundings, listener, seed, steady, process, profile, duet)
    failure: str | None = None
    fault: EnvironmentFault | None = None
    try:
        failure = _measure_once(trial, at_end)
        trial.as_planned = failure is None
    except HostLost as lost:
        failure = str(lost)
    except EnvironmentFault as raised:
        failure, fault = str(raised), raised
    except KeyboardInterrupt:
        _cut_short(trial)
    finally:
        clean = _stop(trial)
    if trial.interrupted and trial.edges is None:
        raise KeyboardInterrupt
    return TrialOutcome(trial.evidence(clean), failure, fault, trial.interrupted, tuple(trial.notes))


def _measure_once(trial: Trial, at_end: Callable[[RunningTarget], object] | None) -> str | None:
    """Every step but the stop; a sentence when the server ended under load."""
    if trial.under_test.owned:
        trial.phases = Phases(trial.surroundings.partition.server)
    server = trial.server = _start(trial)
    load, single = trial.load(server), trial.surroundings.single
    preparation = trial.preparation = Preparation(load, single, trial.plan.script)
    preflight = Preflight(load, single)
    if trial.plan.preflight and preflight.possible:
        trial.preflight = preflight
    _wait_ready(trial, server)
    _prepare(trial, server, preparation)
    failure = offer(trial, server)
    server.look()
    if failure is None and trial.edges is not None:
        _probe_scaling(trial, server)
    _follow_up(trial, server, preparation)
    if at_end is not None and failure is None and not trial.interrupted:
        try:
            at_end(server)
        except Exception as fault:  # even a defect: the load was measured
            trial.note(f"conformance was not checked: {fault}")
    return failure


def _start(trial: Trial) -> RunningTarget:
    running = trial.process.running() if trial.process is not None else None
    if trial.process is not None and running is not None:
        trial.already_running = True
        trial.workload_known = trial.process.had(trial.plan.workload.name)
        return running
    if trial.under_test.owned:
        trial.listener.phase("start", START_ESTIMATE_S)
    server = trial.under_test.start(trial.surroundings.partition)
    if trial.process is not None:
        trial.process.keep(server)
    return server


def _wait_ready(trial: Trial, server: RunningTarget) -> None:
    """Wait for the server; where no preparation is needed, the first right responses are the preflight."""
    preflight = None if trial.plan.workload.prepare else trial.preflight
    if not trial.already_running:
        trial.start_up = server.wait_ready(preflight, trial.plan.start_timeout_s)
    elif preflight is not None:
        answers_again(server, preflight, trial.under_test.name)
    request = None if preflight is None else preflight.wrong_request
    if preflight is not None and request is not None:
        raise EnvironmentFault(
            f"{request.method} {server.url}{request.path}: {preflight.result.wrong}; correct the request: a "
            "load on an error page measures nothing"
        )


def _prepare(trial: Trial, server: RunningTarget, preparation: Preparation) -> None:
    """The workload's preparation, then the load before. Raises EnvironmentFault."""
    preflight = trial.preflight
    if trial.plan.workload.prepare:
        trial.listener.phase("prepare", None)
        wrong = preparation.prepare()
        if wrong is None and preflight is not None:
            preflight.ask(preparation.values)
            wrong = preflight.result.no_response or preflight.result.wrong
        if wrong is not None:
            _clean_up(trial, preparation)
            raise EnvironmentFault(f"the preparation of {trial.plan.workload.name} failed: {wrong}")
    if trial.plan.before is not None:
        trial.listener.phase("prepare", None)
        stage = _stage(trial, server, preparation, trial.plan.before, "before")
        trial.stages += (stage,)
        if stage.report.reason == REQUEST_FAILED:
            _clean_up(trial, preparation)
            raise EnvironmentFault(
                "the load before the measured one ended at its first failed request, as planned: "
                f"{complaint(stage.report)}; no further request was sent"
            )


def _probe_scaling(trial: Trial, server: RunningTarget) -> None:
    """Throughput with more users. A fault here is a note."""
    facts = trial_facts(trial.plan, trial.under_test)
    if trial.interrupted or not probed(trial.plan, facts, owned=trial.under_test.owned):
        return
    trial.listener.phase("probe", trial.plan.probe_s)
    try:
        trial.scaling_probe = scaling_probe(trial.load(server), trial.plan.probe_s, trial.surroundings.engine)
    except EnvironmentFault as fault:
        trial.note(f"the scaling probe after the window failed: {fault}")


def _follow_up(trial: Trial, server: RunningTarget, preparation: Preparation) -> None:
    """The load after, and the clean-up. Faults here are notes."""
    if trial.plan.after is not None and server.exit_description() is None:
        trial.listener.phase("clean-up", None)
        try:
            trial.stages += (_stage(trial, server, preparation, trial.plan.after, "after"),)
        except EnvironmentFault as fault:
            trial.cleaned_up = False
            trial.note(f"the load after the measured one failed: {fault}")
    _clean_up(trial, preparation)
    for note in stage_notes(trial.stages):
        trial.note(note)


def _stage(
    trial: Trial,
    server: RunningTarget,
    preparation: Preparation,
    stage: Stage,
    name: Literal["before", "after"],
) -> StageReport:
    known = captured_values.knowing(stage.workload, preparation.values)
    stage = stage.model_copy(update={"workload": known})
    report = offer_stage(trial.load(server), stage, name, trial.surroundings.engine)
    preparation.values = {**preparation.values, **report.report.values}
    return report


def _clean_up(trial: Trial, preparation: Preparation) -> None:
    """The workload's clean-up. A fault here is a note."""
    workload = trial.plan.workload
    ended = trial.server is None or trial.server.exit_description() is not None
    if not workload.cleanup or ended or (workload.prepare and not preparation.done):
        return
    trial.listener.phase("clean-up", None)
    wrong = preparation.clean_up()
    if wrong is not None:
        trial.cleaned_up = False
        trial.note(f"the clean-up of {workload.name} failed: {wrong}")


def _cut_short(trial: Trial) -> None:
    if not trial.interrupted:
        whole = len(trial.peer_runs) == len(trial.plan.beside)
        trial.notes.append(CUT_SHORT if whole else INTERRUPTED)
    trial.interrupted = True


def _stop(trial: Trial) -> bool | None:
    """End engine and server; whether the server was gone afterwards, None if kept or not started."""
    if trial.engine is not None:
        with suppress(EnvironmentFault):  # then there is no report, and the fault is already known
            _uninterrupted(trial, trial.engine.stop)
    if trial.server is None:
        return None
    process = trial.process
    if trial.under_test.owned and not (process is not None and process.keeps and trial.well):
        trial.listener.phase("stop", 1)
    if process is not None:
        return _uninterrupted(trial, lambda: process.release(well=trial.well))
    return _uninterrupted(trial, trial.server.stop)


def _uninterrupted(trial: Trial, stop: Callable[[], T]) -> T:
    """An interrupt during the stop leaves no process behind and loses no measured part."""
    try:
        return stop()
    except KeyboardInterrupt:
        _cut_short(trial)
        return stop()
