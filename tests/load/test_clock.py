"""Clocks of two hosts side by side: simulated round trips over ways that are jittery and uneven."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony_hosts.load.clock import STRETCHES, ClockEstimate, ClockEstimator, RoundTrip, fitted

S = 1_000_000_000


def trips(
    *, offset_s: float, drift: float, span_s: float, every_s: float, way_s: float, jitter_s: float, seed: int
) -> list[RoundTrip]:
    """Round trips whose two ways each take `way_s` and an exponential delay."""
    rng = random.Random(seed)
    done = []
    at = 5.0
    while at < 5.0 + span_s:
        there = way_s + rng.expovariate(1 / jitter_s)
        back = way_s + rng.expovariate(1 / jitter_s)
        read = at + there
        host = read + offset_s + drift * read
        done.append(RoundTrip(round(at * S), round(host * S), round((read + back) * S)))
        at += every_s
    return done


def estimate(done: list[RoundTrip]) -> ClockEstimate:
    estimator = ClockEstimator()
    for one in done:
        estimator.add(one)
    return estimator.estimate()


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-1e5, 1e5),
    st.floats(-100e-6, 100e-6),
    st.sampled_from([1.0, 10.0, 60.0, 600.0]),
    st.integers(0, 10_000),
)
def test_an_instant_is_put_on_the_other_clock_to_within_the_uncertainty(
    offset_s: float, drift: float, span_s: float, seed: int
) -> None:
    known = {"offset_s": offset_s, "drift": drift, "span_s": span_s, "seed": seed}
    line = estimate(trips(every_s=0.1, way_s=100e-6, jitter_s=50e-6, **known))  # type: ignore[arg-type]
    for at in (5.0, 5.0 + span_s / 2, 5.0 + span_s):
        true_ns = (offset_s + drift * at) * S
        assert abs(line.offset_at_ns(at * S) - true_ns) <= line.uncertainty_ns + 100e-6 * S * (span_s < 2)
    assert line.uncertainty_ns < 250e-6 * S


def test_the_drift_of_a_clock_is_found_in_a_minute() -> None:
    done = trips(offset_s=3.0, drift=20e-6, span_s=60, every_s=0.2, way_s=1e-4, jitter_s=1e-4, seed=3)
    assert estimate(done).drift == pytest.approx(20e-6, abs=2e-6)


def test_over_a_second_no_drift_is_claimed() -> None:
    done = trips(offset_s=3.0, drift=0.0, span_s=1, every_s=0.05, way_s=1e-4, jitter_s=1e-3, seed=3)
    assert estimate(done).drift == 0.0


def test_the_shortest_round_trip_decides_not_the_mean() -> None:
    # Every way back takes 10 ms but once.
    slow = [RoundTrip(at * 1000, at * 1000 + 50, at * 1000 + 10_000_100) for at in range(20)]
    line = fitted([*slow, RoundTrip(30_000, 30_050, 30_100)])
    assert (line.offset_ns, line.uncertainty_ns) == (0.0, 50.0)


def test_a_clock_that_was_set_is_uncertain_by_the_step() -> None:
    before = [RoundTrip(at * S, at * S, at * S + 1000) for at in range(10)]
    after = [RoundTrip(at * S, at * S + S // 10, at * S + 1000) for at in range(10, 20)]
    assert fitted([*before, *after]).uncertainty_ns > 0.02 * S


def test_days_of_round_trips_need_no_more_memory_than_minutes() -> None:
    done = trips(offset_s=1.0, drift=5e-6, span_s=86_400, every_s=10, way_s=1e-4, jitter_s=1e-4, seed=1)
    estimator = ClockEstimator()
    for one in done:
        estimator.add(one)
    line = estimator.estimate()
    assert len(estimator._latest.kept) <= STRETCHES
    assert len(estimator.seen) <= STRETCHES
    assert estimator.seen[-1].middle_ns - min(one.middle_ns for one in estimator.seen) > 43_200 * S
    assert line.round_trips == len(done)
    assert line.drift == pytest.approx(5e-6, abs=1e-6)


def test_a_drift_that_changes_over_hours_leaves_instants_as_certain_as_before() -> None:
    def ahead_s(at_s: float) -> float:
        return 10e-6 * at_s * at_s / 7200  # 20 ppm more in two hours

    done = [
        RoundTrip(at * S, round((at + 1e-4 + ahead_s(at)) * S), round((at + 2e-4) * S)) for at in range(7200)
    ]
    line = estimate(done)
    assert line.round_trips == 7200
    assert line.uncertainty_ns < 250e-6 * S
    assert abs(line.offset_at_ns(7200 * S) - ahead_s(7200) * S) < 200e-6 * S


@pytest.mark.parametrize("seed", range(50))
def test_the_noise_of_two_seconds_is_no_drift(seed: int) -> None:
    noisy = trips(offset_s=0, drift=0, span_s=2.5, every_s=0.05, way_s=5e-4, jitter_s=5e-4, seed=seed)
    line = estimate(noisy)
    assert abs(line.drift) < 100e-6
    clock = line.evidence(between_ns=(0, 60 * S))
    # What the drift may be all the same counts as skew.
    assert clock.skew_s >= line.uncertainty_ns / S + abs(line.drift) * 50


@given(st.floats(-1e14, 1e14), st.floats(-1e-4, 1e-4), st.floats(0, 1e15), st.floats(0, 1e15))
def test_there_and_back_is_the_same_instant(offset: float, drift: float, at: float, lab: float) -> None:
    line = ClockEstimate(at, offset, drift, 0.0, 1)
    assert line.lab_ns(line.host_ns(lab)) == pytest.approx(lab, abs=2)


def test_skew_is_what_the_estimate_in_use_was_off_by_and_the_uncertainty() -> None:
    used = ClockEstimate(0.0, 1000.0, 0.0, 500.0, 5, drift_uncertainty=100e-6)
    found = ClockEstimate(0.0, 1000.0, 1e-6, 300.0, 50, drift_uncertainty=0.5e-6)
    clock = found.evidence(used, between_ns=(0.0, 60 * S))
    assert clock.skew_s == pytest.approx(60e-6 + 30e-6 + 300e-9)
    assert clock.round_trips == 50
    assert found.evidence().skew_s == clock.uncertainty_s == pytest.approx(300e-9)


def after_an_hour(ahead_s: Callable[[float], float]) -> tuple[float, float]:
    """Skew of a window of an hour that is cut by the clock of its beginning, in ms: as it is told, and as it
    is. `ahead_s` of the host's clock at a time.
    """
    estimator = ClockEstimator()
    opens, closes = 600, 4200
    for at in range(closes + 10):
        estimator.add(RoundTrip(at * S, round((at + 1e-4 + ahead_s(at)) * S), round((at + 2e-4) * S)))
        if at == opens:
            begun = estimator.estimate()
            cut = begun.kept_from(opens * S)
    told = estimator.estimate().evidence(
        cut, between_ns=(opens * S, closes * S), known=(begun,), seen=estimator.seen
    )
    really_s = max(abs(ahead_s(at) - ahead_s(opens)) for at in range(opens, closes))
    return told.skew_s * 1e3, really_s * 1e3


def test_an_hour_is_as_skewed_as_the_clocks_drifted_apart_in_it() -> None:
    told_ms, really_ms = after_an_hour(lambda at: 2e-6 * at)
    assert really_ms == pytest.approx(7.2, abs=0.1)
    assert really_ms <= told_ms < really_ms + 1


def test_a_clock_that_runs_otherwise_now_says_nothing_of_an_hour_ago() -> None:
    # Apart by 3.3 ms in the middle, together again at the end, and by then apart at 4 ppm.
    told_ms, really_ms = after_an_hour(lambda at: 1e-9 * (at - 600) * (at - 4200))
    assert really_ms == pytest.approx(3.24, abs=0.1)
    assert really_ms * 0.95 <= told_ms < really_ms + 1


def test_without_a_round_trip_nothing_is_known() -> None:
    with pytest.raises(ValueError, match="no round trips"):
        ClockEstimator().estimate()
    estimator = ClockEstimator()
    estimator.add(RoundTrip(10, 5, 9))
    with pytest.raises(ValueError, match="no round trips"):
        estimator.estimate()
