"""Trials that take turns, and what rules turns out (docs/method.md#duet)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from prony.errors import EnvironmentFault, UsageError
from prony.experiment.testbed import Targets
from prony.host import cgroup
from prony.host.hardware import memory
from prony.load.engine import engine_takes, engine_version, find_engine
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
    """Groups of trials that take turns, in order: the servers of a block under the same load."""
    groups: dict[tuple[str, int, str], list[ScheduledTrial]] = {}
    for trial in some:
        cell = plan.cell(trial.cell)
        if trial.kind == "trial" and plan.part(cell.part).duet:
            groups.setdefault((cell.part, trial.block, _load(cell)), []).append(trial)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _load(cell: Cell) -> str:
    return f"{cell.trial.workload.name}/{cell.trial.load_name}"


def refuse_duets(plan: Plan, targets: Targets) -> None:
    """Raises UsageError for servers or loads that cannot take turns; EnvironmentFault where the servers'
    heaps together exceed the host's memory, or the engine is too old.
    """
    if not any(part.duet for part in plan.parts):
        return
    if (why := _lacks_of(plan, targets)) is not None:
        raise UsageError(f"a duet does not apply: {why}; leave --duet out (plan file: duet: false)")
    if not engine_takes("turns"):
        raise EnvironmentFault(
            f"{find_engine()} (version {engine_version()}) is older than this Prony and does not support "
            "turns; install matching versions (make setup, or pip install .), or give --no-duet"
        )
    available = _available()
    for some in _together(plan, targets):
        heaps = {server.name: heap for server in some if (heap := _heap(server))}
        if available is not None and sum(heaps.values()) > available:
            raise EnvironmentFault(
                f"{' and '.join(heaps)} need {number(sum(heaps.values()) / GIB)} GiB of heap together, "
                f"{number(available / GIB)} GiB are available; omit --duet, or give --heap"
            )


def why_sequential(plan: Plan, targets: Targets) -> str | None:
    """Why a plan should not take turns; None: it should (docs/method.md#duet)."""
    if (why := _lacks_of(plan, targets)) is not None:
        return why
    available = _available()
    for some in _together(plan, targets):
        jvm = next((server.name for server in some if _on_jvm(server)), None)
        if jvm is not None:
            return f"{jvm} runs on a JVM, whose processes differ more than minutes do"
        needed = sum(_heap(server) or GIB for server in some)
        if available is not None and needed > available:
            return f"they need {number(needed / GIB)} GiB, and {number(available / GIB)} GiB are available"
    return None if engine_takes("turns") else "this prony-engine is older and does not support turns"


def design(plan: Plan, targets: Targets) -> list[str]:
    """The design of a comparison or gate (turns, or a server at a time), with the reason."""
    part = plan.parts[0]
    if plan.command not in ("compare", "gate") or len(plan.of(part.name)) < 2:
        return []
    if part.duet:
        return ["in turns: the servers run together, each loaded a second at a time (else: --no-duet)"]
    in_turns = plan.model_copy(update={"parts": (part.model_copy(update={"duet": True}), *plan.parts[1:])})
    return [f"one server at a time: {why_sequential(in_turns, targets) or '--no-duet'}"]


def _together(plan: Plan, targets: Targets) -> list[list[ServerUnderTest]]:
    """Servers that are alive together, for each load."""
    by_load: dict[tuple[str, str], list[ServerUnderTest]] = {}
    for cell in plan.cells:
        if plan.part(cell.part).duet:
            by_load.setdefault((cell.part, _load(cell)), []).append(targets.of(cell))
    return list(by_load.values())


def _lacks_of(plan: Plan, targets: Targets) -> str | None:
    for cell in plan.cells:
        together = {other.server for other in plan.of(cell.part) if _load(other) == _load(cell)}
        if plan.part(cell.part).duet and (why := _lacks(plan, cell, len(together), targets.of(cell))):
            return why
    return None


def _lacks(plan: Plan, cell: Cell, servers: int, target: ServerUnderTest) -> str | None:
    trial, load, name = cell.trial, cell.trial.load, cell.server
    entries = (entry for walk in trial.workload.walks for entry in flattened(walk.steps))
    paced = any(isinstance(entry, Block) and entry.pace is not None for entry in entries)
    thinks = paced or trial_facts(trial, target).think_kind != "none"
    varies = isinstance(load, ClosedLoad) and (load.ramp_down_s or trial.populations or trial.script)
    shares = plan.part(cell.part).share_process is not None
    spec = target.spec if isinstance(target, LaunchedServer) else None
    fixed = spec is not None and (spec.url is not None or spec.image is not None)
    later = any(part.duet and part.follows is not None for part in plan.parts)
    reasons = {
        "its servers and engines run on one host (no --hosts)": bool(plan.hosts),
        "a pair cannot repeat a single trial (--repeat-disturbed)": plan.repeat_disturbed > 0,
        "each pair has fresh processes (share_process)": shares,
        f"{name} is already running; Prony must start both servers of a pair": not target.owned,
        f"{_load(cell)} has a single server": servers < 2,
        f"{name} has a fixed address, which the other server may need": fixed,
        f"{name} has backing services of its own": target.has_services,
        "an open loop has no responses to rest after": later or not isinstance(load, ClosedLoad),
        "think times would expire together after a rest": thinks,
        "the load changes with time (populations, ramp_down_s, a script)": bool(varies),
        "a whole run cannot be interrupted; give window_s": not isinstance(trial.measured, SteadyWindow),
        "turns have a fixed length (--within, precision)": bool(getattr(trial.measured, "precision", None)),
        "other load generators measure a server alone": bool(trial.beside),
    }
    return next((why for why, holds in reasons.items() if holds), None)


def _available() -> int | None:
    """Memory for the servers, bytes: the host's, within the limit of this process's group."""
    known = [one for one in (memory().get("MemAvailable"), cgroup.memory_left()) if one is not None]
    return min(known, default=None)


def _on_jvm(target: ServerUnderTest) -> bool:
    words = target.spec.command if isinstance(target, LaunchedServer) else ()
    return any("java" in re.split(r"[\s/{}]+", word) for word in words)


def _heap(target: ServerUnderTest) -> int:
    """Declared maximum in bytes; 0: none."""
    heap = target.spec.heap if isinstance(target, LaunchedServer) else None
    return 0 if heap is None else int(heap[:-1]) * UNITS[heap[-1].lower()]
