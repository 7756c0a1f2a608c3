"""Loads that share a process: intervals cover with the process as the sample, and an order that matters is
found. Small and seeded.
"""

from __future__ import annotations

import pytest

from prony_selftest.shared_processes import (
    WORLDS,
    SharedWorld,
    loads_covered,
    order_found,
    pooled_covered,
    servers_covered,
    unpaired_width,
)

PLAIN, _, WARMING, CARRY_OVER, _ = WORLDS
BY_NAME = [pytest.param(world, id=world.name) for world in WORLDS]


@pytest.mark.parametrize("world", BY_NAME[:4])
@pytest.mark.parametrize("blocks", [5, 10])
@pytest.mark.rarely
def test_ratios_between_servers_cover_also_where_a_load_leaves_something_behind(
    world: SharedWorld, blocks: int
) -> None:
    assert servers_covered(world, blocks, 400).could_be(0.93, 0.97)


@pytest.mark.rarely
def test_loads_of_one_process_are_no_samples_of_their_own() -> None:
    """So this simulation can tell."""
    assert not pooled_covered(PLAIN, 10, 200).could_be(0.88, 1)


@pytest.mark.parametrize("world", WORLDS[:2], ids=lambda world: world.name)
@pytest.mark.rarely
def test_ratios_between_loads_cover(world: SharedWorld) -> None:
    assert loads_covered(world, 5, 200).could_be(0.95, 0.995)


@pytest.mark.rarely
def test_a_fixed_order_makes_warming_look_like_a_load() -> None:
    assert not loads_covered(WARMING, 10, 60, balanced=False).could_be(0.8, 1)
    assert loads_covered(WARMING, 10, 60).could_be(0.93, 1)


def test_what_a_process_has_in_common_cancels_between_its_loads() -> None:
    assert unpaired_width(PLAIN, 10, 60) > 1.5


@pytest.mark.parametrize("world", WORLDS[:2], ids=lambda world: world.name)
@pytest.mark.rarely
def test_an_order_that_does_not_matter_is_rarely_found(world: SharedWorld) -> None:
    assert order_found(world, 5, 200).could_be(0, 0.05)


@pytest.mark.parametrize("world", [WARMING, CARRY_OVER], ids=lambda world: world.name)
def test_an_order_that_matters_is_found(world: SharedWorld) -> None:
    assert order_found(world, 10, 60).could_be(0.9, 1)
