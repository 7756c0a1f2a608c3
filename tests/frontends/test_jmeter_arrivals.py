"""prony jmeter: thread groups of jmeter-plugins whose threads are arrivals. The numbers expected were seen
with jmeter-plugins-casutg 2.10 in JMeter 5.6.3.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.load import OpenLoad
from prony_frontends import jmeter
from prony_frontends.base import Refused
from prony_frontends.jmeter.arrivals import ARRIVALS, FREE_FORM
from prony_frontends.jmeter.translate import JMeterPlan
from tests.frontends.codes import noted
from tests.frontends.conftest import Served, explained, offered, quick_desk
from tests.frontends.jmx_text import element, prop, sampler
from tests.frontends.test_jmeter_groups import document, plan
from tests.frontends.test_jmeter_groups import group as thread_group
from tests.frontends.test_jmeter_plugin_groups import row


def arrivals(below: str = "", **given: object) -> str:
    held = "".join(prop(name, value) for name, value in {"Unit": "S", "LogFilename": "", **given}.items())
    return element(ARRIVALS, held, below=below or sampler(), name="G")


def free_form(*rows: str, unit: str = "S", most: object = "", below: str = "") -> str:
    held = f'<collectionProp name="Schedule">{"".join(rows)}</collectionProp>' + prop("Unit", unit)
    held += prop("ArrivalsLimit", most)
    return element(FREE_FORM, held, below=below or sampler(), name="G")


def load_of(made: JMeterPlan) -> OpenLoad:
    load = made.translated.trial.load
    assert isinstance(load, OpenLoad)
    return load


def phases(made: JMeterPlan) -> list[tuple[float, float, float]]:
    return [(one.duration_s, one.from_per_s, one.to_per_s) for one in load_of(made).phases]


def expected(made: JMeterPlan) -> float:
    """How many arrivals there are."""
    return sum((one.from_per_s + one.to_per_s) / 2 * one.duration_s for one in load_of(made).phases)


def test_a_rate_is_reached_in_steps_and_held() -> None:
    made = plan(arrivals(TargetLevel=12, RampUp=3, Steps=3, Hold=2))
    assert phases(made) == [(1, 4, 4), (1, 8, 8), (1, 12, 12), (2, 12, 12)]
    assert expected(made) == 48
    load = load_of(made)
    assert (load.session, load.arrivals, load.max_users) == ("user", "constant", 10_000)
    assert explained(made.translated).load == load
    minutes = plan(arrivals(Unit="M", TargetLevel=600, RampUp=0.1, Steps=6, Hold=0.05))
    assert expected(minutes) == pytest.approx(65)


def test_a_rate_that_rises_evenly() -> None:
    made = plan(arrivals(TargetLevel=10, RampUp=4, Steps="", Hold=2))
    assert phases(made) == [(4, 0, 10), (2, 10, 10)]
    assert noted(made.translated.notes, "even_ramp", "4 s")


def test_limits() -> None:
    made = plan(arrivals(TargetLevel=10, RampUp=4, Steps="", Hold=2, ArrivalsLimit=5, ConcurrencyLimit=3))
    assert expected(made) == pytest.approx(5)
    assert load_of(made).max_users == 3
    assert noted(made.translated.notes, "blocked_arrivals", "3 users")
    later = plan(arrivals(TargetLevel=10, RampUp=4, Steps="", Hold=2, ArrivalsLimit=30))
    assert phases(later) == [(4, 0, 10), (1, 10, 10)]
    falling = plan(free_form(row(10, 0, 2), most=5))
    assert expected(falling) == pytest.approx(5)
    assert phases(falling)[0][0] == pytest.approx(2 - 2**0.5)


def test_a_schedule_of_rows() -> None:
    made = plan(free_form(row(5, 5, 2), row(1, 10, 3), row(3, 3, 0)))
    assert phases(made) == [(2, 5, 5), (3, 1, 10)]
    assert phases(plan(free_form(row(60, 120, 2), unit="M"))) == [(120, 1, 2)]


@pytest.mark.parametrize(
    ("group", "says"),
    [
        (arrivals(TargetLevel=0, Hold=1), "a rate above 0"),
        (arrivals(TargetLevel=5, Hold=0), "a rate above 0"),
        (arrivals(TargetLevel=5, Hold=1, Unit="H"), "a Unit of M or S"),
        (arrivals(TargetLevel=5, Hold=1, RampUp=1, Steps=5000), "up to 1000 steps"),
        (arrivals(TargetLevel=5_000_000, Hold=1), "rates up to"),
        (free_form(row(1, 2)), "rows of start, end and duration"),
        (free_form(), "a rate above 0"),
        (arrivals(TargetLevel=5, Hold=1) + thread_group("other", sampler(), 1), "an open model and other"),
    ],
)
def test_what_cannot_be_done_is_said(group: str, says: str) -> None:
    with pytest.raises((Refused, UsageError), match=says):
        plan(group)


def test_each_arrival_is_a_thread_of_the_plug_in(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, file, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    page = sampler("/a", prop("HTTPSampler.port", served.port))
    file.write_bytes(document(arrivals(page, TargetLevel=10, Hold=20, ArrivalsLimit=7)))
    assert jmeter.run(["-n", "-t", str(file), "-l", str(log)], quick_desk()[0]) == 0
    with log.open(newline="") as text:
        names = [one["threadName"] for one in csv.DictReader(text)]
    assert sorted(names) == [f"G-ThreadStarter 1-{number}" for number in range(1, 8)]


def test_as_many_come_as_the_plug_in_has(serve: Callable[..., Served]) -> None:
    served = serve()
    page = sampler("/a", prop("HTTPSampler.port", served.port))
    made = plan(arrivals(page, TargetLevel=12, RampUp=3, Steps=3, Hold=2)).translated
    assert offered(made).totals.completed == 48
