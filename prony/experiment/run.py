"""Runs an experiment: checks before anything starts, builds, then trials in randomised order, each judged
and stored when it ends.

Must not know how results are shown; it tells a `Progress` what happens.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from prony.compare import Looks
from prony.errors import UsageError
from prony.evidence.engine import IntervalRow
from prony.evidence.host import CpuPartition, Fingerprint, Limits
from prony.evidence.trial import Calibration, Ceiling, Evidence, TrialRecord
from prony.experiment.clear import UntilClear
from prony.experiment.conclude import conclude, refuse
from prony.experiment.plan_text import plan_dict
from prony.host.affinity import pin_self
from prony.judge.finding import Status
from prony.load.reference import calibrate
from prony.plan.load import ClosedLoad
from prony.plan.spec import ExperimentPlan, TrialPlan, pinned
from prony.server.build import Built, build
from prony.server.launch import launch
from prony.server.spec import ServerSpec
from prony.store import ExperimentStatus, Store
from prony.trial.runner import TrialRun, trial_facts
from prony.trial.surroundings import Surroundings


class Progress(Protocol):
    """What an experiment tells while it works (prony.report.progress has the ones that people see)."""

    def experiment_started(self, total_trials: int, estimate_s: float) -> None:
        """So many trials are ahead, and about so many seconds."""

    def build(self, server: str, line: str) -> None:
        """A line from the build of a server."""

    def trial_started(self, index: int, server: str, block: int) -> None:
        """Trial number `index` (from 1) begins."""

    def phase(self, name: str, expected_s: float | None) -> None:
        """The trial enters a phase."""

    def row(self, row: IntervalRow) -> None:
        """One second of load has passed."""

    def trial_ended(self, verdict: Status, requests_per_s: float | None, seconds: float) -> None:
        """The trial is over; no rate when none may be printed."""

    def note(self, text: str) -> None:
        """Something worth a line."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything about the host that is fixed before the first trial."""

    partition: CpuPartition
    limits: Limits
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Turn:
    """One trial in the order of the experiment."""

    index: int
    server: str
    block: int
    position: int
    control: bool = False


