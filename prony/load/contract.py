"""The laboratory's words into the engine's plan (docs/engine.md). A pure function; must not know processes
or pipes.
"""

from __future__ import annotations

from typing import Any, Literal

from prony.evidence.base import Record
from prony.plan.workload import Expectation, Step, Workload


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
        "scenarios": [{"name": load.workload.name, "steps": [_step(step) for step in load.workload.steps]}],
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


def _step(step: Step) -> dict[str, Any]:
    plan: dict[str, Any] = {
        "method": step.method,
        "path": step.path,
        "headers": [[name, value] for name, value in step.headers.items()],
    }
    if step.body is not None:
        plan["body"] = {"text": step.body}
    if step.expect is not None:
        plan["expect"] = _expect(step.expect)
    return plan


def _expect(expect: Expectation) -> dict[str, Any]:
    return {
        "status": list(expect.status),
        "headers": [[name, value] for name, value in expect.headers.items()],
        "body_contains": list(expect.body_contains),
        "body_equals": expect.body_equals,
        "body_bytes": expect.body_bytes,
    }
