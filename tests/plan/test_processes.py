"""Cells that share a process: which, in which order, and how long that takes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony.judge.limits import CheckLimits
from prony.plan import workload
from prony.plan.balanced import balanced_orders, drawn_orders
from prony.plan.cell import Cell, cell_of
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow, WholeRun
from prony.plan.part import Part, Search, Sharing
from prony.plan.plan import MAIN, Orders, Plan, ScheduledTrial
from prony.plan.planfile_quick import quicken
from prony.plan.planfile_read import read
from prony.plan.processes import units, why_not
from prony.plan.target import Launch, Url
from prony.plan.trial import START_S, STOP_S, TrialPlan, WarmUpPlan, fixed

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


def plan(given: list[Cell], seed: int = 7, orders: Orders = "drawn", **part: object) -> Plan:
    made = Part.model_validate({"name": MAIN, "title": "t", "share_process": "loads", **part})
    return Plan(
        name="p", command="run", title="t", parts=(made,), cells=tuple(given), seed=seed, orders=orders
    )


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


@pytest.mark.parametrize(
    ("orders", "drawn"), [("drawn", drawn_orders), ("balanced", balanced_orders)], ids=["new", "stored"]
)
def test_a_plan_that_shares_nothing_has_the_order_of_its_seed(
    orders: Orders, drawn: Callable[[int, random.Random], Iterator[tuple[int, ...]]]
) -> None:
    """One that was stored before orders were drawn is resumed in the order that it was begun with."""
    made = plan(cells(), share_process=None, orders=orders)
    source = drawn(8, random.Random(7))
    expected = [made.cells[at].id for _ in range(4) for at in next(source)]
    assert [one.cell for one in made.order()] == expected
    assert {one.process for one in made.order()} == {None}
    assert Plan.model_validate(made.as_stored()).order() == made.order()


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


VERBS = ("hello", "ping", "json")


def verbs(
    servers: str = "ab", users: tuple[int, ...] = (8,), trials: int = 6, **changes: object
) -> list[Cell]:
    """Cells of several workloads."""
    return [
        cell_of(
            MAIN,
            server,
            Launch(address=server),
            TRIAL.model_copy(
                update={"workload": workload.load(name), "load": ClosedLoad(users=number), **changes}
            ),
            trials,
        )
        for name in VERBS
        for number in users
        for server in servers
    ]


def within(made: Plan) -> list[tuple[str, ...]]:
    """Process by process what is measured in it, in its order."""
    return [
        tuple(one.cell.partition("/")[2].partition("/")[2] for one in trials) for trials in processes(made)
    ]


def test_all_workloads_of_a_server_stand_together_where_they_share() -> None:
    made = plan(verbs(users=(1, 8)), share_process="workloads")
    found = processes(made)
    assert len(found) == 2 * 6
    for trials in found:
        assert len({made.cell(one.cell).server for one in trials}) == 1
        assert len({one.cell for one in trials}) == len(VERBS) * 2
    assert len({one.process for one in made.order()}) == len(found)
    assert [len(unit) for unit in units(made.cells, "workloads")] == [6, 6]
    by_workload = plan(verbs(users=(1, 8)), share_process="loads")
    assert [len(trials) for trials in processes(by_workload)] == [2] * 2 * 3 * 6


def test_every_workload_comes_at_every_place_and_follows_every_other() -> None:
    rows = within(plan(verbs("a"), share_process="workloads"))
    assert all(set(Counter(column).values()) == {2} for column in zip(*rows, strict=True))
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert set(follows.values()) == {2}
    assert len(follows) == len(VERBS) * (len(VERBS) - 1)


def test_in_a_block_all_servers_have_the_same_order_of_workloads() -> None:
    made = plan(verbs("abc"), share_process="workloads")
    rows = within(made)
    assert all(len(set(rows[at : at + 3])) == 1 for at in range(0, len(rows), 3))
    assert len(set(rows)) == 6


def test_loads_are_ordered_as_they_always_were() -> None:
    """The orders of stored experiments, which are resumed by them."""
    source = random.Random(f"7/{MAIN}/closed-1/closed-8/closed-64/closed-512")
    coming = balanced_orders(4, source)
    expected = [[f"closed-{USERS[at]}" for at in next(coming)] for _ in range(4)]
    made = plan(cells("a"))
    assert [[load_of(made, one) for one in trials] for trials in processes(made)] == expected
    assert made.order()[0].process == f"{MAIN}/a/hello#1"


def test_a_workload_that_is_new_to_its_process_settles_for_longer() -> None:
    """Its code is not compiled yet; a further load of it finds it compiled."""
    level = WarmUpPlan(min_s=10, cap_s=60, settle_min_s=5, settle_cap_s=40, settle_until="level")
    made = plan(verbs("a", (1, 8), warm_up=level), share_process="workloads")
    for trials in processes(made):
        times = made.times_s(trials)
        had: set[str] = set()
        for at, (one, seconds) in enumerate(zip(trials, times, strict=True)):
            trial = made.cell(one.cell).trial
            usual = trial.estimate_s if not at else trial.later_s
            new = bool(at) and trial.workload.name not in had
            assert seconds == pytest.approx(usual + (level.settle_new_s - level.settle_s if new else 0.0))
            had.add(trial.workload.name)
    assert level.settle_new_s == 2 * level.settle_min_s
    closed = level.model_copy(update={"closed_users": 4, "closed_s": 30.0})
    trial = TRIAL.model_copy(update={"warm_up": closed})
    assert trial.later_new_s == pytest.approx(trial.later_s + 30 + level.settle_new_s - level.settle_s)
    assert trial.deadline_s > level.compiling_cap_s + trial.measured_s


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
        (cells(users=(8,)), "two loads"),
        (cells(published_requests=10_000), "published_requests"),
        (cells(measured=WholeRun(duration_s=60)), "warm_up_s"),
        (
            [cell_of(MAIN, "http://h", Url(url="http://h"), TRIAL), *cells()],
            "http://h ",
        ),
    ],
)
def test_what_cannot_share(given: list[Cell], why: str) -> None:
    assert why in (why_not(given) or "")


@pytest.mark.parametrize(
    ("given", "sharing", "why"),
    [
        (verbs("a"), "loads", "two loads of one workload"),
        (verbs("a")[:1], "workloads", "two workloads or loads"),
        (verbs("a", measured=WholeRun(duration_s=9)), "workloads", "hello/closed-8 "),
        (cells(measured=WholeRun(duration_s=9)), "loads", "closed-1 "),
    ],
)
def test_what_cannot_share_is_named_as_the_kind_of_sharing_names_it(
    given: list[Cell], sharing: Sharing, why: str
) -> None:
    assert why in (why_not(given, sharing) or "")


def test_what_can_share() -> None:
    assert why_not(verbs("a"), "workloads") is None
    assert why_not(cells("a"), "workloads") is None, "loads alone, too"
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
    with pytest.raises(UsageError, match=r"mine\.yaml:\d+: share_process.*closed-1 "):
        file(tmp_path, text)
    with pytest.raises(UsageError, match="share_process"):
        file(tmp_path, FILE.replace("share_process: loads", "share_process: all"))


SHARED_VERBS = """
servers: [alpha, beta]
share_process: workloads
workloads: [hello, ping, json]
loads: {users: 8}
trials: 3
parts:
  - name: verbs
    measured: {window_s: 20}
  - name: one
    workloads: hello
  - name: fresh
    measured: {total_requests: 1000}
