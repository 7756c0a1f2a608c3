"""The figure of a cell as soon as its last planned trial has ended: long before the tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median, median_high

from prony.experiment.trials import EndedTrial
from prony.judge.figures import FIGURE
from prony.numbers import number
from prony.plan.cell import Cell
from prony.plan.plan import Plan, ScheduledTrial


@dataclass(slots=True)
class Settled:
    """The trials of each cell, block by block; of one that was repeated the last attempt."""

    _found: dict[str, dict[int, EndedTrial]] = field(default_factory=dict)

    def add(self, scheduled: ScheduledTrial, ended: EndedTrial) -> None:
        """A measured trial that is over: no control, and no explained one."""
        self._found.setdefault(scheduled.cell, {})[scheduled.block] = ended

    def words(self, plan: Plan, cell: Cell) -> str:
        """One line; empty while a trial is to come or may be added, of a single trial, and of a cell that was
        begun before an interrupt.
        """
        part, found = plan.part(cell.part), self._found.get(cell.id, {})
        planned = sum(one.cell == cell.id and one.kind == "trial" for one in plan.order())
        if len(found) < max(2, planned) or part.until_clear is not None or part.search is not None:
            return ""
        alone = sum(one.server == cell.server for one in plan.of(cell.part)) == 1
        name = cell.server if alone else cell.id.removeprefix(f"{cell.part}/")
        return f"{name}: {_figure(cell, list(found.values()))}"


def _figure(cell: Cell, ended: list[EndedTrial]) -> str:
    from prony.analysis import CLOSED_FIGURE, compared_figure  # not while anything is measured

    name = compared_figure(cell.trial.load)
    conforming = [one for one in ended if one.conclusion.judgement.conforms]
    values = [value for one in conforming if (value := one.conclusion.figures.get(name)) is not None]
    over = f"{len(values)} of {len(ended)} trials" if len(values) < len(ended) else f"{len(ended)} trials"
    if not values:
        return f"no figure: none of its {len(ended)} trials conforms"
    middle = median(values) if name == CLOSED_FIGURE else median_high(values)
    spread = f"({number(min(values))}–{number(max(values))})"
    known = FIGURE[name]
    said = (
        f"{number(middle)} requests/s {spread}"
        if name == CLOSED_FIGURE
        else f"{known.label} {number(middle)} {spread} {known.unit}"
    )
    return f"{said} over {over}"
