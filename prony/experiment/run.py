"""Runs an experiment: checks before anything starts, builds, then trials in randomised order, each judged
and stored when it ends.

Must not know how results are shown; it tells a `Progress` what happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prony.compare import Looks
from prony.errors import UsageError
from prony.experiment.bench import Bench, Progress
from prony.experiment.clear import UntilClear
from prony.experiment.conclude import refuse
from prony.experiment.one_trial import Place, Trials
from prony.experiment.plan_text import plan_dict
from prony.experiment.recording import begin, until_ended
from prony.plan.spec import ExperimentPlan
from prony.plan.trial import TrialPlan, pinned
from prony.server.build import Built, build
from prony.server.spec import ServerSpec
from prony.store import Store
from prony.target import LaunchedServer
from prony.trial.facts import trial_facts


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
            self._watch = UntilClear(
                self.plan.servers, Looks(self.plan.trials, self.plan.until_clear), band=self.plan.band
            )
        turns = self.turns()
        self.progress.experiment_started(len(turns), self.plan.estimate_s)
        built = {
            b.spec.name: b
            for b in build(list(self.specs.values()), jdk=self.jdk, on_line=self.progress.build)
        }
        identifier = begin(
            self.store,
            self.bench,
            name=self.plan.title,
            spec=plan_dict(self.plan),
            seed=self.plan.seed,
            quick=self.plan.quick,
        )
        with until_ended(self.store, identifier):
            trials = Trials(identifier, self.store, self.bench, self.progress)
            for turn in turns:
                if not self._spared(turn):
                    self._trial(trials, turn, built[turn.server])
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
        server = LaunchedServer(next(iter(self.specs.values())))
        refuse(trial_facts(self.plan.trial, server), self.bench.limits)

    def _trial(self, trials: Trials, turn: Turn, built: Built) -> None:
        place = Place(
            index=turn.index,
            server=turn.server,
            block=turn.block,
            position=turn.position,
            seed=self.plan.seed + turn.index,
            quick=self.plan.quick,
            kind="control" if turn.control else "trial",
        )
        record, ended = trials.run(place, self._trial_plan(turn), built)
        if self._watch is not None:
            self._watch.add(record, ended)

    def _trial_plan(self, turn: Turn) -> TrialPlan:
        trial = self.plan.trial
        if turn.server in self.plan.own_loads:
            trial = trial.model_copy(update={"load": self.plan.own_loads[turn.server]})
        if not turn.control:
            return trial
        return trial.model_copy(update={"warm_up": pinned(trial.warm_up)})


def check_workload(specs: Mapping[str, ServerSpec], workload: str) -> None:
    """Raises UsageError when a server does not claim this workload (one that claims none may try any)."""
    for spec in specs.values():
        if spec.workloads and workload not in spec.workloads:
            offered = ", ".join(spec.workloads)
            raise UsageError(
                f"server '{spec.name}' does not offer the workload '{workload}'; it offers: {offered}"
            )
