"""prony jmeter: the Throughput Shaping Timer of jmeter-plugins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.load.contract import engine_plan
from prony.plan.blocks import Pace, PacePhase
from prony.plan.load import ClosedLoad, WholeRun
from prony.plan.step import Block
from prony_frontends.jmeter import jmx
from prony_frontends.jmeter.plugin_groups import CONCURRENCY
from prony_frontends.jmeter.shaping import TIMER
from prony_frontends.jmeter.translate import JMeterPlan, of_tree
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import Served, as_asked, explained, offered
from tests.frontends.jmx_text import (
    PLANS,
    element,
    flag,
    load_of,
    prop,
    repeated,
    sampler,
    translated_of,
)
from tests.frontends.jmx_text import document as in_a_group
from tests.frontends.real_jmeter import needs_plug_ins, run_jmeter
from tests.frontends.test_jmeter_groups import document
from tests.frontends.test_jmeter_plugin_groups import row

FOREVER = prop("ThreadGroup.num_threads", 5) + repeated(-1)


def timer(*rows: str) -> str:
    return element(TIMER, f'<collectionProp name="load_profile">{"".join(rows)}</collectionProp>')


SCHEDULE = timer(row(10, 10, 30), row(10, 50, 60), row(0, 0, 5))
PHASES = (
    PacePhase(duration_s=30, from_per_s=10, to_per_s=10),
    PacePhase(duration_s=60, from_per_s=10, to_per_s=50),
    PacePhase(duration_s=5, from_per_s=0, to_per_s=0),
)


def paces(load: object) -> list[Pace]:
    steps = load.workload.steps  # type: ignore[attr-defined]
    return [entry.pace for entry in steps if isinstance(entry, Block) and entry.pace is not None]


def test_a_schedule_is_a_rate_that_all_threads_share_and_its_end_is_theirs() -> None:
    made = translated_of(SCHEDULE + sampler("/a") + sampler("/b"), group=FOREVER)
    assert paces(made.trial) == [Pace(phases=PHASES, per="run", name="it")] * 2
    assert made.trial.measured == WholeRun(duration_s=95)
    assert noted(made.notes, "on_schedule", "5 threads", "50/s")
    assert not noted(made.notes, "no_end")
    assert explained(made).workload == made.trial.workload
    steps = engine_plan(as_asked(made))["scenarios"][0]["steps"]
    assert steps[0]["pace"]["phases"][1] == {"duration_ms": 60_000, "from_per_s": 10, "to_per_s": 50}


def test_a_shorter_duration_of_the_group_holds() -> None:
    scheduled = flag("ThreadGroup.scheduler", True) + prop("ThreadGroup.duration", 20)
    assert load_of(SCHEDULE + sampler(), group=FOREVER + scheduled).measured == WholeRun(duration_s=20)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("const(5,10s)", [(5, 5, 10)]),
        ("line(1, 9, 1m) const(9,1h30m)", [(1, 9, 60), (9, 9, 5400)]),
        ("step(5,15,5,10)", [(5, 5, 10), (10, 10, 10), (15, 15, 10)]),
    ],
)
def test_a_property_has_the_schedule_in_place_of_the_plan(
    text: str, levels: list[tuple[float, float, float]]
) -> None:
    load = load_of(SCHEDULE + sampler(), group=FOREVER, load_profile=text)
    (pace,) = paces(load)
    found = [(phase.from_per_s, phase.to_per_s, phase.duration_s) for phase in pace.phases]
    assert found == levels


def plan(groups: str) -> JMeterPlan:
    return of_tree(jmx.parse(document(groups), "p.jmx"), PLANS / "p.jmx", {})


def test_a_concurrency_group_has_the_threads_that_the_timer_may_take() -> None:
    level = prop("TargetLevel", "${__tstFeedback(it,1,40,10)}") + prop("Hold", 10) + prop("Unit", "M")
    made = plan(element(CONCURRENCY, level, below=SCHEDULE + sampler()))
    load = made.translated.trial.load
    assert isinstance(load, ClosedLoad)
    assert (made.users, load.populations[0].end_s) == (40, 95)
    assert noted(made.translated.notes, "threads_from_start", "40 threads")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (timer(row(0, 0, 9)), "a rate above 0"),
        (timer(row(1, 2)), "start, end and duration"),
        (timer(row(-1, 2, 3)), "rates up to"),
        (timer(), "a rate above 0"),
    ],
)
def test_what_is_no_schedule(given: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_of(given + sampler(), group=FOREVER)
    with pytest.raises(UsageError, match="as const"):
        load_of(SCHEDULE + sampler(), group=FOREVER, load_profile="wave(1,2)")


def test_two_throughput_timers() -> None:
    with refuses("conflict", "timer"):
        load_of(SCHEDULE + SCHEDULE + sampler(), group=FOREVER)


def test_it_lets_no_more_through_than_the_schedule_has(serve: Callable[..., Served]) -> None:
    server = serve()
    inside = timer(row(20, 20, 1), row(0, 40, 1)) + sampler("/", prop("HTTPSampler.port", server.port))
    report = offered(translated_of(inside, group=FOREVER))
    assert 1 <= report.totals.completed <= 41
    assert not report.totals.errors


@needs_plug_ins
def test_the_plug_in_itself_lets_through_what_the_schedule_has_and_ends_the_threads(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = serve()
    inside = timer(row(10, 10, 3)) + sampler("/", prop("HTTPSampler.port", server.port))
    (tmp_path / "p.jmx").write_bytes(in_a_group(inside, group=FOREVER))
    run_jmeter(["-n", "-t", str(tmp_path / "p.jmx")], tmp_path, tmp_path, "jmeter-plugins")
    # It ends by itself, though its threads have no end; a second's share may come at once at the start.
    assert 1 <= server.ended()["requests"] <= 45
