"""Which cells share a process of their server, and in which order their loads come. Must not know how a
process is started or kept.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from prony.plan.balanced import balanced_orders
from prony.plan.cell import Cell
from prony.plan.load import WholeRun


def units(cells: Sequence[Cell]) -> list[tuple[Cell, ...]]:
    """The cells by the process that they share: those of one server and workload, which differ in their load
    alone. In the order of the plan.
    """
    found: dict[object, list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.server, cell.trial.workload.name, cell.trial.measured), []).append(cell)
    return [tuple(group) for group in found.values()]


def why_not(cells: Sequence[Cell], *, grows: bool = False) -> str | None:
    """Why the cells of a part cannot share processes, as the end of a sentence; None where they can. `grows`:
    further loads are added while it runs.
    """
    for cell in cells:
        trial = cell.trial
        if not cell.target.owned:
            return f"{cell.server} is already running, and its process is not Prony's to share out"
        if trial.published_requests is not None:
            return "published_requests asks for a fresh process of each load"
        if isinstance(trial.measured, WholeRun) and not trial.measured.warm_up_s:
            return (
                f"{trial.load_name} is measured from the first request of a fresh process; give window_s, or "
                "a whole run a warm_up_s"
            )
    if not grows and all(len(unit) < 2 for unit in units(cells)):
        return "no server has two loads of one workload that could share one"
    return None


def process_key(cell: Cell, block: int) -> str:
    """Trials of one part that follow each other and have the same key share a process."""
    return f"{cell.part}/{cell.server}/{cell.trial.workload.name}#{block + 1}"


class LoadOrders:
    """The order of the loads within the processes of each block.

    All servers with the same loads have the same order in a block, so that what one load leaves behind for
    the next one falls on all alike and is not in their ratios; over the blocks each load comes at every place
    and follows every other as often as their number allows (Williams squares).
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._orders: dict[tuple[str, ...], tuple[Iterator[tuple[int, ...]], list[tuple[int, ...]]]] = {}

    def of(self, unit: Sequence[Cell], block: int) -> list[Cell]:
        """The cells of a process of this block, in their order."""
        if len(unit) < 2:
            return list(unit)
        return [unit[place] for place in self.order([cell.trial.load_name for cell in unit], block)]

    def order(self, loads: Sequence[str], block: int) -> tuple[int, ...]:
        """The places of these loads in the order of this block."""
        key = tuple(loads)
        if key not in self._orders:
            source = random.Random(f"{self._seed}/{'/'.join(key)}")
            self._orders[key] = balanced_orders(len(key), source), []
        coming, drawn = self._orders[key]
        while len(drawn) <= block:
            drawn.append(next(coming))
        return drawn[block]
