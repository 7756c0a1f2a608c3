"""The laboratory's words into the engine's plan (docs/engine.md). A pure function; must not know processes
or pipes.
"""

from __future__ import annotations

from typing import Any, Literal

from prony.evidence.base import Record
from prony.plan.workload import Capture, Expectation, Scenario, Step, Workload


class EngineLoad(Record):
    """A load as the engine is asked for it: a closed loop without think time, bounded by time or by
    requests.
    """

    url: str
    workload: Workload
    users: int
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
        "target": {"url": load.url},
        "driver": load.driver,
        "threads": {"cpus": list(load.cpus), "pin": True},
        "load": {"model": "closed", "users": load.users, "think": {"kind": "none"}, "ramp_up_ms": 0},
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


def _scenario(scenario: Scenario) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "weight": scenario.weight,
        "loops": scenario.loops,
        "steps": [_step(step) for step in scenario.steps],
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
