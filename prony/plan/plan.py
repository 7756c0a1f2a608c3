"""The plan of an experiment: parts, cells (server x workload x load) and the order of trials."""

from __future__ import annotations

import fnmatch
import random
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, model_validator

from prony.evidence.base import Record
from prony.plan.balanced import balanced_orders, drawn_orders
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad
from prony.plan.part import Part, Shape
from prony.plan.processes import LoadOrders, process_key, units
from prony.plan.trial import TrialPlan
from prony.plan.turns import extra_s
from prony.redaction import Name, Title

MAIN = "main"
RESUMABLE = frozenset(
    {"aa", "compare", "gate", "run", "load", "sweep", "capacity", "second-opinion", "explain"}
)


Kind = Literal["trial", "control", "explained"]
Orders = Literal["drawn", "balanced"]


class CpuSets(Record):
    """Which CPUs, as in `0-3,8`; None: chosen, always disjoint where the host allows."""

    server: str | None = None
    client: str | None = None


class Skipped(Record):
    """A cell that is not run, and why."""

    cell: Name
    part: Name
    server: Name
    why: Title


class ScheduledTrial(Record):
    """A trial in the order of the experiment."""

    index: int
    """From 1; the end of the trial's id."""
    cell: str
    block: int
    position: int
    kind: Kind = "trial"
    process: str | None = None
    """Key of a process shared by consecutive trials; None: its own process."""

    def follows_in_process(self, before: ScheduledTrial | None) -> bool:
        return self.process is not None and before is not None and before.process == self.process


class _Row(NamedTuple):
    cell: str
    block: int
    position: int
    kind: Kind = "trial"
    process: str | None = None


class UsedHost(Record):
    """A host of a plan on several hosts."""

    name: str
    role: Literal["server", "load"]
    group: str = ""
    """Server's host: its name under `servers:`."""
    weight: float = 1.0


