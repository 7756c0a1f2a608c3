"""Shorter plans: --quick (about five minutes), --miniature (seconds per server), and soaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prony.errors import UsageError
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow, WholeRun
from prony.plan.plan import Plan, Skipped
from prony.plan.trial import QUICK_WARM_UP, TrialPlan, WarmUpPlan

QUICK_S = 300.0
"""Target of --quick, without builds."""
MIN_LOOK = 3
LEAST_DRAIN_S = 20.0
"""Least drain: the last arrival walks its whole session however few there are."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Limits of a shortened trial; None keeps a bound."""

    trials: int
    window_s: float
    warm_up: WarmUpPlan
    whole_s: float
    """Longest whole run, in addition to bounds on requests or loops."""
    points: int | None = None
    workloads: int | None = None
    users: int | None = None
    loops: int = 3
    """Fewest loops of a run bounded by them: fewer show nothing about keep-alive."""


def _warm(min_s: float, cap_s: float, settle_s: float, settle_cap_s: float) -> WarmUpPlan:
    return WarmUpPlan(
        min_s=min_s, cap_s=cap_s, settle_min_s=settle_s, settle_cap_s=settle_cap_s, settle_until="level"
    )


LADDER = (
    Scale(3, 10.0, QUICK_WARM_UP, 20.0),
    Scale(1, 10.0, QUICK_WARM_UP, 20.0),
    Scale(1, 8.0, _warm(8, 16, 3, 4), 10.0),
    Scale(1, 8.0, _warm(6, 10, 2, 3), 5.0),
    Scale(1, 8.0, _warm(6, 10, 2, 3), 5.0, points=3),
    Scale(1, 8.0, _warm(6, 10, 2, 3), 5.0, points=2),
    Scale(1, 8.0, _warm(6, 10, 2, 3), 5.0, points=1),
    Scale(1, 8.0, _warm(6, 10, 2, 3), 5.0, points=1, workloads=2),
)
"""From the mildest cut; --quick takes the first that fits. Windows have at least 8 s, for steadiness."""
MINIATURE = Scale(1, 1.0, _warm(1, 2, 1, 1), 2.0, points=2, users=16, loops=1)
"""For tests of the machinery: its figures mean nothing."""


def quicken(plan: Plan) -> Plan:
    for scale in LADDER:
        shorter = scaled(plan, scale)
        if shorter.estimate_s <= QUICK_S:
            break
    return shorter.model_copy(update={"quick": True})


def miniature(plan: Plan) -> Plan:
    return scaled(plan, MINIATURE).model_copy(update={"quick": True})


def scaled(plan: Plan, scale: Scale) -> Plan:
    kept, left_out = _thinned(
        plan.cells,
        scale.workloads,
        lambda cell: (cell.part, cell.server),
        lambda cell: cell.trial.workload.name,
    )
    kept, fewer_points = _thinned(kept, scale.points, _sweep, lambda cell: cell.trial.load_name)
    left_out += fewer_points
    cells = tuple(_shorter(cell, scale) for cell in kept)
    changes = [*plan.changes, *left_out]
    most = max(cell.trials for cell in plan.cells)
    if scale.trials < most:
        changes.append(f"quick: {scale.trials} of {most} trials per cell")
    for name, before, after in (
        ("steady windows", _longest(plan.cells, _window_s), _longest(cells, _window_s)),
        ("whole runs", _longest(plan.cells, _whole_s), _longest(cells, _whole_s)),
    ):
        if after < before:
            changes.append(f"quick: {name} of at most {after:g} s instead of {before:g} s")
    walks = {(_loops(cell.trial), _loops(_shorter(cell, scale).trial)) for cell in kept}
    changes += [f"quick: {fewer} of {most} walks per user" for most, fewer in sorted(walks) if fewer < most]
    parts = plan.parts
    if scale.trials < MIN_LOOK and any(part.until_clear for part in parts):
        parts = tuple(part.model_copy(update={"until_clear": None}) for part in parts)
        changes.append("quick: until_clear does not apply")
    return plan.model_copy(update={"parts": parts, "cells": cells, "changes": tuple(changes)})


def _longest(cells: Sequence[Cell], length_s: Callable[[TrialPlan], float]) -> float:
    return max((length_s(cell.trial) for cell in cells), default=0.0)


def _window_s(trial: TrialPlan) -> float:
    return trial.measured.length_s if isinstance(trial.measured, SteadyWindow) else 0.0


def _whole_s(trial: TrialPlan) -> float:
    return trial.measured_s if isinstance(trial.measured, WholeRun) and not _loops(trial) else 0.0


def _loops(trial: TrialPlan) -> int:
    return trial.measured.iterations_per_user or 0 if isinstance(trial.measured, WholeRun) else 0


def _sweep(cell: Cell) -> tuple[object, ...]:
    load = cell.trial.load
    return cell.part, cell.server, cell.trial.workload.name, load.model, load.think


