"""Orders of servers: every position and every predecessor equally often."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats as untyped_stats

from prony.plan.balanced import balanced_orders, drawn_orders, williams_square
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.part import Part
from prony.plan.plan import Plan
from prony.plan.target import Launch
from prony.plan.trial import TrialPlan
from prony.plan.workload import from_url

stats: Any = untyped_stats
Order = tuple[int, ...]
Orders = Callable[[int, random.Random], Iterator[Order]]
BOTH = pytest.mark.parametrize("orders", [drawn_orders, balanced_orders])
SEEDS = range(2000)


@pytest.mark.parametrize("items", range(1, 10))
def test_a_square_balances_positions_and_predecessors(items: int) -> None:
    rows = williams_square(items)
    assert all(sorted(row) == list(range(items)) for row in rows)
    places = Counter((at, item) for row in rows for at, item in enumerate(row))
    assert len(set(places.values())) == 1
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert len(follows) == items * (items - 1)
    assert len(set(follows.values())) <= 1


def drawn(items: int, blocks: int, seed: int) -> list[Order]:
    return list(islice(drawn_orders(items, random.Random(seed)), blocks))


@BOTH
@pytest.mark.parametrize("items", [2, 3, 4, 5])
def test_after_so_many_blocks_as_items_everyone_had_every_place_once(orders: Orders, items: int) -> None:
    for seed in range(20):
        made = list(islice(orders(items, random.Random(seed)), items))
        assert all(sorted(column) == list(range(items)) for column in zip(*made, strict=True))


@BOTH
def test_two_servers_take_turns(orders: Orders) -> None:
    for seed in range(20):
        first = [order[0] for order in islice(orders(2, random.Random(seed)), 6)]
        assert all(set(first[at : at + 2]) == {0, 1} for at in (0, 2, 4))


def test_every_order_of_two_servers_is_drawn() -> None:
    """Over ten blocks a b b a or b a a b, five times: 32 orders. There were two, whatever the seed."""
    seen = Counter(tuple(drawn(2, 10, seed)) for seed in SEEDS)
    assert len(seen) == 32
    assert stats.chisquare(list(seen.values())).pvalue > 0.001
    odd = Counter(drawn(2, 11, seed)[-1] for seed in SEEDS)
    assert stats.chisquare([odd[0, 1], odd[1, 0]]).pvalue > 0.001, "the last of an odd number"


@pytest.mark.parametrize("items", [3, 4, 5])
def test_more_servers_have_more_orders(items: int) -> None:
    blocks = 2 * len(williams_square(items))
    assert len({tuple(drawn(items, blocks, seed)) for seed in SEEDS}) > 1500


@pytest.mark.parametrize("items", [2, 3, 4, 5])
def test_every_group_balances_places_and_predecessors(items: int) -> None:
    rows = len(williams_square(items))
    for seed in range(50):
        orders = drawn(items, 4 * rows, seed)
        for at in range(0, len(orders), rows):
            group = orders[at : at + rows]
            places = Counter((place, item) for order in group for place, item in enumerate(order))
            assert set(places.values()) == {rows // items}
            follows = Counter(pair for order in group for pair in pairwise(order))
            assert set(follows.values()) == {rows // items}
            assert len(follows) == items * (items - 1)


@pytest.mark.parametrize("items", [2, 3, 4])
def test_who_stands_where_is_even_and_does_not_depend_on_the_group_before(items: int) -> None:
    """By chi-square over 2,000 fixed seeds, for every place of every block of a group."""
    rows = len(williams_square(items))
    orders = [drawn(items, 2 * rows, seed) for seed in SEEDS]
    p_values = []
    for block in range(rows):
        for place in range(items):
            table = np.zeros((items, items))
            for order in orders:
                table[order[block][place], order[block + rows][place]] += 1
            p_values += [stats.chisquare(table.sum(axis=1)).pvalue, stats.chisquare(table.sum(axis=0)).pvalue]
            p_values.append(stats.chi2_contingency(table).pvalue)
    assert min(p_values) > 0.001 / len(p_values)


def test_of_two_servers_each_follows_itself_within_a_group_and_by_chance_from_one_to_the_next() -> None:
    """Where it does not, each follows the other one, which a comparison allows for."""
    turns = 0
    for seed in SEEDS:
        steps = [before[-1] == after[0] for before, after in pairwise(drawn(2, 10, seed))]
        assert all(steps[::2]), "within a group"
        turns += steps[1::2].count(False)
    assert stats.binomtest(turns, 4 * len(SEEDS)).pvalue > 0.001


@pytest.mark.parametrize("items", [2, 3, 4, 5])
def test_from_block_to_block_nobody_follows_a_certain_other_one_more_often(items: int) -> None:
    """By chi-square over 2,000 fixed seeds, within a group and from one group to the next."""
    rows = len(williams_square(items))
    for step in (0, rows - 1, rows):
        follows = Counter[tuple[int, int]]()
        for seed in SEEDS:
            orders = drawn(items, rows + 2, seed)
            follows[orders[step][-1], orders[step + 1][0]] += 1
        others = [follows[a, b] for a in range(items) for b in range(items) if a != b]
        itself = [follows[a, a] for a in range(items)]
        assert all(stats.chisquare(seen).pvalue > 0.001 for seen in (others, itself) if sum(seen))


@pytest.mark.parametrize(("items", "spread"), [(2, 1), (3, 6), (4, 6)])
def test_of_the_loads_of_a_process_everyone_follows_everyone_also_across_blocks(
    items: int, spread: int
) -> None:
    """Itself included: with two items, drawn squares let 1 follow 0 in 25 of 40 trials."""
    for seed in range(10):
        orders = islice(balanced_orders(items, random.Random(seed)), 40)
        follows = Counter(pairwise(item for order in orders for item in order))
        across = [follows[a, b] for a in range(items) for b in range(items) if items == 2 or a != b]
        assert max(across) - min(across) <= spread


@BOTH
def test_who_begins_is_drawn(orders: Orders) -> None:
    begins = Counter(next(orders(3, random.Random(seed)))[0] for seed in range(300))
    assert min(begins.values()) > 60


def test_one_server_is_its_own_order() -> None:
    assert drawn(1, 2, seed=1) == [(0,), (0,)]


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


def test_a_plan_draws_its_order() -> None:
    """Of three blocks the first two are drawn together and the last by itself; there were two orders."""
    seen = Counter(tuple(one.cell for one in two_servers(seed).order()) for seed in range(200))
    assert len(seen) == 4
    assert stats.chisquare(list(seen.values())).pvalue > 0.001
