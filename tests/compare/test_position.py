"""An effect of position is found where there is one and rarely where there is none."""

from __future__ import annotations

import math
import random
from itertools import islice

import numpy as np
import pytest

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
def test_position_that_cannot_be_told_is_none(servers: int, blocks: int) -> None:
    assert experiment(np.random.default_rng(3), servers, blocks, effect=0.03) is None
    assert position_effect([1.0, 2.0] * 4, [0, 1] * 4, [0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4) is None
