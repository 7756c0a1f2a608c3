"""Open loads and think times by the real engine, judged: a run as planned passes, a too slow server does not.

Rates are low and the server's delay is long, so that a busy host cannot make a send late by what matters;
where it stands still all the same, the run is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.checks.arrivals import arrivals
from prony.judge.checks.little import little
from prony.judge.checks.schedule import schedule
from prony.judge.checks.think import think
from prony.judge.finding import Finding
from prony.judge.limits import CheckLimits
from prony.load.contract import EngineLoad, engine_plan
from prony.load.engine import EngineRun
from prony.load.facts import load_facts
from prony.plan.load import ClosedLoad, Connections, Load, OpenLoad, RatePhase
from prony.plan.target import TlsOptions
from prony.plan.think import Think
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
    values = {
        "url": url,
        "workload": from_url("/"),
        "load": {"users": 4},
        "cpus": (),
        "after_s": 2.0,
        "window": "all",
    }
    report = EngineRun(EngineLoad.model_validate(values | load)).run_to_end(30)
    identity = ServerIdentity(name="reference", owned=False)
    return Evidence(load=facts, engine=report, server=identity)


def as_planned(checks: tuple[Check, ...], attempt: Callable[[int], Evidence]) -> Evidence:
    """The first of a few runs that conforms to all checks, without a condition and within 5 %; fails with
    what they said of the last.
    """
    said: list[str] = []
    for seed in range(1, ATTEMPTS + 1):
        evidence = attempt(seed)
        findings = [check(evidence, LIMITS) for check in checks]
        if all(finding is not None and _fine(finding) for finding in findings):
            return evidence
        said = [str(finding) for finding in findings]
    raise AssertionError("\n".join(said))


def _fine(finding: Finding) -> bool:
    small = all(one.size < 0.05 for one in finding.bias.values())
    return finding.conforms and not finding.provided and small


@pytest.mark.parametrize("driver", ["epoll", "auto"])
@pytest.mark.parametrize("spacing", ["constant", "poisson"])
@pytest.mark.rarely
def test_an_open_loop_as_planned_passes(spacing: str, driver: str) -> None:
    facts = LoadFacts.model_validate({"model": "open", "offered_per_s": 40.0, "arrivals": spacing})
    loop = OpenLoad.model_validate(
        {"rate_per_s": 40.0, "arrivals": spacing, "max_users": 200, "connections": 40}
    )
    checks: tuple[Check, ...] = (schedule, little) if spacing == "constant" else (schedule, little, arrivals)
    with server("--delay", "fixed:300ms") as url:
        evidence = as_planned(checks, lambda seed: run(url, facts, load=loop, driver=driver, seed=seed))
    assert evidence.engine is not None
    window = evidence.engine.window
    assert window is not None
    assert window.latency is not None
    assert window.service_time is not None
    assert window.latency.count == window.completed
    assert (window.blocked, window.due_unsent) == (0, 0)


@pytest.mark.rarely
def test_a_server_that_is_too_slow_fires_the_schedule_check() -> None:
    facts = LoadFacts(model="open", offered_per_s=100, arrivals="constant")
    loop = OpenLoad(rate_per_s=100, max_users=10)
    with server("--workers", "1", "--delay", "fixed:100ms") as url:
        evidence = run(url, facts, load=loop)
    finding = schedule(evidence, LIMITS)
    assert finding is not None
    assert not finding.conforms
    assert evidence.engine is not None
    assert evidence.engine.window is not None
    assert evidence.engine.window.blocked


def test_even_gaps_do_not_pass_for_poisson_ones() -> None:
    """The engine tests the gaps of Poisson arrivals only: another load cannot be acquitted."""
    facts = LoadFacts(model="open", offered_per_s=100, arrivals="poisson")
    with server() as url:
        evidence = run(url, facts, load=OpenLoad(rate_per_s=100, max_users=100))
    finding = arrivals(evidence, LIMITS)
    assert finding is not None
    assert (finding.code, bool(finding.provided)) == ("unread", True)


@pytest.mark.rarely
def test_think_times_are_kept_and_little_holds() -> None:
    facts = LoadFacts(model="closed", users=20, think_kind="constant", think_mean_ms=300)
    asking = ClosedLoad(users=20, think=Think(kind="constant", ms=300))
    with server("--delay", "fixed:20ms") as url:
        evidence = as_planned((think, little), lambda seed: run(url, facts, load=asking, seed=seed))
    assert evidence.engine is not None
    window = evidence.engine.window
    assert window is not None
    assert window.think_count
    assert window.think_drawn_sum_s == pytest.approx(window.think_count * 0.3)


HELLO = Workload.model_validate({"name": "x", "steps": [{"path": "/"}]})
URL = "http://127.0.0.1:1"


def planned(load: Load, **more: Any) -> dict[str, Any]:
    return engine_plan(EngineLoad(url=URL, workload=HELLO, load=load, cpus=(), after_s=12.0, **more))


def test_the_plan_of_an_open_loop_with_a_ramp() -> None:
    load = OpenLoad(rate_per_s=50, arrivals="poisson", max_users=9, connections=3, ramp_up_s=2.0)
    assert planned(load)["load"] == {
        "model": "open",
        "arrivals": "poisson",
        "session": "request",
        "think": {"kind": "none"},
        "max_users": 9,
        "connections": 3,
        "deadline_ms": None,
        "phases": [
            {"duration_ms": 2000, "from_per_s": 0, "to_per_s": 50},
            {"duration_ms": 12000, "from_per_s": 50, "to_per_s": 50},
        ],
    }


def test_the_plan_of_sessions_in_phases() -> None:
    load = OpenLoad(
        phases=(
            RatePhase(duration_s=3, from_per_s=0, to_per_s=20),
            RatePhase(duration_s=1, from_per_s=0, to_per_s=0),
        ),
        session="user",
        think=Think(kind="exponential", mean_ms=40),
        deadline_ms=900,
    )
    plan = planned(load)["load"]
    assert plan["phases"] == [
        {"duration_ms": 3000, "from_per_s": 0, "to_per_s": 20},
        {"duration_ms": 1000, "from_per_s": 0, "to_per_s": 0},
    ]
    assert plan["think"] == {"kind": "exponential", "mean_ms": 40}
    assert (plan["session"], plan["deadline_ms"], plan["connections"], plan["max_users"]) == (
        "user",
        900,
        0,
        100,
    )


def test_the_plan_of_a_closed_loop_with_everything() -> None:
    load = ClosedLoad(
        users=7,
        think=Think(kind="uniform", min_ms=5, max_ms=9),
        ramp_up_s=4,
        ramp_up_steps=2,
        ramp_down_s=3,
        ramp_down_steps=3,
    )
    plan = planned(load, iterations_per_user=10, connections=Connections(keep_alive=False))
    assert plan["load"] == {
        "model": "closed",
        "users": 7,
        "think": {"kind": "uniform", "min_ms": 5, "max_ms": 9},
        "ramp_up_ms": 4000,
        "ramp_up_steps": 2,
        "ramp_down_ms": 3000,
        "ramp_down_steps": 3,
    }
    assert plan["stop"] == {"after_ms": 12000, "total_requests": None, "iterations_per_user": 10}
    assert plan["connection"] == {"reuse": "per_request", "max_requests": None, "pipeline": 1}


def test_the_plan_of_tls(tmp_path: Path) -> None:
    load = EngineLoad(
        url="https://127.0.0.1:1",
        tls=TlsOptions(ca=tmp_path / "ca.pem", sni="name.example"),
        workload=HELLO,
        load=ClosedLoad(users=1),
        connections=Connections(max_requests=3, tls_sessions="none", tls_version="1.2"),
        cpus=(),
    )
    plan = engine_plan(load)
    tls = plan["target"]["tls"]
    assert (tls["ca"], tls["sni"], tls["sessions"]) == (str(tmp_path / "ca.pem"), "name.example", "none")
    assert (tls["min_version"], tls["max_version"]) == ("1.2", "1.2")
    assert plan["connection"] == {"reuse": "keep_alive", "max_requests": 3, "pipeline": 1}


@pytest.mark.parametrize(("close", "written"), [("client", {}), ("reset", {"close": "reset"})])
def test_who_closes_first_is_in_the_plan(close: Any, written: dict[str, str]) -> None:
    load = EngineLoad(
        url="http://127.0.0.1:1",
        workload=HELLO,
        load=ClosedLoad(users=1),
        connections=Connections(close=close),
        cpus=(),
    )
    connection = engine_plan(load)["connection"]
    assert {key: value for key, value in connection.items() if key == "close"} == written


def test_nobody_waits_for_the_end_of_a_shared_connection() -> None:
    with pytest.raises(ValueError, match="close: wait"):
        Connections(http_version="2", close="wait")


def test_facts_of_sessions_count_the_requests_of_a_walk() -> None:
    walk = {"name": "w", "steps": [{"path": "/a", "repeat": 3}, {"path": "/b"}], "loops": 2}
    load = OpenLoad(phases=(RatePhase(duration_s=2, from_per_s=0, to_per_s=10),), session="user")
    facts = load_facts(load, Workload.model_validate(walk), Connections())
    assert facts.offered_per_s == pytest.approx(5 * 8)
    assert facts.varies
    assert facts.claim == "latency"


@pytest.mark.parametrize(("users", "claim"), [(1, "latency"), (2, "capacity")])
def test_one_user_claims_no_capacity(users: int, claim: str) -> None:
    """Its rate is 1 ÷ its mean response time: a server with CPU left is no reason to reject it."""
    assert load_facts(ClosedLoad(users=users), from_url("http://127.0.0.1:9/"), Connections()).claim == claim
