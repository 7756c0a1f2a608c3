"""Orders of servers: every position and every predecessor equally often."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice, pairwise

import pytest

from prony.plan.balanced import balanced_orders, williams_square
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.part import Part
from prony.plan.plan import Plan
from prony.plan.target import Launch
from prony.plan.trial import TrialPlan
from prony.plan.workload import from_url


@pytest.mark.parametrize("items", range(1, 10))
def test_a_square_balances_positions_and_predecessors(items: int) -> None:
    rows = williams_square(items)
    assert all(sorted(row) == list(range(items)) for row in rows)
    places = Counter((at, item) for row in rows for at, item in enumerate(row))
    assert len(set(places.values())) == 1
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert len(follows) == items * (items - 1)
    assert len(set(follows.values())) <= 1


@pytest.mark.parametrize("items", [2, 3, 4, 5])
def test_after_so_many_blocks_as_items_everyone_was_first_once(items: int) -> None:
    for seed in range(20):
        orders = list(islice(balanced_orders(items, random.Random(seed)), items))
        assert sorted(order[0] for order in orders) == list(range(items))


def test_two_servers_take_turns() -> None:
    for seed in range(20):
        first = [order[0] for order in islice(balanced_orders(2, random.Random(seed)), 6)]
        assert all(set(first[at : at + 2]) == {0, 1} for at in (0, 2, 4))


@pytest.mark.parametrize(("items", "spread"), [(2, 1), (3, 6), (4, 6)])
def test_everyone_follows_everyone_also_across_blocks(items: int, spread: int) -> None:
    """Itself included: with two items, drawn squares let 1 follow 0 in 25 of 40 trials."""
    for seed in range(10):
        orders = islice(balanced_orders(items, random.Random(seed)), 40)
        follows = Counter(pairwise(item for order in orders for item in order))
        across = [follows[a, b] for a in range(items) for b in range(items) if items == 2 or a != b]
        assert max(across) - min(across) <= spread


def test_who_begins_is_drawn() -> None:
    begins = Counter(next(balanced_orders(3, random.Random(seed)))[0] for seed in range(300))
    assert min(begins.values()) > 60


def test_one_server_is_its_own_order() -> None:
    assert list(islice(balanced_orders(1, random.Random(1)), 2)) == [(0,), (0,)]


def two_servers(seed: int) -> Plan:
    trial = TrialPlan(workload=from_url("/"), load=ClosedLoad(users=1), measured=SteadyWindow(window_s=1.0))
    cells = tuple(cell_of("main", name, Launch(address=name), trial, 3) for name in "ab")
    return Plan(
        name="t",
        command="compare",
        title="t",
        parts=(Part(name="main", title="t", shape="comparison"),),
        cells=cells,
        seed=seed,
    )


def test_a_plan_alternates_its_two_servers() -> None:
    """At three trials one of two servers goes first twice, never three times."""
    for seed in range(20):
        plan = two_servers(seed)
        first = Counter(one.cell for one in plan.order() if one.position == 0)
        assert max(first.values()) == 2
        assert plan.order() == two_servers(seed).order()
