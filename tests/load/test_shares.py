"""A load that is shared out over several engines: nothing is lost or doubled, whatever the weights."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.errors import UsageError
from prony.load.contract import EngineLoad, Share, engine_plan
from prony.plan.load import ClosedLoad, Load, OpenLoad
from prony.plan.step import Step
from prony.plan.workload import Scenario, Workload
from prony_hosts.load.shares import MOST_SLOTS, shared, slots

WEIGHTS = st.lists(st.sampled_from([0.5, 1.0, 1.25, 2.0, 3.0, 7.0]), min_size=1, max_size=8)


def a_load(load: Load, **known: object) -> EngineLoad:
    workload = Workload(name="w", scenarios=(Scenario(name="s", steps=(Step(name="get", path="/"),)),))
    return EngineLoad.model_validate(
        {"url": "http://127.0.0.1:1", "workload": workload, "load": load, "cpus": (0,), **known}
    )


def owned(share: Share, things: int) -> set[int]:
    """Which of so many things are this engine's, by the definition."""
    return {thing for thing in range(things) if thing % share.of in share.slots}


@given(WEIGHTS, st.integers(0, 500))
def test_each_thing_belongs_to_one_engine(weights: list[float], things: int) -> None:
    shares = slots(weights)
    parts = [owned(share, things) for share in shares]
    assert sorted(thing for part in parts for thing in part) == list(range(things))
    assert [share.count(things) for share in shares] == [len(part) for part in parts]


@given(WEIGHTS)
def test_slots_are_in_the_ratio_of_the_weights_and_spread_evenly(weights: list[float]) -> None:
    shares = slots(weights)
    for weight, share in zip(weights, shares, strict=True):
        part = weight / sum(weights)
        assert len(share.slots) / share.of == pytest.approx(part)
        # Nobody is ever further from its part of what was given out than two things.
        assert all(abs(share.count(things) - part * things) < 2 for things in range(2 * share.of))


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=6))
def test_any_weights_are_met_to_within_a_slot(weights: list[float]) -> None:
    shares = slots(weights)
    assert shares[0].of <= MOST_SLOTS + len(weights)
    for weight, share in zip(weights, shares, strict=True):
        assert len(share.slots) / share.of == pytest.approx(
            weight / sum(weights), abs=2 * len(weights) / MOST_SLOTS
        )


def test_an_engine_is_given_the_whole_load_its_slots_and_waits_for_the_start() -> None:
    first, second = shared(a_load(ClosedLoad(users=100), after_s=1.0), (1, 2))
    assert first is not None
    assert second is not None
    plan = engine_plan(second)
    assert plan["load"]["users"] == 100
    assert plan["start"] == "commanded"
    assert plan["share"] == {"slots": [0, 2], "of": 3}
    assert engine_plan(first)["share"] == {"slots": [1], "of": 3}


def test_alone_an_engine_is_told_nothing_of_shares() -> None:
    plan = engine_plan(a_load(ClosedLoad(users=1), after_s=1.0))
    assert not {"share", "start"} & plan.keys()


def test_whom_nothing_is_left_for_takes_no_part() -> None:
    assert [one is not None for one in shared(a_load(ClosedLoad(users=2)), (1, 1, 1))] == [True, True, False]
    few = a_load(ClosedLoad(users=9), total_requests=1)
    assert [one is not None for one in shared(few, (1, 1))] == [True, False]
    places = a_load(OpenLoad(rate_per_s=10, max_users=1))
    assert [one is not None for one in shared(places, (1, 3))] == [False, True]


def test_what_cannot_be_shared_out_is_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"rates of wrk's threads cannot be split .* use `prony load`"):
        shared(a_load(ClosedLoad(users=9), rate_groups=2), (1, 1))
    with pytest.raises(UsageError, match="a request log cannot be split"):
        shared(a_load(ClosedLoad(users=9), log="requests.csv"), (1, 1))
    for weights in ((), (1, 0), (1, -1), (float("nan"),)):
        with pytest.raises(UsageError, match="expected at least one, all above 0"):
            shared(a_load(ClosedLoad(users=9)), weights)
