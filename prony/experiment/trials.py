"""One trial of an experiment: run, judge, store; a calibration may complete it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median, median_high
from typing import Any, Protocol

from prony import redaction
from prony.errors import EnvironmentFault
from prony.evidence.conformance import CheckResult, CheckStatus, Conformance
from prony.evidence.trial import ConformanceFacts, Evidence, Nonconformity, TrialRecord
from prony.experiment.calibrating import Calibrations
from prony.experiment.conclude import Conclusion, conclude, unjudged
from prony.experiment.testbed import Progress, Testbed
from prony.host.affinity import pin_self
from prony.judge.checks.client import ClientLimits, ceiling_decides
from prony.judge.checks.steady import SteadyWindowLimits
from prony.judge.figures import FIGURE
from prony.judge.judging import disturbed
from prony.judge.limits import CheckLimits
from prony.numbers import number
from prony.plan.cell import Cell
from prony.plan.plan import Plan, ScheduledTrial
from prony.plan.processes import name_within
from prony.plan.trial import TrialPlan
from prony.server.spec import HttpVersion
from prony.store import Store
from prony.targets import ServerUnderTest
from prony.targets.base import OnLine, RunningTarget
from prony.trial.duet import Duet
from prony.trial.process import SharedProcess
from prony.trial.run import run_trial
from prony.trial.surroundings import ProfileCollector, Surroundings, TrialObserver

MOST_SCRIPT_CHARACTERS = 1_000_000


SHORT = ("answers", "keep-alive", "concurrent", "streams", "delay")
"""The checks that a figure rests on; the others concern clients that no measurement uses."""


class Profilers(Protocol):
    """The profilers of an experiment."""

    def prepare(self, targets: Sequence[ServerUnderTest], on_line: OnLine) -> None:
        """Fetch what these servers need. The profile names a profiler that is unavailable."""

    def collector(self) -> ProfileCollector:
        """For an explained trial."""

    def explain(self, store: Store, experiment: str) -> None:
        """Store the explanation of each part with its last explained trial."""


@dataclass(frozen=True, slots=True)
class EndedTrial:
    """A trial that is stored."""

    record: TrialRecord
    conclusion: Conclusion

    @property
    def disturbed(self) -> bool:
        """Whether other load on the host biases it enough to repeat it."""
        return disturbed(self.conclusion.judgement, self.record.failure)


@dataclass(slots=True)
class Trials:
    """Runs the trials of an experiment, each judged and stored when it ends."""

    identifier: str
    store: Store
    testbed: Testbed
    progress: Progress
    profilers: Profilers | None = None
    last_s: float = 0.0
    """Duration of the newest trial, without trials that ran within it (a duet's)."""
    _all_s: float = 0.0
    _calibrations: Calibrations = field(init=False)

    def __post_init__(self) -> None:
        self._calibrations = Calibrations(self.testbed.fingerprint.key)

    def run(
        self,
        plan: Plan,
        scheduled: ScheduledTrial,
        target: ServerUnderTest,
        *,
        attempt: int = 1,
        faults_end_it: bool = False,
        process: SharedProcess | None = None,
        duet: Duet | None = None,
    ) -> EndedTrial:
        """Run a trial, judge it and store it. A trial without load is stored as failed, or with
        `faults_end_it` raises EnvironmentFault (never after a measured window). `process`: shared with other
        trials. `duet`: the servers that take turns. An interrupt raises KeyboardInterrupt after the measured
        part, if long enough, is stored.
        """
        begun, started_at, earlier_s = time.monotonic(), datetime.now(UTC), self._all_s
        cell, trial = plan.cell(scheduled.cell), plan.trial_of(scheduled)
        warm, known = (False, False) if process is None else (process.warm, process.had(trial.workload.name))
        planned_s = plan.time_s(scheduled, later=warm, new=not known)
        self.progress.trial_started(scheduled.index, cell.server, scheduled.block, planned_s)
        if lost := self.testbed.lost():
            raise EnvironmentFault("; ".join(lost.values()))
        conformance = partial(conformance_of, target, trial, self.testbed, self.progress)
        seed = plan.seed_of(scheduled)
        surroundings = self.testbed.surroundings(target)
        if self.testbed.here:
            pin_self(surroundings.partition.client)  # a server at a URL may change them
        steady = SteadyWindowLimits.among(cell.limits).steady
        outcome = run_trial(
            trial,
            target,
            surroundings,
            self.progress,
            seed=seed,
            steady=steady,
            process=process,
            profile=self.profilers.collector() if self.profilers and scheduled.kind == "explained" else None,
            duet=duet,
            at_end=conformance,
        )
        secrets = credentials_of(cell)
        if outcome.fault is not None and faults_end_it and not _measured(outcome.evidence):
            raise _without(outcome.fault, secrets)
        ended_at = datetime.now(UTC)
        evidence = with_settings(outcome.evidence, self.testbed.settings_changed())
        identifier = trial_id(self.identifier, scheduled.index, attempt)
        within = name_within(cell, plan.part(cell.part).share_process or "loads")
        record = TrialRecord(
            id=identifier,
            experiment_id=self.identifier,
            server=cell.server,
            workload=trial.workload.name,
            load_name=trial.load_name,
            cell=cell.id,
            block=scheduled.block,
            position=scheduled.position,
            seed=seed,
            quick=plan.quick,
            kind=scheduled.kind,
            process=None if process is None else process.facts(identifier, trial.workload.name, within),
            started_at=started_at,
            ended_at=ended_at,
            evidence=evidence.model_copy(
                update={
                    "calibration": self._calibrations.known(trial, evidence),
                    "conformance": conformance(),
                }
            ),
            failure=outcome.failure,
            notes=outcome.notes,
            fingerprint_key=self.testbed.fingerprint.key,
        )
        record = public(record, secrets)
        ended = EndedTrial(record, self._stored(record, cell.limits))
        interrupted = outcome.interrupted
        # Trials that ended early, and explained ones, have no figure to compare with a ceiling.
        ends_here = interrupted or record.failure is not None or scheduled.kind == "explained"
        decides = ceiling_decides(record.evidence, ClientLimits.among(cell.limits))
        if not ends_here and record.evidence.calibration is None and decides:
            ended, interrupted = self._calibrated(trial, ended, cell.limits, surroundings)
        conclusion = ended.conclusion
        self.progress.trial_stored(ended.record, conclusion.judgement, conclusion.figures)
        self.last_s = time.monotonic() - begun - (self._all_s - earlier_s)
        self._all_s += self.last_s
        self.progress.trial_ended(conclusion.judgement, conclusion.figures, self.last_s)
        if interrupted:
            raise KeyboardInterrupt  # this trial is stored; no further one starts
        return ended

    def _stored(self, record: TrialRecord, limits: Mapping[str, Any]) -> Conclusion:
        """Judge and store; a defect of a check or an interrupt while judging does not lose the trial."""
        try:
            conclusion = conclude(record, CheckLimits.model_validate(limits))
        except BaseException as end:
            self.store.add_trial(record, unjudged(end), {})
            raise
        self.store.add_trial(record, conclusion.judgement, conclusion.figures)
        return conclusion

    def _calibrated(
        self, trial: TrialPlan, ended: EndedTrial, limits: Mapping[str, Any], around: Surroundings
    ) -> tuple[EndedTrial, bool]:
        """The trial with the engine's ceiling, and whether the user interrupted the calibration."""
        record = ended.record
        try:
            calibration = self._calibrations.measure(trial, record.evidence, self.progress, around)
            if calibration is None:
                return ended, False
            evidence = record.evidence.model_copy(update={"calibration": calibration})
            record = record.model_copy(update={"evidence": evidence})
            conclusion = conclude(record, CheckLimits.model_validate(limits))
            self.store.complete_trial(record, conclusion.judgement, conclusion.figures)
            return EndedTrial(record, conclusion), False
        except Exception as fault:  # even a defect: the trial is stored
            self.progress.note(f"no calibration: {fault}")
        except KeyboardInterrupt:
            return ended, True
        return ended, False


def credentials_of(cell: Cell) -> frozenset[str]:
    """Credentials in the plan and its script."""
    secrets = redaction.secrets_of(cell.model_dump(mode="json"))
    if cell.trial.script is None:
        return secrets
    try:
        with Path(cell.trial.script.file).open(encoding="utf-8", errors="replace") as script:
            return secrets | redaction.secrets_in(script.read(MOST_SCRIPT_CHARACTERS))
    except OSError:
        return secrets  # the engine reports it


def public(record: TrialRecord, secrets: Collection[str]) -> TrialRecord:
    """The record without credentials, as judged, stored and shown."""
    stored = record.model_dump(mode="json")
    made = redaction.plain(redaction.without(stored, secrets))
    return record if made == stored else TrialRecord.model_validate(made)


def _without(fault: EnvironmentFault, secrets: Collection[str]) -> EnvironmentFault:
    message, details = (redaction.without(text, secrets) for text in (str(fault), fault.details or ""))
    if (message, details) == (str(fault), fault.details or ""):
        return fault
    return EnvironmentFault(message, details=details or None)


def _measured(evidence: Evidence) -> bool:
    """Whether its window closed; an engine that fails later leaves no report."""
    return any(phase.name == "window" for phase in evidence.phases)


def with_settings(evidence: Evidence, changed_since: tuple[str, ...]) -> Evidence:
    """With kernel settings that changed between blocks, outside of any window."""
    host = evidence.host_window
    if host is None or host.sysctls_changed is None or not changed_since:
        return evidence
    every = tuple(sorted({*host.sysctls_changed, *changed_since}))
    return evidence.model_copy(update={"host_window": host.model_copy(update={"sysctls_changed": every})})


def trial_id(experiment: str, index: int, attempt: int = 1) -> str:
    """The id of a trial in the store."""
    again = f"-{attempt}" if attempt > 1 else ""
    return f"{experiment}-{index:03d}{again}"


def index_of(trial: TrialRecord) -> int:
    """Its place in the order of its experiment, from 1; the same for each attempt."""
    return int(trial.id.removeprefix(f"{trial.experiment_id}-").partition("-")[0])


NOT_CHECKED = ConformanceFacts(passed=0, checks=0)
_known: dict[tuple[object, ...], ConformanceFacts] = {}
"""Until this program ends: the points of a sweep share server and workload."""


def conformance_of(
    target: ServerUnderTest,
    plan: TrialPlan,
    testbed: Testbed,
    listener: TrialObserver,
    server: RunningTarget | None = None,
) -> ConformanceFacts | None:
    """Checked once, of the first `server` that had its load. None: not built, or not yet checked."""
    workload, built = plan.workload, target.built
    version = plan.in_http_version(target.http_version).connections.http_version
    spoken: HttpVersion = "2" if version == "2" else "1.1"
    if built is None:
        return None
    of_server = (target.name, built.spec.name, built.spec.file, built.key)
    key = (*of_server, workload.name, spoken, *workload.settings.items())
    if server is not None and key not in _known:
        listener.phase("conformance", None)
        conformance = testbed.conformance(server, workload, SHORT, spoken)
        _known[key] = NOT_CHECKED if conformance is None else _facts(conformance)
        for result in conformance.failed if conformance else ():
            listener.note(f"{result.server} does not conform: {result.check}: {result.found}")
    return _known.get(key)


def _facts(conformance: Conformance) -> ConformanceFacts:
    def listed(results: Iterable[CheckResult]) -> tuple[Nonconformity, ...]:
        return tuple(Nonconformity(check=r.check, found=r.found, expected=r.expected) for r in results)

    declared = (result for result in conformance.results if result.status is CheckStatus.DECLARED)
    passed, checks = len(conformance.counted) - len(conformance.failed), len(conformance.counted)
    return ConformanceFacts(
        passed=passed, checks=checks, failed=listed(conformance.failed), declared=listed(declared)
    )


@dataclass(slots=True)
class CellResults:
    """Ended trials by cell and block, the last attempt of each."""

    _ended: dict[str, dict[int, EndedTrial]] = field(default_factory=dict)

    def add(self, scheduled: ScheduledTrial, ended: EndedTrial) -> None:
        """Add a measured trial (no control, not explained)."""
        self._ended.setdefault(scheduled.cell, {})[scheduled.block] = ended

    def words(self, plan: Plan, cell: Cell) -> str:
        """The cell's figure in a line; empty for a single trial and while trials remain or may be added."""
        part, ended = plan.part(cell.part), self._ended.get(cell.id, {})
        planned = sum(scheduled.cell == cell.id and scheduled.kind == "trial" for scheduled in plan.order())
        if len(ended) < max(2, planned) or part.until_clear is not None or part.search is not None:
            return ""
        alone = sum(other.server == cell.server for other in plan.of(cell.part)) == 1
        name = cell.server if alone else cell.id.removeprefix(f"{cell.part}/")
        return f"{name}: {_figure(cell, list(ended.values()))}"


def _figure(cell: Cell, ended: list[EndedTrial]) -> str:
    from prony.analysis import CLOSED_FIGURE, compared_figure  # imports scipy: not during a measurement

    name = compared_figure(cell.trial.load)
    conforming = [trial for trial in ended if trial.conclusion.judgement.conforms]
    values = [value for trial in conforming if (value := trial.conclusion.figures.get(name)) is not None]
    over = f"{len(values)} of {len(ended)} trials" if len(values) < len(ended) else f"{len(ended)} trials"
    if not values:
        return f"no figure: none of its {len(ended)} trials conforms"
    middle = median(values) if name == CLOSED_FIGURE else median_high(values)
    spread = f"({number(min(values))}–{number(max(values))})"
    known = FIGURE[name]
    figure = (
        f"{number(middle)} requests/s {spread}"
        if name == CLOSED_FIGURE
        else f"{known.label} {number(middle)} {spread} {known.unit}"
    )
    return f"{figure} over {over}"
