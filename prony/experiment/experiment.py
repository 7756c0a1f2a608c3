"""Runs or resumes a plan: trials in the recorded order, each judged and stored when it ends."""

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
from prony.experiment.trials import CellResults, EndedTrial, Profilers, Trials, index_of
from prony.host.affinity import pin_self
from prony.plan.cell import Cell
from prony.plan.load import OpenLoad
from prony.plan.part import Part
from prony.plan.plan import Plan, ScheduledTrial, Skipped
from prony.store import ExperimentStatus, Store, StoredTrial
from prony.trial.duet import Duet
from prony.trial.load_run import INTERRUPTED
from prony.trial.process import Processes

if TYPE_CHECKING:
    from prony.experiment.blocks import Group, Watch


CLOCK_AHEAD_S = 60.0
"""Clocks of maintained hosts differ by less."""
LATER_S = 30.0
"""A later end than printed is printed anew."""
Key = tuple[str, int, str]
"""(cell, block, kind): identifies a trial of the plan in the store."""


@dataclass(slots=True)
class Experiment:
    """`run()` and `resume()` return the experiment's id; ended trials are stored in every case."""

    plan: Plan
    targets: Targets
    store: Store
    testbed: Testbed
    progress: Progress
    skip_unmeetable: bool = False
    quiet: Callable[[Progress, Iterable[int]], None] | None = None
    """Called before each trial with a running server's processes: may wait for a quiet host."""
    so_far: Callable[[str], str] | None = None
    """The first sentence of the trials that have ended, by the experiment's id."""
    identifier: str = ""
    """In the store, from the first trial on."""
    _ended: set[Key] = field(default_factory=set)
    _attempts: Counter[int] = field(default_factory=Counter)
    _watches: dict[str, Watch] = field(default_factory=dict)
    """Cell -> its watch, of the parts that have begun."""
    _budget: Budget | None = None
    _ends_at_s: float | None = None
    """As last printed, by the monotonic clock."""
    _disturbance_noted: bool = False
    _noted: set[str] = field(default_factory=set)
    """Notes that appear once."""
    _processes: Processes = field(default_factory=Processes)
    _profilers: Profilers | None = None
    _results: CellResults = field(default_factory=CellResults)

    def run(self) -> str:
        """Run from the first trial. Raises PronyError; an interrupt marks the experiment and is re-raised."""
        self._announce(self.plan.order())
        self._check_clock()
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
        """Run the remaining trials of a stored experiment, and those that its plan still adds."""
        self.identifier = identifier
        left = remaining(self.plan, self.store.trials(identifier))
        self._announce(left, len(self.plan.order()) - len(left))
        needed = {scheduled.cell for scheduled in left}
        self._prepare([cell for cell in self.plan.cells if cell.id in needed])
        self._ready()
        self.store.resume_experiment(identifier)
        self.progress.stored_as(identifier, self.plan.title)
        self._run_parts()
        return identifier

    def _ready(self) -> None:
        """After the builds: move to the client's CPUs, and check that the store is writable."""
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

    def _ends_in(self, seconds: float) -> None:
        """Print when the trials end, and again where that is later than printed."""
        at_s = time.monotonic() + seconds
        if self._ends_at_s is None or at_s > self._ends_at_s + LATER_S:
            end = datetime.now().astimezone() + timedelta(seconds=seconds)
            self.progress.note(
                f"ends at about {end:%H:%M}" + (", later than printed" if self._ends_at_s else "")
            )
            self._ends_at_s = at_s

    def _check_clock(self) -> None:
        ahead_s = self.store.ahead_s()
        if ahead_s > CLOCK_AHEAD_S:
            self.progress.note(
                f"the newest result in {self.store.where} is {ahead_s / 60:,.0f} min ahead of this host's "
                "clock; until the clock passes it, 'latest' is that result, not this experiment"
            )

    def _prepare(self, cells: tuple[Cell, ...] | list[Cell]) -> None:
        """Build missing servers. A failed build ends the experiment, or leaves its cells out."""
        failed: list[Skipped] = []
        for cell in cells:
            try:
                self.targets.of(cell).prepare(self.progress.build)
            except EnvironmentFault as fault:
                if not self.skip_unmeetable:
                    raise
                if not any(skipped.why == str(fault) for skipped in failed):
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
                self._budget = Budget.of(self.plan.budget_s, [earlier.record for earlier in stored])
                self._ends_in(self.plan.remaining_s(remaining(self.plan, stored)))
            try:
                later: list[Group] = []
                for part in self.plan.parts:
                    later += self._run_part(part, trials)
                self._add_blocks(later, trials)
                self._run([trial for trial in self.plan.order() if self._explains(trial)], trials)
                self._explain()
            finally:
                self._processes.end()

    def _explain(self) -> None:
        if self._profilers is None:
            return
        try:
            self._profilers.explain(self.store, self.identifier)
        except Exception as fault:  # even a defect: the trials are stored and can be explained again
            self.progress.note(f"the explanation is not stored with the result: {fault}")

    def _run_part(self, part: Part, trials: Trials) -> list[Group]:
        """Run planned blocks, added blocks and controls; with a budget, returns the groups that may grow."""
        if part.follows is not None and not self.plan.of(part.name):
            self._follow(part)
        growing = self._watch(part)
        first_look = min((cell.trials for cell in self.plan.of(part.name)), default=0)
        while True:
            left = self._left(part)
            planned = [
                scheduled
                for scheduled in left
                if scheduled.kind == "trial" and (not growing or scheduled.block < first_look)
            ]
            for block, some in groupby(planned, lambda scheduled: scheduled.block):
                if not self._block(part, list(some), trials):
                    break
                self._tell(part, block + 1)
            if part.search is None or not self._search_on(part):
                break
        if self._budget is None:
            self._add_blocks(growing, trials)
        self._run([scheduled for scheduled in self._left(part) if scheduled.kind == "control"], trials)
        return [] if self._budget is None else growing

    def _block(self, part: Part, some: list[ScheduledTrial], trials: Trials) -> bool:
        """Run these trials of a block; False where the budget has no room for them."""
        if part.search is None and not self._has_room(some):
            self._note_once(self._no_room(part, some))
            return False
        self._run(some, trials, searching=part.search is not None)
        return True

    def _tell(self, part: Part, ended: int) -> None:
        """The answer after a block of several servers, where another block is planned."""
        cells = self.plan.of(part.name)
        blocks = max(cell.trials for cell in cells)
        if self.so_far is None or ended >= blocks or len({cell.server for cell in cells}) < 2:
            return
        try:
            so_far = self.so_far(self.identifier)
        except Exception as fault:  # a defect of the report: the trials are stored, and it is made anew
            so_far = f"no answer yet: {fault}"
        self.progress.note(f"after {ended} of {blocks} blocks: {so_far}")

    def _run(self, some: list[ScheduledTrial], trials: Trials, *, searching: bool = False) -> None:
        for together in duets(self.plan, some):
            self._duet(together, trials)
            some = [trial for trial in some if trial not in together]
        for at, (scheduled, following) in enumerate(zip(some, [*some[1:], None], strict=False)):
            # A search has not chosen its next rate yet; it will share this process.
            self._trial(scheduled, trials, scheduled if searching else following)
            if self._budget is not None:
                self._ends_in(self._budget.needed_s(self._planned_s(some[at + 1 :])))

    def _duet(self, some: Sequence[ScheduledTrial], trials: Trials) -> None:
        """Trials of a block that take turns, each nested in the preceding one; after a failure, alone."""
        cell = self.plan.cell(some[0].cell)
        duet = Duet(f"{self.plan.seed}/{cell.id}/{some[0].block}", len(some), cell.trial.measured_s)
        duet.coming += [partial(self._trial, scheduled, trials, None, duet) for scheduled in some]
        duet.coming.pop(0)()
        for scheduled in some[len(some) - len(duet.coming) :]:
            self._trial(scheduled, trials, None)

    def _left(self, part: Part) -> list[ScheduledTrial]:
        cells = {cell.id for cell in self.plan.of(part.name)}
        return [
            scheduled
            for scheduled in self.plan.order()
            if scheduled.cell in cells and _scheduled(scheduled) not in self._ended
        ]

    def _follow(self, part: Part) -> None:
        from prony.experiment import growth

        grown = growth.following(self.plan, part, self._latest())
        cells = tuple(entry for entry in grown if isinstance(entry, Cell))
        skipped = tuple(
            entry for entry in grown if isinstance(entry, Skipped) and entry not in self.plan.skipped
        )
        if skipped:
            self.progress.note(f"{part.title}: {skipped[0].why}")
        plan = self.plan.grown(cells)
        self._keep(plan.model_copy(update={"skipped": (*plan.skipped, *skipped)}))

    def _search_on(self, part: Part) -> bool:
        """Add the next rate of a search; False at its end."""
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
        if isinstance(cell.trial.load, OpenLoad):
            self.progress.note(f"next rate: {cell.trial.load.rate_per_s:g}/s")
        return True

    def _latest(self) -> list[StoredTrial]:
        """The last attempt of each trial."""
        last = {_key(trial): trial for trial in self.store.trials(self.identifier)}
        return list(last.values())

    def _keep(self, plan: Plan) -> None:
        self.plan = plan
        self.store.update_plan(self.identifier, plan.as_stored())

    # -- added blocks

    def _watch(self, part: Part) -> list[Group]:
        """The groups of this part that may get further blocks; none with a fixed number of trials."""
        if part.until_clear is None:
            return []
        from prony.experiment.blocks import (
            groups,  # 0.3 s to import scipy, which few plans need here
            watches,
        )

        cells = self.plan.of(part.name)
        watched = watches(part, cells)
        self._watches |= watched
        for trial in self.store.trials(self.identifier):
            if trial.record.cell in watched:
                self._observe(trial)
        return groups(part, cells, watched)

    def _observe(self, trial: StoredTrial | EndedTrial) -> None:
        watch = self._watches.get(trial.record.cell)
        if watch is None:
            return
        judged = trial.conclusion if isinstance(trial, EndedTrial) else trial
        watch.add(trial.record, judged.judgement, judged.figures)

    def _add_blocks(self, growing: list[Group], trials: Trials) -> None:
        """Add blocks where a claim is nearest, until all are clear or none is left or fits the budget."""
        if not growing:
            return
        from prony.experiment.blocks import by_need, clear_groups, interrupted_block

        while True:
            left = [scheduled for scheduled in self.plan.order() if _scheduled(scheduled) not in self._ended]
            some = interrupted_block(growing, left, self._ended)
            if not some:
                wanted = by_need(growing, left)
                some = next((coming for _, coming in wanted if self._has_room(coming)), [])
            if not some:
                for note in clear_groups(growing, left) + [
                    self._no_room(group.part, of) for group, of in wanted
                ]:
                    self._note_once(note)
                return
            self._run(some, trials)

    def _no_room(self, part: Part, some: list[ScheduledTrial]) -> str:
        assert self._budget is not None
        within = f"the budget of {self._budget.whole_s:g} s has no room for another"
        return f"{part.title}: after block {some[0].block} {within}"

    def _note_once(self, note: str) -> None:
        if note not in self._noted:
            self._noted.add(note)
            self.progress.note(note)

    def _has_room(self, some: list[ScheduledTrial]) -> bool:
        needed = self._planned_s(some) | self._set_aside()
        return self._budget is None or self._budget.has_room(time.monotonic(), needed)

    def _planned_s(self, some: Sequence[ScheduledTrial]) -> dict[str, float]:
        return dict(zip(map(kind_of_cell, some), self.plan.times_s(some), strict=True))

    def _set_aside(self) -> dict[str, float]:
        """Planned time of the explained trials, which run last, s by kind."""
        left = (scheduled for scheduled in self.plan.order() if _scheduled(scheduled) not in self._ended)
        return self._planned_s([scheduled for scheduled in left if scheduled.kind == "explained"])

    # -- a trial

    def _explains(self, scheduled: ScheduledTrial) -> bool:
        """Whether it is an explained trial that has not ended, of a measured cell."""
        measured = any(cell == scheduled.cell and kind == "trial" for cell, _, kind in self._ended)
        return scheduled.kind == "explained" and measured and _scheduled(scheduled) not in self._ended

    def _trial(
        self,
        scheduled: ScheduledTrial,
        trials: Trials,
        following: ScheduledTrial | None,
        duet: Duet | None = None,
    ) -> None:
        """Run a trial; repeat it while disturbed, up to the limit. `following` may share its process."""
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
            self._observe(ended)
            if self._budget is not None:
                (planned_s,) = self.plan.times_s([scheduled])
                self._budget.took(kind_of_cell(scheduled), trials.last_s, planned_s)
            if ended.record.failure is not None:
                self.progress.note(f"{ended.record.server}: {ended.record.failure}")
            if not ended.disturbed:
                break
            self._note_disturbance(ended, repeat < self.plan.repeat_disturbed)
        self._ended.add(_scheduled(scheduled))
        if scheduled.kind == "trial":  # controls and explained trials have no figure
            self._results.add(scheduled, ended)
            figure = self._results.words(self.plan, self.plan.cell(scheduled.cell))
            if figure:
                self.progress.note(figure)

    def _needed(self, scheduled: ScheduledTrial) -> bool:
        """Whether a fault of this trial, such as a taken port, ends the experiment: no trial of its server
        has ended, or a search depends on it.
        """
        if self.plan.goes_on:
            return False
        cell = self.plan.cell(scheduled.cell)
        part = self.plan.part(cell.part)
        if part.search is not None:
            return True
        return not any(self.plan.cell(ended).server == cell.server for ended, _, _ in self._ended)

    def _note_disturbance(self, ended: EndedTrial, again: bool) -> None:
        outside = [finding for finding in ended.conclusion.judgement.findings if finding.outside]
        why = f"disturbed by other load on this host: {'; '.join(cause.reason for cause in outside)}"
        if again:
            self.progress.note(f"{why}; repeating the trial")
        elif not self._disturbance_noted:
            self._disturbance_noted = True
            advice = next((cause.advice for cause in outside if cause.advice), "stop the other load")
            self.progress.note(f"{why}. To measure: {advice}; or repeat such trials: --repeat-disturbed N")


def remaining(plan: Plan, trials: list[StoredTrial]) -> tuple[ScheduledTrial, ...]:
    """Trials to run, in order; an interrupted trial runs again."""
    keys = ended(plan, trials)
    return tuple(scheduled for scheduled in plan.order() if _scheduled(scheduled) not in keys)


def ended(plan: Plan, trials: list[StoredTrial]) -> set[Key]:
    """Trials stored whole; of a duet all or none."""
    keys = {_key(trial) for trial in trials if _whole(trial)}
    for together in duets(plan, plan.order()):
        if not {_scheduled(scheduled) for scheduled in together} <= keys:
            keys -= {_scheduled(scheduled) for scheduled in together}
    return keys


def _whole(trial: StoredTrial) -> bool:
    return INTERRUPTED not in trial.record.notes


def _key(trial: StoredTrial) -> Key:
    return trial.record.cell, trial.record.block, trial.record.kind


def _scheduled(scheduled: ScheduledTrial) -> Key:
    return scheduled.cell, scheduled.block, scheduled.kind


@contextmanager
def until_ended(store: Store, identifier: str) -> Iterator[None]:
    """Marks the experiment *finished* or *interrupted*; drops it where no trial could begin."""
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
