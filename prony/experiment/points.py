"""The same target under one load after the other, each measured, judged and stored on its own.

Must not know why a load is tried, nor how results are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from prony.experiment.bench import Bench, Progress
from prony.experiment.run import Experiment
from prony.experiment.running import RunningLoad, measure_running
from prony.judge.finding import Judgement, Status
from prony.plan.load import Load
from prony.plan.spec import ExperimentPlan, TrialPlan
from prony.server.spec import ServerSpec
from prony.store import Store, StoredTrial


@dataclass(frozen=True, slots=True)
class PointTrial:
    """What one trial under one load came to. `figures` is empty when it may not be printed."""

    load: Load
    experiment_id: str
    judgement: Judgement
    failure: str | None
    figures: Mapping[str, float] = field(default_factory=dict)
    blocked: int = 0
    """Arrivals that found no place under way (open loop)."""

    @property
    def counts(self) -> bool:
        """Whether its figures may be used."""
        return self.failure is None and self.judgement.verdict is not Status.INVALID

    @property
    def why(self) -> str:
        """The finding that decided, or what ended the trial; empty when there is nothing to say."""
        if self.failure is not None:
            return self.failure
        worst = self.judgement.worst
        return "" if worst is None else f"{worst.check}: {worst.reason}"

    def status(self, check: str) -> Status | None:
        """How a check ended; None when it was left out."""
        return next((f.status for f in self.judgement.findings if f.check == check), None)

    @classmethod
    def of(cls, load: Load, stored: StoredTrial) -> PointTrial:
        """From the store."""
        record = stored.record
        window = record.evidence.engine.window if record.evidence.engine is not None else None
        return cls(
            load=load,
            experiment_id=record.experiment_id,
            judgement=stored.judgement,
            failure=record.failure,
            figures=dict(stored.figures),
            blocked=(window.blocked or 0) if window is not None else 0,
        )


class Points(Protocol):
    """A target that can be put under any load."""

    @property
    def name(self) -> str:
        """The target as the reader knows it."""

    @property
    def window_s(self) -> float:
        """Length of the measured part of a trial."""

    def measure(self, load: Load) -> PointTrial:
        """One trial. Raises PronyError when it cannot be made."""


@dataclass(slots=True)
class UrlPoints:
    """A server that is already running."""

    like: RunningLoad
    """All but the load."""
    window_s: float
    bench: Bench
    store: Store
    progress: Progress

    @property
    def name(self) -> str:
        return self.like.target.url

    def measure(self, load: Load) -> PointTrial:
        wanted = replace(self.like, load=load)
        identifier = measure_running(wanted, self.bench, self.store, self.progress)
        return PointTrial.of(load, self.store.trials(identifier)[0])


@dataclass(slots=True)
class ServerPoints:
    """A server of the catalogue: a fresh process for every trial."""

    server: str
    specs: Mapping[str, ServerSpec]
    trial: TrialPlan
    window_s: float
    bench: Bench
    store: Store
    progress: Progress
    seed: int
    jdk: str | None = None
    quick: bool = False
    _made: int = 0

    @property
    def name(self) -> str:
        return self.server

    def measure(self, load: Load) -> PointTrial:
        self._made += 1
        plan = ExperimentPlan(
            title=f"{self.server} under {load.name}",
            servers=(self.server,),
            trial=self.trial.model_copy(update={"load": load}),
            trials=1,
            quick=self.quick,
            seed=(self.seed + self._made) % 2**63,
        )
        experiment = Experiment(plan, self.specs, self.store, self.bench, self.progress, jdk=self.jdk)
        return PointTrial.of(load, self.store.trials(experiment.run())[0])


Note = Callable[[str], None]
