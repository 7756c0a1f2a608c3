"""Experiments whose trials are made up: no process, no socket, no time. What is real: plan, order, judge,
store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from prony.errors import EnvironmentFault
from prony.evidence.host import CpuPartition, Limits
from prony.evidence.trial import Calibration, Evidence, Phase
from prony.experiment import calibrating, experiment, trials
from prony.experiment.conclude import Conclusion
from prony.experiment.experiment import Experiment
from prony.experiment.testbed import Testbed
from prony.judge.finding import Bias, Finding, Judgement
from prony.load.facts import load_facts
from prony.plan import workload
from prony.plan.cell import Cell, cell_of
from prony.plan.load import ClosedLoad, Load, OpenLoad, SteadyWindow
from prony.plan.part import Part
from prony.plan.plan import MAIN, Plan
from prony.plan.target import Launch
from prony.plan.trial import TrialPlan
from prony.report.progress_state import SilentProgress
from prony.store import Store, StoredTrial
from prony.trial.load_run import INTERRUPTED
from prony.trial.run import TrialOutcome
from tests.judge import factory
from tests.store.store_samples import FINGERPRINT

Answer = tuple[dict[str, float], tuple[Finding, ...]]
"""What a made-up trial comes to: figures and findings that do something."""


def finding(check: str, *, conforms: bool = False, advice: str = "", **more: Any) -> Finding:
    return Finding(check=check, conforms=conforms, reason=f"{check} said so", advice=advice, **more)


def others(check: str = "isolation", lost: float = 0.3) -> Finding:
    """Others took so much of the server's CPUs: the rate would be that much higher, each time shorter."""
    bias = {"requests_per_s": Bias(high=lost), "mean_ms": Bias(low=-lost), "p50_ms": Bias(low=-lost)}
    return finding(check, conforms=True, bias=bias, outside=True, advice="end the other processes")


def trial_plan(load: Load | None = None, window_s: float = 10.0) -> TrialPlan:
    return TrialPlan(
        workload=workload.load("hello"),
        load=load or ClosedLoad(users=8),
        measured=SteadyWindow(window_s=window_s),
    )


def cell(server: str, trials: int = 1, load: Load | None = None, part: str = MAIN, **more: Any) -> Cell:
    return cell_of(part, server, Launch(address=server), trial_plan(load), trials, **more)


def plan(*cells: Cell, parts: tuple[Part, ...] = (), command: str = "compare", **more: Any) -> Plan:
    parts = parts or (Part(name=MAIN, title="made up", shape="comparison"),)
    return Plan(name=command, command=command, title="made up", parts=parts, cells=cells, seed=3, **more)


class FakeTarget:
    """A server under test of which nothing is started."""

    name = "made up"
    owned = True
    built = None
    closes_after = None
    max_connections: int | None = None
    http_version = None
    unix = None
    https = False
    destinations = 1
    has_services = False

    def __init__(self, unbuildable: str = "") -> None:
        self.unbuildable = unbuildable

    def prepare(self, on_line: object) -> None:
        del on_line
        if self.unbuildable:
            raise EnvironmentFault(self.unbuildable)

    def limits(self, found: Limits) -> Limits:
        return found


class FakeProcess:
    """A server that runs, and is told to stop."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.kept: list[bool] = []
        """Trial by trial, whether it was to be left running."""
        self.stops = 0
        self.ended: str | None = None

    def exit_description(self) -> str | None:
        return self.ended

    def ended_service(self) -> str | None:
        return None

    def stop(self) -> bool:
        self.stops += 1
        return True


class FakeTargets:
    def __init__(self) -> None:
        self.known: dict[str, FakeTarget] = {}

    def of(self, cell: Cell) -> Any:
        return self.known.setdefault(cell.server, FakeTarget())


class Notes(SilentProgress):
    """Progress that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.ended: list[str] = []
        self.started: list[tuple[int, int]] = []
        """Trials ahead, and those of earlier runs."""

    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None:
        del estimate_s
        self.started.append((total_trials, ended))

    def note(self, text: str) -> None:
        self.said.append(text)

    def trial_ended(self, judgement: Judgement, figures: Mapping[str, float], seconds: float) -> None:
        del figures, seconds
        first = next((f"{one.check}: {one.reason}" for one in judgement.not_conforming), "conforms")
        self.ended.append(first)


