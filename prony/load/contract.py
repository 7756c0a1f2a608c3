"""Translates a load into the engine's plan (docs/engine.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from prony import redaction
from prony.evidence.base import Record
from prony.plan.load import ClosedLoad, Connections, Load, OpenLoad, RatePhase, WholeRun
from prony.plan.population import Population, drawn
from prony.plan.response import Capture, Expectation
from prony.plan.script import Script
from prony.plan.step import Block, Entry, Step, calls
from prony.plan.target import TlsOptions
from prony.plan.think import NO_THINK, Think
from prony.plan.trial import TrialPlan
from prony.plan.workload import Feeder, Scenario, Workload

LONGEST_S = 7 * 24 * 3600.0
"""Length of the phases of an open load without an end."""
AS_PLANNED = (
    "source_addresses", "load", "connections", "driver", "request_timeout_ms", "connect_timeout_ms",
    "rate_groups", "rate_span_ms", "injected_faults",
)  # fmt: skip
"""Fields with the same name and value in a trial's plan."""
IF_GIVEN = {
    "path_as", "node_headers", "added_headers_at", "header_lines", "header_lines_at", "set_cookies",
    "expect_continue", "follow_redirects", "redirects_keep_method", "end_on", "ends_run_on_error", "auth",
    "think", "think_before", "resources", "skip_if", "skip_note",
}  # fmt: skip
"""Keys of a step with the same form in the engine's plan, left out at their default."""
NOT_SENT = {
    "body_sha256", "json_values", "json_filled", "json_matches", "json_exists", "json_absent", "json_paths",
}  # fmt: skip
"""Fields of an expectation that are not checked under load, or have another form there."""


class Share(Record):
    """An engine's share of a load on several: of every `of` consecutive items those in these slots."""

    slots: tuple[int, ...]
    """Ascending, below `of`."""
    of: int

    def count(self, things: int) -> int:
        rounds, rest = divmod(things, self.of)
        return rounds * len(self.slots) + sum(slot < rest for slot in self.slots)


class Slowest(Record):
    """Limits of the list of slowest requests, at 16 bytes per request and thread."""

    share: float = 0.01
    most: int = 20_000


class EngineLoad(Record):
    """A load for the engine, until its first bound: time, requests, iterations, or its schedule."""

    url: str
    addresses: tuple[str, ...] = ()
    source_addresses: tuple[str, ...] = ()
    tls: TlsOptions = TlsOptions()
    workload: Workload
    load: Load
    connections: Connections = Connections()
    cpus: tuple[int, ...]
    realtime: bool = False
    """Whether its threads have real-time priority on these CPUs, which the server must not use."""
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    after_s: float | None = None
    total_requests: int | None = None
    iterations_per_user: int | None = None
    window: Literal["all", "commanded"] = "commanded"
    request_timeout_ms: int = 10_000
    connect_timeout_ms: int = 5_000
    marks: tuple[int, ...] = ()
    script: Script | None = None
    rate_groups: int | None = None
    rate_span_ms: int = 100
    seed: int = 1
    parts: bool = False
    slowest: Slowest | None = None
    """Requested with a profile; None: no list."""
    log: Path | None = None
    log_hides: tuple[str, ...] = ()
    """Credentials, which the log has not."""
    report: tuple[str, ...] = ()
    responses: bool = False
    """Whether to report each response with head and body, for loads with few requests."""
    injected_faults: tuple[str, ...] = ()
    share: Share | None = None
    """This engine's share of a load on several engines; the other fields describe the whole load."""
    start: Literal["at_once", "commanded"] = "at_once"
    """Commanded: the engine waits for the instant at which the load begins."""

    def unmeasured(self, length_s: float, **changes: object) -> Self:
        """The load unmeasured for at most `length_s`, without bounds and logs. `changes`: other fields."""
        bounds: dict[str, object] = {
            "after_s": length_s,
            "total_requests": None,
            "iterations_per_user": None,
            "window": "all",
            "marks": (),
            "rate_groups": None,
            "log": None,
        }
        return self.model_copy(update={**bounds, **changes})


