"""One trial of an experiment: launch, run, calibrate, judge, store. Both kinds of experiment use it.

Must not know the order of trials, or why this one is run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from prony.evidence.trial import Calibration, Evidence, TrialRecord
from prony.experiment.bench import Bench, Progress
from prony.experiment.conclude import Conclusion, conclude
from prony.experiment.conforming import conformance_of
from prony.host.sysctls import changed, read_sysctls
from prony.judge.limits import CheckLimits
from prony.load.reference import MOST_CONNECTIONS, calibrate
from prony.plan.trial import TrialPlan
from prony.server.build import Built
from prony.store import Store
from prony.target import LaunchedServer
from prony.trial.run import run_trial
from prony.trial.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Place:
    """Where a trial stands in its experiment."""

    index: int
    """From 1; the end of the trial's id."""
    attempt: int = field(default=1, kw_only=True)
    """2 where an interrupted trial is run again, and so on."""
    server: str
    block: int
    position: int
    seed: int
    quick: bool
    kind: Literal["trial", "control"] = "trial"
    cell: str = ""


@dataclass(slots=True)
class Trials:
    """Runs trials of one experiment, each judged and stored when it ends."""

    identifier: str
    store: Store
    bench: Bench
    progress: Progress
    _calibrations: dict[tuple[int, int, int], Calibration] = field(default_factory=dict)

    def run(
        self,
        place: Place,
        plan: TrialPlan,
        built: Built,
        limits: Mapping[str, Any] | None = None,
        *,
        carry_on: bool = False,
    ) -> tuple[TrialRecord, Conclusion]:
        """One trial. A server that never gets ready or an engine that cannot run is an EnvironmentFault, or,
        with `carry_on`, a failed trial that is stored like any other: one cell must not end a night's run.
        """
        begun, started_at = time.monotonic(), datetime.now(UTC)
        self.progress.trial_started(place.index, place.server, place.block)
        conformance = conformance_of(built, plan, self.bench.partition.server, self.progress)
        surroundings = Surroundings(self.bench.partition, self.bench.limits)
        server = LaunchedServer(built.spec, built)
        outcome = run_trial(plan, server, surroundings, self.progress, seed=place.seed)
        if outcome.fault is not None and not carry_on and outcome.evidence.start_up is None:
            raise outcome.fault
        settings = changed(self.bench.fingerprint.sysctls, read_sysctls())
        evidence = with_settings(outcome.evidence, settings).model_copy(
            update={
                "calibration": self._calibration(plan, outcome.evidence),
                "conformance": conformance,
            }
        )
        record = TrialRecord(
            id=trial_id(self.identifier, place.index, place.attempt),
            experiment_id=self.identifier,
            server=place.server,
            workload=plan.workload.name,
            load_name=plan.load_name,
            cell=place.cell,
            block=place.block,
            position=place.position,
            seed=place.seed,
            quick=place.quick,
            kind=place.kind,
            started_at=started_at,
            ended_at=datetime.now(UTC),
            evidence=evidence,
            failure=outcome.failure,
            notes=outcome.notes,
            fingerprint_key=self.bench.fingerprint.key,
        )
        ended = conclude(record, CheckLimits.model_validate(limits or {}))
        self.store.add_trial(record, ended.judgement, ended.figures)
        took_s = time.monotonic() - begun
        self.progress.trial_ended(ended.judgement.verdict, ended.printable_per_s, took_s, ended.why)
        if outcome.failure is not None:
            self.progress.note(f"{place.server}: {outcome.failure}")
        if outcome.interrupted:
            raise KeyboardInterrupt  # kept and judged; nothing more is to be started
        return record, ended

    def _calibration(self, plan: TrialPlan, evidence: Evidence) -> Calibration | None:
        """The engine's ceiling for so many connections and answers of about this length (within a quarter),
        measured once, between trials; the reference server speaks plain HTTP, so over TLS nothing is known.
        """
        if not evidence.probes or evidence.load.tls:
            return None
        body_bytes = evidence.probes[-1].body_bytes
        connections = min(plan.load.at_once, MOST_CONNECTIONS)
        depth = plan.connections.pipeline
        for (length, *kind), calibration in self._calibrations.items():
            if kind == [connections, depth] and abs(length - body_bytes) <= max(64, length // 4):
                return calibration
        self.progress.phase("calibrate", 2.5)
        found = calibrate(self.bench.partition, plan.workload, connections, body_bytes, plan.driver, depth)
        self._calibrations[body_bytes, connections, depth] = found
        return found


def with_settings(evidence: Evidence, changed_since: tuple[str, ...]) -> Evidence:
    """Kernel settings that are no longer what they were when the experiment began: somebody changed them
    between two blocks, and no window of a trial has seen it.
    """
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
    """Its place in the order of its experiment, from 1, whichever attempt it was."""
    return int(trial.id.removeprefix(f"{trial.experiment_id}-").partition("-")[0])
