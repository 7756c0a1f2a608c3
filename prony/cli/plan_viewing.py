"""From the store to the view of a plan's report. Must not print anything."""

from __future__ import annotations

from collections.abc import Sequence

from prony.cli.viewing import trial_view
from prony.experiment.cells import stored_plan
from prony.experiment.plan_text import plan_yaml
from prony.plan.cells import PlanPart, RunPlan
from prony.plan.load import ClosedLoad
from prony.report.model import PairView, TrialView
from prony.report.pairs import figure_pairs, has
from prony.report.plan_view import CellView, PartView, PlanView, with_cell_figures
from prony.report.wording import duration
from prony.store import ExperimentRow, Store
from prony.trial.load_run import INTERRUPTED

FEWEST = 3
"""Trials per server from which a pair is worth a sentence."""


def plan_view(store: Store, experiment: ExperimentRow) -> PlanView | None:
    """The view of a stored run of a plan; None for an experiment of another kind."""
    plan = stored_plan(experiment)
    if plan is None:
        return None
    stored = [with_cell_figures(trial_view(one)) for one in store.trials(experiment.id)]
    trials = latest(stored)
    by_cell: dict[str, list[TrialView]] = {}
    for trial in trials:
        by_cell.setdefault(trial.record.cell, []).append(trial)
    parts = tuple(_part(plan, part, by_cell) for part in plan.parts)
    partition = next((t.record.evidence.partition for t in trials if t.record.evidence.partition), None)
    warnings: list[str] = []
    if experiment.status == "interrupted":
        warnings.append(f"Interrupted; it goes on with: prony run --resume {experiment.id}")
    warnings += [_cut_short(trial, trial in trials) for trial in stored if interrupted(trial)]
    if partition is not None and partition.shared:
        warnings.append(f"Server and client shared CPUs: {partition.note}")
    return PlanView(
        id=experiment.id,
        title=experiment.name,
        note=plan.note,
        created=experiment.created,
        quick=experiment.quick,
        status_word=experiment.status,
        plan=plan,
        plan_text=plan_yaml(plan.model_dump(mode="json", exclude_defaults=True)),
        parts=tuple(part for part in parts if part.cells or part.skipped),
        planned=len(plan.order()),
        ended=sum(not interrupted(trial) for trial in trials),
        fingerprint=experiment.fingerprint,
        partition=partition,
        warnings=tuple(warnings),
    )


def interrupted(trial: TrialView) -> bool:
    """Whether the user ended it; what had been measured until then was kept."""
    return INTERRUPTED in trial.record.notes


def latest(trials: Sequence[TrialView]) -> list[TrialView]:
    """Without those that were interrupted and run again later."""
    last = {(trial.record.cell, trial.record.block): trial for trial in trials}
    return [trial for trial in trials if last[trial.record.cell, trial.record.block] is trial]


def _cut_short(trial: TrialView, shown: bool) -> str:
    engine = trial.record.evidence.engine
    window = engine.window if engine is not None else None
    after = f" after {duration(window.duration_s)}" if window is not None else ""
    what = "its figures are of what had been measured until then" if shown else "it was run again, whole"
    return f"{trial.record.cell}, block {trial.record.block + 1}: interrupted{after}; {what}."


def _part(plan: RunPlan, part: PlanPart, by_cell: dict[str, list[TrialView]]) -> PartView:
    cells = tuple(CellView(cell, tuple(by_cell.get(cell.id, ()))) for cell in plan.of(part.name))
    skipped = tuple(one for one in plan.skipped if one.part == part.name)
    return PartView(part, cells, skipped, tuple(_pairs(part, cells)))


def _pairs(part: PlanPart, cells: Sequence[CellView]) -> list[tuple[str, PairView]]:
    """Comparisons within each workload and load, of the pairs that the plan names or of all."""
    groups: dict[tuple[str, str], list[CellView]] = {}
    for view in cells:
        trial = view.cell.trial
        groups.setdefault((trial.workload.name, trial.load_name), []).append(view)
    found: list[tuple[str, PairView]] = []
    for (workload, load), group in groups.items():
        servers = [view.cell.server for view in group]
        if len(servers) < 2 or max(len(view.trials) for view in group) < FEWEST:
            continue
        wanted = None if part.comparisons is None else {frozenset(pair) for pair in part.comparisons}
        for pair in _compared(group, servers, part.band):
            if wanted is None or frozenset((pair.a, pair.b)) in wanted:
                found.append((f"{workload}, {load}", pair))
    return found


def _compared(group: Sequence[CellView], servers: list[str], band: float) -> list[PairView]:
    load = group[0].cell.trial.load
    capacity = isinstance(load, ClosedLoad) and load.think.kind == "none"
    figure = "requests_per_s" if capacity else "p99_ms"
    trials = [trial for view in group for trial in view.trials]
    return figure_pairs(trials, figure, servers, band=band) if has(trials, figure) else []
