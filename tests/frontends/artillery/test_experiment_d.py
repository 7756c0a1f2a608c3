"""Experiment D by the script of the tool it was published with, beside the native plan: the same load."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.judge.limits import CheckLimits
from prony.plan.load import OpenLoad
from prony.plan.planfile_read import find, read
from prony.plan.step import Step
from prony.plan.trial import TrialPlan
from prony.server.build import build
from prony.server.catalogue import Catalogue
from prony.server.launch import launch
from prony.server.probe import status_probe
from prony_frontends.artillery import run
from prony_frontends.artillery.translate import translate
from prony_frontends.base import Translated
from tests.frontends.conftest import Front, Served, changed, offered

SCRIPT = str(Path(__file__).parents[3] / "plans" / "scripts" / "sync-vs-async.yml")
SMALL = json.dumps({"config": {"phases": [{"duration": 1, "arrivalRate": 4}]}})
"""Four sessions in place of 6000."""


def native() -> TrialPlan:
    """The part *sessions* of the plan."""
    plan = read(find("sync-vs-async"), limits=CheckLimits, seed=1)
    cell = plan.of("sessions")[0]
    assert {one.trial.load for one in plan.of("sessions")} == {cell.trial.load}
    return cell.trial


def arrivals(load: object) -> list[tuple[float, float, float]]:
    assert isinstance(load, OpenLoad)
    assert (load.session, load.arrivals) == ("user", "constant")
    return [(phase.duration_s, phase.from_per_s, phase.to_per_s) for phase in load.phases]


def only(steps: object) -> Step:
    assert isinstance(steps, tuple)
    (step,) = steps
    assert isinstance(step, Step)
    return step


def test_the_script_asks_for_what_the_plan_asks_for() -> None:
    plan, script = native(), translate(["run", SCRIPT]).trial
    assert arrivals(script.load) == arrivals(plan.load) == [(60, 100, 100)]
    (scenario,) = script.workload.scenarios
    mine, theirs = only(scenario.steps), only(plan.workload.steps)
    assert (scenario.loops, plan.workload.loops) == (50, 50)
    assert mine.method == theirs.method == "GET"
    assert mine.path == theirs.path.replace("${delay_ms}", "150")
    assert mine.think is theirs.think is None


def small(plan: TrialPlan, like: Translated) -> Translated:
    """The plan's load with the arrivals of the small script, on the same server."""
    assert isinstance(plan.load, OpenLoad)
    assert isinstance(like.trial.load, OpenLoad)
    load = plan.load.model_copy(update={"phases": like.trial.load.phases})
    step = only(plan.workload.steps).model_copy(update={"path": "/delay?ms=150", "expect": None})
    workload = plan.workload.model_copy(update={"steps": (step,)})
    return changed(like, load=load, workload=workload, measured=plan.measured)


def test_both_send_the_same_requests_on_as_many_connections(serve: Callable[..., Served]) -> None:
    by_script, by_plan = serve("--delay", "1ms"), serve("--delay", "1ms")
    script = translate(["run", "--overrides", SMALL, "-t", by_script.url, SCRIPT])
    other = translate(["run", "--overrides", SMALL, "-t", by_plan.url, SCRIPT])
    reports = [offered(script), offered(small(native(), other))]
    for report in reports:
        totals = report.totals
        assert totals is not None
        assert (totals.sessions_begun, totals.sessions_completed, totals.sent) == (4, 4, 200)
    seen = []
    for server in (by_script, by_plan):
        ended = server.ended()
        lines = [one.partition(b"\r\n")[0] for one in server.recorded().split(b"\r\n\r\n") if one]
        seen.append((ended["requests"], ended["connections"], Counter(lines)))
    assert seen[0] == seen[1]
    assert seen[0] == (200, 4, {b"GET /delay?ms=150 HTTP/1.1": 200})


@pytest.mark.e2e
def test_on_a_real_server_of_the_experiment(front: Front, tmp_path: Path) -> None:
    (built,) = build([Catalogue.load().resolve("koa")])
    report = tmp_path / "report.json"
    with launch(built) as server:
        probe = status_probe(server.host, server.port, "/delay?ms=1")
        assert server.wait_ready(probe, 60.0) is not None
        argv = ["run", "-q", "-o", str(report), "--overrides", SMALL, "-t", server.url, SCRIPT]
        code = run(argv, front.context(exit_like_original=True))
    assert code == 0, front.err.getvalue()
    found = json.loads(report.read_text())["aggregate"]
    counters = found["counters"]
    assert (counters["vusers.created"], counters["vusers.completed"]) == (4, 4)
    assert (counters["http.requests"], counters["http.codes.200"]) == (200, 200)
    assert counters["http.downloaded_bytes"] == 200 * len("Hello World!")
    # The delay of 150 ms was there; Node counts it from when its loop woke, which on a busy host was earlier.
    assert found["summaries"]["http.response_time"]["min"] >= 75
