"""Cells that share a process: which, in which order, and how long that takes."""

from __future__ import annotations

import random
from collections import Counter
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.judge.limits import CheckLimits
from prony.plan import workload
from prony.plan.balanced import balanced_orders
from prony.plan.cell import Cell, cell_of
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow, WholeRun
from prony.plan.part import Part, Search
from prony.plan.plan import MAIN, Plan, ScheduledTrial
from prony.plan.planfile_read import read
from prony.plan.processes import units, why_not
from prony.plan.target import Launch, Url
from prony.plan.trial import START_S, STOP_S, TrialPlan, fixed

USERS = (1, 8, 64, 512)
TRIAL = TrialPlan(
    workload=workload.load("hello"), load=ClosedLoad(users=1), measured=SteadyWindow(window_s=10)
)


def cells(
    servers: str = "ab", users: tuple[int, ...] = USERS, trials: int = 4, **changes: object
) -> list[Cell]:
    return [
        cell_of(
            MAIN,
            server,
            Launch(address=server),
            TRIAL.model_copy(update={"load": ClosedLoad(users=number), **changes}),
            trials,
        )
        for number in users
        for server in servers
    ]


def plan(given: list[Cell], seed: int = 7, **part: object) -> Plan:
    made = Part.model_validate({"name": MAIN, "title": "t", "share_process": "loads", **part})
    return Plan(name="p", command="run", title="t", parts=(made,), cells=tuple(given), seed=seed)


def processes(made: Plan) -> list[list[ScheduledTrial]]:
    return [list(group) for _, group in groupby(made.order(), key=lambda one: one.process)]


def load_of(made: Plan, one: ScheduledTrial) -> str:
    return made.cell(one.cell).trial.load_name


def test_the_loads_of_a_server_and_workload_stand_together() -> None:
    made = plan(cells())
    found = processes(made)
    assert len(found) == 2 * 4
    for trials in found:
        assert len({made.cell(one.cell).server for one in trials}) == 1
        assert len({one.block for one in trials}) == 1
        assert len({one.cell for one in trials}) == len(USERS)
    order = made.order()
    assert [one.index for one in order] == list(range(1, len(order) + 1))
    assert [one.position for one in order if one.block == 0] == list(range(8))


def test_every_load_comes_at_every_place_and_follows_every_other_over_the_blocks() -> None:
    made = plan(cells("a"))
    rows = [[load_of(made, one) for one in trials] for trials in processes(made)]
    assert all(len(set(column)) == len(USERS) for column in zip(*rows, strict=True))
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert set(follows.values()) == {1}
    assert len(follows) == len(USERS) * (len(USERS) - 1)


def test_in_a_block_all_servers_have_the_same_order_of_loads() -> None:
    """What a load leaves behind for the next one then is not in their ratios."""
    made = plan(cells("abc"))
    by_block: dict[int, set[tuple[str, ...]]] = {}
    for trials in processes(made):
        by_block.setdefault(trials[0].block, set()).add(tuple(load_of(made, one) for one in trials))
    assert all(len(orders) == 1 for orders in by_block.values())
    assert len(set().union(*by_block.values())) == 4


def test_servers_take_turns_in_going_first() -> None:
    made = plan(cells())
    first = [made.cell(trials[0].cell).server for trials in processes(made)[::2]]
    assert Counter(first) == {"a": 2, "b": 2}


def test_a_plan_that_shares_nothing_has_the_order_that_it_always_had() -> None:
    """Stored experiments are resumed by it."""
    made = plan(cells(), share_process=None)
    source = balanced_orders(8, random.Random(7))
    expected = [made.cells[at].id for _ in range(4) for at in next(source)]
    assert [one.cell for one in made.order()] == expected
    assert {one.process for one in made.order()} == {None}


