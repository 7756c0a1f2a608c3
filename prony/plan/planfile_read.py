"""Finds and reads plan files, and expands them into cells. Errors name file, line, key and the nearest valid
one.

Must not know how a plan is run, or what the limits of the checks are called: their model is handed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from pydantic import BaseModel, ValidationError

from prony.errors import UsageError
from prony.plan import workload as workloads
from prony.plan.catalogue_roots import yaml_files
from prony.plan.load import ClosedLoad, Connections, Load, Measured, OpenLoad, SteadyWindow, WholeRun
from prony.plan.plan import Cell, Part, Plan, PublishedFigures, cell_of
from prony.plan.planfile import CpuKeys, LoadKeys, MeasuredKeys, NamedPart, PlanFile, ServerKeys
from prony.plan.target import Target, named
from prony.plan.think import NO_THINK
from prony.plan.trial import TrialPlan, WarmUpPlan
from prony.plan.workload import Workload
from prony.plan.yamlfile import nearest, read_mapping, validate

DEFAULT_TRIALS = 5
DEFAULT_WINDOW_S = 30.0
Lines = dict[tuple[object, ...], int]


def known() -> dict[str, Path]:
    """Every plan in the catalogue: name -> file."""
    return yaml_files("plans")


def find(name: str) -> Path:
    """The file of a plan: its name in the catalogue, or a path. Raises UsageError."""
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return Path(name)
    files = known()
    if name not in files:
        names = ", ".join(sorted(files)) or "none"
        raise UsageError(f"unknown plan '{name}'{nearest(name, list(files))}; known plans: {names}")
    return files[name]


def place_of(path: Path, part: str, server: str) -> str:
    """FILE:LINE where this part names this server, or where the top level does for all parts."""
    data, lines = read_mapping(path)
    parts = data.get("parts")
    names = [one.get("name") for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []
    above: list[tuple[object, ...]] = [("parts", names.index(part))] if part in names else []
    for at in (*above, ()):
        key = (*at, "servers")
        if key not in lines:
            continue
        holder: object = data
        for step in key:
            holder = holder[step]  # type: ignore[index]
        listed = holder if isinstance(holder, list) else []
        return f"{path}:{lines[(*key, listed.index(server)) if server in listed else key]}"
    return str(path)


def read(path: Path, *, limits: type[BaseModel], seed: int) -> Plan:
    """The plan of a file, expanded. `seed` is used when the file names none. Raises UsageError."""
    data, lines = read_mapping(path)
    plan = validate(PlanFile, data, path, lines)
    _check_limits(plan, path, lines, limits)
    source = _Source(path, lines, several=bool(plan.parts))
    parts: list[Part] = []
    cells: list[Cell] = []
    for number, part in enumerate(plan.whole_parts):
        parts.append(
            Part(
                name=part.name,
                title=part.title or part.name,
                note=part.note,
                comparisons=part.comparisons,
                until_clear=part.until_clear,
                **({} if part.band is None else {"band": part.band}),
                soak=bool(part.soak),
            )
        )
        cells += _Expansion(source, number, part).cells()
    return Plan(
        name=path.stem,
        command="run",
        title=plan.title,
        note=plan.note,
        parts=tuple(parts),
        cells=tuple(cells),
        cpus=plan.cpus or CpuKeys(),
        seed=seed if plan.seed is None else plan.seed,
        goes_on=True,
    )


def _check_limits(plan: PlanFile, path: Path, lines: Lines, model: type[BaseModel]) -> None:
    for at, keys in (
        (("limits",), plan.limits),
        *((("parts", number, "limits"), part.limits) for number, part in enumerate(plan.parts)),
    ):
        if keys is not None:
            below = {where[len(at) :]: line for where, line in lines.items() if where[: len(at)] == at}
            validate(model, keys, path, below)


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the keys stand, for messages."""

    path: Path
    lines: Lines
    several: bool

    def fault(self, part: int, key: str, message: str) -> UsageError:
        """An error at a key of a part, or of the top level where the part inherits it."""
        own = ("parts", part, key) if self.several else (key,)
        line = next((self.lines[at] for at in (own, (key,), own[:2]) if at in self.lines), 1)
        return UsageError(f"{self.path}:{line}: {message}")


