"""Open loads and think times by the real engine, judged: an honest run passes, a too slow server does not.

Rates are low and the server's delay is long, so that a busy host cannot make a send late by what matters;
where it stands still all the same, the run is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.checks.arrivals import arrivals
from prony.judge.checks.little import little
from prony.judge.checks.schedule import schedule
from prony.judge.checks.think import think
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from prony.load.contract import EngineLoad, OpenLoop, engine_plan
from prony.load.engine import EngineRun
from prony.plan.workload import Workload, from_url
from tests.load.test_engine import Reference

LIMITS = CheckLimits()
ATTEMPTS = 4
Check = Callable[[Evidence, CheckLimits], Finding | None]


@contextmanager
def server(*trouble: str) -> Iterator[str]:
    reference = Reference(*trouble)
    try:
        yield reference.url
    finally:
        reference.finish()


def run(url: str, facts: LoadFacts, **load: Any) -> Evidence:
    """The evidence of one run of two seconds, measured from its start."""
    values = {"url": url, "workload": from_url("/"), "users": 4, "cpus": (), "after_s": 2.0, "window": "all"}
    report = EngineRun(EngineLoad.model_validate(values | load)).run_to_end(30)
    identity = ServerIdentity(name="reference", owned=False)
    return Evidence(load=facts, engine=report, server=identity)


def honest(checks: tuple[Check, ...], attempt: Callable[[int], Evidence]) -> Evidence:
    """The first of a few runs that all checks call valid; fails with what they said of the last."""
    said: list[str] = []
    for seed in range(1, ATTEMPTS + 1):
        evidence = attempt(seed)
        findings = [check(evidence, LIMITS) for check in checks]
        if all(finding is not None and finding.status is Status.VALID for finding in findings):
            return evidence
        said = [str(finding) for finding in findings]
    raise AssertionError("\n".join(said))


@pytest.mark.parametrize("driver", ["epoll", "auto"])
@pytest.mark.parametrize("spacing", ["constant", "poisson"])
def test_an_honest_open_loop_passes(spacing: str, driver: str) -> None:
    facts = LoadFacts.model_validate({"model": "open", "offered_per_s": 40.0, "arrivals": spacing})
    loop = OpenLoop.model_validate(
        {"rate_per_s": 40.0, "arrivals": spacing, "max_users": 200, "connections": 40}
    )
    checks: tuple[Check, ...] = (schedule, little) if spacing == "constant" else (schedule, little, arrivals)
    with server("--delay", "fixed:300ms") as url:
        evidence = honest(checks, lambda seed: run(url, facts, open_loop=loop, driver=driver, seed=seed))
    assert evidence.engine is not None
    window = evidence.engine.window
    assert window is not None
    assert window.latency is not None
    assert window.service_time is not None
    assert window.latency.count == window.completed
    assert (window.blocked, window.due_unsent) == (0, 0)


def test_a_server_that_is_too_slow_fires_the_schedule_check() -> None:
    facts = LoadFacts(model="open", offered_per_s=100, arrivals="constant")
    loop = OpenLoop(rate_per_s=100, max_users=10)
    with server("--workers", "1", "--delay", "fixed:100ms") as url:
        evidence = run(url, facts, open_loop=loop)
    finding = schedule(evidence, LIMITS)
    assert finding is not None
    assert finding.status is Status.INVALID
    assert "blocked by the cap on users" in finding.reason


def test_even_gaps_do_not_pass_for_poisson_ones() -> None:
    """The engine tests the gaps of Poisson arrivals only: another load cannot be acquitted."""
    facts = LoadFacts(model="open", offered_per_s=100, arrivals="poisson")
    with server() as url:
        evidence = run(url, facts, open_loop=OpenLoop(rate_per_s=100, max_users=100))
    finding = arrivals(evidence, LIMITS)
    assert finding is not None
    assert finding.status is Status.UNKNOWN


def test_think_times_are_kept_and_little_holds() -> None:
    facts = LoadFacts(model="closed", users=20, think_kind="constant", think_mean_ms=300)
    with server("--delay", "fixed:20ms") as url:
        evidence = honest((think, little), lambda seed: run(url, facts, users=20, think_ms=300.0, seed=seed))
    assert evidence.engine is not None
    window = evidence.engine.window
    assert window is not None
    assert window.think_count
    assert window.think_drawn_sum_s == pytest.approx(window.think_count * 0.3)


def test_the_plan_of_an_open_loop_with_a_ramp() -> None:
    load = EngineLoad(
        url="http://127.0.0.1:1",
        workload=Workload.model_validate({"name": "x", "steps": [{"path": "/"}]}),
        users=1,
        cpus=(),
        after_s=12.0,
        ramp_up_s=2.0,
        open_loop=OpenLoop(rate_per_s=50, arrivals="poisson", max_users=9, connections=3),
    )
    assert engine_plan(load)["load"] == {
        "model": "open",
        "arrivals": "poisson",
        "session": "request",
        "max_users": 9,
        "connections": 3,
        "phases": [
            {"duration_ms": 2000, "from_per_s": 0, "to_per_s": 50},
            {"duration_ms": 12000, "from_per_s": 50, "to_per_s": 50},
        ],
    }
