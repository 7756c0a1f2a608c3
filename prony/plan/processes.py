"""Which cells share a process of their server, and in which order they come in it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from prony.plan.balanced import balanced_orders
from prony.plan.cell import Cell
from prony.plan.load import WholeRun
from prony.plan.part import Sharing


def units(cells: Sequence[Cell], sharing: Sharing = "loads") -> list[tuple[Cell, ...]]:
    """The cells by the process that they share: those of one server and, with `loads`, of one workload. A
    window and a whole run share none. In the order of the plan.
    """
    found: dict[object, list[Cell]] = {}
    for cell in cells:
        found.setdefault((_shared_by(cell, sharing), cell.trial.measured), []).append(cell)
    return [tuple(group) for group in found.values()]


def _shared_by(cell: Cell, sharing: Sharing) -> str:
    return cell.server if sharing == "workloads" else f"{cell.server}/{cell.trial.workload.name}"


def name_within(cell: Cell, sharing: Sharing) -> str:
    """A cell as the others of its process call it: by its load; where workloads share, by both."""
    load = cell.trial.load_name
    return f"{cell.trial.workload.name}/{load}" if sharing == "workloads" else load


def why_not(cells: Sequence[Cell], sharing: Sharing = "loads", *, grows: bool = False) -> str | None:
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
                f"{name_within(cell, sharing)} is measured from the first request of a fresh process; give "
                "window_s, or a whole run a warm_up_s"
            )
    if not grows and all(len(unit) < 2 for unit in units(cells, sharing)):
        two = "two workloads or loads" if sharing == "workloads" else "two loads of one workload"
        return f"no server has {two} that could share one"
    return None


def process_key(cell: Cell, block: int, sharing: Sharing) -> str:
    """Trials of one part that follow each other and have the same key share a process."""
    return f"{cell.part}/{_shared_by(cell, sharing)}#{block + 1}"


class LoadOrders:
    """The order of the cells within the processes of each block: of loads, or of workloads and loads.

    All servers with the same cells have the same order in a block, so that what one of them leaves behind for
    the next one falls on all alike and is not in their ratios; over the blocks each comes at every place and
    follows every other as often as their number allows (Williams squares).
    """

    def __init__(self, seed: str, sharing: Sharing = "loads") -> None:
        self._seed = seed
        self._sharing = sharing
        self._orders: dict[tuple[str, ...], tuple[Iterator[tuple[int, ...]], list[tuple[int, ...]]]] = {}

    def of(self, unit: Sequence[Cell], block: int) -> list[Cell]:
        """The cells of a process of this block, in their order."""
        if len(unit) < 2:
            return list(unit)
        names = [name_within(cell, self._sharing) for cell in unit]
        return [unit[place] for place in self.order(names, block)]

    def order(self, names: Sequence[str], block: int) -> tuple[int, ...]:
        """The places of the cells of these names in the order of this block."""
        key = tuple(names)
        if key not in self._orders:
            source = random.Random(f"{self._seed}/{'/'.join(key)}")
            self._orders[key] = balanced_orders(len(key), source), []
        coming, drawn = self._orders[key]
        while len(drawn) <= block:
            drawn.append(next(coming))
        return drawn[block]
