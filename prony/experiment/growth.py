"""Cells added during an experiment: the rates of a search, the loads of a second pass. Pure."""

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
"""First rate of a search, as a share of the closed loop's throughput."""


def search_so_far(plan: Plan, part: Part, trials: Sequence[StoredTrial]) -> CapacitySearch:
    """The search of this part, replayed from its trials in order."""
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
    """The planned rate; else half of the closed loop's throughput. None: from the lowest rate."""
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
    """A cell at the next rate; None at the end of the search."""
    assert part.search is not None
    rate = search_so_far(plan, part, trials).ask()
    if rate is None:
        return None
    return at_rate(plan.of(part.name)[0], rate, part.search)


def at_rate(cell: Cell, rate_per_s: float, search: Search) -> Cell:
    """The cell at this rate, its window as long as the objectives' percentiles need."""
    at_rate_cell = cell.under(open_load(rate_per_s, search))
    measured = at_rate_cell.trial.measured
    if not isinstance(measured, SteadyWindow):
        return at_rate_cell
    window_s = window_for(objectives(search.objectives), rate_per_s, measured.window_s)
    longer = measured.model_copy(update={"window_s": window_s})
    return at_rate_cell.model_copy(
        update={"trial": at_rate_cell.trial.model_copy(update={"measured": longer})}
    )


def open_load(rate_per_s: float, search: Search) -> OpenLoad:
    """With users for twice the concurrency of the slowest allowed responses (Little)."""
    slowest_s = max(objective.below_ms for objective in objectives(search.objectives)) / 1000
    room = math.ceil(max(100.0, rate_per_s * max(1.0, 2 * slowest_s)))
    return OpenLoad(rate_per_s=rate_per_s, arrivals=search.arrivals, max_users=min(room, 1_000_000))


def following(
    plan: Plan, part: Part, trials: Sequence[StoredTrial]
) -> tuple[Cell, ...] | tuple[Skipped, ...]:
    """The cells of a part that follows another, or the skipped cells with the reason."""
    follow = part.follows
    assert follow is not None
    followed = plan.of(follow.part)
    capacities = {cell.id: _capacity(cell, trials) for cell in followed}
    unknown = [cell.server for cell in followed if capacities[cell.id] is None]
    if unknown:
        why = (
            f"no trial of {' and '.join(unknown)} counts in part '{follow.part}', whose capacity sets this "
            "pass's rate; fix that part's findings first"
        )
        return tuple(
            Skipped(cell=f"{part.name}/{cell.server}", part=part.name, server=cell.server, why=why)
            for cell in followed
        )
    rates = [rounded_down(follow.share * (capacities[cell.id] or 0.0)) for cell in followed]
    if follow.rate != "own":
        rates = [min(rates)] * len(rates)
    cells = []
    for cell, rate in zip(followed, rates, strict=True):
        trial = cell.trial.model_copy(update={"published_requests": None})
        plain = cell.model_copy(update={"part": part.name, "trial": trial})
        cells.append(plain.under(OpenLoad(rate_per_s=rate)).model_copy(update={"trials": cell.trials}))
    return tuple(cells)


def _capacity(cell: Cell, trials: Sequence[StoredTrial]) -> float | None:
    """Geometric mean of the counting trials, requests/s; None without any."""
    rates = [
        trial.figures.get("requests_per_s") or 0.0
        for trial in trials
        if trial.record.cell == cell.id
        and trial.record.kind == "trial"
        and trial.record.failure is None
        and trial.judgement.conforms
    ]
    logs = [math.log(value) for value in rates if value > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None


def rounded_down(rate_per_s: float) -> float:
    """Three significant digits, rounded down, to be repeatable by hand."""
    unit = 10.0 ** (math.floor(math.log10(rate_per_s)) - 2)
    return round(math.floor(rate_per_s / unit + 1e-9) * unit, 6)