"""


def test_a_plan_file_says_which_parts_share_workloads(tmp_path: Path) -> None:
    made = file(tmp_path, SHARED_VERBS)
    assert [part.share_process for part in made.parts] == ["workloads", None, None]
    assert Plan.model_validate(made.as_stored()) == made
    text = SHARED_VERBS.replace("share_process: workloads\n", "", 1)
    alone = text.replace("name: one", "name: one\n    share_process: workloads")
    with pytest.raises(UsageError, match=r"mine\.yaml:\d+: share_process"):
        file(tmp_path, alone)
    fresh = text.replace("name: fresh", "name: fresh\n    share_process: workloads")
    with pytest.raises(UsageError, match=r"hello/closed-8.*warm_up_s"):
        file(tmp_path, fresh)


def test_a_plan_that_is_cut_short_still_shares(tmp_path: Path) -> None:
    made = file(tmp_path, SHARED_VERBS)
    quick = quicken(made)
    assert quick.estimate_s < made.estimate_s
    assert [part.share_process for part in quick.parts] == ["workloads", None, None]
    shared = [trials for trials in processes(quick) if trials[0].process is not None]
    assert shared
    assert all(len(trials) > 1 for trials in shared)
    only = made.only("verbs/alpha/*")
    assert only is not None
    assert {len(trials) for trials in processes(only)} == {3}
