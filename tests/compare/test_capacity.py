"""The search for a capacity: never more than was offered and held, near the truth, and it always ends."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.compare.capacity import MOST_UNDECIDED, CapacitySearch, End, Outcome, SearchResult

Try = Callable[[float], tuple[Outcome, float | None]]


def run(search: CapacitySearch, attempt: Try) -> SearchResult:
    for _ in range(search.most_trials + 1):
        rate = search.ask()
        if rate is None:
            break
        search.tell(rate, *attempt(rate))
    assert search.ask() is None
    return search.result


def server(capacity: float, noise: float = 0.0, client: float = math.inf, seed: int = 0) -> Try:
    """Meets its objective up to `capacity`; the pressure rises with the fourth power of the rate."""
    rng = np.random.default_rng(seed)

    def attempt(rate: float) -> tuple[Outcome, float | None]:
        if rate > client:
            return Outcome.CLIENT, None
        pressure = (rate / capacity) ** 4 * math.exp(rng.normal(0, noise))
        return (Outcome.MET if pressure < 1 else Outcome.MISSED), pressure

    return attempt


def search(start: float = 100.0, **more: float) -> CapacitySearch:
    return CapacitySearch(start, 1.0, 1e6, **more)  # type: ignore[arg-type]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(1.1, 9e5), st.floats(1, 1e6))
def test_without_noise_the_truth_is_in_the_bracket(capacity: float, start: float) -> None:
    found = run(search(start), server(capacity))
    assert found.end is End.FOUND
    assert found.held_per_s is not None
    assert found.failed_per_s is not None
    assert found.held_per_s <= capacity <= found.failed_per_s
    assert found.failed_per_s <= found.held_per_s * 1.0501


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.floats(10, 1e5), st.floats(0.05, 0.5))
def test_with_noise_it_ends_near_the_truth(seed: int, capacity: float, noise: float) -> None:
    found = run(search(), server(capacity, noise, seed=seed))
    assert found.end in {End.FOUND, End.TRIALS}
    assert found.held_per_s is not None
    # noise of 0.5 in the pressure is 12 % of the rate at the fourth power; and the bracket is 5 % wide
    assert capacity * math.exp(-noise) / 1.06 <= found.held_per_s <= capacity * math.exp(noise)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.floats(10, 1e5), st.floats(5, 1e5))
def test_never_more_than_the_client_could_offer(seed: int, capacity: float, client: float) -> None:
    found = run(search(), server(capacity, 0.2, client, seed))
    if found.held_per_s is not None:
        assert found.held_per_s <= client
    if client < 0.7 * capacity:
        assert found.end is End.CLIENT
        assert found.failed_per_s is None


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=60), st.integers(1, 40))
def test_whatever_it_is_told_it_ends_and_claims_only_what_held(told: list[Outcome], most: int) -> None:
    hunt = search(most_trials=most)
    said: dict[float, list[Outcome]] = {}
    for number in range(10_000):
        rate = hunt.ask()
        if rate is None:
            break
        outcome = told[number % len(told)]
        said.setdefault(rate, []).append(outcome)
        hunt.tell(rate, outcome, 0.1 if outcome is Outcome.MET else None)
    found = hunt.result
    assert found.trials <= most
    assert found.end is not None
    if found.held_per_s is not None:
        assert Outcome.MET in said[found.held_per_s]
        assert found.held_per_s < min(found.failed_per_s or math.inf, found.client_per_s or math.inf)


def test_near_the_limit_one_trial_is_not_believed() -> None:
    hunt = search()
    hunt.tell(100.0, Outcome.MET, 0.9)
    assert hunt.ask() == 100.0
    hunt.tell(100.0, Outcome.MET, 0.9)
    assert hunt.ask() == 200.0
    hunt.tell(200.0, Outcome.MISSED, 40.0)
    assert hunt.ask() == pytest.approx(math.sqrt(100 * 200))


def test_what_held_above_a_failure_is_forgotten() -> None:
    hunt = search()
    hunt.tell(100.0, Outcome.MET, 0.1)
    hunt.tell(200.0, Outcome.MET, 0.1)
    hunt.tell(150.0, Outcome.MISSED, 9.0)
    assert hunt.result.held_per_s == 100.0
    assert hunt.result.failed_per_s == 150.0


def test_its_ends() -> None:
    assert run(search(), lambda _: (Outcome.MISSED, 9.0)).end is End.NEVER
    assert run(search(), lambda _: (Outcome.MET, 0.1)).end is End.HIGHEST
    assert run(search(), lambda _: (Outcome.UNUSABLE, None)).end is End.UNUSABLE
    assert run(search(), lambda _: (Outcome.CLIENT, None)).end is End.CLIENT
    assert run(search(most_trials=2), server(5e5)).end is End.TRIALS


@pytest.mark.parametrize(("start", "low", "high"), [(1, 2, 3), (5, 2, 3), (1, 0, 3)])
def test_absurd_ranges_are_refused(start: float, low: float, high: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        CapacitySearch(start, low, high)


def test_a_rate_that_three_trials_leave_undecided_was_not_shown_to_hold() -> None:
    def attempt(rate: float) -> tuple[Outcome, float | None]:
        if rate < 900:
            return Outcome.MET, 0.1
        return (Outcome.UNDECIDED, 1.0) if rate < 1100 else (Outcome.MISSED, 2.0)

    hunt = search()
    found = run(hunt, attempt)
    assert found.end is End.UNDECIDED
    assert found.held_per_s is not None
    assert found.undecided_per_s is not None
    assert found.held_per_s < 900 <= found.undecided_per_s <= found.held_per_s * 1.0501
    assert hunt.tallies[found.undecided_per_s].outcomes[Outcome.UNDECIDED] == MOST_UNDECIDED


def test_undecided_trials_do_not_outvote_those_that_decide() -> None:
    hunt = search()
    for outcome in (Outcome.UNDECIDED, Outcome.MET, Outcome.UNDECIDED, Outcome.MET):
        assert hunt.ask() == 100.0
        hunt.tell(100.0, outcome, 0.95)
    assert hunt.result.held_per_s == 100.0


def test_nothing_but_undecided_rates_claims_nothing() -> None:
    found = run(search(), lambda _: (Outcome.UNDECIDED, 1.0))
    assert (found.end, found.held_per_s) == (End.UNDECIDED, None)