def engine_load(
    plan: TrialPlan,
    *,
    url: str,
    cpus: tuple[int, ...],
    realtime: bool = False,
    workload: Workload | None = None,
    tls: TlsOptions | None = None,
    addresses: tuple[str, ...] = (),
    seed: int = 1,
) -> EngineLoad:
    """The load of a trial from these CPUs. `workload`: with values captured by its preparation."""
    whole = plan.measured if isinstance(plan.measured, WholeRun) else None
    return EngineLoad(
        url=url,
        addresses=addresses,
        tls=tls or TlsOptions(),
        workload=workload or plan.workload,
        cpus=cpus if plan.threads is None else cpus[: plan.threads],
        realtime=realtime,
        after_s=plan.deadline_s,
        total_requests=None if whole is None else whole.total_requests,
        iterations_per_user=None if whole is None else whole.iterations_per_user,
        window="commanded" if whole is None else "all",
        script=_script_of_load(plan),
        seed=seed,
        parts=plan.request_parts,
        log=None if plan.log is None else Path(plan.log),
        log_hides=() if plan.log is None or plan.log_as_sent else _credentials(plan),
        **{name: getattr(plan, name) for name in AS_PLANNED},
    )


def _credentials(plan: TrialPlan) -> tuple[str, ...]:
    """The longest first, as one may hold another."""
    return tuple(sorted(redaction.secrets_of(plan.model_dump(mode="json")), key=len, reverse=True))


def _script_of_load(plan: TrialPlan) -> Script | None:
    """The script, unless only preparation or clean-up call it."""
    script = plan.script
    if script is None or not script.is_called:
        return script
    walks = plan.workload.walks
    return script if any(True for walk in walks for _ in calls(walk.steps)) else None


def engine_plan(load: EngineLoad) -> dict[str, Any]:
    """The engine's plan: the first line on its standard input."""
    return {
        "version": 1,
        "target": _target(load),
        **_others(load.workload),
        "driver": load.driver,
        "threads": {"cpus": list(load.cpus), "pin": True, "realtime": load.realtime},
        "load": _closed(load.load, load.workload)
        if isinstance(load.load, ClosedLoad)
        else _open(load.load, load.after_s),
        "scenarios": [_scenario(scenario, load.workload.other_servers) for scenario in load.workload.walks],
        "scenario_choice": load.workload.scenario_choice,
        "feeders": [{"name": name, **_feeder(feeder)} for name, feeder in load.workload.feeders.items()],
        "cookies": _cookies(load.workload),
        "cache": None if load.workload.cache is None else load.workload.cache.model_dump(mode="json"),
        "connection": {
            "reuse": _reuse(load),
            "max_requests": load.connections.max_requests,
            "pipeline": load.connections.pipeline,
            **({} if load.connections.family is None else {"family": load.connections.family}),
            **({} if load.connections.close == "client" else {"close": load.connections.close}),
        },
        "http_version": load.connections.http_version,
        **_http2(load),
        "stop": {
            "after_ms": None if load.after_s is None else round(load.after_s * 1000),
            "total_requests": load.total_requests,
            "iterations_per_user": load.iterations_per_user,
        },
        "window": {"mode": load.window},
        "timeouts": {"connect_ms": load.connect_timeout_ms, "request_ms": load.request_timeout_ms},
        "interval_ms": 1000,
        "marks": list(load.marks),
        **_extras(load),
        "seed": load.seed,
        "parts": load.parts,
        "log": _file(load.log),
        **({"log_hides": list(load.log_hides)} if load.log_hides else {}),
        "injected_faults": list(load.injected_faults),
    }


def _http2(load: EngineLoad) -> dict[str, Any]:
    """HTTP/2 keys: shared connections, at least one per engine thread, and given sizes."""
    users = load.load.at_once if isinstance(load.load, ClosedLoad) else load.load.user_cap
    shared = load.connections.shared_by(users)
    sizes = ("stream_window_bytes", "connection_window_bytes", "header_table_bytes")
    plan = load.connections.model_dump(include=set(sizes), exclude_none=True)
    if shared is not None:
        plan["connections"] = shared if load.connections.count else max(shared, len(load.cpus))
    return {"http2": plan} if plan else {}


