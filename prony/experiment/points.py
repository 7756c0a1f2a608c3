"""One target under one load after the other: every point is measured, judged and stored as a trial of one
experiment.

Must not know why a load is tried, nor how results are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from prony.experiment.bench import Bench, Progress
from prony.experiment.conclude import refuse
from prony.experiment.one_trial import Place, Trials, trial_id
from prony.experiment.recording import begin, until_ended
from prony.experiment.running import Into, RunningLoad, limits_of, measure_running, reach
from prony.judge.finding import Judgement, Status
from prony.plan.load import ClosedLoad, Load, OpenLoad
from prony.plan.trial import START_S, STOP_S, TrialPlan
from prony.server.build import Built, build
from prony.server.spec import ServerSpec
from prony.store import Store, StoredTrial
from prony.target import LaunchedServer
from prony.trial.facts import trial_facts


@dataclass(frozen=True, slots=True)
class PointTrial:
    """What one trial under one load came to. `figures` is empty when it may not be printed."""

    load: Load
    trial_id: str
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
    def of(cls, stored: StoredTrial) -> PointTrial:
        """From the store."""
        record = stored.record
        window = record.evidence.engine.window if record.evidence.engine is not None else None
        asked = record.evidence.load
        load: Load
        if asked.model == "closed":
            load = ClosedLoad(users=asked.users or 1)
        else:
            load = OpenLoad(rate_per_s=asked.offered_per_s or 1.0, arrivals=asked.arrivals or "constant")
        return cls(
            load=load,
            trial_id=record.id,
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
    identifier: str = ""
    """Of the experiment; set by `recorded`."""
    made: int = 0
    quick: bool = False

    @property
    def name(self) -> str:
        return self.like.target.url

    @property
    def seed(self) -> int:
        return self.like.seed

    @property
    def each_s(self) -> float:
        return self.like.warm_up_s + self.window_s + 4

    def check(self, load: Load) -> None:
        refuse(replace(self.like, load=load).facts, limits_of(self.like, self.bench))

    def prepare(self) -> None:
        reach(self.like)

    def measure(self, load: Load) -> PointTrial:
        self.made += 1
        wanted = replace(self.like, load=load)
        into = Into(self.identifier, self.made)
        measure_running(wanted, self.bench, self.store, self.progress, into)
        return _newest(self)


@dataclass(slots=True)
class ServerPoints:
    """A server of the catalogue: a fresh process for every trial."""

    server: str
    spec: ServerSpec
    trial: TrialPlan
    window_s: float
    bench: Bench
    store: Store
    progress: Progress
    seed: int
    jdk: str | None = None
    quick: bool = False
    identifier: str = ""
    made: int = 0
    _built: Built | None = None
    _trials: Trials | None = None

    @property
    def name(self) -> str:
        return self.server

    @property
    def each_s(self) -> float:
        warm = self.trial.warm_up
        return START_S + warm.min_s + warm.settle_min_s + self.window_s + STOP_S

    def check(self, load: Load) -> None:
        facts = trial_facts(self._plan(load), LaunchedServer(self.spec))
        refuse(facts, self.bench.limits)

    def prepare(self) -> None:
        self._built = build([self.spec], jdk=self.jdk, on_line=self.progress.build)[0]

    def measure(self, load: Load) -> PointTrial:
        assert self._built is not None, "recorded() prepares"
        self.check(load)
        self.made += 1
        if self._trials is None:
            self._trials = Trials(self.identifier, self.store, self.bench, self.progress)
        place = Place(
            index=self.made,
            server=self.server,
            block=self.made - 1,
            position=0,
            seed=(self.seed + self.made) % 2**63,
            quick=self.quick,
        )
        self._trials.run(place, self._plan(load), self._built)
        return _newest(self)

    def _plan(self, load: Load) -> TrialPlan:
        return self.trial.model_copy(update={"load": load})


RealPoints = UrlPoints | ServerPoints


@contextmanager
def recorded(points: RealPoints, title: str, spec: Mapping[str, Any], trials: int) -> Iterator[str]:
    """One experiment in the store for all points that are measured within; yields its id. What had ended is
    kept whatever happens. `trials`: about how many there will be, for the progress.
    """
    points.prepare()
    points.progress.experiment_started(trials, trials * points.each_s)
    points.identifier = begin(
        points.store, points.bench, name=title, spec=spec, seed=points.seed, quick=points.quick
    )
    with until_ended(points.store, points.identifier):
        yield points.identifier


def _newest(points: RealPoints) -> PointTrial:
    wanted = trial_id(points.identifier, points.made)
    stored = next(t for t in points.store.trials(points.identifier) if t.record.id == wanted)
    return PointTrial.of(stored)


Note = Callable[[str], None]
