"""Runs a plan: its trials in the recorded order, each judged and stored when it ends, and goes on where an
interrupted one stopped.

Must not know how results are shown; it tells a `Progress` what happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from prony.errors import EnvironmentFault, StoreError, UsageError
from prony.experiment import meeting
from prony.experiment.bench import Bench, Progress
from prony.experiment.one_trial import Place, Trials, index_of
from prony.experiment.recording import begin, ready, until_ended
from prony.plan.cells import Cell, RunPlan, Turn
from prony.server.build import Built, build
from prony.server.spec import ServerSpec
from prony.store import ExperimentRow, Store
from prony.trial.load_run import INTERRUPTED


@dataclass(slots=True)
class PlanRun:
    """One run of a plan. `run()` returns its id in the store; what had finished is stored whatever
    happens.
    """

    plan: RunPlan
    specs: Mapping[str, ServerSpec]
    """By cell."""
    store: Store
    bench: Bench
    progress: Progress
    skip_unmeetable: bool = False
    identifier: str | None = None
    """Of the run in the store, from its first trial on."""

    def run(self) -> str:
        """From the first trial. Raises PronyError; an interrupt marks the experiment and is raised again."""
        self._tell(len(self.plan.order()), self.plan.estimate_s)
        built = self._built()
        turns = self.plan.order()  # a build that failed may have left cells out
        identifier = begin(
            self.store,
            self.bench,
            name=self.plan.title,
            spec=spec_of(self.plan),
            seed=self.plan.seed,
            quick=self.plan.quick,
        )
        self._go(identifier, turns, built)
        return identifier

    def resume(self, identifier: str) -> str:
        """The trials of a stored run that have not ended yet. Raises UsageError when it cannot go on here."""
        left = remaining(self.store, identifier, self.plan)
        if not left:
            self.store.finish_experiment(identifier, "finished")
            return identifier
        self._tell(len(left), sum(self.plan.cell(turn.cell).trial.estimate_s for turn in left))
        needed = {turn.cell for turn in left}
        built = self._built(needed)
        ready(self.store, self.bench)
        self.store.resume_experiment(identifier)
        self._go(identifier, left, built)
        return identifier

    def _tell(self, trials: int, estimate_s: float) -> None:
        self.progress.experiment_started(trials, estimate_s)
        for sentence in meeting.warnings(self.plan, dict(self.specs), self.bench):
            self.progress.note(sentence)

    def _go(self, identifier: str, turns: tuple[Turn, ...], built: Mapping[str, Built]) -> None:
        self.identifier = identifier
        with until_ended(self.store, identifier):
            trials = Trials(identifier, self.store, self.bench, self.progress)
            tried = Counter(index_of(trial.record) for trial in self.store.trials(identifier))
            for turn in turns:
                cell = self.plan.cell(turn.cell)
                place = self._place(turn, cell, tried[turn.index] + 1)
                trials.run(place, cell.trial, built[cell.id], cell.limits, carry_on=True)

    def _place(self, turn: Turn, cell: Cell, attempt: int) -> Place:
        return Place(
            index=turn.index,
            attempt=attempt,
            server=cell.server,
            block=turn.block,
            position=turn.position,
            seed=self.plan.seed + turn.index,
            quick=self.plan.quick,
            cell=cell.id,
        )

    def _built(self, needed: set[str] | None = None) -> dict[str, Built]:
        """Cell -> its server, built. One that cannot be built stops the run, or its cells are skipped."""
        made: dict[str, Built] = {}
        known: list[tuple[ServerSpec, Built]] = []
        failed: dict[str, str] = {}
        for cell in self.plan.cells:
            if needed is not None and cell.id not in needed:
                continue
            spec = self.specs[cell.id]
            found = next((one for other, one in known if other == spec), None)
            if found is None and spec.name not in failed:
                try:
                    (found,) = build([spec], on_line=self.progress.build)
                    known.append((spec, found))
                except EnvironmentFault as fault:
                    if not self.skip_unmeetable or needed is not None:
                        raise
                    failed[spec.name] = str(fault)
                    self.progress.note(f"skipped {spec.name}: {fault}")
            if found is not None:
                made[cell.id] = found
        if failed:
            missing = [
                meeting.skipped(cell, failed[self.specs[cell.id].name])
                for cell in self.plan.cells
                if self.specs[cell.id].name in failed
            ]
            self.plan = meeting.without(self.plan, missing)
        return made


def spec_of(plan: RunPlan) -> dict[str, object]:
    """The plan as it is stored."""
    return plan.model_dump(mode="json")


def stored_plan(experiment: ExperimentRow) -> RunPlan | None:
    """The plan of a stored run; None for an experiment of another kind. Raises StoreError when it was
    written by a Prony that this one does not understand.
    """
    if experiment.spec.get("kind") != "plan":
        return None
    try:
        return RunPlan.model_validate(experiment.spec)
    except ValidationError as fault:
        raise StoreError(
            f"the plan of {experiment.id} was stored by Prony {experiment.prony_version} and is not "
            "understood by this one; use that version"
        ) from fault


def resumable(store: Store, which: str) -> tuple[str, RunPlan]:
    """The id and the plan of a run that can go on here. Raises UsageError saying why not."""
    experiment = store.experiment(which)
    plan = stored_plan(experiment)
    if plan is None:
        raise UsageError(
            f"{experiment.id} ({experiment.name}) was not started by `prony run`; only a plan can be resumed"
        )
    if experiment.status == "running":
        raise UsageError(f"{experiment.id} is still running; wait for it, or end it first")
    return experiment.id, plan


def begun_on(experiment: ExperimentRow, bench: Bench) -> None:
    """Raises UsageError when a run was begun on another machine than this one."""
    if experiment.fingerprint.key != bench.fingerprint.key:
        raise UsageError(
            f"{experiment.id} was begun on another machine or with other software "
            f"({experiment.fingerprint.hostname}, fingerprint {experiment.fingerprint.key}; here "
            f"{bench.fingerprint.key}); trials of two machines are never mixed: start the plan anew here and "
            "put both beside each other with prony compare-results"
        )


def remaining(store: Store, identifier: str, plan: RunPlan) -> tuple[Turn, ...]:
    """The turns that no whole trial is stored of, in their order: one that was interrupted half-way is kept,
    and run again.
    """
    ended = {index_of(t.record) for t in store.trials(identifier) if INTERRUPTED not in t.record.notes}
    return tuple(turn for turn in plan.order() if turn.index not in ended)