def _others(workload: Workload) -> dict[str, Any]:
    others = workload.other_servers
    addresses = workload.server_addresses
    targets = [
        {"url": url, **({"addresses": [addresses[url]]} if url in addresses else {})} for url in others
    ]
    return {"other_targets": targets} if targets else {}


def _number(server: str | None, others: Sequence[str]) -> dict[str, int]:
    return {} if server is None else {"target": others.index(server) + 1}


def _feeder(feeder: Feeder) -> dict[str, Any]:
    other = "rows" if feeder.rows == () else "file"
    return feeder.model_dump(mode="json", exclude={other})


def _cookies(workload: Workload) -> bool | dict[str, Any]:
    if isinstance(workload.cookies, bool):
        return workload.cookies
    others = workload.other_servers
    return {
        "each_iteration": workload.cookies.each_iteration,
        "given": [
            cookie.model_dump(exclude={"server"}) | _number(cookie.server, others)
            for cookie in workload.cookies.given
            if cookie.server is None or cookie.server in others
        ],
    }


def _extras(load: EngineLoad) -> dict[str, Any]:
    """Keys that most loads lack: of scripts, rates, engines among several, and further reports."""
    plan: dict[str, Any] = {}
    for name in ("script", "share", "slowest"):
        if (given := getattr(load, name)) is not None:
            plan[name] = given.model_dump(mode="json")
    if load.rate_groups is not None:
        plan["rates"] = {"groups": max(load.rate_groups, len(load.cpus)), "every_ms": load.rate_span_ms}
    if load.start != "at_once":
        plan["start"] = load.start
    if load.report:
        plan["report"] = list(load.report)
    if load.responses:
        plan["responses"] = True
    return plan


def _reuse(load: EngineLoad) -> str:
    if not load.connections.keep_alive:
        return "per_request"
    walks = isinstance(load.load, OpenLoad) and load.load.session == "user"
    return "per_session" if walks and not load.connections.shared else "keep_alive"


def _target(load: EngineLoad) -> dict[str, Any]:
    where: dict[str, Any] = {"url": load.url}
    if load.addresses:
        where["addresses"] = list(load.addresses)
    if load.source_addresses:
        where["source_addresses"] = list(load.source_addresses)
    if not any(url.startswith("https://") for url in (load.url, *load.workload.other_servers)):
        return where
    tls = {name: _file(value) if isinstance(value, Path) else value for name, value in load.tls}
    tls["sessions"] = load.connections.tls_sessions
    only = load.connections.tls_version
    return where | {"tls": tls if only is None else tls | {"min_version": only, "max_version": only}}


