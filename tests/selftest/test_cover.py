"""Worlds of known truth in small: the bounds of the checks hold it, and planted wrong ones are caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prony.compare import Sample, compare
from prony.judge import judging
from prony.judge.estimate import Estimate
from prony.judge.finding import NO_BIAS
from prony.judge.histogram import decode
from prony.judge.judging import judge
from prony.plan.load import SteadyWindow
from prony_selftest.cover import coverage as coverage_module
from prony_selftest.cover.claims import Claimed, claimed, creeping, is_false
from prony_selftest.cover.coverage import WorldCoverage, coverage_of, covers, plateaus
from prony_selftest.cover.queue import Disturbance, World, run
from prony_selftest.cover.staged import FAULTS
from prony_selftest.cover.synthetic_evidence import histogram
from prony_selftest.cover.worlds import KINDS, LOADS, trial, truth
from prony_selftest.faults.model import overlaps

KIND = {kind.name: kind for kind in KINDS}


def counted(found: WorldCoverage) -> tuple[int, int]:
    """Figures of conforming trials, and those whose bounds hold the truth."""
    figures = found.figures.values()
    return sum(of.conforming for of in figures), sum(of.covered for of in figures)


@pytest.mark.parametrize("load", LOADS)
def test_an_undisturbed_trial_conforms(load: str) -> None:
    judgement = judge(trial(LOADS[load], np.random.default_rng(1)))
    assert judgement.conforms, judgement.not_conforming
    assert judgement.bias("requests_per_s").size < 0.01


@pytest.mark.parametrize(
    ("name", "load"),
    [("quiet", "saturating"), ("steal", "half busy"), ("slow client", "half busy"), ("errors", "open")],
)
def test_the_bounds_hold_the_truth(name: str, load: str) -> None:
    every, there = counted(coverage_of(KIND[name], load, 5, seed=1))
    assert every >= 20
    assert there >= 0.85 * every


def test_a_check_that_says_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(evidence: object, limits: object = None) -> object:
        results = judging.judge(evidence, limits)  # type: ignore[arg-type]
        silent = [finding.model_copy(update={"bias": {}}) for finding in results.findings]
        return results.model_copy(update={"findings": tuple(silent)})

    strong = replace(KIND["steal"], drawn=lambda _: Disturbance(stolen=0.2))
    assert coverage_of(strong, "saturating", 2, seed=1).needed["isolation"] >= 2
    monkeypatch.setattr(coverage_module, "judge", blind)
    results = coverage_of(strong, "saturating", 2, seed=1)
    assert results.figures["requests_per_s"].covered == 0
    assert results.figures["requests_per_s"].missed


def test_a_bound_that_is_not_wide_enough_does_not_hold() -> None:
    assert covers(Estimate(100.0, 99.0, 101.0, 0.0, 0.1), 110.0)
    assert not covers(Estimate(100.0, 99.0, 101.0, 0.0, 0.05), 110.0)
    assert covers(Estimate(100.0, 99.0, 101.0, None, 0.0), 50.0)
    assert overlaps(Estimate(100.0, 99.0, 101.0), Estimate(90.0, 89.0, 91.0, 0.0, 0.1))
    assert not overlaps(Estimate(100.0, 99.0, 101.0), Estimate(90.0, 89.0, 91.0, 0.0, 0.05))


def test_a_claim_beyond_the_truth_is_false() -> None:
    samples = [
        Sample(name, block, rate * (1 + 0.001 * (block % 3)))
        for block in range(5)
        for name, rate in (("a", 110.0), ("b", 100.0))
    ]
    (pair,) = compare(samples).pairs
    assert pair.differs
    assert not is_false(pair, 1.1, 1.1)
    assert is_false(pair, 1.0, 1.0)
    assert is_false(pair, 1 / 1.1, 1 / 1.1)
    assert not is_false(pair, 1.05, 1.05)
    for true, ends in ((1.0, (1, 0)), (1.05, (0, 1)), (1.1, (0, 0))):
        results = Claimed()
        results.add(pair, true, true)
        assert (results.false, len(results.beyond)) == ends
    (same,) = compare([sample._replace(value=100.0 + sample.block % 2) for sample in samples]).pairs
    assert not is_false(same, 1.0, 1.0)
    assert is_false(same, 1.1, 1.1)


def test_pairs_are_claimed_as_they_are() -> None:
    apart = claimed(KIND["quiet"], "saturating", 1.1, 1, seed=1)
    assert (apart.pairs, apart.shown, apart.false) == (1, 1, 0)


def test_a_plain_claim_does_not_rest_on_a_warm_up() -> None:
    results: Claimed = creeping(1, seed=1)
    assert (results.pairs, results.plain, results.false) == (1, 0, 0)


def test_a_plateau_that_is_still_far_is_within_the_printed_interval() -> None:
    results = plateaus(World(noise=0.015, creeps=0.15), 10.0, 4, seed=1)
    assert results.covered >= 3
    assert len(results.halves) == 4


def test_the_queue_is_what_theory_says() -> None:
    """A closed loop that is never idle answers 1 ÷ demand; a CPU of which a fifth is gone, four fifths of it;
    an open load without disturbance waits as M/G/1 or less.
    """
    rng = np.random.default_rng(1)
    rate = [len(run(replace(World(), disturbance=how), 30.0, rng).done) / 30 for how in _LESS]
    assert rate == pytest.approx([1000, 800], rel=0.03)
    assert truth(LOADS["open"])["mean_ms"] < 1 + 0.5 / (2 * 0.5) * (1 + np.expm1(0.25))
    assert truth(LOADS["half busy"])["requests_per_s"] < 3 / 0.004


_LESS = (Disturbance(), Disturbance(stolen=0.2))


def test_others_are_counted_as_they_ran_and_the_server_waited_for_a_part_of_it() -> None:
    world = replace(LOADS["open"], disturbance=Disturbance(others=0.2, stolen=0.1, slice_ms=2))
    evidence = trial(world, np.random.default_rng(1))
    assert evidence.host_window is not None
    assert evidence.server_window is not None
    others, waited_s = evidence.host_window.others_on_server_cpus, evidence.server_window.run_delay_s
    assert (others, evidence.host_window.cpus[0].steal) == pytest.approx((0.2, 0.1), abs=0.02)
    assert others is not None
    assert waited_s is not None
    assert 0.5 * others < waited_s / evidence.server_window.wall_s < others


def test_the_histogram_is_the_engines() -> None:
    seconds = np.exp(np.random.default_rng(1).normal(-6, 1, 5000))
    results = decode(histogram(seconds))
    assert results.count == 5000
    assert results.percentile_ns(99) == pytest.approx(np.percentile(seconds, 99) * 1e9, rel=0.01)
    assert results.moment(1) == pytest.approx(seconds.mean(), rel=0.002)


def test_staged_faults_have_twins_that_differ_in_the_fault_alone() -> None:
    assert NO_BIAS.size == 0
    for fault in FAULTS:
        assert isinstance(fault.setup.measured, SteadyWindow)
        assert replace(fault.setup, **{name: getattr(fault.twin, name) for name in _FAULTS}) == replace(
            fault.twin, needs=fault.twin.needs
        )


_FAULTS = ("disturbance", "injected_faults", "serve", "context", "shared_cpus", "needs")
