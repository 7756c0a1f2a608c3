"""The whole comparison: what counts, what is said, and how often it errs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.compare import Comparison, Sample, Verdict, compare
from prony.compare.sentence import numbers

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


def verdicts(comparison: Comparison) -> list[Verdict]:
    return [pair.verdict for pair in comparison.pairs]


class TestSentences:
    def exact(self, factor: float, count: int = 5, figure: str = "requests_per_s") -> str:
        """Two servers, five blocks, ratios within 1 % of `factor`."""
        wobble = [0.99, 1.0, 1.01, 1.005, 0.995, 1.0, 1.002][:count]
        samples = [Sample("spring-tomcat", b, 1000.0) for b in range(count)]
        samples += [Sample("spring-undertow", b, 1000.0 * factor * w) for b, w in enumerate(wobble)]
        return compare(samples, figure).pairs[0].sentence

    def test_faster_names_the_faster_first(self) -> None:
        assert self.exact(1.07) == (
            "spring-undertow is faster than spring-tomcat: 1.07x [1.06, 1.08] (95 %, 5 trials each)"
        )
        assert self.exact(1 / 1.07).startswith(
            "spring-tomcat is faster than spring-undertow: 1.07x [1.06, 1.08]"
        )

    def test_lower_is_better(self) -> None:
        assert self.exact(1.07, figure="p99_ms").startswith(
            "spring-tomcat has a lower p99 than spring-undertow: 0.93x"
        )
        assert "has a lower peak memory (RSS) than" in self.exact(1.07, figure="peak_rss_mib")

    def test_equivalent(self) -> None:
        assert "are equivalent within 2 %: 1.00" in self.exact(1.001)

    def test_few_trials_say_so(self) -> None:
        assert "(95 %, 3 trials each, quick: fewer than 5)" in self.exact(1.07, count=3)
        assert "2 valid trials, too few for an interval" in self.exact(1.07, count=2)
        assert "1 valid trial, too few" in self.exact(1.07, count=1)

    def test_inconclusive_says_how_many_more(self) -> None:
        samples = trials(np.random.default_rng(3), (1000, 1030), 5, spread=0.03)
        sentence = compare(samples).pairs[0].sentence
        assert "inconclusive" in sentence
        assert re.search(
            r"detecting a 2 % difference takes about \d+ to \d+ more trials per server: --until", sentence
        )

    def test_the_family_is_named(self) -> None:
        samples = trials(np.random.default_rng(3), (1000, 1100, 1200), 5)
        assert all("Holm over 3 pairs" in pair.sentence for pair in compare(samples).pairs)


class TestWhatCounts:
    def test_invalid_trials_take_no_part_and_are_named(self) -> None:
        samples = trials(np.random.default_rng(1), (1000, 1100), 5)
        samples[1] = samples[1]._replace(valid=False, why="client: saturated", value=9e9)
        found = compare(samples)
        assert found.notes == ("spring-jetty: trial of block 0 excluded: client: saturated",)
        jetty = found.servers[1]
        assert jetty.summary is not None
        assert jetty.summary.n == 4
        assert found.pairs[0].n == 4
        assert "4 blocks" in found.pairs[0].sentence

    def test_missing_and_impossible_values(self) -> None:
        samples = trials(np.random.default_rng(1), (1000, 1100), 5)
        samples[0] = samples[0]._replace(value=None)
        samples[2] = samples[2]._replace(value=0.0)
        notes = compare(samples).notes
        assert any("the figure is missing" in note for note in notes)
        assert any("the figure is 0" in note for note in notes)

    def test_nothing_valid_on_one_side(self) -> None:
        samples = [
            s._replace(valid=s.server != "spring-jetty") for s in trials(np.random.default_rng(1), (1, 1), 5)
        ]
        pair = compare(samples).pairs[0]
        assert pair.verdict is Verdict.INCONCLUSIVE
        assert pair.ratio is None
        assert "no valid trial of spring-jetty" in pair.sentence

    def test_two_machines_are_confounded(self) -> None:
        samples = [
            s._replace(host="arm" if s.server == "spring-jetty" else "x86")
            for s in trials(np.random.default_rng(1), (1000, 2000), 5)
        ]
        pair = compare(samples).pairs[0]
        assert pair.verdict is Verdict.INCONCLUSIVE
        assert pair.p_value is None
        assert pair.low is None
        assert "confounded" in pair.sentence

    def test_pairs_that_cannot_be_tested_do_not_cost_the_others(self) -> None:
        samples = trials(np.random.default_rng(1), (1000, 1100, 1200), 5)
        samples = [s._replace(valid=s.server != "spring-undertow") for s in samples]
        found = compare(samples)
        assert found.family == 1
        assert found.pairs[0].confidence == pytest.approx(0.95)

    def test_the_order_can_be_given(self) -> None:
        samples = trials(np.random.default_rng(1), (1000, 1100), 5)
        pair = compare(samples, servers=("spring-jetty", "spring-tomcat")).pairs[0]
        assert (pair.a, pair.b) == ("spring-jetty", "spring-tomcat")

    @pytest.mark.parametrize("bad", [{"band": -0.1}, {"confidence": 0.0}, {"confidence": 1.0}])
    def test_absurd_settings_are_refused(self, bad: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="band"):
            compare([], **bad)

    def test_nobody(self) -> None:
        assert compare([]).pairs == ()
        assert compare([Sample("a", 0, 1.0)]).pairs == ()


NUMBERS = re.compile(r"(\d+\.\d+)x \[(\d+\.\d+), (\d+\.\d+)\]")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.integers(3, 8),
    st.sampled_from([0.0005, 0.005, 0.02]),
    st.sampled_from(["requests_per_s", "p99_ms", "threads", "something_else"]),
)
def test_no_sentence_contradicts_its_numbers(seed: int, count: int, spread: float, figure: str) -> None:
    """Read back what is printed: the words must follow from the rounded numbers as from the exact ones."""
    rng = np.random.default_rng(seed)
    levels = tuple(1000 * (1 + shift) for shift in rng.uniform(-0.03, 0.03, 3))
    for pair in compare(trials(rng, levels, count, spread), figure).pairs:
        match = NUMBERS.search(pair.sentence)
        assert match is not None
        value, low, high = (float(text) for text in match.groups())
        assert low <= value <= high
        inside = low >= round(1 / 1.02, 6) - 1e-6 and high <= 1.02
        if pair.verdict is Verdict.EQUIVALENT:
            assert "equivalent" in pair.sentence
            assert inside
        elif pair.verdict is Verdict.INCONCLUSIVE:
            assert "inconclusive" in pair.sentence
            assert low <= 1 <= high
            assert not inside
        else:
            assert " than " in pair.sentence
            assert low > 1 or high < 1
            assert not inside
            first = pair.sentence.split(" ")[0]
            better = pair.a if pair.verdict is Verdict.FASTER else pair.b
            assert first == better


@pytest.mark.parametrize(
    ("value", "low", "high", "printed"),
    [
        (1.5, 1.42, 1.581, "1.50x [1.42, 1.58]"),
        (0.5, 0.491, 0.512, "0.50x [0.49, 0.51]"),
        (0.09921, 0.09868, 0.09975, "0.0992x [0.0987, 0.0998]"),
        (0.0049, 0.0047, 0.0052, "0.00490x [0.00470, 0.00520]"),
        (0.0, 0.0, 0.1, "0.00x [0.00, 0.10]"),
    ],
)
def test_a_small_ratio_keeps_its_digits(value: float, low: float, high: float, printed: str) -> None:
    assert numbers(value, low, high, 0.02) == printed


class TestErrorRates:
    ROUNDS = 400

    def test_the_same_server_under_three_names_is_rarely_called_different(self) -> None:
        """Family of three pairs, Holm: at most 5 % of the experiments may claim any difference."""
        rng = np.random.default_rng(20)
        wrong = 0
        for _ in range(self.ROUNDS):
            found = compare(trials(rng, (1000, 1000, 1000), 5))
            wrong += any(v in {Verdict.FASTER, Verdict.SLOWER} for v in verdicts(found))
        assert wrong / self.ROUNDS <= 0.05 + 3 * (0.05 * 0.95 / self.ROUNDS) ** 0.5

    def test_a_quick_look_errs_no_more(self) -> None:
        rng = np.random.default_rng(21)
        wrong = sum(
            any(v in {Verdict.FASTER, Verdict.SLOWER} for v in verdicts(compare(trials(rng, (1, 1, 1), 3))))
            for _ in range(self.ROUNDS)
        )
        assert wrong / self.ROUNDS <= 0.085

    def test_an_injected_difference_of_ten_percent_is_found(self) -> None:
        rng = np.random.default_rng(22)
        found = right = 0
        for _ in range(150):
            first = compare(trials(rng, (1000, 1100), 5)).pairs[0]
            found += first.verdict is not Verdict.INCONCLUSIVE
            right += first.verdict is Verdict.SLOWER
        assert right / 150 >= 0.95
        assert found == right  # nobody is called faster the wrong way round

    def test_enough_trials_of_the_same_server_become_equivalent(self) -> None:
        rng = np.random.default_rng(23)
        same = sum(
            compare(trials(rng, (1000, 1000), 20, spread=0.01)).pairs[0].verdict is Verdict.EQUIVALENT
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
