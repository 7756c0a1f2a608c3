"""Finds, reads and expands plan files. Errors name file, line, key and the nearest valid key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from prony import redaction
from prony.errors import UsageError
from prony.plan import workload as workloads
from prony.plan.catalogue_roots import yaml_files
from prony.plan.cell import Cell, PublishedFigures, cell_of
from prony.plan.load import ClosedLoad, Load, Measured, OpenLoad, SteadyWindow, WholeRun
from prony.plan.part import Part, Sharing
from prony.plan.plan import CpuSets, Plan, shape_of
from prony.plan.planfile import (
    TRIAL_KEYS,
    LoadKeys,
    MeasuredKeys,
    NamedPart,
    PlanFile,
    ServerKeys,
    UrlKeys,
)
from prony.plan.processes import why_not
from prony.plan.script import Script
from prony.plan.stage import Stage
from prony.plan.target import Target, is_path, is_url, launched, parse_url
from prony.plan.think import NO_THINK
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Workload, beside
from prony.plan.yamlfile import nearest, read_mapping, validate

DEFAULT_WINDOW_S = 30.0
DEFAULT_TRIALS = 5
"""Trials of a launched server; a running one gets a single trial."""
Lines = dict[tuple[object, ...], int]


def known() -> dict[str, Path]:
    return yaml_files("plans")


def find(name: str) -> Path:
    """The file of a plan, by catalogue name or path. Raises UsageError."""
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return Path(name)
    files = known()
    if name not in files:
        names = ", ".join(sorted(files)) or "none"
        raise UsageError(f"unknown plan '{name}'{nearest(name, list(files))}; known plans: {names}")
    return files[name]


def place_of(path: Path, part: str, server: str) -> str:
    """FILE:LINE where this part, or the top level, names this server."""
    data, lines = read_mapping(path)
    parts = data.get("parts")
    names = (
        [entry.get("name") for entry in parts if isinstance(entry, dict)] if isinstance(parts, list) else []
    )
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
    """The expanded plan of a file. `seed`: default. Raises UsageError."""
    data, lines = read_mapping(path)
    plan = validate(PlanFile, data, path, lines)
    _check_limits(plan, path, lines, limits)
    source = _Source(path, lines, several=bool(plan.parts))
    parts: list[Part] = []
    cells: list[Cell] = []
    for number, part in enumerate(plan.whole_parts):
        expansion = _Expansion(source, number, part)
        added = expansion.cells()
        cells += added
        parts.append(
            Part(
                name=part.name,
                title=part.title or part.name,
                note=part.note,
                shape="matrix" if any(cell.target.owned for cell in added) else shape_of(added),
                comparisons=part.comparisons,
                until_clear=part.until_clear,
                share_process=expansion.shared(added),
                duet=bool(part.duet),
                **({} if part.band is None else {"band": part.band}),
                **({} if part.at_least is None else {"at_least": part.at_least}),
                soak=bool(part.soak),
            )
        )
    return Plan(
        name=path.stem,
        command="run",
        title=plan.title or path.stem,
        note=plan.note,
        parts=tuple(parts),
        cells=tuple(cells),
        cpus=CpuSets() if plan.cpus is None else CpuSets(**plan.cpus.model_dump()),
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
    path: Path
    lines: Lines
    several: bool

    def fault(self, part: int, key: str, message: str) -> UsageError:
        own = ("parts", part, key) if self.several else (key,)
        line = next((self.lines[at] for at in (own, (key,), own[:2]) if at in self.lines), 1)
        return UsageError(f"{self.path}:{line}: {message}")


class _Server(NamedTuple):
    name: str
    target: Target
    source_addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Expansion:
    source: _Source
    number: int
    part: NamedPart

    def cells(self) -> list[Cell]:
        part = self.part
        if part.servers is None or part.workloads is None:
            key = "servers" if part.servers is None else "workloads"
            raise self._fault("name", f"the key '{key}' is missing in the part '{part.name}'")
        servers = [self._server(given) for given in part.servers]
        self._check_names([server.name for server in servers])
        self._check_launched(servers)
        cells = [
            self._cell(server, workload, load)
            for workload in map(self._workload, part.workloads)
            for load in self._loads(workload)
            for server in servers
        ]
        twice = {cell.id for cell in cells if sum(cell.id == other.id for other in cells) > 1}
        if twice:
            raise self._fault("loads", f"the part '{part.name}' holds the same cell twice: {min(twice)}")
        return cells

    def shared(self, cells: list[Cell]) -> Sharing | None:
        """Which cells share a process; an inapplicable key of the top level is ignored."""
        requested = self.part.share_process
        why = why_not(cells, requested) if requested is not None else None
        if why is not None and self._own("share_process"):
            raise self._fault("share_process", f"share_process does not apply: {why}")
        return None if why is not None else requested

    def _fault(self, key: str, message: str) -> UsageError:
        return self.source.fault(self.number, key, message)

    def _own(self, key: str) -> bool:
        return not self.source.several or ("parts", self.number, key) in self.source.lines

    def _check_names(self, servers: list[str]) -> None:
        named = [("per_server", name) for name in self.part.per_server]
        named += [("comparisons", name) for pair in self.part.comparisons or () for name in pair]
        for key, name in named:
            if name not in servers and self._own(key):
                raise self._fault(
                    key,
                    f"no server '{name}' in the part '{self.part.name}'{nearest(name, servers)}; "
                    f"its servers: {', '.join(servers)}",
                )

    def _check_launched(self, servers: list[_Server]) -> None:
        if any(server.target.owned for server in servers):
            return
        for key in ("jdk", "heap", "jvm_flags", "settings", "published_requests"):
            if getattr(self.part, key) is not None and self._own(key):
                raise self._fault(
                    key, f"{key} applies to servers that Prony launches; {servers[0].name} is already running"
                )

    def _workload(self, given: str | Workload) -> Workload:
        folder = self.source.path.parent
        try:
            if isinstance(given, Workload):
                loaded = beside(given, folder)
            else:
                loaded = workloads.load(str(folder / given) if given.endswith((".yaml", ".yml")) else given)
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

    def _cell(self, server: _Server, workload: Workload, load: Load) -> Cell:
        part, what = self.part, measured(self.part.measured or MeasuredKeys(), load)
        warm_up = part.warm_up
        if isinstance(what, WholeRun):
            if warm_up is not None and self._own("warm_up"):
                raise self._fault(
                    "warm_up",
                    "warm_up applies to a steady window (measured: window_s); for a whole run give "
                    "measured: warm_up_s",
                )
            warm_up = fixed(0.0)
        try:
            trial = TrialPlan.model_validate(
                {
                    "workload": workload,
                    "load": load,
                    "measured": what,
                    **({} if warm_up is None else {"warm_up": warm_up}),
                    "published_requests": part.published_requests if server.target.owned else None,
                    "source_addresses": server.source_addresses,
                    **self._trial_keys(),
                }
            )
        except ValidationError as fault:
            raise self._fault("measured", f"{part.name}, {load.name}: {_first(fault)}") from fault
        return cell_of(
            part.name,
            server.name,
            server.target,
            trial,
            part.trials or (DEFAULT_TRIALS if server.target.owned else 1),
            limits=part.limits or {},
            expected_requests_per_s=part.expected_requests_per_s,
            needs=part.needs,
            optional=bool(part.optional),
            explain=bool(part.explain),
            published=tuple(self._published(server.name, workload, load)),
        )

    def _trial_keys(self) -> dict[str, object]:
        given = {name: value for name in TRIAL_KEYS if (value := getattr(self.part, name)) is not None}
        folder = self.source.path.parent
        for name, value in given.items():
            if isinstance(value, Script):
                given[name] = value.model_copy(update={"file": str(folder.absolute() / value.file)})
            elif isinstance(value, Stage):
                given[name] = value.model_copy(update={"workload": beside(value.workload, folder)})
        return given

    def _server(self, given: str | UrlKeys) -> _Server:
        if isinstance(given, str):
            if not is_url(given):
                return _Server(given, self._launched(given))
            given = UrlKeys(url=given)
        try:
            target, path, auth = parse_url(given.url)
        except UsageError as fault:
            raise self._fault("servers", str(fault)) from fault
        if path != "/":
            raise self._fault(
                "servers",
                f"the url is {redaction.url(given.url)}; expected scheme, host and port alone: {target.url} "
                "(paths belong in the workload's steps)",
            )
        if auth is not None:
            raise self._fault(
                "servers",
                f"the url is {redaction.url(given.url)}; expected no user and password: they belong in the "
                "steps (auth)",
            )
        more = {"tls": given.tls, "addresses": given.addresses or target.addresses, "counts": given.counts}
        return _Server(target.url, target.model_copy(update=more), given.source_addresses)

    def _launched(self, server: str) -> Target:
        own = self.part.per_server.get(server, ServerKeys())
        flags = own.jvm_flags if own.jvm_flags is not None else self.part.jvm_flags
        try:
            target = launched(
                server,
                folder=self.source.path.parent,
                jdk=own.jdk or self.part.jdk,
                heap=own.heap or self.part.heap,
                jvm_flags=flags or (),
                settings=(self.part.settings or {}) | (own.settings or {}),
            )
        except UsageError as fault:
            raise self._fault("servers", str(fault)) from fault
        own_name = is_path(server) or target.folder is not None
        return target.model_copy(update={"known_as": server}) if own_name else target

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


def _first(fault: ValidationError) -> str:
    error = fault.errors(include_url=False)[0]
    where = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def expand(keys: LoadKeys) -> list[Load]:
    is_open = keys.rate_per_s is not None or keys.phases is not None
    model: type[ClosedLoad] | type[OpenLoad] = OpenLoad if is_open else ClosedLoad
    listed, values = ("rate_per_s", keys.rate_per_s) if is_open else ("users", keys.users)
    same = {name: getattr(keys, name) for name in keys.model_fields_set & {*model.model_fields}}
    return [
        model.model_validate(same | {"think": think} | ({} if value is None else {listed: value}))
        for think, value in product(keys.think or (NO_THINK,), values or (None,))
    ]


def measured(keys: MeasuredKeys, load: Load) -> Measured:
    """The measured part; by default a steady window, or all of a load that ends by itself."""
    bounds = (keys.duration_s, keys.total_requests, keys.iterations_per_user)
    groups = load.populations if isinstance(load, ClosedLoad) else ()
    ends = bool(groups) and all(group.bounded for group in groups)
    ends = ends or (isinstance(load, OpenLoad) and bool(load.phases))
    if keys.window_s is None and (any(bound is not None for bound in bounds) or ends):
        return WholeRun(**keys.model_dump(exclude={"window_s", "windows", "precision"}))
    return SteadyWindow(
        window_s=keys.window_s or DEFAULT_WINDOW_S, windows=keys.windows, precision=keys.precision
    )