@dataclass
class Bench:
    """Where made-up trials run: what each comes to is said by `answer`."""

    store: Store
    answer: Callable[[Cell, int], Answer] = lambda cell, number: ({"requests_per_s": 1000.0}, ())  # noqa: ARG005
    """(cell, how many trials of it ran before) -> its figures and findings."""
    faults: dict[str, str] = field(default_factory=dict)
    """Server -> why no load can be offered to it."""
    fault_before_load: bool = True
    """Or after the measured window."""
    interrupt_at: int | None = None
    """The user ends the trial of this number (from 1), which is kept."""
    ran: list[Cell] = field(default_factory=list)
    processes: list[FakeProcess] = field(default_factory=list)
    """Those that trials shared."""
    duets: list[tuple[str, str]] = field(default_factory=list)
    """(seed of the turns, server) of each trial that took part in a duet."""
    targets: FakeTargets = field(default_factory=FakeTargets)
    progress: Notes = field(default_factory=Notes)
    current: Cell | None = None
    calibrate: Callable[[], Calibration] = lambda: Calibration(
        ceiling_per_s=60_000, body_bytes=12, duration_s=1.5
    )

    def experiment(self, plan: Plan, **more: Any) -> Experiment:
        testbed = Testbed(
            partition=CpuPartition(server=(0,), client=(1,)), limits=Limits(), fingerprint=FINGERPRINT
        )
        return Experiment(plan, self.targets, self.store, testbed, self.progress, **more)  # type: ignore[arg-type]

    def run(self, plan: Plan, **more: Any) -> tuple[Plan, list[StoredTrial]]:
        """To its end: the plan as it is stored then, and its trials."""
        identifier = self.experiment(plan, **more).run()
        return self.stored(identifier)

    def stored(self, identifier: str) -> tuple[Plan, list[StoredTrial]]:
        row = self.store.experiment(identifier)
        return Plan.model_validate(row.spec), self.store.trials(identifier)


LONGEST_NS = 3_000_000_000_000
"""A histogram holds an hour."""


def ran_before(made: Bench) -> int:
    """How many trials of the current cell ran before this one."""
    assert made.current is not None
    return sum(one.id == made.current.id for one in made.ran) - 1


def with_latency(evidence: Evidence, figures: Mapping[str, float]) -> Evidence:
    """Every latency as long as the p99 of these figures, if they have one: a search decides by the times."""
    if "p99_ms" not in figures:
        return evidence
    return factory.window(
        evidence, latency=factory.of_values([int(min(figures["p99_ms"] * 1e6, LONGEST_NS))], 80_000)
    )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(Store.open(tmp_path / "results.db"))
    run_of = trials.Trials.run

    def remembering(self: trials.Trials, plan: Plan, scheduled: Any, target: Any, **more: Any) -> Any:
        made.current = plan.cell(scheduled.cell)
        return run_of(self, plan, scheduled, target, **more)

    def run_trial(plan: TrialPlan, *_: object, process: Any = None, **more: Any) -> TrialOutcome:
        assert made.current is not None
        duet, current = more.get("duet"), made.current
        if duet is not None:
            made.duets.append((duet.seed, current.server))
            if duet.coming:
                duet.coming.pop(0)()
                made.current = current
        if process is None:
            return outcome_of(plan)
        running = process.running()
        if running is None:
            running = FakeProcess()
            made.processes.append(running)
            process.keep(running)
        running.cells.append(made.current.id)
        running.kept.append(process.keeps)
        outcome = outcome_of(plan)
        process.release(well=outcome.failure is None and not outcome.interrupted)
        return outcome

    def outcome_of(plan: TrialPlan) -> TrialOutcome:
        assert made.current is not None
        made.ran.append(made.current)
        evidence = factory.healthy().model_copy(
            update={"load": load_facts(plan.load, plan.workload, plan.connections, duration_s=1.0)}
        )
        why = made.faults.get(made.current.server)
        if why is not None:
            window = Phase(name="window", start_ms=0, end_ms=1000)
            phases = () if made.fault_before_load else (window,)
            left = evidence.model_copy(update={"engine": None, "phases": phases})
            return TrialOutcome(left, why, EnvironmentFault(why))
        evidence = with_latency(evidence, made.answer(made.current, ran_before(made))[0])
        if made.interrupt_at == len(made.ran):
            return TrialOutcome(evidence, interrupted=True, notes=(INTERRUPTED,))
        return TrialOutcome(evidence)

    def conclude(record: Any, limits: object) -> Conclusion:
        del limits
        assert made.current is not None
        figures, findings = made.answer(made.current, ran_before(made))
        conforms = record.failure is None and all(one.conforms for one in findings)
        return Conclusion(Judgement(conforms=conforms, findings=findings), figures)

    monkeypatch.setattr(trials.Trials, "run", remembering)
    monkeypatch.setattr(trials, "run_trial", run_trial)
    monkeypatch.setattr(trials, "conclude", conclude)
    monkeypatch.setattr(calibrating, "calibrate", lambda *_, **_where: made.calibrate())
    monkeypatch.setattr(experiment, "pin_self", lambda _: None)
    return made


def users_of(cell: Cell) -> int:
    assert isinstance(cell.trial.load, ClosedLoad)
    return cell.trial.load.users


def rate_of(cell: Cell) -> float:
    assert isinstance(cell.trial.load, OpenLoad)
    assert cell.trial.load.rate_per_s is not None
    return cell.trial.load.rate_per_s
