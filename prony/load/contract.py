"""The laboratory's words into the engine's plan (docs/engine.md). A pure function; must not know processes
or pipes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from prony.evidence.base import Record
from prony.plan.workload import Capture, Expectation, Scenario, Step, Workload

LONGEST_S = 7 * 24 * 3600.0
"""An open load that nothing else ends has phases of this length."""


class OpenLoop(Record):
    """Arrivals at a rate that no answer can delay."""

    rate_per_s: float = Field(gt=0)
    arrivals: Literal["constant", "poisson"] = "constant"
    max_users: int = Field(ge=1)
    """Requests under way at once, over all threads; an arrival beyond them is blocked and counted."""
    connections: int = Field(default=0, ge=0)
    """Opened before the first arrival and kept open."""


class TlsOptions(Record):
    """How the engine speaks TLS with an https URL."""

    ca: Path | None = None
    """A PEM file with the certificates to trust instead of the system's."""
    insecure: bool = False
    """Any certificate is taken for the server's own."""


class EngineLoad(Record):
    """A load as the engine is asked for it, bounded by time or by requests: a closed loop of `users`, or an
    open one.
    """

    url: str
    tls: TlsOptions = TlsOptions()
    """Only used with an https URL."""
    workload: Workload
    users: int
    """Of a closed loop; not used in an open one."""
    think_ms: float = Field(default=0.0, ge=0)
    """Closed loop: the constant pause between an answer and the user's next request."""
    ramp_up_s: float = Field(default=0.0, ge=0)
    """Users start, or the rate of arrivals rises from 0, over this time."""
    open_loop: OpenLoop | None = None
    cpus: tuple[int, ...]
    driver: Literal["auto", "io_uring", "epoll"] = "auto"
    after_s: float | None = None
    total_requests: int | None = None
    window: Literal["all", "commanded"] = "commanded"
    request_timeout_ms: int = 10_000
    connect_timeout_ms: int = 5_000
    marks: tuple[int, ...] = ()
    seed: int = 1


def engine_plan(load: EngineLoad) -> dict[str, Any]:
    """The first line that the engine reads on its standard input."""
    return {
        "version": 1,
        "target": _target(load),
        "driver": load.driver,
        "threads": {"cpus": list(load.cpus), "pin": True},
        "load": _closed(load) if load.open_loop is None else _open(load, load.open_loop),
        "scenarios": [_scenario(scenario) for scenario in load.workload.walks],
        "scenario_choice": load.workload.scenario_choice,
        "feeders": [
            {"name": name, "file": feeder.file, "order": feeder.order, "at_end": feeder.at_end}
            for name, feeder in load.workload.feeders.items()
        ],
        "cookies": load.workload.cookies,
        "connection": {"reuse": "keep_alive", "max_requests": None},
        "stop": {
            "after_ms": None if load.after_s is None else round(load.after_s * 1000),
            "total_requests": load.total_requests,
            "iterations_per_user": None,
        },
        "window": {"mode": load.window},
        "timeouts": {"connect_ms": load.connect_timeout_ms, "request_ms": load.request_timeout_ms},
        "interval_ms": 1000,
        "marks": list(load.marks),
        "seed": load.seed,
    }


def _target(load: EngineLoad) -> dict[str, Any]:
    if not load.url.startswith("https://"):
        return {"url": load.url}
    ca = None if load.tls.ca is None else str(load.tls.ca.absolute())
    return {"url": load.url, "tls": {"ca": ca, "insecure": load.tls.insecure}}


def _scenario(scenario: Scenario) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "weight": scenario.weight,
        "loops": scenario.loops,
        "steps": [_step(step) for step in scenario.steps],
    }


def _closed(load: EngineLoad) -> dict[str, Any]:
    think = {"kind": "constant", "ms": load.think_ms} if load.think_ms else {"kind": "none"}
    return {"model": "closed", "users": load.users, "think": think, "ramp_up_ms": load.ramp_up_s * 1000}


def _open(load: EngineLoad, open_loop: OpenLoop) -> dict[str, Any]:
    rate, ramp_ms = open_loop.rate_per_s, load.ramp_up_s * 1000
    ramp = {"duration_ms": ramp_ms, "from_per_s": 0.0, "to_per_s": rate}
    # The engine's own deadline ends the load; the schedule must only not end before.
    level_ms = LONGEST_S * 1000 if load.after_s is None else load.after_s * 1000
    level = {"duration_ms": level_ms, "from_per_s": rate, "to_per_s": rate}
    return {
        "model": "open",
        "arrivals": open_loop.arrivals,
        "phases": [ramp, level] if ramp_ms else [level],
        "session": "request",
        "max_users": open_loop.max_users,
        "connections": open_loop.connections,
    }


def _step(step: Step) -> dict[str, Any]:
    plan: dict[str, Any] = {
        "name": step.name,
        "repeat": step.repeat,
        "method": step.method,
        "path": step.path,
        "headers": [[name, value] for name, value in step.headers.items()],
    }
    if step.body is not None:
        plan["body"] = {"text": step.body, "chunked": step.chunked}
    if step.body_file is not None:
        plan["body"] = {"file": step.body_file, "chunked": step.chunked}
    if step.expect_continue:
        plan["expect_continue"] = True
    if step.auth is not None:
        plan["auth"] = step.auth.model_dump(exclude_none=True)
    if step.think is not None:
        plan["think"] = step.think.model_dump(exclude_none=True)
    if step.capture:
        plan["capture"] = [_capture(name, capture) for name, capture in step.capture.items()]
    if step.expect is not None:
        plan["expect"] = _expect(step.expect)
    return plan


def _capture(name: str, capture: Capture) -> dict[str, Any]:
    return {"name": name, **capture.model_dump(by_alias=True)}


def _expect(expect: Expectation) -> dict[str, Any]:
    return {
        "status": list(expect.status),
        "headers": [[name, value] for name, value in expect.headers.items()],
        "body_contains": list(expect.body_contains),
        "body_equals": expect.body_equals,
        "body_bytes": expect.body_bytes,
        "json": [
            *({"pointer": pointer} for pointer in expect.json_exists),
            *({"pointer": pointer, "equals": value} for pointer, value in expect.json_values.items()),
        ],
    }
