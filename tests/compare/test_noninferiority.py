"""No worse, worse, cannot tell, not measurable: by the interval against the margin, Holm over figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from prony.compare import Later, Looks, Sample
from prony.compare.noninferiority import (
    Change,
    MarginTest,
    changes,
    changes_from_earlier,
    settled,
    smallest_margin,
    together,
)
from prony.compare.ratio import RatioResult, repeated_ratio
from prony.judge.finding import Bias
from prony.steady.approach import approach

LOOKS = Looks(5, 12)
RATE, TIME = "requests_per_s", "p99_ms"
ASKED = MarginTest("base", "candidate", {RATE: True, TIME: False}, 0.03)
ONE = MarginTest("base", "candidate", {TIME: False}, 0.03)


def trials(
    ratio: float, blocks: int = 5, spread: float = 0.002, seed: int = 1, figure: float = 100.0
) -> list[Sample]:
    rng = np.random.default_rng(seed)
    return [
        Sample(server, block, figure * level * math.exp(rng.normal(0, spread)))
        for block in range(blocks)
        for server, level in (("base", 1.0), ("candidate", ratio))
    ]


def without(samples: Sequence[Sample], server: str, blocks: set[int], **more: object) -> list[Sample]:
    """The same with these trials without a figure."""
    return [
        one._replace(conforms=False, why="errors: 5 % failed", **more)  # type: ignore[arg-type]
        if one.server == server and one.block in blocks
        else one
        for one in samples
    ]


def test_the_margin_lies_as_far_from_one_either_way() -> None:
    assert ASKED.limit(TIME) == pytest.approx(1.03)
    assert ASKED.limit(RATE) == pytest.approx(1 / 1.03)


@pytest.mark.parametrize(
    ("figure", "low", "high", "said"),
    [
        (TIME, 0.99, 1.02, Change.NO_WORSE),
        (TIME, 0.99, 1.03, Change.CANNOT_TELL),
        (TIME, 1.031, 1.08, Change.WORSE),
        (TIME, 0.5, 0.6, Change.NO_WORSE),
        (RATE, 0.98, 1.02, Change.NO_WORSE),
        (RATE, 0.96, 1.02, Change.CANNOT_TELL),
        (RATE, 0.90, 0.97, Change.WORSE),
        (RATE, 1.5, 1.6, Change.NO_WORSE),
        (RATE, None, None, Change.CANNOT_TELL),
        (RATE, 0.98, None, Change.NO_WORSE),
        (TIME, 0.98, None, Change.CANNOT_TELL),
        (RATE, None, 0.96, Change.WORSE),
    ],
)
def test_an_interval_is_on_one_side_of_the_margin_or_on_neither(
    figure: str, low: float | None, high: float | None, said: Change
) -> None:
    assert ASKED.side(figure, low, high) is said


def test_an_unchanged_candidate_is_no_worse_and_a_slower_one_worse() -> None:
    same = changes({RATE: trials(1.0), TIME: trials(1.0, seed=2)}, ASKED, LOOKS)
    assert same.change is Change.NO_WORSE
    slower = changes({RATE: trials(0.95), TIME: trials(1.0, seed=2)}, ASKED, LOOKS)
    assert slower.change is Change.WORSE
    assert [one.change for one in slower.figures] == [Change.WORSE, Change.NO_WORSE]


def test_a_change_that_is_significant_and_below_the_margin_is_no_worse() -> None:
    found = changes({RATE: trials(0.985), TIME: trials(1.015, seed=2)}, ASKED, LOOKS)
    assert found.change is Change.NO_WORSE
    assert all(one.low is not None and not one.low <= 1 <= (one.high or 0) for one in found.figures)


def test_noise_is_no_verdict() -> None:
    noisy = changes({RATE: trials(1.0, spread=0.05), TIME: trials(1.0, seed=2)}, ASKED, LOOKS, ended=True)
    assert noisy.change is Change.CANNOT_TELL
    (rate, _) = noisy.figures
    assert rate.smallest_margin is not None
    assert rate.smallest_margin > 0.03


def test_nothing_is_reported_before_the_first_look() -> None:
    found = changes({RATE: trials(0.5, blocks=4), TIME: trials(2.0, blocks=4)}, ASKED, LOOKS)
    assert found.change is Change.CANNOT_TELL
    assert all(one.low is None for one in found.figures)


def made(low: float, high: float) -> RatioResult:
    return RatioResult(math.sqrt(low * high), low, high, 0.95, "made up", 5, 5, 5)


def test_holm_tests_the_surest_figure_hardest_and_the_others_at_what_is_left() -> None:
    test = MarginTest("base", "candidate", {"a": False, "b": False, "c": False}, 0.03)
    levels: dict[str, list[float]] = {"a": [], "b": [], "c": []}

    def measured(figure: str, decided_from: float) -> RatioResult:
        confidence = levels[figure][-1]
        return made(0.99, 1.01) if confidence <= decided_from else made(0.9, 1.1)

    def of(figure: str, decided_from: float):  # type: ignore[no-untyped-def]
        def measure(confidence: float) -> RatioResult:
            levels[figure].append(confidence)
            return measured(figure, decided_from)

        return measure

    found = settled({"a": of("a", 0.99), "b": of("b", 0.98), "c": of("c", 0.96)}, test, 0.05)
    assert levels["a"] == pytest.approx([1 - 0.05 / 3])
    assert levels["b"] == pytest.approx([1 - 0.05 / 3, 1 - 0.05 / 2], abs=1e-9)
    assert levels["c"][-1] == pytest.approx(0.95)
    assert all(test.side(name, one.low, one.high) is Change.NO_WORSE for name, one in found.items())


def test_holm_stops_where_nothing_more_is_decided() -> None:
    test = MarginTest("base", "candidate", {"a": False, "b": False}, 0.03)
    seen: list[float] = []

    def measure(confidence: float) -> RatioResult:
        seen.append(confidence)
        return made(0.9, 1.1)

    settled({"a": measure, "b": measure}, test, 0.05)
    assert seen == pytest.approx([0.975, 0.975])


def test_all_must_be_no_worse_and_one_that_is_worse_is_enough() -> None:
    assert together([Change.NO_WORSE, Change.NO_WORSE]) is Change.NO_WORSE
    assert together([Change.NO_WORSE, Change.CANNOT_TELL]) is Change.CANNOT_TELL
    assert together([Change.NOT_MEASURABLE, Change.CANNOT_TELL]) is Change.NOT_MEASURABLE
    assert together([Change.NOT_MEASURABLE, Change.WORSE]) is Change.WORSE


def test_a_side_of_which_nothing_counts_is_not_measurable_and_says_why() -> None:
    rejected = without(trials(1.0), "candidate", set(range(5)))
    found = changes({TIME: rejected}, ONE, LOOKS)
    assert found.change is Change.NOT_MEASURABLE
    assert found.figures[0].why == "no trial of candidate has a figure: errors: 5 % failed"


def test_more_rejected_than_all_blocks_can_make_up_for_ends_it() -> None:
    few = changes({TIME: without(trials(1.0, 8), "candidate", {0, 1})}, ONE, LOOKS)
    assert few.change is not Change.NOT_MEASURABLE
    many = changes({TIME: without(trials(1.0, 8), "candidate", {0, 1, 2})}, ONE, LOOKS)
    assert many.change is Change.NOT_MEASURABLE
    assert many.figures[0].why


def test_trials_without_a_figure_could_have_made_the_difference() -> None:
    samples = [
        one._replace(conforms=False, why="errors") if (one.server, one.block) == ("candidate", 0) else one
        for one in trials(1.0, 8, spread=0.02)
    ]
    (found,) = changes({TIME: samples}, MarginTest("base", "candidate", {TIME: False}, 0.045), LOOKS).figures
    (whole,) = changes(
        {TIME: trials(1.0, 8, spread=0.02)}, MarginTest("base", "candidate", {TIME: False}, 0.045), LOOKS
    ).figures
    assert found.worst_high is not None
    assert found.high is not None
    assert found.worst_high > found.high
    assert whole.worst_high == whole.high


def test_the_margin_must_hold_with_every_source_at_its_worst() -> None:
    def bent(high: float) -> list[Sample]:
        budget = {"warm": Bias(low=0.0, high=high)}
        return [one._replace(budget=budget) if one.server == "candidate" else one for one in trials(1.0)]

    assert changes({TIME: bent(0.01)}, ONE, LOOKS).change is Change.NO_WORSE
    (wide,) = changes({TIME: bent(0.05)}, ONE, LOOKS).figures
    assert wide.change is Change.CANNOT_TELL
    assert wide.sources[0].name == "warm"


def test_a_figure_may_have_a_margin_of_its_own() -> None:
    test = MarginTest("base", "candidate", {TIME: False}, 0.03, {TIME: 0.2})
    assert changes({TIME: trials(1.1)}, test, LOOKS).change is Change.NO_WORSE
    assert changes({TIME: trials(1.1)}, ONE, LOOKS).change is Change.WORSE


def rising(per_s: dict[str, float]) -> Later:
    rng = np.random.default_rng(3)
    at_s = np.arange(40, dtype=np.float64) + 0.5
    coming = {
        name: approach(slope * at_s + rng.normal(0, 0.002, 40), at_s, at_s > 30, horizon_s=60.0)
        for name, slope in per_s.items()
    }
    return Later(60.0, coming, seen_s=40.0)


def test_a_candidate_that_moves_away_across_the_margin_does_not_pass() -> None:
    away = {TIME: rising({"base": 0.0, "candidate": 0.003})}
    (found,) = changes({TIME: trials(1.0)}, ONE, LOOKS, later=away.get).figures
    assert found.change is Change.CANNOT_TELL
    assert found.why
    both = {TIME: rising({"base": 0.003, "candidate": 0.003})}
    assert changes({TIME: trials(1.0)}, ONE, LOOKS, later=both.get).change is Change.NO_WORSE
    (worse,) = changes({TIME: trials(1.1)}, ONE, LOOKS, later=away.get).figures
    assert worse.change is Change.WORSE


def test_different_hosts_are_not_measurable() -> None:
    samples = [one._replace(host=one.server) for one in trials(1.0)]
    (found,) = changes({TIME: samples}, ONE, LOOKS).figures
    assert found.change is Change.NOT_MEASURABLE
    assert found.why


def test_the_smallest_margin_falls_with_the_spread() -> None:
    def of(spread: float) -> float:
        values = trials(1.0, 8, spread)
        sides = [[one for one in values if one.server == name] for name in ("candidate", "base")]
        a, b = ([float(one.value or 0) for one in side] for side in sides)
        found = smallest_margin(repeated_ratio(a, b, range(8), range(8), LOOKS), 0.05)
        assert found is not None
        return found

    assert of(0.002) < of(0.01) < of(0.05)


EARLIER = [[100.0, 101.0, 99.5], [102.0, 101.0, 102.5], [99.0, 98.5, 99.4], [100.5, 100.0, 101.0]]


def candidate(level: float) -> list[Sample]:
    return [Sample("candidate", block, level * factor) for block, factor in enumerate((1.0, 1.002, 0.999))]


def test_a_baseline_needs_experiments_whose_spread_is_known() -> None:
    few = changes_from_earlier({TIME: candidate(100.0)}, ONE, {TIME: EARLIER[:2]})
    assert few.change is Change.CANNOT_TELL
    assert few.figures[0].low is None
    far = changes_from_earlier({TIME: candidate(130.0)}, ONE, {TIME: EARLIER})
    assert far.change is Change.WORSE
    near = changes_from_earlier({TIME: candidate(100.0)}, ONE, {TIME: EARLIER})
    assert near.change is Change.CANNOT_TELL  # experiments differ by 1.5 %: more than trials of one do
    better = changes_from_earlier({TIME: candidate(80.0)}, ONE, {TIME: EARLIER})
    assert better.change is Change.NO_WORSE


def test_a_baseline_without_the_figure_or_a_candidate_without_a_trial_is_not_measurable() -> None:
    lacks = changes_from_earlier({TIME: candidate(100.0)}, ONE, {TIME: [(), ()]})
    assert lacks.change is Change.NOT_MEASURABLE
    rejected = without([one._replace(server="candidate") for one in candidate(1.0)], "candidate", {0, 1, 2})
    none = changes_from_earlier({TIME: rejected}, ONE, {TIME: EARLIER})
    assert none.change is Change.NOT_MEASURABLE