def test_controls_and_searches() -> None:
    given = [one.model_copy(update={"controls": 1}) for one in cells(users=(1, 8), trials=1)]
    assert [one.process for one in plan(given).order() if one.kind == "control"] == [None] * 4
    search = Search(objectives="p99<50ms", highest_per_s=1e5, resolution=0.05, most_trials=9)
    rates = [
        cell_of(
            MAIN, "a", Launch(address="a"), TRIAL.model_copy(update={"load": OpenLoad(rate_per_s=rate)}), n
        )
        for rate, n in ((100.0, 1), (200.0, 2), (300.0, 1))
    ]
    first, second, again, third = plan(rates, shape="capacity", search=search).order()
    assert second.follows_in_process(first)
    assert not again.follows_in_process(second), "what is tried again is a start"
    assert not third.follows_in_process(again)


def test_a_load_that_finds_a_warm_process_is_not_started_and_only_settles() -> None:
    apart, shared = plan(cells("a"), share_process=None), plan(cells("a"))
    times = shared.times_s(shared.order())
    assert times[0] == apart.times_s(apart.order())[0]
    warm = TRIAL.warm_up
    spared = START_S + STOP_S + warm.min_s + 0.6 * (warm.cap_s - warm.min_s)
    assert times[1:4] == pytest.approx([times[0] - spared] * 3)
    assert shared.estimate_s == pytest.approx(apart.estimate_s - 4 * 3 * spared)
    own = plan(cells("a", warm_up=fixed(5.0)))
    assert own.times_s(own.order())[1] == own.times_s(own.order())[0] - START_S - STOP_S


def test_a_rest_of_a_process_that_is_continued_begins_with_a_start() -> None:
    made = plan(cells("a"))
    rest = made.order()[2:]
    assert made.times_s(rest)[0] == made.times_s(made.order())[0]


def test_units_are_of_one_server_and_workload() -> None:
    other = [
        one.model_copy(update={"trial": one.trial.model_copy(update={"workload": workload.load("ping")})})
        for one in cells("a", (1, 8))
    ]
    assert [len(unit) for unit in units([*cells("ab", (1, 8)), *other])] == [2, 2, 2]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (cells(users=(8,)), "no server has two loads"),
        (cells(published_requests=10_000), "a fresh process of each load"),
        (cells(measured=WholeRun(duration_s=60)), "from the first request of a fresh process"),
        (
            [cell_of(MAIN, "http://h", Url(url="http://h"), TRIAL), *cells()],
            "http://h is already running",
        ),
    ],
)
def test_what_cannot_share(given: list[Cell], why: str) -> None:
    assert why in (why_not(given) or "")


def test_what_can_share() -> None:
    assert why_not(cells()) is None
    assert why_not(cells(measured=WholeRun(duration_s=60, warm_up_s=5))) is None
    assert why_not(cells(users=(8,)), grows=True) is None


FILE = """
servers: alpha
workloads: hello
share_process: loads
parts:
  - name: sweep
    loads: {users: [1, 8]}
  - name: fresh
    loads: {users: [1, 8]}
    measured: {total_requests: 1000}
"""


def file(tmp_path: Path, text: str) -> Plan:
    written = tmp_path / "mine.yaml"
    written.write_text(text)
    return read(written, limits=CheckLimits, seed=1)


def test_a_plan_file_says_which_parts_share(tmp_path: Path) -> None:
    """At the top level it is about the parts that can."""
    made = file(tmp_path, FILE)
    assert [part.share_process for part in made.parts] == ["loads", None]
    assert Plan.model_validate(made.as_stored()) == made


def test_a_part_that_cannot_share_is_refused_with_its_line(tmp_path: Path) -> None:
    text = FILE.replace("share_process: loads\n", "", 1)
    text = text.replace("name: fresh", "name: fresh\n    share_process: loads")
    with pytest.raises(UsageError, match=r"mine\.yaml:\d+: share_process does not apply: closed-1 is "):
        file(tmp_path, text)
    with pytest.raises(UsageError, match="share_process"):
        file(tmp_path, FILE.replace("share_process: loads", "share_process: all"))
