"""Turns of a duet: balanced, drawn, complete."""

from __future__ import annotations

import itertools

import pytest

from prony.plan.turns import LEFT_OUT_S, TURN_S, turns


def order(seed: str, servers: int, window_s: float) -> list[int]:
    return [turn.server for turn in turns(seed, servers, window_s) if turn.opens_s < turn.ends_s]


def test_two_servers_alternate_in_groups_that_are_drawn() -> None:
    kinds = set()
    for seed in range(40):
        found = order(str(seed), 2, 10)
        assert len(found) == 20
        assert found.count(0) == 10
        groups = [tuple(found[at : at + 4]) for at in range(0, 20, 4)]
        assert set(groups) <= {(0, 1, 1, 0), (1, 0, 0, 1)}
        kinds |= {tuple(groups)}
    assert len(kinds) > 10
    assert order("7", 2, 10) == order("7", 2, 10)


@pytest.mark.parametrize("servers", [3, 4])
def test_more_servers_have_every_place_equally_often(servers: int) -> None:
    found = order("1", servers, 12)
    rounds = [found[at : at + servers] for at in range(0, len(found), servers)]
    for place in range(servers):
        assert all([one[place] for one in rounds].count(server) == len(rounds) / servers
                   for server in range(servers))  # fmt: skip


@pytest.mark.parametrize("servers", [2, 3, 5, 8])
def test_practice_is_never_measured(servers: int) -> None:
    found = turns("1", servers, 3)
    assert [turn.measured for turn in found[: servers + 1]] == [False] * servers + [True]


def test_a_round_of_practice_precedes_and_the_window_is_full() -> None:
    found = turns("1", 2, 9.5)
    assert {turn.server for turn in found[:2]} == {0, 1}
    assert all(turn.opens_s == turn.ends_s for turn in found[:2])
    measured = [turn for turn in found[2:] if turn.server == 0]
    assert sum(turn.ends_s - turn.opens_s for turn in measured) == pytest.approx(10 * TURN_S)
    assert all(turn.opens_s - turn.begins_s == pytest.approx(LEFT_OUT_S) for turn in measured)
    assert all(a.ends_s == pytest.approx(b.begins_s) for a, b in itertools.pairwise(found))