class Plan(Record):
    """A self-contained plan. Parts that search grow while they run; finished trials keep their index."""

    schema_version: Literal[2] = Field(default=2, alias="schema")
    kind: Literal["plan"] = "plan"
    name: Name
    command: str
    title: Title
    note: Title = ""
    parts: tuple[Part, ...] = Field(min_length=1)
    cells: tuple[Cell, ...] = Field(min_length=1)
    skipped: tuple[Skipped, ...] = ()
    changes: tuple[str, ...] = ()
    cpus: CpuSets = CpuSets()
    hosts: tuple[UsedHost, ...] = ()
    hosts_file: str | None = None
    seed: int = 0
    quick: bool = False
    orders: Orders = "drawn"
    repeat_disturbed: int = Field(default=0, ge=0)
    goes_on: bool = False
    """Whether the experiment continues after a trial without any load."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    @model_validator(mode="after")
    def _first_look(self) -> Self:
        for part in self.parts:
            fewest = min((cell.trials for cell in self.of(part.name)), default=3)
            if part.until_clear is not None and not 3 <= fewest <= part.until_clear:
                raise ValueError(
                    f"until_clear is {part.until_clear} and trials is {fewest}; expected a first look after "
                    "at least 3 trials, and not after the last"
                )
        return self

    @property
    def resume_command(self) -> str | None:
        return self.command if self.command in RESUMABLE else None

    def part(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)

    def cell(self, id: str) -> Cell:
        return next(cell for cell in self.cells if cell.id == id)

    def of(self, part: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.part == part)

    @property
    def budget_s(self) -> float | None:
        """Time for its trials; None: no limit. Ignores a gate with a stored base, whose trials are fixed."""
        timed = (part for part in self.parts if part.gate is None or part.gate.baseline is None)
        given = (part.budget_s for part in timed)
        return max((seconds for seconds in given if seconds is not None), default=None)

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.server for cell in self.cells))

    def order(self) -> tuple[ScheduledTrial, ...]:
        """By part and block; cells that share a process are consecutive, controls end a part."""
        source = random.Random(self.seed)
        rows: list[_Row] = []
        for part in self.parts:
            rows += _search_order(part, self.of(part.name)) if part.search else self._blocks(part, source)
        explained = [cell for cell in self.cells if cell.explain]
        rows += [_Row(cell.id, 0, at, kind="explained") for at, cell in enumerate(explained)]
        return tuple(ScheduledTrial(index=index, **row._asdict()) for index, row in enumerate(rows, start=1))

    def _blocks(self, part: Part, source: random.Random) -> Iterator[_Row]:
        cells = self.of(part.name)
        most = {cell.id: part.until_clear or cell.trials for cell in cells}
        blocks = max(most.values(), default=0)
        together = units(cells, part.share_process) if part.share_process else [(cell,) for cell in cells]
        squares = {"drawn": drawn_orders, "balanced": balanced_orders}[self.orders]
        orders = squares(len(together), source) if cells else iter(())
        within = LoadOrders(f"{self.seed}/{part.name}", part.share_process or "loads")
        for block in range(blocks):
            order = (cell for at in next(orders) for cell in within.of(together[at], block))
            row = [cell for cell in order if most[cell.id] > block]
            for position, cell in enumerate(row):
                process = process_key(cell, block, part.share_process) if part.share_process else None
                yield _Row(cell.id, block, position, process=process)
        for control in range(max((cell.controls for cell in cells), default=0)):
            row = [cell for cell in cells if cell.controls > control]
            for position, cell in enumerate(row):
                yield _Row(cell.id, blocks + control, position, kind="control")

    def trial_of(self, scheduled: ScheduledTrial) -> TrialPlan:
        return _trial_of(self.cell(scheduled.cell), scheduled.kind)

    def seed_of(self, scheduled: ScheduledTrial) -> int:
        return (self.seed + scheduled.index - 1) % 2**63

    @property
    def estimate_s(self) -> float:
        return self.remaining_s(self.order())

    def remaining_s(self, left: Sequence[ScheduledTrial]) -> float:
        """Estimated duration of these trials and of those that a search may add."""
        total_s = sum(self.times_s(left)) + sum(cell.trial_s * times for cell, times in self._growing())
        if self.budget_s is not None:
            total_s = min(total_s, max(self.budget_s, sum(self.times_s(self.first_block(left)))))
        return total_s

    def first_block(self, left: Sequence[ScheduledTrial]) -> list[ScheduledTrial]:
        """Of these trials in order; it runs whole within any budget."""
        keys = [(self.cell(trial.cell).part, trial.block) for trial in left]
        return [trial for trial, key in zip(left, keys, strict=True) if key == keys[0]]

    def times_s(self, trials: Sequence[ScheduledTrial]) -> tuple[float, ...]:
        times: list[float] = []
        had: set[str] = set()
        for before, trial in zip((None, *trials), trials, strict=False):
            later, workload = trial.follows_in_process(before), self.cell(trial.cell).trial.workload.name
            had = had if later else set()
            times.append(self.time_s(trial, later=later, new=workload not in had))
            had.add(workload)
        return tuple(times)

    def time_s(self, trial: ScheduledTrial, *, later: bool, new: bool = False) -> float:
        """`later`: in a process that an earlier trial warmed up, `new`: under other workloads only."""
        cell = self.cell(trial.cell)
        if trial.kind != "trial":
            return cell.takes_s(_trial_of(cell, trial.kind))
        if not later:
            return cell.trial_s + (extra_s(cell.trial.measured_s) if self.part(cell.part).duet else 0.0)
        return cell.trial.later_new_s if new else cell.trial.later_s

    @property
    def growth(self) -> int:
        return sum(times for _, times in self._growing())

    def _growing(self) -> Iterator[tuple[Cell, int]]:
        """(cell like those to be added, number of trials)."""
        skipped = {cell.part for cell in self.skipped}
        for part in self.parts:
            cells = self.of(part.name)
            if part.search is not None and cells:
                tried = sum(cell.trials for cell in cells if not isinstance(cell.trial.load, ClosedLoad))
                yield cells[0], max(0, part.search.most_trials - tried)
            elif part.follows is not None and not cells and part.name not in skipped:
                cells = self.of(part.follows.part)
                yield from ((cell, part.until_clear or cell.trials) for cell in cells)

    def grown(self, cells: Sequence[Cell]) -> Plan:
        """The plan with these cells added; an existing cell gets another trial."""
        by_id = {cell.id: cell for cell in self.cells}
        for cell in cells:
            existing = by_id.get(cell.id)
            by_id[cell.id] = (
                cell if existing is None else existing.model_copy(update={"trials": existing.trials + 1})
            )
        return self.model_copy(update={"cells": tuple(by_id.values())})

    def only(self, pattern: str) -> Plan | None:
        """The plan with the cells whose id or part matches the pattern; None without a cell to run."""

        def matches(identifier: str, part: str) -> bool:
            return fnmatch.fnmatchcase(identifier, pattern) or part == pattern

        kept = tuple(cell for cell in self.cells if matches(cell.id, cell.part))
        skipped = tuple(cell_ for cell_ in self.skipped if matches(cell_.cell, cell_.part))
        return self.model_copy(update={"cells": kept, "skipped": skipped}) if kept else None

    def as_stored(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def one_part(
    command: str, title: str, cells: Sequence[Cell], *, seed: int, quick: bool = False, **part: Any
) -> Plan:
    """A plan with a single part. `part`: further fields of it, such as its shape."""
    return Plan(
        name=command,
        command=command,
        title=title,
        parts=(Part(name=MAIN, title=title, **part),),
        cells=tuple(cells),
        seed=seed,
        quick=quick,
    )


def _trial_of(cell: Cell, kind: Kind) -> TrialPlan:
    return {"trial": cell.trial, "control": cell.control, "explained": cell.explained}[kind]


def shape_of(cells: Sequence[Cell]) -> Shape:
    """Shape for loads on a running server: a single trial, or a table."""
    return "single" if len(cells) == 1 and cells[0].trials == 1 else "matrix"


def _search_order(part: Part, cells: Sequence[Cell]) -> Iterator[_Row]:
    """Repeated rates are consecutive, each in a fresh process."""
    for cell in cells:
        for block in range(cell.trials):
            process = process_key(cell, block, part.share_process) if part.share_process else None
            yield _Row(cell.id, block, 0, process=process)
