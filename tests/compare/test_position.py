"""An effect of position is found where there is one and rarely where there is none."""

from __future__ import annotations

import math
import random
from itertools import islice

import numpy as np
import pytest

from prony.compare import Claim, Sample, compare
from prony.compare.position import PositionEffect, position_effect
from prony.plan.balanced import balanced_orders


def experiment(
    rng: np.random.Generator, servers: int, blocks: int, effect: float, spread: float = 0.01
) -> PositionEffect | None:
    """Servers 30 % apart, blocks 3 %, in balanced orders; each place further back has `effect` less."""
    orders = islice(balanced_orders(servers, random.Random(int(rng.integers(1 << 30)))), blocks)
    rows = [
        (math.exp(0.3 * server + 0.03 * block - effect * place + rng.normal(0, spread)), server, block, place)
        for block, order in enumerate(orders)
        for place, server in enumerate(order)
    ]
    values, names, at, places = zip(*rows, strict=True)
    return position_effect(values, names, at, places)


def test_an_effect_is_measured() -> None:
    made = experiment(np.random.default_rng(1), 3, 10, effect=0.03)
    assert made is not None
    assert made.found
    assert made.ratio == pytest.approx(math.exp(-0.03), rel=0.01)
    assert made.trials == 30


def test_without_an_effect_one_in_twenty_is_found() -> None:
    rng = np.random.default_rng(2)
    found = [made for _ in range(300) if (made := experiment(rng, 2, 6, effect=0.0)) is not None]
    assert len(found) == 300
    assert 3 <= sum(made.found for made in found) <= 30


@pytest.mark.parametrize(("servers", "blocks"), [(1, 5), (2, 1)])
def test_position_that_cannot_be_distinguished_is_none(servers: int, blocks: int) -> None:
    assert experiment(np.random.default_rng(3), servers, blocks, effect=0.03) is None
    assert position_effect([1.0, 2.0] * 4, [0, 1] * 4, [0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4) is None


def equal_servers(first: list[bool], noise: float = 0.001) -> list[Sample]:
    """The second trial of each block has 5 % less; `first`: whether a goes first."""
    rng = np.random.default_rng(4)
    return [
        Sample(name, block, 1000 * math.exp(rng.normal(0, noise)) * (0.95 if place else 1), position=place)
        for block, a_first in enumerate(first)
        for name, place in (("a", int(not a_first)), ("b", int(a_first)))
    ]


def test_a_difference_that_position_made_is_not_claimed() -> None:
    (pair,) = compare(equal_servers([True] * 5 + [False] + [True] * 2)).pairs
    assert pair.low is not None
    assert pair.low > 1
    assert pair.claim in {Claim.OPEN, Claim.EQUIVALENT}
    (moved,) = (source for source in pair.sources if source.name == "position")
    assert moved.down == pytest.approx(-0.75 * math.log(0.95), rel=0.05)
    assert moved.up == 0


def test_in_balanced_order_an_effect_of_position_moves_no_ratio() -> None:
    found = compare(equal_servers([True, False] * 4))
    (pair,) = found.pairs
    assert found.position is not None
    assert found.position.found
    assert all(source.name != "position" for source in pair.sources)


def test_trials_whose_place_is_not_known_have_no_effect_of_position() -> None:
    samples = [s._replace(position=None) for s in equal_servers([True, False] * 4)]
    assert compare(samples).position is None
