"""Runs a plan: trials in the recorded order, each judged and stored when it ends, or resumed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from prony import seams
from prony.errors import EnvironmentFault, StoreError
from prony.experiment import requirements
from prony.experiment.budget import Budget, kind_of_cell
from prony.experiment.duets import duets
from prony.experiment.testbed import Progress, Targets, Testbed
from prony.experiment.trials import EndedTrial, Profilers, Settled, Trials, index_of
from prony.host.affinity import pin_self
from prony.plan.cell import Cell
from prony.plan.part import Part
from prony.plan.plan import Plan, ScheduledTrial, Skipped
from prony.store import ExperimentStatus, Store, StoredTrial
from prony.trial.duet import Duet
from prony.trial.load_run import INTERRUPTED
from prony.trial.process import Processes

if TYPE_CHECKING:
    from prony.experiment.blocks import Group, Watch


CLOCK_AHEAD_S = 60.0
"""Clocks of hosts differ by less where anybody looks after them."""
Key = tuple[str, int, str]
"""(cell, block, kind): which trial of the plan a stored one is."""


@dataclass(slots=True)
class Experiment:
    """One experiment. `run()` and `resume()` return its id; what had ended is stored whatever happens."""

    plan: Plan
    targets: Targets
    store: Store
    testbed: Testbed
    progress: Progress
    skip_unmeetable: bool = False
    quiet: Callable[[Progress, Iterable[int]], None] | None = None
    """Called before each trial with the processes of a running server: may wait for a quiet host."""
    identifier: str = ""
    """In the store, from the first trial on."""
    _ended: set[Key] = field(default_factory=set)
    _attempts: Counter[int] = field(default_factory=Counter)
    _watches: dict[str, Watch] = field(default_factory=dict)
    """Cell -> what watches it, of the parts that have begun."""
    _budget: Budget | None = None
    _told_of_disturbance: bool = False
    _said: set[str] = field(default_factory=set)
    """Notes on blocks that were not run."""
    _processes: Processes = field(default_factory=Processes)
    _profilers: Profilers | None = None
    _settled: Settled = field(default_factory=Settled)

    def run(self) -> str:
        """From the first trial. Raises PronyError; an interrupt marks the experiment and is raised again."""
        self._announce(self.plan.order())
        self._look_at_the_clock()
        self._prepare(self.plan.cells)
        self._ready()
        self.identifier = self.store.create_experiment(
            name=self.plan.title,
            spec=self.plan.as_stored(),
            fingerprint=self.testbed.fingerprint,
            seed=self.plan.seed,
            quick=self.plan.quick,
        )
        self.progress.stored_as(self.identifier, self.plan.title)
        self._run_parts()
        return self.identifier

    def resume(self, identifier: str) -> str:
        """The trials of a stored experiment that have not ended yet, and what its plan still grows."""
        self.identifier = identifier
        left = remaining(self.plan, self.store.trials(identifier))
        self._announce(left, len(self.plan.order()) - len(left))
        needed = {one.cell for one in left}
        self._prepare([cell for cell in self.plan.cells if cell.id in needed])
        self._ready()
        self.store.resume_experiment(identifier)
        self.progress.stored_as(identifier, self.plan.title)
        self._run_parts()
        return identifier

    def _ready(self) -> None:
        """After the builds, keep to the client's CPUs; and see that results can be kept."""
        if self.testbed.here:
            pin_self(self.testbed.partition.client)
        self.store.check_writable()

    def _announce(self, left: tuple[ScheduledTrial, ...], ended: int = 0) -> None:
        self.progress.experiment_started(len(left) + self.plan.growth, self.plan.remaining_s(left), ended)
        for sentence in requirements.warnings(self.plan, self.targets, self.testbed):
            self.progress.note(sentence)
        if self.plan.budget_s is not None:
            for change in self.plan.changes:
                self.progress.note(change)
            end = datetime.now().astimezone() + timedelta(seconds=self.plan.remaining_s(left))
            self.progress.note(f"ends at about {end:%H:%M}")

    def _look_at_the_clock(self) -> None:
        ahead_s = self.store.ahead_s()
        if ahead_s > CLOCK_AHEAD_S:
            self.progress.note(
                f"the newest result in {self.store.where} is {ahead_s / 60:,.0f} min newer than this host's "
                "clock, which went back, or another host's is ahead; until it has caught up, 'latest' is not "
                "this experiment"
            )

    def _prepare(self, cells: tuple[Cell, ...] | list[Cell]) -> None:
        """Build what is missing. What cannot be built ends the experiment, or its cells are left out."""
        failed: list[Skipped] = []
        for cell in cells:
            try:
                self.targets.of(cell).prepare(self.progress.build)
            except EnvironmentFault as fault:
                if not self.skip_unmeetable:
                    raise
                if not any(one.why == str(fault) for one in failed):
                    self.progress.note(f"skipped {cell.server}: {fault}")
                failed.append(requirements.skipped(cell, str(fault)))
        if any(cell.explain for cell in cells):
            self._profilers = seams.need(seams.HOOKS, "profilers", "--explain")()
            self._profilers.prepare([self.targets.of(cell) for cell in cells], self.progress.build)
        if failed:
            self.plan = requirements.without(self.plan, failed)

    # -- parts

    def _run_parts(self) -> None:
        stored = self.store.trials(self.identifier)
        self._attempts = Counter(index_of(trial.record) for trial in stored)
        self._ended = ended(self.plan, stored)
        with until_ended(self.store, self.identifier):
            trials = Trials(self.identifier, self.store, self.testbed, self.progress, self._profilers)
            if self.plan.budget_s is not None:
                self._budget = Budget.of(self.plan.budget_s, [one.record for one in stored])
            try:
                later: list[Group] = []
                for part in self.plan.parts:
                    later += self._run_part(part, trials)
                self._add_blocks(later, trials)
                self._run([one for one in self.plan.order() if self._explains(one)], trials)
                self._explain()
            finally:
                self._processes.end()

    def _explain(self) -> None:
        if self._profilers is None:
            return
        try:
            self._profilers.explain(self.store, self.identifier)
        except Exception as fault:  # even a defect: every trial is stored, and it can be explained anew
            self.progress.note(f"the explanation is not stored with the result: {fault}")

    def _run_part(self, part: Part, trials: Trials) -> list[Group]:
        """Planned blocks, those added until it is clear, and controls; with a budget, what may get more."""
        if part.follows is not None and not self.plan.of(part.name):
            self._follow(part)
        growing = self._watch(part)
        first_look = min((cell.trials for cell in self.plan.of(part.name)), default=0)
        while True:
            left = self._left(part)
            planned = [one for one in left if not growing or one.block < first_look]
            for _, some in groupby((one for one in planned if one.kind == "trial"), lambda one: one.block):
                if not self._block(part, list(some), trials):
                    break
            if part.search is None or not self._search_on(part):
                break
        if self._budget is None:
            self._add_blocks(growing, trials)
        self._run([one for one in self._left(part) if one.kind == "control"], trials)
        return [] if self._budget is None else growing

    def _block(self, part: Part, some: list[ScheduledTrial], trials: Trials) -> bool:
        """Run these trials of a block; False where the budget has no room for them."""
        if part.search is None and not self._has_room(some):
            self._note_once(self._no_room(part, some))
            return False
        self._run(some, trials, searching=part.search is not None)
        return True

    def _run(self, some: list[ScheduledTrial], trials: Trials, *, searching: bool = False) -> None:
        for together in duets(self.plan, some):
            self._duet(together, trials)
            some = [one for one in some if one not in together]
        for scheduled, following in zip(some, [*some[1:], None], strict=False):
            # Of a search the next rate is not known yet, and it finds the process.
            self._trial(scheduled, trials, scheduled if searching else following)

    def _duet(self, some: Sequence[ScheduledTrial], trials: Trials) -> None:
        """Trials of a block that take turns: each runs within the one before; alone after one that failed."""
        cell = self.plan.cell(some[0].cell)
        duet = Duet(f"{self.plan.seed}/{cell.id}/{some[0].block}", len(some), cell.trial.measured_s)
        duet.coming += [partial(self._trial, one, trials, None, duet) for one in some]
        duet.coming.pop(0)()
        for one in some[len(some) - len(duet.coming) :]:
            self._trial(one, trials, None)

    def _left(self, part: Part) -> list[ScheduledTrial]:
        cells = {cell.id for cell in self.plan.of(part.name)}
        return [one for one in self.plan.order() if one.cell in cells and _scheduled(one) not in self._ended]

    def _follow(self, part: Part) -> None:
        from prony.experiment import growth

        found = growth.following(self.plan, part, self._latest())
        cells = tuple(one for one in found if isinstance(one, Cell))
        skipped = tuple(one for one in found if isinstance(one, Skipped) and one not in self.plan.skipped)
        if skipped:
            self.progress.note(f"{part.title}: {skipped[0].why}")
        plan = self.plan.grown(cells)
        self._keep(plan.model_copy(update={"skipped": (*plan.skipped, *skipped)}))

    def _search_on(self, part: Part) -> bool:
        """Add the next rate of a search; False when it is over."""
        from prony.experiment import growth

        cell = growth.next_cell(self.plan, part, self._latest())
        if cell is None:
            return False
        needed = {cell.id: cell.trial_s} | self._set_aside()
        if self._budget is not None and not self._budget.has_room(time.monotonic(), needed):
            within = f"the budget of {self._budget.whole_s:g} s has no room for another rate"
            self.progress.note(f"{part.title}: {within}")
            return False
        requirements.refuse_cell(cell, self.targets, self.testbed)
        self._keep(self.plan.grown([cell]))
        self.progress.note(f"next rate: {cell.trial.load_name}")
        return True

    def _latest(self) -> list[StoredTrial]:
        """Without those that were run again."""
        last = {_key(trial): trial for trial in self.store.trials(self.identifier)}
        return list(last.values())

    def _keep(self, plan: Plan) -> None:
        self.plan = plan
        self.store.update_plan(self.identifier, plan.as_stored())

    # -- blocks that are added

    def _watch(self, part: Part) -> list[Group]:
        """What of this part may get further blocks; nothing of one with a fixed number of trials."""
        if part.until_clear is None:
            return []
        from prony.experiment.blocks import (
            groups,  # a third of a second: few plans need statistics here
            watches,
        )

        cells = self.plan.of(part.name)
        watched = watches(part, cells)
        self._watches |= watched
        for trial in self.store.trials(self.identifier):
            if trial.record.cell in watched:
                self._see(trial)
        return groups(part, cells, watched)

    def _see(self, trial: StoredTrial | EndedTrial) -> None:
        watch = self._watches.get(trial.record.cell)
        if watch is None:
            return
        judged = trial.conclusion if isinstance(trial, EndedTrial) else trial
        watch.add(trial.record, judged.judgement, judged.figures)

    def _add_blocks(self, growing: list[Group], trials: Trials) -> None:
        """Block by block where a claim is nearest, until all are clear or nothing is left or fits."""
        if not growing:
            return
        from prony.experiment.blocks import begun, by_need, settled

        while True:
            left = [one for one in self.plan.order() if _scheduled(one) not in self._ended]
            some = begun(growing, left, self._ended)
            if not some:
                wanted = by_need(growing, left)
                some = next((coming for _, coming in wanted if self._has_room(coming)), [])
            if not some:
                for said in settled(growing, left) + [self._no_room(group.part, of) for group, of in wanted]:
                    self._note_once(said)
                return
            self._run(some, trials)

    def _no_room(self, part: Part, some: list[ScheduledTrial]) -> str:
        assert self._budget is not None
        within = f"the budget of {self._budget.whole_s:g} s has no room for another"
        return f"{part.title}: {some[0].block} blocks, and {within}"

    def _note_once(self, said: str) -> None:
        if said not in self._said:
            self._said.add(said)
            self.progress.note(said)

    def _has_room(self, some: list[ScheduledTrial]) -> bool:
        times = self.plan.times_s(some)
        planned = {kind_of_cell(one): seconds for one, seconds in zip(some, times, strict=True)}
        return self._budget is None or self._budget.has_room(time.monotonic(), planned | self._set_aside())

    def _set_aside(self) -> dict[str, float]:
        """The time of the explained trials that come when all others have ended."""
        left = (one for one in self.plan.order() if _scheduled(one) not in self._ended)
        coming = [one for one in left if one.kind == "explained"]
        return dict(zip(map(kind_of_cell, coming), self.plan.times_s(coming), strict=True))

    # -- one trial

    def _explains(self, one: ScheduledTrial) -> bool:
        """Whether it is an explained trial that has not ended, of a cell with a measured one."""
        measured = any(cell == one.cell and kind == "trial" for cell, _, kind in self._ended)
        return one.kind == "explained" and measured and _scheduled(one) not in self._ended

    def _trial(
        self,
        scheduled: ScheduledTrial,
        trials: Trials,
        following: ScheduledTrial | None,
        duet: Duet | None = None,
    ) -> None:
        """Run it; again while it is disturbed and may be repeated. `following` may find its process."""
        for repeat in range(self.plan.repeat_disturbed + 1):
            begins = duet is None or not duet.members
            if self.quiet is not None and self.testbed.here and begins:
                self.quiet(self.progress, self.targets.of(self.plan.cell(scheduled.cell)).placement().cpus)
            if self._budget is not None:
                self._budget.begin(time.monotonic())
            self._attempts[scheduled.index] += 1
            target = self.targets.of(self.plan.cell(scheduled.cell))
            ended = trials.run(
                self.plan,
                scheduled,
                target,
                attempt=self._attempts[scheduled.index],
                faults_end_it=self._needed(scheduled),
                process=self._processes.of(scheduled, following),
                duet=duet,
            )
            self._see(ended)
            if self._budget is not None:
                (planned_s,) = self.plan.times_s([scheduled])
                self._budget.took(kind_of_cell(scheduled), trials.last_s, planned_s)
            if ended.record.failure is not None:
                self.progress.note(f"{ended.record.server}: {ended.record.failure}")
            if not ended.disturbed:
                break
            self._tell_of_disturbance(ended, repeat < self.plan.repeat_disturbed)
        self._ended.add(_scheduled(scheduled))
        if scheduled.kind == "trial":  # controls and explained ones are in no figure
            self._settled.add(scheduled, ended)
            figure = self._settled.words(self.plan, self.plan.cell(scheduled.cell))
            if figure:
                self.progress.note(figure)

    def _needed(self, scheduled: ScheduledTrial) -> bool:
        """Whether a fault, such as a port that is taken, ends the experiment: nothing has been measured
        of this server yet, or what is tried next depends on this trial.
        """
        if self.plan.goes_on:
            return False
        cell = self.plan.cell(scheduled.cell)
        part = self.plan.part(cell.part)
        if part.search is not None:
            return True
        return not any(self.plan.cell(one).server == cell.server for one, _, _ in self._ended)

    def _tell_of_disturbance(self, ended: EndedTrial, again: bool) -> None:
        outside = [one for one in ended.conclusion.judgement.findings if one.outside]
        why = f"disturbed by other load on this host: {'; '.join(one.reason for one in outside)}"
        if again:
            self.progress.note(f"{why}; the trial is repeated")
        elif not self._told_of_disturbance:
            self._told_of_disturbance = True
            advice = next((one.advice for one in outside if one.advice), "stop the other load")
            self.progress.note(f"{why}. To measure: {advice}; or repeat such trials: --repeat-disturbed N")