def _file(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def _scenario(scenario: Scenario, others: Sequence[str]) -> dict[str, Any]:
    plan = scenario.model_dump(include={"name", "weight", "loops"})
    plan["steps"] = [_entry(entry, others) for entry in scenario.steps]
    if scenario.variables:
        plan["variables"] = [[name, value] for name, value in scenario.variables.items()]
    return plan


def _entry(entry: Entry, others: Sequence[str]) -> dict[str, Any]:
    if not isinstance(entry, Block):
        return _step(entry) | _number(entry.server, others)
    plan = entry.engine_keys()
    if entry.steps:
        plan["steps"] = [_entry(inner, others) for inner in entry.steps]
    if entry.otherwise:
        plan["else"] = [_entry(inner, others) for inner in entry.otherwise]
    return plan


def _closed(load: ClosedLoad, workload: Workload) -> dict[str, Any]:
    if load.populations:
        return {
            "model": "closed",
            "populations": [_population(group, load, workload) for group in load.populations],
            "think": _think(load.think),
        }
    return {
        "model": "closed",
        "users": load.users,
        "think": _think(load.think),
        "ramp_up_ms": load.ramp_up_s * 1000,
        "ramp_up_steps": load.ramp_up_steps,
        "ramp_down_ms": load.ramp_down_s * 1000,
        "ramp_down_steps": load.ramp_down_steps,
    }


def _population(population: Population, load: ClosedLoad, workload: Workload) -> dict[str, Any]:
    return {
        "name": population.name,
        "users": population.users,
        **({"users_before": population.users_before} if population.users_before else {}),
        "start_ms": population.start_s * 1000,
        "ramp_up_ms": population.ramp_up_s * 1000,
        "ramp_up_steps": population.ramp_up_steps,
        "duration_ms": None if population.duration_s is None else population.duration_s * 1000,
        "iterations_per_user": population.iterations_per_user,
        "think": _think(load.think if population.think == NO_THINK else population.think),
        "scenarios": list(population.scenarios),
        "feeders": list(drawn(population, workload.scenario_texts, list(workload.feeders))),
    }


def _open(load: OpenLoad, after_s: float | None) -> dict[str, Any]:
    return {
        "model": "open",
        "arrivals": load.arrivals,
        "phases": [_phase(phase) for phase in load.phases] or _level(load, after_s),
        "session": load.session,
        "think": _think(load.think),
        "max_users": load.user_cap,
        **({} if load.at_cap == "block" else {"at_cap": load.at_cap}),
        "connections": load.ready_connections,
        "deadline_ms": load.deadline_ms,
    }


def _phase(phase: RatePhase) -> dict[str, float]:
    rates = phase.model_dump(exclude={"duration_s"}, exclude_none=True)
    return {"duration_ms": phase.duration_s * 1000, **rates}


def _level(load: OpenLoad, after_s: float | None) -> list[dict[str, float]]:
    rate, ramp_ms = load.highest_per_s, load.ramp_up_s * 1000
    level_ms = (LONGEST_S if after_s is None else after_s) * 1000
    ramp = {"duration_ms": ramp_ms, "from_per_s": 0.0, "to_per_s": rate}
    level = {"duration_ms": level_ms, "from_per_s": rate, "to_per_s": rate}
    return [ramp, level] if ramp_ms else [level]


def _think(think: Think) -> dict[str, Any]:
    return think.model_dump(exclude_none=True)


def _step(step: Step) -> dict[str, Any]:
    plan = step.model_dump(include={"name", "repeat", "method", "path"})
    plan["headers"] = [list(pair) for pair in step.header_pairs]
    plan |= step.model_dump(mode="json", include=IF_GIVEN, exclude_defaults=True)
    parts = [part.model_dump(exclude_none=True) for part in step.body_parts]
    bodies = {"text": step.body, "parts": parts or None, "file": step.body_file}
    for kind, body in bodies.items():
        if body is not None:
            plan["body"] = {kind: body, "chunked": step.chunked}
    if step.capture:
        plan["capture"] = [_capture(name, capture) for name, capture in step.capture.items()]
    if step.expect is not None:
        plan["expect"] = _expect(step.expect)
    return plan


def _capture(name: str, capture: Capture) -> dict[str, Any]:
    return {"name": name, **capture.model_dump(by_alias=True, exclude_defaults=True)}


def _expect(expect: Expectation) -> dict[str, Any]:
    given = expect.model_dump(mode="json", exclude=NOT_SENT)
    given["headers"] = [[name, value] for name, value in expect.headers.items()]
    given["json"] = [
        *({"pointer": pointer} for pointer in expect.json_exists),
        *({"pointer": pointer, "equals": value} for pointer, value in expect.json_values.items()),
        *({"pointer": pointer, "equals_json": text} for pointer, text in expect.json_filled.items()),
        *({"pointer": pointer, "matches": regex} for pointer, regex in expect.json_matches.items()),
        *({"pointer": pointer, "absent": True} for pointer in expect.json_absent),
        *({"path": path, "matches": regex} for path, regex in expect.json_paths.items()),
    ]
    return {key: value for key, value in given.items() if key == "status" or value not in (None, [])}
