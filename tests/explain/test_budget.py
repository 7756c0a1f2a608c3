"""Budgets add up, and their intervals cover: by simulation of profiles of which the truth is known."""

from __future__ import annotations

import math

import pytest

from prony.evidence.profile import Counters, Sampling
from prony.evidence.server import CgroupThrottle
from prony_explain.budget import Budget, Estimate, budget, cost, shares
from prony_explain.collector import CPU_SLICES, SAMPLES, SLICES
from prony_explain.cost import TrialCost
from prony_explain.explanation import LEAST_SEEN, Measured, explain, seen_share
from prony_explain.per_request import of_trial, per_request
from prony_explain.rules import Part, rules_for
from prony_explain.sampling import sampling
from tests.judge.factory import healthy

from .profiles import STAGED, costs, profile, recorded, staged

JVM = rules_for("jvm")
TRUE = {"application": 0.5, "framework": 0.2, "container": 0.15, "kernel network": 0.1, "runtime": 0.05}


def found(samples: Sampling, values: list[float], seen: float | None = None) -> Budget:
    return budget(values, shares(samples, JVM, seen_share=seen))


@pytest.mark.parametrize("seen", [None, 0.7, 1.0, 1.3])
@pytest.mark.parametrize("samples", [recorded(), staged(TRUE)], ids=["recorded", "staged"])
def test_the_parts_add_up_to_the_measured_cost(samples: Sampling, seen: float | None) -> None:
    made = found(samples, [50.0, 52.0, 54.0], seen)
    assert made.cpu_us == pytest.approx(52)
    assert sum(part.us for part in made.parts) == pytest.approx(52)
    assert sum(part.share for part in made.parts) == pytest.approx(1)
    for part in made.parts:
        assert sum(one.us for one in part.names) == pytest.approx(part.us)
        assert part.low_us is not None
        assert part.high_us is not None
        assert part.low_us <= part.us <= part.high_us


def test_what_the_profiler_did_not_see_is_not_attributed() -> None:
    made = found(staged(TRUE), [10.0, 10.0, 10.0], 0.75)
    assert made.share(Part.UNATTRIBUTED) == pytest.approx(0.25)
    assert made.share(Part.APPLICATION) == pytest.approx(0.75 * 0.5, abs=0.05)


def test_the_profiler_s_own_work_is_in_no_part() -> None:
    own = ("[Attach Listener tid=3]", "libasyncProfiler.so`dump")
    stacks = {STAGED["application"]: 60, STAGED["framework"]: 20, own: 20}
    made = found(sampling("samples", [(at, at + 1.0, stacks) for at in range(5)]), [10.0, 10.0, 10.0])
    assert made.profiler_share == pytest.approx(0.2)
    assert made.share(Part.APPLICATION) == pytest.approx(0.75)
    assert made.samples == 400


def test_without_trials_or_slices_there_is_no_interval() -> None:
    few_trials = found(staged(TRUE), [10.0, 11.0])
    assert (few_trials.low_us, few_trials.parts[0].low_us) == (None, None)
    assert few_trials.parts[0].share_low is not None
    few_slices = found(staged(TRUE, slices=3), [10.0, 11.0, 12.0])
    assert few_slices.low_us is not None
    assert few_slices.parts[0].low_us is None


def test_no_sample_and_no_cost_are_said() -> None:
    with pytest.raises(ValueError, match="sample"):
        shares(sampling("samples", []), JVM)
    with pytest.raises(ValueError, match="trial"):
        cost([])
    none = explain("a", profile(staged(TRUE)), JVM, Measured([], TrialCost(1.0, 1.0)))
    assert none.budget is None
    assert len(none.missing) == 1


@pytest.mark.parametrize(("spread", "least"), [(0.0, 0.93), (0.3, 0.90)])
def test_intervals_of_shares_cover(spread: float, least: float) -> None:
    """95 % intervals over 300 profiles, also where the parts differ from slice to slice."""
    inside = dict.fromkeys(TRUE, 0)
    truth = dict.fromkeys(TRUE, 0.0)
    many = shares(staged(TRUE, samples=4_000_000, slices=4000, spread=spread, seed=1), JVM)
    for name in TRUE:
        truth[name] = many.parts[Part(name)].value
    for seed in range(300):
        made = found(staged(TRUE, samples=1200, slices=12, spread=spread, seed=seed), [1.0, 1.0, 1.0])
        for part in made.parts:
            assert part.share_low is not None
            assert part.share_high is not None
            inside[part.part.value] += part.share_low <= truth[part.part.value] <= part.share_high
    assert min(inside.values()) / 300 >= least, inside


def test_intervals_of_costs_cover() -> None:
    """Of the product: five trials around 100 us, and the shares above."""
    inside = 0
    for seed in range(400):
        made = found(
            staged(TRUE, samples=1200, slices=12, seed=seed),
            list(costs(100, 5, error=0.05, seed=seed + 10_000)),
        )
        part = made.parts[0]
        assert part.low_us is not None
        assert part.high_us is not None
        inside += part.low_us <= 50 <= part.high_us
    assert 0.92 <= inside / 400 <= 0.995


