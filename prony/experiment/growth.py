"""Parts of a plan that grow while it runs: the rates of a search, and the loads of a second pass. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from prony.compare.capacity import (
    LONGEST_S,
    CapacitySearch,
    lowest_rate,
    outcome_of,
    rounded_up,
    search_of,
    window_for,
)
from prony.plan.cell import Cell
from prony.plan.load import OpenLoad, SteadyWindow
from prony.plan.objective import objectives
from prony.plan.part import Part, Search
from prony.plan.plan import Plan, Skipped
from prony.store import StoredTrial

FIRST_SHARE = 0.5
"""A search begins at this share of what a closed loop carried."""


def search_so_far(plan: Plan, part: Part, trials: Sequence[StoredTrial]) -> CapacitySearch:
    """The search of this part, told again what its trials came to, in their order."""
    assert part.search is not None
    cells = {cell.id: cell for cell in plan.of(part.name)}
    wanted = objectives(part.search.objectives)
    window_s = next(iter(cells.values())).trial.measured_s
    mine = [(cells[name], t) for t in trials if (name := t.record.cell) in cells]
    first = _first_rate(cells, mine, part.search, lowest_rate(wanted, max(window_s, LONGEST_S)))
    search = search_of(part.search, window_s, first)
    for cell, trial in mine:
        load = cell.trial.load
        if isinstance(load, OpenLoad) and load.rate_per_s is not None:
            outcome = outcome_of(trial.record, trial.judgement, trial.figures, wanted)
            search.tell(load.rate_per_s, *outcome)
    return search


def _first_rate(
    cells: Mapping[str, Cell], trials: Sequence[tuple[Cell, StoredTrial]], search: Search, lowest: float
) -> float | None:
    """The one that is planned; else half of what the closed loop carried. None: from the lowest."""
    loads = [cell.trial.load for cell in cells.values()]
    planned = next((load.rate_per_s for load in loads if isinstance(load, OpenLoad)), None)
    if planned is not None:
        return planned
    for _, trial in trials:
        carried = trial.figures.get("requests_per_s")
        if carried:
            return min(max(rounded_up(FIRST_SHARE * carried), lowest), search.highest_per_s)
    return None


def next_cell(plan: Plan, part: Part, trials: Sequence[StoredTrial]) -> Cell | None:
    """The next rate to try as a cell; None when the search is over."""
    assert part.search is not None
    rate = search_so_far(plan, part, trials).ask()
    if rate is None:
        return None
    return at_rate(plan.of(part.name)[0], rate, part.search)


def at_rate(cell: Cell, rate_per_s: float, search: Search) -> Cell:
    """The cell at this rate, its window as long as the objectives' percentiles need."""
    found = cell.under(open_load(rate_per_s, search))
    measured = found.trial.measured
    if not isinstance(measured, SteadyWindow):
        return found
    window_s = window_for(objectives(search.objectives), rate_per_s, measured.window_s)
    longer = measured.model_copy(update={"window_s": window_s})
    return found.model_copy(update={"trial": found.trial.model_copy(update={"measured": longer})})


def open_load(rate_per_s: float, search: Search) -> OpenLoad:
    """Room for twice as many under way as the slowest allowed responses need."""
    slowest_s = max(one.below_ms for one in objectives(search.objectives)) / 1000
    room = math.ceil(max(100.0, rate_per_s * max(1.0, 2 * slowest_s)))
    return OpenLoad(rate_per_s=rate_per_s, arrivals=search.arrivals, max_users=min(room, 1_000_000))


def following(
    plan: Plan, part: Part, trials: Sequence[StoredTrial]
) -> tuple[Cell, ...] | tuple[Skipped, ...]:
    """The cells of a part that follows another, or why there are none."""
    follow = part.follows
    assert follow is not None
    followed = plan.of(follow.part)
    capacities = {cell.id: _capacity(cell, trials) for cell in followed}
    unknown = [cell.server for cell in followed if capacities[cell.id] is None]
    if unknown:
        why = (
            f"this pass needs the capacity of {' and '.join(unknown)}, of which no trial counts; the "
            f"findings of the part '{follow.part}' say what to fix"
        )
        return tuple(
            Skipped(cell=f"{part.name}/{cell.server}", part=part.name, server=cell.server, why=why)
            for cell in followed
        )
    rates = [rounded_down(follow.share * (capacities[cell.id] or 0.0)) for cell in followed]
    if follow.rate != "own":
        rates = [min(rates)] * len(rates)
    found = []
    for cell, rate in zip(followed, rates, strict=True):
        trial = cell.trial.model_copy(update={"published_requests": None})
        plain = cell.model_copy(update={"part": part.name, "trial": trial})
        found.append(plain.under(OpenLoad(rate_per_s=rate)).model_copy(update={"trials": cell.trials}))
    return tuple(found)


def _capacity(cell: Cell, trials: Sequence[StoredTrial]) -> float | None:
    """Requests per second: the geometric mean of the trials that count; None where none does."""
    found = [
        trial.figures.get("requests_per_s") or 0.0
        for trial in trials
        if trial.record.cell == cell.id
        and trial.record.kind == "trial"
        and trial.record.failure is None
        and trial.judgement.conforms
    ]
    logs = [math.log(value) for value in found if value > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None


def rounded_down(rate_per_s: float) -> float:
    """Three significant digits, downwards: rates that people can repeat."""
    unit = 10.0 ** (math.floor(math.log10(rate_per_s)) - 2)
    return round(math.floor(rate_per_s / unit + 1e-9) * unit, 6)