def remaining(plan: Plan, trials: list[StoredTrial]) -> tuple[ScheduledTrial, ...]:
    """What no whole trial is stored of, in order: one that was interrupted half-way is run again."""
    keys = ended(plan, trials)
    return tuple(one for one in plan.order() if _scheduled(one) not in keys)


def ended(plan: Plan, trials: list[StoredTrial]) -> set[Key]:
    """The trials that are stored whole; of a duet all or none."""
    keys = {_key(trial) for trial in trials if _whole(trial)}
    for together in duets(plan, plan.order()):
        if not {_scheduled(one) for one in together} <= keys:
            keys -= {_scheduled(one) for one in together}
    return keys


def _whole(trial: StoredTrial) -> bool:
    return INTERRUPTED not in trial.record.notes


def _key(trial: StoredTrial) -> Key:
    return trial.record.cell, trial.record.block, trial.record.kind


def _scheduled(one: ScheduledTrial) -> Key:
    return one.cell, one.block, one.kind


@contextmanager
def until_ended(store: Store, identifier: str) -> Iterator[None]:
    """Notes *finished* or *interrupted*; an experiment that could not begin leaves nothing."""
    status: ExperimentStatus = "interrupted"
    try:
        yield
        status = "finished"
    except EnvironmentFault:
        with suppress(StoreError):
            store.drop_empty(identifier)
        raise
    finally:
        # A store that fails now hides no other fault.
        with nullcontext() if status == "finished" else suppress(StoreError):
            store.finish_experiment(identifier, status)
