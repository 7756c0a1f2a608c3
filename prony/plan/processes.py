"""Cells that share a process of their server, and their order in it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from prony.plan.balanced import balanced_orders
from prony.plan.cell import Cell
from prony.plan.load import WholeRun
from prony.plan.part import Sharing


def units(cells: Sequence[Cell], sharing: Sharing = "loads") -> list[tuple[Cell, ...]]:
    """Cells grouped by shared process, in plan order; those of a process have the same measured part."""
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        groups.setdefault((_shared_by(cell, sharing), cell.trial.measured), []).append(cell)
    return [tuple(group) for group in groups.values()]


def _shared_by(cell: Cell, sharing: Sharing) -> str:
    return cell.server if sharing == "workloads" else f"{cell.server}/{cell.trial.workload.name}"


def name_within(cell: Cell, sharing: Sharing) -> str:
    load = cell.trial.load_name
    return f"{cell.trial.workload.name}/{load}" if sharing == "workloads" else load


def why_not(cells: Sequence[Cell], sharing: Sharing = "loads", *, grows: bool = False) -> str | None:
    """Why the cells cannot share processes, as a clause; None if they can. `grows`: loads are added later."""
    for cell in cells:
        trial = cell.trial
        if not cell.target.owned:
            return f"{cell.server} is already running, and Prony does not launch its processes"
        if trial.published_requests is not None:
            return "published_requests needs a fresh process for each load"
        if isinstance(trial.measured, WholeRun) and not trial.measured.warm_up_s:
            return (
                f"{name_within(cell, sharing)} is measured from the first request of a fresh process; give "
                "window_s, or a whole run a warm_up_s"
            )
    if not grows and all(len(unit) < 2 for unit in units(cells, sharing)):
        two = "two workloads or loads" if sharing == "workloads" else "two loads of one workload"
        return f"no server has {two} to share a process"
    return None


def process_key(cell: Cell, block: int, sharing: Sharing) -> str:
    return f"{cell.part}/{_shared_by(cell, sharing)}#{block + 1}"


class LoadOrders:
    """Orders of cells within processes, equal for a block's servers (carry-over cancels), and balanced."""

    def __init__(self, seed: str, sharing: Sharing = "loads") -> None:
        self._seed = seed
        self._sharing = sharing
        self._orders: dict[tuple[str, ...], tuple[Iterator[tuple[int, ...]], list[tuple[int, ...]]]] = {}

    def of(self, unit: Sequence[Cell], block: int) -> list[Cell]:
        if len(unit) < 2:
            return list(unit)
        names = [name_within(cell, self._sharing) for cell in unit]
        return [unit[place] for place in self.order(names, block)]

    def order(self, names: Sequence[str], block: int) -> tuple[int, ...]:
        key = tuple(names)
        if key not in self._orders:
            source = random.Random(f"{self._seed}/{'/'.join(key)}")
            self._orders[key] = balanced_orders(len(key), source), []
        coming, drawn = self._orders[key]
        while len(drawn) <= block:
            drawn.append(next(coming))
        return drawn[block]