def test_a_difference_of_estimates_has_both_errors() -> None:
    apart = Estimate(10, 3, 4).minus(Estimate(7, 4, 9))
    assert (apart.value, apart.error) == (3, 5)
    assert apart.freedom == pytest.approx(5**4 / (3**4 / 4 + 4**4 / 9))
    assert Estimate(10, 3).minus(Estimate(7)).interval() is None
    product = Estimate(10, 1, 5).times(Estimate(0.5, 0.1, 5))
    assert product.error == pytest.approx(math.hypot(0.5, 1))


def test_seen_is_sampled_over_accounted() -> None:
    made = profile(staged(TRUE, samples=9000, slices=9), interval_s=0.001, sampled_cpu_s=10.0, sampled_s=10.0)
    assert seen_share(made) == pytest.approx(1.0)
    half = profile(staged(TRUE, samples=4500, slices=9), interval_s=0.001, sampled_cpu_s=10.0, sampled_s=10.0)
    assert seen_share(half) == pytest.approx(0.5)
    told = explain("a", half, JVM, Measured([TrialCost(10, 5.0)], TrialCost(10, 5.0)))
    assert LEAST_SEEN > 0.5
    assert any("50 %" in caveat for caveat in told.missing)
    assert seen_share(profile(None)) is None
    assert seen_share(profile(staged(TRUE))) is None


def test_counters_per_request() -> None:
    counters = Counters(
        seconds=10,
        switches_voluntary=2000,
        faults_minor=10,
        system_calls={"read": 100, "write": 100},
        system_calls_s=0.5,
    )
    found = profile(None, counters=counters)
    assert per_request(found, 100.0) == pytest.approx(
        {"switches_voluntary": 2.0, "faults": 0.01, "system_calls": 4.0}
    )
    assert per_request(found, None) == {}
    assert per_request(None, 100.0) == {}
    assert per_request(profile(None, counters=None), 100.0) == {}


def test_what_has_seconds_of_its_own_is_divided_by_their_requests() -> None:
    counters = Counters(
        seconds=10, allocated_bytes=4_000_000, allocated_s=8.0, tcp_segments=2500, tcp_opened=10
    )
    waits = sampling("ns", [(8.0, 8.5, {("a", "lock"): 30_000_000}), (8.5, 9.0, {("b",): 10_000_000})])
    found = per_request(profile(None, counters=counters, locks=waits), 100.0)
    assert found == pytest.approx(
        {"lock_waits_us": 400.0, "allocated_bytes": 5000.0, "tcp_segments": 2.5, "tcp_opened": 0.01}
    )
    old = counters.model_copy(update={"allocated_s": None})
    assert per_request(profile(None, counters=old), 100.0)["allocated_bytes"] == 4000.0


def test_collections_are_of_the_time_of_the_log_and_waits_for_a_cpu_of_the_window() -> None:
    counters = Counters(seconds=10, run_queue_wait_s=0.02, collections=6, collection_pause_s=0.012)
    cpu = sampling("samples", [(1.0, 9.0, {("a",): 5})])
    logged = profile(cpu, counters=counters, timeline_from_s=1.0)
    assert per_request(logged, 100.0) == pytest.approx(
        {"cpu_waits_us": 20.0, "collections_per_1000": 7.5, "collection_pauses_us": 15.0}
    )
    old = per_request(profile(cpu, counters=counters), 100.0)
    assert (old["collections_per_1000"], old["collection_pauses_us"]) == pytest.approx((6.0, 12.0))


def test_what_the_engine_and_the_control_group_say_per_request() -> None:
    evidence = healthy()
    assert evidence.engine is not None
    assert evidence.engine.window is not None
    assert evidence.server_window is not None
    window = evidence.engine.window.model_copy(
        update={"completed": 1000, "bytes_sent": 80_000, "bytes_received": 150_000}
    )
    engine = evidence.engine.model_copy(update={"window": window})
    throttle = CgroupThrottle(periods=100, throttled_periods=20, throttled_s=0.5)

    def with_throttle(found: CgroupThrottle | None) -> dict[str, float]:
        assert evidence.server_window is not None
        server = evidence.server_window.model_copy(update={"throttle": found})
        return of_trial(evidence.model_copy(update={"engine": engine, "server_window": server}))

    sizes = {"request_bytes": 80.0, "response_bytes": 150.0}
    assert with_throttle(throttle) == {"throttled_us": 500.0, **sizes}
    assert with_throttle(throttle.model_copy(update={"periods": 0})) == sizes, "no quota"
    assert with_throttle(None) == sizes
    assert of_trial(evidence.model_copy(update={"engine": None})) == {}


@pytest.mark.parametrize(
    ("samples", "share", "points"),
    [(SAMPLES * CPU_SLICES // SLICES, 0.2, 2.0), (2500, 0.05, 1.1), (830, 0.2, 3.4), (830, 0.05, 1.9)],
)
def test_what_a_number_of_samples_tells_of_a_part(samples: int, share: float, points: float) -> None:
    """What docs/explain.md says of the interval between samples: 95 %, in points."""
    halves = []
    for seed in range(60):
        drawn = staged({"application": 1 - share, "container": share}, samples=samples, slices=10, seed=seed)
        ends = shares(drawn, JVM).parts[Part.CONTAINER].interval()
        assert ends is not None
        halves.append((ends[1] - ends[0]) / 2)
    assert 100 * sum(halves) / len(halves) == pytest.approx(points, rel=0.06)
