"""A plan within a time budget: trials per cell, and further blocks where time is left."""

from __future__ import annotations

import math
from collections.abc import Sequence

from prony.plan.cell import Cell
from prony.plan.part import MOST_LOOKS, Part
from prony.plan.plan import Plan

FEWEST = 3
"""Fewest trials of a cell for a conclusion about a pair."""
ROOM_TO_CHOOSE = 2.0
"""Multiple of its even share of the remaining time that a part may use."""


def within(plan: Plan, budget_s: float) -> Plan:
    """The plan with this time for its trials: those planned, or FEWEST per cell, then blocks where a claim
    is nearest. Where FEWEST do not fit, those that do.
    """
    plan = plan.model_copy(
        update={
            "cells": tuple(cell.model_copy(update={"controls": 0}) for cell in plan.cells),
            "parts": tuple(part.model_copy(update={"budget_s": None}) for part in plan.parts),
        }
    )
    fixed = _planned_s(plan)
    if fixed > budget_s:
        plan = _fewest(plan)
        fixed = _planned_s(plan)
    left_s = max(0.0, budget_s - fixed)
    growing = [part.name for part in plan.parts if _adds(plan, part)]
    together_s = sum(_block_s(plan, plan.part(name)) for name in growing)
    room = 1.0 if len(growing) == 1 else ROOM_TO_CHOOSE
    more = int(room * left_s / together_s) if together_s else 0
    parts = tuple(
        part.model_copy(
            update={"budget_s": budget_s}
            | ({"until_clear": _last_look(plan, part, more)} if more and part.name in growing else {})
        )
        for part in plan.parts
    )
    if all(part.search is not None for part in plan.parts):
        return plan.model_copy(update={"parts": parts})
    change = f"budget of {budget_s / 60:.3g} min"
    first_s = _block_s(plan, plan.parts[0])
    if first_s > budget_s:
        one, all_m = math.ceil(first_s / 60), math.ceil(fixed / 60)
        change += (
            f" is shorter than one block, which takes about {first_s / 60:.1f} min and runs whole; "
            f"--budget {one}m holds it, --budget {all_m}m {_counted(plan)}"
        )
        return plan.model_copy(update={"parts": parts, "changes": (*plan.changes, change)})
    change += f": {_counted(plan)}, about {fixed / 60:.1f} min"
    if together_s and more:
        about = int(left_s / together_s)
        change += f"; then {f'about {about} ' if about else ''}more blocks where a claim is nearest"
    elif fixed > budget_s:
        change += f"; trials that do not fit are left out (--budget {math.ceil(fixed / 60)}m runs all)"
    return plan.model_copy(update={"parts": parts, "changes": (*plan.changes, change)})


def _planned_s(plan: Plan) -> float:
    parts = tuple(part.model_copy(update={"until_clear": None, "search": None}) for part in plan.parts)
    return plan.model_copy(update={"parts": parts}).estimate_s


def _fewest(plan: Plan) -> Plan:
    cells = tuple(cell.model_copy(update={"trials": min(cell.trials, FEWEST)}) for cell in plan.cells)
    return plan.model_copy(update={"cells": cells})


def _counted(plan: Plan) -> str:
    numbers = sorted({cell.trials for cell in plan.cells})
    each = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    explained = sum(cell.explain for cell in plan.cells)
    cells = f"{len(plan.cells)} cell{'s' if len(plan.cells) != 1 else ''}"
    more = f" and {explained} explained" if explained else ""
    return f"{cells} x {each} trial{'s' if numbers != [1] else ''}{more}"


def _cells(plan: Plan, part: Part) -> Sequence[Cell]:
    """Its cells, or those of the part that it follows."""
    return plan.of(part.name) or (plan.of(part.follows.part) if part.follows is not None else ())


def _adds(plan: Plan, part: Part) -> bool:
    cells = _cells(plan, part)
    return part.search is None and bool(cells) and min(cell.trials for cell in cells) >= FEWEST


def _block_s(plan: Plan, part: Part) -> float:
    alike = {"trials": 1, "part": part.name, "explain": False}
    once = tuple(cell.model_copy(update=alike) for cell in _cells(plan, part))
    if not once:
        return 0.0
    alone = part.model_copy(update={"until_clear": None, "follows": None, "search": None})
    block = plan.model_copy(update={"parts": (alone,), "cells": once})
    return sum(block.times_s(block.order()))


def _last_look(plan: Plan, part: Part, more: int) -> int:
    first = min(cell.trials for cell in _cells(plan, part))
    if part.until_clear is not None:
        return part.until_clear
    return min(MOST_LOOKS, first + more)
