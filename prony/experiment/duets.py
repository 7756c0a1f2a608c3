"""Which trials take turns (docs/method.md#duet), and what cannot."""

from __future__ import annotations

from collections.abc import Sequence

from prony.errors import EnvironmentFault, UsageError
from prony.experiment.testbed import Targets
from prony.host.hardware import memory
from prony.numbers import number
from prony.plan.cell import Cell
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.plan import Plan, ScheduledTrial
from prony.plan.step import Block, flattened
from prony.targets import LaunchedServer, ServerUnderTest
from prony.trial.surroundings import trial_facts

GIB = 2**30
UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}


def duets(plan: Plan, some: Sequence[ScheduledTrial]) -> list[tuple[ScheduledTrial, ...]]:
    """Those that take turns, in order: the servers of a block under one load."""
    groups: dict[tuple[str, int, str], list[ScheduledTrial]] = {}
    for one in some:
        cell = plan.cell(one.cell)
        if one.kind == "trial" and plan.part(cell.part).duet:
            groups.setdefault((cell.part, one.block, _load(cell)), []).append(one)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _load(cell: Cell) -> str:
    return f"{cell.trial.workload.name}/{cell.trial.load_name}"


def refuse_duets(plan: Plan, targets: Targets) -> None:
    """Raises UsageError for servers or loads that cannot take turns, EnvironmentFault where the heaps of
    servers that are alive together exceed the host's memory.
    """
    for cell in plan.cells:
        part = plan.part(cell.part)
        together = {one.server: one for one in plan.of(part.name) if _load(one) == _load(cell)}
        if not part.duet:
            continue
        if (why := _lacks(plan, cell, len(together), targets.of(cell))) is not None:
            raise UsageError(f"a duet does not apply: {why}; leave --duet out (plan file: duet: false)")
        heaps = {server: heap for server, one in together.items() if (heap := _heap(targets.of(one)))}
        available = memory().get("MemAvailable")
        if available is not None and sum(heaps.values()) > available:
            raise EnvironmentFault(
                f"{' and '.join(heaps)} need {number(sum(heaps.values()) / GIB)} GiB of heap together, and "
                f"{number(available / GIB)} GiB are available; leave --duet out, or give --heap"
            )


def _lacks(plan: Plan, cell: Cell, servers: int, target: ServerUnderTest) -> str | None:
    trial, load, name = cell.trial, cell.trial.load, cell.server
    entries = (entry for walk in trial.workload.walks for entry in flattened(walk.steps))
    paced = any(isinstance(entry, Block) and entry.pace is not None for entry in entries)
    thinks = paced or trial_facts(trial, target).think_kind != "none"
    varies = isinstance(load, ClosedLoad) and (load.ramp_down_s or trial.populations or trial.script)
    shares = plan.part(cell.part).share_process is not None
    fixed = isinstance(target, LaunchedServer) and target.spec.url is not None
    later = any(part.duet and part.follows is not None for part in plan.parts)
    reasons = {
        "its servers and engines run on one host (no --hosts)": bool(plan.hosts),
        "a pair cannot repeat one of its trials (--repeat-disturbed)": plan.repeat_disturbed > 0,
        "each pair has fresh processes (share_process)": shares,
        f"{name} is already running, and Prony starts both servers of a pair": not target.owned,
        f"{_load(cell)} has one server, and two take turns": servers < 2,
        f"{name} has a fixed address, which another server may need": fixed,
        f"{name} has backing services of its own": target.has_services,
        "an open loop has no responses to rest after": later or not isinstance(load, ClosedLoad),
        "users who think would all come at once after a rest": thinks,
        "the load changes with time (populations, ramp_down_s, a script)": bool(varies),
        "a whole run cannot be interrupted; give window_s": not isinstance(trial.measured, SteadyWindow),
        "turns have a fixed length (--within, precision)": bool(getattr(trial.measured, "precision", None)),
        "other load generators measure a server alone": bool(trial.beside),
    }
    return next((why for why, holds in reasons.items() if holds), None)


def _heap(target: ServerUnderTest) -> int:
    """Declared maximum in bytes; 0: none."""
    heap = target.spec.heap if isinstance(target, LaunchedServer) else None
    return 0 if heap is None else int(heap[:-1]) * UNITS[heap[-1].lower()]