def _thinned(
    cells: Sequence[Cell],
    most: int | None,
    series: Callable[[Cell], tuple[object, ...]],
    value: Callable[[Cell], str],
) -> tuple[list[Cell], list[str]]:
    if most is None:
        return list(cells), []
    had: dict[tuple[object, ...], dict[str, None]] = {}
    for cell in cells:
        had.setdefault(series(cell), {})[value(cell)] = None
    chosen = {
        key: {name for place, name in enumerate(names) if place in _ends_and_between(len(names), most)}
        for key, names in had.items()
    }
    kept: list[Cell] = []
    dropped: dict[str, dict[str, None]] = {}
    for cell in cells:
        if value(cell) in chosen[series(cell)]:
            kept.append(cell)
        else:
            dropped.setdefault(cell.part, {})[value(cell)] = None
    return kept, [f"quick: left out of {part}: {', '.join(names)}" for part, names in dropped.items()]


def _ends_and_between(count: int, points: int) -> set[int]:
    if count <= points:
        return set(range(count))
    if points == 1:
        return {count // 2}
    return {round(step * (count - 1) / (points - 1)) for step in range(points)}


def _shorter(cell: Cell, scale: Scale) -> Cell:
    trial = cell.trial
    load = trial.load
    if scale.users is not None and isinstance(load, ClosedLoad) and not load.populations:
        load = load.model_copy(update={"users": min(load.users, scale.users)})
    part = trial.measured
    if isinstance(part, SteadyWindow):
        part = part.model_copy(update={"window_s": min(part.length_s, scale.window_s), "windows": 1})
        warm = _least(trial.warm_up, scale.warm_up)
        trial = trial.model_copy(update={"warm_up": warm})
    else:
        load, part = _shorter_whole(trial, load, part, scale)
    if load.ramp_up_s > scale.window_s:
        load = load.model_copy(update={"ramp_up_s": scale.window_s})
    trial = trial.model_copy(update={"load": load, "measured": part})
    return cell.model_copy(update={"trial": trial, "trials": min(cell.trials, scale.trials)})


def _least(own: WarmUpPlan, other: WarmUpPlan) -> WarmUpPlan:
    """The shorter of both by limit. A fixed length is no longer than a watched phase."""
    shorter: dict[str, object] = {"closed_s": min(own.closed_s, other.warm_s)}
    if own.method == "fixed":
        length_s = min(own.cap_s, other.warm_s)
        return own.model_copy(update={**shorter, "min_s": length_s, "cap_s": length_s})
    names = ("min_s", "cap_s", "settle_min_s", "settle_cap_s")
    shorter |= {name: min(getattr(own, name), getattr(other, name)) for name in names}
    if other.settle_until == "level":
        shorter["settle_until"] = "level"
    return own.model_copy(update=shorter)


def _shorter_whole(
    trial: TrialPlan, load: ClosedLoad | OpenLoad, part: WholeRun, scale: Scale
) -> tuple[ClosedLoad | OpenLoad, WholeRun]:
    """A whole run within `scale.whole_s`: shorter phases, fewer loops, a time bound beside requests."""
    most_s = scale.whole_s
    if isinstance(load, OpenLoad) and load.total_s is not None and load.total_s > most_s:
        squeeze = most_s / load.total_s
        phases = tuple(p.model_copy(update={"duration_s": p.duration_s * squeeze}) for p in load.phases)
        load = load.model_copy(update={"phases": phases})
        if part.drain_s is not None:
            part = part.model_copy(update={"drain_s": max(LEAST_DRAIN_S, part.drain_s * squeeze)})
    loops = part.iterations_per_user
    if loops is not None and trial.measured_s > most_s:
        loops = max(min(loops, scale.loops), int(loops * most_s / trial.measured_s))
    bounded = isinstance(load, OpenLoad) and load.total_s is not None
    duration_s = part.duration_s if bounded or loops is not None else min(part.duration_s or most_s, most_s)
    if part.total_requests is not None and part.duration_s is None:
        duration_s = max(most_s, 10.0)
    bounds = {"duration_s": duration_s, "iterations_per_user": loops}
    return load, part.model_copy(update={**bounds, "warm_up_s": min(part.warm_up_s, most_s)})


def with_soak(plan: Plan, duration_s: float | None) -> Plan:
    """With a duration only the soak parts, else the others. Raises UsageError if nothing remains."""
    soaks = {part.name for part in plan.parts if part.soak}
    if duration_s is None:
        cells = tuple(cell for cell in plan.cells if cell.part not in soaks)
        left = tuple(
            Skipped(
                cell=cell.id,
                part=cell.part,
                server=cell.server,
                why="a soak is run on its own, with --duration (such as --duration 8h)",
            )
            for cell in plan.cells
            if cell.part in soaks
        )
        if not cells:
            raise UsageError(f"the plan '{plan.name}' is a soak: give its length, such as --duration 8h")
        return plan.model_copy(update={"cells": cells, "skipped": (*plan.skipped, *left)})
    if not soaks:
        raise UsageError(
            f"the plan '{plan.name}' has no soak part (soak: true), so --duration does not apply"
        )
    whole = {"measured": WholeRun(duration_s=duration_s), "published_requests": None}
    cells = tuple(
        cell.model_copy(update={"trial": cell.trial.model_copy(update=whole)})
        for cell in plan.cells
        if cell.part in soaks
    )
    parts = tuple(part for part in plan.parts if part.soak)
    return plan.model_copy(update={"cells": cells, "parts": parts})