@dataclass(slots=True)
class Experiment:
    """One experiment. `run()` returns its id in the store; what had finished is stored whatever happens."""

    plan: ExperimentPlan
    specs: Mapping[str, ServerSpec]
    """By address, one for every server of the plan."""
    store: Store
    bench: Bench
    progress: Progress
    jdk: str | None = None
    _watch: UntilClear | None = None
    _clear: bool = False

    def run(self) -> str:
        """Everything, in order. Raises PronyError; an interrupt marks the experiment and is raised again."""
        self._refuse_what_cannot_work()
        if self.plan.until_clear is not None:
            self._watch = UntilClear(self.plan.servers, Looks(self.plan.trials, self.plan.until_clear))
        turns = self.turns()
        self.progress.experiment_started(len(turns), self.plan.estimate_s)
        built = {
            b.spec.name: b
            for b in build(list(self.specs.values()), jdk=self.jdk, on_line=self.progress.build)
        }
        pin_self(self.bench.partition.client)  # after the builds, which may use every CPU
        self.store.check_writable()
        identifier = self.store.create_experiment(
            name=self.plan.title,
            spec=plan_dict(self.plan),
            fingerprint=self.bench.fingerprint,
            seed=self.plan.seed,
            quick=self.plan.quick,
        )
        status: ExperimentStatus = "interrupted"
        try:
            calibrations: dict[int, Calibration] = {}
            for turn in turns:
                if not self._spared(turn):
                    self._trial(identifier, turn, built[turn.server], calibrations)
            status = "finished"
        finally:
            self.store.finish_experiment(identifier, status)
        return identifier

    def turns(self) -> list[Turn]:
        """All trials in their order, controls last."""
        rows = [(block, position, server, False) for block, position, server in self.plan.order()]
        for control in range(self.plan.controls):
            block = self.plan.most_trials + control
            rows += [(block, at, server, True) for at, server in enumerate(self.plan.servers)]
        return [
            Turn(index, server, block, position, control)
            for index, (block, position, server, control) in enumerate(rows, start=1)
        ]

    def _spared(self, turn: Turn) -> bool:
        """Whether this trial is no longer needed: looked at before each block after the first look."""
        if self._watch is None or turn.control:
            return False
        if turn.position == 0 and turn.block >= self.plan.trials and not self._clear:
            self._clear = self._watch.over()
            if self._clear:
                self.progress.note(f"every pair is clear after {turn.block} blocks")
        return self._clear

    def _refuse_what_cannot_work(self) -> None:
        """Ports and descriptors are forecast before anything is built or started."""
        refuse(trial_facts(self.plan.trial), self.bench.limits)

    def _trial(self, identifier: str, turn: Turn, built: Built, calibrations: dict[int, Calibration]) -> None:
        begun, started_at = time.monotonic(), datetime.now(UTC)
        self.progress.trial_started(turn.index, turn.server, turn.block)
        plan = self._trial_plan(turn)
        server = launch(built, cpus=self.bench.partition.server)
        run = TrialRun(
            plan=plan,
            server=server,
            surroundings=Surroundings(self.bench.partition, self.bench.limits),
            listener=self.progress,
            ceilings=ceilings(built.spec, plan, len(self.bench.partition.server)),
            seed=self.plan.seed + turn.index,
        )
        outcome = run.run()
        evidence = outcome.evidence.model_copy(
            update={"calibration": self._calibration(plan, outcome.evidence, calibrations)}
        )
        record = TrialRecord(
            id=f"{identifier}-{turn.index:03d}",
            experiment_id=identifier,
            server=turn.server,
            workload=plan.workload.name,
            load_name=plan.load_name,
            block=turn.block,
            position=turn.position,
            seed=run.seed,
            quick=self.plan.quick,
            kind="control" if turn.control else "trial",
            started_at=started_at,
            ended_at=datetime.now(UTC),
            evidence=evidence,
            failure=outcome.failure,
            fingerprint_key=self.bench.fingerprint.key,
        )
        ended = conclude(record)
        self.store.add_trial(record, ended.judgement, ended.figures)
        if self._watch is not None:
            self._watch.add(record, ended)
        self.progress.trial_ended(ended.judgement.verdict, ended.printable_per_s, time.monotonic() - begun)
        if outcome.failure is not None:
            self.progress.note(f"{turn.server}: {outcome.failure}")

    def _trial_plan(self, turn: Turn) -> TrialPlan:
        if not turn.control:
            return self.plan.trial
        return self.plan.trial.model_copy(update={"warm_up": pinned(self.plan.trial.warm_up)})

    def _calibration(
        self, plan: TrialPlan, evidence: Evidence, known: dict[int, Calibration]
    ) -> Calibration | None:
        """The engine's ceiling for answers of about this length (within a quarter), measured once, between
        trials.
        """
        if not evidence.probes:
            return None
        body_bytes = evidence.probes[-1].body_bytes
        for length, calibration in known.items():
            if abs(length - body_bytes) <= max(64, length // 4):
                return calibration
        self.progress.phase("calibrate", 2.5)
        known[body_bytes] = calibrate(
            self.bench.partition, plan.workload, plan.load.at_once, body_bytes, plan.driver
        )
        return known[body_bytes]


def ceilings(spec: ServerSpec, plan: TrialPlan, granted_cpus: int) -> tuple[Ceiling, ...]:
    """What bounds the rate besides CPU: declared workers ÷ declared delay, users ÷ declared delay."""
    delay_ms = plan.workload.delay_ms
    if delay_ms is None:
        return ()
    found: list[Ceiling] = []
    if isinstance(plan.load, ClosedLoad):
        found.append(
            Ceiling(
                name="users",
                per_s=plan.load.users / (delay_ms / 1000),
                explanation=f"{plan.load.users} users ÷ {delay_ms:g} ms that every answer takes by design",
            )
        )
    workers = spec.ceilings.workers(granted_cpus)
    if workers is not None:
        found.append(
            Ceiling(
                name="worker threads",
                per_s=workers / (delay_ms / 1000),
                explanation=f"{workers} worker threads ÷ {delay_ms:g} ms that every answer takes by design",
            )
        )
    return tuple(found)


def check_workload(specs: Mapping[str, ServerSpec], workload: str) -> None:
    """Raises UsageError when a server does not claim this workload (one that claims none may try any)."""
    for spec in specs.values():
        if spec.workloads and workload not in spec.workloads:
            offered = ", ".join(spec.workloads)
            raise UsageError(
                f"server '{spec.name}' does not offer the workload '{workload}'; it offers: {offered}"
            )
