"""The whole comparison: what counts, what is claimed, and how often it errs."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.compare import Claim, Comparison, Later, Sample, compare
from prony.compare.sentence import numbers, sentence
from prony.judge.finding import Bias
from prony.steady.approach import approach

NAMES = ("spring-tomcat", "spring-jetty", "spring-undertow")


def trials(
    rng: np.random.Generator,
    levels: tuple[float, ...],
    count: int,
    spread: float = 0.02,
    block_spread: float = 0.02,
) -> list[Sample]:
    """Trials in complete blocks; a block shares some of its luck."""
    made = []
    for block in range(count):
        luck = rng.normal(0, block_spread)
        for name, level in zip(NAMES, levels, strict=False):
            made.append(Sample(name, block, level * float(np.exp(luck + rng.normal(0, spread)))))
    return made


def differing(comparison: Comparison) -> list[bool]:
    return [pair.differs for pair in comparison.pairs]


def later_of(slopes: dict[str, float], noise: float = 0.001, rows: int = 40) -> Later:
    """Residual drift of servers whose throughput rises by this share per second."""
    rng = np.random.default_rng(7)
    at_s = np.arange(rows, dtype=np.float64) + 0.5
    window = at_s > rows - 10
    coming = {
        name: approach(slope * at_s + rng.normal(0, noise, rows), at_s, window, horizon_s=60.0)
        for name, slope in slopes.items()
    }
    return Later(60.0, coming, seen_s=float(rows))


def exact(
    factor: float,
    count: int = 5,
    *,
    budget: dict[str, Bias] | None = None,
    other: dict[str, Bias] | None = None,
    **more: Any,
) -> Any:
    """Undertow ÷ Tomcat over blocks with ratios within 1 % of `factor`; budgets of Undertow and Tomcat."""
    wobble = [0.99, 1.0, 1.01, 1.005, 0.995, 1.0, 1.002][:count]
    samples = [
        Sample("spring-undertow", b, 1000.0 * factor * w, budget=budget or {}) for b, w in enumerate(wobble)
    ]
    samples += [Sample("spring-tomcat", b, 1000.0, budget=other or {}) for b in range(count)]
    return compare(samples, **more).pairs[0]


class TestClaims:
    LEVEL = later_of({"spring-tomcat": 0.0, "spring-undertow": 0.0}, noise=1e-4)

    def test_a_difference_that_holds_at_the_worst_and_later_is_shown(self) -> None:
        pair = exact(1.3, later=self.LEVEL)
        assert pair.claim is Claim.SHOWN
        assert pair.better == "spring-undertow"
        assert pair.at_least == pytest.approx(pair.later_low)
        assert 1.2 < pair.at_least < pair.worst_low <= pair.low < 1.3

    def test_what_holds_for_the_window_only_says_so_and_what_would_settle_it(self) -> None:
        rising = later_of({"spring-tomcat": 0.004, "spring-undertow": 0.0}, noise=0.004)
        pair = exact(1.15, later=rising)
        assert pair.claim is Claim.SHOWN_FOR_WINDOW
        assert pair.later_low < 1 < pair.worst_low
        assert pair.at_least == pytest.approx(pair.worst_low)
        assert pair.settles.what == "load"

    def test_a_fixed_protocol_has_a_window_and_no_later(self) -> None:
        pair = exact(1.3)
        assert pair.claim is Claim.SHOWN_FOR_WINDOW
        assert pair.horizon_s is None
        assert pair.later_low is None
        assert pair.settles is None

    def test_rows_that_cannot_tell_leave_later_open(self) -> None:
        blind = Later(60.0, {"spring-tomcat": None, "spring-undertow": None})
        assert exact(1.3, later=blind).claim is Claim.SHOWN_FOR_WINDOW

    def test_a_bias_widens_the_side_that_it_bends(self) -> None:
        # The slower one may be 20 % faster than measured: the ratio may be 1.3 ÷ 1.2.
        pair = exact(1.3, other={"warm": Bias(low=0.0, high=0.2)})
        plain = exact(1.3)
        assert pair.worst_low == pytest.approx(plain.worst_low / 1.2)
        assert pair.worst_high == pytest.approx(plain.worst_high)
        assert pair.claim is Claim.SHOWN_FOR_WINDOW
        assert exact(1.3, other={"warm": Bias(low=0.0, high=0.35)}).claim is Claim.OPEN

    def test_one_side_without_a_bound_leaves_the_other_side_claimed(self) -> None:
        at_least = {"client": Bias(low=0.0, high=None)}
        faster = exact(1.3, budget=at_least)
        assert faster.claim is Claim.SHOWN_FOR_WINDOW
        assert faster.worst_high is None
        slower = exact(1.3, other=at_least)
        assert slower.claim is Claim.OPEN
        assert slower.worst_low is None
        assert slower.settles.what == "client"

    def test_what_bends_both_alike_cancels_in_a_block(self) -> None:
        stolen = {"isolation": Bias(low=0.0, high=0.1)}
        pair = exact(1.05, budget=stolen, other=stolen)
        assert pair.claim is Claim.SHOWN_FOR_WINDOW
        assert all(source.name != "isolation" for source in pair.sources)
        compiling = {"warm": Bias(low=0.0, high=0.1)}
        assert exact(1.05, budget=compiling, other=compiling).claim is Claim.OPEN

    def test_equal_servers_are_equivalent_within_the_margin_that_holds(self) -> None:
        pair = exact(1.001)
        assert pair.claim is Claim.EQUIVALENT
        assert pair.within == pytest.approx(max(pair.worst_high, 1 / pair.worst_low) - 1)
        assert exact(1.001, budget={"warm": Bias(low=0.0, high=0.2)}).claim is Claim.OPEN

    def test_a_difference_below_the_band_makes_none(self) -> None:
        assert exact(1.012, 7).claim is Claim.EQUIVALENT

    def test_an_open_pair_names_the_blocks_that_settle_it_and_their_time(self) -> None:
        samples = trials(np.random.default_rng(3), (1000, 1060), 3, spread=0.03)
        pair = compare(samples, block_s=60.0).pairs[0]
        assert pair.claim is Claim.OPEN
        assert pair.settles is not None
        assert pair.settles.what == "blocks"
        assert pair.settles.blocks is not None
        assert 1 <= pair.settles.blocks <= 50
        assert pair.settles.seconds == pytest.approx(60.0 * pair.settles.blocks)

    def test_the_blocks_named_settle_it(self) -> None:
        """With so many more blocks four pairs in five of the same kind are settled."""
        settled = asked = 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            first = trials(rng, (1000, 1060), 4, spread=0.02, block_spread=0)
            pair = compare(first).pairs[0]
            if pair.claim is not Claim.OPEN or pair.settles is None or pair.settles.blocks is None:
                continue
            asked += 1
            more = trials(rng, (1000, 1060), pair.settles.blocks, spread=0.02, block_spread=0)
            again = compare([*first, *(s._replace(block=s.block + 4) for s in more)]).pairs[0]
            settled += again.claim is not Claim.OPEN
        assert asked >= 10
        assert settled / asked >= 0.6


class TestWhatCounts:
    def test_trials_that_do_not_conform_widen_by_their_worst_admissible_value(self) -> None:
        samples = trials(np.random.default_rng(1), (1000, 1230), 5, spread=0.005, block_spread=0.0)
        whole = compare(samples).pairs[0]
        samples[1] = samples[1]._replace(conforms=False, why="errors: many", value=9e9)
        found = compare(samples)
        (pair,) = found.pairs
        assert found.servers[1].missing == ((0, "errors: many"),)
        assert pair.n == 4
        missing = next(source for source in pair.sources if source.name == "missing")
        # A difference may be anything between the extremes that were seen of either server, in as many of
        # them as one of five may stand for: 72 % (Clopper-Pearson).
        assert missing.up == pytest.approx(0.716 * math.log(1.23), rel=0.15)
        assert whole.worst_high is not None
        assert pair.worst_high is not None
        assert whole.worst_high < pair.worst_high < 1
        assert pair.claim is Claim.SHOWN_FOR_WINDOW

    def test_a_missing_trial_may_be_as_bad_as_what_it_measured(self) -> None:
        """Equal servers, of which one has slow starts that do not conform: without them it seems faster."""
        samples = trials(np.random.default_rng(1), (1030, 1000), 5, spread=0.002, block_spread=0.0)
        samples[0] = samples[0]._replace(conforms=False, why="errors: many", value=800.0)
        found = compare(samples)
        assert found.servers[0].missing_values == (800.0,)
        pair = found.pairs[0]
        assert pair.low is not None
        assert pair.worst_low is not None
        assert pair.worst_low < 1 < pair.low
        assert pair.claim is Claim.OPEN

    def test_missing_and_impossible_values(self) -> None:
        samples = trials(np.random.default_rng(1), (1000, 1100), 5)
        samples[0] = samples[0]._replace(value=None)
        samples[2] = samples[2]._replace(value=0.0)
        (tomcat, _) = compare(samples).servers
        assert [one.block for one in tomcat.missing] == [0, 1]

    def test_nothing_on_one_side(self) -> None:
        samples = [
            s._replace(conforms=s.server != "spring-jetty")
            for s in trials(np.random.default_rng(1), (1, 1), 5)
        ]
        pair = compare(samples).pairs[0]
        assert pair.claim is Claim.OPEN
        assert pair.ratio is None
        assert pair.why == "no_trial"
        assert sentence(pair)

    def test_two_machines_are_not_compared(self) -> None:
        samples = [
            s._replace(host="arm" if s.server == "spring-jetty" else "x86")
            for s in trials(np.random.default_rng(1), (1000, 2000), 5)
        ]
        pair = compare(samples).pairs[0]
        assert (pair.claim, pair.low, pair.why) == (Claim.OPEN, None, "other_host")
        assert sentence(pair)

    def test_two_trials_have_no_interval(self) -> None:
        pair = exact(1.5, 2)
        assert (pair.claim, pair.low, pair.why) == (Claim.OPEN, None, "too_few")
        assert pair.settles.blocks == 1

    def test_pairs_that_cannot_be_tested_do_not_cost_the_others(self) -> None:
        samples = trials(np.random.default_rng(1), (1000, 1100, 1200), 5)
        samples = [s._replace(conforms=s.server != "spring-undertow") for s in samples]
        found = compare(samples)
        assert found.family == 1
        assert found.pairs[0].confidence == pytest.approx(0.95)

    def test_the_order_can_be_given(self) -> None:
        samples = trials(np.random.default_rng(1), (1000, 1100), 5)
        pair = compare(samples, servers=("spring-jetty", "spring-tomcat")).pairs[0]
        assert (pair.a, pair.b) == ("spring-jetty", "spring-tomcat")

    def test_nobody(self) -> None:
        assert compare([]).pairs == ()
        assert compare([Sample("a", 0, 1.0)]).pairs == ()


LEAST = re.compile(r"(\d+\.\d+)x; at least (\d+\.\d+)x")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.integers(3, 8),
    st.sampled_from([0.0005, 0.005, 0.02]),
    st.sampled_from(["requests_per_s", "p99_ms", "threads", "something_else"]),
)
def test_no_sentence_contradicts_its_numbers(seed: int, count: int, spread: float, figure: str) -> None:
    """Read back what is printed: what is claimed must follow from the rounded numbers as from the exact
    ones.
    """
    rng = np.random.default_rng(seed)
    levels = tuple(1000 * (1 + shift) for shift in rng.uniform(-0.03, 0.03, 3))
    for pair in compare(trials(rng, levels, count, spread), figure).pairs:
        text = sentence(pair)
        if pair.differs:
            match = LEAST.search(text)
            assert match is not None
            value, least = (float(number) for number in match.groups())
            assert 1 < least <= (pair.at_least or 0) + 1e-6
            assert least <= value + 0.01
            larger = pair.a if (pair.ratio or 0) > 1 else pair.b
            assert text.startswith(larger)
        elif pair.claim is Claim.OPEN:
            match = re.search(r"x \[(\d+\.\d+), (\d+\.\d+)\]", text)
            assert match is not None


@pytest.mark.parametrize(
    ("value", "low", "high", "printed"),
    [
        (1.5, 1.42, 1.581, "1.50x [1.42, 1.58]"),
        (0.5, 0.491, 0.512, "0.50x [0.49, 0.51]"),
        (1.01, 0.9996, 1.02, "1.0100x [0.9996, 1.0200]"),
        (0.09921, 0.09868, 0.09975, "0.0992x [0.0987, 0.0998]"),
        (0.0049, 0.0047, 0.0052, "0.00490x [0.00470, 0.00520]"),
        (0.0, 0.0, 0.1, "0.00x [0.00, 0.10]"),
    ],
)
def test_a_ratio_keeps_the_digits_that_tell(value: float, low: float, high: float, printed: str) -> None:
    assert numbers(value, low, high) == printed


class TestErrorRates:
    ROUNDS = 400

    def test_the_same_server_under_three_names_is_rarely_called_different(self) -> None:
        """Family of three pairs, Holm: at most 5 % of the experiments may claim any difference."""
        rng = np.random.default_rng(20)
        wrong = sum(any(differing(compare(trials(rng, (1000, 1000, 1000), 5)))) for _ in range(self.ROUNDS))
        assert wrong / self.ROUNDS <= 0.05 + 3 * (0.05 * 0.95 / self.ROUNDS) ** 0.5

    def test_a_quick_look_errs_no_more(self) -> None:
        rng = np.random.default_rng(21)
        wrong = sum(any(differing(compare(trials(rng, (1, 1, 1), 3)))) for _ in range(self.ROUNDS))
        assert wrong / self.ROUNDS <= 0.085

    def test_a_bias_within_its_budget_makes_no_false_difference(self) -> None:
        """One of two equal servers lost 4 % to something that its budget bounds by 4 %."""
        rng = np.random.default_rng(25)
        wrong = 0
        for _ in range(self.ROUNDS):
            samples = trials(rng, (1000, 960), 5, spread=0.01)
            budget = {"warm": Bias(low=0.0, high=1 / 0.96 - 1)}
            bent = [s._replace(budget=budget) if s.server == NAMES[1] else s for s in samples]
            wrong += compare(bent).pairs[0].differs
        assert wrong / self.ROUNDS <= 0.05
        # ... which the same trials without a budget make nearly always.
        assert compare(samples).pairs[0].differs

    def test_an_injected_difference_of_ten_percent_is_found(self) -> None:
        rng = np.random.default_rng(22)
        found = right = 0
        for _ in range(150):
            first = compare(trials(rng, (1000, 1100), 5)).pairs[0]
            found += first.differs
            right += first.better == NAMES[1]
        assert right / 150 >= 0.95
        assert found == right  # never the wrong way round

    def test_enough_trials_of_the_same_server_become_equivalent(self) -> None:
        rng = np.random.default_rng(23)
        same = sum(
            compare(trials(rng, (1000, 1000), 20, spread=0.01)).pairs[0].claim is Claim.EQUIVALENT
            for _ in range(40)
        )
        assert same >= 36

    def test_starts_that_differ_widen_the_interval_and_are_never_picked_from(self) -> None:
        """One start in two is 20 % slow: ten trials each must not pretend to a 2 % statement."""
        rng = np.random.default_rng(24)
        widths = []
        for _ in range(30):
            samples = [
                Sample(name, block, 1000.0 * (0.8 if rng.random() < 0.5 else 1.0))
                for block in range(10)
                for name in NAMES[:2]
            ]
            pair = compare(samples).pairs[0]
            if pair.low is not None and pair.high is not None:
                widths.append(pair.high / pair.low)
        assert np.median(widths) > 1.12

    def test_slow_starts_that_are_missing_make_no_false_difference(self) -> None:
        """Equal servers; the slow starts of one of them do not conform: the rest is a selection."""
        rng = np.random.default_rng(26)
        wrong = 0
        for _ in range(self.ROUNDS):
            samples = []
            for block in range(10):
                for name in NAMES[:2]:
                    slow = rng.random() < 0.15
                    value = 1000.0 * (0.8 if slow else 1.0) * float(np.exp(rng.normal(0, 0.01)))
                    samples.append(Sample(name, block, value, conforms=not (slow and name == NAMES[0])))
            wrong += compare(samples).pairs[0].differs
        assert wrong / self.ROUNDS <= 0.05 + 3 * (0.05 * 0.95 / self.ROUNDS) ** 0.5
