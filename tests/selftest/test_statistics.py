"""The promises of docs/truth.md in small: seeded, and wide enough for their number of rounds not to flake."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.compare import Looks
from prony_selftest.sections import marks
from prony_selftest.statistics import (
    TRUTH,
    Rate,
    coverage,
    false_difference,
    false_equivalence,
    naive_rule,
    power,
    sequential_power,
    share,
    until_clear,
    violation_rates,
)
from prony_selftest.tables import replace_between, table
from prony_selftest.violations import VIOLATIONS, ViolationWorld
from prony_selftest.worlds import ONE_SIDED, WORLDS, World, log_normal

BY_NAME = [pytest.param(world, id=world.name) for world in WORLDS]
LOOKS = Looks(5, 12)


@pytest.mark.parametrize("world", BY_NAME)
@pytest.mark.parametrize("blocks", [5, 10, 20])
@pytest.mark.rarely
def test_intervals_cover(world: World, blocks: int) -> None:
    assert coverage(world, blocks, 1000).could_be(0.93, 0.97)


@pytest.mark.parametrize("world", BY_NAME)
@pytest.mark.rarely
def test_the_same_server_is_not_called_different(world: World) -> None:
    assert false_difference(world, 5, 2, 300).could_be(0, 0.05)
    assert false_difference(world, 5, 3, 200).could_be(0, 0.05)


@pytest.mark.parametrize("world", BY_NAME)
@pytest.mark.rarely
def test_different_servers_are_not_called_equivalent(world: World) -> None:
    assert false_equivalence(world, 10, 300).could_be(0, 0.025)


@pytest.mark.parametrize("world", BY_NAME)
@pytest.mark.rarely
def test_adding_trials_until_it_is_clear_keeps_the_error(world: World) -> None:
    ended = until_clear(world, LOOKS, 0.0, 300)
    assert share(ended, lambda one: one.claim.differs).could_be(0, 0.05)
    ended = until_clear(world, LOOKS, TRUTH, 200, every_look=True)
    assert share(ended, lambda one: one.covered).could_be(0.95, 1)


@pytest.mark.rarely
def test_without_the_rule_it_does_not() -> None:
    """So this simulation can tell: peeking with the ordinary interval errs far more often, where trials
    differ so much that two servers are not soon equivalent, and 1 % is soon passed.
    """
    ended = until_clear(log_normal(0.15), LOOKS, 0.0, 800, naive_rule())
    assert not share(ended, lambda one: one.claim.differs).could_be(0, 0.05)


IN_A_GATE = ("unequal spread", "periodic", "slow starts without a figure")


@pytest.mark.parametrize(
    "world", [pytest.param(one, id=one.name) for one in VIOLATIONS if one.name in IN_A_GATE]
)
@pytest.mark.rarely
def test_a_broken_assumption_makes_no_false_difference(world: ViolationWorld) -> None:
    counts = violation_rates(world, 10, 120)
    assert counts.worst.could_be(0, 0.05)
    assert counts.covered.could_be(0.95, 1)


@pytest.mark.rarely
def test_what_order_and_missing_trials_would_do_without_the_rules() -> None:
    """So this simulation can tell."""
    worlds = {one.name: one for one in VIOLATIONS}
    assert not violation_rates(worlds["carry-over, fixed order"], 20, 120).worst.could_be(0, 0.15)
    counts = violation_rates(worlds["only a has them"], 20, 60)
    assert not counts.alone.could_be(0, 0.5)
    assert counts.worst.could_be(0, 0.05)


def test_unseen_starts_are_beyond_any_interval() -> None:
    """What docs/truth.md says it cannot do, it cannot do."""
    assert not coverage(ONE_SIDED[2], 5, 500).could_be(0.93, 1)


def test_power_rises_with_the_difference_and_with_trials() -> None:
    counts = [power(d, 5, 0.02, 150).right.share for d in (0.01, 0.02, 0.05, 0.10)]
    assert counts == sorted(counts)
    assert counts[-1] >= 0.95
    assert power(0.05, 10, 0.02, 150).right.share >= 0.9
    assert power(0.10, 5, 0.02, 150).wrong.hits == 0


def test_adding_trials_stops_early_where_it_is_clear() -> None:
    clear, unclear = (sequential_power(d, LOOKS, 0.02, 60) for d in (0.10, 0.02))
    assert clear.blocks < 6.5
    assert unclear.blocks > clear.blocks
    assert clear.right.share >= 0.95


def test_the_same_seed_gives_the_same_rate() -> None:
    assert coverage(WORLDS[1], 5, 50) == coverage(WORLDS[1], 5, 50)
    assert coverage(WORLDS[1], 5, 50, seed=1).rounds == 50


def test_a_rate_knows_what_it_could_be() -> None:
    assert Rate(50, 1000).could_be(0, 0.05)
    assert Rate(65, 1000).could_be(0, 0.05)
    assert not Rate(90, 1000).could_be(0, 0.05)
    assert not Rate(900, 1000).could_be(0.93, 0.97)
    assert str(Rate(1, 40)) == "2.5 %"


def test_tables_are_put_between_their_marks() -> None:
    assert replace_between("a\nBEGIN\nold\nEND\nb", "BEGIN", "END", "new\n") == "a\nBEGIN\nnew\nEND\nb"
    with pytest.raises(ValueError, match="expected the lines"):
        replace_between("a\nEND BEGIN", "BEGIN", "END", "")
    assert table(("x",), [(1,)]) == "| x |\n|---|\n| 1 |"


def test_the_page_has_a_place_for_them_and_it_is_filled() -> None:
    page = Path(__file__).parents[2].joinpath("docs/results/truth/statistics.md").read_text(encoding="utf-8")
    begin, end = marks("statistics")
    filled = page[page.index(begin) : page.index(end)]
    for name in [*(world.name for world in (*WORLDS, *ONE_SIDED)), *(world.name for world in VIOLATIONS)]:
        assert name in filled
