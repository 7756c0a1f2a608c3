"""Ratios between loads of one process are paired by it, and an order of loads that matters is found."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from prony.compare.shared import LoadSample, load_ratios, order_between, order_effects, order_of_one
from prony.plan.processes import LoadOrders

LOADS = ("1", "8", "64", "512")


def trials(
    effect: dict[str, float] | None = None,
    place: float = 0.0,
    servers: str = "ab",
    blocks: int = 8,
    noise: float = 0.005,
    seed: int = 1,
) -> list[LoadSample]:
    """Processes 5 % apart, each load twice the one before; `effect`: what a load leaves to the next one."""
    rng, orders = np.random.default_rng(seed), LoadOrders(str(seed))
    made = []
    for server in servers:
        for block in range(blocks):
            level = rng.normal(0, 0.05)
            order = orders.order(LOADS, block)
            for at, load in enumerate(order):
                after = LOADS[order[at - 1]] if at else ""
                log = level + load * math.log(2) + place * at + (effect or {}).get(after, 0.0)
                value = math.exp(log + rng.normal(0, noise))
                made.append(LoadSample(server, f"{server}{block}", LOADS[load], value, at, after))
    return made


@pytest.mark.parametrize(("of_a", "of_b"), [(-0.1, 0.0), (0.0, -0.1), (-0.1, -0.1), (0.0, 0.0)])
def test_an_order_that_acts_on_one_server_is_a_bias_of_the_ratio(of_a: float, of_b: float) -> None:
    """After the largest load come two of eight trials of every other one: a quarter of the effect."""
    samples = trials({"512": of_a}, servers="a") + trials({"512": of_b}, servers="b", seed=1)
    source = order_of_one(samples, "a", "b", "8")
    moved = (of_a - of_b) / 4
    if not moved:
        assert (source.down, source.up) == (0, 0)
        return
    near, far = (source.up, source.down) if moved < 0 else (source.down, source.up)
    assert near == pytest.approx(abs(moved), abs=0.01)
    assert near > abs(moved)
    assert far == 0
    swapped = order_of_one(samples, "b", "a", "8")
    assert (swapped.down, swapped.up) == pytest.approx((source.up, source.down))
    assert order_of_one(samples, "a", "b", "1024").down == 0, "no such load"


def test_neighbouring_loads_are_paired_by_process() -> None:
    found = load_ratios(trials(), LOADS)
    assert [(one.server, one.load, one.other) for one in found] == [
        (server, load, other) for server in "ab" for other, load in pairwise(LOADS)
    ]
    for one in found:
        assert one.paired
        assert one.processes == 8
        assert one.low is not None
        assert one.high is not None
        assert one.low < 2 < one.high
        assert one.high / one.low < 1.03, "the 5 % between processes are not in it"


def test_a_load_that_slows_the_next_widens_the_ratio_to_its_neighbour() -> None:
    """The largest load never follows itself; a quarter of the other's trials do: its ratio is too high."""
    samples = trials({"512": -0.1})
    last = LOADS[-1]
    source = order_between(samples, "a", last, LOADS[-2])
    assert source.down > 0.1 / 4
    assert (order_between(trials(), "a", last, LOADS[-2]).down, source.up) == (0, 0)
    found = next(one for one in load_ratios(samples, LOADS) if (one.server, one.load) == ("a", last))
    assert found.low is not None
    assert found.low < 2 < found.ratio


def test_loads_that_never_shared_a_process_are_not_paired() -> None:
    apart = [one._replace(process=f"{one.process}-{one.load}", place=0, after="") for one in trials()]
    assert not any(one.paired for one in load_ratios(apart, LOADS))
    assert order_effects(apart) is None


def test_two_processes_in_one_block_are_two() -> None:
    """The server died half-way: its loads are paired with those of the same process only."""
    one, *others = load_ratios(
        [t._replace(process="a0-again") if t.process == "a0" and t.place > 1 else t for t in trials()], LOADS
    )
    assert min(found.processes for found in (one, *others)) < 8


def test_with_too_few_processes_there_is_no_interval() -> None:
    (first, *_) = load_ratios(trials(blocks=2), LOADS)
    assert (first.low, first.high) == (None, None)
    assert first.ratio == pytest.approx(2, rel=0.05)


def test_what_a_load_leaves_behind_is_found_and_named() -> None:
    found = order_effects(trials({"512": math.log(0.93)}))
    assert found is not None
    assert found.found
    assert found.carry_over is not None
    assert found.carry_over.after == "512"
    assert found.carry_over.low < 1 - 0.07 * 0.75 < found.carry_over.high, "against the mean of four loads"
    assert found.place is not None
    assert (found.trials, found.processes) == (64, 16)


def test_a_server_that_gets_faster_from_load_to_load_is_found() -> None:
    found = order_effects(trials(place=0.02))
    assert found is not None
    assert found.place is not None
    assert found.place.found
    assert found.place.ratio == pytest.approx(math.exp(0.02), rel=0.01)


def test_without_an_effect_one_in_twenty_is_found() -> None:
    effects = [order_effects(trials(blocks=4, seed=seed)) for seed in range(200)]
    assert 1 <= sum(one is not None and one.found for one in effects) <= 22


@pytest.mark.parametrize(("servers", "blocks"), [("a", 1), ("a", 2)])
def test_what_cannot_be_distinguished_is_none(servers: str, blocks: int) -> None:
    found = order_effects(trials(servers=servers, blocks=blocks))
    assert found is not None
    assert found.carry_over is None
    assert not found.found or found.place is not None
