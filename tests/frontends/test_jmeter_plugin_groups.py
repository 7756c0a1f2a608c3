"""prony jmeter: thread groups of jmeter-plugins, whose threads start and end when the plug-ins' own do. The
times expected were seen with jmeter-plugins-casutg 2.10 in JMeter 5.6.3.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.plan.load import ClosedLoad
from prony_frontends import jmeter
from prony_frontends.base import Refused
from prony_frontends.jmeter import jmx, plugin_groups
from prony_frontends.jmeter.plugin_groups import CONCURRENCY, STEPPING, ULTIMATE
from prony_frontends.jmeter.translate import JMeterPlan, of_tree
from tests.frontends.codes import noted
from tests.frontends.conftest import Served, explained, quick_desk
from tests.frontends.jmx_text import PLANS, element, flag, prop, repeated, sampler, translated_of
from tests.frontends.real_jmeter import needs_plug_ins, run_jmeter
from tests.frontends.test_jmeter_groups import document
from tests.frontends.test_jmeter_groups import group as thread_group


def row(*cells: object) -> str:
    held = "".join(prop(str(at), cell) for at, cell in enumerate(cells))
    return f'<collectionProp name="row">{held}</collectionProp>'


def ultimate(*rows: str, below: str = "", loops: object = -1) -> str:
    held = f'<collectionProp name="ultimatethreadgroupdata">{"".join(rows)}</collectionProp>'
    return element(ULTIMATE, held, repeated(loops), below=below or sampler(), name="G")


def stepping(below: str = "", **given: object) -> str:
    properties = "".join(prop(name.replace("_", " "), value) for name, value in given.items())
    return element(
        STEPPING, properties.replace("threads", "ThreadGroup.num_threads"), repeated(-1),
        below=below or sampler(),
    )  # fmt: skip


def concurrency(
    target: object, up: object, steps: object, hold: object, unit: str = "S", more: str = "", below: str = ""
) -> str:
    given = {"TargetLevel": target, "RampUp": up, "Steps": steps, "Hold": hold, "Unit": unit}
    return element(
        CONCURRENCY, *(prop(name, value) for name, value in given.items()), more, below=below or sampler(),
        name="G",
    )  # fmt: skip


USERS = (
    '<elementProp name="ThreadGroup.main_controller" '
    'elementType="com.blazemeter.jmeter.control.VirtualUserController"/>'
)
"""What the plug-in gives a Concurrency Thread Group."""


def plan(groups: str) -> JMeterPlan:
    return of_tree(jmx.parse(document(groups), "p.jmx"), PLANS / "p.jmx", {})


def lives(made: JMeterPlan) -> list[tuple[int, float, float | None]]:
    load = made.translated.trial.load
    assert isinstance(load, ClosedLoad)
    return [(one.users, one.start_s, one.end_s) for one in load.populations]


def test_an_ultimate_group_starts_its_last_thread_first_and_ends_it_first() -> None:
    made = plan(ultimate(row(4, 0, 2, 2, 2), row(2, 1, 0, 2, 0)))
    assert lives(made) == [(1, 2, 6), (1, 1.5, 5.5), (1, 1, 5), (1, 0.5, 4.5), (2, 1, 3)]
    assert explained(made.translated).load == made.translated.trial.load


def test_a_stepping_group() -> None:
    made = plan(
        stepping(
            threads=7, Start_users_count=2, Start_users_count_burst=3, Start_users_period=1, rampUp=1,
            Stop_users_count=3, Stop_users_period=1, flighttime=2,
        )
    )  # fmt: skip
    starts = [0, 1 / 3, 2 / 3, 2, 2.5, 4, 4.5]
    ends = [7, 7, 7, 8, 8, 8, 9]
    assert [start for _, start, _ in lives(made)] == pytest.approx(starts)
    assert [end for _, _, end in lives(made)] == pytest.approx(ends)


def test_a_concurrency_group_is_held_and_reached_in_steps() -> None:
    assert lives(plan(concurrency(6, 3, 3, 2))) == [(2, 0, 5), (2, 1, 5), (2, 2, 5)]
    assert lives(plan(concurrency(3, 1, "", 1, "M"))) == [(1, 0, 120), (1, 20, 120), (1, 40, 120)]
    assert lives(plan(concurrency(5, 0, "", 2))) == [(5, 0, 2)]


def test_threads_keep_their_numbers_beside_another_group() -> None:
    made = plan(thread_group("first", sampler(), 2) + concurrency(3, 3, 3, 1))
    label = "G-ThreadStarter"
    assert [(one.label, one.number, one.before, one.users) for one in made.thread_groups] == [
        ("first", 1, 0, 2), (label, 2, 0, 1), (label, 2, 1, 1), (label, 2, 2, 1),
    ]  # fmt: skip


def test_many_threads_become_a_few_hundred_waves() -> None:
    tree = jmx.parse(document(ultimate(row(2000, 0, 100, 10, 0))), "p.jmx")
    made = of_tree(tree, PLANS / "p.jmx", {})
    found = lives(made)
    assert len(found) == plugin_groups.MOST_WAVES
    assert sum(users for users, _, _ in found) == 2000
    assert noted(made.translated.notes, "thread_steps", "4 threads")
    assert found[0] == (4, 100, 110)


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (ultimate(row(1, 0, 2, 2)), "rows of five numbers"),
        (ultimate(), "at least one thread"),
        (ultimate(row(1, 0, 0, 0, 0)), "a hold time above 0"),
        (stepping(threads=0), "threads, found 0"),
        (concurrency(5, 1, 1, 1, "H"), "a Unit of M or S"),
        (concurrency(5, 1, 1, 1, more=prop("Iterations", 3)), "an iterations limit"),
    ],
)
def test_what_cannot_be_done_is_said(groups: str, says: str) -> None:
    with pytest.raises((Refused, UsageError), match=says):
        plan(groups)


def test_a_finite_number_of_loops_ends_a_thread() -> None:
    load = plan(ultimate(row(2, 0, 0, 5, 0), loops=3)).translated.trial.load
    assert isinstance(load, ClosedLoad)
    assert [one.iterations_per_user for one in load.populations] == [3]


def test_the_rows_have_the_names_of_one_group(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, file, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    think = element("ConstantTimer", prop("ConstantTimer.delay", 20), flag("x", False))
    page = think + sampler("/a", prop("HTTPSampler.port", served.port))
    file.write_bytes(document(ultimate(row(3, 0, 1.2, 1.2, 0), below=page)))
    assert jmeter.run(["-n", "-t", str(file), "-l", str(log)], quick_desk()[0]) == 0
    with log.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert {one["threadName"] for one in rows} == {"G 1-1", "G 1-2", "G 1-3"}
    assert max(int(one["grpThreads"]) for one in rows) == 3
    assert rows[0]["threadName"] == "G 1-3"


def test_threads_are_numbered_within_their_group_and_not_within_a_wave() -> None:
    made = plan(ultimate(row(2, 0, 2, 2, 0), row(3, 5, 0, 2, 0)) + thread_group("other", sampler(), 2))
    load = made.translated.trial.load
    assert isinstance(load, ClosedLoad)
    assert [(one.users_before, one.users) for one in load.populations] == [(0, 1), (1, 1), (2, 3), (0, 2)]
    assert explained(made.translated).load == load


def numbered(port: int, kind: str) -> bytes:
    """Threads that come one after the other, each asking for its number a few times."""
    wait = element("ConstantTimer", prop("ConstantTimer.delay", 150))
    page = wait + sampler("/${__threadNum}", prop("HTTPSampler.port", port), name="n")
    return document(
        {
            "ultimate": ultimate(row(3, 0, 0.6, 1, 0), row(2, 1, 0, 1, 0.5), below=page),
            "stepping": stepping(
                threads=4, Start_users_count=1, Start_users_count_burst=2, Start_users_period=1, rampUp=0,
                Stop_users_count=4, Stop_users_period=1, flighttime=1, below=page,
            ),
            "concurrency": concurrency(3, 2, 3, 1, more=USERS, below=page),
        }[kind]
    )  # fmt: skip


THREADS = {"ultimate": 5, "stepping": 4, "concurrency": 3}


@pytest.mark.parametrize("who", ["ours", pytest.param("theirs", marks=needs_plug_ins)])
@pytest.mark.parametrize("kind", THREADS)
def test_what_threads_call_themselves_on_the_wire_and_in_the_log(
    kind: str, who: str, serve: Callable[..., Served], tmp_path: Path
) -> None:
    served, file, log = serve(), tmp_path / "p.jmx", tmp_path / "out.jtl"
    file.write_bytes(numbered(served.port, kind))
    argv = ["-n", "-t", str(file), "-l", str(log)]
    if who == "theirs":
        run_jmeter(argv, tmp_path, tmp_path, "jmeter-plugins")
    else:
        assert jmeter.run(argv, quick_desk()[0]) == 0
    every = {str(number) for number in range(1, THREADS[kind] + 1)}
    asked = set(re.findall(rb"GET /(\d+) ", served.recorded()))
    assert {one.decode() for one in asked} == every
    with log.open(newline="") as text:
        rows = [(one["threadName"], one["URL"]) for one in csv.DictReader(text)]
    starter = "-ThreadStarter" if kind == "concurrency" else ""
    group = "it" if kind == "stepping" else "G"
    assert {name for name, _ in rows} == {f"{group}{starter} 1-{number}" for number in every}
    assert all(name.rpartition("-")[2] == url.rpartition("/")[2] for name, url in rows)


def test_a_script_of_a_thread_knows_the_same_number() -> None:
    script = element("JSR223PreProcessor", prop("script", 'vars.put("n", ctx.getThreadNum() + "")'))
    made = translated_of(sampler("/${n}", below=script), group=prop("ThreadGroup.num_threads", 2))
    assert "${user | plus -1}" in made.trial.workload.model_dump_json()