@dataclass(frozen=True, slots=True)
class _Expansion:
    """One part while it is expanded."""

    source: _Source
    number: int
    part: NamedPart

    def cells(self) -> list[Cell]:
        part = self.part
        servers = self._required("servers", part.servers)
        self._check_names(servers)
        made = [
            self._cell(server, workload, load)
            for workload in map(self._workload, self._required("workloads", part.workloads))
            for load in self._loads(workload)
            for server in servers
        ]
        twice = {cell.id for cell in made if sum(cell.id == other.id for other in made) > 1}
        if twice:
            raise self._fault("loads", f"the part '{part.name}' holds the same cell twice: {min(twice)}")
        return made

    def _fault(self, key: str, message: str) -> UsageError:
        return self.source.fault(self.number, key, message)

    def _required(self, key: str, value: tuple[str, ...] | None) -> tuple[str, ...]:
        if value is None:
            raise self._fault("name", f"the key '{key}' is missing in the part '{self.part.name}'")
        return value

    def _check_names(self, servers: tuple[str, ...]) -> None:
        named = [("per_server", name) for name in self.part.per_server]
        named += [("comparisons", name) for pair in self.part.comparisons or () for name in pair]
        for key, name in named:
            # What the top level says may be about a server of another part.
            inherited = self.source.several and ("parts", self.number, key) not in self.source.lines
            if name not in servers and not inherited:
                raise self._fault(
                    key,
                    f"no server '{name}' in the part '{self.part.name}'{nearest(name, servers)}; "
                    f"its servers: {', '.join(servers)}",
                )

    def _workload(self, name: str) -> Workload:
        if name.endswith((".yaml", ".yml")):
            name = str(self.source.path.parent / name)
        try:
            loaded = workloads.load(name)
            wanted = self.part.workload_settings or {}
            loaded = loaded.with_settings(wanted) if wanted else loaded
        except UsageError as fault:
            raise self._fault("workloads", str(fault)) from fault
        if self.part.loops is None:
            return loaded
        if loaded.scenarios:
            raise self._fault("loops", f"the workload '{loaded.name}' has scenarios, each with its own loops")
        return loaded.model_copy(update={"loops": self.part.loops})

    def _loads(self, workload: Workload) -> list[Load]:
        if self.part.loads is None:
            return [ClosedLoad(users=workload.users)]
        try:
            return [load for keys in self.part.loads for load in expand(keys)]
        except ValidationError as fault:
            raise self._fault("loads", _first(fault)) from fault

    def _cell(self, server: str, workload: Workload, load: Load) -> Cell:
        part = self.part
        try:
            trial = TrialPlan(
                workload=workload,
                load=load,
                measured=measured(part.measured or MeasuredKeys(), load),
                connections=part.connections or Connections(),
                warm_up=part.warm_up or WarmUpPlan(),
                published_requests=part.published_requests,
                request_timeout_ms=part.request_timeout_ms or 10_000,
                driver=part.driver or "auto",
                request_parts=bool(part.request_parts),
            )
        except ValidationError as fault:
            raise self._fault("measured", f"{part.name}, {load.name}: {_first(fault)}") from fault
        return cell_of(
            part.name,
            server,
            self._target(server),
            trial,
            part.trials or DEFAULT_TRIALS,
            limits=part.limits or {},
            expected_requests_per_s=part.expected_requests_per_s,
            needs=part.needs,
            optional=bool(part.optional),
            published=tuple(self._published(server, workload, load)),
        )

    def _target(self, server: str) -> Target:
        own = self.part.per_server.get(server, ServerKeys())
        flags = own.jvm_flags if own.jvm_flags is not None else self.part.jvm_flags
        return named(
            server,
            jdk=own.jdk or self.part.jdk,
            heap=own.heap or self.part.heap,
            jvm_flags=flags or (),
            settings=(self.part.settings or {}) | (own.settings or {}),
        )

    def _published(self, server: str, workload: Workload, load: Load) -> Iterator[PublishedFigures]:
        users = load.users if isinstance(load, ClosedLoad) else None
        for history in self.part.published or ():
            for cell in history.cells:
                if (
                    cell.server in (None, server)
                    and cell.workload in (None, workload.name)
                    and cell.users in (None, users)
                    and cell.think_ms in (None, load.think.expected_ms)
                ):
                    yield PublishedFigures(
                        label=history.label, source=history.source, figures=cell.figures, note=cell.note
                    )


def expand(keys: LoadKeys) -> list[Load]:
    """Every load of a sweep. Raises pydantic's ValidationError for what makes no load."""
    pauses = keys.think or (NO_THINK,)
    if keys.populations is not None:
        ramps = {
            name: getattr(keys, name)
            for name in ("ramp_up_s", "ramp_up_steps", "ramp_down_s", "ramp_down_steps")
        }
        return [
            ClosedLoad.model_validate({"populations": keys.populations, "think": think, **ramps})
            for think in pauses
        ]
    if keys.users is not None:
        return [
            ClosedLoad(
                users=users,
                think=think,
                ramp_up_s=keys.ramp_up_s,
                ramp_up_steps=keys.ramp_up_steps,
                ramp_down_s=keys.ramp_down_s,
                ramp_down_steps=keys.ramp_down_steps,
            )
            for think, users in product(pauses, keys.users)
        ]
    return [
        OpenLoad(
            rate_per_s=rate,
            phases=keys.phases or (),
            ramp_up_s=keys.ramp_up_s,
            arrivals=keys.arrivals,
            session=keys.session,
            think=think,
            max_users=keys.max_users,
            connections=keys.connections,
            deadline_ms=keys.deadline_ms,
        )
        for think, rate in product(pauses, keys.rate_per_s or (None,))
    ]


def measured(keys: MeasuredKeys, load: Load) -> Measured:
    """The measured part; without a word about it a steady window, or the whole of an open load's phases."""
    bounds = (keys.duration_s, keys.total_requests, keys.iterations_per_user)
    phased = isinstance(load, OpenLoad) and bool(load.phases)
    if keys.window_s is None and (any(bound is not None for bound in bounds) or phased):
        return WholeRun(
            duration_s=keys.duration_s,
            total_requests=keys.total_requests,
            iterations_per_user=keys.iterations_per_user,
            warm_up_s=keys.warm_up_s,
            drain_s=keys.drain_s,
        )
    return SteadyWindow(window_s=keys.window_s or DEFAULT_WINDOW_S)


def _first(fault: ValidationError) -> str:
    error = fault.errors(include_url=False)[0]
    where = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
